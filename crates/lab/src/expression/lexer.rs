//! Splits text into tokens, each with its column.

use super::quantity::quantity_in_base_units;
use super::unit::Unit;
use super::{Comparison, ExpressionError, MAX_LENGTH, Operator};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// The value in base units, and its unit.
    Number(f64, Unit),
    Name(String),
    Text(String),
    /// `[curve]` with its brackets. The name of a curve may hold anything but a bracket.
    Curve(String),
    At,
    Open,
    Close,
    Comma,
    Arithmetic(Operator),
    Compare(Comparison),
    And,
    Or,
}

impl Token {
    /// The token in messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Number(number, _) => format!("the number {number}"),
            Self::Name(name) => format!("'{name}'"),
            Self::Text(text) => format!("the word \"{text}\""),
            Self::Curve(curve) => format!("'[{curve}]'"),
            Self::At => "'@'".to_owned(),
            Self::Open => "'('".to_owned(),
            Self::Close => "')'".to_owned(),
            Self::Comma => "','".to_owned(),
            Self::Arithmetic(Operator::Add) => "'+'".to_owned(),
            Self::Arithmetic(Operator::Subtract) => "'-'".to_owned(),
            Self::Arithmetic(Operator::Multiply) => "'*'".to_owned(),
            Self::Arithmetic(Operator::Divide) => "'/'".to_owned(),
            Self::Compare(comparison) => format!("'{}'", comparison.symbol()),
            Self::And => "'and'".to_owned(),
            Self::Or => "'or'".to_owned(),
        }
    }
}

pub(super) fn error(column: usize, message: impl Into<String>) -> ExpressionError {
    ExpressionError { column, message: message.into() }
}

/// All tokens with their columns, from 1.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, ExpressionError> {
    if text.len() > MAX_LENGTH {
        return Err(error(
            MAX_LENGTH,
            format!("an expression has at most {MAX_LENGTH} bytes, this one {}", text.len()),
        ));
    }
    let mut lexer = Lexer { characters: text.chars().collect(), next: 0 };
    let mut tokens = Vec::new();
    while let Some(first) = lexer.skip_space() {
        let column = lexer.next + 1;
        tokens.push((column, lexer.token(first, column)?));
    }
    Ok(tokens)
}

struct Lexer {
    characters: Vec<char>,
    next: usize,
}

impl Lexer {
    fn skip_space(&mut self) -> Option<char> {
        self.take_while(|_, character| character.is_whitespace());
        self.peek(0)
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.characters.get(self.next + ahead).copied()
    }

    /// Takes characters while the predicate holds. The predicate also sees the next character.
    fn take_while(&mut self, like: impl Fn(Option<char>, char) -> bool) -> String {
        let start = self.next;
        while let Some(character) = self.peek(0) {
            if !like(self.peek(1), character) {
                break;
            }
            self.next += 1;
        }
        self.characters[start..self.next].iter().collect()
    }

    fn token(&mut self, first: char, column: usize) -> Result<Token, ExpressionError> {
        if first.is_ascii_digit() || first == '.' {
            return self.quantity(column);
        }
        if is_name_start(first) {
            let name = self.take_while(is_name_character);
            return Ok(match name.as_str() {
                "and" => Token::And,
                "or" => Token::Or,
                _ => Token::Name(name),
            });
        }
        self.next += 1;
        Ok(match first {
            '(' => Token::Open,
            ')' => Token::Close,
            ',' => Token::Comma,
            '@' => Token::At,
            '+' => Token::Arithmetic(Operator::Add),
            '-' => Token::Arithmetic(Operator::Subtract),
            '*' => Token::Arithmetic(Operator::Multiply),
            '/' => Token::Arithmetic(Operator::Divide),
            '≤' => Token::Compare(Comparison::AtMost),
            '≥' => Token::Compare(Comparison::AtLeast),
            '<' if self.follows('=') => Token::Compare(Comparison::AtMost),
            '<' => Token::Compare(Comparison::Less),
            '>' if self.follows('=') => Token::Compare(Comparison::AtLeast),
            '>' => Token::Compare(Comparison::Greater),
            '=' if self.follows('=') => Token::Compare(Comparison::Equal),
            '!' if self.follows('=') => Token::Compare(Comparison::Unequal),
            '[' => Token::Curve(self.enclosed(column, ']', "a curve's name")?),
            '"' | '\'' => Token::Text(self.enclosed(column, first, "a word")?),
            '=' => return Err(error(column, "'=' means nothing here: write == for equal, >= or <=")),
            other => {
                return Err(error(
                    column,
                    format!(
                        "'{other}' means nothing here: use numbers, names, + - * / ( ) < <= > >= == != and, or, abs, min, max"
                    ),
                ));
            }
        })
    }

    fn follows(&mut self, character: char) -> bool {
        let follows = self.peek(0) == Some(character);
        self.next += usize::from(follows);
        follows
    }

    fn enclosed(&mut self, column: usize, end: char, what: &str) -> Result<String, ExpressionError> {
        let inside = self.take_while(|_, character| character != end);
        if self.peek(0) != Some(end) {
            return Err(error(column, format!("{what} begins here and never ends: '{end}' is missing")));
        }
        self.next += 1;
        let inside = inside.trim().to_owned();
        if inside.is_empty() { Err(error(column, format!("{what} is missing"))) } else { Ok(inside) }
    }

    /// A number with the unit attached to it.
    fn quantity(&mut self, column: usize) -> Result<Token, ExpressionError> {
        let mut text = self.take_while(|_, character| character.is_ascii_digit() || character == '.');
        let exponent = matches!(self.peek(0), Some('e' | 'E'));
        let sign = matches!(self.peek(1), Some('+' | '-'));
        if exponent && self.peek(1 + usize::from(sign)).is_some_and(|digit| digit.is_ascii_digit()) {
            for _ in 0..=usize::from(sign) {
                text.extend(self.peek(0));
                self.next += 1;
            }
            text += &self.take_while(|_, character| character.is_ascii_digit());
        }
        text += &self.take_while(|_, character| character.is_alphanumeric() || character == '%');
        quantity_in_base_units(&text).map(|value| Token::Number(value, Unit::of_quantity(&text))).ok_or_else(|| {
            error(column, format!("'{text}' is not a quantity: write a number, alone or with bit, kbit, mbit, gbit, ns, us, ms, s, min, B, kB, MB, GB or %"))
        })
    }
}

fn is_name_start(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_'
}

/// Dots and hyphens belong to a name if it continues after them: `goodput.udt-2004`.
fn is_name_character(next: Option<char>, character: char) -> bool {
    let goes_on = |next: Option<char>| next.is_some_and(|next| next.is_ascii_alphanumeric() || next == '_');
    match character {
        '.' | '-' => goes_on(next),
        _ => character.is_ascii_alphanumeric() || character == '_',
    }
}
