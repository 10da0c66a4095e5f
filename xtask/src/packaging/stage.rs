//! What packages have beside the program: manual pages, completions, changelogs, the shared library.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Folders, debian, output, third_party, version};
use crate::sections::{CheckStatus, succeed};
use crate::workspace::Workspace;

/// Shells, and the file that each looks for.
const SHELLS: [(&str, &str); 3] = [("bash", "farhaul.bash"), ("zsh", "_farhaul"), ("fish", "farhaul.fish")];

pub(super) fn make(workspace: &Workspace, folders: &Folders) -> Result<CheckStatus> {
    pages(folders)?;
    library(workspace, folders)?;
    drop_in(workspace, folders)?;
    changelogs(workspace, folders)?;
    compressed(&folders.stage.join("third-party-licenses.txt"), &third_party::licences(workspace)?)?;
    compressed(&folders.stage.join("changelog"), &workspace.text("CHANGELOG.md")?)?;
    Ok(CheckStatus::Passed)
}

/// Writes FILE.gz, in the same bytes each time.
fn compressed(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| file.display().to_string())?;
    output(Command::new("gzip").arg("-9n").arg(file)).map(drop)
}

/// The manual page of the program and of each verb, and the completions.
fn pages(folders: &Folders) -> Result<()> {
    let program = folders.release.join("farhaul");
    let farhaul = |words: &[&str]| output(Command::new(&program).args(words));
    let (man, completions) = (folders.stage.join("man"), folders.stage.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    let page = farhaul(&["man"])?;
    compressed(&man.join("farhaul.1"), &page)?;
    // The page of the program refers to that of each verb.
    let verbs: Vec<&str> =
        page.lines().filter_map(|line| line.trim().strip_prefix("farhaul\\-")?.strip_suffix("(1)")).collect();
    ensure!(verbs.len() > 15, "the manual page of the program names {} verbs", verbs.len());
    for verb in &verbs {
        let verb = verb.replace("\\-", "-");
        if verb == "help" {
            continue;
        }
        compressed(&man.join(format!("farhaul-{verb}.1")), &farhaul(&["man", &verb])?)?;
    }
    for (shell, file) in SHELLS {
        fs::write(completions.join(file), farhaul(&["completions", shell])?)?;
    }
    println!("{} manual pages, completions for {} shells", verbs.len(), SHELLS.len());
    Ok(())
}

/// The shared library with its version, the static one, and the file for pkg-config.
fn library(workspace: &Workspace, folders: &Folders) -> Result<()> {
    let lib = folders.stage.join("lib");
    fs::create_dir_all(&lib)?;
    let archive = folders.release.join("libfarhaul_c.a");
    for script in ["crates/c/link.sh", "crates/c/archive.sh"] {
        succeed(workspace.command(script).arg(&archive).arg(&lib))?;
    }
    succeed(Command::new("strip").arg("--strip-unneeded").arg(lib.join("libfarhaul.so.0")))?;
    let folder = format!("/usr/lib/{}", debian::multiarch()?);
    let template = workspace.text("crates/c/farhaul.pc.in")?;
    fs::write(
        lib.join("farhaul.pc"),
        template.replace("@libdir@", &folder).replace("@version@", &version(workspace)?),
    )?;
    Ok(())
}

/// The library in the place of libudt, if this tree has it, with its headers.
fn drop_in(workspace: &Workspace, folders: &Folders) -> Result<()> {
    if !workspace.packages.iter().any(|package| package.name == "farhaul-libudt") {
        return Ok(());
    }
    succeed(workspace.cargo().args(["build", "--release", "--locked", "-p", "farhaul-libudt"]))?;
    let libudt = folders.stage.join("libudt");
    fs::create_dir_all(libudt.join("include"))?;
    let archive = folders.release.join("libfarhaul_libudt.a");
    succeed(workspace.command("crates/libudt/link.sh").arg(archive).arg(&libudt))?;
    succeed(Command::new("strip").arg("--strip-unneeded").arg(libudt.join("libudt.so.0")))?;
    for header in fs::read_dir(workspace.root.join("crates/libudt/include/udt"))? {
        let header = header?;
        fs::copy(header.path(), libudt.join("include").join(header.file_name()))?;
    }
    Ok(())
}

/// The changelog of each Debian package: one entry, of the last commit's date.
fn changelogs(workspace: &Workspace, folders: &Folders) -> Result<()> {
    let date = output(workspace.command("git").args(["log", "-1", "--format=%aD"]))?;
    let version = version(workspace)?;
    for package in debian::PACKAGES {
        let folder = folders.stage.join(package.name);
        fs::create_dir_all(&folder)?;
        let (name, maintainer) = (package.name, debian::MAINTAINER);
        let entry = "Packages of the developers. The changes are in CHANGELOG.md of the sources.";
        let text = format!(
            "{name} ({version}-1) unstable; urgency=medium\n\n  * {entry}\n\n -- {maintainer}  {}\n",
            date.trim()
        );
        compressed(&folder.join("changelog.Debian"), &text)?;
    }
    Ok(())
}
