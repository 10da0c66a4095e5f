//! Two sessions over pipes in memory, and one session against a peer that breaks the rules.

mod copies;
mod faults;
mod hostile;
mod pair;

use std::collections::BTreeMap;

use crate::path_rules::RelPath;
use crate::store::MemoryFile;

pub(super) fn path(text: &str) -> RelPath {
    RelPath::parse(text.as_bytes()).unwrap()
}

/// A tree: names that end in `/` are directories, the others files of this many patterned bytes.
pub(super) fn tree(entries: &[(&str, usize)]) -> BTreeMap<RelPath, MemoryFile> {
    entries
        .iter()
        .map(|&(name, size)| {
            let file =
                if name.ends_with('/') { MemoryFile::directory() } else { MemoryFile::file(pattern(name, size)) };
            (path(name), file)
        })
        .collect()
}

fn pattern(name: &str, size: usize) -> Vec<u8> {
    name.bytes().cycle().zip(0u32..).map(|(byte, index)| byte ^ (index / 7).to_be_bytes()[3]).take(size).collect()
}
