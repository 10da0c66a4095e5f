//! A connection after its handshake. It routes packets and timers to the parts and carries facts between them.

mod facts;
mod feedback;
mod losses;

use std::collections::VecDeque;

use farhaul_cc::{SentEvent, TimeoutEvent};
use farhaul_units::{AckNo, Duration, Instant, Rng, SeqNo};
use farhaul_wire::DecodeError;
use farhaul_wire::udt4::{
    CONNECTION_BROKEN, Control, DataHeader, HEADER_LEN, LossList, SocketId, Timestamp, encode_losses, is_control,
};

use self::losses::Losses;
use super::challenge::{Challenge, silence};
use super::congestion::Congestion;
use super::consts::IP_UDP_HEADER;
use super::handshake::Agreed;
use super::receiver::{Receiver, Sizes};
use super::sender::{Sender, Transmission};
use crate::buffer::Run;
use crate::config::{Config, Mode};
use crate::error::ConnectionLost;
use crate::estimate::Rtt;
use crate::shell::expiry::{Expiry, SilenceAction};
use crate::shell::farewell::{Farewell, Parting};
use crate::shell::gap::Gap;
use crate::shell::progress::Progress;
use crate::stats::Totals;
use crate::transport::earliest;

/// Most custom control messages that wait to be sent.
const MAX_CUSTOM: usize = 64;

/// Both halves of a connection with their shared state.
#[derive(Debug)]
pub(crate) struct Established {
    peer_id: SocketId,
    /// Sequence number of the peer's first packet.
    peer_isn: SeqNo,
    mss: u32,
    /// The packet size that the peer requested.
    peer_mss: u32,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) farewell: Farewell,
    challenge: Challenge,
    progress: Progress,
    gap: Gap,
    rtt: Rtt,
    congestion: Congestion,
    /// The last burst, if the controller wants events for packets and has not received this one.
    burst: Option<SentEvent>,
    expiry: Expiry,
    max_window: u32,
    confirmations: VecDeque<AckNo>,
    keep_alive: bool,
    error_signal: Option<u32>,
    custom: VecDeque<(u16, Vec<u8>)>,
    losses: Losses,
    counts: Totals,
}

/// The meaning of a packet or a timer for the connection as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    GoOn,
    /// The peer closed or aborted.
    PeerLeft(Parting),
    /// The peer, or a forger, reported an error.
    Complained(u32),
    Lost(ConnectionLost),
}

impl Established {
    pub(crate) fn new(agreed: &Agreed, mode: Mode, config: &Config, now: Instant, rng: &mut Rng) -> Self {
        let overhead = IP_UDP_HEADER + HEADER_LEN as u32;
        let full = (agreed.mss - overhead) as usize;
        let storage = (config.mss - overhead) as usize;
        let controller = (config.controller)(rng.next_u64());
        let min_period = config.max_rate.map(|rate| farhaul_units::SendPeriod::from_rate(rate, agreed.mss));
        let expiry = Expiry::new(now, config.peer_timeout, config.keep_alive, rng.fork());
        let mut established = Self {
            peer_id: agreed.peer_id,
            peer_isn: agreed.recv_isn,
            mss: agreed.mss,
            peer_mss: agreed.peer_mss,
            sender: Sender::new(
                agreed.send_isn,
                full,
                agreed.peer_id,
                agreed.flow_window,
                config.send_buffer,
                rng.fork(),
            ),
            receiver: Receiver::new(
                agreed.recv_isn,
                mode,
                Sizes { storage, full, max_window: config.recv_window(config.udt.max_flow_window) },
                config.udt.reorder_tolerance,
                now,
            ),
            farewell: Farewell::default(),
            challenge: Challenge::default(),
            progress: Progress::new(now, config.stall_timeout, config.min_progress),
            gap: Gap::new(agreed.recv_isn, config.peer_timeout),
            rtt: Rtt::new(),
            congestion: Congestion::new(controller, min_period.unwrap_or_default(), now),
            burst: None,
            expiry,
            max_window: agreed.flow_window,
            confirmations: VecDeque::new(),
            // The first packet after the handshake shows a listener or a rendezvous peer that the connection is
            // established.
            keep_alive: true,
            error_signal: None,
            custom: VecDeque::new(),
            losses: Losses::new(now),
            counts: Totals::default(),
        };
        established.receiver.acks.number_from(config.udt.initial_ack);
        established.sender.number_messages_from(config.udt.initial_message);
        established.sender.set_burst_time(config.burst_time);
        if let Some(sample) = agreed.round_trip {
            established.rtt.sample(sample, now);
        }
        let path = established.path(now);
        established.congestion.on_connect(&path);
        established.apply_control();
        established
    }

    // ---- input ----

    /// Handles one datagram of the peer, data or control. [`finish_batch`](Self::finish_batch) concludes the batch.
    ///
    /// `stamp` is the time stamp of a packet sent now.
    pub(crate) fn on_datagram(
        &mut self,
        datagram: &[u8],
        stamp: Timestamp,
        now: Instant,
    ) -> Result<Effect, DecodeError> {
        if !is_control(datagram) {
            let (header, payload) = DataHeader::decode(datagram)?;
            self.expiry.on_heard(now);
            self.receiver.on_data(&header, payload, now, &self.rtt);
            self.note_sign_of_life(now);
            return Ok(Effect::GoOn);
        }
        let (_, _, control) = Control::decode(datagram)?;
        self.expiry.on_heard(now);
        Ok(self.on_control(&control, stamp, now))
    }

    /// The next datagrams reached this computer at `arrived`.
    pub(crate) fn begin_batch(&mut self, arrived: Instant) {
        self.receiver.begin_batch(arrived);
    }

    /// All datagrams of one receive call were handled.
    pub(crate) fn finish_batch(&mut self, now: Instant) {
        let Some(received) = self.receiver.finish_batch(now, &self.rtt) else { return };
        self.gap.look(&self.receiver.buffer, now);
        if self.congestion.wants_packets() {
            let path = self.path(now);
            self.congestion.on_received(&path, &received);
            self.apply_control();
        }
    }

    fn on_control(&mut self, control: &Control<'_>, stamp: Timestamp, now: Instant) -> Effect {
        match control {
            Control::Ack(ack) => self.on_ack(ack, stamp, now),
            Control::Nak(list) => self.on_nak(list, stamp, now),
            Control::Ack2(number) => {
                if let Some(sample) = self.receiver.acks.on_ack2(*number, now) {
                    self.rtt.sample(sample, now);
                    self.challenge.on_answer(now.saturating_sub(sample));
                }
            }
            // A side that is leaving need not know whether the peer does.
            Control::Shutdown if self.farewell.has_begun() => {}
            Control::Shutdown => self.challenge.on_parting(now, Parting::Closed, self.silence()),
            Control::DropRequest(request) => {
                self.receiver.on_drop_request(request, now);
                self.gap.look(&self.receiver.buffer, now);
            }
            Control::CongestionWarning => {
                let path = self.path(now);
                self.congestion.on_warning(&path);
                self.apply_control();
            }
            Control::ErrorSignal(CONNECTION_BROKEN) => {
                self.counts.error_signals_received += 1;
                if !self.farewell.has_begun() {
                    self.challenge.on_parting(now, Parting::Aborted, self.silence());
                }
            }
            Control::ErrorSignal(code) => {
                self.counts.error_signals_received += 1;
                if self.progress.on_complaint(now, *code) {
                    return Effect::Complained(*code);
                }
            }
            Control::Custom { kind, body } => {
                let path = self.path(now);
                self.congestion.on_custom_message(&path, *kind, body);
                self.apply_control();
            }
            // The connection handles handshakes. The arrival of a keep-alive is its only content.
            _ => {}
        }
        Effect::GoOn
    }

    /// A plausible packet arrived, so an earlier shutdown may have been forged (attack B1).
    fn note_sign_of_life(&mut self, now: Instant) {
        if self.challenge.is_on() {
            self.challenge.on_sign_of_life(now, self.silence());
        }
    }

    fn silence(&self) -> Duration {
        let settled = self.receiver.buffer.is_contiguous() && !self.sender.has_data();
        silence(self.rtt.with_margin(), settled)
    }

    /// Fires due timers. The caller reads the deadline anew afterwards.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Effect {
        let round_trip = self.rtt.with_margin();
        self.sender.handle_timeout(now, round_trip);
        self.tell_losses(now);
        self.receiver.naks.handle_timeout(now, &self.receiver.buffer, &self.rtt);
        if let Some(parting) = self.challenge.poll_belief(now) {
            return Effect::PeerLeft(parting);
        }
        if self.sender.is_flushed() {
            self.progress.restart(now);
        } else if let Some(reason) = self.progress.check(now) {
            return Effect::Lost(reason);
        }
        if let Some(reason) = self.gap.check(now) {
            return Effect::Lost(reason);
        }
        match self.expiry.handle_timeout(now, self.sender.expects_answer(), round_trip) {
            SilenceAction::Nothing => {}
            SilenceAction::KeepAlive => {
                self.keep_alive = true;
                if !self.sender.has_data() {
                    self.sender.shrink();
                    self.receiver.buffer.shrink();
                }
            }
            SilenceAction::Ask => self.receiver.acks.demand_confirmation(),
            SilenceAction::Expired(count) => self.on_expiration(count, now),
            SilenceAction::Silent(time) => return Effect::Lost(ConnectionLost::PeerSilent(time)),
        }
        Effect::GoOn
    }

    /// This computer was suspended (attack B20). All time limits start again, and a keep-alive asks the peer.
    pub(crate) fn on_suspended(&mut self, now: Instant) {
        self.expiry.on_suspended(now);
        self.progress.restart(now);
        self.gap.restart(now);
        self.keep_alive = true;
    }

    fn on_expiration(&mut self, count: u32, now: Instant) {
        self.counts.timeouts += 1;
        self.sender.on_expiration();
        let mut event = TimeoutEvent::default();
        event.count = count;
        event.largest_sent = self.sender.next().minus(1);
        let path = self.path(now);
        self.congestion.on_timeout(&path, &event);
        self.apply_control();
    }

    // ---- output ----

    /// Writes one due control packet into `out`. Returns false if none is due.
    pub(crate) fn poll_control(&mut self, now: Instant, open: bool, out: &mut Vec<u8>) -> bool {
        let (peer, stamp) = (self.peer_id, Timestamp::ZERO);
        if self.challenge.poll_question(now) {
            self.receiver.acks.demand_confirmation();
        }
        if let Some(number) = self.confirmations.pop_front() {
            Control::Ack2(number).encode(stamp, peer, out);
        } else if let Some(ack) = self.receiver.poll_ack(now, &self.rtt) {
            Control::Ack(ack).encode(stamp, peer, out);
        } else if self.receiver.naks.is_pending() {
            self.encode_nak(out);
        } else if let Some(request) = self.sender.poll_drop() {
            Control::DropRequest(request).encode(stamp, peer, out);
        } else if std::mem::take(&mut self.keep_alive) {
            Control::KeepAlive.encode(stamp, peer, out);
        } else if let Some(code) = self.error_signal.take() {
            Control::ErrorSignal(code).encode(stamp, peer, out);
        } else if let Some((kind, body)) = self.custom.pop_front() {
            Control::Custom { kind, body: &body }.encode(stamp, peer, out);
        } else if let Some(parting) = (!open).then(|| self.farewell.poll(now, self.rtt.with_margin())).flatten() {
            let control = match parting {
                Parting::Closed => Control::Shutdown,
                Parting::Aborted => Control::ErrorSignal(CONNECTION_BROKEN),
            };
            control.encode(stamp, peer, out);
        } else {
            return false;
        }
        self.expiry.on_sent(now);
        true
    }

    /// Writes a loss report with as many ranges as fit in a packet.
    fn encode_nak(&mut self, out: &mut Vec<u8>) {
        let max_words = (self.mss - IP_UDP_HEADER) as usize / 4 - HEADER_LEN / 4;
        let mut body = Vec::with_capacity(8);
        self.receiver.naks.poll(|ranges| encode_losses(ranges.iter().copied(), max_words, &mut body));
        if let Ok(list) = LossList::from_body(&body) {
            Control::Nak(list).encode(Timestamp::ZERO, self.peer_id, out);
        }
    }

    /// Data packets that may leave now.
    pub(crate) fn plan(&mut self, now: Instant, stamp: Timestamp) -> Option<Transmission> {
        if let Some(burst) = self.burst.take() {
            let path = self.path(now);
            self.congestion.on_sent(&path, &burst);
            self.apply_control();
        }
        self.sender.plan(now, stamp, self.rtt.smoothed())
    }

    /// The datagrams of a transmission. They count as sent.
    pub(crate) fn emit(&mut self, transmission: Transmission, now: Instant, stamp: Timestamp) -> Option<Run<'_>> {
        if self.sender.in_flight() == 0 {
            self.expiry.watch(now, self.rtt.with_margin());
        }
        self.expiry.on_sent(now);
        let run = self.sender.emit(transmission, now, stamp, self.rtt.with_margin())?;
        self.congestion.note_sent(now, run.packets);
        if self.congestion.wants_packets() {
            self.burst = Some(transmission.event(run.packets));
        }
        Some(run)
    }

    pub(crate) fn deadline(&self, now: Instant) -> Option<Instant> {
        let progress = self.progress.deadline().filter(|_| !self.sender.is_flushed());
        [
            self.sender.deadline(),
            self.losses.deadline(),
            self.receiver.acks.deadline(now),
            self.receiver.naks.deadline(&self.rtt),
            self.challenge.deadline(),
            self.expiry.deadline(),
            self.gap.deadline(),
            progress,
        ]
        .into_iter()
        .fold(None, earliest)
    }

    /// The same for a side that has closed. It repeats its last acknowledgement until the peer confirms it. A peer that
    /// missed it would take the shutdown for an abort.
    pub(crate) fn leaving_deadline(&self, now: Instant) -> Option<Instant> {
        earliest(self.farewell.deadline(), self.receiver.acks.deadline(now))
    }

    // ---- commands ----

    /// Payload bytes of the longest message that the peer can hold.
    pub(crate) fn longest_message(&self) -> u64 {
        u64::from(self.max_window) * self.sender.buffer().payload_size() as u64
    }

    /// Tells the peer that this side cannot store the data (type 8).
    pub(crate) fn signal_error(&mut self, code: u32) {
        self.error_signal = Some(code);
    }

    /// Queues a user-defined control packet, or drops it if too many wait.
    pub(crate) fn send_custom(&mut self, kind: u16, body: &[u8]) {
        let fits = body.len() <= self.mss as usize - IP_UDP_HEADER as usize - HEADER_LEN;
        if fits && self.custom.len() < MAX_CUSTOM {
            self.custom.push_back((kind, body.to_vec()));
        }
    }

    pub(crate) fn close(&mut self) {
        self.congestion.on_close();
    }

    /// The application read `bytes`.
    pub(crate) fn on_read(&mut self, bytes: u64) {
        self.counts.bytes_read += bytes;
        self.receiver.on_read(&self.rtt);
    }

    /// The application writes data. If nothing was outstanding, the time without progress starts now.
    pub(crate) fn begin_work(&mut self, now: Instant) {
        if self.sender.is_flushed() {
            self.progress.restart(now);
        }
    }

    /// From now on, `linger` without progress ends the connection.
    pub(crate) fn begin_linger(&mut self, now: Instant, linger: Duration) {
        self.progress.set_patience(now, linger);
    }

    // ---- facts ----

    pub(crate) const fn peer_id(&self) -> SocketId {
        self.peer_id
    }

    pub(crate) const fn peer_isn(&self) -> SeqNo {
        self.peer_isn
    }

    pub(crate) const fn mss(&self) -> u32 {
        self.mss
    }

    pub(crate) const fn peer_mss(&self) -> u32 {
        self.peer_mss
    }

    pub(crate) const fn round_trip(&self) -> Duration {
        self.rtt.smoothed()
    }

    /// The reason of the end, with the peer's reported error taken into account.
    pub(crate) fn explain(&self, reason: ConnectionLost) -> ConnectionLost {
        self.progress.explain(reason)
    }

    /// Whether a valid packet arrived from the peer since the handshake.
    pub(crate) const fn was_heard(&self) -> bool {
        self.expiry.was_heard()
    }

    fn apply_control(&mut self) {
        let control = *self.congestion.control();
        self.sender.apply(&control, self.congestion.send_period(), self.rtt.smoothed());
        self.receiver.acks.set_policy(control.ack_period, control.ack_interval);
        self.expiry.set_rto(control.rto);
    }

    /// The counters that the connection itself updates.
    pub(crate) fn counts(&mut self) -> &mut Totals {
        &mut self.counts
    }
}
