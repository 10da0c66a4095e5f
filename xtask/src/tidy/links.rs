//! Checks that links between our documents point to existing files.

use std::path::Path;

use anyhow::Result;

use crate::workspace::Workspace;

/// Returns a fault for every link to a missing file.
pub(super) fn faults(workspace: &Workspace) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for path in workspace.files(&["md"])? {
        let folder = path.parent().unwrap_or(Path::new(""));
        for target in targets(&workspace.text(&path)?) {
            if !workspace.root.join(folder).join(&target).exists() {
                faults.push(format!("{} links to {target}, which does not exist", path.display()));
            }
        }
    }
    Ok(faults)
}

/// The files that a document links to, without anchors. Links out of the project are ignored.
fn targets(document: &str) -> Vec<String> {
    document
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', '#', ' ']).next())
        .filter(|target| !target.is_empty() && !target.contains(':') && !target.contains('\n'))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_within_the_project_count() {
        let document = "[a](b.md) [c](d/e.md#f) [g](https://example.org) [h](#i)";
        assert_eq!(targets(document), ["b.md", "d/e.md"]);
    }
}
