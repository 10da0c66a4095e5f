//! Debian packages, by cargo-deb, and what lintian says about them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::machines::Machine;
use super::{Folders, output, stage, version};
use crate::sections::{CheckStatus, shown, succeed};
use crate::workspace::Workspace;

/// A package.
pub(super) struct Debian {
    pub(super) name: &'static str,
    /// What it is, in a line. cargo-deb takes that of the crate.
    synopsis: &'static str,
    /// The crate whose manifest describes it, and its variant there.
    member: &'static str,
    variant: Option<&'static str>,
    role: Role,
    /// Files that it must have.
    has: &'static [&'static str],
}

/// What a package is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Program,
    /// A shared library and its version, as programs that are linked with it depend on it.
    Library(&'static str, &'static str),
    /// What programs are built with, for the library of this package.
    Development(&'static str),
}

/// All packages.
pub(super) const PACKAGES: &[Debian] = &[
    Debian {
        name: "farhaul",
        synopsis: "bulk data over long fat networks: copies, streams, measurements",
        member: "farhaul-cli",
        variant: None,
        role: Role::Program,
        has: &[
            "/usr/bin/farhaul",
            "/usr/lib/systemd/system/farhaul.service",
            "/usr/lib/systemd/system/farhaul.socket",
            "/usr/lib/sysctl.d/60-farhaul.conf",
            "/etc/farhaul/serve.toml",
            "/usr/share/man/man1/farhaul.1.gz",
            "/usr/share/man/man1/farhaul-copy.1.gz",
            "/usr/share/bash-completion/completions/farhaul",
            "/usr/share/zsh/vendor-completions/_farhaul",
            "/usr/share/fish/vendor_completions.d/farhaul.fish",
            "/usr/share/doc/farhaul/copyright",
            "/usr/share/doc/farhaul/third-party-licenses.txt.gz",
        ],
    },
    Debian {
        name: "libfarhaul0",
        synopsis: "bulk data over long fat networks: library for C",
        member: "farhaul-c",
        variant: None,
        role: Role::Library("libfarhaul", "0"),
        has: &["/libfarhaul.so.0", "/usr/share/doc/libfarhaul0/copyright"],
    },
    Debian {
        name: "libfarhaul-dev",
        synopsis: "bulk data over long fat networks: development files for C",
        member: "farhaul-c",
        variant: Some("dev"),
        role: Role::Development("libfarhaul0"),
        has: &[
            "/usr/include/farhaul.h",
            "/libfarhaul.so",
            "/libfarhaul.a",
            "/pkgconfig/farhaul.pc",
            "/examples/hello.c",
        ],
    },
    Debian {
        name: "farhaul-libudt0",
        synopsis: "libudt.so.0 on Farhaul, in the place of libudt",
        member: "farhaul-libudt",
        variant: None,
        role: Role::Library("libudt", "0"),
        has: &["/libudt.so.0", "/usr/share/doc/farhaul-libudt0/copyright"],
    },
    Debian {
        name: "farhaul-libudt-dev",
        synopsis: "libudt on Farhaul: development files",
        member: "farhaul-libudt",
        variant: Some("dev"),
        role: Role::Development("farhaul-libudt0"),
        has: &["/usr/include/udt/udt.h", "/usr/include/udt/ccc.h", "/libudt.so"],
    },
];

/// Who stands in the packages, and only here.
pub(super) const MAINTAINER: &str = "The Farhaul developers <farhaul@packages.example.org>";

/// The folder of libraries of this architecture.
pub(super) fn multiarch() -> Result<String> {
    Ok(output(Command::new("gcc").arg("-print-multiarch"))?.trim().to_owned())
}

/// Where the manifests say that a file was staged.
const STAGE: &str = "target/release/stage/";

/// Checks that the packages take files that exist in the repository, and those that are staged.
pub(super) fn check(workspace: &Workspace) -> Result<()> {
    let staged: BTreeSet<String> = stage::files().collect();
    let (mut taken, mut assets) = (BTreeSet::new(), 0);
    let members: BTreeSet<&str> = PACKAGES.iter().map(|package| package.member).collect();
    for member in members {
        let folder = folder(workspace, member)?;
        let manifest = workspace.text(folder.join("Cargo.toml"))?;
        for line in manifest.lines().filter(|line| line.starts_with("    [\"")) {
            let source = line.split('"').nth(1).unwrap_or_default();
            assets += 1;
            if let Some(file) = source.strip_prefix(STAGE) {
                ensure!(staged.contains(file), "{member} packages {file}, which is not staged");
                taken.insert(file.to_owned());
            } else if !source.starts_with("target/") {
                let path = workspace.root.join(&folder).join(source.trim_end_matches('*'));
                ensure!(path.exists(), "{member} packages {source}, which is not there");
            }
        }
        for package in PACKAGES.iter().filter(|package| package.member == member) {
            let name = format!("name = \"{}\"", package.name);
            ensure!(manifest.contains(&name), "{member} has no package {}", package.name);
        }
    }
    let left: Vec<&String> = staged.difference(&taken).collect();
    ensure!(left.is_empty(), "no package takes {left:?}, which is staged");
    println!("{assets} files of {} Debian packages are there or staged", PACKAGES.len());
    Ok(())
}

/// The folder of a member.
fn folder(workspace: &Workspace, member: &str) -> Result<PathBuf> {
    let package = workspace.packages.iter().find(|package| package.name == member);
    Ok(package.with_context(|| format!("the workspace has no {member}"))?.folder.clone())
}

/// Makes them for this machine, and checks what they have.
pub(super) fn make(workspace: &Workspace, folders: &Folders) -> Result<CheckStatus> {
    for package in PACKAGES {
        make_one(workspace, folders, package, None)?;
    }
    Ok(CheckStatus::Passed)
}

/// Makes the one with the program for another machine, and returns its file.
pub(super) fn for_machine(workspace: &Workspace, folders: &Folders, machine: &Machine) -> Result<PathBuf> {
    let program = PACKAGES.iter().find(|package| package.role == Role::Program).context("one has the program")?;
    make_one(workspace, folders, program, Some(machine))
}

/// Debian's name of this machine's architecture.
pub(super) fn architecture() -> Result<String> {
    Ok(output(Command::new("dpkg").arg("--print-architecture"))?.trim().to_owned())
}

fn make_one(workspace: &Workspace, folders: &Folders, package: &Debian, machine: Option<&Machine>) -> Result<PathBuf> {
    let version = format!("{}-1", version(workspace)?);
    let mut command = Command::new("cargo-deb");
    command.current_dir(&workspace.root).args(["--no-build", "--locked", "-p", package.member]);
    let architecture = match machine {
        Some(machine) => {
            // The profile has stripped it, and this machine's strip does not know it.
            command.args(["--no-strip", "--target", machine.triple]);
            machine.debian.context("Debian has a name for it")?.to_owned()
        }
        None => {
            command.arg("--strip");
            self::architecture()?
        }
    };
    let file = folders.packages.join(format!("{}_{version}_{architecture}.deb", package.name));
    command.args(["--maintainer", MAINTAINER, "--output"]).arg(&file);
    command.args(package.variant.map(|variant| format!("--variant={variant}")));
    if package.role != Role::Program {
        command.arg("--multiarch=same");
    }
    succeed(&mut command)?;
    complete(package, &version, &file, folders, machine)?;
    let content = output(Command::new("dpkg-deb").arg("--contents").arg(&file))?;
    for path in package.has {
        ensure!(content.lines().any(|line| line.contains(path)), "{} has no {path}:\n{content}", package.name);
    }
    Ok(file)
}

/// Adds what cargo-deb does not know: the line of the package, what a library needs, and what programs with it need.
fn complete(package: &Debian, version: &str, file: &Path, folders: &Folders, machine: Option<&Machine>) -> Result<()> {
    let folder = folders.stage.join("repacked");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    succeed(Command::new("dpkg-deb").arg("--raw-extract").arg(file).arg(&folder))?;
    let control = folder.join("DEBIAN/control");
    let mut lines: Vec<String> = fs::read_to_string(&control)?.lines().map(str::to_owned).collect();
    let needs = match package.role {
        // dpkg-shlibdeps does not know the libraries of another machine.
        Role::Program => match machine {
            Some(machine) => {
                Some(format!("{}, adduser", needs(&folder.join("usr/bin").join(package.name), machine.objdump)?))
            }
            None => None,
        },
        Role::Library(library, number) => {
            fs::write(folder.join("DEBIAN/triggers"), "activate-noawait ldconfig\n")?;
            fs::write(folder.join("DEBIAN/shlibs"), format!("{library} {number} {}\n", package.name))?;
            let object = folder.join("usr/lib").join(multiarch()?).join(format!("{library}.so.{number}"));
            Some(needs(&object, "objdump")?)
        }
        Role::Development(library) => Some(format!("{library} (= {version})")),
    };
    if let Some(needs) = needs {
        lines.retain(|line| !line.starts_with("Depends:"));
        lines.insert(1, format!("Depends: {needs}"));
    }
    for line in lines.iter_mut().filter(|line| line.starts_with("Description:")) {
        *line = format!("Description: {}", package.synopsis);
    }
    fs::write(&control, lines.join("\n") + "\n")?;
    succeed(Command::new("dpkg-deb").args(["--root-owner-group", "--build"]).arg(&folder).arg(file))?;
    fs::remove_dir_all(&folder)?;
    Ok(())
}

/// The packages that a program or a shared library needs.
fn needs(object: &Path, objdump: &str) -> Result<String> {
    let needed = output(Command::new(objdump).arg("-p").arg(object))?;
    let glibc = needed.split_whitespace().filter_map(|word| word.strip_prefix("GLIBC_")).filter_map(number_of).max();
    let (major, minor) = glibc.context("a library needs a glibc")?;
    let mut needs = format!("libc6 (>= {major}.{minor})");
    for (object, package) in [("libgcc_s.so.1", "libgcc-s1 (>= 4.2)"), ("libstdc++.so.6", "libstdc++6 (>= 11)")] {
        if needed.contains(object) {
            needs = format!("{needs}, {package}");
        }
    }
    Ok(needs)
}

/// The parts of a version such as 2.34.
fn number_of(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}

/// Runs lintian over them. Its errors are failures.
pub(super) fn judge(folders: &Folders) -> Result<CheckStatus> {
    let files = files(folders)?;
    let mut command = Command::new("lintian");
    command.args(["--fail-on=error", "--allow-root", "--tag-display-limit=0"]).args(&files);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return Ok(CheckStatus::Skipped(format!("lintian: {error}"))),
    };
    print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        bail!("`{}` ended with {}", shown(&command), output.status);
    }
    Ok(CheckStatus::Passed)
}

/// The packages that are there.
pub(super) fn files(folders: &Folders) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for file in fs::read_dir(&folders.packages)? {
        let path = file?.path();
        if path.extension().is_some_and(|ending| ending == "deb") {
            files.push(path);
        }
    }
    ensure!(!files.is_empty(), "there are no packages");
    files.sort();
    Ok(files)
}
