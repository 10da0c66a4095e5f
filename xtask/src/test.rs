//! The test command of the README: everything that must hold before a merge, and nothing that only a server can do.

use anyhow::{Result, ensure};

use crate::sections::{Outcome, Sections, succeed};
use crate::workspace::Workspace;
use crate::{citations, interop, packages, tidy};

/// Crates that must not know what a system is.
const SYSTEM_FREE: &[&str] = &["units", "wire", "cc", "netem", "proto", "session"];
/// A target without sockets, files, threads and clocks.
const WASM: &str = "wasm32-unknown-unknown";
/// Features that need more than a compiler; their tests have a section of their own.
const OWN_SECTION: &[&str] = &["default", "interop"];

/// Runs every section, then says what failed and what was skipped.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    ensure!(arguments.is_empty(), "`test` takes no arguments; for one crate: cargo test -p farhaul-NAME");
    let features = features(workspace);
    let mut sections = Sections::default();
    sections.section("packages of the system", packages::provide);
    sections.section("format", || succeed(workspace.cargo().args(["fmt", "--all", "--check"])));
    sections.section("lints", || {
        let mut command = workspace.cargo();
        command.args(["clippy", "--workspace", "--all-targets"]).args(&features).args(["--", "-D", "warnings"]);
        succeed(&mut command)
    });
    sections.section("tests", || {
        succeed(workspace.cargo().args(["test", "--workspace", "--no-fail-fast"]).args(&features))
    });
    sections.section("interoperability", || interop::check(workspace));
    sections.section("documentation", || {
        let mut command = workspace.cargo();
        command.args(["doc", "--workspace", "--no-deps"]).args(&features).env("RUSTDOCFLAGS", "-D warnings");
        succeed(&mut command)
    });
    sections.section("crates without a system", || without_system(workspace));
    sections.section("tidy", || tidy::check(workspace));
    sections.section("citations", || citations::check(workspace));
    sections.finish()
}

/// Every optional feature, since tests hide behind them too.
fn features(workspace: &Workspace) -> Vec<String> {
    workspace
        .packages
        .iter()
        .flat_map(|package| package.features.iter().map(move |feature| (&package.name, feature)))
        .filter(|(_, feature)| !OWN_SECTION.contains(&feature.as_str()))
        .map(|(package, feature)| format!("--features={package}/{feature}"))
        .collect()
}

fn without_system(workspace: &Workspace) -> Result<Outcome> {
    let sysroot = workspace.command("rustc").args(["--print", "sysroot"]).output()?;
    let sysroot = String::from_utf8(sysroot.stdout)?;
    if !std::path::Path::new(sysroot.trim()).join("lib/rustlib").join(WASM).is_dir() {
        return Ok(Outcome::Skipped(format!("the target is not installed (rustup target add {WASM})")));
    }
    let mut command = workspace.cargo();
    command.args(["check", "--target", WASM]);
    for package in workspace.packages.iter().filter(|package| SYSTEM_FREE.contains(&package.short.as_str())) {
        command.args(["-p", &package.name]);
    }
    succeed(&mut command)
}
