//! The requirements as a table in Markdown, for a note or an issue.

use std::fmt::Write as _;

use super::super::requirement::{Comparison, Requirement};

/// The program with its defaults.
const OURS: &str = "farhaul";

/// One requirement under one setting.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) row: &'static str,
    pub(super) setting: &'static str,
    pub(super) requirement: Requirement,
    /// The result, or why there is none.
    pub(super) judged: Result<Comparison, String>,
    /// Number of our runs that do not count.
    pub(super) lost: usize,
    /// Whether the runs were long enough to judge.
    pub(super) counts: bool,
}

/// The machine in a paragraph, and a table.
pub(super) fn markdown(machine: &[(&'static str, String)], lines: &[Line]) -> String {
    let machine: Vec<String> = machine.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let mut text = format!("Medians (least … most; runs). {}.\n", machine.join("; "));
    if lines.is_empty() {
        return text;
    }
    text.push_str("\n| row | case | what | must | ours | peer | met? |\n| --- | --- | --- | --- | --- | --- | --- |\n");
    for line in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line.markdown());
    }
    text
}

impl Line {
    fn markdown(&self) -> String {
        let Self { row, setting, requirement, judged, lost, counts } = self;
        let case =
            if setting.is_empty() { requirement.case.to_owned() } else { format!("{}; {setting}", requirement.case) };
        let show = |value| requirement.quantity.show(value);
        let lost = if *lost > 0 { format!(", {lost} not counted") } else { String::new() };
        let (ours, peer, met) = match judged {
            Ok(Comparison { holds, ours, peer, .. }) => (
                format!("{} ({} … {}; {}{lost})", show(ours.median), show(ours.least), show(ours.most), ours.runs),
                peer.map_or_else(String::new, |(program, figure)| format!("{program} {}", show(figure))),
                match (counts, holds) {
                    (false, _) => "too short",
                    (true, true) => "yes",
                    (true, false) => "**no**",
                },
            ),
            Err(why) => (format!("{why}{lost}"), String::new(), "**unknown**"),
        };
        let (what, must) = (what(requirement), requirement.must());
        format!("| {row} | {case} | {what} | {must} | {ours} | {peer} | {met} |")
    }
}

/// The quantity, with the program unless it is ours in its default form.
fn what(requirement: &Requirement) -> String {
    let name = requirement.quantity.name();
    if requirement.program == OURS { name.to_owned() } else { format!("{name} of {}", requirement.program) }
}

#[cfg(test)]
mod tests {
    use super::super::super::quantity::Quantity;
    use super::super::super::requirement::Bound;
    use super::super::super::samples::Summary;
    use super::*;

    const REQUIREMENT: Requirement =
        Requirement { case: "1 MB", program: "farhaul", quantity: Quantity::Completion, bound: Bound::Most(0.8) };

    const OURS: Summary = Summary { median: 0.62, least: 0.6, most: 0.7, runs: 3 };

    fn line(judged: Result<Comparison, String>, lost: usize, counts: bool) -> String {
        Line { row: "wan", setting: "rmem_max 212992", requirement: REQUIREMENT, judged, lost, counts }.markdown()
    }

    #[test]
    fn a_line_shows_limit_figure_and_peer() {
        let comparison = Comparison { holds: true, ours: OURS, limit: 0.8, peer: Some(("libudt", 1.3)) };
        assert_eq!(
            line(Ok(comparison), 0, true),
            "| wan | 1 MB; rmem_max 212992 | completion | ≤ 0.800 s | 0.620 s (0.600 s … 0.700 s; 3) | libudt 1.300 s | yes |"
        );
    }

    #[test]
    fn another_form_of_the_program_is_named() {
        let plain = Requirement { program: "farhaul, plain", ..REQUIREMENT };
        assert_eq!((what(&REQUIREMENT), what(&plain)), ("completion".into(), "completion of farhaul, plain".into()));
    }

    #[test]
    fn a_quick_run_judges_nothing() {
        let comparison = Comparison { holds: true, ours: OURS, limit: 0.8, peer: None };
        assert!(line(Ok(comparison), 0, false).ends_with("| too short |"));
    }

    #[test]
    fn a_missing_figure_is_unknown_and_uncounted_runs_are_shown() {
        let text = line(Err("farhaul has no figure".into()), 3, true);
        assert!(text.contains("**unknown**") && text.contains("3 not counted"), "{text}");
    }
}
