//! Results as CSV (RFC 4180), for other programs.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::figures::FigureResult;

/// One line for each run, with all its metrics in base units.
#[must_use]
pub fn csv(result: &FigureResult) -> String {
    let metrics: BTreeSet<&str> =
        result.records.iter().flat_map(|record| record.metrics.keys()).map(String::as_str).collect();
    let axes: Vec<&str> = result.scenario.axes.iter().map(|axis| axis.name.as_str()).collect();
    let mut text = String::from("figure,curve");
    axes.iter().for_each(|axis| text.extend([",", &field(axis)]));
    text.push_str(",seed");
    metrics.iter().for_each(|metric| text.extend([",", &field(metric)]));
    text.push('\n');
    for record in &result.records {
        let _ = write!(text, "{},{}", field(&record.figure), field(&record.curve));
        for axis in &axes {
            let value = record.point.get(*axis).map_or(String::new(), |value| field(&value.text));
            let _ = write!(text, ",{value}");
        }
        let _ = write!(text, ",{}", record.seed);
        for metric in &metrics {
            let value = record.metrics.get(*metric).map_or(String::new(), f64::to_string);
            let _ = write!(text, ",{value}");
        }
        text.push('\n');
    }
    text
}

/// A field of CSV (RFC 4180).
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::result;

    #[test]
    fn csv_has_a_line_for_each_run() {
        let csv = csv(&result());
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 1 + 2 * 2 * 2);
        assert_eq!(lines[0], "figure,curve,rate,seed,goodput.total,utilisation");
        assert_eq!(lines[1], "a3,udt-2004,1mbit,1,1000000,0.91");
        assert_eq!((field("a"), field("a,\"b\"")), ("a".to_owned(), "\"a,\"\"b\"\"\"".to_owned()));
    }
}
