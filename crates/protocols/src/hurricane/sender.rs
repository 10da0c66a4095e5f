//! The sending end: repetitions first, then new datagrams, W_c at a time.

use farhaul_units::{Duration, Instant, Rate, SeqNo, SeqRange};
use farhaul_wire::hurricane::{Groups, Record, encode_sent};

use super::Options;
use super::recent::Recent;
use super::schedule::Schedule;
use crate::blast::engine::{self, Feedback, Setup, Transmission};
use crate::blast::numbered::{self, FIRST, SendBuffer, size_on_link};
use crate::blast::partial::unreadable;
use crate::blast::rate::{RateChoice, RateControl};
use crate::blast::sending::SenderState;
use farhaul_proto::endpoint::limit::Limit;
use farhaul_proto::error::PeerMisbehaved;
use farhaul_proto::seq_set::SeqSet;
use farhaul_proto::stats::Stats;

/// The sender of one direction.
#[derive(Debug)]
pub(crate) struct Sender {
    state: SenderState,
    buffer: SendBuffer,
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
}

impl Sender {
    pub(super) fn new(options: &Options, setup: &Setup<'_>) -> Self {
        let buffer = numbered::send_buffer(setup);
        let bytes = size_on_link(&buffer) as f64;
        let choice = match options.rate {
            RateChoice::Fixed(payload) => {
                let whole = payload.bits_per_second() as f64 * bytes / buffer.store.payload_size() as f64;
                RateChoice::Fixed(Rate::from_bits_per_second(whole as u64))
            }
            RateChoice::Auto => RateChoice::Auto,
        };
        let mut sender = Self {
            state: SenderState::new(setup),
            buffer,
            flushed: FIRST,
            announced: FIRST,
            lost: SeqSet::new(FIRST),
            repeated: Recent::new(FIRST),
            schedule: Schedule::new(options, setup.config, bytes * 8.0, setup.now),
            rate: RateControl::of(choice, setup),
        };
        sender.apply_rate();
        sender
    }

    fn apply_rate(&mut self) {
        self.schedule.set_rate(self.rate.rate(), self.state.round_trip);
    }

    /// New datagrams that may leave. One that is not full waits for more data, or for a flush.
    fn waiting(&self) -> u32 {
        let last = self.buffer.store.end().minus(1);
        let waiting = SeqRange::new(self.buffer.next, last).len();
        let open = waiting > 0 && !self.buffer.store.is_full(last) && !last.is_before(self.flushed);
        waiting - u32::from(open)
    }

    /// Takes a list of missing datagrams. Nothing happens before all of it was checked (attack B5).
    fn on_missing(&mut self, now: Instant, groups: Groups<'_>) -> Result<(), PeerMisbehaved> {
        let beyond = groups.iter().find(|group| group.last.next().is_after(self.buffer.next));
        if let Some(group) = beyond {
            let (field, value) = ("last datagram of a group", group.last.value().into());
            return Err(PeerMisbehaved::out_of_range(field, value, "datagrams that were sent"));
        }
        self.state.counts.naks += 1;
        self.repeated.expire(now);
        let held = self.buffer.in_flight();
        for group in groups.iter().filter_map(|group| group.clip(held)) {
            for range in self.repeated.others(group) {
                self.state.counts.lost += u64::from(self.lost.insert_range(range));
            }
        }
        Ok(())
    }

    fn note_nothing_to_send(&mut self, now: Instant) {
        self.schedule.hold(now);
        self.state.rest(now, self.buffer.is_empty());
    }

    /// The datagrams that fill the path.
    fn filling(&self) -> Option<u32> {
        let filling = self.schedule.pacer().packets_in(self.state.round_trip);
        filling.map(|datagrams| u32::try_from(datagrams).unwrap_or(u32::MAX))
    }

    /// Copies this many requested datagrams into `scratch`.
    fn repeat(&mut self, now: Instant, packets: u32, scratch: &mut Vec<u8>) {
        scratch.clear();
        for _ in 0..packets {
            let Some(number) = self.lost.first() else { break };
            scratch.extend_from_slice(self.buffer.datagram(number).unwrap_or_default());
            self.lost.remove(number);
            self.repeated.insert(SeqRange::new(number, number), now + self.state.round_trip);
        }
    }
}

impl engine::Sender for Sender {
    fn state_mut(&mut self) -> &mut SenderState {
        &mut self.state
    }

    fn room(&self) -> usize {
        self.buffer.room(self.filling(), self.schedule.pacer())
    }

    fn write(&mut self, _now: Instant, data: &[u8]) -> usize {
        let taken = data.len().min(self.room());
        let next = self.buffer.next;
        numbered::write(&mut self.buffer, &data[..taken], next);
        taken
    }

    fn flush(&mut self, _now: Instant) {
        self.flushed = self.buffer.store.end();
    }

    fn is_delivered(&self) -> bool {
        self.buffer.is_delivered()
    }

    fn handle_record(&mut self, now: Instant, bytes: &[u8]) -> Result<Option<usize>, PeerMisbehaved> {
        let Some((record, length)) = Record::decode(bytes).map_err(unreadable)? else { return Ok(None) };
        match record {
            Record::Missing(groups) => self.on_missing(now, groups)?,
            Record::Sent(_) => return Err(PeerMisbehaved::out_of_turn("the end of the datagrams sent")),
        }
        Ok(Some(length))
    }

    fn poll_control(&mut self, _now: Instant, out: &mut Vec<u8>) {
        let all_sent = self.buffer.next == self.buffer.store.end() && self.flushed == self.buffer.next;
        if all_sent && self.announced != self.buffer.next {
            encode_sent(self.buffer.next, out);
            self.announced = self.buffer.next;
        }
    }

    fn on_delivered(&mut self, _now: Instant, offset: u64) {
        let until = self.buffer.delivered_until(offset);
        self.buffer.release(until);
        self.lost.advance(until);
        self.repeated.advance(until);
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        self.rate.on_feedback(now, feedback);
        self.apply_rate();
    }

    fn set_round_trip(&mut self, round_trip: Duration) {
        self.state.round_trip = round_trip;
        self.apply_rate();
    }

    fn plan(&mut self, now: Instant) -> Option<Transmission> {
        let (lost, waiting) = (self.lost.first(), self.waiting());
        if lost.is_none() && waiting == 0 {
            self.note_nothing_to_send(now);
            return None;
        }
        let allowance = self.schedule.allowance(now);
        if allowance == 0 {
            self.state.limits.set(Limit::Congestion, now);
            return None;
        }
        if let Some(first) = lost {
            let packets = self.buffer.train(first, allowance, |from| self.lost.next_present(from, self.buffer.next));
            return Some(Transmission { first: first.value().into(), packets, again: true });
        }
        self.buffer.plan_new(allowance.min(waiting))
    }

    fn emit<'a>(&'a mut self, now: Instant, plan: Transmission, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        self.state.on_sent(plan);
        self.rate.on_sent(now, plan.packets, plan.packets as usize * self.buffer.size());
        self.schedule.on_sent(now, plan.packets);
        if plan.again {
            self.repeat(now, plan.packets, scratch);
            return Some((self.buffer.size(), scratch));
        }
        self.buffer.emit_new(plan.packets, scratch)
    }

    fn deadline(&self) -> Option<Instant> {
        let something = !self.lost.is_empty() || self.waiting() > 0;
        something.then(|| self.schedule.deadline())
    }

    fn fill_stats(&self, now: Instant, stats: &mut Stats) {
        self.state.fill_stats(now, stats);
        self.buffer.fill_stats(self.filling(), self.schedule.pacer(), stats);
        stats.send_period = self.schedule.send_period();
        stats.cwnd = self.schedule.window();
        stats.memory += (self.lost.memory() + self.repeated.memory()) as u64;
    }
}
