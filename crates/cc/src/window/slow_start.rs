//! Slow start up to the threshold, and the part of an acknowledgement beyond it.

use crate::controller::{AckEvent, Path};

/// The smallest threshold, packets. Source: RFC 5681 eq. (4), 2·SMSS.
const MIN_THRESHOLD: f64 = 2.0;
/// The threshold as a share of the flight. Source: RFC 5681 eq. (4), FlightSize/2.
const HALF: f64 = 0.5;
/// The window after a time-out, packets: RFC 5681's loss window. UDT's sender raises it to its own minimum of two.
pub(super) const LOSS_WINDOW: f64 = 1.0;

/// ssthresh: where slow start ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlowStart {
    threshold: f64,
}

impl SlowStart {
    /// Without an end: RFC 5681 §3.1 asks for an arbitrarily high first threshold.
    pub(super) const fn new() -> Self {
        Self { threshold: f64::INFINITY }
    }

    /// With an end at `threshold` packets.
    pub(super) const fn to(threshold: f64) -> Self {
        Self { threshold }
    }

    /// The window after an acknowledgement, and the number of its packets beyond the threshold.
    ///
    /// One acknowledgement counts for at most a window of packets. A transport whose acknowledgements wait for
    /// retransmissions may confirm a whole flight at once, which was not sent under this window.
    //= paper:rfc5681 §3.1 eq. (2)
    pub(super) fn grow(&self, cwnd: f64, ack: &AckEvent) -> (f64, f64) {
        let acked = f64::from(ack.newly_acked).min(cwnd);
        let room = (self.threshold - cwnd).max(0.0);
        let grown = acked.min(room);
        (cwnd + grown, acked - grown)
    }

    /// After a loss, sets the threshold to half of the packets in flight, and returns it.
    ///
    /// The packets in flight count up to the window, because recovery may have sent more than the window.
    //= paper:rfc5681 §3.1 eq. (4)
    pub(super) fn lower(&mut self, cwnd: f64, path: &Path) -> f64 {
        self.lower_to(HALF, cwnd, path)
    }

    /// The same for a law that keeps another `share` of the flight.
    pub(super) fn lower_to(&mut self, share: f64, cwnd: f64, path: &Path) -> f64 {
        self.threshold = (f64::from(path.in_flight).min(cwnd) * share).max(MIN_THRESHOLD);
        self.threshold
    }
}

/// The window, limited to the receiver's largest window.
pub(super) fn bounded(cwnd: f64, path: &Path) -> f64 {
    if path.max_window > 0 { cwnd.min(f64::from(path.max_window).max(MIN_THRESHOLD)) } else { cwnd }
}
