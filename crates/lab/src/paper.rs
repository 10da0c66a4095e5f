//! The numbers that papers report, in the table `paper.csv` of each figure.
//!
//! ```text
//! curve,rate,rtt,metric,value,bound,note
//! udt-2004,1gbit,10ms,utilisation,98%,at-least,abstract and Figure 3
//! ,,,jain,0.99,about,
//! ```
//!
//! `metric` and `value` are required. `curve`, `bound` (`is`, `about`, `at-least`, `at-most`) and `note` are optional.
//! Every other column is an axis of the figure, and an empty cell means all its values. Fields with commas stand in
//! double quotes. Empty lines and lines that begin with `#` are skipped.

use std::collections::BTreeMap;

use crate::expression::quantity_in_base_units;
use crate::record::AxisValue;

#[cfg(test)]
mod tests;

/// One number that a paper reports: a line of the figure's `paper.csv`.
///
/// The columns `metric` and `value` are required. A value is a number or a quantity (`940mbit`, `98%`). The columns
/// `curve`, `bound` (`is`, `about`, `at-least`, `at-most`) and `note` are optional. Every other column is an axis of
/// the figure, and an empty cell means all its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The curve; `None` for all.
    pub curve: Option<String>,
    /// The place in the grid. An axis that is absent means all its values.
    pub point: BTreeMap<String, AxisValue>,
    /// The key of a metric or a series.
    pub metric: String,
    /// The value in base units.
    pub value: f64,
    /// The value as it was written.
    pub text: String,
    /// The kind of bound.
    pub bound: Bound,
    /// A remark for the reader.
    pub note: String,
    /// The line in the file, from 1.
    pub line: usize,
}

/// The kind of a published number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bound {
    /// The paper prints the number.
    #[default]
    Is,
    /// "About".
    About,
    /// "At least", "above".
    AtLeast,
    /// "At most", "below".
    AtMost,
}

/// A mistake in a table of published numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct PaperError {
    /// The line, from 1.
    pub line: usize,
    /// The mistake and the allowed values.
    pub message: String,
}

const BOUNDS: [(&str, Bound); 4] =
    [("is", Bound::Is), ("about", Bound::About), ("at-least", Bound::AtLeast), ("at-most", Bound::AtMost)];

/// Parses `paper.csv`. `axes` are the names of further columns.
///
/// # Errors
/// An unknown or missing column, a row of another length, a value that is no quantity, or an unknown bound.
pub fn read(text: &str, axes: &[&str]) -> Result<Vec<Published>, PaperError> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let Some((line, header)) = lines.next() else { return Ok(Vec::new()) };
    let columns = fields(header).map_err(|message| PaperError { line, message })?;
    check(&columns, axes).map_err(|message| PaperError { line, message })?;
    lines.map(|(line, row)| published(&columns, row, line).map_err(|message| PaperError { line, message })).collect()
}

fn check(columns: &[String], axes: &[&str]) -> Result<(), String> {
    const FIXED: [&str; 5] = ["metric", "value", "curve", "bound", "note"];
    for (index, column) in columns.iter().enumerate() {
        if !FIXED.contains(&column.as_str()) && !axes.contains(&column.as_str()) {
            let mut allowed = FIXED.to_vec();
            allowed.extend(axes);
            return Err(format!("unknown column '{column}': there are {}", allowed.join(", ")));
        }
        if columns[..index].contains(column) {
            return Err(format!("the column '{column}' appears twice"));
        }
    }
    match ["metric", "value"].into_iter().find(|needed| !columns.iter().any(|column| column == needed)) {
        Some(needed) => Err(format!("the column '{needed}' is missing")),
        None => Ok(()),
    }
}

fn published(columns: &[String], row: &str, line: usize) -> Result<Published, String> {
    let cells = fields(row)?;
    if cells.len() != columns.len() {
        return Err(format!("{} fields, but the header has {}", cells.len(), columns.len()));
    }
    let mut published = Published {
        curve: None,
        point: BTreeMap::new(),
        metric: String::new(),
        value: 0.0,
        text: String::new(),
        bound: Bound::Is,
        note: String::new(),
        line,
    };
    for (column, cell) in columns.iter().zip(cells) {
        match column.as_str() {
            "metric" if cell.is_empty() => return Err("the metric is missing".to_owned()),
            "metric" => published.metric = cell,
            "value" => {
                let wrong = || {
                    format!("'{cell}' is not a quantity: write a number, or one with a unit such as 940mbit, 10ms, 98%")
                };
                published.value = quantity_in_base_units(&cell).ok_or_else(wrong)?;
                published.text = cell;
            }
            "curve" => published.curve = Some(cell).filter(|curve| !curve.is_empty()),
            "bound" if cell.is_empty() => {}
            "bound" => {
                let known = BOUNDS.iter().find(|(name, _)| *name == cell);
                let wrong = || format!("unknown bound '{cell}': expected is, about, at-least or at-most");
                published.bound = known.ok_or_else(wrong)?.1;
            }
            "note" => published.note = cell,
            _ if cell.is_empty() => {}
            axis => {
                let number = quantity_in_base_units(&cell);
                published.point.insert(axis.to_owned(), AxisValue { text: cell, number });
            }
        }
    }
    Ok(published)
}

/// The fields of a line of CSV, trimmed.
fn fields(line: &str) -> Result<Vec<String>, String> {
    let mut fields = Vec::new();
    let mut rest = line.trim();
    loop {
        let end = if let Some(quoted) = rest.strip_prefix('"') {
            let (field, end) = quoted_field(quoted)?;
            fields.push(field);
            end
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            fields.push(rest[..end].trim().to_owned());
            &rest[end..]
        };
        match end.trim_start().strip_prefix(',') {
            Some(next) => rest = next.trim_start(),
            None if end.trim().is_empty() => return Ok(fields),
            None => return Err("text follows a closing quote: a comma has to".to_owned()),
        }
    }
}

/// The text up to the closing quote, and the rest. Two quotes stand for one.
fn quoted_field(text: &str) -> Result<(String, &str), String> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"').ok_or("a quote is not closed")?;
        field.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                field.push('"');
                rest = more;
            }
            None => return Ok((field.trim().to_owned(), rest)),
        }
    }
}
