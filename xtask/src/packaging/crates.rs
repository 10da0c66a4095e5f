//! The crates as a registry would get them.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Folders, output};
use crate::sections::{CheckStatus, succeed};
use crate::workspace::Workspace;

/// Members that are not published: chores, and tests of hostile inputs.
const PRIVATE: [&str; 2] = ["xtask", "farhaul-fuzz"];
/// Files that every crate has.
const NEEDED: [&str; 5] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/"];

fn package(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo();
    command.args(["package", "--workspace", "--quiet", "--allow-dirty"]);
    for name in PRIVATE {
        command.args(["--exclude", name]);
    }
    command
}

/// Checks that each crate has its licences and its sources, and no more than a registry takes.
pub(super) fn check(workspace: &Workspace) -> Result<()> {
    let list = output(package(workspace).arg("--list"))?;
    // No list names its crate. Each begins with this file, behind one about the repository if there is one.
    let mut crates: Vec<Vec<&str>> = Vec::new();
    for line in list.lines().filter(|line| *line != ".cargo_vcs_info.json") {
        if line == "Cargo.lock" {
            crates.push(Vec::new());
        }
        crates.last_mut().context("the list begins with Cargo.lock")?.push(line);
    }
    let published = workspace.packages.iter().filter(|package| !PRIVATE.contains(&package.name.as_str())).count();
    ensure!(crates.len() == published, "{} crates are listed, and not {published}", crates.len());
    for files in &crates {
        for needed in NEEDED {
            let is_there =
                files.iter().any(|file| *file == needed || needed.ends_with('/') && file.starts_with(needed));
            ensure!(is_there, "a crate lacks {needed}: {}", files.join(" "));
        }
    }
    for package in workspace.packages.iter().filter(|package| !PRIVATE.contains(&package.name.as_str())) {
        let folder = if package.name == "farhaul" { "farhaul" } else { &package.short };
        let manifest = workspace.text(format!("crates/{folder}/Cargo.toml"))?;
        for key in ["description", "repository", "readme", "keywords", "categories", "license"] {
            let has = manifest
                .lines()
                .any(|line| line.starts_with(&format!("{key} ")) || line.starts_with(&format!("{key}.")));
            ensure!(has, "crates/{folder}/Cargo.toml has no {key}");
        }
        ensure!(manifest.contains("publish.workspace = true"), "crates/{folder} is not published");
    }
    println!("{} crates have their licences and metadata", crates.len());
    Ok(())
}

/// Makes them, and builds each one as a user of the registry would.
pub(super) fn make(workspace: &Workspace, folders: &Folders) -> Result<CheckStatus> {
    let made = workspace.target.join("package");
    if made.exists() {
        fs::remove_dir_all(&made)?;
    }
    succeed(package(workspace).arg("--locked"))?;
    let into = folders.packages.join("crates");
    fs::create_dir_all(&into)?;
    for file in fs::read_dir(&made)? {
        let path = file?.path();
        if path.extension().is_some_and(|ending| ending == "crate") {
            fs::copy(&path, into.join(path.file_name().context("a file has a name")?))?;
        }
    }
    Ok(CheckStatus::Passed)
}
