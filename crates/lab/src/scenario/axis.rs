//! Axes of a grid, and curves over it.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::reader::{Node, Source, Table, Value};
use crate::error::ScenarioError;
use crate::expression::quantity_in_base_units;
use crate::record::{AxisValue, World};

/// One dimension of the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The name in plots, scores and records.
    pub name: String,
    /// The keys that the axis sets, as dotted paths: `link.rate`, `flow.udt.rtt`. None if every value names its own
    /// keys.
    pub set: Vec<String>,
    /// The values in the scenario's order.
    pub values: Vec<AxisValue>,
}

/// The same experiment with some keys changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The name in plots, scores and records; empty for the only curve of a scenario that names none.
    pub name: String,
    /// The label for readers; the name unless the scenario has one.
    pub label: String,
    /// The world of its runs, once it has any.
    pub world: World,
    /// The laws of flows that are named by their protocol alone: `union` of `udt`.
    pub laws: BTreeMap<String, String>,
}

/// Keys and their new values, in order.
pub(crate) type Changes = Vec<(String, Node)>;

/// The keys of `[[axis]]`.
#[derive(Deserialize)]
#[serde(expecting = "{ name = \"rate\", set = \"link.rate\", values = [\"1mbit\", \"1gbit\"] }")]
pub(super) struct AxisKeys {
    name: AxisName,
    set: Option<Vec<String>>,
    values: Spanned<Vec<Node>>,
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct AxisName(String);

impl TryFrom<String> for AxisName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let letters = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
        if letters && name.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            return Ok(Self(name));
        }
        Err(format!("'{name}' cannot name an axis: use letters, digits, - and _"))
    }
}

/// The keys of `[[curve]]`.
#[derive(Deserialize)]
pub(super) struct CurveKeys {
    name: String,
    label: Option<String>,
    set: Option<Table>,
}

impl Axis {
    /// The axis, with the changes of each value.
    pub(super) fn read(source: &Source, keys: AxisKeys) -> Result<(Self, Vec<Changes>), ScenarioError> {
        let AxisKeys { name: AxisName(name), set, values: nodes } = keys;
        let set = set.unwrap_or_default();
        if nodes.get_ref().is_empty() {
            return Err(source.error(&nodes, format!("axis '{name}' needs at least one of `values`")));
        }
        let mut values = Vec::new();
        let mut changes = Vec::new();
        for node in nodes.get_ref() {
            let (value, change) = if set.is_empty() {
                labelled(node).ok_or_else(|| source.error(node, label_missing(&name)))?
            } else {
                let keys = set.iter().map(|key| (key.clone(), node.clone())).collect();
                (axis_value(&node.get_ref().to_string()), keys)
            };
            if values.contains(&value) {
                return Err(source.error(node, format!("axis '{name}' has {} twice", value.text)));
            }
            values.push(value);
            changes.push(change);
        }
        Ok((Self { name, set, values }, changes))
    }

    /// An axis that sets `path` to each of these texts of the command line.
    pub(crate) fn over(path: &str, texts: &[String]) -> (Self, Vec<Changes>) {
        let change = |text: &String| vec![(path.to_owned(), Node::new(0..0, typed(text)))];
        let values = texts.iter().map(|text| axis_value(text)).collect();
        let axis = Self { name: path.to_owned(), set: vec![path.to_owned()], values };
        (axis, texts.iter().map(change).collect())
    }
}

/// A value with its own keys: `{ label = "1 Gbit/s", "link.rate" = "1gbit", "link.rtt" = "10ms" }`.
fn labelled(node: &Node) -> Option<(AxisValue, Changes)> {
    let mut changes = node.get_ref().as_table()?.clone();
    let label = changes.remove("label")?.into_inner();
    let is_label = matches!(label, Value::Text(_) | Value::Integer(_) | Value::Float(_));
    is_label.then(|| (axis_value(&label.to_string()), changes.into_iter().collect()))
}

fn label_missing(axis: &str) -> String {
    format!(
        "axis '{axis}' has no `set`, so that each value must be a table with a `label` and the keys that it sets, such as \
         {{ label = \"slow\", \"link.rate\" = \"1mbit\" }}"
    )
}

impl Curve {
    /// The curve, with its changes.
    pub(super) fn read(keys: CurveKeys) -> (Self, Changes) {
        let CurveKeys { name, label, set } = keys;
        let label = label.unwrap_or_else(|| name.clone());
        (Self::named(name, label), set.unwrap_or_default().into_iter().collect())
    }

    /// A curve without anything else.
    pub(crate) fn named(name: String, label: String) -> Self {
        Self { name, label, world: World::default(), laws: BTreeMap::new() }
    }

    /// The only curve of a scenario that names none.
    pub(crate) fn only() -> Self {
        Self::named(String::new(), String::new())
    }
}

/// The scenario's value for a text without quotes.
fn typed(text: &str) -> Value {
    if let Ok(number) = text.parse::<i64>() {
        return Value::Integer(number);
    }
    match text {
        "true" => Value::Flag(true),
        "false" => Value::Flag(false),
        _ => Value::Text(text.to_owned()),
    }
}

/// A value as text, and as a number in base units if it is one.
pub fn axis_value(text: &str) -> AxisValue {
    AxisValue { text: text.to_owned(), number: quantity_in_base_units(text) }
}
