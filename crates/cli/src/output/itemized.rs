//! The lines of a dry run and of `--verbose`: what would change, or has.

use farhaul_session::{Change, Entry, EntryKind};

/// In front of an entry that would be removed.
pub(crate) const DELETED: &str = "delete    ";

/// The line of an entry; `None` if nothing would change.
pub(crate) fn line(entry: &Entry, change: Change) -> Option<String> {
    let what = match change {
        Change::None => return None,
        Change::Properties => "properties",
        Change::Content => "content   ",
        Change::New => "new       ",
    };
    let end = match entry.kind {
        EntryKind::Directory => "/".to_owned(),
        EntryKind::Symlink => format!(" -> {}", farhaul_session::escape(entry.link_target().unwrap_or_default())),
        EntryKind::File | EntryKind::HardLink => String::new(),
    };
    Some(format!("{what} {}{end}", entry.path))
}
