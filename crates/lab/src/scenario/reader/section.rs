//! One table of a scenario, read key by key.

use farhaul_units::{ByteSize, Duration, Rate, parse_duration, parse_ratio};

use super::{Node, Table, Value, nearest};
use crate::error::ScenarioError;

/// A table in parsing. Keys that the parser has asked for are known, and all others are mistakes.
pub(crate) struct Section<'a> {
    file: &'a str,
    /// The name in messages: `[link]`.
    name: String,
    line: usize,
    table: &'a Table,
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// Begins to parse a table that messages call `name`.
    ///
    /// # Errors
    /// The node is no table.
    pub(crate) fn of(file: &'a str, name: impl Into<String>, node: &'a Node) -> Result<Self, ScenarioError> {
        let name = name.into();
        match &node.value {
            Value::Table(table) => Ok(Self { file, name, line: node.line, table, known: Vec::new() }),
            other => {
                let message = format!("{name} must be a table, but is {}", other.kind());
                Err(ScenarioError { file: file.to_owned(), line: node.line, message })
            }
        }
    }

    /// The file of the table.
    pub(crate) fn file(&self) -> &'a str {
        self.file
    }

    /// The name in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The first line of the table.
    pub(crate) fn line(&self) -> usize {
        self.line
    }

    /// An error at a line of this file.
    pub(crate) fn error(&self, line: usize, message: impl Into<String>) -> ScenarioError {
        ScenarioError { file: self.file.to_owned(), line, message: message.into() }
    }

    /// The line of a key; the table's line if the key is absent.
    pub(crate) fn line_of(&self, key: &str) -> usize {
        self.table.get(key).map_or(self.line, |node| node.line)
    }

    /// The value of a key. The key is known from now on.
    pub(crate) fn get(&mut self, key: &'static str) -> Option<&'a Node> {
        self.known.push(key);
        self.table.get(key)
    }

    /// Whether a key is present. The key is known from now on.
    pub(crate) fn has(&mut self, key: &'static str) -> bool {
        self.get(key).is_some()
    }

    /// Refuses the first unknown key.
    ///
    /// # Errors
    /// There is an unknown key.
    pub(crate) fn finish(mut self) -> Result<(), ScenarioError> {
        self.known.sort_unstable();
        self.known.dedup();
        let unknown = self.table.iter().filter(|(key, _)| !self.known.contains(&key.as_str()));
        let Some((key, node)) = unknown.min_by_key(|(_, node)| node.line) else { return Ok(()) };
        let meant = nearest(key, self.known.iter().copied()).map_or(String::new(), |name| format!(" (`{name}`?)"));
        let allowed = listed(&self.known);
        Err(self.error(node.line, format!("unknown key `{key}`{meant} in {}: allowed are {allowed}", self.name)))
    }

    fn wrong(&self, key: &str, node: &Node, what: impl std::fmt::Display) -> ScenarioError {
        self.error(node.line, format!("`{key}` in {}: {what}", self.name))
    }

    /// The value of a key, parsed by `read`. Adds the key's name and line to an error of `read`.
    ///
    /// # Errors
    /// The error of `read`.
    pub(crate) fn read<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Result<Option<T>, ScenarioError> {
        let Some(node) = self.get(key) else { return Ok(None) };
        read(&node.value).map(Some).map_err(|what| self.wrong(key, node, what))
    }

    /// A text.
    ///
    /// # Errors
    /// The value is no text.
    pub(crate) fn text(&mut self, key: &'static str) -> Result<Option<String>, ScenarioError> {
        self.read(key, text)
    }

    /// A required text.
    ///
    /// # Errors
    /// The value is no text, or absent.
    pub(crate) fn required_text(&mut self, key: &'static str) -> Result<String, ScenarioError> {
        self.text(key)?.ok_or_else(|| self.error(self.line, format!("{} needs `{key}`", self.name)))
    }

    /// A list of texts, or one text.
    ///
    /// # Errors
    /// The value is something else.
    pub(crate) fn texts(&mut self, key: &'static str) -> Result<Vec<String>, ScenarioError> {
        let list = self.read(key, |value| match value {
            Value::List(nodes) => nodes.iter().map(|node| text(&node.value)).collect(),
            other => Ok(vec![text(other)?]),
        })?;
        Ok(list.unwrap_or_default())
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// The value is something else.
    pub(crate) fn flag(&mut self, key: &'static str) -> Result<Option<bool>, ScenarioError> {
        self.read(key, |value| match value {
            Value::Flag(flag) => Ok(*flag),
            other => Err(format!("expected true or false, found {}", other.kind())),
        })
    }

    /// One of several words.
    ///
    /// # Errors
    /// The value is something else. The message names all words.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, ScenarioError> {
        self.read(key, |value| {
            let word = text(value)?;
            let found = choices.iter().find(|(name, _)| *name == word).map(|(_, choice)| *choice);
            found.ok_or_else(|| {
                let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                format!("'{word}' is not one of {}", listed(&names))
            })
        })
    }

    /// A whole number in a range.
    ///
    /// # Errors
    /// The value is something else, or outside of the range.
    pub(crate) fn integer(
        &mut self,
        key: &'static str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Result<Option<i64>, ScenarioError> {
        self.read(key, |value| match value {
            Value::Integer(number) if range.contains(number) => Ok(*number),
            Value::Integer(number) => {
                Err(format!("{number} is out of range: allowed is {} to {}", range.start(), range.end()))
            }
            other => Err(format!("expected a whole number, found {}", other.kind())),
        })
    }

    /// A number in a range, both ends included.
    ///
    /// # Errors
    /// The value is something else, or outside of the range.
    pub(crate) fn number(
        &mut self,
        key: &'static str,
        range: std::ops::RangeInclusive<f64>,
    ) -> Result<Option<f64>, ScenarioError> {
        self.read(key, |value| {
            let number = match value {
                Value::Integer(number) => *number as f64,
                Value::Float(number) => *number,
                other => return Err(format!("expected a number, found {}", other.kind())),
            };
            let wrong = || format!("{number} is out of range: allowed is {} to {}", range.start(), range.end());
            if range.contains(&number) { Ok(number) } else { Err(wrong()) }
        })
    }

    /// A share of a whole, in 0..=1.
    ///
    /// # Errors
    /// The value is something else, or outside of the range.
    pub(crate) fn share(&mut self, key: &'static str) -> Result<Option<f64>, ScenarioError> {
        self.read(key, share)
    }

    /// A rate above zero.
    ///
    /// # Errors
    /// The value is something else, or zero.
    pub(crate) fn rate(&mut self, key: &'static str) -> Result<Option<Rate>, ScenarioError> {
        self.read(key, rate)
    }

    /// A time, which may be zero.
    ///
    /// # Errors
    /// The value is something else.
    pub(crate) fn time(&mut self, key: &'static str) -> Result<Option<Duration>, ScenarioError> {
        self.read(key, time)
    }

    /// A time above zero.
    ///
    /// # Errors
    /// The value is something else, or zero.
    pub(crate) fn some_time(&mut self, key: &'static str) -> Result<Option<Duration>, ScenarioError> {
        self.read(key, |value| match time(value)? {
            Duration::ZERO => Err("it must be above zero, such as 10ms".to_owned()),
            time => Ok(time),
        })
    }

    /// A number of bytes above zero.
    ///
    /// # Errors
    /// The value is something else, or zero.
    pub(crate) fn size(&mut self, key: &'static str) -> Result<Option<u64>, ScenarioError> {
        self.read(key, |value| match quantity(value)?.parse::<ByteSize>() {
            Ok(ByteSize(0)) => Err("it must be above zero, such as 1MB".to_owned()),
            Ok(ByteSize(bytes)) => Ok(bytes),
            Err(wrong) => Err(wrong.to_string()),
        })
    }

    /// The tables of a list such as `[[flow]]`.
    ///
    /// # Errors
    /// The value is something else.
    pub(crate) fn sections(&mut self, key: &'static str) -> Result<Vec<Section<'a>>, ScenarioError> {
        let Some(node) = self.get(key) else { return Ok(Vec::new()) };
        match &node.value {
            Value::List(nodes) => nodes.iter().map(|node| Section::of(self.file, format!("[[{key}]]"), node)).collect(),
            _ => Ok(vec![Section::of(self.file, format!("[[{key}]]"), node)?]),
        }
    }

    /// A table such as `[link]`.
    ///
    /// # Errors
    /// The value is something else.
    pub(crate) fn section(&mut self, key: &'static str) -> Result<Option<Section<'a>>, ScenarioError> {
        let name = if self.name.starts_with('[') && !self.name.starts_with("[[") {
            format!("{}.{key}]", self.name.trim_end_matches(']'))
        } else if self.name.starts_with('[') {
            format!("`{key}` of {}", self.name)
        } else {
            format!("[{key}]")
        };
        self.get(key).map(|node| Section::of(self.file, name, node)).transpose()
    }
}

/// Names in a row, with "and" before the last.
pub(crate) fn listed(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The text in quotes.
pub(crate) fn text(value: &Value) -> Result<String, String> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        other => Err(format!("expected a text in quotes, found {}", other.kind())),
    }
}

/// The text of a value that should be a number with a unit.
fn quantity(value: &Value) -> Result<String, String> {
    match value {
        Value::Text(_) | Value::Integer(_) | Value::Float(_) => Ok(value.to_string()),
        other => Err(format!("expected a number with its unit in quotes, found {}", other.kind())),
    }
}

pub(crate) fn share(value: &Value) -> Result<f64, String> {
    parse_ratio(&quantity(value)?).map_err(|wrong| wrong.to_string())
}

pub(crate) fn rate(value: &Value) -> Result<Rate, String> {
    match quantity(value)?.parse::<Rate>() {
        Ok(Rate::ZERO) => Err("a rate of zero lets nothing through: it must be above zero, such as 100mbit".to_owned()),
        Ok(rate) => Ok(rate),
        Err(wrong) => Err(wrong.to_string()),
    }
}

pub(crate) fn time(value: &Value) -> Result<Duration, String> {
    parse_duration(&quantity(value)?).map_err(|wrong| wrong.to_string())
}
