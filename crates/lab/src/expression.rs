//! The language of scores and plots: arithmetic over metrics and axes, comparisons, `and`, `or`.
//!
//! ```text
//! utilisation >= 0.98
//! rate >= 1mbit or rtt <= 10ms
//! abs(goodput.udt / goodput.udt[no-warnings]@a11 - 1) <= 5%
//! queue == "red" and goodput.min >= 10mbit
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
mod unit;

pub use judge::{Judgement, Margin};
pub use quantity::quantity_in_base_units;
pub use unit::{Shown, Unit, three_digits};

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
        Unit::of_metric(&reference.name)
    }
}

/// The kind of an expression's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number in base units.
    Number,
    /// True or false.
    Condition,
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
    /// A condition stands in place of a number, or the reverse.
    #[error("the expression is a {found:?}, which cannot be used here")]
    WrongKind {
        /// The kind that was found.
        found: Kind,
    },
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

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    root: Node,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// The value in base units, and its unit.
    Number(f64, Unit),
    Reference(Reference),
    Negative(Box<Node>),
    Arithmetic(Operator, Box<Node>, Box<Node>),
    Function(Function, Vec<Node>),
    Compare(Comparison, Box<Node>, Box<Node>),
    TextIs {
        axis: String,
        text: String,
        wanted: bool,
    },
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Abs,
    Min,
    Max,
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

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Expression {
    /// Parses an expression of either kind.
    ///
    /// # Errors
    /// The place of the first mistake, and the text that could stand there.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let (root, kind) = parse::parse(text)?;
        Ok(Self { text: text.trim().to_owned(), root, kind })
    }

    /// Parses an expression that must be a number: `goodput.udt / goodput.tcp`.
    ///
    /// # Errors
    /// As [`Expression::parse`], and for a condition.
    pub fn parse_number(text: &str) -> Result<Self, ExpressionError> {
        Self::parse_kind(text, Kind::Number, "expected a number, found a condition: leave the comparison out")
    }

    /// Parses an expression that must be a condition: `utilisation >= 0.98`.
    ///
    /// # Errors
    /// As [`Expression::parse`], and for a number.
    pub fn parse_condition(text: &str) -> Result<Self, ExpressionError> {
        Self::parse_kind(
            text,
            Kind::Condition,
            "expected a condition, found a number: compare it by <, <=, >, >=, == or !=",
        )
    }

    fn parse_kind(text: &str, kind: Kind, otherwise: &str) -> Result<Self, ExpressionError> {
        let expression = Self::parse(text)?;
        if expression.kind == kind {
            Ok(expression)
        } else {
            Err(ExpressionError { column: 1, message: otherwise.to_owned() })
        }
    }

    /// The text, as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Number or condition.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The name, if the expression is only a metric or an axis.
    #[must_use]
    pub fn as_reference(&self) -> Option<&Reference> {
        match &self.root {
            Node::Reference(reference) => Some(reference),
            _ => None,
        }
    }

    /// All metrics and axes in the expression, in order, so that unknown names can be refused before anything runs.
    /// Axes that are compared with words are among them.
    #[must_use]
    pub fn references(&self) -> Vec<Reference> {
        let mut found = Vec::new();
        self.root.visit(&mut |node| match node {
            Node::Reference(reference) => found.push(reference.clone()),
            Node::TextIs { axis, .. } => found.push(Reference { name: axis.clone(), curve: None, figure: None }),
            _ => {}
        });
        found.sort();
        found.dedup();
        found
    }

    /// Whether it needs the processor time of a host.
    pub(crate) fn is_processor_time(&self) -> bool {
        let needs = |name: &str| Quantity::of_key(name).is_some_and(Quantity::is_processor_time);
        self.references().iter().any(|reference| needs(&reference.name))
    }

    /// The axes that the expression compares with words, and the words.
    #[must_use]
    pub fn compared_texts(&self) -> Vec<(&str, &str)> {
        let mut found = Vec::new();
        self.root.visit(&mut |node| {
            if let Node::TextIs { axis, text, .. } = node {
                found.push((axis.as_str(), text.as_str()));
            }
        });
        found
    }

    /// The number at a point, in base units.
    ///
    /// # Errors
    /// Missing data, a result that is not finite, or a condition.
    pub fn number(&self, environment: &dyn Environment) -> Result<f64, NoValue> {
        match self.kind {
            Kind::Number => self.root.number(environment),
            Kind::Condition => Err(NoValue::WrongKind { found: Kind::Condition }),
        }
    }

    /// The unit of the number.
    pub fn unit(&self, environment: &dyn Environment) -> Unit {
        self.root.unit(environment)
    }

    /// Whether the condition holds at a point.
    ///
    /// # Errors
    /// Missing data, a result that is not finite, or a number.
    pub fn holds(&self, environment: &dyn Environment) -> Result<bool, NoValue> {
        self.judge(environment).map(|judgement| judgement.holds)
    }
}

impl Node {
    fn visit<'n>(&'n self, see: &mut dyn FnMut(&'n Self)) {
        see(self);
        match self {
            Self::Number(..) | Self::Reference(_) | Self::TextIs { .. } => {}
            Self::Negative(inner) => inner.visit(see),
            Self::Function(_, arguments) => arguments.iter().for_each(|argument| argument.visit(see)),
            Self::Arithmetic(_, left, right)
            | Self::Compare(_, left, right)
            | Self::And(left, right)
            | Self::Or(left, right) => {
                left.visit(see);
                right.visit(see);
            }
        }
    }

    fn number(&self, environment: &dyn Environment) -> Result<f64, NoValue> {
        let value = match self {
            Self::Number(number, _) => *number,
            Self::Reference(reference) => {
                environment.number(reference).ok_or_else(|| NoValue::Missing(reference.to_string()))?
            }
            Self::Negative(inner) => -inner.number(environment)?,
            Self::Arithmetic(operator, left, right) => {
                let (left, right) = (left.number(environment)?, right.number(environment)?);
                match operator {
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Divide => left / right,
                }
            }
            Self::Function(function, arguments) => {
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(argument.number(environment)?);
                }
                match function {
                    Function::Abs => values.first().map_or(f64::NAN, |value| value.abs()),
                    Function::Min => values.into_iter().fold(f64::INFINITY, f64::min),
                    Function::Max => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
                }
            }
            Self::Compare(..) | Self::TextIs { .. } | Self::And(..) | Self::Or(..) => {
                return Err(NoValue::WrongKind { found: Kind::Condition });
            }
        };
        if value.is_finite() { Ok(value) } else { Err(NoValue::NotFinite) }
    }
}
