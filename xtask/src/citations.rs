//! Checks the citations in the code: every `paper:<key>` must be in the bibliography.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};

use crate::sections::CheckStatus;
use crate::workspace::Workspace;

const BIBLIOGRAPHY: &str = "docs/papers/papers.bib";
/// The prefix of a key in the code. Split, so that this line cites nothing.
const MARK: &str = concat!("paper", ":");

/// The verb `citations`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    ensure!(arguments.is_empty(), "`citations` takes no arguments");
    check(workspace).map(drop)
}

/// Prints for each paper where it is cited.
///
/// # Errors
/// A key is not in the bibliography.
pub(crate) fn check(workspace: &Workspace) -> Result<CheckStatus> {
    let known = keys(&workspace.text(BIBLIOGRAPHY)?);
    let mut cited: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in workspace.files(&["rs", "toml"])? {
        for (index, line) in workspace.text(&path)?.lines().enumerate() {
            for (key, rest) in citations(line) {
                let place = format!("{}:{}{}", path.display(), index + 1, passage(rest));
                cited.entry(key).or_default().push(place);
            }
        }
    }
    for key in &known {
        let places = cited.get(key).map_or(&[][..], Vec::as_slice);
        println!("{key}:{}", if places.is_empty() { " not cited in code" } else { "" });
        places.iter().for_each(|place| println!("    {place}"));
    }
    let dangling: Vec<_> = cited.iter().filter(|(key, _)| !known.contains(*key)).collect();
    for (key, places) in &dangling {
        println!("{key}: NOT IN {BIBLIOGRAPHY}");
        places.iter().for_each(|place| println!("    {place}"));
    }
    ensure!(dangling.is_empty(), "{} cited keys are not in {BIBLIOGRAPHY}", dangling.len());
    Ok(CheckStatus::Passed)
}

/// The keys of a BibTeX file.
fn keys(bibliography: &str) -> BTreeSet<String> {
    bibliography
        .lines()
        .filter(|line| line.starts_with('@'))
        .filter_map(|line| Some(line.split_once('{')?.1.trim_end_matches(',').trim().to_owned()))
        .collect()
}

/// The keys cited on a line, each with the rest of the line.
fn citations(line: &str) -> Vec<(String, &str)> {
    line.match_indices(MARK)
        .filter_map(|(at, _)| {
            let rest = &line[at + MARK.len()..];
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(rest.len());
            (end > 0).then(|| (rest[..end].to_owned(), &rest[end..]))
        })
        .collect()
}

/// The section or equation of a citation, if it names one.
fn passage(rest: &str) -> String {
    let is_part = |word: &&str| word.starts_with('§') || word.starts_with("eq") || word.starts_with('(');
    let words: Vec<_> = rest.trim_start_matches(',').split_whitespace().take_while(is_part).collect();
    let passage = words.join(" ");
    let passage = passage.trim_end_matches(['.', ',', ';', ':']);
    // A bracket that closes behind a citation is not part of it.
    let is_open = passage.matches('(').count() >= passage.matches(')').count();
    let passage = if is_open { passage } else { passage.trim_end_matches(')') };
    if passage.is_empty() { String::new() } else { format!("  {passage}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_end_where_the_citation_does() {
        let line = concat!("//= paper", ":udt-2004 §3.3 eq. (4); see also (paper", ":udt-2007, UDT4).");
        let found: Vec<_> = citations(line).into_iter().map(|(key, _)| key).collect();
        assert_eq!(found, ["udt-2004", "udt-2007"]);
    }

    #[test]
    fn a_passage_ends_before_the_prose() {
        assert_eq!(passage(" §3.3 eq. (4); see also"), "  §3.3 eq. (4)");
        assert_eq!(passage(" §3.5), descending from"), "  §3.5");
        assert_eq!(passage(" says so"), "");
    }

    #[test]
    fn a_placeholder_is_no_citation() {
        assert!(citations(concat!("cited as paper", ":<key>")).is_empty());
    }

    #[test]
    fn the_bibliography_gives_its_keys() {
        assert_eq!(
            keys("% text\n@article{a-1,\n  title = {x},\n}\n@misc{b,\n}\n"),
            ["a-1", "b"].map(String::from).into()
        );
    }
}
