//! The Debian packages installed, tried and removed, in a root of their own: an overlay over this system, in namespaces of its own.
//! Nothing reaches the system itself.

use std::fs;

use anyhow::Result;

use super::{Folders, debian, version};
use crate::packages::{is_present, is_root};
use crate::sections::{CheckStatus, succeed};
use crate::workspace::Workspace;

/// Builds the root and tries the packages there. Its arguments: a folder, the version, the packages.
const SCRIPT: &str = "xtask/src/packaging/root.sh";

/// A file of Debian's libudt-dev.
const HEADER: &str = "/usr/include/udt/udt.h";

/// Installs, runs and removes what was made.
pub(super) fn try_packages(workspace: &Workspace, folders: &Folders) -> Result<CheckStatus> {
    let ending = format!("_{}.deb", debian::architecture()?);
    let mut files = debian::files(folders)?;
    files.retain(|file| file.to_string_lossy().ends_with(&ending));
    if !is_root() {
        return Ok(CheckStatus::Skipped(
            "only root can mount an overlay; look at it with dpkg-deb --contents".to_owned(),
        ));
    }
    let folder = folders.packages.join("root");
    fs::create_dir_all(&folder)?;
    let mut command = workspace.command("unshare");
    command.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-eu", SCRIPT]).arg(&folder);
    let tried = succeed(command.arg(version(workspace)?).args(&files));
    fs::remove_dir(&folder)?;
    tried?;
    Ok(match is_present(HEADER) {
        true => CheckStatus::Passed,
        false => CheckStatus::Skipped("no libudt-dev: no program that was built with it ran on the drop-in".to_owned()),
    })
}
