//! The language of scores and plots: arithmetic over metrics and axes, comparisons, `and`, `or`.
//!
//! ```text
//! utilisation >= 0.98
//! rate >= 1mbit or rtt <= 10ms
//! abs(goodput.udt / goodput.udt[no-warnings]@a11 - 1) <= 5%
//! queue == "red" and goodput.min >= 10mbit
//!
//! condition  = and { "or" and }
//! and        = comparison { "and" comparison }
//! comparison = sum ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) sum
//!            | axis ( "==" | "!=" ) '"' word '"'
//!            | "(" condition ")"
//! sum        = product { ( "+" | "-" ) product }
//! product    = factor { ( "*" | "/" ) factor }
//! factor     = quantity | name [ "[" curve "]" ] [ "@" figure ] | "(" sum ")"
//!            | ( "abs" | "min" | "max" ) "(" sum { "," sum } ")"
//! ```
//!
//! A quantity is a number with its unit attached (`100mbit`, `10ms`, `1MB`, `5%`). It counts in base units. A name may
//! hold `-` and `.`, so a difference of names needs spaces: `a - b`. `name[curve]` is the value of that curve at the
//! same point. `name@figure` is the value of another figure. An axis of words is compared with a word in quotes.
//!
//! Every name must have a value. An expression with a missing value has no value, even if the name stands beside an
//! `or`.
use std::fmt;

use crate::metric::Quantity;

mod judge;
mod lexer;
mod parse;
mod quantity;
#[cfg(test)]
mod tests;

pub use crate::unit::{Shown, Unit, three_digits};
pub use judge::{Comparison, Condition, Judgement, Margin};
pub(crate) use parse::references;
pub use quantity::quantity_in_base_units;

/// The longest expression, in bytes. A longer one is a mistake.
pub const MAX_LENGTH: usize = 1_000;
/// The deepest nesting of brackets and functions.
pub const MAX_DEPTH: usize = 32;

/// A metric or an axis that an expression mentions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The name of the metric (`goodput.udt`) or of the axis (`rtt`).
    pub name: String,
    /// The curve of the value; `None` for the present curve.
    pub curve: Option<String>,
    /// The figure of the value; `None` for the present figure.
    pub figure: Option<String>,
}

impl Reference {
    /// A name at the present curve and figure.
    fn own(name: &str) -> Self {
        Self { name: name.to_owned(), curve: None, figure: None }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(curve) = &self.curve {
            write!(f, "[{curve}]")?;
        }
        match &self.figure {
            Some(figure) => write!(f, "@{figure}"),
            None => Ok(()),
        }
    }
}

/// The values of names at one point of a figure.
pub trait Environment {
    /// The value of a metric or an axis in base units, if there is one.
    fn number(&self, reference: &Reference) -> Option<f64>;

    /// The value of an axis as the scenario writes it.
    fn text(&self, axis: &str) -> Option<&str>;

    /// The unit of a metric or an axis.
    fn unit(&self, reference: &Reference) -> Unit {
        Quantity::unit_of_key(&reference.name)
    }
}

/// The reason why an expression has no value at a point.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoValue {
    /// A metric in the expression was not measured there.
    #[error("no data: {0}")]
    Missing(String),
    /// A division by zero or a number out of range.
    #[error("the result is not a finite number")]
    NotFinite,
}

/// A mistake in an expression, and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub struct ExpressionError {
    /// The column, from 1.
    pub column: usize,
    /// The mistake and the allowed text.
    pub message: String,
}

/// A parsed expression that is a number: `goodput.udt / goodput.tcp`.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// The value in base units, and its unit.
    Quantity(f64, Unit),
    /// The value of a metric or an axis.
    Reference(Reference),
    /// A sum, difference, product or quotient.
    Arithmetic(Operator, Box<[Expression; 2]>),
    /// A function of numbers.
    Function(Function, Vec<Expression>),
}

/// An operator between two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

/// A function of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The absolute value of one number.
    Abs,
    /// The least of two numbers or more.
    Min,
    /// The greatest of two numbers or more.
    Max,
}

impl Expression {
    /// All metrics and axes in the expression, in order, so that unknown names can be refused before anything runs.
    #[must_use]
    pub fn references(&self) -> Vec<Reference> {
        let mut found = Vec::new();
        self.collect(&mut found);
        found.sort();
        found.dedup();
        found
    }

    fn collect(&self, found: &mut Vec<Reference>) {
        match self {
            Self::Quantity(..) => {}
            Self::Reference(reference) => found.push(reference.clone()),
            Self::Arithmetic(_, sides) => sides.iter().for_each(|side| side.collect(found)),
            Self::Function(_, arguments) => arguments.iter().for_each(|argument| argument.collect(found)),
        }
    }

    /// Whether it needs the processor time of a host.
    pub(crate) fn is_processor_time(&self) -> bool {
        let needs = |name: &str| Quantity::of_key(name).is_some_and(Quantity::is_processor_time);
        self.references().iter().any(|reference| needs(&reference.name))
    }

    /// The number at a point, in base units.
    ///
    /// # Errors
    /// Missing data, or a result that is not finite.
    pub fn number(&self, environment: &dyn Environment) -> Result<f64, NoValue> {
        let value = match self {
            Self::Quantity(number, _) => *number,
            Self::Reference(reference) => {
                environment.number(reference).ok_or_else(|| NoValue::Missing(reference.to_string()))?
            }
            Self::Arithmetic(operator, sides) => {
                let (left, right) = (sides[0].number(environment)?, sides[1].number(environment)?);
                match operator {
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Divide => left / right,
                }
            }
            Self::Function(function, arguments) => {
                let values = arguments.iter().map(|argument| argument.number(environment));
                let values = values.collect::<Result<Vec<_>, _>>()?.into_iter();
                match function {
                    Function::Abs => values.map(f64::abs).sum(),
                    Function::Min => values.fold(f64::INFINITY, f64::min),
                    Function::Max => values.fold(f64::NEG_INFINITY, f64::max),
                }
            }
        };
        if value.is_finite() { Ok(value) } else { Err(NoValue::NotFinite) }
    }

    /// The unit of the number. Sums keep the unit. Quotients of equal units have none.
    pub fn unit(&self, environment: &dyn Environment) -> Unit {
        match self {
            Self::Quantity(_, unit) => *unit,
            Self::Reference(reference) => environment.unit(reference),
            Self::Arithmetic(operator, sides) => {
                let [left, right] = [0, 1].map(|side: usize| sides[side].unit(environment));
                match operator {
                    Operator::Add | Operator::Subtract if left == Unit::Number => right,
                    Operator::Add | Operator::Subtract => left,
                    Operator::Multiply if left == Unit::Number => right,
                    Operator::Multiply if right == Unit::Number => left,
                    Operator::Divide if right == Unit::Number => left,
                    Operator::Multiply | Operator::Divide => Unit::Number,
                }
            }
            Self::Function(_, arguments) => {
                let mut units = arguments.iter().map(|argument| argument.unit(environment));
                units.find(|unit| *unit != Unit::Number).unwrap_or_default()
            }
        }
    }
}
