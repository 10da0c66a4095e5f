//! The verb `package`: everything that is published, made and tried, in `target/packages`.
//!
//! ```text
//! crates ─ cargo package           program ─▶ stage ─▶ Debian packages ─▶ lintian, an install in a root of its own
//!                                                  └─▶ tarball        SBOM, licences ─▶ checksums
//! ```

mod crates;
mod debian;
mod publications;
mod root;
mod stage;
mod third_party;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::packages::is_present;
use crate::sections::{CheckStatus, Sections, succeed};
use crate::workspace::Workspace;

/// The programs that make packages, and how to get them.
const TOOLS: &[(&str, &str)] =
    &[("cargo-deb", "cargo install --locked cargo-deb"), ("cargo-cyclonedx", "cargo install --locked cargo-cyclonedx")];

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
    if let [word] = arguments
        && word == "--check"
    {
        return check(workspace).map(drop);
    }
    ensure!(arguments.is_empty(), "`package` takes `--check` or nothing");
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
    let mut sections = Sections::default();
    sections.section("manifests", || check(workspace));
    sections.section("program and library", || {
        succeed(workspace.cargo().args(["build", "--release", "--locked", "-p", "farhaul-cli", "-p", "farhaul-c"]))
    });
    sections.section("pages, completions, licences", || stage::make(workspace, &folders));
    sections.section("Debian packages", || debian::make(workspace, &folders));
    sections.section("lintian", || debian::judge(&folders));
    sections.section("installed", || root::try_packages(workspace, &folders));
    sections.section("tarball", || publications::tarball(workspace, &folders));
    sections.section("SBOM", || publications::sbom(workspace, &folders));
    sections.section("crates", || crates::make(workspace, &folders));
    sections.section("checksums", || publications::checksums(&folders));
    sections.finish()
}

/// The cheap part, for the test command: what packages are made of is there, and crates have what they need.
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
