//! The crates as a registry would get them.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Folders, output};
use crate::sections::{CheckStatus, succeed};
use crate::workspace::{Package, Workspace};

/// Files that every crate has.
const NEEDED: [&str; 5] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/"];

fn package(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo();
    command.args(["package", "--quiet", "--allow-dirty"]);
    for package in published(workspace) {
        command.args(["-p", &package.name]);
    }
    command
}

/// The members that go to a registry.
fn published(workspace: &Workspace) -> impl Iterator<Item = &Package> {
    workspace.packages.iter().filter(|package| package.is_published)
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
    let expected = published(workspace).count();
    ensure!(crates.len() == expected, "{} crates are listed, and not {expected}", crates.len());
    for files in &crates {
        for needed in NEEDED {
            let is_there =
                files.iter().any(|file| *file == needed || needed.ends_with('/') && file.starts_with(needed));
            ensure!(is_there, "a crate lacks {needed}: {}", files.join(" "));
        }
    }
    for package in published(workspace) {
        let folder = package.folder.display();
        let manifest = workspace.text(package.folder.join("Cargo.toml"))?;
        for key in ["description", "readme", "keywords", "categories", "license"] {
            let mut lines = manifest.lines();
            let has = lines.any(|line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with([' ', '.'])));
            ensure!(has, "{folder}/Cargo.toml has no {key}; a member that is not published says `publish = false`");
        }
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
