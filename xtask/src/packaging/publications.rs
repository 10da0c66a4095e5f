//! What is published beside packages: a tarball with the program, SBOMs, crates, checksums.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Folders, output, version};
use crate::libudt;
use crate::sections::{CheckStatus, succeed};
use crate::workspace::{Package, Workspace};

/// Files of the repository in the tarball.
const FILES: [&str; 5] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "dist"];

/// Makes a tarball with the program for a machine, named by processor, system and C library. Returns the unpacked one.
pub(super) fn tarball(workspace: &Workspace, folders: &Folders, machine: &str, program: &Path) -> Result<PathBuf> {
    let name = format!("farhaul-{}-{machine}", version(workspace)?);
    let root = folders.stage.join("tarballs").join(&name);
    fs::create_dir_all(root.join("bin"))?;
    fs::copy(program, root.join("bin/farhaul"))?;
    for (from, to) in [("man", "share/man/man1"), ("completions", "share/completions")] {
        copy_tree(&folders.stage.join(from), &root.join(to))?;
    }
    fs::copy(folders.stage.join("third-party-licenses.txt.gz"), root.join("third-party-licenses.txt.gz"))?;
    for file in FILES {
        copy_tree(&workspace.root.join(file), &root.join(file))?;
    }
    let tarball = folders.packages.join(format!("{name}.tar.gz"));
    let date = output(workspace.command("git").args(["log", "-1", "--format=@%at"]))?;
    // The same bytes of the same commit.
    let mut command = Command::new("tar");
    command.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]);
    command.arg(format!("--mtime={}", date.trim())).args(["--use-compress-program=gzip -n", "-cf"]).arg(&tarball);
    succeed(command.arg("-C").arg(folders.stage.join("tarballs")).arg(&name))?;
    let unpacked = folders.stage.join("unpacked");
    fs::create_dir_all(&unpacked)?;
    succeed(Command::new("tar").arg("-xf").arg(&tarball).arg("-C").arg(&unpacked))?;
    Ok(unpacked.join(name))
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        fs::copy(from, to).with_context(|| from.display().to_string())?;
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy_tree(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Bills of materials, and the members that they are of.
const BILLS: [(&str, &str); 3] =
    [("farhaul", "farhaul-cli"), ("libfarhaul", "farhaul-c"), ("farhaul-libudt", libudt::PACKAGE)];

/// Each of them has more components.
const FEWEST: usize = 30;

/// Writes the bill of materials of the program and of each library (CycloneDX), which scanners compare with lists of
/// vulnerabilities.
///
/// It is a file beside the packages, of `Cargo.lock`: a build under cargo-auditable would put the same list into the programs, but
/// the builds of distributions do not run it.
pub(super) fn sbom(workspace: &Workspace, folders: &Folders) -> Result<CheckStatus> {
    let name = "farhaul.cdx";
    // It writes one for each member beside its manifest.
    let beside = |package: &Package| workspace.root.join(&package.folder).join(format!("{name}.json"));
    let mut command = Command::new("cargo-cyclonedx");
    command.current_dir(&workspace.root).args(["cyclonedx", "--format", "json", "--spec-version", "1.5"]);
    command.args(["--no-build-deps", "--override-filename", name]);
    command.env("SOURCE_DATE_EPOCH", output(workspace.command("git").args(["log", "-1", "--format=%at"]))?.trim());
    succeed(&mut command)?;
    let mut bills = BTreeMap::new();
    for package in &workspace.packages {
        if let Ok(bill) = fs::read_to_string(beside(package)) {
            fs::remove_file(beside(package))?;
            bills.insert(package.name.as_str(), bill);
        }
    }
    for (short, member) in BILLS {
        let text = bills.get(member).with_context(|| format!("no SBOM of {member}"))?;
        let bill: Value = serde_json::from_str(text)?;
        let components = bill["components"].as_array().map_or(0, Vec::len);
        ensure!(components > FEWEST, "the SBOM of {short} has {components} components");
        fs::write(folders.packages.join(format!("{short}.cdx.json")), text)?;
        println!("{short}: {components} components");
    }
    Ok(CheckStatus::Passed)
}

/// Puts the crates beside the packages.
pub(super) fn crates(made: &[PathBuf], folders: &Folders) -> Result<CheckStatus> {
    let into = folders.packages.join("crates");
    fs::create_dir_all(&into)?;
    for file in made {
        fs::copy(file, into.join(file.file_name().context("a file has a name")?))?;
    }
    Ok(CheckStatus::Passed)
}

/// Writes SHA256SUMS, and checks it.
pub(super) fn checksums(folders: &Folders) -> Result<CheckStatus> {
    let mut names = Vec::new();
    for folder in ["", "crates"] {
        let path = folders.packages.join(folder);
        if !path.is_dir() {
            continue;
        }
        for file in fs::read_dir(path)? {
            let file = file?;
            if file.file_type()?.is_file() {
                names.push(Path::new(folder).join(file.file_name()));
            }
        }
    }
    names.sort();
    ensure!(!names.is_empty(), "nothing was made");
    let sums = output(Command::new("sha256sum").current_dir(&folders.packages).args(&names))?;
    print!("{sums}");
    fs::write(folders.packages.join("SHA256SUMS"), sums)?;
    succeed(Command::new("sha256sum").current_dir(&folders.packages).args(["--check", "--quiet", "SHA256SUMS"]))
}
