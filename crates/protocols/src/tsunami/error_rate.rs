//! The error rate that a client reports (tsunami-udp 1.1).
//!
//! ```text
//! e ← h·e + (1 − h)·50 000·(requests/(1 + requests + blocks) + ring)
//! ```
//!
//! h is the weight of history. `ring` is 1 if 4096 blocks or more wait to be written, otherwise 0. The
//! unit of e is a thousandth of a percent. Requests for all blocks make 50 000.

/// The share that stands for losses, in thousandths of a percent.
const LOSS_SHARE: f64 = 50_000.0;
/// Blocks that fill the ring of the original.
pub const RING: u32 = 4_096;
/// Default weight of history in percent.
pub const DEFAULT_HISTORY: u8 = 25;

/// The reported error rate.
#[derive(Clone, Copy, Debug)]
pub struct ErrorRate {
    history: f64,
    rate: f64,
}

impl ErrorRate {
    /// `history` is the weight of earlier reports in percent, at most 100.
    pub fn new(history: u8) -> Self {
        Self { history: f64::from(history.min(100)) / 100.0, rate: 0.0 }
    }

    /// The next report. Since the last one, `requests` blocks were asked for and `blocks` arrived. `waiting` blocks
    /// wait to be written.
    pub fn report(&mut self, requests: u32, blocks: u32, waiting: u32) -> u32 {
        let (requests, blocks) = (f64::from(requests), f64::from(blocks));
        let ring = f64::from((waiting / RING).min(1));
        let share = requests / (1.0 + requests + blocks) + ring;
        self.rate = self.history * self.rate + (1.0 - self.history) * LOSS_SHARE * share;
        self.rate as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_weighs_requests_ring_and_history() {
        let mut rate = ErrorRate::new(DEFAULT_HISTORY);
        assert_eq!(rate.report(0, 1_000, RING - 1), 0);
        assert_eq!(rate.report(250, 749, 0), 9_375, "0.75 · 50 000 · 250/1000");
        assert_eq!(rate.report(0, 1_000, 0), 2_343, "a quarter of the last one");
        assert_eq!(ErrorRate::new(0).report(0, 1_000, RING), 50_000, "a full ring");
    }

    #[test]
    fn a_loss_of_fifteen_percent_reaches_the_default_threshold() {
        let mut rate = ErrorRate::new(DEFAULT_HISTORY);
        let last = (0..20).map(|_| rate.report(1_500, 8_499, 0)).last();
        assert_eq!(last, Some(7_499));
    }
}
