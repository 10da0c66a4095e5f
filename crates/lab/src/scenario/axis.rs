//! Axes of a grid, and curves over it.

use farhaul_units::{ByteSize, Rate, parse_duration, parse_ratio};

use super::reader::{Node, Section, Table, Value};
use crate::error::ScenarioError;
use crate::record::AxisValue;
use crate::world::World;

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
}

/// Keys and their new values, in order.
pub(crate) type Changes = Vec<(String, Node)>;

impl Axis {
    /// Parses an `[[axis]]`, with the changes of each value.
    pub(crate) fn read(mut section: Section<'_>) -> Result<(Self, Vec<Changes>), ScenarioError> {
        let name = section.required_text("name")?;
        if !is_word(&name) {
            let line = section.line_of("name");
            return Err(section.error(line, format!("'{name}' cannot name an axis: use letters, digits, - and _")));
        }
        let set = section.texts("set")?;
        let line = section.line_of("values");
        let nodes = match section.get("values") {
            Some(Node { value: Value::List(nodes), .. }) if !nodes.is_empty() => nodes.as_slice(),
            _ => {
                return Err(
                    section.error(line, format!("axis '{name}' needs `values`, a list with at least one value"))
                );
            }
        };
        let mut values = Vec::new();
        let mut changes = Vec::new();
        for node in nodes {
            let (value, change) = if set.is_empty() {
                labelled(&section, &name, node)?
            } else {
                let keys = set.iter().map(|key| (key.clone(), node.clone())).collect();
                (axis_value(&node.value.to_string()), keys)
            };
            if values.contains(&value) {
                return Err(section.error(node.line, format!("axis '{name}' has {} twice", value.text)));
            }
            values.push(value);
            changes.push(change);
        }
        section.finish()?;
        Ok((Self { name, set, values }, changes))
    }

    /// An axis that sets `path` to each of these texts.
    pub(crate) fn over(path: &str, texts: &[String], line: usize) -> (Self, Vec<Changes>) {
        let change = |text: &String| vec![(path.to_owned(), Node { line, value: typed(text) })];
        let values = texts.iter().map(|text| axis_value(text)).collect();
        let axis = Self { name: path.to_owned(), set: vec![path.to_owned()], values };
        (axis, texts.iter().map(change).collect())
    }
}

/// A value with its own keys: `{ label = "1 Gbit/s", "link.rate" = "1gbit", "link.rtt" = "10ms" }`.
fn labelled(section: &Section<'_>, axis: &str, node: &Node) -> Result<(AxisValue, Changes), ScenarioError> {
    let refuse = || {
        let message = format!(
            "axis '{axis}' has no `set`, so that each value must be a table with a `label` and the keys that it sets, such as \
             {{ label = \"slow\", \"link.rate\" = \"1mbit\" }}"
        );
        section.error(node.line, message)
    };
    let Value::Table(table) = &node.value else { return Err(refuse()) };
    let Some(Node { value: label @ (Value::Text(_) | Value::Integer(_) | Value::Float(_)), .. }) = table.get("label")
    else {
        return Err(refuse());
    };
    let changes = table.iter().filter(|(key, _)| *key != "label").map(|(key, node)| (key.clone(), node.clone()));
    Ok((axis_value(&label.to_string()), changes.collect()))
}

impl Curve {
    /// Parses a `[[curve]]`, with its changes.
    pub(crate) fn read(mut section: Section<'_>) -> Result<(Self, Changes), ScenarioError> {
        let name = section.required_text("name")?;
        let label = section.text("label")?.unwrap_or_else(|| name.clone());
        let changes = match section.get("set") {
            Some(Node { value: Value::Table(table), .. }) => changes(table),
            Some(node) => return Err(section.error(node.line, "`set` is a table of keys and values")),
            None => Vec::new(),
        };
        section.finish()?;
        Ok((Self { name, label, world: World::default() }, changes))
    }

    /// The only curve of a scenario that names none.
    pub(crate) fn only() -> Self {
        Self { name: String::new(), label: String::new(), world: World::default() }
    }
}

/// Dotted paths and their values.
pub(crate) fn changes(table: &Table) -> Changes {
    table.iter().map(|(key, node)| (key.clone(), node.clone())).collect()
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

fn is_word(name: &str) -> bool {
    let letters = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
    letters && name.starts_with(|letter: char| letter.is_ascii_alphabetic())
}

/// A value as text, and as a number in base units if it is one.
pub fn axis_value(text: &str) -> AxisValue {
    AxisValue { text: text.to_owned(), number: base_units(text) }
}

/// A number, rate, time, size or percentage in base units: 1, bit/s, s, bytes, shares.
pub fn base_units(text: &str) -> Option<f64> {
    if let Ok(number) = text.parse::<f64>() {
        return Some(number).filter(|number| number.is_finite());
    }
    if text.ends_with('%') {
        return parse_ratio(text).ok();
    }
    // The units of rates include bytes, as in 1MB/s. Without the time it is a size.
    let size = text.parse::<ByteSize>().ok().map(|ByteSize(bytes)| bytes as f64);
    let rate = || text.parse::<Rate>().ok().map(|rate| rate.bits_per_second() as f64);
    let time = || parse_duration(text).ok().map(|time| time.as_secs_f64());
    size.or_else(rate).or_else(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_in_base_units_where_they_are_quantities() {
        let numbers = ["100mbit", "10ms", "1MB", "0.1%", "20", "1e-4", "udt-2004:warnings=off"].map(base_units);
        assert_eq!(numbers, [Some(1e8), Some(0.01), Some(1e6), Some(0.001), Some(20.0), Some(1e-4), None]);
    }
}
