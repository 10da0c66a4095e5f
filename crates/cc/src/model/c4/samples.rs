//! Rates and eras where a transport reports no deliveries, as simulated TCP: one sample for each era.

use farhaul_units::{Duration, Instant, SeqNo};

use crate::controller::{AckEvent, Path};

/// An era: from the departure of a packet to its acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckSamples {
    acked: SeqNo,
    /// What had been acknowledged when it began, and the packet that ends it.
    from: SeqNo,
    ends: SeqNo,
    at: Option<Instant>,
    /// How long the era before was, in which the packets left that are acknowledged in this one.
    sent_in: Duration,
}

impl AckSamples {
    pub(super) fn begin(&mut self, path: &Path) {
        match self.at {
            None => self.acked = path.next_seq.minus(path.in_flight),
            Some(at) => self.sent_in = path.now - at,
        }
        (self.from, self.ends, self.at) = (self.acked, path.next_seq, Some(path.now));
    }

    /// The rate of the era that ends with `ack`, packets/s. The longer one of sending and acknowledging is its interval.
    pub(super) fn on_ack(&mut self, ack: &AckEvent, path: &Path) -> Option<f64> {
        self.acked = self.acked.later(ack.seq);
        let interval = (path.now - self.at?).max(self.sent_in).as_secs_f64();
        let packets = self.acked.distance_from(self.from);
        (self.acked.is_after(self.ends) && interval > 0.0).then(|| f64::from(packets) / interval)
    }
}
