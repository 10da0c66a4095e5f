//! Copies by another program than this one, which calls the library: its example, over a real sshd.

use std::path::Path;
use std::process::Command;

use crate::over_ssh::{Far, same};

/// Builds the example, and returns its path. On a clean checkout the test command has built what the example needs, with these
/// features and without increments.
fn example() -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--workspace", "--features=farhaul/tokio", "--example", "copy_tree"])
        .env("CARGO_INCREMENTAL", "0")
        .status()
        .unwrap();
    assert!(built.success());
    let program = Path::new(env!("CARGO_BIN_EXE_farhaul"));
    program.parent().unwrap().join("examples/copy_tree").to_str().unwrap().to_owned()
}

#[test]
fn a_program_of_thirty_lines_copies_a_tree_over_ssh_and_back() {
    let Some(far) = Far::new("") else { return };
    let (scratch, example) = (&far.scratch, example());
    scratch.dir("tree/deep");
    let (file, there) = (scratch.file("tree/deep/file", 300_000), scratch.dir("there"));
    let (tree, back) = (scratch.at("tree"), scratch.dir("back"));
    let calls = format!("FARHAUL_SSH=\"$S\" FARHAUL_REMOTE_PATH=$F '{example}'");
    let run = far.near(&format!("{calls} '{tree}' far:'{there}/' && {calls} far:'{there}/tree' '{back}'"));
    run.succeeds();
    assert!(same(&file, &format!("{there}/tree/deep/file")) && same(&file, &format!("{back}/tree/deep/file")));
    assert_eq!(run.stderr.matches("tree/deep/file is there, BLAKE3 ").count(), 2, "{}", run.stderr);
    assert!(run.stderr.contains("1 files, 300000 bytes in "), "{}", run.stderr);
}
