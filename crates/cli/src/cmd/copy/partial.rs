//! Where the incomplete file of a broken copy lies.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The newest temporary file for the entry at `path` (as it travels) of a copy to `target`. With `inside`, entries lie in
/// the target; otherwise the first name of the path was replaced by it.
pub(super) fn find(target: &Path, inside: bool, path: &[u8]) -> Option<PathBuf> {
    let path = Path::new(OsStr::from_bytes(path));
    let whole = if inside { target.join(path) } else { rest(target, path) };
    let directory = whole.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let start = [b".", whole.file_name()?.as_bytes(), b"."].concat();
    let is_partial = |name: &OsStr| name.as_bytes().starts_with(&start) && name.as_bytes().ends_with(b".fhpart");
    let found = fs::read_dir(directory).ok()?.flatten().filter(|entry| is_partial(&entry.file_name()));
    found.max_by_key(|entry| entry.metadata().and_then(|metadata| metadata.modified()).ok()).map(|entry| entry.path())
}

/// `target` with everything of `path` after its first name.
fn rest(target: &Path, path: &Path) -> PathBuf {
    let below: PathBuf = path.components().skip(1).collect();
    if below.as_os_str().is_empty() { target.to_owned() } else { target.join(below) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_tree_is_looked_for_under_its_new_name() {
        assert_eq!(rest(Path::new("new"), Path::new("old/a/b")), Path::new("new/a/b"));
        assert_eq!(rest(Path::new("new"), Path::new("old")), Path::new("new"));
    }
}
