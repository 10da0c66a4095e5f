//! What a program for musl is linked with, where the compiler of a distribution builds the standard library: rustup's library has
//! start files and an unwinder, and the sources have neither.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::packaging::output;
use crate::sections::succeed;
use crate::workspace::Workspace;

/// Debian's name for its libraries and start files.
const LIBRARIES: &str = "/usr/lib/x86_64-linux-musl";

/// Where Debian has the versions of LLVM.
const LLVM: &str = "/usr/lib";

/// What LLVM's unwinder needs of glibc and musl lacks: a checked `fprintf`, of its last words before it aborts.
const CHECKED: &str = "xtask/src/packaging/machines/musl.c";

/// The compiler's flags for a position-independent program without shared libraries. `folder` takes the unwinder.
pub(super) fn flags(workspace: &Workspace, folder: &Path) -> Result<String> {
    let unwinder = unwinder(workspace, folder)?;
    // musl-gcc has start files for programs at a fixed address alone.
    let (begin, end) = (of_gcc(workspace, "crtbeginS.o")?, of_gcc(workspace, "crtendS.o")?);
    let first = ["-nostartfiles", &format!("{LIBRARIES}/rcrt1.o"), &format!("{LIBRARIES}/crti.o"), &begin]
        .map(|argument| format!("-Zpre-link-args={argument}"));
    let last = [&*end, &format!("{LIBRARIES}/crtn.o"), "-Wl,-static,-pie,--no-dynamic-linker,-z,text"]
        .map(|argument| format!("-Clink-arg={argument}"));
    let search = format!("-Lnative={}", unwinder.display());
    Ok(["-Clink-self-contained=no", &search]
        .map(str::to_owned)
        .into_iter()
        .chain(first)
        .chain(last)
        .collect::<Vec<_>>()
        .join(" "))
}

/// The path of a file of this machine's gcc.
fn of_gcc(workspace: &Workspace, file: &str) -> Result<String> {
    let path = output(workspace.command("gcc").arg(format!("-print-file-name={file}")))?;
    Ok(path.trim().to_owned())
}

/// A folder with LLVM's unwinder. That of gcc needs a glibc.
fn unwinder(workspace: &Workspace, folder: &Path) -> Result<PathBuf> {
    let folder = folder.join("unwinder");
    fs::create_dir_all(&folder)?;
    let (library, checked) = (folder.join("libunwind.a"), folder.join("checked.o"));
    fs::copy(found().context("no unwinder: apt install libunwind-16-dev")?, &library)?;
    succeed(workspace.command("musl-gcc").args(["-O2", "-fPIC", "-c", CHECKED, "-o"]).arg(&checked))?;
    succeed(workspace.command("ar").arg("r").arg(&library).arg(&checked))?;
    Ok(folder)
}

/// The newest one that is installed.
fn found() -> Option<PathBuf> {
    let entries = fs::read_dir(LLVM).ok()?.flatten().map(|entry| entry.path());
    let libraries =
        entries.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("llvm-")));
    libraries.map(|path| path.join("lib/libunwind.a")).filter(|path| path.exists()).max()
}
