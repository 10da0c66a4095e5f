//! The public items of each crate, as rustdoc sees them. Their number is compared with a file of budgets. For the crates that programs
//! use, the names are compared as well, so each change of the public face is a visible change of a file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::sections::{CheckStatus, succeed};
use crate::test::features;
use crate::tidy::Budgets;
use crate::workspace::{Package, Workspace};

const FOLDER: &str = "docs/architecture/public";
/// Crates whose names are listed.
const LISTED: &[&str] = &["farhaul", "transfer"];
/// The form of rustdoc's JSON that this reads. Each change of rustdoc's types has the next number (`FORMAT_VERSION` of the crate
/// `rustdoc-types`). Before a later one is written here, its changes of the fields below are looked through.
const FORM: u64 = 57;
/// Items by which a crate may be below its budget.
const SLACK: usize = 20;
/// Passes its arguments to rustdoc, which gives JSON only if unstable options are permitted. Of the other programs nothing is built anew.
const WRAPPER: &str = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n";

/// The verb `public`: compares the items with the files, or writes the lists of names.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    match arguments {
        [] => {
            if let CheckStatus::Skipped(why) = check(workspace)? {
                println!("skipped: {why}");
            }
            Ok(())
        }
        [word] if word == "--write" => {
            document(workspace)?;
            let all = read(workspace)?;
            fs::create_dir_all(workspace.root.join(FOLDER))?;
            for name in LISTED {
                let items = all.get(*name).with_context(|| format!("there is no crate {name}"))?;
                let text: String = items.iter().flat_map(|item| [item, "\n"]).collect();
                fs::write(workspace.root.join(list(name)), text)?;
            }
            let numbers = all.iter().map(|(name, items)| format!("{name} {}\n", items.len()));
            print!("{}", numbers.collect::<String>());
            Ok(())
        }
        _ => bail!("`public` takes `--write` or nothing"),
    }
}

/// Makes the documentation, of which every warning is an error, and compares the public items with their files.
///
/// # Errors
/// A warning, or more items or other names than the files say.
pub(crate) fn check(workspace: &Workspace) -> Result<CheckStatus> {
    document(workspace)?;
    let all = match read(workspace) {
        Err(error) if error.is::<UnknownForm>() => return Ok(CheckStatus::Skipped(error.to_string())),
        all => all?,
    };
    let numbers = all.iter().map(|(name, items)| (name.clone(), items.len())).collect();
    println!("public items: {}", all.values().map(BTreeSet::len).sum::<usize>());
    let file = format!("{FOLDER}/budget.txt");
    let mut faults = Budgets { file: &file, unit: "public items", slack: SLACK }.faults(workspace, &numbers)?;
    for name in LISTED {
        let expected = workspace.text(list(name))?;
        let expected: BTreeSet<&str> = expected.lines().collect();
        let found: BTreeSet<&str> = all.get(*name).into_iter().flatten().map(String::as_str).collect();
        let more = found.difference(&expected).map(|item| format!("+ {item}"));
        let fewer = expected.difference(&found).map(|item| format!("- {item}"));
        let changes: Vec<String> = more.chain(fewer).collect();
        if !changes.is_empty() {
            let changes = changes.join("\n  ");
            faults.push(format!("the public items of {name} changed (cargo xtask public --write):\n  {changes}"));
        }
    }
    faults.iter().for_each(|fault| println!("fault: {fault}"));
    ensure!(faults.is_empty(), "{} public faces changed", faults.len());
    Ok(CheckStatus::Passed)
}

fn list(name: &str) -> String {
    format!("{FOLDER}/{name}.txt")
}

/// Every feature is on but the test doubles, which no program uses.
fn document(workspace: &Workspace) -> Result<CheckStatus> {
    let features = features(&workspace.packages);
    let features = features.iter().filter(|feature| !feature.ends_with("/testing"));
    fs::create_dir_all(&workspace.target)?;
    let wrapper = workspace.target.join("rustdoc-with-json");
    fs::write(&wrapper, WRAPPER)?;
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    let mut command = workspace.cargo();
    command.args(["doc", "--workspace", "--no-deps"]).args(features).env("RUSTDOC", &wrapper);
    succeed(command.env("RUSTDOCFLAGS", "-D warnings -Z unstable-options --output-format json"))
}

/// The public items of each crate.
fn read(workspace: &Workspace) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let crates = workspace.packages.iter().filter(|package| package.folder.starts_with("crates"));
    crates.map(|package| Ok((package.short.clone(), items(&json_of(workspace, package)?)?))).collect()
}

fn json_of(workspace: &Workspace, package: &Package) -> Result<Value> {
    let path: PathBuf = workspace.target.join("doc").join(package.name.replace('-', "_") + ".json");
    let text = fs::read(&path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_slice(&text)?)
}

/// The rustdoc of another compiler writes a form of JSON that this does not read.
#[derive(Debug)]
struct UnknownForm(Option<u64>);

impl fmt::Display for UnknownForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rustdoc wrote its JSON in ")?;
        match self.0 {
            Some(form) => write!(f, "form {form}")?,
            None => f.write_str("a form without a number")?,
        }
        write!(
            f,
            ", and only form {FORM} is known (FORM in xtask/src/public_items.rs), so no public items are compared"
        )
    }
}

impl std::error::Error for UnknownForm {}

/// Every public item of a crate as a line: its kind and the path by which a program reaches it.
///
/// # Errors
/// [`UnknownForm`], or a form that is not as its number says.
fn items(json: &Value) -> Result<BTreeSet<String>> {
    let form = json["format_version"].as_u64();
    if form != Some(FORM) {
        return Err(UnknownForm(form).into());
    }
    let root = json["root"].as_u64().context("a crate has a root")?;
    let mut walk = Walk { index: &json["index"], found: BTreeSet::new(), within: Vec::new() };
    walk.module(root, "");
    ensure!(!walk.found.is_empty() || walk.children(root, "module", "items").is_empty(), "rustdoc writes another form");
    Ok(walk.found)
}

struct Walk<'a> {
    index: &'a Value,
    found: BTreeSet<String>,
    /// The modules above, which may name one another.
    within: Vec<u64>,
}

impl Walk<'_> {
    fn module(&mut self, id: u64, path: &str) {
        if self.within.contains(&id) {
            return;
        }
        self.within.push(id);
        for child in self.children(id, "module", "items") {
            self.item(child, path, None);
        }
        self.within.pop();
    }

    /// Adds an item, which a `use` may give another name.
    fn item(&mut self, id: u64, path: &str, name: Option<&str>) {
        if self.index[id.to_string()]["visibility"] == "public" {
            self.visible(id, path, name);
        }
    }

    fn visible(&mut self, id: u64, path: &str, name: Option<&str>) {
        let item = &self.index[id.to_string()];
        let Some((kind, inner)) = item["inner"].as_object().and_then(|inner| inner.iter().next()) else { return };
        if kind == "use" {
            let there = inner["id"].as_u64().filter(|id| self.index.get(id.to_string()).is_some());
            match (there, inner["is_glob"] == true) {
                (Some(there), true) => self.module(there, path),
                (Some(there), false) => self.item(there, path, inner["name"].as_str()),
                (None, _) => self.add("use", path, inner["source"].as_str().unwrap_or_default()),
            }
            return;
        }
        let Some(name) = name.or_else(|| item["name"].as_str()) else { return };
        let its_path = format!("{path}{name}::");
        self.add(kind, path, name);
        match kind.as_str() {
            "module" => self.module(id, &its_path),
            "trait" => self.members(id, kind, "items", &its_path),
            "enum" => self.members(id, kind, "variants", &its_path),
            "struct" => {
                for field in numbers(&inner["kind"]["plain"]["fields"]) {
                    self.item(field, &its_path, None);
                }
            }
            _ => {}
        }
        for its_impl in numbers(&inner["impls"]) {
            let its_impl = &self.index[its_impl.to_string()]["inner"]["impl"];
            if its_impl["trait"].is_null() {
                numbers(&its_impl["items"]).into_iter().for_each(|member| self.item(member, &its_path, None));
            }
        }
    }

    /// Of a trait or an enum, which are as visible as itself.
    fn members(&mut self, id: u64, kind: &str, list: &str, path: &str) {
        self.children(id, kind, list).into_iter().for_each(|member| self.visible(member, path, None));
    }

    fn children(&self, id: u64, kind: &str, list: &str) -> Vec<u64> {
        numbers(&self.index[id.to_string()]["inner"][kind][list])
    }

    fn add(&mut self, kind: &str, path: &str, name: &str) {
        self.found.insert(format!("{kind} {path}{name}"));
    }
}

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn items_are_found_by_the_paths_of_programs() {
        let of = |name: &str, visibility: &str, inner: Value| json!({ "name": name, "visibility": visibility, "inner": inner });
        let json = json!({ "format_version": FORM, "root": 0, "index": {
            "0": of("a", "public", json!({ "module": { "items": [1, 2, 9] } })),
            "1": of("hidden", "crate", json!({ "module": { "items": [3] } })),
            "2": of("", "public", json!({ "use": { "id": 3, "name": "Renamed", "is_glob": false } })),
            "3": of("Kind", "public", json!({ "struct": { "kind": { "plain": { "fields": [4, 5] } }, "impls": [6, 8] } })),
            "4": of("shown", "public", json!({ "struct_field": {} })),
            "5": of("own", "default", json!({ "struct_field": {} })),
            "6": { "inner": { "impl": { "trait": null, "items": [7] } } },
            "7": of("new", "public", json!({ "function": {} })),
            "8": { "inner": { "impl": { "trait": {}, "items": [7] } } },
            "9": of("", "public", json!({ "use": { "id": 77, "name": "x", "is_glob": false, "source": "other::x" } })),
        } });
        let found = items(&json).unwrap();
        let expected = ["function Renamed::new", "struct Renamed", "struct_field Renamed::shown", "use other::x"];
        assert_eq!(found.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn another_form_is_named_and_not_read() {
        for (form, expected) in
            [(json!(FORM + 1), "form 58, and only form 57 is known"), (json!(null), "without a number")]
        {
            let json = json!({ "format_version": form, "root": 0, "index": {} });
            let error = items(&json).unwrap_err();
            assert!(error.is::<UnknownForm>() && error.to_string().contains(expected), "{error}");
        }
    }
}
