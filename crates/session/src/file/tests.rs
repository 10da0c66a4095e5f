//! Two sessions over pipes in memory, and one session against a peer that violates the protocol.

mod bounds;
mod by_names;
mod compared;
mod copies;
mod expected;
mod faults;
mod hostile;
mod large;
mod pair;
mod resume;
mod slow;

use std::collections::BTreeMap;

use super::FileSender;
use crate::path_rules::RelPath;
use crate::store::{MemoryFile, MemorySource};

pub(super) fn path(text: &str) -> RelPath {
    RelPath::parse(text.as_bytes()).unwrap()
}

/// A tree. Names that end in `/` are directories. The others are files of this many patterned bytes.
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

/// Everything that a sender writes before it gets an answer.
pub(super) fn said(sender: &mut FileSender, source: &mut MemorySource) -> Vec<u8> {
    let mut said = Vec::new();
    while let count @ 1.. = sender.poll_write(source).len() {
        said.extend_from_slice(sender.poll_write(source));
        sender.handle_written(count);
    }
    said
}

fn pattern(name: &str, size: usize) -> Vec<u8> {
    name.bytes().cycle().zip(0u32..).map(|(byte, index)| byte ^ (index / 7).to_be_bytes()[3]).take(size).collect()
}
