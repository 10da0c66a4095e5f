//! The test command of the README: every check required before a merge that a developer's machine can run.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::sections::{CheckStatus, Sections, succeed};
use crate::suite::{Extent, Report, Suite, Surroundings, documentation};
use crate::torture::{Checked, Company};
use crate::workspace::{Package, Workspace};
use crate::{citations, interop, packages, packaging, public_items, python, tidy, torture};

/// Crates without access to the system.
const SYSTEM_FREE: &[&str] = &["units", "wire", "cc", "netem", "proto", "protocols", "session"];
/// A target without sockets, files, threads and clocks.
const WASM: &str = "wasm32-unknown-unknown";
/// Runs a command with root rights over its own namespaces.
const AS_ROOT: [&str; 4] = ["unshare", "--user", "--map-root-user", "--"];

/// Runs every section, then reports failures, the slowest tests, and what did not run.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let (mut extent, mut may_install) = (Extent::Short, false);
    for word in arguments {
        match word.as_str() {
            "--long" => extent = Extent::Long,
            packages::INSTALL => may_install = true,
            _ => bail!("`test` takes `--long` and `{}`; for one crate: cargo test -p farhaul-NAME", packages::INSTALL),
        }
    }
    let features = features(&workspace.packages);
    let mut sections = Sections::default();
    let mut report = Report::default();
    let mut surroundings = Surroundings { network_wrapper: network_wrapper(), ..Surroundings::default() };
    let mut suite = None;
    sections.section("packages of the system", || packages::provide(may_install));
    let python = python::Preparation::begin(workspace);
    sections.section("format", || succeed(workspace.cargo().args(["fmt", "--all", "--check"])));
    sections.section("tidy", || tidy::check(workspace));
    sections.section("citations", || citations::check(workspace));
    sections.section("packages", || packaging::check(workspace));
    sections.section("lints", || {
        let mut command = workspace.cargo();
        command.args(["clippy", "--workspace", "--all-targets"]).args(&features).args(["--", "-D", "warnings"]);
        succeed(&mut command)
    });
    let build = || {
        suite = Some(Suite::build(workspace, &features)?);
        Ok(CheckStatus::Passed)
    };
    let peer = ("libudt against itself", || interop::checked_peer(workspace));
    sections.section_beside("test programs", build, peer, |checked| {
        print!("{}", checked.said);
        match checked.peer {
            Ok(peer) => {
                surroundings.libudt_peer = Some((interop::PEER_VARIABLE, peer));
                CheckStatus::Passed
            }
            Err(why) => CheckStatus::Skipped(why),
        }
    });
    sections.section("tests", || {
        let suite = suite.as_ref().context("the test programs were not built")?;
        suite.run(workspace, extent, &surroundings, &mut report)?;
        Ok(CheckStatus::Passed)
    });
    let faults = |company| {
        suite.as_ref().context("the program was not built")?;
        torture::check(&workspace.target.join("debug/farhaul"), company)
    };
    let mut left_out = Vec::new();
    let mut seen = |faults: Checked| {
        faults.lines.iter().for_each(|line| println!("{line}"));
        left_out.extend(faults.left_out);
    };
    sections.section("faults, one at a time", || {
        seen(faults(Company::Alone)?);
        Ok(CheckStatus::Passed)
    });
    let waiting = ("faults, several at a time", || faults(Company::Any));
    sections.section_beside(
        "python",
        || python.test(workspace, &[], &mut report),
        waiting,
        |faults| {
            seen(faults);
            CheckStatus::Passed
        },
    );
    left_out.into_iter().for_each(|(row, why)| report.leave_out(row, why));
    sections.section("examples in the documentation", || {
        documentation::run(workspace, &features, &mut report)?;
        Ok(CheckStatus::Passed)
    });
    sections.section("documentation", || public_items::check(workspace));
    sections.section("libraries and program with the fewest features", || fewest_features(workspace));
    sections.section("crates without a system", || without_system(workspace));
    let result = sections.finish();
    report.print();
    if !may_install && let Some(remedy) = packages::remedy() {
        println!("{remedy}");
    }
    result
}

/// Every optional feature, because tests can depend on them.
pub(crate) fn features(packages: &[Package]) -> Vec<String> {
    packages
        .iter()
        .flat_map(|package| package.features.iter().map(move |feature| (&package.name, feature)))
        .filter(|(_, feature)| *feature != "default")
        .map(|(package, feature)| format!("--features={package}/{feature}"))
        .collect()
}

/// Starts test programs that make networks: in a user namespace, if that is possible and the user is not root. They need
/// the rights at their start, because the test harness has threads. Without the rights, the tests report what they
/// skip, or fail if nothing may be skipped.
fn network_wrapper() -> Vec<String> {
    let [program, words @ ..] = AS_ROOT;
    let permitted = Command::new(program).args(words).arg("true").stderr(Stdio::null()).status();
    if !packages::is_root() && permitted.is_ok_and(|status| status.success()) {
        AS_ROOT.map(str::to_owned).into()
    } else {
        Vec::new()
    }
}

/// What users get who choose features: the libraries without the papers' protocols, and the program without original ones.
fn fewest_features(workspace: &Workspace) -> Result<CheckStatus> {
    succeed(workspace.cargo().args(["check", "-p", "farhaul", "-p", "farhaul-transfer"]))?;
    let refusals = ["test", "-p", "farhaul-protocols", "--no-default-features", "--test", "without_papers"];
    succeed(workspace.cargo().args(refusals))?;
    succeed(workspace.cargo().args(["check", "-p", "farhaul-cli", "--no-default-features"]))
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
