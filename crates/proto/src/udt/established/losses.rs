//! Loss reports between the wire and the controller: bounds on reading them, and merging of close ones.

use farhaul_cc::LostFlight;
use farhaul_units::{Duration, Instant, SeqRange};

use crate::consts::SYN_INTERVAL;
use crate::timer::Timer;

/// Reports within this time after an event for the controller form the next event together.
///
/// libudt sends a packet for each gap, so one queue overflow causes dozens. Source: attack B5 of the security design.
const MERGE_TIME: Duration = Duration::from_millis(2);
/// Most separate ranges, as many as fit in one packet. Beyond that, the last range extends over all that follow.
const MAX_RANGES: usize = 364;
/// Reports are read up to this many times the packets in flight per RTT. An honest receiver names each packet once per
/// RTT. Duplication on the path, or a shrinking flight, raises that.
const MAX_READINGS: u64 = 4;
/// Packets that may be named per RTT even if few are in flight.
const MIN_READINGS: u64 = 1024;

/// Losses not yet passed to the controller, and the budget for reading reports.
///
/// The sender's bitmap holds lost packets from the moment of the report, so nothing waits and nothing is discarded.
#[derive(Debug, Default)]
pub(super) struct Losses {
    ranges: Vec<SeqRange>,
    newly_lost: u32,
    /// The state in which new losses had left.
    flights: Vec<(SeqRange, LostFlight)>,
    timer: Timer,
    /// Reports are gathered until this time.
    gather_until: Instant,
    /// End of the RTT in which readings are counted, and the packets read in it.
    round_end: Instant,
    readings: u64,
}

/// Losses for one event.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) ranges: Vec<SeqRange>,
    pub(super) newly_lost: u32,
    pub(super) flights: Vec<LostFlight>,
}

impl Losses {
    pub(super) fn new(now: Instant) -> Self {
        Self { gather_until: now, round_end: now, ..Self::default() }
    }

    /// Whether ranges that name `packets` may be read, with `in_flight` packets outstanding. Counts them as read.
    ///
    /// The RTT is the peer's claim, so a SYN interval is its lower bound (attack B9).
    pub(super) fn may_read(&mut self, packets: u32, in_flight: u32, now: Instant, round_trip: Duration) -> bool {
        if now >= self.round_end {
            self.round_end = now + round_trip.max(SYN_INTERVAL);
            self.readings = 0;
        }
        self.readings += u64::from(packets);
        self.readings <= (u64::from(in_flight) * MAX_READINGS).max(MIN_READINGS)
    }

    /// The peer reported `range`, with `newly_lost` packets that were not reported before.
    pub(super) fn add(&mut self, range: SeqRange, newly_lost: u32, flight: Option<LostFlight>) {
        self.newly_lost += newly_lost;
        match flight {
            Some(flight) if self.flights.len() < MAX_RANGES => self.flights.push((range, flight)),
            _ => {}
        }
        if self.ranges.len() < MAX_RANGES {
            self.ranges.push(range);
        } else if let Some(last) = self.ranges.last_mut() {
            last.first = last.first.earlier(range.first);
            last.last = last.last.later(range.last);
        }
    }

    /// The losses for an event now, if it is time. The first report is due at once, later ones within the merge time
    /// together.
    pub(super) fn take(&mut self, in_flight: Option<SeqRange>, now: Instant) -> Option<Told> {
        if self.ranges.is_empty() {
            return None;
        }
        if now < self.gather_until {
            self.timer.set(self.gather_until);
            return None;
        }
        self.timer.stop();
        self.gather_until = now + MERGE_TIME;
        let newly_lost = std::mem::take(&mut self.newly_lost);
        let mut ranges = std::mem::take(&mut self.ranges);
        // Packets acknowledged meanwhile were late, not lost.
        ranges.retain_mut(|range| match in_flight.and_then(|flight| range.clip(flight)) {
            Some(clipped) => {
                *range = clipped;
                true
            }
            None => false,
        });
        if ranges.is_empty() {
            self.ranges = ranges;
            self.flights.clear();
            return None;
        }
        let still = |range: SeqRange| in_flight.is_some_and(|flight| range.clip(flight).is_some());
        let flights = self.flights.drain(..).filter(|(range, _)| still(*range)).map(|(_, flight)| flight).collect();
        Some(Told { ranges, newly_lost, flights })
    }

    /// Returns the memory of an event for reuse.
    pub(super) fn give_back(&mut self, mut told: Told) {
        told.ranges.clear();
        self.ranges = told.ranges;
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.timer.deadline()
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::SeqNo;

    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    fn range(first: u32, last: u32) -> SeqRange {
        SeqRange::new(SeqNo::new(first), SeqNo::new(last))
    }

    const FLIGHT: Option<SeqRange> = Some(SeqRange { first: SeqNo::new(10), last: SeqNo::new(9_999) });

    fn report(losses: &mut Losses, range: SeqRange, micros: u64) -> Option<(Vec<SeqRange>, u32)> {
        losses.add(range, range.len(), None);
        told(losses, micros)
    }

    fn told(losses: &mut Losses, micros: u64) -> Option<(Vec<SeqRange>, u32)> {
        losses.take(FLIGHT, at(micros)).map(|told| (told.ranges, told.newly_lost))
    }

    #[test]
    fn the_first_report_is_passed_on_at_once_and_those_soon_after_together() {
        let mut losses = Losses::new(Instant::ZERO);
        assert_eq!(report(&mut losses, range(20, 21), 0), Some((vec![range(20, 21)], 2)));
        assert_eq!(report(&mut losses, range(30, 30), 500), None);
        assert_eq!(report(&mut losses, range(40, 44), 1_999), None);
        assert_eq!(losses.deadline(), Some(at(2_000)));
        assert_eq!(told(&mut losses, 2_000), Some((vec![range(30, 30), range(40, 44)], 6)));
        assert_eq!((told(&mut losses, 9_000), losses.deadline()), (None, None));
        assert_eq!(report(&mut losses, range(50, 50), 9_000), Some((vec![range(50, 50)], 1)));
    }

    #[test]
    fn packets_acknowledged_meanwhile_are_not_passed_on() {
        let mut losses = Losses::new(Instant::ZERO);
        report(&mut losses, range(20, 21), 0);
        report(&mut losses, range(3, 5), 500);
        assert_eq!(told(&mut losses, 2_000), None);
        assert_eq!(report(&mut losses, range(60, 60), 3_000), None);
        report(&mut losses, range(8, 11), 3_100);
        assert_eq!(told(&mut losses, 4_000), Some((vec![range(60, 60), range(10, 11)], 5)));
    }

    #[test]
    fn however_many_ranges_there_are_they_take_the_memory_of_one_packet() {
        let mut losses = Losses::new(Instant::ZERO);
        report(&mut losses, range(20, 20), 0);
        for i in 1..4_000 {
            report(&mut losses, range(20 + 2 * i, 20 + 2 * i), 1);
        }
        let (ranges, newly_lost) = told(&mut losses, 2_000).unwrap();
        assert_eq!((ranges.len(), newly_lost, ranges[MAX_RANGES - 1].last.value()), (MAX_RANGES, 3_999, 8_018));
    }

    #[test]
    fn a_round_trip_of_reports_is_read_and_a_flood_of_them_is_not() {
        let mut losses = Losses::new(Instant::ZERO);
        let mut reads = |packets, micros| losses.may_read(packets, 10_000, at(micros), Duration::from_micros(1));
        assert!((0..40).all(|_| reads(1_000, 0)));
        assert!(!reads(1, 9_999));
        assert!(reads(1, 10_000));
    }
}
