//! A connection after its handshake: routes packets and timers to the parts and carries facts between them.

use std::collections::VecDeque;

use farhaul_cc::{AckEvent, LossEvent, Path, TimeoutEvent};
use farhaul_units::{AckNo, Duration, Instant, Rng, SeqNo, SeqRange};
use farhaul_wire::DecodeError;
use farhaul_wire::udt4::{
    Ack, Control, DataHeader, HEADER_LEN, LossList, SocketId, Timestamp, encode_losses, is_control,
};

use super::congestion::Congestion;
use super::consts::{IP_UDP_HEADER, SYN_INTERVAL};
use super::expiry::{Expiry, Outcome};
use super::farewell::{Farewell, silence};
use super::handshake::Agreed;
use super::limit::Limit;
use super::receiver::{Receiver, Sizes};
use super::sender::{Plan, Sender};
use crate::buffer::Run;
use crate::config::{Config, Mode};
use crate::error::ConnectionLost;
use crate::estimate::Rtt;
use crate::stats::{Stats, Totals};
use crate::transport::earliest;

/// Confirmations (ACK2) that wait to be sent at most: a peer that sends more acknowledgements between two of our turns
/// gets the newest ones confirmed.
const MAX_CONFIRMATIONS: usize = 16;
/// Full acknowledgements whose round-trip time is the receiver's first guess, and not a measurement.
const GUESSED_REPORTS: u64 = 4;
/// Custom control messages that wait to be sent at most.
const MAX_CUSTOM: usize = 64;

/// Both halves of a connection with what they share.
#[derive(Debug)]
pub(crate) struct Established {
    peer_id: SocketId,
    /// Number of the peer's first packet.
    peer_isn: SeqNo,
    mss: u32,
    /// The packet size that the peer asked for.
    peer_mss: u32,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) farewell: Farewell,
    rtt: Rtt,
    congestion: Congestion,
    expiry: Expiry,
    max_window: u32,
    stall_timeout: Option<Duration>,
    /// When data last made progress, or there was none to make progress with.
    last_progress: Instant,
    confirmations: VecDeque<AckNo>,
    keep_alive: bool,
    error_signal: Option<u32>,
    custom: VecDeque<(u16, Vec<u8>)>,
    /// Ranges of the loss report being applied; kept for its memory.
    report: Vec<SeqRange>,
    counts: Totals,
}

/// What a packet or a timer meant for the connection as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    GoOn,
    /// The peer left.
    PeerLeft,
    Lost(ConnectionLost),
}

impl Established {
    pub(crate) fn new(agreed: &Agreed, mode: Mode, config: &Config, now: Instant, rng: &mut Rng) -> Self {
        let overhead = IP_UDP_HEADER + HEADER_LEN as u32;
        let full = (agreed.mss - overhead) as usize;
        let storage = (config.mss - overhead) as usize;
        let window_of = |bytes: u64| u32::try_from(bytes / storage as u64).unwrap_or(u32::MAX);
        let max_window = config.max_flow_window.min(window_of(config.recv_buffer)).max(2);
        let controller = (config.controller)(rng.next_u64());
        let min_period = config.max_rate.map(|rate| farhaul_units::SendPeriod::from_rate(rate, agreed.mss));
        let mut established = Self {
            peer_id: agreed.peer_id,
            peer_isn: agreed.recv_isn,
            mss: agreed.mss,
            peer_mss: agreed.peer_mss,
            sender: Sender::new(agreed.send_isn, full, agreed.peer_id, agreed.flow_window, config.send_buffer),
            receiver: Receiver::new(
                agreed.recv_isn,
                mode,
                Sizes { storage, full, max_window },
                config.reorder_tolerance,
                now,
            ),
            farewell: Farewell::default(),
            rtt: Rtt::new(),
            congestion: Congestion::new(controller, min_period.unwrap_or_default(), now),
            expiry: Expiry::new(now, config.peer_timeout, config.keep_alive, rng.fork()),
            max_window: agreed.flow_window,
            stall_timeout: config.stall_timeout,
            last_progress: now,
            confirmations: VecDeque::new(),
            // The first word after the handshake tells a listener, and a rendezvous peer, that the connection stands.
            keep_alive: true,
            error_signal: None,
            custom: VecDeque::new(),
            report: Vec::new(),
            counts: Totals::default(),
        };
        if let Some(sample) = agreed.round_trip {
            established.rtt.sample(sample, now);
        }
        let path = established.path(now);
        established.congestion.on_connect(&path);
        established.apply_control();
        established
    }

    // ---- input ----

    /// One datagram of the peer. Data and controls alike; the batch is concluded by [`finish_batch`](Self::finish_batch).
    ///
    /// `stamp` is what a packet that left now would carry.
    pub(crate) fn on_datagram(
        &mut self,
        datagram: &[u8],
        stamp: Timestamp,
        now: Instant,
    ) -> Result<Verdict, DecodeError> {
        if !is_control(datagram) {
            let (header, payload) = DataHeader::decode(datagram)?;
            self.expiry.on_heard(now);
            self.receiver.on_data(&header, payload, now, self.rtt.with_margin());
            self.note_sign_of_life(now);
            return Ok(Verdict::GoOn);
        }
        let (_, _, control) = Control::decode(datagram)?;
        self.expiry.on_heard(now);
        Ok(self.on_control(&control, stamp, now))
    }

    /// The datagrams of one receive call are through.
    pub(crate) fn finish_batch(&mut self, now: Instant) {
        self.receiver.finish_batch(now, &self.rtt);
    }

    fn on_control(&mut self, control: &Control<'_>, stamp: Timestamp, now: Instant) -> Verdict {
        match control {
            Control::Ack(ack) => self.on_ack(ack, stamp, now),
            Control::Nak(list) => self.on_nak(list, now),
            Control::Ack2(number) => {
                if let Some(sample) = self.receiver.acks.on_ack2(*number, now) {
                    self.rtt.sample(sample, now);
                }
            }
            Control::Shutdown => {
                // The challenge: a peer that lives on answers, or goes on sending. One for a flood of them.
                self.keep_alive |= !self.farewell.is_pending();
                self.farewell.on_shutdown(now, self.silence());
            }
            Control::DropRequest(request) => self.receiver.on_drop_request(request, now),
            Control::CongestionWarning => {
                self.congestion.on_warning();
                self.apply_control();
            }
            Control::ErrorSignal(code) => return Verdict::Lost(ConnectionLost::PeerError(*code)),
            Control::Custom { kind, body } => {
                let path = self.path(now);
                self.congestion.on_custom_message(&path, *kind, body);
                self.apply_control();
            }
            // Handshakes are the connection's business; a keep-alive has said all by arriving.
            _ => {}
        }
        Verdict::GoOn
    }

    fn on_ack(&mut self, ack: &Ack, stamp: Timestamp, now: Instant) {
        let seq = ack.seq();
        if let Some(number) = ack.number() {
            self.counts.acks_received += 1;
            if self.confirmations.len() == MAX_CONFIRMATIONS {
                self.confirmations.pop_front();
            }
            self.confirmations.push_back(number);
        } else {
            self.counts.light_acks_received += 1;
        }
        if !self.sender.is_plausible(seq) {
            // Old ones are overtaken, those beyond what was sent are forged: neither may touch anything (B2, B3).
            self.counts.packets_invalid += u64::from(seq.is_after(self.sender.next()));
            return;
        }
        self.note_sign_of_life(now);
        let rtt_sample = self.take_measurements(ack, stamp, now);
        let confirms = ack.number().is_some() && self.sender.is_news(seq);
        let progress = self.sender.on_ack(seq, ack.number().is_none(), now, self.rtt.with_margin());
        self.congestion.on_progress(progress.packets);
        if let Ack::Full { arrival_rate, capacity, .. } = *ack {
            self.congestion.on_report(now, arrival_rate, capacity, self.rtt.smoothed());
        }
        // Light ones may have taken all the progress before this one; laws that ignore those need to hear of it still.
        if progress.packets > 0 || confirms {
            self.last_progress = now;
            self.counts.bytes_acked += progress.bytes;
            let mut event = AckEvent::default();
            event.seq = seq;
            event.newly_acked = progress.packets;
            event.light = ack.number().is_none();
            event.rtt_sample = rtt_sample;
            event.delivery = progress.delivery;
            let path = self.path(now);
            self.congestion.on_ack(&path, &event);
            self.apply_control();
        }
        if let Ack::Medium { free_buffer, .. } | Ack::Full { free_buffer, .. } = *ack {
            self.sender.on_confirmed(seq, free_buffer.min(self.max_window), now);
        }
    }

    /// Something came that fits what this side sent or expects: a shutdown before it may have been forged (attack B1).
    fn note_sign_of_life(&mut self, now: Instant) {
        if self.farewell.is_pending() {
            self.farewell.on_sign_of_life(now, self.silence());
        }
    }

    fn silence(&self) -> Duration {
        let settled = self.receiver.buffer.is_contiguous() && !self.sender.has_data();
        silence(self.rtt.with_margin(), settled)
    }

    /// The measurements that an acknowledgement makes possible or carries.
    fn take_measurements(&mut self, ack: &Ack, stamp: Timestamp, now: Instant) -> Option<Duration> {
        if let Some(sample) = self.sender.round_trip(ack.seq(), stamp) {
            let prompt = ack.number().is_none();
            let delay = if prompt { Duration::ZERO } else { SYN_INTERVAL };
            self.rtt.note_at_least(sample.saturating_sub(delay), now);
            let sample = self.without_delay(sample, prompt)?;
            return self.rtt.sample(sample, now).then_some(sample);
        }
        let reported = self.reported_round_trip(ack)?;
        self.rtt.report(reported, now).then_some(reported)
    }

    /// What a sample says about the path. Light acknowledgements leave as the packet comes; the others by timer, up to a SYN
    /// later, so that theirs is known within a SYN only: it counts where all of that range tells something.
    fn without_delay(&self, sample: Duration, prompt: bool) -> Option<Duration> {
        let known = self.rtt.smoothed();
        if prompt || self.rtt.latest().is_none() || sample <= known {
            return Some(sample);
        }
        sample.checked_sub(SYN_INTERVAL).filter(|least| *least > known)
    }

    /// The receiver's own estimate, for times when repairs hold acknowledgements back and blur this side's samples. The
    /// first ones are a guess of 100 ms whatever the path.
    fn reported_round_trip(&self, ack: &Ack) -> Option<Duration> {
        let (Ack::Medium { rtt, .. } | Ack::Full { rtt, .. }) = *ack else { return None };
        (self.counts.acks_received >= GUESSED_REPORTS).then_some(rtt)
    }

    fn on_nak(&mut self, list: &LossList<'_>, now: Instant) {
        self.counts.naks_received += 1;
        let mut newly_lost = 0;
        let mut report = std::mem::take(&mut self.report);
        report.clear();
        // Ranges that overlap cost work and mean nothing: an honest list names each packet once, or twice in a hurry.
        let mut work = 2 * u64::from(self.sender.in_flight());
        for range in list.iter() {
            if let Some((clipped, fresh)) = self.sender.on_loss(range) {
                report.push(clipped);
                newly_lost += fresh;
                work = work.saturating_sub(clipped.len().into());
                if work == 0 {
                    break;
                }
            }
        }
        if !report.is_empty() {
            self.note_sign_of_life(now);
            self.counts.packets_lost_sending += u64::from(newly_lost);
            let path = self.path(now);
            let event = LossEvent::new(&report, newly_lost, self.sender.next().minus(1));
            self.congestion.on_loss(&path, &event);
            self.apply_control();
        }
        self.report = report;
    }

    /// Timers; the caller reads the deadline anew afterwards.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Verdict {
        let round_trip = self.rtt.with_margin();
        self.sender.handle_timeout(now, round_trip);
        self.receiver.naks.handle_timeout(now, &self.receiver.buffer, round_trip);
        if self.farewell.is_believed(now) {
            return Verdict::PeerLeft;
        }
        if self.sender.is_flushed() {
            self.last_progress = now;
        }
        if let Some(timeout) = self.stall_timeout.filter(|&timeout| now - self.last_progress >= timeout) {
            return Verdict::Lost(ConnectionLost::NoProgress(timeout));
        }
        match self.expiry.handle_timeout(now, self.sender.expects_answer(), round_trip) {
            Outcome::Nothing => {}
            Outcome::KeepAlive => {
                self.keep_alive = true;
                if !self.sender.has_data() {
                    self.sender.shrink();
                    self.receiver.buffer.shrink();
                }
            }
            Outcome::Expired(count) => self.on_expiration(count, now),
            Outcome::Silent(time) => return Verdict::Lost(ConnectionLost::PeerSilent(time)),
        }
        Verdict::GoOn
    }

    /// This computer slept (attack B20): no time is up before the peer was asked once more.
    pub(crate) fn on_suspended(&mut self, now: Instant) {
        self.expiry.on_suspended(now);
        self.last_progress = now;
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

    /// Writes one control packet that is due into `out`; false if none is.
    pub(crate) fn poll_control(&mut self, now: Instant, open: bool, out: &mut Vec<u8>) -> bool {
        let (peer, stamp) = (self.peer_id, Timestamp::ZERO);
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
        } else if !open && self.farewell.poll(now, self.rtt.with_margin()) {
            Control::Shutdown.encode(stamp, peer, out);
        } else {
            return false;
        }
        self.expiry.on_sent(now);
        true
    }

    /// Losses as one packet, as many as fit.
    fn encode_nak(&mut self, out: &mut Vec<u8>) {
        let max_words = (self.mss - IP_UDP_HEADER) as usize / 4 - HEADER_LEN / 4;
        let mut body = Vec::with_capacity(8);
        self.receiver.naks.poll(|ranges| encode_losses(ranges.iter().copied(), max_words, &mut body));
        if let Ok(list) = LossList::from_body(&body) {
            Control::Nak(list).encode(Timestamp::ZERO, self.peer_id, out);
        }
    }

    /// Data packets that may leave now.
    pub(crate) fn plan(&mut self, now: Instant, stamp: Timestamp) -> Option<Plan> {
        self.sender.plan(now, stamp, self.rtt.smoothed())
    }

    /// The packets of a plan; they count as sent.
    pub(crate) fn emit(&mut self, plan: Plan, now: Instant, stamp: Timestamp) -> Option<Run<'_>> {
        if self.sender.in_flight() == 0 {
            self.expiry.watch(now, self.rtt.with_margin());
        }
        self.expiry.on_sent(now);
        let run = self.sender.emit(plan, now, stamp, self.rtt.with_margin())?;
        self.congestion.on_sent(now, run.packets);
        Some(run)
    }

    pub(crate) fn deadline(&self, now: Instant) -> Option<Instant> {
        let stall =
            self.stall_timeout.filter(|_| !self.sender.is_flushed()).map(|timeout| self.last_progress + timeout);
        [
            self.sender.deadline(),
            self.receiver.acks.deadline(now),
            self.receiver.naks.deadline(),
            self.farewell.deadline(),
            self.expiry.deadline(),
            stall,
        ]
        .into_iter()
        .fold(None, earliest)
    }

    // ---- commands ----

    /// Tells the peer that this side cannot store what it receives (type 8).
    pub(crate) fn signal_error(&mut self, code: u32) {
        self.error_signal = Some(code);
    }

    /// Sends a user-defined control packet; dropped if too many wait.
    pub(crate) fn send_custom(&mut self, kind: u16, body: &[u8]) {
        let fits = body.len() <= self.mss as usize - IP_UDP_HEADER as usize - HEADER_LEN;
        if fits && self.custom.len() < MAX_CUSTOM {
            self.custom.push_back((kind, body.to_vec()));
        }
    }

    pub(crate) fn close(&mut self) {
        self.congestion.on_close();
    }

    /// The application took `bytes`.
    pub(crate) fn on_read(&mut self, bytes: u64) {
        self.counts.bytes_read += bytes;
        self.receiver.on_read(&self.rtt);
    }

    /// The application hands in data: if nothing was outstanding, the time without progress begins now.
    pub(crate) fn begin_work(&mut self, now: Instant) {
        if self.sender.is_flushed() {
            self.last_progress = now;
        }
    }

    /// From now on, data that makes no progress for `linger` ends the connection.
    pub(crate) fn begin_linger(&mut self, now: Instant, linger: Duration) {
        self.last_progress = now;
        self.stall_timeout = Some(linger);
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

    /// Whether the peer has said anything since the handshake.
    pub(crate) const fn was_heard(&self) -> bool {
        self.expiry.was_heard()
    }

    fn apply_control(&mut self) {
        let control = *self.congestion.control();
        self.sender.apply(&control, self.congestion.send_period(), self.rtt.smoothed());
        self.receiver.acks.set_policy(control.ack_period, control.ack_interval);
        self.expiry.set_rto(control.rto);
    }

    fn path(&self, now: Instant) -> Path {
        let mut path = Path::default();
        path.now = now;
        path.mss = self.mss;
        path.rtt = self.rtt.smoothed();
        path.rtt_var = self.rtt.variation();
        path.min_rtt = self.rtt.min();
        path.latest_rtt = self.rtt.latest();
        path.recent_max_rtt = self.rtt.recent_max();
        path.arrival_rate = self.congestion.arrival_rate();
        path.capacity = self.congestion.capacity();
        path.delivery_rate = self.sender.delivery_rate();
        path.in_flight = self.sender.in_flight();
        path.flow_window = self.sender.flow_window();
        path.max_window = self.max_window;
        path.next_seq = self.sender.next();
        path.packets_sent = self.sender.sent;
        path.application_limited = self.sender.is_application_limited();
        path
    }

    /// Fills in everything that this part knows.
    pub(crate) fn fill_stats(&self, now: Instant, stats: &mut Stats) {
        let (sender, receiver) = (&self.sender, &self.receiver);
        let payload = sender.buffer().payload_size();
        stats.totals = Totals {
            packets_sent: sender.sent,
            packets_retransmitted: sender.retransmitted,
            packets_received: receiver.packets,
            packets_duplicate: receiver.duplicates,
            packets_lost_receiving: receiver.naks.lost,
            acks_sent: receiver.acks.sent,
            light_acks_sent: receiver.acks.light_sent,
            naks_sent: receiver.naks.sent,
            bytes_received: receiver.bytes,
            messages_dropped: sender.messages_dropped,
            limited_by_application: sender.limits().spent(Limit::Application, now),
            limited_by_flow_window: sender.limits().spent(Limit::FlowWindow, now),
            limited_by_congestion: sender.limits().spent(Limit::Congestion, now),
            ..self.counts
        };
        stats.totals.send_duration = stats.totals.limited_by_application
            + stats.totals.limited_by_flow_window
            + stats.totals.limited_by_congestion;
        stats.send_period = self.congestion.send_period();
        stats.flow_window = sender.flow_window();
        stats.cwnd = self.congestion.control().cwnd.map_or(u32::MAX, |cwnd| cwnd as u32);
        stats.in_flight = sender.in_flight();
        stats.rtt = self.rtt.smoothed();
        stats.rtt_var = self.rtt.variation();
        stats.min_rtt = self.rtt.min().unwrap_or_default();
        stats.capacity = self.congestion.capacity().or(receiver.capacity()).unwrap_or_default();
        stats.arrival_rate = self.congestion.arrival_rate().unwrap_or_default();
        stats.send_buffer_free = sender.room();
        stats.recv_buffer_free = u64::from(receiver.buffer.free()) * payload as u64;
        stats.send_buffer_packets = sender.buffer().packets();
        stats.recv_buffer_packets = receiver.buffer.readable_packets();
        stats.payload_size = payload as u32;
        stats.memory = (sender.memory() + receiver.memory()) as u64;
    }

    /// Counts what the connection sees of the application.
    pub(crate) fn counts(&mut self) -> &mut Totals {
        &mut self.counts
    }
}
