//! The connection as the endpoint sees it: the trait `Established`, which every call goes through.

use bytes::Bytes;
use delegate::delegate;
use farhaul_cc::Controller;
use farhaul_units::{Duration, Instant, Rate};
use farhaul_wire::udt4::{Control, DataHeader, is_control, is_handshake};

use super::{MAX_CUSTOM, UdtConnection};
use crate::config::Mode;
use crate::endpoint::closing::CloseKind;
use crate::endpoint::expiry::SilenceAction;
use crate::endpoint::protocol::{self, Effect, Output, Setup};
use crate::error::ConnectionLost;
use crate::stats::Stats;
use crate::transport::{MessageOptions, StreamError, earliest};
use crate::udt::half_close::HalfClose;

impl UdtConnection {
    /// One packet of the peer.
    #[inline]
    pub(crate) fn on_packet(&mut self, datagram: &[u8], now: Instant) -> Effect {
        if is_handshake(datagram) {
            let Ok((_, _, Control::Handshake(packet))) = Control::decode(datagram) else { return Effect::Invalid };
            self.on_late_handshake(&packet, now);
            return Effect::GoOn;
        }
        if is_control(datagram) {
            let Ok((sent, _, control)) = Control::decode(datagram) else { return self.refuse() };
            self.liveness.expiry.on_heard(now);
            let stamp = self.stamp(now);
            return self.on_control(&control, sent, stamp, now);
        }
        let Ok((header, payload)) = DataHeader::decode(datagram) else { return self.refuse() };
        self.on_data(&header, payload, now)
    }

    /// All packets of one receive call were handled.
    pub(crate) fn end_batch(&mut self, now: Instant) -> Effect {
        self.take_arrivals(now);
        self.look_at_controller(now)
    }

    fn take_arrivals(&mut self, now: Instant) {
        if !self.receiver.finish_batch(now, &self.rtt) {
            return;
        }
        self.liveness.gap.look(&self.receiver.buffer, now);
        if let Some(half_close) = &mut self.half_close {
            half_close.on_arrival(&self.receiver.buffer, now, self.rtt.with_margin());
        }
        if self.congestion.controller.wants_packets() {
            self.report_received(now);
        }
    }
}

impl protocol::Established for UdtConnection {
    // ---- input ----

    fn begin_batch(&mut self, arrived: Instant) {
        self.receiver.begin_batch(arrived);
    }

    fn on_datagram(&mut self, datagram: &mut [u8], setup: Setup<'_>) -> Effect {
        self.on_packet(datagram, setup.now)
    }

    fn finish_batch(&mut self, setup: Setup<'_>) -> Effect {
        self.end_batch(setup.now)
    }

    fn note_drops(&mut self, now: Instant, buffer: u64) {
        self.receiver.note_drops(now, buffer, self.rtt.min());
    }

    fn handle_timeout(&mut self, now: Instant) -> Effect {
        if self.has_failed() {
            return self.look_at_controller(now);
        }
        let round_trip = self.rtt.with_margin();
        let stalls = self.sender.handle_timeout(now, round_trip, self.liveness.expiry.last_heard());
        self.time_discovery(now, stalls);
        self.report_losses(now);
        self.receiver.naks.handle_timeout(now, &self.receiver.buffer, &self.rtt);
        if let Some(half_close) = &mut self.half_close {
            half_close.handle_timeout(now);
        }
        if let Some(kind) = self.challenge.poll_confirmed(now) {
            let complete = kind == CloseKind::Closed && self.is_complete();
            return Effect::PeerClosed { complete, delivered: !self.sender.has_data() };
        }
        let (is_flushed, in_flight) = (self.sender.is_flushed(), self.sender.expects_answer());
        match self.liveness.check(now, is_flushed, in_flight, round_trip) {
            Err(reason) => return Effect::Lost(reason),
            Ok(SilenceAction::KeepAlive) if !self.sender.has_data() => {
                self.sender.shrink();
                self.receiver.buffer.shrink();
            }
            Ok(SilenceAction::Ask) => self.receiver.acks.demand_confirmation(),
            Ok(SilenceAction::Expired(count)) => self.on_expiration(count, now),
            Ok(_) => {}
        }
        Effect::GoOn
    }

    fn on_suspended(&mut self, now: Instant, gap: Duration) {
        self.liveness.on_suspended(now);
        if let Some(half_close) = &mut self.half_close {
            half_close.on_suspended(gap);
        }
    }

    // ---- output ----

    fn poll(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<Output> {
        if let Some(answer) = self.answer.poll(now) {
            Control::Handshake(answer).encode(self.stamp(now), self.peer_id, scratch);
            return Some(Output::Scratch);
        }
        if self.poll_control(now, scratch) {
            return Some(Output::Scratch);
        }
        if self.closing.has_begun() || self.has_failed() {
            return None;
        }
        if self.poll_probe(now, scratch) {
            return Some(Output::Probe);
        }
        self.planned = self.plan(now);
        if self.planned.is_some() {
            return Some(Output::Data);
        }
        // Messages may just have been given up, which the peer is told before it gets what follows them. Or the controller has a
        // message of its own.
        let may_speak = self.sender.has_drops() || !self.custom.is_empty();
        (may_speak && self.poll_control(now, scratch)).then_some(Output::Scratch)
    }

    fn emit<'a>(&'a mut self, now: Instant, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        let run = self.emit_by(now, (scratch, None))?;
        Some((run.segment_size, run.bytes))
    }

    fn deadline(&self, now: Instant) -> Option<Instant> {
        let answer = self.answer.deadline(now);
        if self.must_end() {
            return Some(now);
        }
        if self.closing.has_begun() {
            // It repeats its last acknowledgement until the peer confirms it. A peer that missed it would take the
            // shutdown for an abort.
            let closing = earliest(self.closing.deadline(), self.receiver.acks.deadline(now));
            return earliest(answer, closing);
        }
        [
            answer,
            self.sender.deadline(),
            self.losses.deadline(),
            self.receiver.ack_deadline(now),
            self.receiver.naks.deadline(&self.rtt),
            self.challenge.deadline(),
            self.liveness.deadline(self.sender.is_flushed()),
            self.discovery_deadline(),
            self.half_close.as_ref().and_then(HalfClose::deadline),
        ]
        .into_iter()
        .fold(None, earliest)
    }

    // ---- commands ----

    fn write(&mut self, now: Instant, data: &[u8]) -> usize {
        self.begin_work(now);
        let taken = self.sender.write(data);
        self.counts.bytes_written += taken as u64;
        taken
    }

    fn write_block(&mut self, now: Instant, block: Bytes) -> usize {
        self.begin_work(now);
        let taken = self.sender.write_block(block);
        self.counts.bytes_written += taken as u64;
        taken
    }

    delegate! {
        to self.sender.buffer() {
            fn whole_trains(&self, bytes: usize) -> usize;
        }
        to self.sender {
            fn room(&self) -> u64;
            fn has_room_again(&mut self) -> bool;
            fn is_flushed(&self) -> bool;
        }
        to self.receiver.buffer {
            #[call(available)]
            fn readable(&self) -> u64;
            #[call(is_contiguous)]
            fn is_complete(&self) -> bool;
        }
    }

    fn read(&mut self, _now: Instant, out: &mut [u8]) -> usize {
        let read = self.receiver.buffer.read(out);
        if read > 0 {
            self.note_read(read);
        }
        read
    }

    fn read_block(&mut self, _now: Instant) -> Bytes {
        let block = self.receiver.buffer.read_block();
        if !block.is_empty() {
            self.note_read(block.len());
        }
        block
    }

    fn can_read(&mut self) -> bool {
        match self.mode {
            Mode::Stream => self.readable() > 0 || self.is_read_to_end(),
            Mode::Message => self.receiver.buffer.next_message().is_some(),
        }
    }

    fn has_half_close(&self) -> bool {
        self.half_close.is_some()
    }

    fn finish_sending(&mut self, now: Instant) {
        if self.half_close.as_mut().is_some_and(HalfClose::end) {
            self.begin_work(now);
            self.sender.write_end();
        }
    }

    fn begin_linger(&mut self, now: Instant, linger: Duration) {
        self.liveness.progress.set_patience(now, linger);
    }

    fn begin_close(&mut self, now: Instant, kind: CloseKind) {
        self.closing.begin(now, kind);
    }

    fn is_close_sent(&self) -> bool {
        self.closing.is_sent()
    }

    fn close(&mut self) {
        let path = self.path(self.opened);
        let limited = self.sender.limits().by_congestion();
        self.recollection.keep(&mut self.congestion.controller, &path, limited);
        self.congestion.controller.on_close();
    }

    fn is_gone(&self) -> bool {
        !self.has_failed() || self.closing.is_sent()
    }

    fn set_max_rate(&mut self, now: Instant, rate: Option<Rate>) -> bool {
        self.max_rate = rate;
        self.congestion.set_min_period(self.min_period());
        self.apply_control();
        self.sender.hasten(now);
        true
    }

    fn set_controller(&mut self, now: Instant, controller: Box<dyn Controller>) -> bool {
        self.replace_controller(now, controller);
        true
    }

    // ---- messages, signals ----

    fn write_message(&mut self, now: Instant, message: &[u8], options: MessageOptions) -> Result<bool, StreamError> {
        self.begin_work(now);
        let longest = self.longest_message();
        if message.len() as u64 > longest {
            return Err(StreamError::MessageTooLong(longest));
        }
        let expires = options.ttl.map(|ttl| now + ttl);
        let taken = self.sender.write_message(message, options.in_order, expires);
        if taken {
            self.counts.bytes_written += message.len() as u64;
        }
        Ok(taken)
    }

    fn read_message(&mut self, out: &mut [u8]) -> Option<usize> {
        let len = self.receiver.buffer.read_message(out)?;
        self.note_read(len);
        Some(len)
    }

    fn signal_error(&mut self, code: u32) {
        self.error_signal = Some(code);
    }

    fn send_custom(&mut self, kind: u16, body: &[u8]) {
        if self.custom.len() < MAX_CUSTOM {
            self.queue_custom(kind, body.to_vec());
        }
    }

    // ---- facts ----

    fn may_close(&self) -> bool {
        self.is_flushed() && !self.half_close.as_ref().is_some_and(HalfClose::owes_confirmation)
    }

    fn has_ended_both(&self) -> bool {
        let ended = |half_close: &HalfClose| half_close.has_ended() && half_close.is_peer_confirmed();
        self.half_close.as_ref().is_some_and(ended) && self.is_flushed()
    }

    fn is_read_to_end(&self) -> bool {
        self.half_close.as_ref().is_some_and(HalfClose::is_peer_complete) && self.readable() == 0
    }

    fn was_heard(&self) -> bool {
        self.liveness.expiry.was_heard()
    }

    fn explain(&self, reason: ConnectionLost) -> ConnectionLost {
        self.liveness.progress.explain(reason)
    }

    fn fill_stats(&self, now: Instant, stats: &mut Stats) {
        self.fill(now, stats);
    }
}
