//! Pipeline schedules: in which order a stage makes the passes of its micro-batches.

/// How forward and backward passes follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schedule {
    /// After a warm-up, forward and backward passes take turns (PipeDream-Flush; Narayanan et al. 2021, figure 4 top).
    OneFOneB,
    /// All forward passes, then all backward passes, both in the order of micro-batches (Huang et al. 2019).
    GPipe,
    /// 1F1B in which each rank holds several chunks of the model (Narayanan et al. 2021, figure 4 bottom): chunk `c` of
    /// stage `s` is part `c * stages + s` of the model.
    Interleaved {
        /// Chunks of each rank.
        virtual_stages: u32,
    },
}

impl Schedule {
    /// Chunks of the model that each rank holds.
    pub fn chunks(self) -> u32 {
        match self {
            Schedule::OneFOneB | Schedule::GPipe => 1,
            Schedule::Interleaved { virtual_stages } => virtual_stages,
        }
    }
}

/// Which way a pass goes through the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// One micro-batch goes through one chunk of one stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pass {
    pub direction: Direction,
    pub chunk: u32,
    pub micro_batch: u32,
}

/// The passes of an iteration on all stages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passes {
    schedule: Schedule,
    stages: u32,
    micro_batches: u32,
}

impl Passes {
    pub(super) fn new(schedule: Schedule, stages: u32, micro_batches: u32) -> Passes {
        Passes { schedule, stages, micro_batches }
    }

    /// How many passes a stage makes.
    pub(super) fn count(&self) -> u32 {
        2 * self.one_way()
    }

    /// The `index`-th pass of a stage.
    pub(super) fn pass(&self, stage: u32, index: u32) -> Pass {
        let (one_way, warm_up) = (self.one_way(), self.warm_up(stage));
        let cool_down = 2 * one_way - warm_up;
        if index < warm_up {
            self.nth(Direction::Forward, index)
        } else if index >= cool_down {
            self.nth(Direction::Backward, index - one_way)
        } else {
            let (turn, backward) = ((index - warm_up) / 2, (index - warm_up) % 2 == 1);
            if backward { self.nth(Direction::Backward, turn) } else { self.nth(Direction::Forward, warm_up + turn) }
        }
    }

    /// The stage that a pass hands its result to, and the pass it is handed to; `None` at the ends of the model.
    pub(super) fn next(&self, stage: u32, pass: Pass) -> Option<(u32, Pass)> {
        let (last_stage, last_chunk) = (self.stages - 1, self.schedule.chunks() - 1);
        let (stage, chunk) = match pass.direction {
            Direction::Forward if stage < last_stage => (stage + 1, pass.chunk),
            Direction::Forward if pass.chunk < last_chunk => (0, pass.chunk + 1),
            Direction::Backward if stage > 0 => (stage - 1, pass.chunk),
            Direction::Backward if pass.chunk > 0 => (last_stage, pass.chunk - 1),
            _ => return None,
        };
        Some((stage, Pass { chunk, ..pass }))
    }

    /// The stage that a pass gets its input from; `None` at the ends of the model.
    pub(super) fn source(&self, stage: u32, pass: Pass) -> Option<u32> {
        let direction = match pass.direction {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        };
        self.next(stage, Pass { direction, ..pass }).map(|(stage, _)| stage)
    }

    /// A number that no other pass of its stage has.
    pub(super) fn tag(&self, pass: Pass) -> u64 {
        let way = u64::from(self.schedule.chunks()) * pass.direction as u64 + u64::from(pass.chunk);
        way * u64::from(self.micro_batches) + u64::from(pass.micro_batch)
    }

    fn one_way(&self) -> u32 {
        self.schedule.chunks() * self.micro_batches
    }

    /// How many forward passes come before the first that is followed by a backward pass.
    fn warm_up(&self, stage: u32) -> u32 {
        let later = self.stages - 1 - stage;
        let passes = match self.schedule {
            Schedule::OneFOneB => later,
            Schedule::GPipe => self.micro_batches,
            Schedule::Interleaved { virtual_stages } => 2 * later + (virtual_stages - 1) * self.stages,
        };
        passes.min(self.one_way())
    }

    /// The `index`-th pass of a direction: as many micro-batches as there are stages go through a chunk before the
    /// next chunk has its turn.
    fn nth(&self, direction: Direction, index: u32) -> Pass {
        let chunks = self.schedule.chunks();
        let (round, place) = (index / (self.stages * chunks), index % (self.stages * chunks));
        let chunk = match direction {
            Direction::Forward => place / self.stages,
            Direction::Backward => chunks - 1 - place / self.stages,
        };
        Pass { direction, chunk, micro_batch: round * self.stages + place % self.stages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes as `F0.1`: direction, chunk, micro-batch.
    fn written(passes: Passes, stage: u32) -> String {
        let name = |pass: Pass| {
            let way = if pass.direction == Direction::Forward { 'F' } else { 'B' };
            format!("{way}{}.{}", pass.chunk, pass.micro_batch)
        };
        (0..passes.count()).map(|index| name(passes.pass(stage, index))).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn one_f_one_b_warms_up_takes_turns_and_cools_down() {
        let passes = Passes::new(Schedule::OneFOneB, 3, 3);
        assert_eq!(written(passes, 0), "F0.0 F0.1 F0.2 B0.0 B0.1 B0.2");
        assert_eq!(written(passes, 1), "F0.0 F0.1 B0.0 F0.2 B0.1 B0.2");
        assert_eq!(written(passes, 2), "F0.0 B0.0 F0.1 B0.1 F0.2 B0.2");
        assert_eq!(written(Passes::new(Schedule::OneFOneB, 3, 1), 0), "F0.0 B0.0");
    }

    #[test]
    fn gpipe_goes_forward_then_backward() {
        assert_eq!(written(Passes::new(Schedule::GPipe, 3, 2), 1), "F0.0 F0.1 B0.0 B0.1");
    }

    #[test]
    fn interleaved_chunks_take_turns() {
        let passes = Passes::new(Schedule::Interleaved { virtual_stages: 2 }, 2, 4);
        let stage_1 = "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 F0.2 B0.0 F0.3 B0.1 F1.2 B1.2 F1.3 B1.3 B0.2 B0.3";
        assert_eq!(written(passes, 1), stage_1);
        assert!(written(passes, 0).starts_with("F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 F0.3 B1.1 F1.2 B0.0"));
    }

    #[test]
    fn results_wrap_from_the_last_stage_to_the_next_chunk() {
        let passes = Passes::new(Schedule::Interleaved { virtual_stages: 2 }, 2, 4);
        let pass = |direction, chunk| Pass { direction, chunk, micro_batch: 3 };
        let (forward, backward) = (|chunk| pass(Direction::Forward, chunk), |chunk| pass(Direction::Backward, chunk));
        assert_eq!(passes.next(0, forward(0)), Some((1, forward(0))));
        assert_eq!(passes.next(1, forward(0)), Some((0, forward(1))));
        assert_eq!(passes.next(1, forward(1)), None);
        assert_eq!(passes.next(0, backward(1)), Some((1, backward(0))));
        assert_eq!(passes.next(0, backward(0)), None);
        assert_eq!((passes.source(0, forward(0)), passes.source(0, forward(1))), (None, Some(1)));
        assert_eq!((passes.source(1, backward(1)), passes.source(1, backward(0))), (None, Some(0)));
    }
}
