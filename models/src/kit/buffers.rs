//! What a buffer manager must keep to.

use super::{Check, Difference, IN_RUST, Missteps, NOTHING_PUT_RIGHT, Random, Verdict, same};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytemuck::Zeroable;
use wormhole_kernel::buffer::BufferManager;
use wormhole_kernel::fabric::PortInfo;
use wormhole_kernel::units::{BitRate, Span};

const STEPS: usize = 10_000;
const PORTS: usize = 4;
/// Frames a queue may be made to hold here.
const MOST_FRAMES: usize = 4_000;

/// A buffer manager and how it is tried.
pub struct BuffersKit<'m, B> {
    model: &'m B,
    missteps: Option<&'m Missteps<'m>>,
}

/// A switch whose queues are filled and emptied at random.
pub(crate) struct Drive<'m, B: BufferManager> {
    model: &'m B,
    switch: B::Switch,
    ports: [B::Port; PORTS],
    queues: [B::Queue; PORTS],
    /// The frames in each queue, oldest first.
    frames: [Vec<u32>; PORTS],
    random: Random,
    input: String,
}

impl<B: BufferManager> Clone for Drive<'_, B> {
    fn clone(&self) -> Self {
        Drive { frames: self.frames.clone(), random: self.random.clone(), input: self.input.clone(), ..*self }
    }
}

/// What is decided about a queue: admitted, pauses, resumes.
type Decisions = (Option<bool>, bool, bool);

impl<'m, B: BufferManager> Drive<'m, B> {
    pub(crate) fn new(model: &'m B, seed: u64) -> Self {
        let rate = BitRate::from_gbps(100);
        let infos = [100, 100, 400, 25].map(|gbps| PortInfo::detached(BitRate::from_gbps(gbps), Span::from_us(1)));
        Drive {
            model,
            switch: model.switch(&mut infos.into_iter()),
            ports: infos.map(|info| model.port(&info, rate)),
            // As the kernel's tables begin.
            queues: [B::Queue::zeroed(); PORTS],
            frames: [const { Vec::new() }; PORTS],
            random: Random(seed),
            input: String::new(),
        }
    }

    fn asks(&self, q: usize) -> (bool, bool) {
        let (switch, port, queue) = (&self.switch, &self.ports[q], &self.queues[q]);
        (self.model.pauses(switch, port, queue), self.model.resumes(switch, port, queue))
    }

    fn admit(&mut self, q: usize, bytes: u32) -> Decisions {
        let admitted = self.model.admit(&mut self.switch, &self.ports[q], &mut self.queues[q], bytes);
        if admitted {
            self.frames[q].push(bytes);
        }
        let (pauses, resumes) = self.asks(q);
        (Some(admitted), pauses, resumes)
    }

    fn release(&mut self, q: usize) -> Decisions {
        let bytes = self.frames[q].remove(0);
        self.model.release(&mut self.switch, &self.ports[q], &mut self.queues[q], bytes);
        let (pauses, resumes) = self.asks(q);
        (None, pauses, resumes)
    }

    pub(crate) fn step(&mut self) -> Decisions {
        let q = self.random.below(PORTS as u64) as usize;
        let bytes = 64 + self.random.below(9_000) as u32;
        // Long times of filling and of emptying take turns.
        let fills = self.random.below(100) < if self.random.below(2_000) < 1_000 { 60 } else { 45 };
        if self.frames[q].is_empty() || fills && self.frames[q].len() < MOST_FRAMES {
            self.input = format!("admit {bytes} bytes to queue {q}, which holds {} frames", self.frames[q].len());
            self.admit(q, bytes)
        } else {
            self.input = format!("release the first of {} frames of queue {q}", self.frames[q].len());
            self.release(q)
        }
    }

    fn held(&self, q: usize) -> u64 {
        self.frames[q].iter().map(|bytes| u64::from(*bytes)).sum()
    }

    /// What can be asked of a switch without changing it.
    pub(crate) fn view(&self) -> (Vec<(bool, bool)>, u64, [bool; 3]) {
        let calm = [0, 10_000, 1_000_000].map(|more| self.model.is_calm(&self.switch, more));
        ((0..PORTS).map(|q| self.asks(q)).collect(), self.model.shared_bytes(&self.switch), calm)
    }
}

impl<'m, B: BufferManager> BuffersKit<'m, B> {
    /// For a model in Rust.
    pub fn new(model: &'m B) -> Self {
        BuffersKit { model, missteps: None }
    }

    /// The model is foreign code, and this tells what its wrapper has put right.
    pub fn with_missteps(self, missteps: &'m Missteps<'m>) -> Self {
        BuffersKit { missteps: Some(missteps), ..self }
    }

    /// Tries everything.
    pub fn checks(&self) -> Vec<Check> {
        let [verdicts, state_size] = match self.missteps {
            Some(missteps) => [false, true].map(|overruns| self.missteps_of(missteps, overruns)),
            None => [IN_RUST; 2],
        };
        let calm = Drive::new(self.model, 1).view().2[0];
        let if_calm = |check: &dyn Fn() -> Result<(), Difference>| match calm {
            true => check().map_or_else(Verdict::Failed, |()| Verdict::Passed),
            false => Verdict::NotApplicable("an empty switch is not calm: what passes it is always simulated"),
        };
        let (promise, replace) = (if_calm(&|| self.calm_promise()), if_calm(&|| self.replace()));
        Vec::from([
            Check { name: "verdicts are yes or no", verdict: verdicts },
            Check { name: "keeps to its states", verdict: state_size },
            Check::new("equal inputs, equal outputs", self.determinism()),
            Check::new("all it remembers is in its states", self.save_and_restore()),
            Check::new("bytes held are those admitted and not released", self.accounting()),
            Check::new("an empty queue lets its sender go on", self.resumes_when_empty()),
            Check { name: "where it is calm no queue depends on others", verdict: promise },
            Check { name: "a switch follows a queue that is replaced", verdict: replace },
        ])
    }

    fn missteps_of(&self, missteps: &Missteps<'_>, overruns: bool) -> Verdict {
        let _ = missteps();
        let mut drive = Drive::new(self.model, 1);
        for step in 0..STEPS {
            drive.step();
            let _ = drive.view();
            if let Some(misstep) = missteps().filter(|misstep| misstep.is_overrun == overruns) {
                let (input, expected) = (drive.input, NOTHING_PUT_RIGHT.into());
                return Verdict::Failed(Difference { step, input, found: misstep.what, expected });
            }
        }
        Verdict::Passed
    }

    fn determinism(&self) -> Result<(), Difference> {
        let (mut one, mut other) = (Drive::new(self.model, 2), Drive::new(self.model, 2));
        (0..STEPS).try_for_each(|step| {
            let (found, expected) = (one.step(), other.step());
            same(step, &one.input, &found, &expected)
        })
    }

    fn save_and_restore(&self) -> Result<(), Difference> {
        const AHEAD: usize = 50;
        let mut drive = Drive::new(self.model, 3);
        for step in (0..STEPS).step_by(AHEAD) {
            let mut restored = drive.clone();
            let expected: Vec<Decisions> = (0..AHEAD).map(|_| drive.step()).collect();
            for (ahead, expected) in expected.iter().enumerate() {
                let found = restored.step();
                same(step + ahead, &restored.input, &found, expected)?;
            }
        }
        Ok(())
    }

    fn accounting(&self) -> Result<(), Difference> {
        let mut drive = Drive::new(self.model, 4);
        (0..STEPS).try_for_each(|step| {
            drive.step();
            let held: [u64; PORTS] = core::array::from_fn(|q| drive.held(q));
            let told = drive.queues.map(|queue| self.model.queue_bytes(&queue));
            same(step, &drive.input, &told, &held)?;
            let (shared, all) = (self.model.shared_bytes(&drive.switch), held.iter().sum::<u64>());
            same(step, &format!("{}; {shared} of {all} bytes shared", drive.input), &(shared <= all), &true)
        })
    }

    fn resumes_when_empty(&self) -> Result<(), Difference> {
        let mut drive = Drive::new(self.model, 5);
        (0..STEPS).try_for_each(|step| {
            drive.step();
            let mut empty = (0..PORTS).filter(|q| drive.frames[*q].is_empty());
            empty.try_for_each(|q| same(step, &format!("resumes queue {q}, which is empty?"), &drive.asks(q).1, &true))
        })
    }

    /// As long as a switch says it is calm, others may fill it without a queue noticing.
    fn calm_promise(&self) -> Result<(), Difference> {
        const MORE: u64 = 100_000;
        let mut drive = Drive::new(self.model, 6);
        (0..STEPS).try_for_each(|step| {
            drive.step();
            if step % 10 != 0 || !self.model.is_calm(&drive.switch, MORE) {
                return Ok(());
            }
            let q = step / 10 % PORTS;
            let (mut alone, mut among) = (drive.clone(), drive.clone());
            for other in (0..PORTS).filter(|other| *other != q) {
                // Three times 30 kB.
                for _ in 0..20 {
                    among.admit(other, 1_500);
                }
            }
            let bytes = 64 + drive.random.clone().below(9_000) as u32;
            let input = format!("admit {bytes} bytes to queue {q} of a calm switch, with and without others' 90 kB");
            same(step, &input, &among.admit(q, bytes), &alone.admit(q, bytes))
        })
    }

    /// A queue is set to what it will be after a release: all is as if it had been released.
    fn replace(&self) -> Result<(), Difference> {
        let mut drive = Drive::new(self.model, 7);
        (0..STEPS).try_for_each(|step| {
            drive.step();
            let q = step % PORTS;
            if drive.frames[q].is_empty() || !self.model.is_calm(&drive.switch, 0) {
                return Ok(());
            }
            let (mut released, mut replaced) = (drive.clone(), drive.clone());
            released.release(q);
            self.model.replace(&mut replaced.switch, &mut replaced.queues[q], released.queues[q]);
            same(step, &format!("queue {q} replaced by what it is a frame later"), &replaced.view(), &released.view())
        })
    }
}
