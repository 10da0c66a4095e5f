//! Controlled delay (RFC 8289). Drops packets while even the shortest wait of an interval is too long, and faster the
//! longer that lasts.
//!
//! A packet's *sojourn time* is its wait when it leaves. The queue only absorbs bursts, and drops nothing, as long as
//! one packet per interval leaves within the target. The same holds if a packet leaves at most one full packet behind.
//! After a whole interval above the target, one packet is dropped at the head, and then
//!
//! ```text
//! the n-th drop of a dropping state comes  interval/√n  after the one before    (1)
//! ```
//!
//! until a packet leaves within the target. A dropping state that begins soon after another continues at about its drop
//! rate. Soon means less than 16 intervals after the next drop of the other would have been due.
//!
//! | RFC 8289 §5 | here | |
//! | --- | --- | --- |
//! | TARGET, INTERVAL | `CoDelSpec::{target, interval}` | |
//! | first_above_time | `above_until` | the instant at which the sojourn time has been above the target for an interval |
//! | drop_next, count, lastcount | `next_drop`, `count`, `count_at_start` | |
//! | dropping | `is_dropping` | |
//! | maxpacket | `CoDelSpec::packet_size` | bytes |
//!
//! Departures: none. The square root is that of IEEE 754, the same on every machine.

use farhaul_units::{Duration, Instant};

use super::backlog::{Backlog, FULL_PACKET, Limit, Queue, QueueTallies};
use crate::packet::WireLen;
use crate::schedule::nanos;

/// A dropping state within this many intervals of the last one's end continues it (RFC 8289 §5.6).
const MEMORY_INTERVALS: u64 = 16;

/// The parameters of [`CoDel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelSpec {
    /// The acceptable sojourn time: 5 ms, 5 % of the interval (RFC 8289 §4.3).
    pub target: Duration,
    /// The length of a long RTT, because senders take one RTT to respond: 100 ms (RFC 8289 §4.2).
    pub interval: Duration,
    /// A backlog of at most this many bytes is never too long: one full packet.
    pub packet_size: u32,
}

impl Default for CoDelSpec {
    fn default() -> Self {
        let (target, interval) = (Duration::from_millis(5), Duration::from_millis(100));
        Self { target, interval, packet_size: FULL_PACKET }
    }
}

/// A queue with controlled delay.
#[derive(Debug)]
pub struct CoDel<P> {
    spec: CoDelSpec,
    backlog: Backlog<Stamped<P>>,
    above_until: Option<Instant>,
    next_drop: Instant,
    count: u64,
    count_at_start: u64,
    is_dropping: bool,
}

/// A packet with its arrival time.
#[derive(Debug)]
struct Stamped<P> {
    arrived: Instant,
    packet: P,
}

impl<P: WireLen> WireLen for Stamped<P> {
    fn wire_len(&self) -> u32 {
        self.packet.wire_len()
    }
}

/// The packet taken from the head of the queue.
struct Head<P> {
    packet: Stamped<P>,
    /// The sojourn time has been above the target for an interval.
    may_drop: bool,
}

impl<P: WireLen> CoDel<P> {
    /// Room for `limit`. A packet that arrives at a full queue is dropped.
    pub fn new(spec: CoDelSpec, limit: Limit) -> Self {
        Self {
            spec,
            backlog: Backlog::new(limit),
            above_until: None,
            next_drop: Instant::ZERO,
            count: 0,
            count_at_start: 0,
            is_dropping: false,
        }
    }

    /// RFC 8289 §5.4, `dodequeue`: the next packet, and whether it may be dropped.
    fn take(&mut self, now: Instant) -> Option<Head<P>> {
        let Some(packet) = self.backlog.pop() else {
            self.above_until = None;
            return None;
        };
        let sojourn = now - packet.arrived;
        let is_short = self.backlog.tallies.waiting.bytes <= u64::from(self.spec.packet_size);
        let mut may_drop = false;
        if sojourn < self.spec.target || is_short {
            self.above_until = None;
        } else {
            may_drop = self.above_until.is_some_and(|until| now >= until);
            self.above_until.get_or_insert(now + self.spec.interval);
        }
        Some(Head { packet, may_drop })
    }

    /// Equation (1).
    fn after(&self, drop: Instant) -> Instant {
        let gap = nanos(self.spec.interval) as f64 / (self.count.max(1) as f64).sqrt();
        drop + Duration::from_nanos(gap as u64)
    }

    /// In a dropping state, drops the packets due by `now`. The first packet within the target ends the state.
    fn go_on_dropping(&mut self, now: Instant, mut head: Head<P>) -> Option<Head<P>> {
        self.is_dropping = head.may_drop;
        while self.is_dropping && now >= self.next_drop {
            self.backlog.drop_early(head.packet);
            self.count += 1;
            let next = self.take(now);
            self.is_dropping = next.as_ref().is_some_and(|next| next.may_drop);
            head = next?;
            if self.is_dropping {
                self.next_drop = self.after(self.next_drop);
            }
        }
        Some(head)
    }

    fn begin_dropping(&mut self, now: Instant, head: Head<P>) -> Option<Head<P>> {
        self.backlog.drop_early(head.packet);
        let next = self.take(now);
        self.is_dropping = true;
        let drops = self.count - self.count_at_start;
        let is_recent = nanos(now - self.next_drop) < nanos(self.spec.interval).saturating_mul(MEMORY_INTERVALS);
        self.count = if drops > 1 && is_recent { drops } else { 1 };
        self.count_at_start = self.count;
        self.next_drop = self.after(now);
        next
    }
}

impl<P: WireLen> Queue<P> for CoDel<P> {
    fn enqueue(&mut self, now: Instant, packet: P) {
        let packet = Stamped { arrived: now, packet };
        if self.backlog.has_room_for(&packet) {
            self.backlog.push(packet);
        } else {
            self.backlog.drop(packet);
        }
    }

    fn dequeue(&mut self, now: Instant) -> Option<P> {
        let Some(head) = self.take(now) else {
            self.is_dropping = false;
            return None;
        };
        let head = match (self.is_dropping, head.may_drop) {
            (true, _) => self.go_on_dropping(now, head),
            (false, true) => self.begin_dropping(now, head),
            (false, false) => Some(head),
        };
        head.map(|head| head.packet.packet)
    }

    fn tallies(&self) -> &QueueTallies {
        &self.backlog.tallies
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Numbered;

    const MILLISECOND: u64 = 1_000_000;
    /// Time between departures.
    const STEP: u64 = 10_000;

    /// Refills a queue to `packets` packets before every departure and returns the drop times. Each new packet has
    /// already waited for `sojourn`, and then waits for the packets in front of it.
    fn drops(queue: &mut CoDel<Numbered>, sojourn: u64, packets: u64, from: u64, until: u64) -> Vec<u64> {
        let mut drops = Vec::new();
        while queue.backlog.pop().is_some() {}
        for now in (from..until).step_by(STEP as usize) {
            while queue.tallies().waiting.packets < packets {
                queue.enqueue(Instant::from_nanos(now - sojourn), Numbered::new(0));
            }
            let before = queue.tallies().dropped.packets;
            queue.dequeue(Instant::from_nanos(now));
            drops.extend((before..queue.tallies().dropped.packets).map(|_| now));
        }
        drops
    }

    fn codel() -> CoDel<Numbered> {
        CoDel::new(CoDelSpec::default(), Limit::of_packets(1_000))
    }

    #[test]
    fn the_nth_drop_comes_an_interval_over_the_square_root_of_n_after_the_one_before() {
        let began = 10 * MILLISECOND;
        let drops = drops(&mut codel(), 6 * MILLISECOND, 50, began, 4_000 * MILLISECOND);
        let mut expected = (began + 100 * MILLISECOND) as f64;
        assert!(drops.len() > 300, "{}", drops.len());
        for (n, drop) in (1..).zip(&drops) {
            let lateness = *drop as f64 - expected;
            assert!((-1.0 - f64::from(n)..=STEP as f64).contains(&lateness), "drop {n}: {lateness} ns late");
            expected += (100 * MILLISECOND) as f64 / f64::from(n).sqrt();
        }
    }

    #[test]
    fn nothing_is_dropped_below_the_target_nor_for_a_single_waiting_packet() {
        let until = 2_000 * MILLISECOND;
        assert_eq!(drops(&mut codel(), 4 * MILLISECOND, 50, 10 * MILLISECOND, until), []);
        // Two packets: one leaves and one full packet stays.
        assert_eq!(drops(&mut codel(), 500 * MILLISECOND, 2, 600 * MILLISECOND, until), []);
        assert_ne!(drops(&mut codel(), 500 * MILLISECOND, 3, 600 * MILLISECOND, until), []);
    }

    #[test]
    fn one_packet_below_the_target_ends_the_dropping_state() {
        let mut queue = codel();
        let first = drops(&mut queue, 6 * MILLISECOND, 50, 10 * MILLISECOND, 300 * MILLISECOND);
        assert!(first.len() >= 2 && queue.is_dropping);
        assert_eq!(drops(&mut queue, 0, 50, 300 * MILLISECOND, 301 * MILLISECOND), []);
        assert!(!queue.is_dropping);
        let second = drops(&mut queue, 6 * MILLISECOND, 50, 301 * MILLISECOND, 500 * MILLISECOND);
        assert_eq!(second[0], 401 * MILLISECOND);
    }

    #[test]
    fn a_dropping_state_soon_after_another_keeps_its_drop_rate() {
        let interval = 100 * MILLISECOND;
        for (pause, resumes) in [(interval, true), (20 * interval, false)] {
            let mut queue = codel();
            let first = drops(&mut queue, 6 * MILLISECOND, 50, 10 * MILLISECOND, 1_500 * MILLISECOND);
            let count = first.len() as u64;
            assert!(count > 50);
            let again = 1_500 * MILLISECOND + pause;
            drops(&mut queue, 0, 50, 1_500 * MILLISECOND, again);
            let second = drops(&mut queue, 6 * MILLISECOND, 50, again, again + 3 * interval);
            let gap = second[1] - second[0];
            // The state began with count 1, so it had count - 1 drops at its end.
            let pace = (interval as f64 / ((count - 1) as f64).sqrt()) as u64;
            let expected = if resumes { pace } else { interval };
            assert!((expected..=expected + 2 * STEP).contains(&gap), "{gap} for {expected}");
        }
    }

    #[test]
    fn a_drop_by_a_full_queue_is_not_an_early_drop() {
        let mut queue = CoDel::new(CoDelSpec::default(), Limit::of_packets(3));
        (0..5).for_each(|number| queue.enqueue(Instant::ZERO, Numbered::new(number)));
        assert_eq!((queue.tallies().dropped.packets, queue.tallies().dropped_early.packets), (2, 0));
    }

    #[test]
    fn an_interval_of_zero_terminates() {
        let spec = CoDelSpec { interval: Duration::ZERO, target: Duration::ZERO, packet_size: 0 };
        let mut queue = CoDel::new(spec, Limit::of_packets(100));
        (0..100).for_each(|number| queue.enqueue(Instant::ZERO, Numbered::new(number)));
        let later = Instant::from_nanos(1);
        let left = core::iter::from_fn(|| queue.dequeue(later)).count() as u64;
        assert_eq!(left + queue.tallies().dropped.packets, 100);
    }
}
