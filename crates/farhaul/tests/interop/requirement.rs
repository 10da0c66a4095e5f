//! Requirements of the machine, found or built once, and the line with the reason for skipping a test.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;

/// Exit code of `build.sh` if g++ or libudt is missing.
const MISSING: i32 = 77;

/// Names a program that is already built.
const PEER_VARIABLE: &str = "FARHAUL_LIBUDT_PEER";

/// The reference peer's program. `None` after a line with the reason for skipping the test.
pub(crate) fn reference_peer() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match PROGRAM.get_or_init(build) {
        Ok(program) => Some(program),
        Err(reason) => skip(reason),
    }
}

/// Whether packets can be captured and dissected. Prints the reason if not.
pub(crate) fn capture_tools() -> Option<()> {
    if !rustix::process::geteuid().is_root() {
        return skip("only root may capture packets");
    }
    ["tcpdump", "tshark"].iter().try_for_each(|tool| {
        let found = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if found.is_ok_and(|status| status.success()) { Some(()) } else { skip(&format!("{tool} is not installed")) }
    })
}

/// Reports on the process's standard error that the test proves nothing. The test harness does not capture it.
pub(crate) fn skip<R>(reason: &str) -> Option<R> {
    let test = thread::current();
    // A closed standard error cannot be reported.
    let _ = writeln!(io::stderr(), "SKIPPED {}: {reason}", test.name().unwrap_or("test"));
    None
}

fn build() -> Result<PathBuf, String> {
    if let Some(program) = std::env::var_os(PEER_VARIABLE) {
        return Ok(program.into());
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/build.sh");
    if !script.exists() {
        return Err("there is no interop/build.sh beside the crate".to_owned());
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interop");
    let built = Command::new(script).arg(folder).output().unwrap();
    let said = String::from_utf8(built.stdout).unwrap();
    let last = said.lines().last().unwrap_or_default();
    match built.status.code() {
        Some(0) => Ok(PathBuf::from(last)),
        Some(MISSING) => Err(last.trim_start_matches("skip: ").to_owned()),
        _ => panic!("the reference peer does not build: {}", String::from_utf8_lossy(&built.stderr)),
    }
}
