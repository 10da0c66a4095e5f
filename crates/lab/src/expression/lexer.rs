//! Splits text into tokens, each with its column.

use std::fmt;

use super::quantity::quantity_in_base_units;
use super::{ExpressionError, MAX_LENGTH, Unit};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'t> {
    /// The value in base units, and its unit.
    Quantity(f64, Unit),
    Name(&'t str),
    /// A word in quotes.
    Text(&'t str),
    /// `[curve]` without its brackets. The name of a curve may hold anything but a bracket.
    Curve(&'t str),
    /// One of [`SYMBOLS`], `and` or `or`.
    Symbol(&'static str),
}

/// Operators and brackets. Of two that begin alike, the longer one stands first.
const SYMBOLS: [&str; 14] = ["<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "(", ")", ",", "@"];

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantity(number, _) => write!(f, "the number {number}"),
            Self::Name(name) => write!(f, "'{name}'"),
            Self::Text(text) => write!(f, "the word \"{text}\""),
            Self::Curve(curve) => write!(f, "'[{curve}]'"),
            Self::Symbol(symbol) => write!(f, "'{symbol}'"),
        }
    }
}

pub(super) fn error<T>(column: usize, message: impl Into<String>) -> Result<T, ExpressionError> {
    Err(ExpressionError { column, message: message.into() })
}

/// All tokens with their columns, from 1.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token<'_>)>, ExpressionError> {
    if text.len() > MAX_LENGTH {
        return error(MAX_LENGTH, format!("an expression has at most {MAX_LENGTH} bytes, this one {}", text.len()));
    }
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let column = text[..text.len() - rest.len()].chars().count() + 1;
        let (token, length) = token(rest, first).or_else(|message| error(column, message))?;
        tokens.push((column, token));
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// The token at the beginning of a text, and its length in bytes.
fn token(text: &str, first: char) -> Result<(Token<'_>, usize), String> {
    if first.is_ascii_digit() || first == '.' {
        let text = &text[..length_of_quantity(text)];
        let Some(value) = quantity_in_base_units(text) else {
            return Err(format!(
                "'{text}' is not a quantity: write a number, alone or with bit, kbit, mbit, gbit, ns, us, ms, s, min, B, \
                 kB, MB, GB or %"
            ));
        };
        return Ok((Token::Quantity(value, Unit::of_quantity(text)), text.len()));
    }
    if first.is_ascii_alphabetic() {
        // Dots and hyphens belong to a name if it continues after them: `goodput.udt-2004`.
        let name = text.split(|letter: char| !letter.is_ascii_alphanumeric() && !"_.-".contains(letter)).next();
        let name = name.unwrap_or(text).trim_end_matches(['.', '-']);
        let token = match name {
            "and" => Token::Symbol("and"),
            "or" => Token::Symbol("or"),
            name => Token::Name(name),
        };
        return Ok((token, name.len()));
    }
    if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| text.starts_with(symbol)) {
        return Ok((Token::Symbol(symbol), symbol.len()));
    }
    let enclosed = |end: char, what: &str| match text[1..].split_once(end) {
        None => Err(format!("{what} begins here and never ends: '{end}' is missing")),
        Some((inside, _)) if inside.trim().is_empty() => Err(format!("{what} is missing")),
        Some((inside, _)) => Ok((inside.trim(), inside.len() + 2)),
    };
    match first {
        '[' => enclosed(']', "a curve's name").map(|(name, length)| (Token::Curve(name), length)),
        '"' => enclosed('"', "a word").map(|(word, length)| (Token::Text(word), length)),
        '=' => Err("'=' means nothing here: write == for equal, >= or <=".to_owned()),
        other => Err(format!(
            "'{other}' means nothing here: use numbers, names, + - * / ( ) < <= > >= == != and, or, abs, min, max"
        )),
    }
}

/// The bytes of a number with the unit attached to it.
fn length_of_quantity(text: &str) -> usize {
    let mut before = ' ';
    let end = text.find(|letter: char| {
        // The sign of an exponent, as in 1e-4.
        let is_sign = "+-".contains(letter) && "eE".contains(before);
        before = letter;
        !is_sign && !letter.is_alphanumeric() && !".%".contains(letter)
    });
    end.unwrap_or(text.len())
}
