//! What a marker must keep to.

use super::{Bytes, Check, Difference, IN_RUST, Missteps, NOTHING_PUT_RIGHT, Random, Verdict, same};
use alloc::format;
use alloc::vec::Vec;
use wormhole_kernel::fabric::PortInfo;
use wormhole_kernel::ids::PortId;
use wormhole_kernel::marker::Marker;
use wormhole_kernel::units::{BitRate, Span};

const STEPS: usize = 10_000;

/// A marker and how it is tried. What it keeps in itself, as the global coins of ns-3, is cloned with it.
pub struct MarkerKit<'m, M> {
    model: &'m M,
    missteps: Option<&'m Missteps<'m>>,
}

/// A port at which a queue rises and falls at random.
pub(crate) struct Drive<M: Marker> {
    model: M,
    port: M::Port,
    random: Random,
    queue_bytes: u64,
}

impl<M: Marker + Clone> Clone for Drive<M> {
    fn clone(&self) -> Self {
        let Drive { model, port, random, queue_bytes } = self;
        Drive { model: model.clone(), port: *port, random: random.clone(), queue_bytes: *queue_bytes }
    }
}

impl<M: Marker + Clone> Drive<M> {
    pub(crate) fn new(model: &M, seed: u64) -> Drive<M> {
        let info = PortInfo::detached(BitRate::from_gbps(100), Span::from_us(1));
        Drive { model: model.clone(), port: model.port(PortId(3), &info), random: Random(seed), queue_bytes: 0 }
    }

    fn next_queue(&mut self) -> u64 {
        let (up, down) = (self.random.below(40_000), self.random.below(39_000));
        // Now and then the queue is gone.
        let gone = self.random.below(500) == 0;
        self.queue_bytes = if gone { 0 } else { (self.queue_bytes + up).saturating_sub(down) };
        self.queue_bytes
    }

    /// Whether the next frame is marked, and where in its random sequence the port is then.
    pub(crate) fn step(&mut self) -> (bool, u64) {
        let queue_bytes = self.next_queue();
        (self.model.marks(&mut self.port, queue_bytes), self.model.position(&self.port))
    }

    #[cfg(all(test, feature = "plugin"))]
    pub(crate) fn pfc_built(&mut self) {
        self.model.pfc_built();
    }

    /// The port's state but for where it is in its random sequence.
    fn state(&self) -> M::Port {
        let mut port = self.port;
        self.model.set_position(&mut port, 0);
        port
    }
}

impl<'m, M: Marker + Clone> MarkerKit<'m, M> {
    /// For a model in Rust.
    pub fn new(model: &'m M) -> Self {
        MarkerKit { model, missteps: None }
    }

    /// The model is foreign code, and this tells what its wrapper has put right.
    pub fn with_missteps(self, missteps: &'m Missteps<'m>) -> Self {
        MarkerKit { missteps: Some(missteps), ..self }
    }

    /// Tries everything.
    pub fn checks(&self) -> Vec<Check> {
        let [verdicts, state_size] = match self.missteps {
            Some(missteps) => [false, true].map(|overruns| self.missteps_of(missteps, overruns)),
            None => [IN_RUST; 2],
        };
        Vec::from([
            Check { name: "verdicts are yes or no", verdict: verdicts },
            Check { name: "keeps to its state", verdict: state_size },
            Check::new("equal inputs, equal outputs", self.determinism()),
            Check::new("all it remembers is in its state", self.save_and_restore()),
            Check::new("chance is told", self.chance_is_told()),
        ])
    }

    fn missteps_of(&self, missteps: &Missteps<'_>, overruns: bool) -> Verdict {
        let _ = missteps();
        let mut drive = Drive::new(self.model, 1);
        for step in 0..STEPS {
            let _ = drive.step();
            if let Some(misstep) = missteps().filter(|misstep| misstep.is_overrun == overruns) {
                let (input, expected) = (format!("queue_bytes {}", drive.queue_bytes), NOTHING_PUT_RIGHT.into());
                return Verdict::Failed(Difference { step, input, found: misstep.what, expected });
            }
        }
        Verdict::Passed
    }

    fn determinism(&self) -> Result<(), Difference> {
        let (mut one, mut other) = (Drive::new(self.model, 2), Drive::new(self.model, 2));
        (0..STEPS).try_for_each(|step| {
            let (found, expected) = (one.step(), other.step());
            same(step, &format!("queue_bytes {}", one.queue_bytes), &found, &expected)
        })
    }

    /// A port goes on from a copy of its state as it does by itself.
    fn save_and_restore(&self) -> Result<(), Difference> {
        const AHEAD: usize = 50;
        let mut drive = Drive::new(self.model, 3);
        for step in (0..STEPS).step_by(AHEAD) {
            let mut restored = drive.clone();
            let expected: Vec<(bool, u64)> = (0..AHEAD).map(|_| drive.step()).collect();
            for (ahead, expected) in expected.iter().enumerate() {
                let found = restored.step();
                same(step + ahead, &format!("queue_bytes {}", restored.queue_bytes), &found, expected)?;
            }
        }
        Ok(())
    }

    /// Where a port is in its random sequence matters only if it moves on in it.
    fn chance_is_told(&self) -> Result<(), Difference> {
        let mut drive = Drive::new(self.model, 4);
        (0..STEPS).try_for_each(|step| {
            let mut elsewhere = drive.clone();
            let (here, there) = (drive.model.position(&drive.port), drive.random.clone().below(1 << 40));
            elsewhere.model.set_position(&mut elsewhere.port, there);
            let ((found, found_at), (expected, expected_at)) = (elsewhere.step(), drive.step());
            if (found_at, expected_at) != (there, here) {
                return Ok(());
            }
            let input = format!("queue_bytes {}, at another number of the sequence", drive.queue_bytes);
            same(step, &input, &found, &expected)?;
            let (found, expected) = (elsewhere.state(), drive.state());
            same(step, &input, &Bytes(bytemuck::bytes_of(&found)), &Bytes(bytemuck::bytes_of(&expected)))
        })
    }
}
