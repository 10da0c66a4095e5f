//! Pulls that are restricted to a list of names.

use std::sync::Arc;

use super::pair::{Pipes, pull};
use super::{path, tree};
use crate::error::{SessionError, Violation};
use crate::file::{FileReceiver, FileSender, ReceiveLimits};
use crate::frame_kind::FrameKind;
use crate::framing::put_frame;
use crate::handshake::{Accept, Open};
use crate::manifest::{Entry, EntryKind, Mtime};
use crate::name_list::NameListBuilder;
use crate::path_rules::RelPath;
use crate::request::{CopyScope, RequestError};
use crate::store::{MemorySource, MemoryStore};

const LIMITS: ReceiveLimits =
    ReceiveLimits { window: 1 << 20, file_size: u64::MAX, bytes: u64::MAX, entries: u64::MAX };

fn by_names(names: &[&str], recursive: bool) -> CopyScope {
    let mut builder = NameListBuilder::default();
    names.iter().for_each(|name| builder.push(&path(name)).unwrap());
    let names = Some(Arc::new(builder.build()));
    CopyScope { paths: vec![RelPath::root()], recursive, names, ..CopyScope::default() }
}

#[test]
fn a_pull_by_names_brings_them_and_their_parents() {
    let all = tree(&[
        ("a/", 0),
        ("a/x", 5),
        ("a/y", 5),
        ("b/", 0),
        ("b/c/", 0),
        ("b/c/z", 3),
        ("b/other", 3),
        ("lone", 1),
        ("rest", 9),
    ]);
    let (mut source, mut store) = (MemorySource::new(all), MemoryStore::default());
    let pipes = Pipes { seed: 3, step: 40 };
    let seen = pull(by_names(&["a", "b/c/z", "lone"], true), &mut source, &mut store, LIMITS, pipes);
    assert_eq!((seen.totals().files, seen.totals().failed), (4, 0));
    let arrived: Vec<_> = store.tree.keys().map(ToString::to_string).collect();
    assert_eq!(arrived, ["a", "a/x", "a/y", "b", "b/c", "b/c/z", "lone"]);
}

#[test]
fn a_sender_that_goes_beyond_the_list_is_refused() {
    for (recursive, sent, kind, may) in [
        (true, "a", EntryKind::Directory, true),
        (true, "b", EntryKind::Directory, true),
        (true, "b", EntryKind::File, false),
        (true, "c", EntryKind::File, false),
        (false, "a", EntryKind::File, true),
        (false, "a", EntryKind::Directory, true),
    ] {
        let mut receiver = FileReceiver::pull(by_names(&["a", "b/z"], recursive), LIMITS).unwrap();
        let mut bytes = Vec::new();
        Accept::new(0).put(&mut bytes);
        let entry = Entry::new(path(sent), kind, 0, 0o644, Mtime::default());
        put_frame(&mut bytes, FrameKind::Entry, |out| entry.encode(out));
        let taken = receiver.handle_received(&mut MemoryStore::default(), &bytes);
        let refused = Err(SessionError::from(Violation::NotRequested(sent.to_owned())));
        assert_eq!(taken, if may { Ok(bytes.len()) } else { refused }, "{recursive} {sent} {kind:?}");
    }
}

#[test]
fn names_are_for_one_source_and_come_once() {
    let two = CopyScope { paths: vec![path("a"), path("b")], ..by_names(&["x"], true) };
    assert_eq!(FileReceiver::pull(two, LIMITS).unwrap_err(), RequestError::SeveralWithNames);
    for (names, refused) in [(None, 1), (Some(Arc::default()), 2)] {
        let pull = CopyScope { names, ..by_names(&[], true) };
        let mut sender = FileSender::answer(&Open::new(pull.into(), 0));
        let mut end = Vec::new();
        put_frame(&mut end, FrameKind::Names, |_| ());
        for turn in 1..=refused {
            let taken = sender.handle_received(&end);
            assert_eq!(taken.is_err(), turn == refused, "{turn} of {refused}");
        }
    }
}
