//! Conditions, and the margin by which they hold or fail.

use super::{Environment, Expression, NoValue, Reference, Unit};

/// A parsed condition: `utilisation >= 0.98`.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Two numbers are compared.
    Compare(Comparison, Box<[Expression; 2]>),
    /// An axis has a value, or has another.
    TextIs {
        /// The axis.
        axis: String,
        /// The value as the scenario writes it.
        text: String,
        /// Whether the axis must have it.
        wanted: bool,
    },
    /// Both hold.
    And(Box<[Condition; 2]>),
    /// One of them holds at least.
    Or(Box<[Condition; 2]>),
}

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
    /// `==`, to nine digits
    Equal,
    /// `!=`, to nine digits
    Unequal,
}

/// Two numbers are equal if they differ by at most this share of the greater one. Scaling by units costs the last
/// digits.
const EQUAL_WITHIN: f64 = 1e-9;

impl Comparison {
    /// The printed symbol.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::AtMost => "≤",
            Self::Greater => ">",
            Self::AtLeast => "≥",
            Self::Equal => "=",
            Self::Unequal => "≠",
        }
    }

    fn holds(self, left: f64, right: f64) -> bool {
        let equal = (left - right).abs() <= EQUAL_WITHIN * left.abs().max(right.abs());
        match self {
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::Greater => left > right,
            Self::AtLeast => left >= right,
            Self::Equal => equal,
            Self::Unequal => !equal,
        }
    }
}

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

impl Condition {
    /// All metrics and axes in the condition, in order. Axes that are compared with words are among them.
    #[must_use]
    pub fn references(&self) -> Vec<Reference> {
        let mut found = match self {
            Self::Compare(_, sides) => sides.iter().flat_map(Expression::references).collect(),
            Self::TextIs { axis, .. } => vec![Reference::own(axis)],
            Self::And(sides) | Self::Or(sides) => sides.iter().flat_map(Self::references).collect::<Vec<_>>(),
        };
        found.sort();
        found.dedup();
        found
    }

    /// The axes that the condition compares with words, and the words.
    #[must_use]
    pub fn compared_texts(&self) -> Vec<(&str, &str)> {
        match self {
            Self::Compare(..) => Vec::new(),
            Self::TextIs { axis, text, .. } => vec![(axis, text)],
            Self::And(sides) | Self::Or(sides) => sides.iter().flat_map(Self::compared_texts).collect(),
        }
    }

    /// Whether the condition holds at a point.
    ///
    /// # Errors
    /// Missing data, or a result that is not finite.
    pub fn holds(&self, environment: &dyn Environment) -> Result<bool, NoValue> {
        self.judge(environment).map(|judgement| judgement.holds)
    }

    /// Whether the condition holds at a point, and its margin.
    ///
    /// # Errors
    /// Missing data, or a result that is not finite.
    pub fn judge(&self, environment: &dyn Environment) -> Result<Judgement, NoValue> {
        match self {
            Self::Compare(comparison, sides) => {
                let mut units = sides.iter().map(|side| side.unit(environment));
                let margin = Margin {
                    unit: units.find(|unit| *unit != Unit::Number).unwrap_or_default(),
                    measured: sides[0].number(environment)?,
                    comparison: *comparison,
                    bound: sides[1].number(environment)?,
                };
                Ok(Judgement { holds: comparison.holds(margin.measured, margin.bound), margin: Some(margin) })
            }
            Self::TextIs { axis, text, wanted } => {
                let found = environment.text(axis).ok_or_else(|| NoValue::Missing(axis.clone()))?;
                Ok(Judgement { holds: (found == text) == *wanted, margin: None })
            }
            Self::And(sides) => {
                let (left, right) = (sides[0].judge(environment)?, sides[1].judge(environment)?);
                Ok(if right.is_worse_than(&left) { right } else { left })
            }
            Self::Or(sides) => {
                let (left, right) = (sides[0].judge(environment)?, sides[1].judge(environment)?);
                Ok(if left.is_worse_than(&right) { right } else { left })
            }
        }
    }
}
