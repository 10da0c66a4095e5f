//! The receiving end: in order to the reader, out of order held, and requests for what is missing.

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};
use farhaul_wire::hurricane::{MAX_GROUPS, Record, Terms, encode_missing, split};

use super::Options;
use super::recent::Recent;
use super::trigger::Trigger;
use crate::blast::engine::{self, Setup};
use crate::blast::numbered::{FIRST, Incoming};
use crate::blast::partial::{Partial, unreadable};
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
    datagrams: Incoming,
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
    settled: Timer,
    /// When a short list leaves.
    held_back: Timer,
    /// A control event: the next poll asks for everything wanted.
    event: bool,
    partial: Partial,
    /// The groups of a list, kept for reuse.
    groups: Vec<SeqRange>,
    /// Datagrams of the present receive call.
    batch: u64,
    /// Datagrams that were missing at first, and lists of them.
    missing: u64,
    lists: u64,
}

impl Receiver {
    pub(super) fn new(options: &Options, terms: Terms, setup: &Setup<'_>) -> Self {
        Self {
            datagrams: Incoming::new(setup),
            noticed: FIRST,
            wanted: 0,
            asked: Recent::new(FIRST),
            trigger: Trigger::new(options, terms, setup.round_trip, setup.now),
            announced: FIRST,
            settled: Timer::stopped(),
            held_back: Timer::stopped(),
            event: false,
            partial: Partial::default(),
            groups: Vec::new(),
            batch: 0,
            missing: 0,
            lists: 0,
        }
    }

    /// The datagrams before `end` that were not noticed yet are missing.
    fn notice(&mut self, now: Instant, end: SeqNo) {
        let missing = SeqRange::new(self.noticed, end.minus(1)).len();
        if missing > 0 {
            self.noticed = end;
            self.wanted += missing;
            self.missing += u64::from(missing);
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
        if ahead < 0 || end.distance_from(self.datagrams.buffer.ack_point()) > FAR_AHEAD as i32 {
            let (field, value) = ("end of the datagrams sent", end.value().into());
            return Err(PeerMisbehaved::out_of_range(field, value, "not before the last one, nor far ahead"));
        }
        self.announced = end;
        if end.is_after(self.noticed) {
            // The channel may be faster than the datagrams.
            self.settled.set(now + self.trigger.round_trip());
        }
        Ok(())
    }

    /// Everything announced should be here. The missing part that fits into the buffer is wanted now.
    fn settle(&mut self, now: Instant) {
        self.notice(now, self.announced.earlier(self.datagrams.room_end()));
        self.event |= self.wanted > 0;
        if self.announced.is_after(self.noticed) {
            self.settled.set(now + self.trigger.window());
        }
    }

    /// Scans for missing datagrams that were not asked for in time, and counts them.
    fn scan(&mut self, most: usize) -> u32 {
        self.groups.clear();
        let (ack_point, end) = (self.datagrams.buffer.ack_point(), self.datagrams.buffer.end());
        let held = self.datagrams.buffer.missing(SeqRange::new(ack_point, end.minus(1)));
        let tail = Some(SeqRange::new(end, self.noticed.minus(1))).filter(|tail| !tail.is_empty());
        let asked = &self.asked;
        self.groups.extend(held.chain(tail).flat_map(|range| asked.others(range)).take(most));
        self.groups.iter().map(|range| range.len()).sum()
    }
}

impl engine::Receiver for Receiver {
    fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> bool {
        let mut new = None;
        let valid = self.datagrams.take(split(datagram), |number| new = Some(number));
        self.batch += u64::from(valid);
        if let Some(number) = new {
            self.on_new(now, number);
        }
        valid
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
        if self.settled.fires(now) {
            self.settle(now);
        }
        if self.held_back.fires(now) {
            self.event |= self.wanted > 0;
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let times = [self.settled.deadline(), self.held_back.deadline(), self.asked.deadline()];
        times.into_iter().flatten().min()
    }

    fn on_suspended(&mut self, now: Instant, _gap: Duration) {
        if self.announced.is_after(self.noticed) {
            self.settled.set(now + self.trigger.round_trip());
        }
    }

    fn handle_control(&mut self, now: Instant, bytes: &[u8]) -> Result<(), PeerMisbehaved> {
        let mut partial = std::mem::take(&mut self.partial);
        let fed = partial.feed(bytes, |bytes| {
            let Some((record, length)) = Record::decode(bytes).map_err(unreadable)? else { return Ok(None) };
            match record {
                Record::Sent(end) => self.on_sent(now, end)?,
                Record::Missing(_) => {
                    return Err(PeerMisbehaved::out_of_turn("a list of missing datagrams"));
                }
            }
            Ok(Some(length))
        });
        self.partial = partial;
        fed
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
            self.lists += 1;
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
        self.trigger.set_round_trip(round_trip);
    }

    fn available(&self) -> usize {
        usize::try_from(self.datagrams.buffer.available()).unwrap_or(usize::MAX)
    }

    fn read(&mut self, out: &mut [u8]) -> usize {
        let read = self.datagrams.read(out);
        self.asked.advance(self.datagrams.buffer.next_to_read());
        read
    }

    fn delivered(&self) -> u64 {
        self.datagrams.delivered()
    }

    fn fill_stats(&self, _now: Instant, stats: &mut Stats) {
        self.datagrams.fill_stats(stats);
        stats.totals.packets_lost_receiving = self.missing;
        stats.totals.naks_sent = self.lists;
        stats.memory += self.asked.memory() as u64;
    }
}
