//! Chunks that a broken copy left, damaged chunks, files that change, holes, links.

use proptest::prelude::*;

use super::pair::{EMPTY_DIGEST, Pipes, Seen, pull, push, push_damaged};
use super::{path, tree};
use crate::failure::FailCode;
use crate::file::{FileEvent, ReceiveLimits, Side, Totals};
use crate::integrity::CHUNK_LEN;
use crate::manifest::{EntryId, EntryKind, Properties};
use crate::path_rules::RelPath;
use crate::request::{CopyScope, Push};
use crate::rules::{Kept, Rules};
use crate::store::{Change, MemoryFile, MemorySource, MemoryStore};

const CHUNK: usize = CHUNK_LEN as usize;

fn limits() -> ReceiveLimits {
    ReceiveLimits { window: 4 << 20, ..ReceiveLimits::default() }
}

fn copy(source: &mut MemorySource, store: &mut MemoryStore) -> Seen {
    push(source, store, limits(), Pipes { seed: 7, step: 300_000 })
}

#[test]
fn chunks_of_a_broken_copy_are_compared_and_not_sent() {
    let sent = tree(&[("a", 10), ("big", 5 * CHUNK + 77)]);
    let mut before = sent[&path("big")].content[..4 * CHUNK + 5000].to_vec();
    before[2 * CHUNK + 9] ^= 1;
    let partial = [(path("big"), before)].into();
    let mut store = MemoryStore { partial, ..MemoryStore::default() };
    let seen = copy(&mut MemorySource::new(sent.clone()), &mut store);
    assert_eq!(seen.totals().files, 2);
    assert_eq!(store.tree, sent);
    assert!(store.partial.is_empty());
    // Of the six chunks, 0, 1 and 3 are right; 2 is damaged, 4 has an end only, 5 is missing.
    assert_eq!((seen.sent, seen.spared), (10 + 2 * CHUNK_LEN + 77, 3 * CHUNK_LEN));
}

#[test]
fn a_copy_of_a_changed_source_keeps_the_chunks_that_are_the_same() {
    let mut sent = tree(&[("big", 4 * CHUNK)]);
    let before = sent[&path("big")].content.clone();
    let content = &mut sent.get_mut(&path("big")).unwrap().content;
    content[CHUNK] ^= 1;
    content.extend([5; 100]);
    let mut store = MemoryStore { partial: [(path("big"), before)].into(), ..MemoryStore::default() };
    let seen = copy(&mut MemorySource::new(sent.clone()), &mut store);
    assert_eq!(store.tree, sent);
    // The first chunk was in flight before the answer.
    assert_eq!((seen.sent, seen.spared), (2 * CHUNK_LEN + 100, 2 * CHUNK_LEN));
}

#[test]
fn files_that_are_there_are_neither_sent_nor_replaced() {
    let sent = tree(&[("d/", 0), ("d/changed", 30), ("d/same", 4_000_000), ("new", 9)]);
    let mut there = sent.clone();
    there.remove(&path("new"));
    there.get_mut(&path("d/changed")).unwrap().mtime.seconds += 1;
    let mut store = MemoryStore { tree: there, skips: true, ..MemoryStore::default() };
    let seen = copy(&mut MemorySource::new(sent.clone()), &mut store);
    let expected = Totals { files: 2, bytes: 39, kept: 1, kept_bytes: 4_000_000, directories: 1, ..Totals::default() };
    assert_eq!((seen.totals(), seen.sent), (expected, 39));
    assert_eq!(store.tree, sent);
    for events in [&seen.sender, &seen.receiver] {
        let change = |name: &str| {
            events.iter().find_map(|event| match event {
                FileEvent::Verified(entry, _, change) | FileEvent::Kept(entry, change) if entry.path == path(name) => {
                    Some(*change)
                }
                _ => None,
            })
        };
        assert_eq!(change("d/changed"), Some(Change::Content));
        assert_eq!(change("d/same"), Some(Change::None));
        assert_eq!(change("new"), Some(Change::New));
    }
}

#[test]
fn a_small_file_that_was_sent_before_the_answer_may_turn_out_to_be_there() {
    let sent = tree(&[("a", 500), ("b", 600)]);
    let mut store = MemoryStore { tree: sent.clone(), skips: true, ..MemoryStore::default() };
    let seen = push(&mut MemorySource::new(sent.clone()), &mut store, limits(), Pipes { seed: 1, step: 90 });
    assert_eq!((seen.totals().kept, seen.totals().files, seen.totals().failed), (2, 0, 0));
    assert_eq!(store.tree, sent);
}

#[test]
fn damaged_chunks_come_again_alone() {
    let sent = tree(&[("a", 3000), ("big", 6 * CHUNK + 5), ("z", 4)]);
    let mut store = MemoryStore::default();
    let mut source = MemorySource::new(sent.clone());
    // The chunk 3 of the large file is damaged once, and the small file once.
    let seen = push_damaged(&mut source, &mut store, limits(), &[(3 * CHUNK_LEN + 5000, 1), (100, 1)]);
    assert_eq!(seen.totals().failed, 0);
    assert_eq!(store.tree, sent);
    assert_eq!(seen.sent, 6 * CHUNK_LEN + 3009 + CHUNK_LEN + 3000);
    for events in [&seen.sender, &seen.receiver] {
        let repaired: u64 =
            events.iter().map(|event| if let FileEvent::Repaired { chunks, .. } = event { *chunks } else { 0 }).sum();
        assert_eq!(repaired, 2);
    }
    assert_eq!(source.remembered(), 0);
}

#[test]
fn a_chunk_that_arrives_damaged_three_times_fails_its_file_with_the_offset() {
    let sent = tree(&[("big", 3 * CHUNK), ("z", 4)]);
    let mut store = MemoryStore::default();
    let seen = push_damaged(&mut MemorySource::new(sent), &mut store, limits(), &[(2 * CHUNK_LEN + 5, 9)]);
    assert_eq!(Seen::failures(&seen.receiver), [("big".to_owned(), FailCode::DigestMismatch, Side::Here)]);
    let said = format!("{:?}", seen.sender);
    assert!(said.contains("the MiB at offset 2097152 arrived damaged 3 times"), "{said}");
    assert_eq!(store.tree.keys().collect::<Vec<_>>(), [&path("z")]);
    assert!(store.partial.is_empty());
}

#[test]
fn the_damaged_digest_of_an_empty_file_comes_again() {
    let sent = tree(&[("a", 3), ("empty", 0), ("z", 4)]);
    let mut store = MemoryStore::default();
    let seen = push_damaged(&mut MemorySource::new(sent.clone()), &mut store, limits(), &[(EMPTY_DIGEST, 1)]);
    assert_eq!((seen.totals().failed, &store.tree), (0, &sent));
    let seen = push_damaged(&mut MemorySource::new(sent), &mut MemoryStore::default(), limits(), &[(EMPTY_DIGEST, 9)]);
    assert_eq!(Seen::failures(&seen.receiver), [("empty".to_owned(), FailCode::DigestMismatch, Side::Here)]);
}

#[test]
fn a_target_that_is_written_once_fails_with_the_first_damage() {
    let mut store = MemoryStore { writes_once: true, ..MemoryStore::default() };
    let seen = push_damaged(&mut MemorySource::new(tree(&[("a", 3000)])), &mut store, limits(), &[(100, 1)]);
    assert_eq!(Seen::failures(&seen.sender), [("a".to_owned(), FailCode::DigestMismatch, Side::Peer)]);
}

#[test]
fn a_file_that_changes_once_is_read_again_and_equal_chunks_are_kept() {
    let sent = tree(&[("changing", 3 * CHUNK), ("z", 5)]);
    let mut after = sent.clone();
    let file = after.get_mut(&path("changing")).unwrap();
    file.content[CHUNK + 3] ^= 1;
    file.content.extend([1; 10]);
    file.mtime.seconds += 1;
    let mut source = MemorySource { rewritten: [(path("changing"), file.clone())].into(), ..MemorySource::new(sent) };
    let mut store = MemoryStore::default();
    let seen = copy(&mut source, &mut store);
    assert_eq!(seen.totals().failed, 0);
    assert_eq!(store.tree, after);
    assert_eq!((seen.sent, seen.spared), (3 * CHUNK_LEN + 5 + CHUNK_LEN + 10, 2 * CHUNK_LEN));
}

#[test]
fn a_file_that_changes_all_the_time_is_taken_as_it_was_read_last_if_that_is_allowed() {
    let sent = tree(&[("log", 2 * CHUNK)]);
    let mut source = MemorySource { touched: vec![path("log")], ..MemorySource::new(sent.clone()) };
    let mut store = MemoryStore::default();
    let request = CopyScope {
        paths: vec![path("log")],
        rules: Rules { allow_changing: true, ..Rules::default() },
        ..CopyScope::default()
    };
    let seen = pull(request, &mut source, &mut store, limits(), Pipes::WIDE);
    assert_eq!(seen.totals().files, 1);
    assert_eq!(store.tree[&path("log")].content, sent[&path("log")].content);
}

#[test]
fn holes_are_not_sent() {
    let mut sent = tree(&[("disk", 9 * CHUNK + 100), ("small", 9000)]);
    sent.get_mut(&path("disk")).unwrap().content[4096..8 * CHUNK + 8192].fill(0);
    sent.get_mut(&path("small")).unwrap().content[4096..8192].fill(0);
    let sparse = vec![path("disk"), path("small")];
    let mut store = MemoryStore::default();
    let seen = copy(&mut MemorySource { sparse, ..MemorySource::new(sent.clone()) }, &mut store);
    assert_eq!(store.tree, sent);
    assert_eq!(seen.sent, 4096 + CHUNK_LEN + 100 - 8192 + 9000 - 4096);
}

fn link(kind: EntryKind, properties: Properties) -> MemoryFile {
    MemoryFile { kind, properties: Some(properties), ..MemoryFile::file(Vec::new()) }
}

#[test]
fn links_arrive_after_the_files_that_they_name() {
    let mut sent = tree(&[("d/", 0), ("d/first", 3 * CHUNK), ("d/small", 10)]);
    let has_links = Some(Properties { has_links: true, ..Properties::default() });
    sent.get_mut(&path("d/first")).unwrap().properties = has_links.clone();
    sent.get_mut(&path("d/small")).unwrap().properties = has_links;
    let hard = |id| link(EntryKind::HardLink, Properties { first_name: Some(EntryId(id)), ..Properties::default() });
    let soft = Properties { link_target: b"../x".to_vec(), ..Properties::default() };
    sent.insert(path("d/zz"), hard(1));
    sent.insert(path("e"), hard(2));
    sent.insert(path("f"), link(EntryKind::Symlink, soft));
    for deferred in [false, true] {
        let mut store = MemoryStore { deferred, ..MemoryStore::default() };
        let seen = copy(&mut MemorySource::new(sent.clone()), &mut store);
        assert_eq!(store.tree, sent);
        assert_eq!((seen.totals().links, seen.totals().files, seen.totals().failed), (3, 2, 0));
    }
    let mut store = MemoryStore { forbidden: vec![path("d/first")], ..MemoryStore::default() };
    let seen = copy(&mut MemorySource::new(sent.clone()), &mut store);
    let failed: Vec<String> = Seen::failures(&seen.sender).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(failed, ["d/first", "d/zz"], "a link never leads to a file of another copy");
    assert!(!store.tree.contains_key(&path("d/zz")) && store.tree.contains_key(&path("e")));
}

#[test]
fn a_pull_takes_links_only_if_it_keeps_them() {
    let mut sent = tree(&[("d/", 0)]);
    sent.insert(
        path("d/l"),
        link(EntryKind::Symlink, Properties { link_target: b"/etc".to_vec(), ..Properties::default() }),
    );
    for keep in [Kept::default(), Kept::ALL] {
        let rules = Rules { keep, ..Rules::default() };
        let request = CopyScope { paths: vec![path("d")], recursive: true, rules, ..CopyScope::default() };
        let mut store = MemoryStore::default();
        let seen = pull(request, &mut MemorySource::new(sent.clone()), &mut store, limits(), Pipes::WIDE);
        assert_eq!(seen.receiver_error.is_none(), keep.symlinks, "{:?}", seen.receiver_error);
        assert_eq!(store.tree.contains_key(&path("d/l")), keep.symlinks);
    }
}

#[test]
fn surplus_entries_are_removed_last_and_only_after_a_whole_copy() {
    let there = tree(&[("old", 4), ("older", 5)]);
    for fails in [false, true] {
        let mut source = MemorySource::new(tree(&[("a", 5)]));
        if fails {
            source.skipped.push((crate::ShownPath::new(b"b"), FailCode::PermissionDenied.into()));
        }
        let surplus = vec![path("old"), path("older")];
        let mut store = MemoryStore { tree: there.clone(), surplus, ..MemoryStore::default() };
        let seen = copy(&mut source, &mut store);
        assert_eq!(seen.totals().deleted, if fails { 0 } else { 2 });
        assert_eq!(store.tree.contains_key(&path("old")), fails);
        let told = seen.sender.iter().filter(|event| matches!(event, FileEvent::Deleted(_))).count();
        assert_eq!(told as u64, seen.totals().deleted);
    }
}

#[test]
fn many_removals_and_failed_ones_reach_the_sender_and_the_end() {
    let names: Vec<String> = (0..4000).map(|index| format!("surplus-{index:04}")).collect();
    let there = tree(&names.iter().map(|name| (name.as_str(), 1)).collect::<Vec<_>>());
    let surplus: Vec<RelPath> = names.iter().map(|name| path(name)).collect();
    let forbidden = vec![path("surplus-0007"), path("surplus-3000")];
    let mut store = MemoryStore { tree: there, surplus, forbidden, ..MemoryStore::default() };
    let seen = copy(&mut MemorySource::new(tree(&[("a", 5)])), &mut store);
    assert_eq!((seen.totals().deleted, seen.totals().failed), (3998, 2));
    assert_eq!(store.tree.len(), 3);
}

#[test]
fn content_of_late_files_completes_the_directories_that_were_left() {
    let names: Vec<String> = (0..300).map(|index| format!("d{index:03}/f")).collect();
    let mut entries: Vec<(String, usize)> = names.iter().map(|name| (name.clone(), 20_000)).collect();
    entries.extend((0..300).map(|index| (format!("d{index:03}/"), 0)));
    let sent = tree(&entries.iter().map(|(name, size)| (name.as_str(), *size)).collect::<Vec<_>>());
    for deferred in [false, true] {
        let mut store = MemoryStore { deferred, ..MemoryStore::default() };
        let seen = copy(&mut MemorySource::new(sent.clone()), &mut store);
        assert_eq!(store.tree, sent, "modes and times of directories come after their files");
        assert_eq!(seen.totals().directories, 300);
    }
}

/// A request with a whole tree.
#[test]
fn a_push_says_its_rules() {
    let rules = Rules { keep: Kept::ALL, delete: Some(3), ..Rules::default() };
    let push = Push { rules: rules.clone(), ..Push::default() };
    let sender = crate::FileSender::push(push);
    let (_, open) = crate::Acceptor::new().handle_received(sender.first_frame()).unwrap();
    assert!(matches!(open.unwrap().request, crate::Request::Push(Push { rules: its, .. }) if its == rules));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    /// Whatever a broken copy left, and whatever is damaged in flight once, the tree arrives.
    #[test]
    fn any_remains_and_any_damage_end_in_the_same_tree(
        sizes in proptest::collection::vec(0usize..3 * CHUNK, 1..4),
        kept in proptest::collection::vec((0usize..3 * CHUNK, 0usize..3 * CHUNK), 4),
        damage in proptest::collection::vec(0u64..4 * CHUNK_LEN, 0..3),
        seed in any::<u64>(),
    ) {
        let names: Vec<String> = (0..sizes.len()).map(|index| format!("d/{index}")).collect();
        let mut entries: Vec<(&str, usize)> = names.iter().map(String::as_str).zip(sizes.iter().copied()).collect();
        entries.push(("d/", 0));
        let sent = tree(&entries);
        let mut store = MemoryStore::default();
        for (name, (len, wrong)) in names.iter().zip(kept) {
            let mut before = sent[&path(name)].content.clone();
            before.truncate(len);
            if let Some(byte) = before.get_mut(wrong) {
                *byte ^= 0x55;
            }
            store.partial.insert(path(name), before);
        }
        let damage: Vec<(u64, u8)> = damage.into_iter().map(|offset| (offset, 1)).collect();
        let _ = seed;
        let seen = push_damaged(&mut MemorySource::new(sent.clone()), &mut store, limits(), &damage);
        prop_assert_eq!(seen.totals().failed, 0);
        prop_assert_eq!(store.tree, sent);
    }
}

#[test]
fn the_root_of_a_pull_may_be_its_whole_content() {
    let sent = tree(&[("a", 1), ("b", 2)]);
    let rules = Rules { whole: true, delete: Some(5), ..Rules::default() };
    let request = CopyScope { paths: vec![RelPath::root()], recursive: true, rules, ..CopyScope::default() };
    let mut store = MemoryStore { surplus: vec![path("c")], tree: tree(&[("c", 1)]), ..MemoryStore::default() };
    let seen = pull(request, &mut MemorySource::new(sent.clone()), &mut store, limits(), Pipes::WIDE);
    assert_eq!((seen.totals().deleted, store.tree), (1, sent));
}
