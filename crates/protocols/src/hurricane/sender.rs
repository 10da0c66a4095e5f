//! The sending end: repetitions first, then new datagrams, W_c at a time.

use farhaul_units::{Duration, Instant, Rate, SeqNo, SeqRange};
use farhaul_wire::hurricane::{Groups, Record, encode_sent};

use super::Options;
use super::recent::Recent;
use super::schedule::Schedule;
use crate::blast::engine::{self, Departure, Feedback, Setup};
use crate::blast::numbered::{FIRST, Stock};
use crate::blast::partial::{Partial, unreadable};
use crate::blast::rate::{RateChoice, RateControl};
use farhaul_proto::error::PeerMisbehaved;
use farhaul_proto::seq_set::SeqSet;
use farhaul_proto::stats::Stats;

/// The sender of one direction.
#[derive(Debug)]
pub(crate) struct Sender {
    stock: Stock,
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
    partial: Partial,
    /// Datagrams that the peer reported as lost, and its lists of them.
    reported: u64,
    lists: u64,
}

impl Sender {
    pub(super) fn new(options: &Options, setup: &Setup<'_>) -> Self {
        let Setup { config, round_trip, now, .. } = *setup;
        let stock = Stock::new(setup);
        let bytes = stock.datagrams.size_on_link() as f64;
        let choice = match options.rate {
            RateChoice::Fixed(payload) => {
                let whole = payload.bits_per_second() as f64 * bytes / stock.datagrams.store.payload_size() as f64;
                RateChoice::Fixed(Rate::from_bits_per_second(whole as u64))
            }
            RateChoice::Auto => RateChoice::Auto,
        };
        let mut sender = Self {
            stock,
            flushed: FIRST,
            announced: FIRST,
            lost: SeqSet::new(FIRST),
            repeated: Recent::new(FIRST),
            schedule: Schedule::new(options, config, bytes * 8.0, now),
            rate: RateControl::new(choice, config.first_rate, round_trip),
            most_rate: config.max_rate,
            round_trip,
            partial: Partial::default(),
            reported: 0,
            lists: 0,
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
        let last = self.stock.datagrams.store.end().minus(1);
        let waiting = SeqRange::new(self.stock.next, last).len();
        let open = waiting > 0 && !self.stock.datagrams.store.is_full(last) && !last.is_before(self.flushed);
        waiting - u32::from(open)
    }

    /// Takes a list of missing datagrams. Nothing happens before all of it was checked (attack B5).
    fn on_missing(&mut self, now: Instant, groups: Groups<'_>) -> Result<(), PeerMisbehaved> {
        let beyond = groups.iter().find(|group| group.last.next().is_after(self.stock.next));
        if let Some(group) = beyond {
            let (field, value) = ("last datagram of a group", group.last.value().into());
            return Err(PeerMisbehaved::out_of_range(field, value, "datagrams that were sent"));
        }
        self.lists += 1;
        self.repeated.expire(now);
        let held = self.stock.in_flight();
        for group in groups.iter().filter_map(|group| group.clip(held)) {
            for range in self.repeated.others(group) {
                self.reported += u64::from(self.lost.insert_range(range));
            }
        }
        Ok(())
    }

    fn note_nothing_to_send(&mut self, now: Instant) {
        self.schedule.hold(now);
        self.stock.rest(now);
    }

    /// The datagrams that fill the path.
    fn filling(&self) -> Option<u32> {
        let filling = self.schedule.pacer().packets_in(self.round_trip);
        filling.map(|datagrams| u32::try_from(datagrams).unwrap_or(u32::MAX))
    }

    /// Copies this many requested datagrams into `scratch`.
    fn repeat(&mut self, now: Instant, packets: u32, scratch: &mut Vec<u8>) {
        scratch.clear();
        for _ in 0..packets {
            let Some(number) = self.lost.first() else { break };
            self.stock.datagrams.copy(number, scratch);
            self.lost.remove(number);
            self.repeated.insert(SeqRange::new(number, number), now + self.round_trip);
        }
    }
}

impl engine::Sender for Sender {
    fn room(&self) -> usize {
        usize::try_from(self.stock.room(self.filling(), self.schedule.pacer())).unwrap_or(usize::MAX)
    }

    fn write(&mut self, _now: Instant, data: &[u8]) -> usize {
        let taken = data.len().min(self.room());
        self.stock.datagrams.write(&data[..taken], self.stock.next);
        self.stock.wrote(taken);
        taken
    }

    fn flush(&mut self, _now: Instant) {
        self.flushed = self.stock.datagrams.store.end();
    }

    fn is_delivered(&self) -> bool {
        self.stock.is_delivered()
    }

    fn handle_control(&mut self, now: Instant, bytes: &[u8]) -> Result<(), PeerMisbehaved> {
        let mut partial = std::mem::take(&mut self.partial);
        let fed = partial.feed(bytes, |bytes| {
            let Some((record, length)) = Record::decode(bytes).map_err(unreadable)? else { return Ok(None) };
            match record {
                Record::Missing(groups) => self.on_missing(now, groups)?,
                Record::Sent(_) => {
                    return Err(PeerMisbehaved::out_of_turn("the end of the datagrams sent"));
                }
            }
            Ok(Some(length))
        });
        self.partial = partial;
        fed
    }

    fn poll_control(&mut self, _now: Instant, out: &mut Vec<u8>) {
        let all_sent = self.stock.next == self.stock.datagrams.store.end() && self.flushed == self.stock.next;
        if all_sent && self.announced != self.stock.next {
            encode_sent(self.stock.next, out);
            self.announced = self.stock.next;
        }
    }

    fn on_delivered(&mut self, _now: Instant, offset: u64) {
        let until = self.stock.delivered_until(offset);
        self.stock.release(until);
        self.lost.advance(until);
        self.repeated.advance(until);
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        self.rate.on_feedback(now, feedback);
        self.apply_rate();
    }

    fn set_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = round_trip;
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
            self.stock.hold_back(now);
            return None;
        }
        if let Some(first) = lost {
            let packets = self.stock.datagrams.train(&self.lost, first, self.stock.next, allowance);
            return Some(Departure { first: first.value().into(), packets, again: true });
        }
        self.stock.plan_new(allowance.min(waiting))
    }

    fn emit<'a>(&'a mut self, now: Instant, plan: Departure, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        let bytes = self.stock.count(plan);
        self.rate.on_sent(now, plan.packets, bytes);
        self.schedule.on_sent(now, plan.packets);
        if plan.again {
            self.repeat(now, plan.packets, scratch);
            return Some((self.stock.datagrams.size(), scratch));
        }
        self.stock.emit_new(plan.packets, scratch)
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn deadline(&self) -> Option<Instant> {
        let something = !self.lost.is_empty() || self.waiting() > 0;
        something.then(|| self.schedule.deadline())
    }

    fn fill_stats(&self, now: Instant, stats: &mut Stats) {
        self.stock.fill_stats(now, self.filling(), self.schedule.pacer(), stats);
        stats.totals.packets_lost_sending = self.reported;
        stats.totals.naks_received = self.lists;
        stats.send_period = self.schedule.send_period();
        stats.cwnd = self.schedule.window();
        stats.memory += (self.lost.memory() + self.repeated.memory()) as u64;
    }
}
