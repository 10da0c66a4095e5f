//! Losses that were taken for congestion before it was known what the link loses. Once it is known, either it explains them, and
//! what was done about them may be taken back, or it does not.
//!
//! A young flow that finds the end of the path makes a small queue, and what a faulty link loses meanwhile looks like an overflow:
//! at 1 Gbit/s, 100 ms and a loss of 1e-3 two of ten starts came down to a quarter of the path, and took ten seconds to return (501
//! and 547 Mbit/s over that time, the others 829 to 921; emulated).

use super::background::{Background, DEVIATIONS};
use crate::Path;

/// What a law knew of how much fits a path, packets/s: what it has carried, and what arrived when it was full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::rate) struct Fits {
    pub(in crate::rate) carried: f64,
    pub(in crate::rate) full: f64,
}

/// The losses in doubt, and what they may have made the law forget.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubt(Option<Open>);

#[derive(Clone, Copy, Debug)]
struct Open {
    /// Packets sent before the first of these losses could have been among them.
    sent_before: u64,
    lost: u64,
    /// What was known before the first of them; `None` in start-up, which knows nothing yet.
    before: Option<Fits>,
}

impl Doubt {
    /// `newly_lost` packets were reported; if as `congestion` and the link is not known, all that is lost from now on is in doubt,
    /// and what is known `now` is kept.
    pub(super) fn on_loss(
        &mut self,
        path: &Path,
        newly_lost: u32,
        congestion: bool,
        link: &Background,
        now: Option<Fits>,
    ) {
        if congestion && !link.is_known() {
            let sent_before = path.packets_sent.saturating_sub(u64::from(path.in_flight));
            let open = self.0.get_or_insert(Open { sent_before, lost: 0, before: None });
            open.before = open.before.or(now);
        }
        if let Some(open) = &mut self.0 {
            open.lost += u64::from(newly_lost);
        }
    }

    /// Ends the doubt, if the link is known now: what was known before, if the link and chance explain all that was lost meanwhile.
    pub(super) fn resolve(&mut self, path: &Path, link: &Background) -> Option<Fits> {
        if !link.is_known() {
            return None;
        }
        let open = self.0.take()?;
        let expected = link.share() * path.packets_sent.saturating_sub(open.sent_before) as f64;
        (open.lost as f64 <= expected + DEVIATIONS * expected.sqrt()).then_some(open.before).flatten()
    }
}
