//! `bench --profile`: where the time of a packet goes at both ends, in nanoseconds, by groups of functions.

mod groups;

use std::collections::BTreeMap;

use anyhow::Result;

use super::options::Options;
use super::rows::price_path;
use super::tools::{End, Profiled, Tools};
use crate::workspace::Workspace;
use groups::{GROUPS, group};

/// Functions that are listed below the table.
const LISTED: usize = 12;
/// Columns of the table: the option for the protection, the end, and the name.
const COLUMNS: [(Option<&str>, End, &str); 4] = [
    (Some("--plain"), End::Sending, "sending, plain"),
    (Some("--plain"), End::Receiving, "receiving, plain"),
    (None, End::Sending, "sending, encrypted"),
    (None, End::Receiving, "receiving, encrypted"),
];

/// Nanoseconds a packet in functions of one end, by group and function.
type Costs = BTreeMap<(&'static str, String), f64>;

/// Profiles a plain and an encrypted run, and prints the table.
pub(super) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let tools = Tools::build_for_profile(workspace)?;
    let seconds = if options.quick { 2 } else { 8 };
    let mut columns = Vec::new();
    for protection in [Some("--plain"), None] {
        let profiled = tools.profiled(&price_path(1), protection, seconds)?;
        columns.extend([End::Sending, End::Receiving].map(|end| costs(&profiled, end)));
    }
    print!("{}", table(&columns));
    for (column, (.., name)) in columns.iter().zip(COLUMNS) {
        println!("\n{name}, the dearest functions:\n{}", dearest(column));
    }
    Ok(())
}

fn costs(profiled: &Profiled, end: End) -> Costs {
    let mut costs = Costs::new();
    for sample in profiled.samples.iter().filter(|sample| sample.end == end) {
        let place = (group(&sample.function, &sample.object), sample.function.clone());
        *costs.entry(place).or_default() += profiled.nanoseconds_a_sample / profiled.packets(end);
    }
    costs
}

/// A line for each group, and one for the sum.
fn table(columns: &[Costs]) -> String {
    let mut text = "| nanoseconds a packet |".to_owned();
    COLUMNS[..columns.len()].iter().for_each(|(.., name)| text.push_str(&format!(" {name} |")));
    text.push_str(&format!("\n| --- |{}\n", " --- |".repeat(columns.len())));
    let line = |name: &str, wanted: &dyn Fn(&str) -> bool| {
        let sum =
            |costs: &Costs| costs.iter().filter(|((group, _), _)| wanted(group)).fold(0.0, |sum, (_, cost)| sum + cost);
        let cells: Vec<String> = columns.iter().map(|costs| format!(" {:.0} |", sum(costs))).collect();
        format!("| {name} |{}\n", cells.concat())
    };
    GROUPS.iter().for_each(|name| text.push_str(&line(name, &|group| group == *name)));
    text + &line("all", &|_| true)
}

/// The functions that cost most, with their groups.
fn dearest(costs: &Costs) -> String {
    let mut all: Vec<_> = costs.iter().collect();
    all.sort_by(|one, other| other.1.total_cmp(one.1));
    let lines = all.iter().take(LISTED).map(|((group, function), cost)| format!("  {cost:>6.0}  {function} ({group})"));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::tools::Sample;
    use super::*;

    #[test]
    fn the_table_has_each_group_and_their_sum() {
        let sample =
            |end, function: &str| Sample { end, function: function.into(), object: "[kernel.kallsyms]".into() };
        let samples = vec![
            sample(End::Sending, "skb_segment"),
            sample(End::Sending, "skb_segment"),
            sample(End::Sending, "no_such_function"),
            sample(End::Receiving, "put_cmsg"),
        ];
        let profiled = Profiled { samples, nanoseconds_a_sample: 1e3, sent: 10.0, received: 5.0 };
        let columns = [End::Sending, End::Receiving].map(|end| costs(&profiled, end));
        let text = table(&columns);
        assert!(
            text.starts_with("| nanoseconds a packet | sending, plain | receiving, plain |\n| --- | --- | --- |\n")
        );
        for line in [
            "| segmentation | 200 | 0 |",
            "| control messages | 0 | 200 |",
            "| other | 100 | 0 |",
            "| all | 300 | 200 |",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(dearest(&columns[0]).starts_with("     200  skb_segment (segmentation)"), "{}", dearest(&columns[0]));
    }
}
