//! The workspace: its folder, packages, dependencies and files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Hidden folders that belong to the project.
const DOT_FOLDERS: &[&str] = &[".cargo", ".ci", ".config", ".github"];

/// The workspace as described by cargo.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// The build folder.
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
    /// Whether the build folder has no members that were compiled incrementally.
    is_without_increments: bool,
}

/// The start of the names of all crates but the chores.
const PREFIX: &str = "farhaul";
/// Tells cargo whether to compile incrementally.
const INCREMENTAL: &str = "CARGO_INCREMENTAL";

/// A member.
#[derive(Debug)]
pub(crate) struct Package {
    /// The name in cargo.
    pub(crate) name: String,
    /// The name without the project's prefix: `farhaul-proto` is `proto`.
    pub(crate) short: String,
    /// Its folder, from the root.
    pub(crate) folder: PathBuf,
    /// Whether it goes to a registry.
    pub(crate) is_published: bool,
    pub(crate) features: Vec<String>,
    /// Members that it uses.
    pub(crate) uses: BTreeSet<Edge>,
    pub(crate) tests: Vec<TestTarget>,
}

/// A dependency on another member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) from: String,
    pub(crate) to: String,
    /// Whether only tests, examples and benches use it.
    pub(crate) dev: bool,
}

/// A test target under `tests/`.
#[derive(Debug)]
pub(crate) struct TestTarget {
    pub(crate) name: String,
    pub(crate) features: Vec<String>,
}

impl Workspace {
    /// Reads the metadata from cargo.
    pub(crate) fn read() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?.to_path_buf();
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--no-deps", "--format-version=1"])
            .current_dir(&root)
            .output()
            .context("cargo metadata")?;
        ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
        let metadata: Value = serde_json::from_slice(&output.stdout)?;
        let target = PathBuf::from(text(&metadata["target_directory"]));
        let mut packages: Vec<Package> =
            list(&metadata["packages"]).iter().map(|value| package(value, &root)).collect();
        packages.sort_by(|a, b| a.short.cmp(&b.short));
        let is_without_increments = is_without_increments(&target);
        Ok(Self { root, target, packages, is_without_increments })
    }

    /// Cargo, in the workspace's folder. The first build is not incremental: it would take a third more processor time.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = self.command(env!("CARGO"));
        if self.is_without_increments && std::env::var_os(INCREMENTAL).is_none() {
            command.env(INCREMENTAL, "0");
        }
        command
    }

    /// A program, in the workspace's folder.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }

    /// Every file of the project with one of these extensions, by path from the root, sorted.
    pub(crate) fn files(&self, endings: &[&str]) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
                let entry = entry?;
                let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
                if entry.file_type()?.is_dir() {
                    let hidden = name.starts_with('.') && !DOT_FOLDERS.contains(&name.as_str());
                    if !hidden && name != "target" && path != self.target {
                        folders.push(path);
                    }
                } else if path.extension().is_some_and(|ending| endings.iter().any(|wanted| ending == *wanted)) {
                    found.push(path.strip_prefix(&self.root)?.to_path_buf());
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// The content of a file, by path from the root.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> Result<String> {
        let path = self.root.join(path);
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    }
}

/// Whether no member in the build folder `target` was compiled incrementally. The chores themselves do not count.
fn is_without_increments(target: &Path) -> bool {
    let Ok(entries) = fs::read_dir(target.join("debug/incremental")) else { return true };
    !entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
}

fn package(value: &Value, root: &Path) -> Package {
    let name = text(&value["name"]);
    let short = short(&name);
    let uses = list(&value["dependencies"])
        .iter()
        .filter(|dependency| dependency["path"].is_string())
        .map(|dependency| Edge {
            from: short.clone(),
            to: self::short(&text(&dependency["name"])),
            dev: dependency["kind"] == "dev",
        })
        .collect();
    let tests = list(&value["targets"])
        .iter()
        .filter(|target| list(&target["kind"]).iter().any(|kind| kind == "test"))
        .map(|target| TestTarget {
            name: text(&target["name"]),
            features: list(&target["required-features"]).iter().map(text).collect(),
        })
        .collect();
    let features = value["features"].as_object().map(|map| map.keys().cloned().collect()).unwrap_or_default();
    let manifest = PathBuf::from(text(&value["manifest_path"]));
    let folder = manifest.parent().and_then(|folder| folder.strip_prefix(root).ok()).unwrap_or(root).to_path_buf();
    // An empty list of registries is `publish = false`.
    let is_published = value["publish"].as_array().is_none_or(|registries| !registries.is_empty());
    Package { name, short, folder, is_published, features, uses, tests }
}

/// The name of a member without the project's prefix.
pub(crate) fn short(name: &str) -> String {
    name.strip_prefix("farhaul-").unwrap_or(name).to_owned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
