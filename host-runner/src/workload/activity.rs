//! What a rank does with its time.

use crate::time_bins::TimeBins;
use wormhole_kernel::{SimTime, Span};

/// What a rank does at a moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Doing {
    /// It computes and no message from it or to it is under way.
    Computing,
    /// It computes while messages are under way: communication that costs no time.
    Overlapped,
    /// Messages are under way and it computes nothing: exposed communication.
    Exposed,
    /// Neither.
    Idle,
}

impl Doing {
    /// All of them, in order.
    pub const ALL: [Doing; 4] = [Doing::Computing, Doing::Overlapped, Doing::Exposed, Doing::Idle];

    /// As in tables.
    pub fn name(self) -> &'static str {
        match self {
            Doing::Computing => "computing",
            Doing::Overlapped => "overlapped",
            Doing::Exposed => "exposed",
            Doing::Idle => "idle",
        }
    }
}

/// The course of a rank: what it did when, by [`Doing::ALL`].
pub type Course = TimeBins<4>;

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
    fn doing(&self) -> Doing {
        match (self.computing > 0, self.communicating > 0) {
            (true, false) => Doing::Computing,
            (true, true) => Doing::Overlapped,
            (false, true) => Doing::Exposed,
            (false, false) => Doing::Idle,
        }
    }

    /// Time of a kind.
    pub fn time(&self, doing: Doing) -> Span {
        match doing {
            Doing::Computing => self.computed,
            Doing::Overlapped => self.overlapped,
            Doing::Exposed => self.exposed,
            Doing::Idle => self.idle,
        }
    }

    /// The times up to a moment.
    fn until(mut self, now: SimTime) -> Activity {
        let kind = match self.doing() {
            Doing::Computing => &mut self.computed,
            Doing::Overlapped => &mut self.overlapped,
            Doing::Exposed => &mut self.exposed,
            Doing::Idle => &mut self.idle,
        };
        *kind += now.since(self.since);
        self.since = now;
        self
    }

    /// All of it.
    pub fn total(&self) -> Span {
        self.computed + self.overlapped + self.exposed + self.idle
    }
}

/// Follows what a rank does, and keeps its course if that is asked for.
#[derive(Clone, Default)]
pub(super) struct Diary {
    activity: Activity,
    /// Since when it has done what it does now.
    since: SimTime,
    course: Option<Course>,
}

/// A time in which a rank did one thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// What it did.
    pub doing: Doing,
    /// From when.
    pub from: SimTime,
    /// To when.
    pub to: SimTime,
}

impl Diary {
    /// Of a rank that begins.
    pub(super) fn from(since: SimTime, keeps_course: bool) -> Diary {
        let activity = Activity { since, ..Activity::default() };
        Diary { activity, since, course: keeps_course.then(|| Course::from(since)) }
    }

    /// So many computations more. Gives the stretch that ends by that.
    pub(super) fn compute(&mut self, now: SimTime, by: i32) -> Option<Stretch> {
        self.change(now, |activity| activity.computing += by)
    }

    /// So many messages under way more. Gives the stretch that ends by that.
    pub(super) fn communicate(&mut self, now: SimTime, by: i32) -> Option<Stretch> {
        self.change(now, |activity| activity.communicating += by)
    }

    fn change(&mut self, now: SimTime, change: impl FnOnce(&mut Activity)) -> Option<Stretch> {
        self.pass(now);
        let stretch = self.stretch_until(now);
        let doing = self.activity.doing();
        change(&mut self.activity);
        if self.activity.doing() == doing {
            return None;
        }
        self.since = now;
        stretch
    }

    /// The stretch that has not ended yet, up to a moment; `None` if it has no length.
    pub(super) fn stretch_until(&self, to: SimTime) -> Option<Stretch> {
        (self.since < to).then(|| Stretch { doing: self.activity.doing(), from: self.since, to })
    }

    fn pass(&mut self, now: SimTime) {
        if let Some(course) = &mut self.course {
            course.add(self.activity.doing() as usize, self.activity.since, now);
        }
        self.activity = self.activity.until(now);
    }

    /// The times up to a moment.
    pub(super) fn until(&self, now: SimTime) -> Activity {
        self.activity.until(now)
    }

    /// The course up to a moment, if it is kept.
    pub(super) fn course_until(&self, now: SimTime) -> Option<Course> {
        let mut diary = self.course.is_some().then(|| self.clone())?;
        diary.pass(now);
        diary.course
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_apart_and_add_up() {
        let mut rank = Diary::from(SimTime(100), true);
        let mut stretches = vec![
            rank.compute(SimTime(110), 1),
            rank.communicate(SimTime(130), 2),
            rank.compute(SimTime(170), -1),
            rank.communicate(SimTime(200), -1),
            rank.communicate(SimTime(250), -1),
        ];
        stretches.push(rank.stretch_until(SimTime(251)));
        let times: Vec<(Doing, u64, u64)> = stretches.iter().flatten().map(|s| (s.doing, s.from.0, s.to.0)).collect();
        let want = [
            (Doing::Idle, 100, 110),
            (Doing::Computing, 110, 130),
            (Doing::Overlapped, 130, 170),
            (Doing::Exposed, 170, 250),
            (Doing::Idle, 250, 251),
        ];
        assert_eq!(times, want);
        let course = rank.course_until(SimTime(251)).expect("a course");
        let rank = rank.until(SimTime(251));
        let times = (rank.computed, rank.overlapped, rank.exposed, rank.idle);
        assert_eq!(times, (Span(20), Span(40), Span(80), Span(11)));
        assert_eq!(rank.total(), Span(151));
        assert_eq!(course.bins(), [Doing::ALL.map(|doing| rank.time(doing))], "all of it is in one bin");
    }
}
