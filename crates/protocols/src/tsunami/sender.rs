//! The sending end between two Farhaul ends.
//!
//! A block that the receiver asked for leaves first (R), then the next new one (O). If there is none, the last one
//! leaves again (X).

use farhaul_units::{Duration, Instant, Rate, SendPeriod, SeqNo, SeqRange};
use farhaul_wire::blast::TAG_LEN;
use farhaul_wire::tsunami::{HEADER_LEN, Header, Kind, Request, UnknownRequest};

use super::Options;
use super::delay::{self, Delay, Law};
use super::lately::Lately;
use super::silence::Silence;
use crate::blast::engine::{self, Feedback, Setup, Transmission};
use crate::blast::rate::{RateChoice, RateControl};
use crate::blast::send_buffer::SendBuffer;
use crate::blast::sending::SenderState;
use farhaul_proto::consts::IP_UDP_HEADER;
use farhaul_proto::endpoint::limit::Limit;
use farhaul_proto::error::{ControlFault, PeerMisbehaved};
use farhaul_proto::loss::SendList;
use farhaul_proto::pacer::Pacer;
use farhaul_proto::stats::Stats;
use farhaul_proto::timer::Timer;

/// Bytes of a stored packet before its block: room for the tag, and the header.
const STORED_HEADER: usize = TAG_LEN + HEADER_LEN;
/// Pause between repetitions of the last block by the original's rule, to which the present delay is added: ten times
/// the longest delay (tsunami-udp 1.1).
const LAST_SPACING: Duration = Duration::from_millis(100);
/// Addition to the RTT before the last block is repeated promptly. Feedback of the receiver takes so long.
const PROMPT_SLACK: Duration = Duration::from_millis(20);

/// The sending end.
#[derive(Debug)]
pub(crate) struct Sender {
    options: Options,
    state: SenderState,
    buffer: SendBuffer<STORED_HEADER>,
    losses: SendList,
    /// Blocks that were sent again less than an RTT ago.
    resent: Lately,
    control: RateControl,
    delay: Delay,
    silence: Silence,
    pacer: Pacer,
    /// The next block in its turn. A restart moves it back, before the next one of the buffer.
    next: SeqNo,
    /// Everything written must leave, even a block that is not full.
    flushed: bool,
    /// One after the block that last left as the last one.
    announced: SeqNo,
    /// The last block must leave again.
    repeats: bool,
    /// Fires when the last block must be repeated.
    tail: Timer,
}

impl Sender {
    /// A sender whose first block has the number `first`.
    pub(crate) fn new(first: SeqNo, options: &Options, setup: &Setup<'_>) -> Self {
        let payload = setup.payload_size(HEADER_LEN);
        let control = RateControl::of(options.rate, setup);
        let law = Law::new(options.error_threshold, options.slower, options.faster);
        // A search begins slowly by itself.
        let factor = if matches!(options.rate, RateChoice::Auto) { 1.0 } else { delay::START_FACTOR };
        let target = target(options, payload, control.rate());
        let mut pacer = Pacer::default();
        pacer.set_burst_time(setup.config.burst_time);
        if matches!(options.rate, RateChoice::Fixed(_)) {
            pacer.keep_schedule();
        }
        let mut sender = Self {
            options: *options,
            state: SenderState::new(setup),
            buffer: SendBuffer::new(first, payload, setup),
            losses: SendList::new(first),
            resent: Lately::new(first, setup.now),
            control,
            delay: Delay::new(law, target, factor),
            silence: Silence::new(setup.now),
            pacer,
            next: first,
            flushed: false,
            announced: first,
            repeats: false,
            tail: Timer::stopped(),
        };
        sender.pace();
        sender
    }

    /// One after the last block that ever left.
    const fn high(&self) -> SeqNo {
        self.buffer.next
    }

    fn in_flight(&self) -> u32 {
        self.buffer.in_flight().len()
    }

    /// One after the last block that may leave. One that is not full waits for more, or for a flush.
    fn sendable_end(&self) -> SeqNo {
        let end = self.buffer.store.end();
        let waits = self.high().is_before(end) && !self.buffer.store.is_full(end.minus(1));
        if waits && !self.flushed { end.minus(1) } else { end }
    }

    fn has_new(&self) -> bool {
        self.next.is_before(self.sendable_end())
    }

    // ---- the rate ----

    fn pace(&mut self) {
        self.pacer.set_period(SendPeriod::from_micros(self.delay.micros()), self.state.round_trip);
    }

    fn retarget(&mut self) {
        let payload = self.buffer.store.payload_size();
        self.delay.set_target(target(&self.options, payload, self.control.rate()));
        self.pace();
    }

    /// How long after its last block the sender repeats it.
    fn last_spacing(&self) -> Duration {
        let original = LAST_SPACING + Duration::from_nanos((self.delay.micros() * 1e3) as u64);
        if self.options.prompt {
            (self.state.round_trip + self.state.round_trip / 4 + PROMPT_SLACK).min(original)
        } else {
            original
        }
    }

    // ---- requests ----

    fn handle_request(&mut self, now: Instant, request: Request) -> Result<(), PeerMisbehaved> {
        self.silence.on_record(now);
        self.state.counts.naks += 1;
        self.resent.turn(now, self.state.round_trip / 2);
        match request {
            Request::Retransmit(block) => self.ask(block, block),
            Request::RetransmitRange { first, last } => self.ask(first, last),
            Request::Restart(block) => self.restart(block),
            Request::ErrorRate(error) => {
                self.delay.on_report(error);
                self.pace();
                Ok(())
            }
            Request::Stop => Err(PeerMisbehaved::out_of_turn("a stop record")),
        }
    }

    /// The receiver asks for these blocks. Those that it has by now are no fault, because records cross the news.
    fn ask(&mut self, first: u32, last: u32) -> Result<(), PeerMisbehaved> {
        let (first, last) = (self.known(first)?, self.known(last)?);
        let flight = SeqRange::new(self.buffer.store.first(), self.next.minus(1));
        // Blocks between a restart and the last one sent leave again in their turn.
        let Some(mut asked) = SeqRange::new(first.later(self.buffer.store.first()), last).clip(flight) else {
            return Ok(());
        };
        while self.options.prompt {
            let Some(run) = self.resent.first_run_without(asked) else { return Ok(()) };
            self.state.counts.lost += u64::from(self.losses.report(run));
            if run.last == asked.last {
                return Ok(());
            }
            asked.first = run.last.next();
        }
        self.state.counts.lost += u64::from(self.losses.report(asked));
        Ok(())
    }

    /// The next block is the one after this.
    fn restart(&mut self, block: u32) -> Result<(), PeerMisbehaved> {
        let next = self.known(block)?.next().later(self.buffer.store.first());
        if next.is_before(self.next) {
            self.losses.forget(SeqRange::new(next, self.next.minus(1)));
            self.next = next;
            self.tail.stop();
        }
        Ok(())
    }

    /// A block number of the peer.
    fn known(&self, block: u32) -> Result<SeqNo, PeerMisbehaved> {
        let seq = SeqNo::new(block);
        if seq.value() == block && seq.is_before(self.high()) {
            return Ok(seq);
        }
        Err(PeerMisbehaved::out_of_range("the number of a requested block", block.into(), "a block that was sent"))
    }

    // ---- transmissions ----

    /// Listed blocks that make one train: at most `most`, and a short one ends it.
    fn plan_repair(&self, first: SeqNo, most: u32) -> Transmission {
        let packets = self.buffer.train(first, most, |from| self.losses.next_after(from, self.high()));
        Transmission { first: number(first), packets, again: true }
    }

    /// Copies the blocks of a plan into `scratch`.
    fn gather<'a>(&mut self, plan: Transmission, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        scratch.clear();
        let (mut left, mut segment) = (plan.packets, 0);
        while left > 0 {
            let seq = self.losses.first()?;
            let listed = self.losses.run_length(seq, left);
            let run = self.buffer.store.run(seq, listed)?;
            segment = run.segment_size;
            let at = scratch.len();
            scratch.extend_from_slice(run.bytes);
            let packets = run.packets;
            mark(&mut scratch[at..], segment, Kind::Retransmission);
            self.losses.served(seq, packets);
            self.resent.insert(SeqRange::new(seq, seq.plus(packets - 1)));
            left -= packets;
        }
        Some((segment, scratch))
    }

    fn on_transmitted(&mut self, now: Instant, plan: Transmission) {
        self.state.on_sent(plan);
        self.control.on_sent(now, plan.packets, plan.packets as usize * self.buffer.size());
        self.pacer.on_sent(now, plan.packets);
        if self.silence.on_sent(now, plan.packets) {
            self.delay.on_report(delay::ALL);
            self.pace();
        }
        if !self.has_new() {
            self.tail.set(now + self.last_spacing());
        }
    }

    /// Notes why nothing leaves although pacing permits it.
    fn note_nothing_to_send(&mut self, now: Instant) {
        self.pacer.hold();
        self.state.rest(now, self.in_flight() == 0);
    }
}

/// The target delay for `rate`, µs.
fn target(options: &Options, payload: usize, rate: Rate) -> f64 {
    if options.exact {
        delay::exact_target(payload + STORED_HEADER + IP_UDP_HEADER as usize, rate)
    } else {
        delay::whole_target(payload, rate)
    }
}

/// The number of a block in a transmission.
fn number(block: SeqNo) -> u64 {
    u64::from(block.value())
}

/// Sets the type of each datagram.
fn mark(datagrams: &mut [u8], segment: usize, kind: Kind) {
    for datagram in datagrams.chunks_mut(segment) {
        if let Some(word) = datagram.get_mut(STORED_HEADER - 2..STORED_HEADER) {
            word.copy_from_slice(&kind.word().to_be_bytes());
        }
    }
}

impl engine::Sender for Sender {
    fn state_mut(&mut self) -> &mut SenderState {
        &mut self.state
    }

    fn room(&self) -> usize {
        self.buffer.room(None, &self.pacer)
    }

    fn write(&mut self, _now: Instant, data: &[u8]) -> usize {
        let taken = data.len().min(self.room());
        self.buffer.write(&data[..taken], self.high(), |seq, header| {
            header.copy_from_slice(&Header { block: seq.value(), kind: Kind::Original }.bytes());
        });
        self.flushed &= taken == 0;
        taken
    }

    fn flush(&mut self, _now: Instant) {
        self.flushed = true;
        // The last block left before anybody knew that it is the last.
        let unannounced = self.announced != self.high() && self.in_flight() > 0;
        self.repeats |= unannounced && self.high() == self.buffer.store.end() && self.next == self.high();
    }

    fn is_delivered(&self) -> bool {
        self.buffer.is_delivered()
    }

    fn handle_record(&mut self, now: Instant, bytes: &[u8]) -> Result<Option<usize>, PeerMisbehaved> {
        let Some(record) = bytes.first_chunk() else { return Ok(None) };
        let request = Request::decode(record).map_err(|UnknownRequest(kind)| {
            PeerMisbehaved::ControlRecord(ControlFault::UnknownType(u32::from(kind)))
        })?;
        self.handle_request(now, request)?;
        Ok(Some(Request::LEN))
    }

    fn on_delivered(&mut self, _now: Instant, offset: u64) {
        let to = self.buffer.delivered_until(offset);
        self.buffer.release(to);
        self.losses.acknowledge(to);
        self.resent.advance(to);
        self.next = self.next.later(to);
        if self.in_flight() == 0 {
            self.tail.stop();
            self.repeats = false;
        }
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        self.control.on_feedback(now, feedback);
        if matches!(self.options.rate, RateChoice::Auto) {
            self.retarget();
        }
    }

    fn set_round_trip(&mut self, round_trip: Duration) {
        self.state.round_trip = round_trip;
        self.retarget();
    }

    fn plan(&mut self, now: Instant) -> Option<Transmission> {
        let waits = self.has_new() || self.repeats || !self.losses.is_empty();
        if !waits {
            self.note_nothing_to_send(now);
            return None;
        }
        let allowance = self.pacer.allowance(now);
        if allowance == 0 {
            self.state.limits.set(Limit::Congestion, now);
            return None;
        }
        self.resent.turn(now, self.state.round_trip / 2);
        if let Some(first) = self.losses.first() {
            return Some(self.plan_repair(first, allowance));
        }
        if self.has_new() {
            let waiting = SeqRange::new(self.next, self.sendable_end().minus(1)).len();
            let run = self.buffer.store.run(self.next, waiting.min(allowance))?;
            return Some(Transmission {
                first: number(self.next),
                packets: run.packets,
                again: self.next.is_before(self.high()),
            });
        }
        Some(Transmission { first: number(self.high().minus(1)), packets: 1, again: true })
    }

    fn emit<'a>(&'a mut self, now: Instant, plan: Transmission, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        let first = SeqNo::new(plan.first as u32);
        if self.losses.contains(first) {
            self.on_transmitted(now, plan);
            return self.gather(plan, scratch);
        }
        let after = first.plus(plan.packets);
        let in_turn = first == self.next;
        let last = !in_turn || (self.flushed && after == self.buffer.store.end());
        if in_turn {
            self.next = after;
            self.buffer.next = self.buffer.next.later(after);
        } else {
            self.repeats = false;
        }
        if last {
            self.announced = after;
        }
        self.on_transmitted(now, plan);
        let run = self.buffer.store.run(first, plan.packets)?;
        if plan.again {
            mark(run.bytes, run.segment_size, Kind::Original);
        }
        if last {
            let at = (run.packets as usize - 1) * run.segment_size;
            mark(&mut run.bytes[at..], run.segment_size, Kind::Last);
        }
        Some((run.segment_size, run.bytes))
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.tail.fires(now) && self.in_flight() > 0 && self.next == self.high() {
            self.repeats = true;
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let waits = self.has_new() || self.repeats || !self.losses.is_empty();
        let paced = self.pacer.deadline().filter(|_| waits);
        [paced, self.tail.deadline()].into_iter().flatten().min()
    }

    fn on_suspended(&mut self, now: Instant, _gap: Duration) {
        self.silence = Silence::new(now);
    }

    fn fill_stats(&self, now: Instant, stats: &mut Stats) {
        self.state.fill_stats(now, stats);
        self.buffer.fill_stats(None, &self.pacer, stats);
        stats.send_period = SendPeriod::from_micros(self.delay.micros());
        stats.memory += (self.losses.memory() + self.resent.memory()) as u64;
    }
}
