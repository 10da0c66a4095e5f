//! The production lines of each crate against the file of their budgets. A crate that needs more makes a visible change of that file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::workspace::Workspace;

const BUDGETS: &str = "docs/architecture/budget.txt";
/// Lines by which a crate may be below its budget. What was deleted beyond them is given back.
const SLACK: usize = 150;

/// Compares the production lines of each crate.
pub(super) fn faults(workspace: &Workspace) -> Result<Vec<String>> {
    let lines = production_lines(workspace)?;
    println!("production lines: {}", lines.values().sum::<usize>());
    Budgets { file: BUDGETS, unit: "production lines", slack: SLACK }.faults(workspace, &lines)
}

/// A file with a number for each crate.
#[derive(Debug)]
pub(crate) struct Budgets<'a> {
    pub(crate) file: &'a str,
    /// What it counts.
    pub(crate) unit: &'a str,
    /// By how much a crate may be below.
    pub(crate) slack: usize,
}

impl Budgets<'_> {
    /// Returns a fault for each crate that is above its budget, far below it, or without one.
    pub(crate) fn faults(&self, workspace: &Workspace, counts: &BTreeMap<String, usize>) -> Result<Vec<String>> {
        let Self { file, unit, slack } = self;
        let budgets = parse(&workspace.text(Path::new(file))?).with_context(|| (*file).to_owned())?;
        let judge = |(name, &count): (&String, &usize)| match budgets.get(name) {
            None => Some(format!("crate {name} has {count} {unit}, and no budget in {file}")),
            Some(&budget) if count > budget => Some(format!(
                "crate {name} has {count} {unit}, {} above its budget: delete some, or change {file} and say why",
                count - budget
            )),
            Some(&budget) if count + slack < budget => {
                Some(format!("crate {name} has {count} {unit}: lower its budget of {budget} in {file}"))
            }
            Some(_) => None,
        };
        let gone = budgets.keys().filter(|name| !counts.contains_key(*name));
        let gone = gone.map(|name| format!("{file} has a crate {name}, which is not there"));
        Ok(counts.iter().filter_map(judge).chain(gone).collect())
    }
}

/// One crate per line: its name and its number. `#` begins a comment, which says why.
fn parse(text: &str) -> Result<BTreeMap<String, usize>> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines
        .filter(|line| !line.is_empty())
        .map(|line| {
            let (name, budget) =
                line.split_once(' ').with_context(|| format!("'{line}' is no crate with its number"))?;
            Ok((name.to_owned(), budget.trim().parse().with_context(|| format!("the number of '{name}'"))?))
        })
        .collect()
}

/// The lines of each crate below `crates`, without tests, comments and blank lines.
fn production_lines(workspace: &Workspace) -> Result<BTreeMap<String, usize>> {
    let mut texts = BTreeMap::new();
    for path in workspace.files(&["rs"])? {
        let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
        let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
        if let ["crates", name, "src", .., file] = parts[..]
            && file != "tests.rs"
        {
            texts.insert(path.clone(), (name.to_owned(), workspace.text(&path)?));
        }
    }
    ensure!(!texts.is_empty(), "there are no crates");
    let gated: BTreeSet<PathBuf> = texts.iter().flat_map(|(path, (_, text))| gated_modules(path, text)).collect();
    let mut lines = BTreeMap::new();
    for (path, (name, text)) in texts {
        let module = path.with_extension("");
        if !module.ancestors().any(|ancestor| gated.contains(ancestor)) {
            *lines.entry(name).or_default() += count(&without_tests(&text));
        }
    }
    Ok(lines)
}

fn count(text: &str) -> usize {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// The modules of a file that only tests have, as paths without an extension.
fn gated_modules(path: &Path, text: &str) -> Vec<PathBuf> {
    let is_root = path.file_name().is_some_and(|name| name == "lib.rs" || name == "main.rs");
    let folder = if is_root { path.parent().unwrap_or(path).to_owned() } else { path.with_extension("") };
    let mut rest = text;
    let mut modules = Vec::new();
    while let Some((_, behind)) = split_at_gate(rest) {
        let item = behind[..after_item(behind)].trim().trim_end_matches(';');
        if let Some((_, name)) = item.split_once("mod ").filter(|_| !item.contains('{')) {
            modules.push(folder.join(name.trim()));
        }
        rest = behind;
    }
    modules
}

/// The text without the items that only tests have.
fn without_tests(text: &str) -> String {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some((before, behind)) = split_at_gate(rest) {
        kept.push_str(before);
        rest = &behind[after_item(behind)..];
    }
    kept + rest
}

/// The text before the next `#[cfg(test)]`, or one of several conditions of which tests are the first, and the text behind it.
fn split_at_gate(text: &str) -> Option<(&str, &str)> {
    let gates = ["#[cfg(test)]", "#[cfg(all(test", "#[cfg(any(test"];
    let (at, gate) = gates.iter().filter_map(|gate| Some((text.find(gate)?, gate))).min()?;
    let end = at + gate.len() + if gate.ends_with(']') { 0 } else { text[at + gate.len()..].find(']')? + 1 };
    Some((&text[..at], &text[end..]))
}

/// The length of the item at the beginning of a text: to its closing brace or its semicolon.
fn after_item(text: &str) -> usize {
    let (mut depth, bytes, mut at) = (0_isize, text.as_bytes(), 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'\'' if bytes.get(at + 2) == Some(&b'\'') => at += 2,
            b'/' if bytes.get(at + 1) == Some(&b'/') => match text[at..].find('\n') {
                Some(end) => at += end,
                None => return bytes.len(),
            },
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_comments_and_blank_lines_do_not_count() {
        let text = "//! a\n\nuse b;\n#[cfg(test)]\nmod doubles;\n\nfn c() {\n    // d\n    e(\"}\");\n}\n#[cfg(test)]\nmod tests {\n    fn f() { '}' }\n}\n";
        assert_eq!(count(&without_tests(text)), 4);
        assert_eq!(gated_modules(Path::new("crates/x/src/y.rs"), text), [Path::new("crates/x/src/y/doubles")]);
        assert_eq!(gated_modules(Path::new("crates/x/src/lib.rs"), text), [Path::new("crates/x/src/doubles")]);
        assert_eq!(count(&without_tests("#[cfg(any(test, feature = \"x\"))]\npub mod y;\nfn z() {}\n")), 1);
    }

    #[test]
    fn a_budget_is_a_crate_and_its_lines() {
        let budgets = parse("# why\nproto 15300 # because\n\nwire   10\n").unwrap();
        assert_eq!(budgets, [("proto".to_owned(), 15_300), ("wire".to_owned(), 10)].into());
        parse("proto many").unwrap_err();
    }
}
