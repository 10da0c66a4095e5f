//! The files of recorded links that a scenario names, and their copies in a results folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::reader::{Node, Value};
use crate::key::RunKey;

/// The key of a link that names a file.
const TRACE: &str = "trace";
/// The folder of copies, beside the copy of the scenario.
const COPIES: &str = "files";

/// The file that the scenario in `scenario` calls `name`: its copy, or the file beside the scenario.
pub(crate) fn place(scenario: &Path, name: &str) -> PathBuf {
    let copy = scenario.with_file_name(copy(name));
    if copy.is_file() { copy } else { scenario.with_file_name(name) }
}

/// The path of a copy from the folder of the scenario's copy. It is always inside of that folder. The hash tells names
/// apart that end alike, such as `a/link` and `../link`.
pub(crate) fn copy(name: &str) -> PathBuf {
    let last = Path::new(name).file_name().map(|last| last.to_string_lossy().into_owned()).unwrap_or_default();
    Path::new(COPIES).join(format!("{}-{last}", RunKey::new().text(name)))
}

/// The file names in one setup, after all changes. Only links have this key.
pub(super) fn named<'a>(experiment: impl Iterator<Item = &'a Node>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    experiment.for_each(|node| collect(node, &mut names));
    names
}

fn collect(node: &Node, names: &mut BTreeSet<String>) {
    match node.get_ref() {
        Value::Table(table) => {
            if let Some(Value::Text(name)) = table.get(TRACE).map(Node::get_ref) {
                names.insert(name.clone());
            }
            table.values().for_each(|inner| collect(inner, names));
        }
        Value::List(nodes) => nodes.iter().for_each(|inner| collect(inner, names)),
        Value::Text(_) | Value::Integer(_) | Value::Float(_) | Value::Flag(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::Source;
    use super::*;

    #[test]
    fn every_link_is_asked_for_its_file() {
        let text = "[link]\ntrace = 'a'\n[link.back]\ntrace = 'b'\n[[links]]\ntrace = 'c'\n[[flow]]\nname = 'trace'\n";
        let names = named([Source::read("f", text).unwrap().1].iter());
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn copies_lie_in_their_folder_and_have_names_of_their_own() {
        let names = ["link", "a/link", "../link", "../../etc/link", "/etc/link", "..", "/", ""];
        let copies: BTreeSet<PathBuf> = names.map(copy).into_iter().collect();
        assert_eq!(copies.len(), names.len());
        assert!(copies.iter().all(|path| path.parent() == Some(Path::new(COPIES))), "{copies:?}");
    }
}
