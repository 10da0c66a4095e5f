//! One table of a scenario, read key by key.

use serde::Deserialize;

use super::tree::{KeyedValue, ROOT, refuse_unknown};
use super::{Node, Source, Table, Value};
use crate::error::ScenarioError;

/// A table in parsing. Keys that the parser has asked for are known, and all others are mistakes.
pub(crate) struct Section<'a> {
    source: &'a Source,
    /// The name in messages: `[link]`.
    name: String,
    place: usize,
    table: &'a Table,
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// Begins to parse the scenario itself.
    ///
    /// # Errors
    /// The node is no table.
    pub(crate) fn root(source: &'a Source, node: &'a Node) -> Result<Self, ScenarioError> {
        Self::of(source, ROOT.to_owned(), node)
    }

    fn of(source: &'a Source, name: String, node: &'a Node) -> Result<Self, ScenarioError> {
        match node.get_ref() {
            Value::Table(table) => Ok(Self { source, name, place: node.span().start, table, known: Vec::new() }),
            other => Err(source.error(node, format!("{name} must be a table, but is {}", other.kind()))),
        }
    }

    /// The file of the table.
    pub(crate) fn source(&self) -> &'a Source {
        self.source
    }

    /// The first line of the table.
    pub(crate) fn line(&self) -> usize {
        self.source.line(self.place)
    }

    /// An error of the whole table.
    pub(crate) fn error(&self, message: impl Into<String>) -> ScenarioError {
        self.source.error_on(self.line(), message)
    }

    /// The line of a key; the table's line if the key is absent.
    pub(crate) fn line_of(&self, key: &str) -> usize {
        self.table.get(key).map_or(self.line(), |node| self.source.line(node.span().start))
    }

    /// The value of a key. The key is known from now on.
    pub(crate) fn get(&mut self, key: &'static str) -> Option<&'a Node> {
        self.known.push(key);
        self.table.get(key)
    }

    /// Knows these keys, which another parser reads.
    pub(crate) fn know(&mut self, keys: &[&'static str]) {
        self.known.extend(keys);
    }

    /// Reads the value of one key.
    ///
    /// # Errors
    /// The value is wrong.
    pub(crate) fn value<T: Deserialize<'a>>(&mut self, key: &'static str) -> Result<Option<T>, ScenarioError> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let entry = self.entry(key, node, false);
        T::deserialize(entry).map(Some).map_err(|mistake| entry.in_words(mistake).of(self.source))
    }

    /// Reads the value of a key that must be there. `example` is such a table.
    ///
    /// # Errors
    /// The key is missing, or its value is wrong.
    pub(crate) fn needed<T: Deserialize<'a>>(&mut self, key: &'static str, example: &str) -> Result<T, ScenarioError> {
        self.value(key)?.ok_or_else(|| self.error(format!("{} needs `{key}`, as in {example}", self.name)))
    }

    /// A table such as `[link]`.
    ///
    /// # Errors
    /// The value is something else.
    pub(crate) fn section(&mut self, key: &'static str) -> Result<Option<Section<'a>>, ScenarioError> {
        self.get(key).map(|node| Section::of(self.source, self.entry(key, node, false).name(), node)).transpose()
    }

    /// The tables of a list such as `[[flow]]`.
    ///
    /// # Errors
    /// The value is something else.
    pub(crate) fn sections(&mut self, key: &'static str) -> Result<Vec<Section<'a>>, ScenarioError> {
        let nodes = match self.get(key) {
            None => &[],
            Some(node) => match node.get_ref() {
                Value::List(nodes) => nodes.as_slice(),
                _ => std::slice::from_ref(node),
            },
        };
        nodes.iter().map(|node| Section::of(self.source, self.entry(key, node, true).name(), node)).collect()
    }

    fn entry<'n>(&'n self, key: &'static str, node: &'a Node, is_element: bool) -> KeyedValue<'n, 'a> {
        KeyedValue { key, table: &self.name, is_element, node }
    }

    /// Refuses the first unknown key.
    ///
    /// # Errors
    /// There is an unknown key.
    pub(crate) fn finish(self) -> Result<(), ScenarioError> {
        refuse_unknown(&self.name, self.table, &self.known).map_err(|mistake| mistake.of(self.source))
    }
}
