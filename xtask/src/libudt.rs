//! Builds the drop-in `libudt.so.0`: the static library of the crate `libudt`, linked with its C++ part.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::sections::succeed;
use crate::workspace::Workspace;

/// The crate of the Rust part.
pub(crate) const PACKAGE: &str = "farhaul-libudt";
/// The exit status of a script that cannot run here.
const SKIPPED: i32 = 77;

/// The verb `libudt`: prints the path of the library. `--release` optimises it.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let profile = match arguments {
        [] => "debug",
        [word] if word == "--release" => "release",
        _ => bail!("`libudt` takes `--release` or nothing"),
    };
    println!("{}", build(workspace, profile)?.display());
    Ok(())
}

/// Builds the library in a profile, and returns its path.
///
/// # Errors
/// It does not build, or g++ is missing.
pub(crate) fn build(workspace: &Workspace, profile: &str) -> Result<PathBuf> {
    let mut cargo = workspace.cargo();
    cargo.args(["build", "-p", PACKAGE]);
    if profile == "release" {
        cargo.arg("--release");
    }
    succeed(&mut cargo)?;
    link(workspace, profile)
}

/// Links the library after its Rust part was built in a profile, and returns its path.
///
/// # Errors
/// It does not link, or g++ is missing.
pub(crate) fn link(workspace: &Workspace, profile: &str) -> Result<PathBuf> {
    let built = workspace.target.join(profile);
    let folder = built.join("libudt");
    let mut link = workspace.command("crates/libudt/link.sh");
    let output = link.arg(built.join("libfarhaul_libudt.a")).arg(&folder).output().context("crates/libudt/link.sh")?;
    let said = String::from_utf8(output.stdout)?;
    match output.status.code() {
        Some(0) => Ok(folder.join("libudt.so.0")),
        Some(SKIPPED) => bail!("{}", said.trim().trim_start_matches("skip: ")),
        _ => bail!("crates/libudt/link.sh ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr)),
    }
}
