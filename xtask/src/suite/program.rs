//! Test programs: cargo builds them, and each lists its tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::suite::schedule::Lane;
use crate::workspace::{Workspace, short};

/// Packages whose tests make networks.
const NETWORKS: &[&str] = &["emu", "lab"];
/// Packages whose tests use real sockets.
const SOCKETS: &[&str] = &["cli", "farhaul", "udp"];
/// The target whose tests run beside libudt.
const INTEROP: &str = "interop";

/// A program with tests.
#[derive(Debug)]
pub(super) struct Program {
    /// The package without the project's prefix. Behind it the target, if it is below `tests`.
    pub(super) label: String,
    pub(super) executable: PathBuf,
    /// The folder of its package, in which cargo runs tests as well.
    pub(super) folder: PathBuf,
    pub(super) lane: Lane,
    pub(super) makes_networks: bool,
}

/// The tests of a program.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) names: Vec<String>,
    /// Ignored tests, each with its reason.
    pub(super) left_out: Vec<(String, String)>,
}

/// Builds all test programs. Examples and benches are not linked: the lints compile them.
pub(super) fn build(workspace: &Workspace, features: &[String]) -> Result<Vec<Program>> {
    let mut command = workspace.cargo();
    command
        .args(["test", "--no-run", "--tests", "--workspace", "--message-format=json-render-diagnostics"])
        .args(features);
    println!("$ {}", crate::sections::shown(&command));
    let output = command.stderr(Stdio::inherit()).output().context("cargo")?;
    ensure!(output.status.success(), "cargo test --no-run ended with {}", output.status);
    let mut programs = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        programs.extend(program(&serde_json::from_str(line)?));
    }
    programs.sort_by(|a: &Program, b| a.label.cmp(&b.label));
    Ok(programs)
}

/// The test program that a message of cargo reports.
fn program(message: &Value) -> Option<Program> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let executable = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    let target = message["target"]["name"].as_str()?;
    let package = message["package_id"].as_str().and_then(package_name)?;
    let package = short(&package);
    let is_integration = message["target"]["kind"].as_array()?.iter().any(|kind| kind == "test");
    let lane = match () {
        () if target == INTEROP => Lane::Interop,
        () if SOCKETS.contains(&package.as_str()) => Lane::Sockets,
        () => Lane::Free,
    };
    let makes_networks = NETWORKS.contains(&package.as_str());
    let label = if is_integration { format!("{package}/{target}") } else { package };
    Some(Program { label, executable, folder, lane, makes_networks })
}

/// The name in an id such as `path+file:///folder#name@0.1.0` or `path+file:///folder/name#0.1.0`.
fn package_name(id: &str) -> Option<String> {
    let (url, rest) = id.rsplit_once('#')?;
    let name = match rest.split_once('@') {
        Some((name, _)) => name,
        None => url.rsplit_once('/')?.1,
    };
    Some(name.to_owned())
}

impl Program {
    /// Asks the program.
    pub(super) fn tests(&self) -> Result<Listing> {
        let ignored = names(&self.output(["--list", "--format=terse", "--ignored"])?);
        let mut names = names(&self.output(["--list", "--format=terse"])?);
        names.retain(|name| !ignored.contains(name));
        if ignored.is_empty() {
            return Ok(Listing { names, left_out: Vec::new() });
        }
        // Only a run tells the reasons, and nothing runs.
        let run = self.output(["--exact"].into_iter().chain(ignored.iter().map(String::as_str)))?;
        Ok(Listing { names, left_out: reasons(&run) })
    }

    fn output<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Result<String> {
        let output = self.command().args(arguments).stderr(Stdio::inherit()).output()?;
        ensure!(output.status.success(), "the list of tests ended with {}", output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.folder).stdin(Stdio::null());
        command
    }
}

/// The names in a terse list.
fn names(list: &str) -> Vec<String> {
    list.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// Ignored tests and their reasons, from the output of a run.
fn reasons(run: &str) -> Vec<(String, String)> {
    run.lines()
        .filter_map(|line| line.strip_prefix("test ")?.split_once(" ... ignored"))
        .map(|(name, reason)| (name.to_owned(), reason.trim_start_matches(", ").to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_program_is_named_by_its_package_and_its_target() {
        let message = |kind: &str, test: bool| {
            serde_json::json!({
                "reason": "compiler-artifact",
                "package_id": "path+file:///w/crates/proto#farhaul-proto@0.1.0",
                "manifest_path": "/w/crates/proto/Cargo.toml",
                "target": { "kind": [kind], "name": "proto" },
                "profile": { "test": test },
                "executable": "/w/target/debug/deps/proto-1",
            })
        };
        let label = |kind, test| program(&message(kind, test)).map(|program| program.label);
        assert_eq!(label("lib", true).as_deref(), Some("proto"));
        assert_eq!(label("test", true).as_deref(), Some("proto/proto"));
        assert_eq!(label("example", false), None, "an example has no tests");
    }

    #[test]
    fn packages_are_named_in_both_forms_of_ids() {
        assert_eq!(package_name("path+file:///w/xtask#0.1.0").as_deref(), Some("xtask"));
        assert_eq!(package_name("path+file:///w/crates/cc#farhaul-cc@0.1.0").as_deref(), Some("farhaul-cc"));
    }

    #[test]
    fn ignored_tests_keep_their_reasons() {
        let run = "\nrunning 2 tests\ntest a::b ... ignored, long: a sweep\ntest c ... ignored\n\ntest result: ok.\n";
        let expected = [("a::b".to_owned(), "long: a sweep".to_owned()), ("c".to_owned(), String::new())];
        assert_eq!(reasons(run), expected);
        assert_eq!(names("a::b: test\nc: benchmark\n\n1 test, 1 benchmark\n"), ["a::b"]);
    }
}
