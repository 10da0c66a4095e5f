//! The crate graph against the file of allowed edges. A new edge needs a visible change of that file.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use crate::workspace::{Edge, Workspace};

const ALLOWED: &str = "docs/architecture/edges.txt";
/// Crates whose only inputs are bytes, time and randomness.
const PURE: &[&str] = &["units", "wire", "cc", "netem", "proto", "protocols", "session", "sim"];
/// Modules of other crates that are as pure: the dialogues with original programs, which read their bytes.
const PURE_MODULES: &[(&str, &str)] =
    &[("originals", "rbudp"), ("originals", "sabul"), ("originals", "session"), ("originals", "tsunami")];
/// An attribute that every pure crate has in its first file.
const FORBIDS_UNSAFE: &str = "#![forbid(unsafe_code)]";
/// Paths that a pure crate never mentions. Split, so that this file does not match.
const WORLD: &[&str] = &[
    concat!("std::", "fs"),
    concat!("std::", "io"),
    // Addresses are those of `core::net`, which has no sockets.
    concat!("std::", "net"),
    concat!("std::", "os"),
    concat!("std::", "thread"),
    concat!("std::", "env"),
    concat!("std::", "process"),
    concat!("std::time::", "Instant"),
    concat!("System", "Time"),
    // Braces could hide any of them.
    concat!("std::", "{"),
];

/// Prints the graph and returns a fault for everything forbidden.
pub(super) fn faults(workspace: &Workspace) -> Result<Vec<String>> {
    let allowed = parse(&workspace.text(ALLOWED)?).with_context(|| ALLOWED.to_owned())?;
    println!("who uses whom (* in tests only):");
    let mut used = BTreeSet::new();
    for package in &workspace.packages {
        let names: Vec<_> =
            package.uses.iter().map(|edge| format!("{}{}", edge.to, if edge.dev { "*" } else { "" })).collect();
        println!("  {:<9} → {}", package.short, names.join(" "));
        used.extend(package.uses.iter().cloned());
    }
    for edge in allowed.difference(&used).filter(|edge| !used.contains(&Edge { dev: false, ..(*edge).clone() })) {
        println!("  allowed and not used: {}", shown(edge));
    }
    // Tests may use everything that the shipped code may use.
    let mut faults: Vec<_> = used
        .iter()
        .filter(|edge| !allowed.contains(edge) && !allowed.contains(&Edge { dev: false, ..(*edge).clone() }))
        .map(|edge| format!("{} is not in {ALLOWED}", shown(edge)))
        .collect();
    faults.extend(impurities(workspace)?);
    Ok(faults)
}

/// One edge per line, `from -> to`, with `(tests)` behind it if only tests may use it. `#` begins a comment.
fn parse(text: &str) -> Result<BTreeSet<Edge>> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines
        .filter(|line| !line.is_empty())
        .map(|line| {
            let (from, to) = line.split_once("->").with_context(|| format!("'{line}' is not an edge"))?;
            let (to, dev) = match to.trim().strip_suffix("(tests)") {
                Some(to) => (to, true),
                None => (to, false),
            };
            Ok(Edge { from: from.trim().to_owned(), to: to.trim().to_owned(), dev })
        })
        .collect()
}

fn shown(edge: &Edge) -> String {
    format!("{} -> {}{}", edge.from, edge.to, if edge.dev { " (tests)" } else { "" })
}

fn impurities(workspace: &Workspace) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for path in workspace.files(&["rs"])? {
        let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
        let ["crates", name, "src", rest @ ..] = &parts.iter().map(AsRef::as_ref).collect::<Vec<&str>>()[..] else {
            continue;
        };
        let module = rest.first().map_or("", |first| first.trim_end_matches(".rs"));
        if !PURE.contains(name) && !PURE_MODULES.contains(&(*name, module)) {
            continue;
        }
        let text = workspace.text(&path)?;
        if *rest == ["lib.rs"] && !text.contains(FORBIDS_UNSAFE) {
            faults.push(format!("{} is in the pure zone and lacks {FORBIDS_UNSAFE}", path.display()));
        }
        for (index, line) in text.lines().enumerate() {
            faults.extend(mentions(line).map(|word| {
                format!("{}:{} mentions {word}, which is forbidden in the pure zone", path.display(), index + 1)
            }));
        }
    }
    Ok(faults)
}

/// Forbidden paths in a line of code. Comments may mention them.
fn mentions(line: &str) -> impl Iterator<Item = &'static str> {
    let code = if line.trim_start().starts_with("//") { "" } else { line };
    WORLD.iter().copied().filter(move |word| code.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_edge_with_its_kind() {
        let edges = parse("# remark\nwire -> units\n\nproto -> sim (tests)  # why\n").unwrap();
        let shown: Vec<_> = edges.iter().map(shown).collect();
        assert_eq!(shown, ["proto -> sim (tests)", "wire -> units"]);
    }

    #[test]
    fn sockets_files_and_clocks_are_seen_in_code_but_not_in_comments() {
        let seen = |line: &str| mentions(line).collect::<Vec<_>>();
        assert_eq!(seen("use std::net::{SocketAddr, UdpSocket};"), ["std::net"]);
        assert_eq!(seen("    let text = std::fs::read(path);"), ["std::fs"]);
        assert_eq!(seen("use std::{net::SocketAddr, time::Instant};"), ["std::{"]);
        assert_eq!(seen("use std::time::Instant;"), ["std::time::Instant"]);
        assert!(seen("use core::net::SocketAddr;").is_empty() && seen("    // as std::net has it").is_empty());
    }

    #[test]
    fn a_line_that_is_no_edge_is_named() {
        assert_eq!(parse("wire units").unwrap_err().to_string(), "'wire units' is not an edge");
    }
}
