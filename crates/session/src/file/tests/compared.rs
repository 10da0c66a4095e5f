//! Files of the target whose content is compared.

use super::pair::{Pipes, Seen, pull};
use super::{path, tree};
use crate::failure::FailCode;
use crate::file::{FileEvent, FileReceiver, ReceiveLimits, Totals, put_failed};
use crate::frame_kind::FrameKind;
use crate::framing::put_frame;
use crate::handshake::Open;
use crate::integrity::CHUNK_LEN;
use crate::manifest::{Entry, EntryId, EntryKind, Mtime, Properties};
use crate::path_rules::RelPath;
use crate::request::{CopyScope, Push, Request};
use crate::rules::{Kept, Rules, Skip};
use crate::store::{Change, MemoryFile, MemorySource, MemoryStore};

const CHUNK: usize = CHUNK_LEN as usize;

type Tree = std::collections::BTreeMap<RelPath, MemoryFile>;

fn compare(sent: &Tree, store: &mut MemoryStore, rules: Rules) -> Seen {
    let rules = Rules { keep: Kept::ALL, ..rules };
    let request = CopyScope { paths: vec![path("d")], recursive: true, rules, ..CopyScope::default() };
    pull(
        request,
        &mut MemorySource::new(sent.clone()),
        store,
        ReceiveLimits::default(),
        Pipes { seed: 3, step: 90_000 },
    )
}

fn by_digest() -> Rules {
    Rules { skip: Skip::Digest, ..Rules::default() }
}

/// A directory `d`, and a store that has its content with other times.
fn twice(files: &[(&str, usize)], compares: usize) -> (Tree, MemoryStore) {
    let names: Vec<_> = files.iter().map(|(name, size)| (format!("d/{name}"), *size)).collect();
    let names: Vec<_> = names.iter().map(|(name, size)| (name.as_str(), *size)).collect();
    let sent = tree(&[&[("d/", 0)], names.as_slice()].concat());
    let mut there = sent.clone();
    there.values_mut().filter(|file| file.kind == EntryKind::File).for_each(|file| file.mtime.seconds -= 9);
    (sent, MemoryStore { tree: there, compares, ..MemoryStore::default() })
}

fn changes(events: &[FileEvent]) -> Vec<(String, Change)> {
    let change = |event: &FileEvent| match event {
        FileEvent::Verified(entry, _, change) | FileEvent::Kept(entry, change) => {
            Some((entry.path.to_string(), *change))
        }
        _ => None,
    };
    let mut all: Vec<_> = events.iter().filter_map(change).collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

#[test]
fn equal_content_is_neither_sent_nor_written() {
    let names: Vec<String> = (0..60).map(|index| format!("file-{index:02}")).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), 3 * CHUNK / (1 + name.len() % 3) - 7)).collect();
    // Most files wait until others are compared.
    let (sent, mut store) = twice(&files[..30], 2);
    let seen = compare(&sent, &mut store, by_digest());
    let bytes = sent.values().map(|file| file.content.len() as u64).sum();
    assert_eq!(seen.totals(), Totals { kept: 30, kept_bytes: bytes, directories: 1, ..Totals::default() });
    assert_eq!((seen.sent, store.written), (0, 0));
    assert_eq!(store.tree, sent, "the commit sets the times");
    for events in [&seen.sender, &seen.receiver] {
        assert!(changes(events).iter().all(|(_, change)| *change == Change::None), "{events:?}");
    }
}

#[test]
fn chunks_that_differ_come_alone_and_both_sides_call_it_a_change() {
    let (sent, mut store) = twice(&[("a", 4 * CHUNK + 5), ("b", 30), ("c", 2 * CHUNK)], 64);
    store.tree.get_mut(&path("d/a")).unwrap().content[2 * CHUNK + 1] ^= 1;
    store.tree.get_mut(&path("d/b")).unwrap().content[3] ^= 1;
    let seen = compare(&sent, &mut store, by_digest());
    let expected = Totals {
        files: 2,
        bytes: 4 * CHUNK_LEN + 35,
        kept: 1,
        kept_bytes: 2 * CHUNK_LEN,
        directories: 1,
        ..Totals::default()
    };
    assert_eq!((seen.totals(), seen.sent), (expected, CHUNK_LEN + 30));
    assert_eq!(store.tree, sent);
    for events in [&seen.sender, &seen.receiver] {
        let told = changes(events);
        assert_eq!(
            told.iter().map(|(_, change)| *change).collect::<Vec<_>>(),
            [Change::Content, Change::Content, Change::None]
        );
    }
}

#[test]
fn a_dry_run_moves_no_content_and_tells_what_differs() {
    let (sent, mut store) = twice(&[("a", 3 * CHUNK), ("b", 30), ("c", 2 * CHUNK)], 2);
    store.tree.get_mut(&path("d/c")).unwrap().content[CHUNK + 1] ^= 1;
    let seen = compare(&sent, &mut store, Rules { dry_run: true, ..by_digest() });
    assert_eq!((seen.totals().kept, seen.totals().files, seen.totals().failed, seen.sent), (3, 0, 0, 0));
    for events in [&seen.sender, &seen.receiver] {
        let told = changes(events);
        assert_eq!(
            told.iter().map(|(_, change)| *change).collect::<Vec<_>>(),
            [Change::None, Change::None, Change::Content]
        );
    }
}

#[test]
fn a_sender_that_was_not_heard_may_send_files_that_wait_to_be_compared() {
    let names: Vec<String> = (0..40).map(|index| format!("file-{index:02}")).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), 5_000)).collect();
    let (sent, mut store) = twice(&files, 1);
    // It does not know that the receiver compares, so it is as one of an earlier version.
    let seen = compare(&sent, &mut store, Rules::default());
    assert_eq!(seen.totals().files + seen.totals().kept, 40);
    assert_eq!((seen.totals().failed, &store.tree), (0, &sent));
}

#[test]
fn further_names_wait_for_a_file_that_is_compared_later() {
    let (mut sent, mut store) = twice(&[("a", CHUNK), ("b", CHUNK), ("c", 50)], 1);
    for (name, first) in [("d/y", 2), ("d/z", 3)] {
        let properties = Some(Properties { first_name: Some(EntryId(first)), ..Properties::default() });
        sent.insert(path(name), MemoryFile { kind: EntryKind::HardLink, properties, ..MemoryFile::file(Vec::new()) });
    }
    for name in ["d/b", "d/c"] {
        let properties = Some(Properties { has_links: true, ..Properties::default() });
        sent.get_mut(&path(name)).unwrap().properties = properties;
    }
    let seen = compare(&sent, &mut store, by_digest());
    assert_eq!((seen.totals().links, seen.totals().kept, seen.totals().failed), (2, 3, 0), "{seen:?}");
}

/// The answers of a receiver to a sender that says `frames` behind its entries `a` and `b`, of which one is compared at a time.
fn after(frames: &[(FrameKind, Vec<u8>)], rules: Rules) -> (FileReceiver, MemoryStore) {
    let tree = tree(&[("a", 5), ("b", 5)]);
    let mut store = MemoryStore { tree: tree.clone(), compares: 1, ..MemoryStore::default() };
    let push = Push { rules, ..Push::default() };
    let limits = ReceiveLimits { file_size: 100, ..ReceiveLimits::default() };
    let mut receiver = FileReceiver::answer(&Open::new(Request::Push(push), 0), limits);
    let mut said = Vec::new();
    for name in tree.keys() {
        let entry = Entry::new(name.clone(), EntryKind::File, 5, 0o644, Mtime::default());
        put_frame(&mut said, FrameKind::Entry, |out| entry.encode(out));
    }
    frames.iter().for_each(|(kind, body)| put_frame(&mut said, *kind, |out| out.extend_from_slice(body)));
    assert_eq!(receiver.handle_received(&mut store, &said).unwrap(), said.len());
    (receiver, store)
}

#[test]
fn a_file_that_is_refused_before_it_begins_lets_the_next_one_be_compared() {
    let (_, store) = after(&[], by_digest());
    assert_eq!(store.comparing, [EntryId(0)].into());
    let content = [&0u64.to_be_bytes()[..], &101u64.to_be_bytes(), &[0; 12]].concat();
    let (_, store) = after(&[(FrameKind::Content, content)], by_digest());
    assert_eq!(store.comparing, [EntryId(1)].into(), "it became too large");
}

#[test]
fn only_in_a_dry_run_may_a_sender_say_that_a_file_differs() {
    let mut differs = Vec::new();
    put_failed(&mut differs, EntryId(0), &FailCode::Differs.into());
    let counted = |dry_run| {
        let (receiver, _) = after(&[(FrameKind::Failed, differs.clone())], Rules { dry_run, ..by_digest() });
        (receiver.totals().kept, receiver.totals().failed)
    };
    assert_eq!((counted(true), counted(false)), ((1, 0), (0, 1)));
}
