//! The licences of the crates that are linked into the program and the libraries.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{BUILT, output};
use crate::workspace::Workspace;

/// Starts of the names of files that have a licence or what it demands to be passed on.
const FILES: [&str; 4] = ["license", "licence", "copying", "notice"];

/// All texts, each once, with the crates that have it.
pub(super) fn licences(workspace: &Workspace) -> Result<String> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let metadata =
        output(workspace.cargo().args(["metadata", "--format-version=1", "--locked", "--filter-platform", &target]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let mut tree = workspace.cargo();
    tree.args(["tree", "--locked", "--edges=normal,no-proc-macro", "--prefix=none", "--format={p}"]);
    let linked = output(tree.args(BUILT.iter().flat_map(|name| ["-p", name])))?;
    let linked: Vec<(&str, &str)> = linked
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?, words.next()?.strip_prefix('v')?))
        })
        .collect();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in metadata["packages"].as_array().context("cargo lists packages")? {
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        // Members have the licences of this project.
        if package["source"].is_null() || !linked.contains(&(name, version)) {
            continue;
        }
        let folder = Path::new(text(&package["manifest_path"])).parent().context("a manifest has a folder")?;
        let shown = format!("{name} {version}: {}", text(&package["license"]));
        let mut found = false;
        for file in fs::read_dir(folder)? {
            let path = file?.path();
            let lower = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            if path.is_file() && FILES.iter().any(|start| lower.starts_with(start)) {
                let bytes = fs::read(&path)?;
                texts.entry(String::from_utf8_lossy(&bytes).trim().to_owned()).or_default().push(shown.clone());
                found = true;
            }
        }
        if !found {
            texts.entry("(The package has no text of its licence.)".to_owned()).or_default().push(shown);
        }
    }
    ensure!(texts.len() > 10, "{} licences were found", texts.len());
    let mut all = String::from("Crates that are linked into Farhaul, and their licences.\n");
    for (text, mut crates) in texts {
        crates.sort();
        crates.dedup();
        write!(all, "\n{}\n{}\n\n{text}\n", "=".repeat(80), crates.join("\n"))?;
    }
    Ok(all)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
