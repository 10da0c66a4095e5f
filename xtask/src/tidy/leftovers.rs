//! Finds meaningless names and forgotten notes.

use anyhow::Result;

use crate::workspace::Workspace;

/// Names that state a place instead of a meaning.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "misc"];
/// Notes that must not be committed. Split, so that this file does not match.
const NOTES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("db", "g!(")];

/// The end of the names of snapshots that a failed test has written, and that nobody has accepted.
const UNACCEPTED: &str = "snap.new";

/// Returns a fault for every such name and note.
pub(super) fn faults(workspace: &Workspace) -> Result<Vec<String>> {
    let mut faults: Vec<String> = workspace
        .files(&["new"])?
        .into_iter()
        .filter(|path| path.to_string_lossy().ends_with(UNACCEPTED))
        .map(|path| format!("{}: a snapshot that is accepted or removed", path.display()))
        .collect();
    for path in workspace.files(&["rs", "cpp", "h", "sh", "toml"])? {
        let shown = path.display();
        if path.file_name().is_some_and(|name| name == "mod.rs") {
            faults.push(format!("{shown}: modules are foo.rs beside foo/"));
        }
        let stem = path.with_extension("");
        for part in stem.iter().map(|part| part.to_string_lossy()) {
            if EMPTY_NAMES.contains(&part.as_ref()) {
                faults.push(format!("{shown}: '{part}' is not a meaningful name"));
            }
        }
        for (index, line) in workspace.text(&path)?.lines().enumerate() {
            faults.extend(
                NOTES.iter().filter(|note| line.contains(**note)).map(|note| format!("{shown}:{}: {note}", index + 1)),
            );
        }
    }
    Ok(faults)
}
