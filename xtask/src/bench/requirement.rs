//! Requirements on the medians of a row.

use std::fmt;

use anyhow::{Result, ensure};

use super::quantity::Quantity;
use super::samples::{Key, Samples, Summary};

/// One requirement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requirement {
    pub(super) case: &'static str,
    pub(super) program: &'static str,
    pub(super) quantity: Quantity,
    pub(super) bound: Bound,
}

/// The limit of a figure.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    /// At least this value.
    Least(f64),
    /// At most this value.
    Most(f64),
    /// At least this multiple of another program's figure.
    LeastTimes(f64, &'static str),
    /// At most this multiple of another program's figure.
    MostTimes(f64, &'static str),
    /// At most this much more than another program's figure.
    MostPlus(f64, &'static str),
    /// At most this value, or at most this multiple of another program's figure: the weaker of the two.
    MostOrTimes(f64, f64, &'static str),
}

/// A figure compared with its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Comparison {
    pub(super) holds: bool,
    pub(super) ours: Summary,
    pub(super) limit: f64,
    /// Another program and its median: the one in the bound, otherwise the reference library if it ran.
    pub(super) peer: Option<(&'static str, f64)>,
}

/// The program shown beside figures without a peer in their bound.
const REFERENCE: &str = "libudt";

impl Requirement {
    /// Compares the figure in a setting with its limit.
    ///
    /// # Errors
    /// A required figure was not measured.
    pub(super) fn judge(&self, samples: &Samples, setting: &'static str) -> Result<Comparison> {
        let Self { case, program, quantity, bound } = *self;
        let summary = |program| samples.summary(&Key { setting, case, program, quantity });
        let ours = summary(program)?;
        let theirs = |program| -> Result<(&'static str, f64)> { Ok((program, summary(program)?.median)) };
        let (limit, peer) = match bound {
            Bound::Least(limit) | Bound::Most(limit) => (limit, theirs(REFERENCE).ok()),
            Bound::LeastTimes(factor, other) | Bound::MostTimes(factor, other) => {
                let peer = theirs(other)?;
                (factor * peer.1, Some(peer))
            }
            Bound::MostPlus(more, other) => {
                let peer = theirs(other)?;
                (peer.1 + more, Some(peer))
            }
            Bound::MostOrTimes(limit, factor, other) => match theirs(other) {
                Ok(peer) => (limit.max(factor * peer.1), Some(peer)),
                // The absolute limit suffices without the other program. If it does not hold, the result is unknown.
                Err(error) => {
                    ensure!(ours.median <= limit, error);
                    (limit, None)
                }
            },
        };
        let holds = match bound {
            Bound::Least(_) | Bound::LeastTimes(..) => ours.median >= limit,
            Bound::Most(_) | Bound::MostTimes(..) | Bound::MostPlus(..) | Bound::MostOrTimes(..) => {
                ours.median <= limit
            }
        };
        Ok(Comparison { holds, ours, limit, peer })
    }

    /// The limit in words.
    pub(super) fn must(&self) -> String {
        let show = |limit| self.quantity.show(limit);
        match self.bound {
            Bound::Least(limit) => format!("≥ {}", show(limit)),
            Bound::Most(limit) => format!("≤ {}", show(limit)),
            Bound::LeastTimes(factor, other) => format!("≥ {factor} × {other}"),
            Bound::MostTimes(factor, other) => format!("≤ {factor} × {other}"),
            Bound::MostPlus(more, other) => format!("≤ {other} + {}", show(more)),
            Bound::MostOrTimes(limit, factor, other) => format!("≤ {} or {factor} × {other}", show(limit)),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} of {} {}", self.case, self.quantity.name(), self.program, self.must())
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::Measured;
    use super::*;

    fn samples(figures: &[(&'static str, f64)]) -> Samples {
        let mut samples = Samples::default();
        for &(program, value) in figures {
            samples.add("a", program, Ok(Measured::of([(Quantity::CpuPerGb, value)])));
        }
        samples
    }

    fn judge(bound: Bound, figures: &[(&'static str, f64)]) -> Result<Comparison> {
        let requirement = Requirement { case: "a", program: "ours", quantity: Quantity::CpuPerGb, bound };
        requirement.judge(&samples(figures), "")
    }

    #[test]
    fn a_requirement_compares_medians_of_the_same_case() {
        let figures = [("ours", 10.0), ("theirs", 4.0)];
        let comparison = judge(Bound::LeastTimes(2.0, "theirs"), &figures).unwrap();
        assert_eq!((comparison.holds, comparison.limit, comparison.peer), (true, 8.0, Some(("theirs", 4.0))));
        assert!(!judge(Bound::LeastTimes(3.0, "theirs"), &figures).unwrap().holds);
        assert!(!judge(Bound::MostTimes(2.0, "theirs"), &figures).unwrap().holds);
    }

    #[test]
    fn a_margin_is_added_to_the_other_programs_figure() {
        let bound = Bound::MostPlus(0.5, "theirs");
        let comparison = judge(bound, &[("ours", 4.5), ("theirs", 4.0)]).unwrap();
        assert_eq!((comparison.holds, comparison.limit), (true, 4.5));
        assert!(!judge(bound, &[("ours", 4.6), ("theirs", 4.0)]).unwrap().holds);
    }

    #[test]
    fn of_two_limits_the_weaker_one_applies() {
        let bound = Bound::MostOrTimes(3.5, 1.2, "raw");
        assert!(judge(bound, &[("ours", 3.0), ("raw", 1.0)]).unwrap().holds);
        assert!(judge(bound, &[("ours", 4.0), ("raw", 3.5)]).unwrap().holds);
        assert!(!judge(bound, &[("ours", 4.0), ("raw", 3.0)]).unwrap().holds);
        assert!(judge(bound, &[("ours", 3.0)]).unwrap().holds);
        assert!(judge(bound, &[("ours", 4.0)]).is_err(), "what the other half would say is not known");
    }

    #[test]
    fn the_reference_is_shown_beside_an_absolute_limit() {
        assert_eq!(judge(Bound::Most(3.0), &[("ours", 2.0), ("libudt", 5.0)]).unwrap().peer, Some(("libudt", 5.0)));
        assert_eq!(judge(Bound::Most(3.0), &[("ours", 2.0)]).unwrap().peer, None);
    }

    #[test]
    fn a_missing_figure_is_not_a_met_requirement() {
        assert!(judge(Bound::Least(0.0), &[]).is_err());
        assert!(judge(Bound::LeastTimes(1.0, "theirs"), &[("ours", 1.0)]).is_err());
    }
}
