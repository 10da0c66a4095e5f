//! One decrease per window: losses of packets sent before the last decrease belong to it.

use farhaul_units::SeqNo;

use crate::controller::LossEvent;

/// The losses already answered by a decrease.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossEpoch {
    /// The last packet sent before the latest decrease, until it is acknowledged.
    cut_at: Option<SeqNo>,
}

impl LossEpoch {
    /// No losses so far.
    pub(super) const fn new() -> Self {
        Self { cut_at: None }
    }

    /// Whether `loss` requires a new decrease. If so, records it.
    pub(super) fn begins(&mut self, loss: &LossEvent<'_>) -> bool {
        let Some(last) = loss.ranges.iter().map(|range| range.last).reduce(SeqNo::later) else { return false };
        if self.cut_at.is_some_and(|cut_at| !last.is_after(cut_at)) {
            return false;
        }
        self.restart(loss.largest_sent);
        true
    }

    /// Records a decrease when `largest_sent` was the last packet sent.
    pub(super) fn restart(&mut self, largest_sent: SeqNo) {
        self.cut_at = Some(largest_sent);
    }

    /// Everything before `seq` is acknowledged. Forgets an earlier decrease, because sequence numbers wrap.
    pub(super) fn on_ack(&mut self, seq: SeqNo) {
        if self.cut_at.is_some_and(|cut_at| seq.is_after(cut_at)) {
            self.cut_at = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::SeqRange;

    use super::*;

    fn begins(epoch: &mut LossEpoch, lost: u32, largest_sent: u32) -> bool {
        let lost = SeqNo::new(lost);
        epoch.begins(&LossEvent::new(&[SeqRange::new(lost, lost)], 1, SeqNo::new(largest_sent)))
    }

    #[test]
    fn losses_of_packets_sent_before_a_cut_belong_to_it() {
        let mut epoch = LossEpoch::new();
        assert!(begins(&mut epoch, 10, 20));
        assert!(!begins(&mut epoch, 11, 25) && !begins(&mut epoch, 20, 30));
        assert!(begins(&mut epoch, 21, 40));
    }

    #[test]
    fn a_cut_is_forgotten_before_numbers_wrap() {
        let mut epoch = LossEpoch::new();
        assert!(begins(&mut epoch, 10, 20));
        epoch.on_ack(SeqNo::new(21));
        assert!(begins(&mut epoch, (1 << 30) + 40, (1 << 30) + 50));
    }
}
