//! Programs for other machines than this one: with ARM processors, and with a C library that is older than this one's.

mod musl;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Folders, debian, output, publications};
use crate::packages::is_present;
use crate::sections::{CheckStatus, shown, succeed};
use crate::workspace::Workspace;

/// A machine for which the program is built here.
pub(super) struct Machine {
    pub(super) triple: &'static str,
    /// Processor, system and C library, in names of files.
    pub(super) name: &'static str,
    /// What the build needs, and the Debian package that has it.
    tools: &'static [(&'static str, &'static str)],
    compiler: &'static str,
    /// Reads object files of the machine.
    pub(super) objdump: &'static str,
    /// Before a program of the machine, to run it here.
    emulator: &'static [&'static str],
    /// Debian's name of the architecture, if it gets a package.
    pub(super) debian: Option<&'static str>,
}

/// All of them. The first one's programs run on every Linux of this processor, whatever its C library.
pub(super) const MACHINES: [Machine; 2] = [
    Machine {
        triple: "x86_64-unknown-linux-musl",
        name: "x86_64-linux-musl",
        tools: &[("musl-gcc", "musl-tools"), ("gcc", "gcc"), ("ar", "binutils")],
        compiler: "musl-gcc",
        objdump: "objdump",
        emulator: &[],
        debian: None,
    },
    Machine {
        triple: "aarch64-unknown-linux-gnu",
        name: "aarch64-linux-gnu",
        tools: &[("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"), ("qemu-aarch64", "qemu-user")],
        compiler: "aarch64-linux-gnu-gcc",
        objdump: "aarch64-linux-gnu-objdump",
        // With its option -L, the program would find the folder of libraries where it looks for `/`.
        emulator: &[
            "qemu-aarch64",
            "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1",
            "--library-path",
            "/usr/aarch64-linux-gnu/lib",
        ],
        debian: Some("arm64"),
    },
];

impl Machine {
    /// Whether its programs bring their C library.
    fn is_static(&self) -> bool {
        self.triple.ends_with("musl")
    }
}

/// Debian's compiler, and the packages that have it with the sources of the standard library.
const DEBIANS: (&str, &str, &str) = ("/usr/bin/rustc", "/usr/bin/cargo", "rustc-web cargo-web rust-web-src");

/// Copies between two programs, encrypted, either one as the server. Its arguments: a folder, and a command for each.
const SCRIPT: &str = "xtask/src/packaging/copies.sh";

/// Builds the program for a machine, makes what is published for it, and copies between it and the one of this machine.
pub(super) fn make(workspace: &Workspace, folders: &Folders, machine: &Machine) -> Result<CheckStatus> {
    let missing: Vec<&str> =
        machine.tools.iter().filter(|(tool, _)| !is_present(tool)).map(|(_, from)| *from).collect();
    let Some(compiler) = Compiler::find(workspace, machine.triple)? else {
        return Ok(CheckStatus::Skipped(format!(
            "no standard library for {0}: rustup target add {0}, or apt install {1}",
            machine.triple, DEBIANS.2
        )));
    };
    if !missing.is_empty() {
        return Ok(CheckStatus::Skipped(format!("apt install {}", missing.join(" "))));
    }
    let release = workspace.target.join(machine.triple).join("release");
    succeed(&mut compiler.build(workspace, machine)?)?;
    let headers = output(Command::new("readelf").arg("--program-headers").arg(release.join("farhaul")))?;
    ensure!(headers.contains("INTERP") != machine.is_static(), "the program for {} has another linkage", machine.name);
    let unpacked = publications::tarball(workspace, folders, machine.name, &release.join("farhaul"))?;
    let mut parts: Vec<OsString> = machine.emulator.iter().map(OsString::from).collect();
    parts.push(unpacked.join("bin/farhaul").into_os_string());
    let theirs = parts.join(" ".as_ref());
    copies(workspace, folders, &theirs)?;
    if machine.debian.is_some() {
        // cargo-deb looks for the stage beside the program.
        let stage = release.join("stage");
        if !stage.is_symlink() {
            symlink(&folders.stage, &stage)?;
        }
        let package = debian::for_machine(workspace, folders, machine)?;
        let installed = folders.stage.join("unpacked").join(machine.triple);
        succeed(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&installed))?;
        // The copies were those of this program.
        succeed(Command::new("cmp").arg(installed.join("usr/bin/farhaul")).arg(unpacked.join("bin/farhaul")))?;
    }
    Ok(CheckStatus::Passed)
}

/// What builds for a machine.
enum Compiler {
    /// The one of this build has the machine's standard library.
    Own,
    /// A compiler and its cargo that build the standard library from its sources as well.
    FromSources { rustc: PathBuf, cargo: PathBuf },
}

impl Compiler {
    fn find(workspace: &Workspace, triple: &str) -> Result<Option<Self>> {
        let print = |rustc: &str, words: &[&str]| output(workspace.command(rustc).arg("--print").args(words));
        if Path::new(print("rustc", &["target-libdir", "--target", triple])?.trim()).exists() {
            return Ok(Some(Self::Own));
        }
        for (rustc, cargo) in [("rustc", env!("CARGO")), (DEBIANS.0, DEBIANS.1)] {
            let has_sources = |root: String| Path::new(root.trim()).join("lib/rustlib/src/rust/library").exists();
            if print(rustc, &["sysroot"]).is_ok_and(has_sources) && is_present(cargo) {
                return Ok(Some(Self::FromSources { rustc: rustc.into(), cargo: cargo.into() }));
            }
        }
        Ok(None)
    }

    /// The command that builds the program.
    fn build(&self, workspace: &Workspace, machine: &Machine) -> Result<Command> {
        let triple = machine.triple.replace('-', "_");
        let variable = |name: &str| format!("CARGO_TARGET_{}_{name}", triple.to_uppercase());
        let mut command = match self {
            Self::Own => workspace.cargo(),
            Self::FromSources { cargo, rustc } => {
                let mut command = workspace.command(cargo.to_str().context("a path in UTF-8")?);
                // The sources of the standard library need what only unstable compilers offer.
                command.env("RUSTC", rustc).env("RUSTC_BOOTSTRAP", "1");
                command
            }
        };
        command.env(format!("CC_{triple}"), machine.compiler);
        command.args(["build", "--release", "--locked", "-p", "farhaul-cli", "--target", machine.triple]);
        if !machine.is_static() {
            command.env(variable("LINKER"), machine.compiler);
        }
        if let Self::FromSources { .. } = self {
            command.arg("-Zbuild-std=std,panic_abort");
            if machine.is_static() {
                command.env(variable("LINKER"), machine.compiler);
                command.env(variable("RUSTFLAGS"), musl::flags(workspace, &workspace.target.join(machine.triple))?);
            }
        }
        Ok(command)
    }
}

/// Copies a tree between a program, given by its command, and the one of this machine.
fn copies(workspace: &Workspace, folders: &Folders, theirs: &OsString) -> Result<()> {
    let folder = folders.packages.join("copies");
    fs::create_dir_all(&folder)?;
    let mut command = workspace.command("unshare");
    command.args(["--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "sh", "-eu", SCRIPT]);
    command.arg(&folder).arg(folders.release.join("farhaul")).arg(theirs);
    let copied = succeed(&mut command).with_context(|| shown(&command));
    fs::remove_dir_all(&folder)?;
    copied?;
    Ok(())
}
