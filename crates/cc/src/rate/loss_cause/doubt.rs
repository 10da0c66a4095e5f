//! Losses that were taken for congestion before it was known what the link loses. Once it is known, either it explains them, and
//! what was done about them may be taken back, or it does not.
//!
//! A young flow that finds the end of the path makes a small queue, and what a faulty link loses meanwhile looks like an overflow:
//! at 1 Gbit/s, 100 ms and a loss of 1e-3 two of ten starts came down to a quarter of the path, and took ten seconds to return (501
//! and 547 Mbit/s over that time, the others 829 to 921; emulated).

use super::background::{Background, DEVIATIONS};
use crate::Path;

/// The losses in doubt.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubt(Option<Open>);

#[derive(Clone, Copy, Debug)]
struct Open {
    /// Packets sent before the first of these losses could have been among them.
    sent_before: u64,
    lost: u64,
}

impl Doubt {
    /// `newly_lost` packets were reported; if as `congestion` and the link is not known, all that is lost from now on is in doubt.
    pub(super) fn on_loss(&mut self, path: &Path, newly_lost: u32, congestion: bool, link: &Background) {
        if self.0.is_none() && congestion && !link.is_known() {
            let sent_before = path.packets_sent.saturating_sub(u64::from(path.in_flight));
            self.0 = Some(Open { sent_before, lost: 0 });
        }
        if let Some(open) = &mut self.0 {
            open.lost += u64::from(newly_lost);
        }
    }

    /// Ends the doubt, if the link is known now: whether it and chance explain all that was lost meanwhile. `None` while there is
    /// nothing to say.
    pub(super) fn resolve(&mut self, path: &Path, link: &Background) -> Option<bool> {
        if !link.is_known() {
            return None;
        }
        let open = self.0.take()?;
        let expected = link.share() * path.packets_sent.saturating_sub(open.sent_before) as f64;
        Some(open.lost as f64 <= expected + DEVIATIONS * expected.sqrt())
    }
}
