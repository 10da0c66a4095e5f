//! What a law of TCP's window decides: how the window grows, and what a loss leaves of it.

use crate::controller::{Control, Path};

/// The smallest threshold, packets. Source: RFC 5681 eq. (4), 2·SMSS.
const MIN_THRESHOLD: f64 = 2.0;
/// The window after a time-out, packets: RFC 5681's loss window. UDT's sender raises it to its own minimum of two.
pub(super) const LOSS_WINDOW: f64 = 1.0;
/// The largest window, packets: sequence numbers of UDT4 tell no more apart.
const MOST: f64 = (1u32 << 30) as f64;

/// The window, and where its slow start ends, packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(super) cwnd: f64,
    /// ssthresh. Without end at first: RFC 5681 §3.1 asks for an arbitrarily high one.
    pub(super) threshold: f64,
}

impl Window {
    pub(super) fn is_in_slow_start(&self) -> bool {
        self.cwnd < self.threshold
    }

    /// Grows by `growth` packets of slow start for each of `acked`, to the threshold at most. Returns how many of `acked` are beyond it.
    //= paper:rfc5681 §3.1 eq. (2)
    pub(super) fn slow_start(&mut self, acked: f64, growth: f64) -> f64 {
        let room = (self.threshold - self.cwnd).max(0.0);
        let grown = (acked * growth).min(room);
        self.cwnd += grown;
        acked - grown / growth
    }

    /// FlightSize, packets: those in flight, up to the window, because recovery may have sent more.
    pub(super) fn flight(&self, path: &Path) -> f64 {
        f64::from(path.in_flight).min(self.cwnd)
    }

    /// Slow start ends at `threshold` from now on, and the window is not beyond it.
    pub(super) fn lower_to(&mut self, threshold: f64) {
        self.threshold = threshold.max(MIN_THRESHOLD);
        self.cwnd = self.cwnd.min(self.threshold);
    }

    /// The window that a transport can use: a packet at least, and at most what the receiver takes.
    pub(super) fn bounded(&self, path: &Path) -> f64 {
        bounded(self.cwnd.max(LOSS_WINDOW), path)
    }
}

/// The window, limited to the receiver's largest window.
pub(super) fn bounded(cwnd: f64, path: &Path) -> f64 {
    let most = if path.max_window > 0 { f64::from(path.max_window).max(MIN_THRESHOLD) } else { MOST };
    cwnd.min(most)
}

/// A law. [`Windowed`](super::windowed::Windowed) makes a controller of it.
///
/// Windows are in packets, times in seconds. A window that is too small, too large or not a number is bounded after each call.
#[expect(unused_variables, reason = "the defaults use no argument, and implementations are to see the names")]
pub(crate) trait WindowLaw: Send {
    /// See [`Control::window_of_outstanding`].
    const OF_OUTSTANDING: bool = true;
    /// Windows that leave in an RTT after slow start: faster than acknowledgements clock them, so that the window is what limits.
    /// Source: Linux (`tcp_pacing_ca_ratio`).
    const PACE: f64 = 1.2;

    /// Sets what is not the window, when a connection begins or is taken over.
    fn on_connect(&mut self, path: &Path, control: &mut Control) {}

    /// An RTT was measured.
    fn on_rtt(&mut self, rtt: f64, path: &Path) {}

    /// A round is over: a packet that left when the one before ended has been acknowledged.
    fn on_round(&mut self, round: &Round, window: &mut Window, path: &Path) {}

    /// Packets of growth in slow start for each acknowledged one.
    fn start_growth(&self, window: &Window, path: &Path) -> f64 {
        1.0
    }

    /// `acked` packets were acknowledged. By default slow start takes those up to the threshold, and
    /// [`avoid`](Self::avoid) the others.
    fn on_ack(&mut self, acked: f64, window: &mut Window, path: &Path) {
        let beyond = window.slow_start(acked, self.start_growth(window, path));
        if beyond > 0.0 {
            self.avoid(beyond, window, path);
        }
    }

    /// `acked` packets were acknowledged in congestion avoidance.
    fn avoid(&mut self, acked: f64, window: &mut Window, path: &Path);

    /// ssthresh after a loss or a time-out.
    fn threshold(&mut self, window: &Window, path: &Path) -> f64;

    /// The first loss of a window.
    fn on_loss(&mut self, window: &mut Window, path: &Path) {
        let threshold = self.threshold(window, path);
        window.lower_to(threshold);
    }

    /// All losses are repaired.
    fn on_recovered(&mut self, window: &mut Window, path: &Path) {}

    /// The retransmission timer has expired. The window falls to one packet after this.
    fn on_timeout(&mut self, window: &mut Window, path: &Path) {}
}

/// The RTTs of a round, s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// Infinite without samples.
    pub(super) least: f64,
    pub(super) sum: f64,
    pub(super) samples: u32,
}

impl Round {
    pub(super) const EMPTY: Self = Self { least: f64::INFINITY, sum: 0.0, samples: 0 };

    pub(super) fn note(&mut self, rtt: f64) {
        self.least = self.least.min(rtt);
        self.sum += rtt;
        self.samples = self.samples.saturating_add(1);
    }

    /// Their mean; `None` without samples.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum / f64::from(self.samples))
    }
}
