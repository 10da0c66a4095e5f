//! The connection as the endpoint sees it: the trait `Established`, which every call goes through.

use farhaul_units::{Duration, Instant, Rate};
use farhaul_wire::udt2004::{Control, is_control, split_data};

use super::packets::packets_of;
use super::{Udt2004Connection, shortest_period};
use crate::udt2004::handshake::from_udt4;
use farhaul_proto::consts::SYN_INTERVAL;
use farhaul_proto::endpoint::closing::CloseKind;
use farhaul_proto::endpoint::expiry::SilenceAction;
use farhaul_proto::endpoint::protocol::{self, Effect, Output, Setup};
use farhaul_proto::stats::Stats;
use farhaul_proto::transport::earliest;

impl protocol::Established for Udt2004Connection {
    // ---- input ----

    fn begin_batch(&mut self, arrived: Instant) {
        self.receiver.begin_batch(arrived);
    }

    fn on_datagram(&mut self, datagram: &mut [u8], Setup { now, .. }: Setup<'_>) -> Effect {
        if is_control(datagram) {
            return match Control::decode(datagram) {
                Ok(control) => self.on_control(&control, now),
                Err(_) => self.refuse(),
            };
        }
        let Ok((seq, payload)) = split_data(datagram) else { return self.refuse() };
        // Nobody reads what comes after the close, so the peer must not take it for delivered.
        if self.closing.has_begun() {
            self.liveness.expiry.on_heard(now);
            return Effect::GoOn;
        }
        if self.receiver.on_data(seq, payload, now) {
            self.liveness.expiry.on_heard(now);
        } else {
            self.counts.packets_invalid += 1;
        }
        Effect::GoOn
    }

    fn finish_batch(&mut self, Setup { now, .. }: Setup<'_>) -> Effect {
        if self.receiver.finish_batch() {
            self.syn.start(now, SYN_INTERVAL);
            self.liveness.gap.look(&self.receiver.buffer, now);
            self.report_received(now);
        }
        self.look_at_controller(now)
    }

    fn handle_timeout(&mut self, now: Instant) -> Effect {
        if self.has_failed() {
            return self.look_at_controller(now);
        }
        let rtt = self.rtt.smoothed();
        self.receiver.naks.handle_timeout(now, &self.receiver.buffer, rtt);
        if self.syn.fires(now) {
            self.on_syn(now, rtt);
        }
        if let Some(count) = self.exp.handle_timeout(now, self.rtt_of_peer()) {
            self.on_expiration(count, now);
        }
        // No packet of this protocol makes a silent peer answer, and `exp` expires the data.
        let (is_flushed, in_flight) = (!self.sender.has_data(), false);
        match self.liveness.check(now, is_flushed, in_flight, rtt) {
            Err(reason) => return Effect::Lost(reason),
            Ok(SilenceAction::KeepAlive) if !self.sender.has_data() => {
                self.sender.shrink();
                self.receiver.buffer.shrink();
            }
            Ok(_) => {}
        }
        Effect::GoOn
    }

    fn on_suspended(&mut self, now: Instant, _gap: Duration) {
        self.liveness.on_suspended(now);
        self.exp.on_suspended(now, self.rtt_of_peer());
    }

    // ---- output ----

    fn poll(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<Output> {
        if let Some(answer) = self.answer.as_mut().and_then(|answer| answer.poll(now)) {
            Control::Handshake(from_udt4(&answer)).encode(scratch);
            return Some(Output::Scratch);
        }
        if self.poll_control(now, scratch) {
            return Some(Output::Scratch);
        }
        if self.closing.has_begun() {
            return None;
        }
        if self.has_failed() {
            return None;
        }
        self.report_sent(now);
        self.planned = self.sender.plan(now);
        self.planned.map(|_| Output::Data)
    }

    fn emit<'a>(&'a mut self, now: Instant, _scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        let transmission = self.planned.take()?;
        let rtt = self.rtt_of_peer();
        self.liveness.expiry.on_sent(now);
        self.syn.start(now, SYN_INTERVAL);
        self.exp.on_sent(now, rtt);
        let run = self.sender.emit(transmission, now, rtt)?;
        self.congestion.note_sent(now, run.packets);
        if self.congestion.controller.wants_packets() {
            self.sent_packets.list(packets_of(&run, transmission.seq), transmission.again, now);
        }
        Some((run.segment_size, run.bytes))
    }

    fn deadline(&self, now: Instant) -> Option<Instant> {
        let answer = self.answer.as_ref().and_then(|answer| answer.deadline(now));
        if self.closing.has_begun() {
            return earliest(answer, self.closing.deadline());
        }
        if self.has_failed() {
            return Some(now);
        }
        let due = !self.confirmations.is_empty() || self.liveness.wants_keep_alive() || self.receiver.naks.is_pending();
        [
            answer,
            due.then_some(now),
            self.sender.deadline(),
            self.receiver.acks.deadline(),
            self.receiver.naks.deadline(),
            self.syn.deadline(),
            self.exp.deadline(),
            self.liveness.deadline(!self.sender.has_data()),
        ]
        .into_iter()
        .fold(None, earliest)
    }

    // ---- commands ----

    fn write(&mut self, now: Instant, data: &[u8]) -> usize {
        if !self.sender.has_data() {
            self.liveness.progress.restart(now);
        }
        let taken = self.sender.write(data);
        self.counts.bytes_written += taken as u64;
        taken
    }

    fn room(&self) -> u64 {
        self.sender.room()
    }

    fn has_room_again(&mut self) -> bool {
        self.sender.has_room_again()
    }

    fn read(&mut self, now: Instant, out: &mut [u8]) -> usize {
        let before = self.receiver.acknowledged();
        let read = self.receiver.buffer.read(out);
        self.counts.bytes_read += read as u64;
        self.receiver.on_read(now, before);
        read
    }

    fn readable(&self) -> u64 {
        self.receiver.buffer.available()
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

    fn set_max_rate(&mut self, _now: Instant, rate: Option<Rate>) -> bool {
        self.congestion.set_min_period(shortest_period(rate, self.mtu));
        self.apply_control();
        true
    }

    fn close(&mut self) {
        self.congestion.controller.on_close();
    }

    fn is_gone(&self) -> bool {
        !self.has_failed() || self.closing.is_sent()
    }

    // ---- facts ----

    fn is_flushed(&self) -> bool {
        !self.sender.has_data()
    }

    fn is_complete(&self) -> bool {
        self.receiver.buffer.is_contiguous()
    }

    fn was_heard(&self) -> bool {
        self.liveness.expiry.was_heard()
    }

    fn close_kind(&self) -> CloseKind {
        // The close packet tells the peer whether it has all data.
        CloseKind::Closed
    }

    fn fill_stats(&self, now: Instant, stats: &mut Stats) {
        self.fill(now, stats);
    }
}
