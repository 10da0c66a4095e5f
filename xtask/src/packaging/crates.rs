//! The crates as a registry would get them.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{output, version};
use crate::sections::succeed;
use crate::workspace::{Package, Workspace};

/// Files that every crate has.
const NEEDED: [&str; 5] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/"];

/// The workspace of the crates that were unpacked, in which they take the place of those on the registry.
const MANIFEST: &str = r#"[workspace]
resolver = "3"
members = ["*"]

[profile.dev]
debug = false

[patch.crates-io]
"#;

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

/// Makes them, builds each one as a user of the registry would, and returns their files.
pub(super) fn make(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let folder = workspace.target.join("package");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    succeed(package(workspace).args(["--locked", "--no-verify"]))?;
    let version = version(workspace)?;
    let made: Vec<PathBuf> =
        published(workspace).map(|package| folder.join(format!("{}-{version}.crate", package.name))).collect();
    build(workspace, &made)?;
    Ok(made)
}

/// Builds each crate from its file, with the features that it alone has.
///
/// The check of `cargo package` itself takes the crates that a crate needs from a registry of its own. It unpacks them into
/// CARGO_HOME once for each name and version, so from the second run on it builds sources of the first one. Here they are members
/// of a workspace that is unpacked each time. What other people published is built once.
fn build(workspace: &Workspace, made: &[PathBuf]) -> Result<()> {
    let folder = workspace.target.join("crates");
    let unpacked = folder.join("unpacked");
    if unpacked.exists() {
        fs::remove_dir_all(&unpacked)?;
    }
    fs::create_dir_all(&unpacked)?;
    let mut manifest = String::from(MANIFEST);
    for (package, file) in published(workspace).zip(made) {
        output(Command::new("tar").arg("-xmf").arg(file).arg("-C").arg(&unpacked))?;
        let path = file.file_stem().context("a file has a name")?.to_string_lossy();
        writeln!(manifest, "{} = {{ path = \"{path}\" }}", package.name)?;
    }
    fs::write(unpacked.join("Cargo.toml"), manifest)?;
    // The versions of other people's crates are those of this workspace.
    fs::copy(workspace.root.join("Cargo.lock"), unpacked.join("Cargo.lock"))?;
    for package in published(workspace) {
        let mut cargo = workspace.cargo();
        cargo.current_dir(&unpacked).env("CARGO_TARGET_DIR", folder.join("target"));
        succeed(cargo.args(["build", "--quiet", "-p", &package.name]))?;
    }
    println!("{} crates build from their files", made.len());
    Ok(())
}
