//! Between a TCP sender and its controller: events in, window out.
//!
//! A controller of `farhaul-cc` receives acknowledged and lost packets. It knows neither duplicate acknowledgements nor
//! fast recovery. The sender decides when a recovery begins. That is *one* loss to the controller and so one window
//! reduction. The sender reports no acknowledgements during a recovery.

use farhaul_cc::{
    AckEvent, Control, Controller, ControllerFailure, DataPacket, LossEvent, Path, SentEvent, Supervised, TimeoutEvent,
};
use farhaul_units::{Duration, Instant, SeqNo, SeqRange};

use super::flight::Flight;
use super::rto::RetransmissionTimer;
use crate::packet::segment::HEADER;

/// The minimum RTT covers the current period of this length and the one before.
const MIN_RTT_PERIOD: Duration = Duration::from_secs(10);

/// The controller, its output, and its view of the path.
pub(super) struct Window {
    controller: Supervised,
    path: Path,
    /// Most packets for which one acknowledgement counts.
    ack_limit: u32,
    /// The window in whole packets.
    packets: u64,
    /// The minimum RTT of this period and of the one before, and the start of this one.
    min_rtts: [Option<Duration>; 2],
    period_start: Instant,
}

impl Window {
    /// A window of `initial` packets, limited to `max` by the receiver.
    pub(super) fn new(
        make: impl FnOnce() -> Box<dyn Controller>,
        initial: u32,
        max: u32,
        ack_limit: u32,
        mss: u32,
    ) -> Self {
        let mut control = Control::initial();
        control.cwnd = Some(f64::from(initial));
        let mut path = Path::default();
        (path.mss, path.flow_window, path.max_window) = (mss, max, max);
        let mut controller = Supervised::new(make);
        controller.begin_with(control);
        let min_rtts = [None; 2];
        let period_start = Instant::ZERO;
        let mut window = Self { controller, path, ack_limit, packets: 0, min_rtts, period_start };
        window.apply_control();
        window
    }

    /// The congestion window in whole packets, at least one.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// The first fault of the controller.
    pub(super) const fn failure(&self) -> Option<ControllerFailure> {
        self.controller.failure()
    }

    /// The packet period set by the controller, if it sets one that is not of its window.
    pub(super) fn send_period(&self) -> Option<Duration> {
        let control = self.controller.control();
        (!control.send_period.is_unpaced() && !control.period_of_window).then(|| control.send_period.time_for(1))
    }

    /// Restarts with a window of `packets`, before any data was sent.
    pub(super) fn restart_with(&mut self, packets: u32) {
        let control = *self.controller.control();
        self.controller.begin_with(Control { cwnd: Some(f64::from(packets)), ..control });
        self.apply_control();
    }

    pub(super) fn on_connect(&mut self, now: Instant) {
        self.path.now = now;
        self.controller.on_connect(&self.path);
        self.apply_control();
    }

    /// Takes an RTT sample.
    pub(super) fn on_sample(&mut self, now: Instant, sample: Duration, timer: &RetransmissionTimer) {
        if now - self.period_start >= MIN_RTT_PERIOD {
            self.min_rtts = [None, self.min_rtts[0]];
            self.period_start = now;
        }
        self.min_rtts[0] = Some(self.min_rtts[0].map_or(sample, |least| least.min(sample)));
        self.path.min_rtt = self.min_rtts.into_iter().flatten().min();
        self.path.latest_rtt = Some(sample);
        (self.path.rtt, self.path.rtt_var) = timer.estimate();
    }

    /// Reports `acked` newly acknowledged segments outside of a recovery.
    pub(super) fn on_ack(&mut self, now: Instant, flight: &Flight, acked: u64, sample: Option<Duration>) {
        self.update_path(now, flight, 0);
        let mut ack = AckEvent::default();
        ack.seq = seq_no(flight.first);
        ack.newly_acked = u32::try_from(acked).unwrap_or(u32::MAX).min(self.ack_limit);
        ack.rtt_sample = sample;
        self.controller.on_ack(&self.path, &ack);
        self.apply_control();
    }

    /// Reports the start of a recovery: the first segment of the flight is lost. Segments sent by limited transmit do
    /// not count as in flight.
    //= paper:rfc5681 §3.2
    pub(super) fn on_loss(&mut self, now: Instant, flight: &Flight, limited: u64) {
        self.update_path(now, flight, limited);
        let first = seq_no(flight.first);
        let ranges = [SeqRange::new(first, first)];
        let loss = LossEvent::new(&ranges, 1, seq_no(flight.high).minus(1));
        self.controller.on_loss(&self.path, &loss);
        self.apply_control();
    }

    /// Reports the end of the recovery.
    pub(super) fn on_recovered(&mut self, now: Instant, flight: &Flight) {
        self.update_path(now, flight, 0);
        self.controller.on_recovered(&self.path, false);
        self.apply_control();
    }

    /// Reports an expiry of the retransmission timer, the `count`th for this segment.
    pub(super) fn on_timeout(&mut self, now: Instant, flight: &Flight, count: u32) {
        self.update_path(now, flight, 0);
        let mut timeout = TimeoutEvent::default();
        (timeout.count, timeout.largest_sent) = (count, seq_no(flight.high).minus(1));
        self.controller.on_timeout(&self.path, &timeout);
        self.apply_control();
    }

    /// Reports a segment sent.
    pub(super) fn on_sent(&mut self, now: Instant, flight: &Flight, seq: u64, retransmission: bool) {
        self.path.packets_sent += 1;
        if self.controller.wants_packets() {
            self.update_path(now, flight, 0);
            let packets = [DataPacket::new(seq_no(seq), None, self.path.mss.saturating_sub(HEADER))];
            self.controller.on_sent(&self.path, &SentEvent::new(&packets, retransmission, now));
            self.apply_control();
        }
    }

    /// Reports the end.
    pub(super) fn on_close(&mut self) {
        self.controller.on_close();
    }

    fn update_path(&mut self, now: Instant, flight: &Flight, limited: u64) {
        self.path.now = now;
        self.path.in_flight = u32::try_from(flight.len().saturating_sub(limited)).unwrap_or(u32::MAX);
        self.path.next_seq = seq_no(flight.high);
    }

    fn apply_control(&mut self) {
        self.packets = self.controller.control().cwnd.map_or(u64::MAX, |cwnd| (cwnd as u64).max(1));
    }
}

impl std::fmt::Debug for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Window").field("controller", &self.controller).finish_non_exhaustive()
    }
}

/// Truncates to 31 bits, which suffice because controllers compare numbers of one window only.
fn seq_no(seq: u64) -> SeqNo {
    SeqNo::new((seq & u64::from(u32::MAX)) as u32)
}
