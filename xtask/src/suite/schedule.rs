//! The order of tests, and how many run at once.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::clock::Idleness;
use crate::suite::Test;

/// Tests with the same limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Two processes each beside the reference library, whose connections run in real seconds. The longest lane is
    /// first, because it takes one test at a time.
    Interop,
    /// Real sockets on loopback. More of them at once would measure each other. They wait half of their time, so a third one
    /// runs once no other lane computes, and further ones while the processors are idle.
    Sockets,
    /// Everything else. It computes, so beside the other lanes it takes half of the processors.
    Free,
}

const LANES: [Lane; 3] = [Lane::Interop, Lane::Sockets, Lane::Free];

/// Most tests of sockets at once, on idle processors.
const MOST_SOCKETS: usize = 5;
/// Processors that are idle when one more begins: tests of sockets compute for 40 % of their time.
const IDLE: f64 = 0.5;
/// Time between two looks. A test that has begun counts in the next one.
const LOOK: Duration = Duration::from_secs(1);

impl Lane {
    /// How many of its tests run at once. `alone` is whether no other lane has tests.
    fn limit(self, alone: bool) -> usize {
        match self {
            Self::Interop => 1,
            Self::Sockets if alone => 3,
            Self::Sockets => 2,
            Self::Free if alone => usize::MAX,
            Self::Free => thread::available_parallelism().map_or(1, NonZero::get).div_ceil(2),
        }
    }
}

/// Tests that have not run.
#[derive(Debug)]
pub(super) struct Schedule<'a> {
    state: Mutex<ScheduleState<'a>>,
    /// A test has ended.
    ended: Condvar,
}

#[derive(Debug)]
struct ScheduleState<'a> {
    waiting: [VecDeque<Test<'a>>; LANES.len()],
    running: [usize; LANES.len()],
    /// `None` if the system does not tell.
    idleness: Option<Idleness>,
    /// The processors were idle at the last look, and nothing has begun for that.
    are_idle: bool,
}

/// A test that may run. Its place is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Turn<'s, 'a> {
    schedule: &'s Schedule<'a>,
    test: Test<'a>,
}

impl<'a> Schedule<'a> {
    pub(super) fn new(tests: Vec<Test<'a>>) -> Self {
        let mut state = ScheduleState {
            waiting: Default::default(),
            running: Default::default(),
            idleness: Idleness::start(),
            are_idle: false,
        };
        for test in tests {
            state.waiting[test.program.lane as usize].push_back(test);
        }
        Self { state: Mutex::new(state), ended: Condvar::new() }
    }

    /// The next test, as soon as its lane has a place. `None` if no test waits.
    pub(super) fn next(&self) -> Option<Turn<'_, 'a>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(test) = state.take() {
                return Some(Turn { schedule: self, test });
            }
            if state.waiting.iter().all(VecDeque::is_empty) {
                return None;
            }
            // A lane without a place has running tests, and the end of each notifies. Idle processors do not.
            state = self.ended.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
            if let Some(idle) = state.idleness.as_mut().and_then(|idleness| idleness.look(LOOK)) {
                state.are_idle = idle * thread::available_parallelism().map_or(1, NonZero::get) as f64 > IDLE;
            }
        }
    }
}

impl<'a> ScheduleState<'a> {
    /// Whether a lane has no test left, not even a running one.
    fn is_done(&self, lane: Lane) -> bool {
        self.waiting[lane as usize].is_empty() && self.running[lane as usize] == 0
    }

    fn take(&mut self) -> Option<Test<'a>> {
        let alone = |lane| LANES.into_iter().all(|other| other == lane || self.is_done(other));
        let waits = |lane: &Lane| !self.waiting[*lane as usize].is_empty();
        let has_place = |lane: &Lane| self.running[*lane as usize] < lane.limit(alone(*lane));
        let regular = LANES.into_iter().find(|lane| waits(lane) && has_place(lane));
        let further = || {
            let has_room = self.are_idle && self.running[Lane::Sockets as usize] < MOST_SOCKETS;
            Some(Lane::Sockets).filter(|lane| has_room && waits(lane))
        };
        let place = regular.or_else(further)? as usize;
        if regular.is_none() {
            self.are_idle = false;
        }
        self.running[place] += 1;
        self.waiting[place].pop_front()
    }
}

impl<'a> Turn<'_, 'a> {
    pub(super) fn test(&self) -> &Test<'a> {
        &self.test
    }
}

impl Drop for Turn<'_, '_> {
    fn drop(&mut self) {
        let mut state = self.schedule.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.running[self.test.program.lane as usize] -= 1;
        drop(state);
        self.schedule.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::suite::program::Program;

    fn program(lane: Lane) -> Program {
        Program {
            label: String::new(),
            executable: PathBuf::new(),
            folder: PathBuf::new(),
            lane,
            makes_networks: false,
        }
    }

    #[test]
    fn a_full_lane_lets_others_pass() {
        let (interop, free) = (program(Lane::Interop), program(Lane::Free));
        let test = |program, name: &str| Test { program, name: name.to_owned() };
        let schedule = Schedule::new(vec![test(&free, "free"), test(&interop, "one"), test(&interop, "two")]);
        let name = |turn: &Option<Turn<'_, '_>>| turn.as_ref().map(|turn| turn.test().name.clone()).unwrap();
        let one = schedule.next();
        assert_eq!(name(&one), "one");
        let free = schedule.next();
        assert_eq!(name(&free), "free", "the second of one at a time waits");
        drop(one);
        let two = schedule.next();
        assert_eq!(name(&two), "two");
        assert!(schedule.next().is_none(), "the last turn is over for a schedule without tests");
    }

    #[test]
    fn idle_processors_get_one_more_test_of_sockets_a_look() {
        let sockets = program(Lane::Sockets);
        let free = program(Lane::Free);
        let test = |program| Test { program, name: String::new() };
        let schedule = Schedule::new((0..9).map(|_| test(&sockets)).chain([test(&free)]).collect());
        let turn = || schedule.state.lock().unwrap().take().is_some();
        let begun = || std::iter::repeat_with(turn).take_while(|begun| *begun).count();
        assert_eq!(begun(), 3, "two of sockets, and the other one");
        for _ in 0..3 {
            schedule.state.lock().unwrap().are_idle = true;
            assert_eq!(begun(), 1);
        }
        schedule.state.lock().unwrap().are_idle = true;
        assert_eq!(begun(), 0, "they would measure each other");
    }

    #[test]
    fn what_computes_takes_half_of_the_processors_beside_others_and_all_of_them_alone() {
        let half = thread::available_parallelism().unwrap().get().div_ceil(2);
        let (sockets, free) = (program(Lane::Sockets), program(Lane::Free));
        let test = |program| Test { program, name: String::new() };
        let tests = (0..half + 2).map(|_| test(&free)).chain([test(&sockets)]).collect();
        let schedule = Schedule::new(tests);
        let first = schedule.next();
        let computing: Vec<_> = (0..half).map(|_| schedule.next()).collect();
        assert!(computing.iter().all(Option::is_some));
        assert!(schedule.state.lock().unwrap().take().is_none(), "the rest waits for the end of the other lane");
        drop(first);
        assert!(schedule.next().is_some());
    }
}
