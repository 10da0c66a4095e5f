//! Tests against libudt, the reference library. Builds our peer program, checks libudt against itself, and runs the
//! tests.

use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};

use crate::bench::ns2;
use crate::sections::{CheckStatus, Sections, succeed};
use crate::workspace::Workspace;

/// The exit status of a script that cannot run here.
const SKIPPED: i32 = 77;
/// Test targets with this prefix need the peer.
const PREFIX: &str = "interop";
/// The variable that holds the peer's path for tests.
pub(crate) const PEER_VARIABLE: &str = "FARHAUL_LIBUDT_PEER";

/// The verb `interop`: all tests against libudt, those that take long included. With `--ns2`, the laws beside those of the Linux kernel
/// in ns-2, a table for people.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    if let [first, rest @ ..] = arguments
        && first == "--ns2"
    {
        return ns2::compare_laws(workspace, rest);
    }
    ensure!(arguments.is_empty(), "`interop` takes no arguments but --ns2 [LAW …] [--quick]");
    let mut sections = Sections::default();
    sections.section("interoperability", || check(workspace));
    sections.finish()
}

/// Runs every test target named `interop…`.
fn check(workspace: &Workspace) -> Result<CheckStatus> {
    let checked = checked_peer(workspace)?;
    print!("{}", checked.said);
    let peer = match checked.peer {
        Ok(peer) => peer,
        Err(why) => return Ok(CheckStatus::Skipped(why)),
    };
    for package in &workspace.packages {
        for test in package.tests.iter().filter(|test| test.name.starts_with(PREFIX)) {
            let mut command = workspace.cargo();
            command.args(["test", "-p", &package.name, "--test", &test.name]).env(PEER_VARIABLE, &peer);
            command.args(test.features.iter().map(|feature| format!("--features={feature}")));
            succeed(command.args(["--", "--include-ignored", "--test-threads=1"]))?;
        }
    }
    Ok(CheckStatus::Passed)
}

/// A peer that has passed its own test.
#[derive(Debug)]
pub(crate) struct CheckedPeer {
    /// Its path, or the reason why it cannot be built here.
    pub(crate) peer: Result<String, String>,
    /// The output of the test.
    pub(crate) said: String,
}

/// Builds the peer and checks libudt against itself: if that fails, the fault is not ours. Prints nothing.
pub(crate) fn checked_peer(workspace: &Workspace) -> Result<CheckedPeer> {
    let peer = peer(workspace)?;
    let mut said = String::new();
    if peer.is_ok() {
        let selftest = workspace.command("interop/selftest.sh").arg(folder(workspace)).output();
        let output = selftest.context("interop/selftest.sh")?;
        said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "interop/selftest.sh ended with {}\n{said}{errors}", output.status);
    }
    Ok(CheckedPeer { peer, said })
}

/// Builds the peer and returns its path, or the reason why it cannot be built here.
pub(crate) fn peer(workspace: &Workspace) -> Result<Result<String, String>> {
    let output = workspace
        .command("interop/build.sh")
        .arg(folder(workspace))
        .stderr(Stdio::inherit())
        .output()
        .context("interop/build.sh")?;
    let line = String::from_utf8(output.stdout)?.trim().to_owned();
    match output.status.code() {
        Some(0) => Ok(Ok(line)),
        Some(SKIPPED) => Ok(Err(line.trim_start_matches("skip: ").to_owned())),
        _ => bail!("interop/build.sh ended with {}: {line}", output.status),
    }
}

fn folder(workspace: &Workspace) -> std::path::PathBuf {
    workspace.target.join("interop")
}
