//! Packets held back on purpose: a peer that acknowledges one of them lies (attack B8).
//!
//! An optimistic peer acknowledges data before it arrives, or although it was lost. So the sender sees no congestion, and floods the
//! path. An honest peer cannot tell a withheld packet from a lost one. It reports the loss, and the packet leaves then. Meanwhile no
//! acknowledgement beyond it can be true.

use farhaul_units::{Duration, Instant, Rng, SeqNo, SeqRange};

use crate::consts::SYN_INTERVAL;
use crate::estimate::PROBE_INTERVAL;
use crate::timer::Timer;

/// Packets between two withheld ones: a random number of this range, so that a peer cannot foresee them. Source: attack B8 of the
/// security design.
const LEAST_DISTANCE: u32 = 1 << 14;
const MOST_DISTANCE: u32 = 1 << 18;
/// The distance is at least so many times the packets in flight. So a packet is missing for a sixteenth of the time at most.
const WINDOWS: u32 = 16;
/// The same if the windows are too narrow to go on sending until the packet arrives, which costs one RTT. That is 0.4 % of the time.
const NARROW_WINDOWS: u32 = 256;
/// Packets that must wait behind a withheld one. They show the gap to the peer.
const FOLLOWING: u32 = 64;
/// False acknowledgements after which the peer is a liar. A single one may be forged, and must not end a connection (attack B2).
const MOST_LIES: u32 = 3;

/// The packet that is or was withheld, and the choice of the next one.
#[derive(Debug)]
pub(super) struct Withholding {
    rng: Rng,
    /// The next packet to withhold.
    due: SeqNo,
    /// The packet withheld last, from then until it is acknowledged.
    packet: Option<SeqNo>,
    /// It has left since.
    left: bool,
    /// It leaves now if the peer does not ask for it.
    release: Timer,
    /// Where the distances are counted from.
    counted_from: SeqNo,
    lies: u32,
}

/// The state of the sender before its next new packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    pub(super) next: SeqNo,
    /// Packets that wait to be sent, `next` among them.
    pub(super) waiting: u32,
    pub(super) in_flight: u32,
    /// The smaller one of the flow window and the congestion window, packets.
    pub(super) window: u32,
}

impl Withholding {
    /// For a connection whose first packet is `first`.
    pub(super) fn new(first: SeqNo, rng: Rng) -> Self {
        let mut new = Self {
            rng,
            due: first,
            packet: None,
            left: false,
            release: Timer::stopped(),
            counted_from: first,
            lies: 0,
        };
        new.choose(first, 0);
        new
    }

    /// Chooses the next packet to withhold.
    fn choose(&mut self, next: SeqNo, in_flight: u32) {
        self.counted_from = next;
        let distance = LEAST_DISTANCE + self.rng.below((MOST_DISTANCE - LEAST_DISTANCE).into()) as u32;
        self.set_due(distance.max(in_flight.saturating_mul(WINDOWS)));
    }

    fn set_due(&mut self, distance: u32) {
        // Sequence numbers are compared within half of their range.
        self.due = self.counted_from.plus(distance.min(1 << 29));
        // Probe pairs measure the path, and stay whole.
        if self.due.value() % PROBE_INTERVAL < 2 {
            self.due = self.due.plus(2);
        }
    }

    /// Whether to withhold `next`. The caller goes on with the packet after it.
    pub(super) fn takes(&mut self, situation: &Situation, now: Instant, round_trip: Duration) -> bool {
        let Situation { next, waiting, in_flight, window } = *situation;
        if next.is_before(self.due) || self.packet.is_some() {
            return false;
        }
        let is_narrow = window / 2 < in_flight;
        let narrow_due = in_flight.saturating_mul(NARROW_WINDOWS).min(1 << 29);
        if is_narrow && next.is_before(self.counted_from.plus(narrow_due)) {
            self.set_due(narrow_due);
            return false;
        }
        if waiting <= FOLLOWING || next.value() % PROBE_INTERVAL < 2 {
            return false;
        }
        self.packet = Some(next);
        self.left = false;
        // The report takes one RTT, and receivers may wait for another one, or for a timer.
        self.release.set(now + round_trip * 2 + SYN_INTERVAL * 2);
        true
    }

    /// How many of `packets` packets from `next` on may leave in one run before the next one to withhold.
    pub(super) fn cut(&self, next: SeqNo, packets: u32) -> u32 {
        match self.due.distance_from(next) {
            distance @ 1.. if self.packet.is_none() => packets.min(distance.unsigned_abs()),
            _ => packets,
        }
    }

    /// The packet that is withheld now. No acknowledgement beyond it is true.
    pub(super) fn held(&self) -> Option<SeqNo> {
        self.packet.filter(|_| !self.left)
    }

    /// Whether a report of loss names the packet that was withheld.
    pub(super) fn is_named_in(&self, range: SeqRange) -> bool {
        self.packet.is_some_and(|packet| range.contains(packet))
    }

    /// `packets` packets from `first` on leave again. Returns how many of them leave for the first time.
    pub(super) fn on_sent_again(&mut self, first: SeqNo, packets: u32) -> u32 {
        let held = self.held().is_some_and(|held| SeqRange::new(first, first.plus(packets - 1)).contains(held));
        if held {
            self.left = true;
            self.release.stop();
        }
        u32::from(held)
    }

    /// Everything before `seq` has arrived.
    pub(super) fn acknowledge(&mut self, seq: SeqNo, next: SeqNo, in_flight: u32) {
        if self.packet.is_some_and(|packet| packet.is_before(seq)) {
            self.packet = None;
            self.choose(next, in_flight);
        }
    }

    /// The peer acknowledged a packet that is withheld. Returns whether it is a liar.
    pub(super) fn on_lie(&mut self) -> bool {
        self.lies += 1;
        self.lies >= MOST_LIES
    }

    /// The packet to send now, because the peer did not ask for it.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Option<SeqNo> {
        if self.release.fires(now) { self.held() } else { None }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.release.deadline()
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, proptest};

    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(10);

    fn wide(next: SeqNo) -> Situation {
        Situation { next, waiting: 1 << 20, in_flight: 100, window: 1 << 20 }
    }

    /// The first packets withheld, each of which is acknowledged at once.
    fn withheld(seed: u64, situation: impl Fn(SeqNo) -> Situation) -> Vec<u32> {
        let mut withholding = Withholding::new(SeqNo::new(0), Rng::new(seed));
        let (mut next, mut packets) = (SeqNo::new(0), Vec::new());
        while packets.len() < 3 {
            next = next.plus(withholding.cut(next, 1 << 10));
            if withholding.takes(&situation(next), Instant::ZERO, ROUND_TRIP) {
                packets.push(next.value());
                assert_eq!(withholding.on_sent_again(next, 1), 1);
                withholding.acknowledge(next.next(), next, situation(next).in_flight);
            } else if situation(next).next == next {
                next = next.next();
            }
        }
        packets
    }

    proptest! {
        #[test]
        fn distances_are_random_within_their_range_and_no_packet_of_a_pair_is_withheld(seed: u64) {
            let packets = withheld(seed, wide);
            let distances = packets.iter().zip(std::iter::once(&0).chain(&packets)).map(|(packet, before)| packet - before);
            for (packet, distance) in packets.iter().zip(distances) {
                prop_assert!((LEAST_DISTANCE..=MOST_DISTANCE + 2).contains(&distance), "{distance}");
                prop_assert!(packet % PROBE_INTERVAL >= 2);
            }
        }
    }

    #[test]
    fn a_long_path_and_narrow_windows_lengthen_the_distance() {
        let long = withheld(1, |next| Situation { in_flight: 100_000, ..wide(next) });
        assert!(long[1] - long[0] >= 1_600_000, "{long:?}");
        let narrow = withheld(1, |next| Situation { in_flight: 8_000, window: 8_192, ..wide(next) });
        assert!(narrow[0] >= 2_048_000 && narrow[1] - narrow[0] >= 2_048_000, "{narrow:?}");
    }

    #[test]
    fn nothing_is_withheld_at_the_end_of_the_data() {
        let mut withholding = Withholding::new(SeqNo::new(0), Rng::new(1));
        let last = Situation { waiting: FOLLOWING, ..wide(SeqNo::new(MOST_DISTANCE + 5)) };
        assert!(!withholding.takes(&last, Instant::ZERO, ROUND_TRIP));
        assert!(withholding.takes(&wide(last.next), Instant::ZERO, ROUND_TRIP));
    }

    #[test]
    fn a_packet_that_the_peer_does_not_ask_for_leaves_after_two_round_trips() {
        let mut withholding = Withholding::new(SeqNo::new(0), Rng::new(1));
        let packet = SeqNo::new(MOST_DISTANCE + 5);
        assert!(withholding.takes(&wide(packet), Instant::ZERO, ROUND_TRIP));
        let release = withholding.deadline().unwrap();
        assert_eq!(release, Instant::ZERO + Duration::from_millis(40));
        assert_eq!(withholding.handle_timeout(release), Some(packet));
        assert_eq!((withholding.on_sent_again(packet.minus(1), 3), withholding.held()), (1, None));
        assert!(withholding.is_named_in(SeqRange::new(packet, packet)), "an echo of the report is known still");
    }
}
