//! Evaluates conditions, with the margin by which they hold or fail.

use super::{Comparison, Environment, Expression, Kind, NoValue, Node, Unit};

/// The comparison that decided a condition at a point. Of `and` it is the side closest to failing, of `or` the side
/// that holds best.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Whether the whole condition holds.
    pub holds: bool,
    /// The two sides of the deciding comparison; absent for a comparison of words.
    pub margin: Option<Margin>,
}

/// A comparison with its numbers, in base units.
#[derive(Clone, Debug, PartialEq)]
pub struct Margin {
    /// The measured value: the left side.
    pub measured: f64,
    /// The comparison.
    pub comparison: Comparison,
    /// The bound: the right side.
    pub bound: f64,
    /// The unit of both sides.
    pub unit: Unit,
}

impl Margin {
    /// The margin by which the comparison holds, in base units; negative where it fails.
    #[must_use]
    pub fn slack(&self) -> f64 {
        let above = self.measured - self.bound;
        match self.comparison {
            Comparison::Less | Comparison::AtMost => -above,
            Comparison::Greater | Comparison::AtLeast => above,
            Comparison::Equal => -above.abs(),
            Comparison::Unequal => above.abs(),
        }
    }

    /// The slack as a share of the bound, or in base units if the bound is zero. It ranks points from worst to best.
    #[must_use]
    pub fn relative_slack(&self) -> f64 {
        if self.bound == 0.0 { self.slack() } else { self.slack() / self.bound.abs() }
    }
}

impl Judgement {
    /// Orders judgements from the largest failure to the largest margin. A comparison of words holds or fails by one
    /// bound.
    fn rank(&self) -> (bool, f64) {
        let slack = self.margin.as_ref().map_or(if self.holds { 1.0 } else { -1.0 }, Margin::relative_slack);
        (self.holds, slack)
    }

    /// Whether this judgement fails by more, or holds by less.
    #[must_use]
    pub fn is_worse_than(&self, other: &Self) -> bool {
        let ((holds, slack), (other_holds, other_slack)) = (self.rank(), other.rank());
        if holds == other_holds { slack < other_slack } else { other_holds }
    }
}

impl Expression {
    /// Whether the condition holds at a point, and its margin.
    ///
    /// # Errors
    /// Missing data, a result that is not finite, or a number.
    pub fn judge(&self, environment: &dyn Environment) -> Result<Judgement, NoValue> {
        self.root.judge(environment)
    }
}

impl Node {
    fn judge(&self, environment: &dyn Environment) -> Result<Judgement, NoValue> {
        match self {
            Self::Compare(comparison, left, right) => {
                let unit =
                    [left, right].map(|side| side.unit(environment)).into_iter().find(|unit| *unit != Unit::Number);
                let margin = Margin {
                    unit: unit.unwrap_or_default(),
                    measured: left.number(environment)?,
                    comparison: *comparison,
                    bound: right.number(environment)?,
                };
                Ok(Judgement { holds: comparison.holds(margin.measured, margin.bound), margin: Some(margin) })
            }
            Self::TextIs { axis, text, wanted } => {
                let found = environment.text(axis).ok_or_else(|| NoValue::Missing(axis.clone()))?;
                Ok(Judgement { holds: (found == text) == *wanted, margin: None })
            }
            Self::And(left, right) => {
                let (left, right) = (left.judge(environment)?, right.judge(environment)?);
                Ok(if right.is_worse_than(&left) { right } else { left })
            }
            Self::Or(left, right) => {
                let (left, right) = (left.judge(environment)?, right.judge(environment)?);
                Ok(if left.is_worse_than(&right) { right } else { left })
            }
            Self::Number(..) | Self::Reference(_) | Self::Negative(_) | Self::Arithmetic(..) | Self::Function(..) => {
                Err(NoValue::WrongKind { found: Kind::Number })
            }
        }
    }
}
