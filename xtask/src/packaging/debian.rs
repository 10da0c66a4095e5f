//! Debian packages, by cargo-deb, and what lintian says about them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::{Folders, output, version};
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
    /// Whether several architectures can have it side by side.
    is_library: bool,
    /// The shared library that it has, and its version, as programs that are linked with it depend on it.
    provides: Option<(&'static str, &'static str)>,
    /// A file without which it cannot be made, below the stage.
    needs: Option<&'static str>,
    /// Files that it must have.
    pub(super) has: &'static [&'static str],
}

/// All packages.
pub(super) const PACKAGES: &[Debian] = &[
    Debian {
        name: "farhaul",
        synopsis: "bulk data over long fat networks: copies, streams, measurements",
        member: "farhaul-cli",
        variant: None,
        is_library: false,
        provides: None,
        needs: None,
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
        is_library: true,
        provides: Some(("libfarhaul", "0")),
        needs: None,
        has: &["/libfarhaul.so.0", "/usr/share/doc/libfarhaul0/copyright"],
    },
    Debian {
        name: "libfarhaul-dev",
        synopsis: "bulk data over long fat networks: development files for C",
        member: "farhaul-c",
        variant: Some("dev"),
        is_library: true,
        provides: None,
        needs: None,
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
        member: "farhaul-c",
        variant: Some("libudt0"),
        is_library: true,
        provides: Some(("libudt", "0")),
        needs: Some("libudt/libudt.so.0"),
        has: &["/libudt.so.0"],
    },
    Debian {
        name: "farhaul-libudt-dev",
        synopsis: "libudt on Farhaul: development files",
        member: "farhaul-c",
        variant: Some("libudt-dev"),
        is_library: true,
        provides: None,
        needs: Some("libudt/libudt.so.0"),
        has: &["/usr/include/udt/udt.h", "/libudt.so"],
    },
];

/// Who stands in the packages.
pub(super) const MAINTAINER: &str = "The Farhaul developers <farhaul@packages.example.org>";

/// The folder of libraries of this architecture.
pub(super) fn multiarch() -> Result<String> {
    Ok(output(Command::new("gcc").arg("-print-multiarch"))?.trim().to_owned())
}

/// Checks that each file of the repository that a package takes exists.
pub(super) fn check(workspace: &Workspace) -> Result<()> {
    let mut assets = 0;
    for folder in ["crates/cli", "crates/c"] {
        let manifest = workspace.text(format!("{folder}/Cargo.toml"))?;
        ensure!(manifest.contains(MAINTAINER), "{folder}/Cargo.toml names another maintainer");
        for line in manifest.lines().filter(|line| line.starts_with("    [\"")) {
            let source = line.split('"').nth(1).unwrap_or_default();
            if source.starts_with("target/") {
                continue;
            }
            let path = workspace.root.join(folder).join(source.trim_end_matches('*'));
            ensure!(path.exists(), "{folder}/Cargo.toml: {source} is not there");
            assets += 1;
        }
    }
    ensure!(assets > 10, "{assets} files for packages were found");
    for package in PACKAGES {
        let member = package.member.trim_start_matches("farhaul-");
        let manifest = workspace.text(format!("crates/{member}/Cargo.toml"))?;
        ensure!(
            manifest.contains(&format!("name = \"{}\"", package.name)),
            "crates/{member} has no package {}",
            package.name
        );
    }
    println!("{assets} files of {} Debian packages are there", PACKAGES.len());
    Ok(())
}

/// The packages that this tree can make, and their files.
fn made(workspace: &Workspace, folders: &Folders) -> Result<Vec<(&'static Debian, PathBuf)>> {
    let (version, architecture) = (version(workspace)?, output(Command::new("dpkg").arg("--print-architecture"))?);
    let file = |package: &Debian| format!("{}_{version}-1_{}.deb", package.name, architecture.trim());
    let can_be = |package: &&Debian| package.needs.is_none_or(|file| folders.stage.join(file).exists());
    Ok(PACKAGES.iter().filter(can_be).map(|package| (package, folders.packages.join(file(package)))).collect())
}

/// Makes them, and checks what they have.
pub(super) fn make(workspace: &Workspace, folders: &Folders) -> Result<CheckStatus> {
    for (package, file) in made(workspace, folders)? {
        let mut command = Command::new("cargo-deb");
        command
            .current_dir(&workspace.root)
            .args(["--no-build", "--locked", "--strip", "-p", package.member, "--output"])
            .arg(&file);
        command.args(package.variant.map(|variant| format!("--variant={variant}")));
        if package.is_library {
            command.arg("--multiarch=same");
        }
        succeed(&mut command)?;
        complete(package, &file, folders)?;
        let content = output(Command::new("dpkg-deb").arg("--contents").arg(&file))?;
        for path in package.has {
            ensure!(content.lines().any(|line| line.contains(path)), "{} has no {path}:\n{content}", package.name);
        }
    }
    let left: Vec<&str> = PACKAGES
        .iter()
        .filter(|package| package.needs.is_some_and(|file| !folders.stage.join(file).exists()))
        .map(|package| package.name)
        .collect();
    Ok(match left.is_empty() {
        true => CheckStatus::Passed,
        false => CheckStatus::Skipped(format!("{}: this tree has no crate farhaul-libudt", left.join(", "))),
    })
}

/// Adds what cargo-deb does not know: the line of the package, what a library needs, and what programs with it need.
fn complete(package: &Debian, file: &Path, folders: &Folders) -> Result<()> {
    let folder = folders.stage.join("repacked");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    succeed(Command::new("dpkg-deb").arg("--raw-extract").arg(file).arg(&folder))?;
    let control = folder.join("DEBIAN/control");
    let mut lines: Vec<String> = fs::read_to_string(&control)?.lines().map(str::to_owned).collect();
    if let Some((library, version)) = package.provides {
        let object = folder.join("usr/lib").join(multiarch()?).join(format!("{library}.so.{version}"));
        lines.retain(|line| !line.starts_with("Depends:"));
        lines.insert(1, format!("Depends: {}", needs(&object)?));
        fs::write(folder.join("DEBIAN/triggers"), "activate-noawait ldconfig\n")?;
        fs::write(folder.join("DEBIAN/shlibs"), format!("{library} {version} {}\n", package.name))?;
    }
    for line in lines.iter_mut().filter(|line| line.starts_with("Description:")) {
        *line = format!("Description: {}", package.synopsis);
    }
    fs::write(&control, lines.join("\n") + "\n")?;
    succeed(Command::new("dpkg-deb").args(["--root-owner-group", "--build"]).arg(&folder).arg(file))?;
    fs::remove_dir_all(&folder)?;
    Ok(())
}

/// The packages that a shared library needs.
fn needs(object: &Path) -> Result<String> {
    let needed = output(Command::new("objdump").arg("-p").arg(object))?;
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
