//! The test command of the README: every check required before a merge that a developer's machine can run.

use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use crate::sections::{CheckStatus, Sections, succeed};
use crate::workspace::{Package, Workspace};
use crate::{citations, interop, packages, tidy};

/// Crates without access to the system.
const SYSTEM_FREE: &[&str] = &["units", "wire", "cc", "netem", "proto", "session"];
/// A target without sockets, files, threads and clocks.
const WASM: &str = "wasm32-unknown-unknown";
/// Crates whose tests make networks. They need the rights at their start, because the test harness has threads.
const NETWORKS: &[&str] = &["emu", "lab"];
/// Runs a command with root rights over its own namespaces.
const AS_ROOT: [&str; 4] = ["unshare", "--user", "--map-root-user", "--"];
/// Features that need more than a compiler. Their tests have their own section.
const OWN_SECTION: &[&str] = &["default", "interop"];

/// Runs every section, then reports failures and skipped sections.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    ensure!(arguments.is_empty(), "`test` takes no arguments; for one crate: cargo test -p farhaul-NAME");
    let all = features(workspace.packages.iter());
    let mut sections = Sections::default();
    sections.section("packages of the system", packages::provide);
    sections.section("format", || succeed(workspace.cargo().args(["fmt", "--all", "--check"])));
    sections.section("lints", || {
        let mut command = workspace.cargo();
        command.args(["clippy", "--workspace", "--all-targets"]).args(&all).args(["--", "-D", "warnings"]);
        succeed(&mut command)
    });
    sections.section("tests", || {
        let mut command = workspace.cargo();
        let others = workspace.packages.iter().filter(|package| !is_of_networks(package));
        command.args(["test", "--workspace", "--no-fail-fast"]).args(features(others));
        for package in networks(workspace) {
            command.args(["--exclude", &package.name]);
        }
        succeed(&mut command)
    });
    sections.section("tests of networks", || with_networks(workspace));
    sections.section("interoperability", || interop::check(workspace));
    sections.section("documentation", || {
        let mut command = workspace.cargo();
        command.args(["doc", "--workspace", "--no-deps"]).args(&all).env("RUSTDOCFLAGS", "-D warnings");
        succeed(&mut command)
    });
    sections.section("crates without a system", || without_system(workspace));
    sections.section("tidy", || tidy::check(workspace));
    sections.section("citations", || citations::check(workspace));
    sections.finish()
}

/// Every optional feature, because tests can depend on them.
fn features<'a>(packages: impl Iterator<Item = &'a Package>) -> Vec<String> {
    packages
        .flat_map(|package| package.features.iter().map(move |feature| (&package.name, feature)))
        .filter(|(_, feature)| !OWN_SECTION.contains(&feature.as_str()))
        .map(|(package, feature)| format!("--features={package}/{feature}"))
        .collect()
}

fn networks(workspace: &Workspace) -> impl Iterator<Item = &Package> {
    workspace.packages.iter().filter(|package| is_of_networks(package))
}

fn is_of_networks(package: &Package) -> bool {
    NETWORKS.contains(&package.short.as_str())
}

/// Runs the tests in a user namespace if possible and not already root. Otherwise the tests report what they skip, or
/// fail if nothing may be skipped.
fn with_networks(workspace: &Workspace) -> Result<CheckStatus> {
    let [program, words @ ..] = AS_ROOT;
    let permitted = Command::new(program).args(words).arg("true").stderr(Stdio::null()).status();
    let mut command = if !packages::is_root() && permitted.is_ok_and(|status| status.success()) {
        let mut command = workspace.command(program);
        command.args(words).arg(workspace.cargo().get_program());
        command
    } else {
        workspace.cargo()
    };
    command.args(["test", "--no-fail-fast"]);
    for package in networks(workspace) {
        command.args(["-p", &package.name]);
    }
    succeed(command.args(features(networks(workspace))))
}

fn without_system(workspace: &Workspace) -> Result<CheckStatus> {
    let sysroot = workspace.command("rustc").args(["--print", "sysroot"]).output()?;
    let sysroot = String::from_utf8(sysroot.stdout)?;
    if !std::path::Path::new(sysroot.trim()).join("lib/rustlib").join(WASM).is_dir() {
        return Ok(CheckStatus::Skipped(format!("the target is not installed (rustup target add {WASM})")));
    }
    let mut command = workspace.cargo();
    command.args(["check", "--target", WASM]);
    for package in workspace.packages.iter().filter(|package| SYSTEM_FREE.contains(&package.short.as_str())) {
        command.args(["-p", &package.name]);
    }
    succeed(&mut command)
}
