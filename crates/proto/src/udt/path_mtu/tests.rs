//! Discovery on a path without data: probes, a limit for what arrives, a round trip.

use std::collections::VecDeque;

use super::*;

const SIZES: Sizes = Sizes { size: 1_500, base: 1_280, largest: 9_000, margin: 0 };
const ROUND_TRIP: Duration = Duration::from_millis(20);
const WAIT: Duration = Duration::from_millis(60);

struct Path {
    mtu: PathMtu,
    now: Instant,
    carries: u32,
    size: u32,
    replies: VecDeque<(Instant, u32, u32)>,
    probes: Vec<u32>,
}

impl Path {
    fn new(carries: u32) -> Self {
        let mtu = PathMtu::new(SIZES, Rng::new(3));
        let mut path =
            Self { mtu, now: Instant::ZERO, carries, size: SIZES.size, replies: VecDeque::new(), probes: Vec::new() };
        path.mtu.on_data(path.now, WAIT);
        path
    }

    fn run(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        loop {
            while let Some(probe) = self.mtu.poll() {
                self.probes.push(probe.size);
                if probe.size <= self.carries {
                    self.replies.push_back((self.now + ROUND_TRIP, probe.number, probe.size));
                }
            }
            let next = [self.mtu.deadline(), self.replies.front().map(|reply| reply.0)].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = next;
            while let Some((_, number, arrived)) = self.replies.pop_front_if(|reply| reply.0 <= next) {
                let change = self.mtu.on_reply(number, arrived, self.now, WAIT);
                self.apply(change);
            }
            let change = self.mtu.handle_timeout(self.now, WAIT, true);
            self.apply(change);
        }
        self.now = end;
    }

    fn apply(&mut self, change: Change) {
        if let Change::Raise(size) | Change::Fall(size) = change {
            self.size = size;
        }
    }

    fn stall(&mut self, carries: u32) {
        self.carries = carries;
        self.mtu.on_stall(self.now, WAIT);
    }
}

#[test]
fn nothing_is_sent_before_data() {
    let mut mtu = PathMtu::new(SIZES, Rng::new(3));
    mtu.on_stall(Instant::ZERO, WAIT);
    assert_eq!((mtu.poll(), mtu.deadline()), (None, None));
}

#[test]
fn a_jumbo_path_is_found_in_one_round_trip() {
    let mut path = Path::new(9_000);
    path.run(20);
    assert_eq!((path.size, &path.probes[..]), (9_000, &[1_500, 9_000][..]));
    path.run(29_000);
    assert_eq!(path.probes.len(), 2, "nothing is left to try");
    path.run(1_000);
    assert_eq!(path.probes[2..], [9_000], "the size in use is confirmed now and then");
}

#[test]
fn an_ethernet_path_keeps_its_size_and_is_tried_again_after_ten_minutes() {
    let mut path = Path::new(1_500);
    path.run(2_000);
    let tried = path.probes.len();
    assert_eq!((path.size, tried), (1_500, 1 + 5 * 3));
    path.run(597_000);
    assert!(path.probes[tried..].iter().all(|size| *size == 1_500), "{:?}", path.probes);
    path.carries = 9_000;
    path.run(3_000);
    assert_eq!(path.size, 9_000);
}

#[test]
fn a_black_hole_is_left_soon() {
    let mut path = Path::new(9_000);
    path.run(1_000);
    path.stall(1_500);
    path.run(4 * 30);
    assert_eq!(path.size, 1_280);
    path.run(20);
    assert_eq!(path.size, 1_500, "most paths carry it");
}

#[test]
fn a_path_narrower_than_the_first_size_is_noticed_and_used() {
    let mut path = Path::new(1_420);
    path.run(60 + 20 + 4 * 30 + 30);
    assert_eq!(path.size, 1_280);
    path.run(2_000);
    assert_eq!(path.size, 1_420);
}

#[test]
fn a_path_that_carries_nothing_changes_nothing() {
    let mut path = Path::new(9_000);
    path.run(1_000);
    path.stall(0);
    let before = path.probes.len();
    path.run(60_000);
    assert_eq!(path.size, 9_000);
    assert!(path.probes.len() - before < 2 * 100, "{}", path.probes.len());
    path.carries = 9_000;
    path.run(2_000);
    assert_eq!(path.size, 9_000);
}

#[test]
fn a_stall_for_another_reason_costs_one_pair_of_probes() {
    let mut path = Path::new(9_000);
    path.run(1_000);
    let before = path.probes.len();
    path.stall(9_000);
    path.run(1_000);
    assert_eq!((path.size, path.probes.len() - before), (9_000, 2));
}

#[test]
fn forged_replies_change_nothing_and_lost_probes_only_down_to_the_base() {
    let mut path = Path::new(1_500);
    for number in 0..10_000 {
        assert_eq!(path.mtu.on_reply(number, 9_000, path.now, WAIT), Change::None);
    }
    for _ in 0..10 {
        path.stall(1_280);
        path.run(1_000);
    }
    assert_eq!(path.size, 1_280);
    path.stall(600);
    path.run(10_000);
    assert_eq!(path.size, 1_280, "never below the base");
}

#[test]
fn a_reply_that_tells_another_length_is_none() {
    let mut path = Path::new(0);
    let probe = std::iter::from_fn(|| path.mtu.poll()).last().unwrap();
    assert_eq!(path.mtu.on_reply(probe.number, 1_500, path.now, WAIT), Change::None);
    assert_eq!(path.mtu.on_reply(probe.number, probe.size, path.now, WAIT), Change::Raise(9_000));
}

#[test]
fn a_reply_later_than_the_wait_counts() {
    let mut mtu = PathMtu::new(SIZES, Rng::new(3));
    mtu.on_data(Instant::ZERO, WAIT);
    let probe = std::iter::from_fn(|| mtu.poll()).last().unwrap();
    let late = Instant::ZERO + WAIT;
    mtu.handle_timeout(late, WAIT, true);
    assert_eq!(mtu.on_reply(probe.number, probe.size, late, WAIT), Change::Raise(9_000));
}
