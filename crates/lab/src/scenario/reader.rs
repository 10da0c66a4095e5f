//! Parses TOML into values that know their place, and refuses unknown keys.

mod mistake;
mod nearest;
mod quantity;
mod section;
mod tree;

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use toml::Spanned;
use toml::de::DeTable;

pub use nearest::nearest;
pub(crate) use nearest::{hint, listed};
pub(crate) use quantity::{AboveZero, LinkRate, Number, Share, Size, Time, Whole};
pub(crate) use section::Section;
pub(crate) use tree::OrTable;

use crate::error::ScenarioError;

/// A value and its place: the bytes of the file that hold it. Values of the command line are at the beginning.
pub(crate) type Node = Spanned<Value>;

/// Keys and values of a table, in alphabetical order.
pub(crate) type Table = BTreeMap<String, Node>;

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

    /// The text, if the value is one.
    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The table, if the value is one.
    pub(crate) fn as_table(&self) -> Option<&Table> {
        if let Self::Table(table) = self { Some(table) } else { None }
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
                let items: Vec<_> = nodes.iter().map(|node| node.get_ref().to_string()).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Self::Table(table) => {
                let entries: Vec<_> = table.iter().map(|(key, node)| format!("{key} = {}", node.get_ref())).collect();
                write!(f, "{{{}}}", entries.join(", "))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number between -2^63 and 2^63 - 1, another number, a text, a list or a table")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Integer(number))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Value, E> {
        if number.is_finite() { Ok(Value::Float(number)) } else { Err(E::custom("a number must be finite")) }
    }

    fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Flag(flag))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items)).map(Value::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut table = Table::new();
        while let Some(key) = entries.next_key::<String>()? {
            // The parser hands a date over as a table with a key that no file can hold.
            if key.starts_with('$') {
                return Err(de::Error::custom("a date cannot be used here"));
            }
            table.insert(key, entries.next_value()?);
        }
        Ok(Value::Table(table))
    }
}

/// The file of a scenario, which knows the lines of places.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The file, as the user named it.
    pub(crate) file: String,
    /// The offsets at which lines begin.
    lines: Vec<usize>,
}

impl Source {
    /// Parses a scenario's text.
    ///
    /// # Errors
    /// The text is no TOML, or holds a date.
    pub(crate) fn read(file: &str, text: &str) -> Result<(Self, Node), ScenarioError> {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let source = Self { file: file.to_owned(), lines: std::iter::once(0).chain(ends).collect() };
        let wrong = |before: &str, wrong: toml::de::Error| {
            let line = wrong.span().map_or(1, |span| source.line(span.start));
            source.error_on(line, format!("{before}{}", wrong.message().replace('\n', ", ")))
        };
        let parsed = DeTable::parse(text).map_err(|error| wrong("this is not TOML: ", error))?;
        let table = Table::deserialize(toml::Deserializer::from(parsed)).map_err(|error| wrong("", error))?;
        Ok((source, Node::new(0..0, Value::Table(table))))
    }

    /// The line of a place, from 1.
    pub(crate) fn line(&self, place: usize) -> usize {
        self.lines.partition_point(|begin| *begin <= place).max(1)
    }

    /// An error at a value.
    pub(crate) fn error<T>(&self, at: &Spanned<T>, message: impl Into<String>) -> ScenarioError {
        self.error_on(self.line(at.span().start), message)
    }

    /// An error on a line.
    pub(crate) fn error_on(&self, line: usize, message: impl Into<String>) -> ScenarioError {
        ScenarioError { file: self.file.clone(), line, message: message.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_knows_its_line() {
        let text =
            "title = \"x\"\n\n[link]\nrate = \"1gbit\"\n\n[[flow]]\nname = \"a\"\n[[flow]]\nname = \"b\"\ncount = 3\n";
        let (source, root) = Source::read("f", text).unwrap();
        let root = root.get_ref().as_table().unwrap();
        let line = |table: &Table, key: &str| source.line(table[key].span().start);
        assert_eq!((line(root, "title"), line(root, "link")), (1, 3));
        assert_eq!(line(root["link"].get_ref().as_table().unwrap(), "rate"), 4);
        let Value::List(flows) = root["flow"].get_ref() else { panic!("a list") };
        assert_eq!([0, 1].map(|flow: usize| source.line(flows[flow].span().start)), [6, 8]);
        let second = flows[1].get_ref().as_table().unwrap();
        assert_eq!((line(second, "name"), line(second, "count")), (9, 10));
    }

    #[test]
    fn text_that_is_not_toml_is_refused_with_its_line() {
        let read = |text: &str| Source::read("f.toml", text).unwrap_err();
        let error = read("a = 1\nb = = 2\n");
        assert_eq!((error.file.as_str(), error.line), ("f.toml", 2));
        for (value, words) in [("2026-01-01", "date"), ("99999999999999999999", "2^63"), ("inf", "finite")] {
            let error = read(&format!("a = 1\n[b]\nc = [1, {value}]\n"));
            assert!(error.line == 3 && error.message.contains(words), "{error}");
        }
    }
}
