//! What packages have beside the program: manual pages, completions, changelogs, the libraries.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Folders, debian, output, third_party, version};
use crate::libudt;
use crate::sections::{CheckStatus, succeed};
use crate::workspace::Workspace;

/// Shells, and the file that each looks for.
const SHELLS: [(&str, &str); 3] = [("bash", "farhaul.bash"), ("zsh", "_farhaul"), ("fish", "farhaul.fish")];

/// What is made for the packages, below the stage. A star stands for the verbs of the program, and for the headers of libudt.
const FILES: &[&str] = &[
    "changelog.gz",
    "completions/_farhaul",
    "completions/farhaul.bash",
    "completions/farhaul.fish",
    "lib/farhaul.pc",
    "lib/libfarhaul.a",
    "lib/libfarhaul.so",
    "lib/libfarhaul.so.0",
    "libudt/include/*",
    "libudt/libudt.so",
    "libudt/libudt.so.0",
    "man/*.1.gz",
    "third-party-licenses.txt.gz",
];

/// What is made for the packages, with the changelog of each one.
pub(super) fn files() -> impl Iterator<Item = String> {
    let changelogs = debian::PACKAGES.iter().map(|package| format!("{}/changelog.Debian.gz", package.name));
    FILES.iter().map(|file| (*file).to_owned()).chain(changelogs)
}

/// Makes all of them.
pub(super) fn make(workspace: &Workspace, folders: &Folders) -> Result<CheckStatus> {
    pages(folders)?;
    library(workspace, folders)?;
    drop_in(workspace, folders)?;
    changelogs(workspace, folders)?;
    compressed(&folders.stage.join("third-party-licenses.txt"), &third_party::licences(workspace)?)?;
    compressed(&folders.stage.join("changelog"), &workspace.text("CHANGELOG.md")?)?;
    is_complete(&folders.stage)?;
    Ok(CheckStatus::Passed)
}

/// Checks that the stage has exactly the files of the list. A package would take a pattern without files for granted.
fn is_complete(stage: &Path) -> Result<()> {
    let expected: BTreeSet<String> = files().collect();
    let mut found = BTreeSet::new();
    let mut folders = vec![stage.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let file = path.strip_prefix(stage)?.to_string_lossy().into_owned();
            let pattern = expected.iter().find(|pattern| match pattern.split_once('*') {
                Some((start, end)) => file.starts_with(start) && file.ends_with(end),
                None => **pattern == file,
            });
            found.insert(
                pattern.with_context(|| format!("{file} is staged, and not in the list of such files"))?.clone(),
            );
        }
    }
    let missing: Vec<&String> = expected.difference(&found).collect();
    ensure!(missing.is_empty(), "not staged: {missing:?}");
    Ok(())
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

/// The library in the place of libudt, with its headers.
fn drop_in(workspace: &Workspace, folders: &Folders) -> Result<()> {
    let library = libudt::link(workspace, "release")?;
    let to = folders.stage.join("libudt");
    fs::create_dir_all(to.join("include"))?;
    fs::copy(&library, to.join("libudt.so.0"))?;
    succeed(Command::new("strip").arg("--strip-unneeded").arg(to.join("libudt.so.0")))?;
    symlink("libudt.so.0", to.join("libudt.so"))?;
    for header in fs::read_dir(workspace.root.join("crates/libudt/include/udt"))? {
        let header = header?;
        fs::copy(header.path(), to.join("include").join(header.file_name()))?;
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
