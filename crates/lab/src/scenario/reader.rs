//! Parses TOML into values that know their line, and refuses unknown keys.

mod nearest;
mod section;

use std::collections::BTreeMap;
use std::fmt;

use toml::de::{DeTable, DeValue};

pub use nearest::nearest;
pub(crate) use section::Section;
pub(crate) use section::{listed, share, text};

use crate::error::ScenarioError;

/// A value and its line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The value.
    pub(crate) value: Value,
}

/// A value of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Words or a quantity, in quotes.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// `true` or `false`.
    Flag(bool),
    /// A list.
    List(Vec<Node>),
    /// A table.
    Table(Table),
}

/// Keys and values of a table, in alphabetical order.
pub(crate) type Table = BTreeMap<String, Node>;

impl Value {
    /// The kind of value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Flag(_) => "true or false",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl fmt::Display for Value {
    /// Prints the same form for the same value, however it is written. This form is hashed and shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::List(nodes) => {
                f.write_str("[")?;
                for (index, node) in nodes.iter().enumerate() {
                    write!(f, "{}{}", if index > 0 { ", " } else { "" }, node.value)?;
                }
                f.write_str("]")
            }
            Self::Table(table) => {
                f.write_str("{")?;
                for (index, (key, node)) in table.iter().enumerate() {
                    write!(f, "{}{key} = {}", if index > 0 { ", " } else { "" }, node.value)?;
                }
                f.write_str("}")
            }
        }
    }
}

/// Parses a scenario's text.
///
/// # Errors
/// The text is no TOML, or holds a date.
pub(crate) fn read(file: &str, text: &str) -> Result<Node, ScenarioError> {
    let lines = Lines::new(text);
    let error = |line: usize, message: String| ScenarioError { file: file.to_owned(), line, message };
    let root = DeTable::parse(text).map_err(|wrong| {
        let line = wrong.span().map_or(1, |span| lines.at(span.start));
        error(line, format!("this is not TOML: {}", wrong.message().replace('\n', ", ")))
    })?;
    let table = table(root.get_ref(), &lines).map_err(|(line, message)| error(line, message))?;
    Ok(Node { line: 1, value: Value::Table(table) })
}

fn table(from: &DeTable<'_>, lines: &Lines) -> Result<Table, (usize, String)> {
    from.iter()
        .map(|(key, value)| {
            let line = lines.at(key.span().start);
            Ok((key.get_ref().to_string(), Node { line, value: node(value.get_ref(), line, lines)? }))
        })
        .collect()
}

fn node(from: &DeValue<'_>, line: usize, lines: &Lines) -> Result<Value, (usize, String)> {
    Ok(match from {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            let whole = i64::from_str_radix(&digits, number.radix());
            Value::Integer(whole.map_err(|_| (line, format!("{digits} is not between -2^63 and 2^63 - 1")))?)
        }
        DeValue::Float(number) => {
            let number: Option<f64> = number.as_str().replace('_', "").parse().ok();
            let finite = number.filter(|number| number.is_finite());
            Value::Float(finite.ok_or((line, "a number must be finite".to_owned()))?)
        }
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => return Err((line, "a date cannot be used here".to_owned())),
        DeValue::Array(items) => Value::List(
            items
                .iter()
                .map(|item| {
                    let line = lines.at(item.span().start).max(line);
                    Ok(Node { line, value: node(item.get_ref(), line, lines)? })
                })
                .collect::<Result<_, (usize, String)>>()?,
        ),
        DeValue::Table(inner) => Value::Table(table(inner, lines)?),
    })
}

/// The offsets at which lines begin.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(ends).collect())
    }

    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|begin| *begin <= offset).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_knows_its_line() {
        let text =
            "title = \"x\"\n\n[link]\nrate = \"1gbit\"\n\n[[flow]]\nname = \"a\"\n[[flow]]\nname = \"b\"\ncount = 3\n";
        let Value::Table(root) = read("f", text).unwrap().value else { panic!("a table") };
        let line = |table: &Table, key: &str| table[key].line;
        assert_eq!((line(&root, "title"), line(&root, "link")), (1, 3));
        let Value::Table(link) = &root["link"].value else { panic!("a table") };
        assert_eq!(line(link, "rate"), 4);
        let Value::List(flows) = &root["flow"].value else { panic!("a list") };
        assert_eq!((flows[0].line, flows[1].line), (6, 8));
        let Value::Table(second) = &flows[1].value else { panic!("a table") };
        assert_eq!((line(second, "name"), line(second, "count")), (9, 10));
    }

    #[test]
    fn text_that_is_not_toml_is_refused_with_its_line() {
        let error = read("f.toml", "a = 1\nb = = 2\n").unwrap_err();
        assert_eq!((error.file.as_str(), error.line), ("f.toml", 2));
        assert!(read("f", "a = 2026-01-01").unwrap_err().message.contains("date"));
        assert!(read("f", "a = 99999999999999999999").unwrap_err().message.contains("2^63"));
        assert!(read("f", "a = inf").unwrap_err().message.contains("finite"));
    }
}
