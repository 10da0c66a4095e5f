//! The verb `package`: everything that is published, made and tried, in `target/packages`.
//!
//! ```text
//! crates ─▶ each one built         program ─▶ stage ─▶ Debian packages ─▶ lintian, an install in a root of its own
//! programs for other machines ─▶ copies with this one ─▶ tarballs, a Debian package      SBOM, licences ─▶ checksums
//! ```

mod crates;
mod debian;
mod machines;
mod publications;
mod root;
mod stage;
mod third_party;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::libudt;
use crate::packages::is_present;
use crate::sections::{CheckStatus, Sections, succeed};
use crate::workspace::Workspace;

/// The programs that make packages, and how to get them.
const TOOLS: &[(&str, &str)] = &[
    ("cargo-deb", "cargo install --locked cargo-deb"),
    ("cargo-cyclonedx", "cargo install --locked cargo-cyclonedx"),
    ("dpkg-deb", "apt install dpkg"),
    ("g++", "apt install g++"),
    ("pkg-config", "apt install pkg-config"),
];

/// The members that are built into packages: the program, the library for C, and the one in the place of libudt.
const BUILT: [&str; 3] = ["farhaul-cli", "farhaul-c", libudt::PACKAGE];

/// Where a run puts what it makes.
struct Folders {
    /// What is published.
    packages: PathBuf,
    /// What goes into packages: cargo-deb looks for it below the folder of a release.
    stage: PathBuf,
    release: PathBuf,
}

/// Makes and tries everything. A failure does not prevent later sections that need nothing of it.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let mut sections = Sections::default();
    match arguments {
        [] => {}
        [word] if word == "--check" => {
            sections.section("manifests", || check(workspace));
            sections.section("crates", || crates::make(workspace).map(|_| CheckStatus::Passed));
            return sections.finish();
        }
        _ => bail!("`package` takes `--check` or nothing"),
    }
    let missing: Vec<&str> = TOOLS.iter().filter(|(name, _)| !is_present(name)).map(|(_, how)| *how).collect();
    ensure!(missing.is_empty(), "missing programs: {}", missing.join("; "));
    let release = workspace.target.join("release");
    let folders = Folders { packages: workspace.target.join("packages"), stage: release.join("stage"), release };
    for folder in [&folders.packages, &folders.stage] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
    }
    sections.section("manifests", || check(workspace));
    sections.section("program and libraries", || {
        succeed(
            workspace.cargo().args(["build", "--release", "--locked"]).args(BUILT.iter().flat_map(|name| ["-p", name])),
        )
    });
    sections.section("pages, completions, licences", || stage::make(workspace, &folders));
    sections.section("Debian packages", || debian::make(workspace, &folders));
    for machine in &machines::MACHINES {
        sections.section(machine.name, || machines::make(workspace, &folders, machine));
    }
    sections.section("lintian", || debian::judge(&folders));
    sections.section("installed", || root::try_packages(workspace, &folders));
    sections.section("SBOM", || publications::sbom(workspace, &folders));
    sections.section("crates", || publications::crates(&crates::make(workspace)?, &folders));
    sections.section("checksums", || publications::checksums(&folders));
    sections.finish()
}

/// The part for the test command, which builds nothing: what packages are made of is there, and crates have what they need.
pub(crate) fn check(workspace: &Workspace) -> Result<CheckStatus> {
    crates::check(workspace)?;
    debian::check(workspace)?;
    Ok(CheckStatus::Passed)
}

/// What a command prints.
fn output(command: &mut Command) -> Result<String> {
    let shown = crate::sections::shown(command);
    let output = command.output().with_context(|| shown.clone())?;
    if !output.status.success() {
        bail!("`{shown}` ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The version of all members.
fn version(workspace: &Workspace) -> Result<String> {
    let manifest = workspace.text("Cargo.toml")?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = "));
    Ok(line.context("the workspace has a version")?.trim_matches('"').to_owned())
}
