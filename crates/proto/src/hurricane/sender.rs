//! The sending end: repetitions first, then new datagrams, W_c at a time.

use farhaul_units::{Duration, Instant, Rate, SeqNo, SeqRange};
use farhaul_wire::hurricane::{Groups, Record, encode_sent};

use super::Options;
use super::recent::Recent;
use super::schedule::Schedule;
use crate::blast::engine::{self, Departure, Feedback, Setup};
use crate::blast::numbered::{FIRST, Outgoing};
use crate::blast::partial::Partial;
use crate::blast::rate::{RateChoice, RateControl};
use crate::error::{ControlFault, PeerMisbehaved};
use crate::intake::{Intake, Load};
use crate::seq_set::SeqSet;
use crate::shell::limit::{Limit, LimitClock};
use crate::stats::Stats;

/// The sender of one direction.
#[derive(Debug)]
pub(crate) struct Sender {
    datagrams: Outgoing,
    /// The next datagram to leave for the first time.
    next: SeqNo,
    /// Datagrams before this number leave even if they are not full.
    flushed: SeqNo,
    /// The end that the receiver was told last.
    announced: SeqNo,
    /// Requested and not repeated yet.
    lost: SeqSet,
    /// Repeated within an RTT. A request that comes now was sent before that had an effect.
    repeated: Recent,
    schedule: Schedule,
    rate: RateControl,
    most_rate: Option<Rate>,
    round_trip: Duration,
    intake: Intake,
    /// Payload bytes written, and those that the peer has.
    written: u64,
    released: u64,
    partial: Partial,
    limits: LimitClock,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    sent: u64,
    repeated: u64,
    lost: u64,
    lists: u64,
}

impl Sender {
    pub(super) fn new(options: &Options, setup: &Setup<'_>) -> Self {
        let Setup { config, round_trip, now, .. } = *setup;
        let datagrams = Outgoing::new(setup);
        let bytes = datagrams.size_on_link() as f64;
        let choice = match options.rate {
            RateChoice::Fixed(payload) => {
                let whole = payload.bits_per_second() as f64 * bytes / datagrams.store.payload_size() as f64;
                RateChoice::Fixed(Rate::from_bits_per_second(whole as u64))
            }
            RateChoice::Auto => RateChoice::Auto,
        };
        let mut sender = Self {
            datagrams,
            next: FIRST,
            flushed: FIRST,
            announced: FIRST,
            lost: SeqSet::new(FIRST),
            repeated: Recent::new(FIRST),
            schedule: Schedule::new(options, config, bytes * 8.0, now),
            rate: RateControl::new(choice, config.first_rate, round_trip),
            most_rate: config.max_rate,
            round_trip,
            intake: Intake::new(config.send_buffer),
            written: 0,
            released: 0,
            partial: Partial::default(),
            limits: LimitClock::default(),
            counts: Counts::default(),
        };
        sender.apply_rate();
        sender
    }

    fn apply_rate(&mut self) {
        let rate = self.rate.rate();
        let rate = self.most_rate.map_or(rate, |most| rate.min(most));
        self.schedule.set_rate(rate, self.round_trip);
    }

    /// New datagrams that may leave. One that is not full waits for more data, or for a flush.
    fn waiting(&self) -> u32 {
        let last = self.datagrams.store.end().minus(1);
        let waiting = SeqRange::new(self.next, last).len();
        let open = waiting > 0 && !self.datagrams.store.is_full(last) && !last.is_before(self.flushed);
        waiting - u32::from(open)
    }

    /// Takes a list of missing datagrams. Nothing happens before all of it was checked (attack B5).
    fn on_missing(&mut self, now: Instant, groups: Groups<'_>) -> Result<(), PeerMisbehaved> {
        let beyond = groups.iter().find(|group| group.last.next().is_after(self.next));
        if let Some(group) = beyond {
            let (field, value) = ("last datagram of a group", group.last.value().into());
            let fault = ControlFault::OutOfRange { field, value, valid: "datagrams that were sent" };
            return Err(PeerMisbehaved::ControlRecord(fault));
        }
        self.counts.lists += 1;
        self.repeated.expire(now);
        let held = SeqRange::new(self.datagrams.store.first(), self.next.minus(1));
        for group in groups.iter().filter_map(|group| group.clip(held)) {
            for range in self.repeated.others(group) {
                self.counts.lost += u64::from(self.lost.insert_range(range));
            }
        }
        Ok(())
    }

    fn note_nothing_to_send(&mut self, now: Instant) {
        self.schedule.hold(now);
        let idle = self.datagrams.store.first() == self.datagrams.store.end();
        self.limits.set(if idle { Limit::Idle } else { Limit::Application }, now);
    }

    fn free(&self) -> u64 {
        self.intake.room(self.load(), self.schedule.pacer())
    }

    fn load(&self) -> Load {
        let in_flight = SeqRange::new(self.datagrams.store.first(), self.next.minus(1)).len();
        let filling = self.schedule.pacer().packets_in(self.round_trip);
        let filling = filling.map(|datagrams| u32::try_from(datagrams).unwrap_or(u32::MAX));
        Load {
            payload_size: self.datagrams.store.payload_size(),
            held: self.datagrams.store.packets(),
            in_flight,
            filling,
        }
    }

    /// Copies this many requested datagrams into `scratch`.
    fn repeat(&mut self, now: Instant, packets: u32, scratch: &mut Vec<u8>) {
        scratch.clear();
        for _ in 0..packets {
            let Some(number) = self.lost.first() else { break };
            self.datagrams.copy(number, scratch);
            self.lost.remove(number);
            self.repeated.insert(SeqRange::new(number, number), now + self.round_trip);
        }
        self.counts.repeated += u64::from(packets);
    }
}

impl engine::Sender for Sender {
    fn room(&self) -> usize {
        usize::try_from(self.free()).unwrap_or(usize::MAX)
    }

    fn write(&mut self, _now: Instant, data: &[u8]) -> usize {
        let taken = data.len().min(self.room());
        self.datagrams.write(&data[..taken], self.next);
        self.written += taken as u64;
        taken
    }

    fn flush(&mut self, _now: Instant) {
        self.flushed = self.datagrams.store.end();
    }

    fn is_delivered(&self) -> bool {
        self.released == self.written
    }

    fn handle_control(&mut self, now: Instant, bytes: &[u8]) -> Result<(), PeerMisbehaved> {
        let mut partial = std::mem::take(&mut self.partial);
        let fed = partial.feed(bytes, |bytes| {
            let Some((record, length)) = Record::decode(bytes)? else { return Ok(None) };
            match record {
                Record::Missing(groups) => self.on_missing(now, groups)?,
                Record::Sent(_) => {
                    let fault = ControlFault::OutOfTurn("the end of the datagrams sent");
                    return Err(PeerMisbehaved::ControlRecord(fault));
                }
            }
            Ok(Some(length))
        });
        self.partial = partial;
        fed
    }

    fn poll_control(&mut self, _now: Instant, out: &mut Vec<u8>) {
        let all_sent = self.next == self.datagrams.store.end() && self.flushed == self.next;
        if all_sent && self.announced != self.next {
            encode_sent(self.next, out);
            self.announced = self.next;
        }
    }

    fn on_delivered(&mut self, _now: Instant, offset: u64) {
        // Nothing can have arrived that has not left.
        let until = self.datagrams.store.after_bytes(offset.saturating_sub(self.released), self.next);
        self.released += self.datagrams.store.release(until);
        self.lost.advance(until);
        self.repeated.advance(until);
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        self.rate.on_feedback(now, feedback);
        self.apply_rate();
    }

    fn set_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = round_trip;
        self.rate.set_round_trip(round_trip);
        self.apply_rate();
    }

    fn plan(&mut self, now: Instant) -> Option<Departure> {
        let (lost, waiting) = (self.lost.first(), self.waiting());
        if lost.is_none() && waiting == 0 {
            self.note_nothing_to_send(now);
            return None;
        }
        let allowance = self.schedule.allowance(now);
        if allowance == 0 {
            self.limits.set(Limit::Congestion, now);
            return None;
        }
        if let Some(first) = lost {
            let packets = self.datagrams.train(&self.lost, first, self.next, allowance);
            return Some(Departure { first: first.value().into(), packets, again: true });
        }
        let packets = self.datagrams.store.run(self.next, allowance.min(waiting))?.packets;
        Some(Departure { first: self.next.value().into(), packets, again: false })
    }

    fn emit<'a>(&'a mut self, now: Instant, plan: Departure, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        let bytes = plan.packets as usize * self.datagrams.size();
        self.rate.on_sent(now, plan.packets, bytes);
        self.counts.sent += u64::from(plan.packets);
        self.schedule.on_sent(now, plan.packets);
        if plan.again {
            self.repeat(now, plan.packets, scratch);
            return Some((self.datagrams.size(), scratch));
        }
        let first = self.next;
        self.next = first.plus(plan.packets);
        self.datagrams.adjacent(first, plan.packets, scratch)
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn deadline(&self) -> Option<Instant> {
        let something = !self.lost.is_empty() || self.waiting() > 0;
        something.then(|| self.schedule.deadline())
    }

    fn fill_stats(&self, now: Instant, stats: &mut Stats) {
        let (counts, load) = (&self.counts, self.load());
        stats.totals.packets_sent = counts.sent;
        stats.totals.packets_retransmitted = counts.repeated;
        stats.totals.packets_lost_sending = counts.lost;
        stats.totals.naks_received = counts.lists;
        stats.totals.bytes_written = self.written;
        stats.totals.bytes_acked = self.released;
        self.limits.fill(now, &mut stats.totals);
        stats.send_period = self.schedule.send_period();
        stats.cwnd = self.schedule.window();
        stats.in_flight = load.in_flight;
        stats.send_buffer_packets = load.held;
        stats.send_buffer_free = self.free();
        stats.payload_size = load.payload_size as u32;
        stats.memory += (self.datagrams.store.memory() + self.lost.memory() + self.repeated.memory()) as u64;
    }
}
