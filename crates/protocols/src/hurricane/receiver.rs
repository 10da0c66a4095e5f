//! The receiving end: in order to the reader, out of order held, and requests for what is missing.

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};
use farhaul_wire::hurricane::{MAX_GROUPS, Record, Terms, encode_missing, split};

use super::Options;
use super::recent::Recent;
use super::trigger::Trigger;
use crate::blast::engine::{self, Setup};
use crate::blast::numbered::{self, FIRST};
use crate::blast::partial::unreadable;
use crate::blast::receiving::ReceiverState;
use farhaul_proto::buffer::Insert;
use farhaul_proto::error::PeerMisbehaved;
use farhaul_proto::stats::Stats;
use farhaul_proto::timer::Timer;

/// Lists of one control event. More missing datagrams wait for the next, so that requests have a bounded rate.
const MOST_LISTS: usize = 8;
/// A repetition should have come after this many RTTs, and the time in which those before it arrive.
const REPEAT_ROUND_TRIPS: f64 = 1.5;
/// A sender is at most this far ahead of its receiver: everything else would leave no order of the numbers.
const FAR_AHEAD: u32 = 1 << 29;

/// The receiver of one direction.
#[derive(Debug)]
pub(crate) struct Receiver {
    state: ReceiverState,
    /// Each datagram before this number is here, or is wanted, or was asked for.
    noticed: SeqNo,
    /// Missing datagrams that were not asked for, or not in time.
    wanted: u32,
    /// Missing datagrams that were asked for a short time ago.
    asked: Recent,
    trigger: Trigger,
    /// The sender has sent everything before this number.
    announced: SeqNo,
    /// When all of that should be here.
    announced_due: Timer,
    /// When a short list leaves.
    held_back: Timer,
    /// A control event: the next poll asks for everything wanted.
    event: bool,
    /// The groups of a list, kept for reuse.
    groups: Vec<SeqRange>,
    /// Datagrams of the present receive call.
    batch: u64,
}

impl Receiver {
    pub(super) fn new(options: &Options, terms: Terms, setup: &Setup<'_>) -> Self {
        Self {
            state: numbered::receiver_state(setup),
            noticed: FIRST,
            wanted: 0,
            asked: Recent::new(FIRST),
            trigger: Trigger::new(options, terms, setup.round_trip, setup.now),
            announced: FIRST,
            announced_due: Timer::stopped(),
            held_back: Timer::stopped(),
            event: false,
            groups: Vec::new(),
            batch: 0,
        }
    }

    /// The datagrams before `end` that were not noticed yet are missing.
    fn notice(&mut self, now: Instant, end: SeqNo) {
        let missing = SeqRange::new(self.noticed, end.minus(1)).len();
        if missing > 0 {
            self.noticed = end;
            self.wanted += missing;
            self.state.counts.lost += u64::from(missing);
            self.held_back.start(now, self.trigger.window());
        }
    }

    /// A datagram arrived that was not here.
    fn on_new(&mut self, now: Instant, number: SeqNo) {
        if number.is_before(self.noticed) {
            if !self.asked.remove(number) {
                self.wanted = self.wanted.saturating_sub(1);
            }
        } else {
            self.notice(now, number);
            self.noticed = number.next();
        }
        if self.wanted == 0 {
            self.held_back.stop();
        }
    }

    /// The sender has sent everything before `end`.
    fn on_sent(&mut self, now: Instant, end: SeqNo) -> Result<(), PeerMisbehaved> {
        let ahead = end.distance_from(self.announced);
        if ahead < 0 || end.distance_from(self.state.buffer.ack_point()) > FAR_AHEAD as i32 {
            let (field, value) = ("end of the datagrams sent", end.value().into());
            return Err(PeerMisbehaved::out_of_range(field, value, "not before the last one, nor far ahead"));
        }
        self.announced = end;
        if end.is_after(self.noticed) {
            // The channel may be faster than the datagrams.
            self.announced_due.set(now + self.trigger.round_trip());
        }
        Ok(())
    }

    /// Everything announced should be here. The missing part that fits into the buffer is wanted now.
    fn on_announced_due(&mut self, now: Instant) {
        self.notice(now, self.announced.earlier(self.state.room_end()));
        self.event |= self.wanted > 0;
        if self.announced.is_after(self.noticed) {
            self.announced_due.set(now + self.trigger.window());
        }
    }

    /// Scans for missing datagrams that were not asked for in time, and counts them.
    fn scan(&mut self, most: usize) -> u32 {
        self.groups.clear();
        let noticed = SeqRange::new(self.state.buffer.ack_point(), self.noticed.minus(1));
        let missing = self.state.missing(noticed);
        self.groups.extend(missing.flat_map(|range| self.asked.others(range)).take(most));
        self.groups.iter().map(|range| range.len()).sum()
    }
}

impl engine::Receiver for Receiver {
    fn state(&self) -> &ReceiverState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut ReceiverState {
        &mut self.state
    }

    fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> bool {
        let Some((number, stored)) = numbered::store(&mut self.state, split(datagram)) else { return false };
        self.batch += 1;
        if stored == Insert::New {
            self.on_new(now, number);
        }
        true
    }

    fn end_batch(&mut self, now: Instant) {
        self.trigger.on_arrival(now, self.batch);
        self.batch = 0;
        self.event |= self.wanted >= self.trigger.missing();
    }

    fn handle_timeout(&mut self, now: Instant) {
        let overdue = self.asked.expire(now);
        if overdue > 0 {
            // These were held back once already.
            self.wanted += overdue;
            self.event = true;
        }
        if self.announced_due.fires(now) {
            self.on_announced_due(now);
        }
        if self.held_back.fires(now) {
            self.event |= self.wanted > 0;
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let times = [self.announced_due.deadline(), self.held_back.deadline(), self.asked.deadline()];
        times.into_iter().flatten().min()
    }

    fn on_suspended(&mut self, now: Instant, _gap: Duration) {
        if self.announced.is_after(self.noticed) {
            self.announced_due.set(now + self.trigger.round_trip());
        }
    }

    fn handle_record(&mut self, now: Instant, bytes: &[u8]) -> Result<Option<usize>, PeerMisbehaved> {
        let Some((record, length)) = Record::decode(bytes).map_err(unreadable)? else { return Ok(None) };
        match record {
            Record::Sent(end) => self.on_sent(now, end)?,
            Record::Missing(_) => return Err(PeerMisbehaved::out_of_turn("a list of missing datagrams")),
        }
        Ok(Some(length))
    }

    fn poll_control(&mut self, now: Instant, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.event) || self.wanted == 0 {
            return;
        }
        let listed = self.scan(MOST_LISTS * MAX_GROUPS);
        let mut groups = self.groups.as_slice();
        while !groups.is_empty() {
            let written = encode_missing(groups.iter().copied(), out);
            groups = &groups[written..];
            self.state.counts.naks += 1;
        }
        let sooner = self.trigger.round_trip().mul_f64(REPEAT_ROUND_TRIPS);
        let again = now + sooner + self.trigger.time_for(self.asked.len() + listed);
        for range in &self.groups {
            self.asked.insert(*range, again);
        }
        self.wanted = self.wanted.saturating_sub(listed);
        self.held_back.stop();
        if self.wanted > 0 {
            self.held_back.start(now, self.trigger.window());
        }
    }

    fn set_round_trip(&mut self, round_trip: Duration) {
        self.state.round_trip = round_trip;
        self.trigger.set_round_trip(round_trip);
    }

    fn read(&mut self, out: &mut [u8]) -> usize {
        let read = self.state.read(out);
        self.asked.advance(self.state.buffer.next_to_read());
        read
    }

    fn fill_stats(&self, _now: Instant, stats: &mut Stats) {
        self.state.fill_stats(stats);
        stats.memory += self.asked.memory() as u64;
    }
}
