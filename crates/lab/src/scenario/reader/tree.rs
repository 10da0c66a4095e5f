//! Gives the values of a scenario to the structs that `serde` derives.

use std::collections::btree_map;
use std::{iter, slice};

use serde::Deserialize;
use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_spanned::de::{SpannedDeserializer, is_spanned};

use super::mistake::Mistake;
use super::{Node, Table, Value, listed};

/// The scenario itself, in messages.
pub(super) const ROOT: &str = "the scenario";

/// A bare value, or a table with more keys: `loss = "1%"`, `loss = { kind = "ber", rate = 1e-9 }`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) enum OrTable<B, T> {
    /// The value without a table.
    Bare(B),
    /// The table.
    Table(T),
}

/// A value, with the key and the table that hold it.
#[derive(Clone, Copy)]
pub(super) struct KeyedValue<'n, 'a> {
    pub(super) key: &'a str,
    /// The name of the table in messages.
    pub(super) table: &'n str,
    /// Whether the key holds a list, and this is one of its values.
    pub(super) is_element: bool,
    pub(super) node: &'a Node,
}

impl KeyedValue<'_, '_> {
    /// The name of the value in messages, if it is a table: `[link.back]`.
    pub(super) fn name(&self) -> String {
        let Self { key, table, .. } = self;
        match table.strip_suffix(']') {
            _ if self.is_element => format!("[[{key}]]"),
            _ if *table == ROOT => format!("[{key}]"),
            Some(outer) if !table.starts_with("[[") => format!("{outer}.{key}]"),
            _ => format!("`{key}` of {table}"),
        }
    }

    /// Adds the place of the value to a mistake in it.
    pub(super) fn in_words(&self, mistake: Mistake) -> Mistake {
        mistake.placed(self.place(), |message| format!("`{}` in {}: {message}", self.key, self.table))
    }

    fn place(&self) -> usize {
        self.node.span().start
    }
}

/// The example that a struct has as its `expecting`, in braces.
fn example(expected: &dyn Expected) -> Option<String> {
    Some(expected.to_string()).filter(|text| text.starts_with('{'))
}

/// Refuses the first key that is not among those allowed.
pub(super) fn refuse_unknown(name: &str, table: &Table, allowed: &[&str]) -> Result<(), Mistake> {
    let unknown = table.iter().filter(|(key, _)| !allowed.contains(&key.as_str()));
    match unknown.min_by_key(|(_, node)| node.span().start) {
        Some((key, node)) => Err(Mistake::unknown(node.span().start, key, name, allowed)),
        None => Ok(()),
    }
}

impl<'de> Deserializer<'de> for KeyedValue<'_, 'de> {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        match self.node.get_ref() {
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Flag(flag) => visitor.visit_bool(*flag),
            Value::List(_) => self.deserialize_seq(visitor),
            Value::Table(table) => {
                visitor.visit_map(KeyedValues { name: &self.name(), rest: table.iter(), next: None })
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_newtype_struct(self)
    }

    /// A value that is no list stands for a list of one.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        let nodes = if let Value::List(nodes) = self.node.get_ref() { nodes } else { slice::from_ref(self.node) };
        let elements = nodes.iter().map(|node| KeyedValue { is_element: true, node, ..self });
        visitor.visit_seq(SeqDeserializer::new(elements))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        keys: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        if is_spanned(name) {
            return visitor.visit_map(SpannedDeserializer::new(self, self.node.span()));
        }
        let example = |before: &str| example(&visitor).map_or(String::new(), |example| format!("{before}{example}"));
        let (such_as, as_in) = (example(" such as "), example(", as in "));
        let Value::Table(table) = self.node.get_ref() else {
            return Err(Mistake::custom(format!("expected a table{such_as}, found {}", self.node.get_ref().kind())));
        };
        let name = self.name();
        refuse_unknown(&name, table, keys)?;
        visitor.visit_map(KeyedValues { name: &name, rest: table.iter(), next: None }).map_err(
            |mistake| match mistake {
                Mistake::Missing(key) => Mistake::at(self.place(), format!("{name} needs `{key}`{as_in}")),
                other => other,
            },
        )
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        match self.node.get_ref() {
            value if name == "OrTable" => {
                let variant = if value.as_table().is_some() { "Table" } else { "Bare" };
                visitor.visit_enum(MapAccessDeserializer::new(MapDeserializer::new(iter::once((variant, self)))))
            }
            Value::Text(word) => visitor.visit_enum(BorrowedStrDeserializer::new(word)),
            other => Err(Mistake::custom(format!("expected one of {}, found {}", listed(variants), other.kind()))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple
        tuple_struct map identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Mistake> for KeyedValue<'_, 'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The keys and values of a table.
struct KeyedValues<'n, 'a> {
    name: &'n str,
    rest: btree_map::Iter<'a, String, Node>,
    next: Option<KeyedValue<'n, 'a>>,
}

impl<'de> MapAccess<'de> for KeyedValues<'_, 'de> {
    type Error = Mistake;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Mistake> {
        let Some((key, node)) = self.rest.next() else { return Ok(None) };
        self.next = Some(KeyedValue { key, table: self.name, is_element: false, node });
        seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Mistake> {
        let entry = self.next.take().expect("serde asks for the key first");
        seed.deserialize(entry).map_err(|mistake| entry.in_words(mistake))
    }
}
