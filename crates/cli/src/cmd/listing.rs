//! Rows of a registry with options, as text and JSON: what `controllers` and `protocols` have in common.

use std::fmt::Write as _;

use farhaul_cc::Row;
use farhaul_cc::options::OptionForm;
use serde_json::{Value, json};

use crate::output::{print, print_json};

/// Column of the summaries.
const WIDTH: usize = 8;

/// Prints the rows of a registry: the `record` of each, or what `describe` writes about each, and how they are used.
pub(super) fn print_all<R>(
    rows: &[&R],
    as_json: bool,
    record: fn(&R) -> Value,
    describe: fn(&mut String, &R),
    usage: &str,
) {
    if as_json {
        return print_json(&rows.iter().map(|row| record(row)).collect());
    }
    let mut text = String::new();
    rows.iter().for_each(|row| describe(&mut text, row));
    print(&(text + usage + "\n"));
}

/// Describes one row in `text`: its summary, its `facts`, its options.
pub(super) fn describe(text: &mut String, row: &impl Row, summary: &str, facts: &[String]) {
    let mut line = |name: &str, words: &str| {
        writeln!(text, "{name:<WIDTH$} {words}").expect("writing to a String cannot fail");
    };
    line(row.name(), summary);
    facts.iter().for_each(|fact| line("", fact));
    for option in row.options() {
        line("", &format!("{}:{}  {}", row.name(), option.written(), option.meaning));
    }
    text.push('\n');
}

/// The options of a row.
pub(super) fn options(row: &impl Row) -> Vec<Value> {
    let record = |option: &farhaul_cc::options::OptionDoc| {
        let kind = match option.form {
            OptionForm::Flag => "flag",
            OptionForm::Required { .. } => "required",
            OptionForm::Optional { .. } => "optional",
        };
        json!({ "name": option.name, "meaning": option.meaning, "kind": kind, "default": option.form.default_value() })
    };
    row.options().iter().map(record).collect()
}

/// The keys of the bibliography in a row's source.
pub(super) fn sources(source: &str) -> Vec<&str> {
    source.split(", ").filter(|key| *key != "none").collect()
}
