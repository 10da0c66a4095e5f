//! Retransmissions: packets that the peer reported lost, and packets that must be lost because progress stopped.

use delegate::delegate;
use farhaul_units::{Duration, Instant, SeqNo, SeqRange};
use farhaul_wire::udt4::Timestamp;

use crate::buffer::SendBuffer;
use crate::loss::SendList;
use crate::timer::Timer;
use crate::transport::earliest;

/// Shortest time without progress before the oldest packet is retransmitted. It exceeds the 100 ms after which an idle
/// libudt checks its acknowledgement timer.
pub(super) const MIN_RETRANSMISSION_TIMEOUT: Duration = Duration::from_millis(120);
/// That time doubles with each expiration in a row, at most this often.
const MAX_DOUBLINGS: u32 = 5;
/// Shortest time between two retransmissions of a packet. It is half of the shortest interval at which losses are
/// reported again, so that an honest report never counts as an echo.
const MIN_ECHO: Duration = Duration::from_millis(5);
/// Packets of the loss list examined for one that may leave. Those retransmitted within the last RTT wait (attack B6).
const MAX_LOOK_AHEAD: u32 = 64;

/// Retransmissions that are due, and the timers that find more of them.
#[derive(Debug)]
pub(super) struct Repairs {
    lost: SendList,
    /// Time without progress until the oldest packet is retransmitted.
    retransmission: Timer,
    /// Expirations of that timer in a row, and the last of them.
    stalls: u32,
    stalled_at: Instant,
    /// When a reported packet may be retransmitted once more.
    echo: Timer,
    /// All listed packets wait for `echo` or for the window.
    all_wait: bool,
    /// Set while a packet is missing that the peer reported: whether it may have been late only.
    reported: Option<Cause>,
}

/// Why reported packets were missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// All of them arrived before their retransmissions could have. They were late, and the report was spurious (RFC
    /// 4015).
    Late,
    /// At least one may have arrived only as a retransmission.
    Lost,
}

/// A walk over the listed packets, in search of one that may leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    at: SeqNo,
    left: u32,
}

impl Repairs {
    /// Nothing is lost. The first packet of the connection is `first`.
    pub(super) const fn new(first: SeqNo) -> Self {
        Self {
            lost: SendList::new(first),
            retransmission: Timer::stopped(),
            stalls: 0,
            stalled_at: Instant::ZERO,
            echo: Timer::stopped(),
            all_wait: false,
            reported: None,
        }
    }

    // ---- what leaves again ----

    /// Starts to search for a packet to retransmit; `None` if nothing is lost.
    pub(super) fn search(&mut self) -> Option<Search> {
        self.all_wait = false;
        self.lost.first().map(|at| Search { at, left: MAX_LOOK_AHEAD })
    }

    /// The next listed packet before `end` that the search has not examined.
    pub(super) fn next(&mut self, search: &mut Search, end: SeqNo) -> Option<SeqNo> {
        let found = search.left.checked_sub(1).and_then(|left| {
            search.left = left;
            self.lost.next_after(search.at, end)
        });
        match found {
            Some(seq) => search.at = seq.next(),
            None => self.all_wait = !self.lost.is_empty(),
        }
        found
    }

    /// How many packets from `seq` on may be retransmitted now; `None` if `seq` was retransmitted within the last RTT.
    pub(super) fn ready(
        &mut self,
        seq: SeqNo,
        allowance: u32,
        buffer: &SendBuffer,
        (now, stamp): (Instant, Timestamp),
        round_trip: Duration,
    ) -> Option<u32> {
        if let Some(wait) = self.echo_wait(seq, buffer, stamp, round_trip) {
            self.echo.start(now, wait);
            return None;
        }
        // A run ends before a packet that was retransmitted before, because that one may have to wait.
        let packets = self.lost.run_length(seq, allowance);
        let resent = self.lost.next_resent(seq.next(), seq.plus(packets));
        Some(resent.map_or(packets, |resent| resent.distance_from(seq).unsigned_abs()))
    }

    /// `packets` packets from `first` on were retransmitted.
    pub(super) fn served(&mut self, first: SeqNo, packets: u32) {
        if self.lost.next_resent(first, first.plus(packets)).is_some() {
            // It is unknown which of the retransmissions will be acknowledged.
            self.reported = self.reported.map(|_| Cause::Lost);
        }
        self.lost.served(first, packets);
    }

    /// How long a packet that was retransmitted must wait before the next retransmission.
    fn echo_wait(&self, seq: SeqNo, buffer: &SendBuffer, stamp: Timestamp, round_trip: Duration) -> Option<Duration> {
        if !self.lost.was_resent(seq) {
            return None;
        }
        let since = Duration::from_micros(u64::from(stamp.value().wrapping_sub(buffer.stamped(seq)?.value())));
        // The RTT is the peer's claim (attack B9).
        round_trip.max(MIN_ECHO).checked_sub(since).filter(|wait| !wait.is_zero())
    }

    /// The receiver misses packets of a message that was given up: it is told to skip them once more.
    pub(super) fn ask_to_skip(&mut self, range: SeqRange) {
        self.lost.report(range);
        self.echo.stop();
    }

    delegate! {
        to self.lost {
            /// Packets that wait for their first retransmission. Those of a repeated report may be in flight.
            pub(super) fn unrepaired(&self) -> u32;
            /// Whether a packet in flight was retransmitted.
            pub(super) fn was_resent(&self, seq: SeqNo) -> bool;
            pub(super) fn is_empty(&self) -> bool;
            /// Whether no packet in flight is or was lost.
            pub(super) fn is_clean(&self) -> bool;
            pub(super) fn memory(&self) -> usize;
        }
    }

    // ---- what is found to be lost ----

    /// The path has become too narrow for the packets in flight.
    pub(super) fn on_black_hole(&mut self, in_flight: SeqRange, now: Instant) {
        self.lost.report(in_flight);
        self.echo.stop();
        self.look_at_once(now);
    }

    /// The peer reports packets in flight. Returns how many of them are news.
    ///
    /// Ignore packets retransmitted within the last RTT: the report predates the retransmission. A later report means
    /// that the retransmission was lost too, so it counts.
    pub(super) fn report(
        &mut self,
        range: SeqRange,
        buffer: &SendBuffer,
        stamp: Timestamp,
        round_trip: Duration,
    ) -> u32 {
        let echoes = self.echoes(range, buffer, stamp, round_trip);
        let listed = self.lost.report(range);
        if listed > 0 {
            // New losses need not wait for recent retransmissions.
            self.echo.stop();
        }
        if listed > echoes {
            self.reported.get_or_insert(Cause::Late);
        }
        listed - echoes
    }

    /// How many packets of a range are not listed and were retransmitted within the last RTT.
    fn echoes(&self, range: SeqRange, buffer: &SendBuffer, stamp: Timestamp, round_trip: Duration) -> u32 {
        let (mut at, end, mut echoes) = (range.first, range.last.next(), 0);
        while let Some(seq) = self.lost.next_resent(at, end) {
            let is_echo = !self.lost.contains(seq) && self.echo_wait(seq, buffer, stamp, round_trip).is_some();
            echoes += u32::from(is_echo);
            at = seq.next();
        }
        echoes
    }

    /// No packet came for the expiration time, so everything `in_flight` may be lost. `count` is that of the expirations in a row.
    ///
    /// If the first repair of the whole flight brings no answer, the path carries nothing in one direction at least, and the ends
    /// of the flight alone probe it. Any packet of the peer begins a new row, since libudt does not repeat a report that was
    /// lost.
    pub(super) fn on_expiration(&mut self, in_flight: SeqRange, count: u32) {
        if !self.lost.is_empty() {
            return;
        }
        if count <= 1 {
            self.lost.report(in_flight);
        } else {
            self.report_ends(in_flight);
        }
    }

    fn report_ends(&mut self, SeqRange { first, last }: SeqRange) {
        self.lost.report(SeqRange::new(last, last));
        self.lost.report(SeqRange::new(first, first));
    }

    /// No acknowledgement made progress for long. The retransmission of the oldest packet may be lost, or the last
    /// packets, of which the receiver does not know. All retransmissions are suspect, since libudt never repeats a
    /// report. If nothing came since the stall before, `heard` last, the path carries nothing, and the ends of the flight alone
    /// probe it.
    ///
    /// `given_up` are packets that the receiver was told to skip. The request was lost, or the receiver did not
    /// understand it because an earlier one was.
    pub(super) fn on_stall(
        &mut self,
        in_flight: SeqRange,
        given_up: impl Iterator<Item = SeqRange>,
        (now, heard): (Instant, Instant),
    ) {
        let is_silent = self.stalls > 0 && heard <= self.stalled_at;
        (self.stalls, self.stalled_at) = (self.stalls + 1, now);
        if is_silent {
            return self.report_ends(in_flight);
        }
        let SeqRange { first, last } = in_flight;
        let mut at = first;
        while let Some(seq) = self.lost.next_resent(at, last.next()) {
            self.lost.report(SeqRange::new(seq, seq));
            at = seq.next();
        }
        for dropped in given_up.filter_map(|range| range.clip(in_flight)) {
            self.lost.report(dropped);
        }
        self.report_ends(in_flight);
    }

    /// The receiver had no room for `oldest` and later packets. Only `oldest` leaves as a probe. The others follow once
    /// there is room (attack B10).
    pub(super) fn ask(&mut self, oldest: SeqNo) {
        self.lost.report(SeqRange::new(oldest, oldest));
    }

    /// Removes packets from the list without sending them.
    pub(super) fn forget(&mut self, range: SeqRange) {
        self.reported = self.reported.map(|_| Cause::Lost);
        self.lost.forget(range);
    }

    /// Examines acknowledged packets before they are forgotten. `round_trip` is the minimum RTT. A packet retransmitted
    /// at least that long ago may have arrived only as a retransmission.
    pub(super) fn judge(&mut self, acked: SeqRange, buffer: &SendBuffer, stamp: Timestamp, round_trip: Duration) {
        if self.reported != Some(Cause::Late) {
            return;
        }
        let (mut at, end) = (acked.first, acked.last.next());
        while let Some(seq) = self.lost.next_resent(at, end) {
            let left = buffer.stamped(seq).unwrap_or(stamp);
            if Duration::from_micros(u64::from(stamp.value().wrapping_sub(left.value()))) >= round_trip {
                self.reported = Some(Cause::Lost);
                return;
            }
            at = seq.next();
        }
    }

    /// Everything before `seq` has arrived. If no reported packet is missing any more, returns why they were.
    pub(super) fn acknowledge(&mut self, seq: SeqNo) -> Option<Cause> {
        self.lost.acknowledge(seq);
        self.stalls = 0;
        self.retransmission.stop();
        if self.lost.is_clean() { self.reported.take() } else { None }
    }

    // ---- timers ----

    /// Checks after `time` unless there is progress. An earlier check stays.
    pub(super) fn watch(&mut self, now: Instant, time: Duration) {
        self.retransmission.start(now, time);
    }

    /// Checks after `time` unless there is progress. Replaces an earlier check.
    pub(super) fn watch_anew(&mut self, now: Instant, time: Duration) {
        self.retransmission.set(now + time);
    }

    /// The receiver has room again for packets that it refused.
    pub(super) fn look_at_once(&mut self, now: Instant) {
        self.stalls = 0;
        self.retransmission.set(now);
    }

    /// Whether it is time to check for packets that never arrived.
    pub(super) fn stalls(&mut self, now: Instant) -> bool {
        self.retransmission.fires(now)
    }

    /// Packets that waited as echoes may leave.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.echo.fires(now) {
            self.all_wait = false;
        }
    }

    /// Time without progress after which the oldest packet is retransmitted.
    pub(super) fn timeout(&self, round_trip_with_margin: Duration) -> Duration {
        round_trip_with_margin.max(MIN_RETRANSMISSION_TIMEOUT) * (1 << self.stalls.min(MAX_DOUBLINGS))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        earliest(self.retransmission.deadline(), self.echo.deadline())
    }

    // ---- facts ----

    /// Whether a retransmission may leave as soon as pacing permits.
    pub(super) const fn can_leave(&self) -> bool {
        !self.lost.is_empty() && !self.all_wait
    }

    /// Whether progress has stopped.
    pub(super) const fn is_stalled(&self) -> bool {
        self.stalls > 0
    }
}

#[cfg(test)]
mod tests {
    use farhaul_wire::udt4::SocketId;

    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(10);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn stamp(millis: u32) -> Timestamp {
        Timestamp::new(millis * 1_000)
    }

    fn range(first: u32, last: u32) -> SeqRange {
        SeqRange::new(SeqNo::new(first), SeqNo::new(last))
    }

    /// A hundred packets in flight, sent at the start.
    fn flight() -> (Repairs, SendBuffer) {
        let mut buffer = SendBuffer::new(SeqNo::new(0), 100, SocketId::new(1));
        buffer.write_stream(&[0; 100 * 100], SeqNo::new(0));
        (Repairs::new(SeqNo::new(0)), buffer)
    }

    /// The packets retransmitted at this time.
    fn leave(repairs: &mut Repairs, buffer: &mut SendBuffer, millis: u32) -> Vec<u32> {
        let mut left = Vec::new();
        while let Some(mut search) = repairs.search() {
            let times = (at(millis.into()), stamp(millis));
            let found = loop {
                let Some(seq) = repairs.next(&mut search, SeqNo::new(100)) else { break None };
                if let Some(packets) = repairs.ready(seq, 1, buffer, times, ROUND_TRIP) {
                    break Some((seq, packets));
                }
            };
            let Some((seq, packets)) = found else { break };
            buffer.run(seq, packets, stamp(millis), (&mut Vec::new(), None));
            repairs.served(seq, packets);
            left.push(seq.value());
        }
        left
    }

    #[test]
    fn an_echo_waits_for_a_round_trip_and_holds_nothing_else_back() {
        let (mut repairs, mut buffer) = flight();
        assert_eq!(repairs.report(range(3, 4), &buffer, stamp(20), ROUND_TRIP), 2);
        assert_eq!(leave(&mut repairs, &mut buffer, 20), [3, 4]);
        assert_eq!(repairs.report(range(3, 5), &buffer, stamp(24), ROUND_TRIP), 1, "two are echoes");
        assert_eq!(leave(&mut repairs, &mut buffer, 24), [5]);
        assert!(!repairs.can_leave());
        assert_eq!(repairs.deadline(), Some(at(30)));
        repairs.handle_timeout(at(30));
        assert!(repairs.can_leave());
        assert_eq!(leave(&mut repairs, &mut buffer, 30), [3, 4]);
    }

    #[test]
    fn a_report_made_after_the_repair_had_time_to_arrive_is_news() {
        let (mut repairs, mut buffer) = flight();
        repairs.report(range(3, 4), &buffer, stamp(20), ROUND_TRIP);
        leave(&mut repairs, &mut buffer, 20);
        assert_eq!(repairs.report(range(3, 3), &buffer, stamp(29), ROUND_TRIP), 0);
        assert_eq!(repairs.report(range(3, 4), &buffer, stamp(30), ROUND_TRIP), 1, "the other is listed already");
        assert_eq!(leave(&mut repairs, &mut buffer, 30), [3, 4]);
    }

    #[test]
    fn a_stall_suspects_the_oldest_the_last_and_all_repairs() {
        let (mut repairs, mut buffer) = flight();
        repairs.report(range(7, 8), &buffer, stamp(20), ROUND_TRIP);
        leave(&mut repairs, &mut buffer, 20);
        repairs.on_stall(range(0, 99), [range(90, 200)].into_iter(), (at(200), at(22)));
        let mut expected = vec![0, 7, 8];
        expected.extend(90..100);
        assert_eq!(leave(&mut repairs, &mut buffer, 200), expected);
    }

    #[test]
    fn a_path_that_carries_nothing_is_probed_by_the_ends_of_the_flight_until_something_comes() {
        let (mut repairs, mut buffer) = flight();
        let stall = |repairs: &mut Repairs, millis, heard| {
            repairs.on_stall(range(0, 99), std::iter::empty(), (at(millis), at(heard)));
        };
        repairs.on_expiration(range(0, 99), 1);
        assert_eq!(leave(&mut repairs, &mut buffer, 300).len(), 100);
        stall(&mut repairs, 400, 1);
        assert_eq!(leave(&mut repairs, &mut buffer, 400).len(), 100, "the first suspects all repairs");
        stall(&mut repairs, 700, 1);
        assert_eq!(leave(&mut repairs, &mut buffer, 700), [0, 99]);
        repairs.on_expiration(range(0, 99), 2);
        assert_eq!(leave(&mut repairs, &mut buffer, 900), [0, 99]);
        // An acknowledgement without progress.
        stall(&mut repairs, 1_500, 1_000);
        assert_eq!(leave(&mut repairs, &mut buffer, 1_500).len(), 100);
    }

    /// Packets 3 and 4 are reported at 20 ms and retransmitted. At `millis`, all packets before 6 are acknowledged.
    fn acknowledged_at(millis: u32) -> Option<Cause> {
        let (mut repairs, mut buffer) = flight();
        repairs.report(range(3, 4), &buffer, stamp(20), ROUND_TRIP);
        leave(&mut repairs, &mut buffer, 20);
        repairs.judge(range(0, 3), &buffer, stamp(22), ROUND_TRIP);
        assert_eq!(repairs.acknowledge(SeqNo::new(4)), None, "one is missing still");
        repairs.judge(range(4, 5), &buffer, stamp(millis), ROUND_TRIP);
        let cause = repairs.acknowledge(SeqNo::new(6));
        assert_eq!(repairs.acknowledge(SeqNo::new(7)), None, "said once");
        cause
    }

    #[test]
    fn a_loss_is_spurious_if_all_arrived_before_their_retransmissions_could() {
        assert_eq!(acknowledged_at(29), Some(Cause::Late));
        assert_eq!(acknowledged_at(30), Some(Cause::Lost));
    }

    #[test]
    fn a_packet_retransmitted_twice_may_have_been_lost() {
        let (mut repairs, mut buffer) = flight();
        repairs.report(range(3, 3), &buffer, stamp(20), ROUND_TRIP);
        leave(&mut repairs, &mut buffer, 20);
        repairs.report(range(3, 3), &buffer, stamp(21), ROUND_TRIP);
        leave(&mut repairs, &mut buffer, 30);
        repairs.judge(range(0, 3), &buffer, stamp(31), ROUND_TRIP);
        assert_eq!(repairs.acknowledge(SeqNo::new(4)), Some(Cause::Lost));
    }

    #[test]
    fn the_time_to_the_next_stall_doubles_five_times() {
        let (mut repairs, _) = flight();
        let times: Vec<u128> = (0..8)
            .map(|_| {
                let time = repairs.timeout(ROUND_TRIP).as_micros() / 1_000;
                repairs.on_stall(range(0, 99), std::iter::empty(), (at(0), at(0)));
                time
            })
            .collect();
        assert_eq!(times, [120, 240, 480, 960, 1_920, 3_840, 3_840, 3_840]);
    }

    #[test]
    fn a_receiver_without_room_is_probed_with_one_packet() {
        let (mut repairs, mut buffer) = flight();
        repairs.ask(SeqNo::new(0));
        assert_eq!(leave(&mut repairs, &mut buffer, 200), [0]);
    }
}
