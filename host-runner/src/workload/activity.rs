//! What a rank does with its time.

use wormhole_kernel::{SimTime, Span};

/// Times of a rank. They add up to the time since it began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Activity {
    since: SimTime,
    computing: i32,
    communicating: i32,
    /// It computes and no message from it or to it is under way.
    pub computed: Span,
    /// It computes while messages are under way: communication that costs no time.
    pub overlapped: Span,
    /// Messages are under way and it computes nothing: exposed communication.
    pub exposed: Span,
    /// Neither.
    pub idle: Span,
}

impl Activity {
    /// A rank that begins.
    pub(super) fn from(since: SimTime) -> Activity {
        Activity { since, ..Activity::default() }
    }

    /// So many computations more.
    pub(super) fn compute(&mut self, now: SimTime, by: i32) {
        *self = self.until(now);
        self.computing += by;
    }

    /// So many messages under way more.
    pub(super) fn communicate(&mut self, now: SimTime, by: i32) {
        *self = self.until(now);
        self.communicating += by;
    }

    /// The times up to a moment.
    pub(super) fn until(mut self, now: SimTime) -> Activity {
        let time = now.since(self.since);
        let kind = match (self.computing > 0, self.communicating > 0) {
            (true, false) => &mut self.computed,
            (true, true) => &mut self.overlapped,
            (false, true) => &mut self.exposed,
            (false, false) => &mut self.idle,
        };
        *kind += time;
        self.since = now;
        self
    }

    /// All of it.
    pub fn total(&self) -> Span {
        self.computed + self.overlapped + self.exposed + self.idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_apart_and_add_up() {
        let mut rank = Activity::from(SimTime(100));
        rank.compute(SimTime(110), 1);
        rank.communicate(SimTime(130), 2);
        rank.compute(SimTime(170), -1);
        rank.communicate(SimTime(200), -1);
        rank.communicate(SimTime(250), -1);
        let rank = rank.until(SimTime(251));
        let times = (rank.computed, rank.overlapped, rank.exposed, rank.idle);
        assert_eq!(times, (Span(20), Span(40), Span(80), Span(11)));
        assert_eq!(rank.total(), Span(151));
    }
}
