//! The small language of scores and plots: arithmetic over metrics and axes, comparisons, `and`, `or`.
//!
//! ```text
//! utilisation >= 0.98
//! rate >= 1mbit or rtt <= 10ms
//! abs(goodput.udt / goodput.udt[no-warnings]@a11 - 1) <= 5%
//! queue == "red" and goodput.min >= 10mbit
//! ```
//!
//! A quantity is a number with its unit written on to it (`100mbit`, `10ms`, `1MB`, `5%`) and counts in base units. A name may hold
//! `-` and `.`, so a difference of names is written with spaces: `a - b`. `name[curve]` is that curve's value at the same point,
//! `name@figure` another figure's. An axis of words is compared with a word in quotes.
//!
//! Every name has to have a value: what refers to missing data has no value either, whichever side of `or` it stands on.
use std::fmt;

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

/// The longest text that is read, in bytes. A score is one thought; what is longer is a mistake.
pub const MAX_LENGTH: usize = 1_000;
/// How deeply brackets and functions may be nested.
pub const MAX_DEPTH: usize = 32;

/// A metric or an axis that an expression mentions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// Name of the metric (`goodput.udt`) or of the axis (`rtt`).
    pub name: String,
    /// Curve whose value is meant, if not the one at hand.
    pub curve: Option<String>,
    /// Figure whose value is meant, if not the one at hand.
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

/// What names mean at one point of a figure.
pub trait Environment {
    /// Value of a metric or an axis in base units, if there is one.
    fn number(&self, reference: &Reference) -> Option<f64>;

    /// Value of an axis as the scenario writes it.
    fn text(&self, axis: &str) -> Option<&str>;

    /// What a metric or an axis measures.
    fn unit(&self, reference: &Reference) -> Unit {
        Unit::of_metric(&reference.name)
    }
}

/// What kind of answer an expression gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number in base units.
    Number,
    /// True or false.
    Condition,
}

/// Why an expression has no value at a point.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoValue {
    /// Something it mentions was not measured there.
    #[error("no data: {0}")]
    Missing(String),
    /// A division by zero or a number out of range.
    #[error("the result is not a finite number")]
    NotFinite,
    /// A condition stands where a number is asked for, or the reverse.
    #[error("the expression is a {found:?}, which cannot be used here")]
    WrongKind {
        /// What it is.
        found: Kind,
    },
}

/// Why a text is no expression, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub struct ExpressionError {
    /// Which character, from 1.
    pub column: usize,
    /// What is wrong and what is allowed.
    pub message: String,
}

/// An expression that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    root: Node,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// In base units, and what it measures.
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

/// How two numbers are compared.
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

/// Two numbers are equal if they differ by no more than this share of the greater one: quantities are scaled by their units,
/// which costs the last digits.
const EQUAL_WITHIN: f64 = 1e-9;

impl Comparison {
    /// As it is printed.
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
    /// Reads a text of either kind.
    ///
    /// # Errors
    /// With the place of the first thing that cannot be read, and what could stand there.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let (root, kind) = parse::parse(text)?;
        Ok(Self { text: text.trim().to_owned(), root, kind })
    }

    /// Reads a text that has to be a number: `goodput.udt / goodput.tcp`.
    ///
    /// # Errors
    /// As [`Expression::parse`], and for a condition.
    pub fn parse_number(text: &str) -> Result<Self, ExpressionError> {
        Self::parse_kind(text, Kind::Number, "this is a condition, but a number is needed: leave the comparison out")
    }

    /// Reads a text that has to be a condition: `utilisation >= 0.98`.
    ///
    /// # Errors
    /// As [`Expression::parse`], and for a number.
    pub fn parse_condition(text: &str) -> Result<Self, ExpressionError> {
        Self::parse_kind(
            text,
            Kind::Condition,
            "this is a number, but a condition is needed: compare it by <, <=, >, >=, == or !=",
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

    /// As it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Number or condition.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The name, if the expression is nothing but a metric or an axis.
    #[must_use]
    pub fn as_reference(&self) -> Option<&Reference> {
        match &self.root {
            Node::Reference(reference) => Some(reference),
            _ => None,
        }
    }

    /// Everything that it mentions, in order, so that unknown names can be refused before anything runs.
    /// Axes that are compared with words are among it.
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

    /// The axes that it compares with words, and the words.
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

    /// What the number measures.
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
