//! The TCP sender: joins window, loss recovery and retransmission timer.

mod cumulative;
mod selective;

use farhaul_cc::{Controller, ControllerFailure};
use farhaul_units::{Duration, Instant};

use super::adapter::Window;
use super::config::{Recovery, SenderConfig};
use super::flight::{AckEffect, Flight};
use super::rto::RetransmissionTimer;
use crate::packet::segment::{Segment, SegmentKind};
use cumulative::Cumulative;
use selective::Selective;

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderTotals {
    /// Data segments sent, retransmissions included.
    pub sent: u64,
    /// Retransmitted data segments.
    pub retransmitted: u64,
    /// Expirations of the retransmission timer.
    pub timeouts: u64,
    /// Fast retransmits.
    pub recoveries: u64,
    /// Acknowledgements received.
    pub acks: u64,
}

/// The loss recovery in use.
#[derive(Clone, Debug)]
enum Repair {
    Cumulative(Cumulative),
    Selective(Selective),
}

/// State of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TcpState {
    Idle,
    /// The SYN is due, or was sent `sent` times.
    Opening {
        due: bool,
        sent: u32,
    },
    Open,
    Done(Instant),
}

/// Sends data segments and takes acknowledgements.
///
/// After each call, call [`poll_transmit`](TcpSender::poll_transmit) until it returns `None`.
#[derive(Debug)]
pub struct TcpSender {
    config: SenderConfig,
    state: TcpState,
    window: Window,
    flight: Flight,
    repair: Repair,
    timer: RetransmissionTimer,
    /// Whether segments may be added to the transfer.
    growing: bool,
    /// Time-outs since the last acknowledgement of new data, or since the first SYN.
    timeouts_in_a_row: u32,
    /// The segment whose RTT is measured, and when it was sent.
    timed: Option<(u64, Instant)>,
    /// If the controller sets a packet period: when the next packet may leave.
    next_departure: Instant,
    /// Whether a segment waits for `next_departure`.
    paced: bool,
    totals: SenderTotals,
}

impl TcpSender {
    /// A sender under the controller that `make` makes. It begins with [`start`](TcpSender::start).
    pub fn new(config: SenderConfig, make: impl FnOnce() -> Box<dyn Controller>) -> Self {
        let mss = config.payload + config.header;
        let segments = config.bytes.map(|bytes| bytes.div_ceil(u64::from(config.payload.max(1))));
        Self {
            state: TcpState::Idle,
            window: Window::new(make, config.initial_window, config.max_window, config.ack_limit, mss),
            flight: Flight { first: 0, high: 0, end: segments.unwrap_or(u64::MAX), max: u64::from(config.max_window) },
            repair: match config.recovery {
                Recovery::Sack => Repair::Selective(Selective::default()),
                style => Repair::Cumulative(Cumulative::new(style, config.limited_transmit)),
            },
            timer: RetransmissionTimer::new(config.rto),
            growing: false,
            timeouts_in_a_row: 0,
            timed: None,
            next_departure: Instant::ZERO,
            paced: false,
            totals: SenderTotals::default(),
            config,
        }
    }

    /// A sender whose segments come bit by bit: [`set_unsent`](TcpSender::set_unsent) announces them, and the caller
    /// decides their lengths.
    pub(crate) fn growing(config: SenderConfig, make: impl FnOnce() -> Box<dyn Controller>) -> Self {
        let mut sender = Self::new(SenderConfig { bytes: None, ..config }, make);
        (sender.growing, sender.flight.end) = (true, 0);
        sender
    }

    /// Sets the number of segments that follow those sent so far.
    pub(crate) fn set_unsent(&mut self, segments: u64) {
        if self.growing {
            self.flight.end = self.flight.high + segments;
        }
    }

    /// No segment follows those announced. The sender ends when they are acknowledged.
    pub(crate) fn stop_growing(&mut self, now: Instant) {
        self.growing = false;
        self.note_end(now);
    }

    /// Begins to send.
    pub fn start(&mut self, now: Instant) {
        if self.state == TcpState::Idle {
            if self.config.handshake {
                self.state = TcpState::Opening { due: true, sent: 0 };
            } else {
                self.open(now);
            }
        }
    }

    /// Sends no new data from now on, and ends when everything is acknowledged.
    pub fn finish(&mut self, now: Instant) {
        self.flight.end = self.flight.end.min(self.flight.high);
        self.note_end(now);
    }

    /// An acknowledgement arrived.
    pub fn handle_ack(&mut self, now: Instant, segment: &Segment) {
        match (self.state, segment.kind) {
            (TcpState::Opening { sent: 1.., .. }, SegmentKind::SynAck) => self.on_syn_ack(now, segment),
            (TcpState::Open, SegmentKind::Ack) if segment.ack <= self.flight.high => self.on_ack(now, segment),
            _ => {}
        }
    }

    /// The time returned by [`poll_timeout`](TcpSender::poll_timeout) has come. Early calls are harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        if !self.timer.is_due(now) {
            return;
        }
        self.timer.back_off(now);
        self.timeouts_in_a_row += 1;
        if let TcpState::Opening { due, .. } = &mut self.state {
            *due = true;
            return;
        }
        self.totals.timeouts += 1;
        self.timed = None;
        self.window.on_timeout(now, &self.flight, self.timeouts_in_a_row);
        match &mut self.repair {
            Repair::Cumulative(repair) => repair.on_timeout(&self.flight),
            Repair::Selective(repair) => repair.on_timeout(&self.flight),
        }
    }

    /// When to call [`handle_timeout`](TcpSender::handle_timeout) next, or [`poll_transmit`](TcpSender::poll_transmit)
    /// for a paced sender. `None` after a failure of its controller.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.failure().is_some() {
            return None;
        }
        let departure = self.paced.then_some(self.next_departure);
        [self.timer.deadline(), departure].into_iter().flatten().min()
    }

    /// The first fault of the controller, after which nothing leaves any more.
    pub const fn failure(&self) -> Option<ControllerFailure> {
        self.window.failure()
    }

    /// The segment to send now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        match &mut self.state {
            // Nobody says how much may leave.
            _ if self.window.failure().is_some() => None,
            TcpState::Open => self.next_data(now),
            TcpState::Opening { due, sent } if *due => {
                *due = false;
                *sent += 1;
                self.timer.start(now);
                let mut segment = Segment::new(SegmentKind::Syn, self.config.header, now);
                segment.sack_permitted = self.config.recovery == Recovery::Sack;
                Some(segment)
            }
            _ => None,
        }
    }

    /// When all data had been acknowledged; `None` until then.
    pub fn finished_at(&self) -> Option<Instant> {
        if let TcpState::Done(at) = self.state { Some(at) } else { None }
    }

    /// Time-outs since the peer last acknowledged anything new.
    pub(crate) fn timeouts_in_a_row(&self) -> u32 {
        self.timeouts_in_a_row
    }

    /// Counters.
    pub fn totals(&self) -> SenderTotals {
        self.totals
    }

    /// Segments acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.flight.first
    }

    /// Segments sent and not acknowledged.
    pub fn in_flight(&self) -> u64 {
        self.flight.len()
    }

    /// The congestion window in packets, without inflation.
    pub fn cwnd(&self) -> u64 {
        self.window.packets().min(self.flight.max)
    }

    /// Smoothed RTT and its mean deviation; zero before the first sample.
    pub fn rtt(&self) -> (Duration, Duration) {
        self.timer.estimate()
    }

    /// The current retransmission time-out.
    pub fn rto(&self) -> Duration {
        self.timer.rto()
    }

    /// Whether a recovery is in progress.
    pub fn is_recovering(&self) -> bool {
        match &self.repair {
            Repair::Cumulative(repair) => repair.is_recovering(),
            Repair::Selective(repair) => repair.is_recovering(),
        }
    }

    fn open(&mut self, now: Instant) {
        self.state = TcpState::Open;
        self.window.on_connect(now);
        self.note_end(now);
    }

    fn on_syn_ack(&mut self, now: Instant, segment: &Segment) {
        self.timer.stop();
        self.timeouts_in_a_row = 0;
        if let TcpState::Opening { sent: 2.., .. } = self.state {
            //= paper:rfc5681 §3.1: a lost SYN reduces the window to one segment
            self.window.restart_with(1);
            self.timer.syn_was_retransmitted();
        } else {
            self.on_sample(now, now - segment.echo);
        }
        self.open(now);
    }

    fn on_ack(&mut self, now: Instant, segment: &Segment) {
        self.totals.acks += 1;
        if segment.ack < self.flight.first {
            return;
        }
        let acked = segment.ack - self.flight.first;
        self.flight.first = segment.ack;
        let sample = if acked > 0 { self.measure(now, segment) } else { None };
        let effect = match &mut self.repair {
            Repair::Cumulative(repair) if acked > 0 => repair.on_progress(acked, &self.flight),
            Repair::Cumulative(_) if self.flight.len() == 0 => AckEffect::Nothing,
            Repair::Cumulative(repair) => repair.on_duplicate(&self.flight),
            Repair::Selective(repair) => repair.on_ack(acked, segment.sack(), &self.flight),
        };
        let mut restart = acked > 0;
        match effect {
            AckEffect::Nothing => {}
            AckEffect::Progress => self.window.on_ack(now, &self.flight, acked, sample),
            AckEffect::Loss { limited } => {
                self.totals.recoveries += 1;
                self.timed = None;
                self.window.on_loss(now, &self.flight, limited);
                restart = true;
            }
            //= paper:rfc6582 §3.2 step 3: only the first partial acknowledgement restarts the timer
            AckEffect::Partial { first } => restart = first,
            AckEffect::Recovered => self.window.on_recovered(now, &self.flight),
        }
        if acked > 0 {
            self.timeouts_in_a_row = 0;
        }
        if self.flight.len() == 0 {
            self.timer.stop();
            self.note_end(now);
        } else if restart {
            self.timer.restart(now);
        }
    }

    /// Takes an RTT sample, unless the data was sent twice (Karn).
    //= paper:rfc6298 §3
    fn measure(&mut self, now: Instant, segment: &Segment) -> Option<Duration> {
        let sent =
            if self.config.timestamps { segment.echo } else { self.timed.take_if(|(seq, _)| segment.ack > *seq)?.1 };
        self.on_sample(now, now - sent);
        Some(now - sent)
    }

    fn on_sample(&mut self, now: Instant, sample: Duration) {
        self.timer.sample(sample);
        self.window.on_sample(now, sample, &self.timer);
    }

    fn next_data(&mut self, now: Instant) -> Option<Segment> {
        self.paced = false;
        let period = self.window.send_period();
        if period.is_some() && now < self.next_departure {
            // A query for the next segment would consume it. The pacing timer may thus be set without need, which is
            // harmless.
            self.paced = self.flight.new_segment().is_some() || self.flight.len() > 0;
            return None;
        }
        let cwnd = self.window.packets();
        let seq = match &mut self.repair {
            Repair::Cumulative(repair) => repair.next(&self.flight, cwnd)?,
            Repair::Selective(repair) => repair.next(&self.flight, cwnd)?,
        };
        let retransmitted = seq < self.flight.high;
        if !retransmitted {
            self.flight.high = seq + 1;
            if self.timed.is_none() {
                self.timed = Some((seq, now));
            }
        }
        if let Some(period) = period {
            self.next_departure = now.max(self.next_departure) + period;
        }
        self.totals.sent += 1;
        self.totals.retransmitted += u64::from(retransmitted);
        self.timer.start(now);
        self.window.on_sent(now, &self.flight, seq, retransmitted);
        Some(self.segment(now, seq))
    }

    fn segment(&self, now: Instant, seq: u64) -> Segment {
        let mut segment = Segment::new(SegmentKind::Data, self.config.header, now);
        segment.seq = seq;
        segment.payload = self.config.payload;
        if seq + 1 == self.flight.end {
            segment.kind = SegmentKind::LastData;
            if let Some(bytes) = self.config.bytes {
                let before = seq * u64::from(self.config.payload);
                segment.payload = u32::try_from(bytes - before).unwrap_or(segment.payload).min(segment.payload);
            }
        }
        segment
    }

    fn note_end(&mut self, now: Instant) {
        if self.flight.first >= self.flight.end && self.state == TcpState::Open && !self.growing {
            self.state = TcpState::Done(now);
            self.timer.stop();
            self.window.on_close();
        }
    }
}

#[cfg(test)]
mod tests;
