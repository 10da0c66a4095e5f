//! Tests against libudt, the reference library. Builds our peer program, checks libudt against itself, and runs the
//! tests.

use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};

use crate::sections::{CheckStatus, Sections, succeed};
use crate::workspace::Workspace;

/// The exit status of a script that cannot run here.
const SKIPPED: i32 = 77;
/// Test targets with this prefix need the peer.
const PREFIX: &str = "interop";
/// The variable that holds the peer's path for tests.
const PEER_VARIABLE: &str = "FARHAUL_LIBUDT_PEER";

/// The verb `interop`: the same as the section of `test`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    ensure!(arguments.is_empty(), "`interop` takes no arguments");
    let mut sections = Sections::default();
    sections.section("interoperability", || check(workspace));
    sections.finish()
}

/// Runs every test target named `interop…`, ignored tests included.
pub(crate) fn check(workspace: &Workspace) -> Result<CheckStatus> {
    let peer = match peer(workspace)? {
        Ok(peer) => peer,
        Err(why) => return Ok(CheckStatus::Skipped(why)),
    };
    // First libudt against itself. If that fails, the fault is not ours.
    let mut selftest = workspace.command("interop/selftest.sh");
    selftest.arg(folder(workspace));
    succeed(&mut selftest).context("libudt against itself")?;
    let mut targets = 0;
    for package in &workspace.packages {
        for test in package.tests.iter().filter(|test| test.name.starts_with(PREFIX)) {
            let mut command = workspace.cargo();
            command.args(["test", "-p", &package.name, "--test", &test.name]).env(PEER_VARIABLE, &peer);
            command.args(test.features.iter().map(|feature| format!("--features={feature}")));
            succeed(command.args(["--", "--include-ignored"]))?;
            targets += 1;
        }
    }
    if targets == 0 {
        return Ok(CheckStatus::Skipped(format!("no test target is named {PREFIX}…; libudt agrees with itself")));
    }
    Ok(CheckStatus::Passed)
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
