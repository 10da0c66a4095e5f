//! The receiving end: in order to the reader, out of order held, and requests for what is missing.

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};
use farhaul_wire::hurricane::{MAX_GROUPS, Record, Terms, encode_missing, split};

use super::Options;
use super::recent::Recent;
use super::trigger::Trigger;
use crate::blast::engine::{self, Setup};
use crate::blast::numbered::{FIRST, Incoming};
use crate::blast::partial::Partial;
use crate::buffer::Insert;
use crate::error::{ControlFault, PeerMisbehaved};
use crate::stats::Stats;
use crate::timer::Timer;

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
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    datagrams: u64,
    duplicates: u64,
    invalid: u64,
    missing: u64,
    lists: u64,
    stored: u64,
    read: u64,
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
            counts: Counts::default(),
        }
    }

    /// The datagrams before `end` that were not noticed yet are missing.
    fn notice(&mut self, now: Instant, end: SeqNo) {
        let missing = SeqRange::new(self.noticed, end.minus(1)).len();
        if missing > 0 {
            self.noticed = end;
            self.wanted += missing;
            self.counts.missing += u64::from(missing);
            self.held_back.start(now, self.trigger.window());
        }
    }

    /// The sender has sent everything before `end`.
    fn on_sent(&mut self, now: Instant, end: SeqNo) -> Result<(), PeerMisbehaved> {
        let ahead = end.distance_from(self.announced);
        if ahead < 0 || end.distance_from(self.datagrams.buffer.ack_point()) > FAR_AHEAD as i32 {
            let (field, value) = ("end of the datagrams sent", end.value().into());
            let fault = ControlFault::OutOfRange { field, value, valid: "not before the last one, nor far ahead" };
            return Err(PeerMisbehaved::ControlRecord(fault));
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
        let (number, payload) = match split(datagram) {
            Ok((number, payload)) if payload.len() <= self.datagrams.payload_size => (number, payload),
            _ => {
                self.counts.invalid += 1;
                return false;
            }
        };
        self.batch += 1;
        self.counts.datagrams += 1;
        match self.datagrams.insert(number, payload) {
            Insert::New => {
                self.counts.stored += payload.len() as u64;
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
            Insert::Duplicate => self.counts.duplicates += 1,
            // No credit covers it. It is missing as if the path had lost it.
            Insert::Rejected => {}
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
            let Some((record, length)) = Record::decode(bytes)? else { return Ok(None) };
            match record {
                Record::Sent(end) => self.on_sent(now, end)?,
                Record::Missing(_) => {
                    return Err(PeerMisbehaved::ControlRecord(ControlFault::OutOfTurn("a list of missing datagrams")));
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
            self.counts.lists += 1;
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
        let read = self.datagrams.buffer.read(out);
        self.counts.read += read as u64;
        self.asked.advance(self.datagrams.buffer.next_to_read());
        read
    }

    fn delivered(&self) -> u64 {
        self.counts.read + self.datagrams.buffer.available()
    }

    fn fill_stats(&self, _now: Instant, stats: &mut Stats) {
        let (counts, totals) = (&self.counts, &mut stats.totals);
        totals.packets_received = counts.datagrams;
        totals.packets_duplicate = counts.duplicates;
        totals.packets_invalid += counts.invalid;
        totals.packets_lost_receiving = counts.missing;
        totals.naks_sent = counts.lists;
        totals.bytes_received = counts.stored;
        totals.bytes_read = counts.read;
        stats.recv_buffer_packets = self.datagrams.buffer.readable_packets();
        stats.recv_buffer_free = u64::from(self.datagrams.buffer.free()) * self.datagrams.payload_size as u64;
        stats.memory += (self.datagrams.buffer.memory() + self.asked.memory()) as u64;
    }
}
