use std::collections::BTreeMap;

use proptest::prelude::*;

use super::pair::{Pipes, Seen, pull, push};
use super::{path, said, tree};
use crate::figures::Figures;
use crate::file::{FileEvent, FileReceiver, FileSender, ReceiveLimits, Totals};
use crate::handshake::Acceptor;
use crate::integrity::Digest;
use crate::path_rules::RelPath;
use crate::request::{CopyScope, Push};
use crate::store::{MemoryFile, MemorySource, MemoryStore};

const LIMITS: ReceiveLimits =
    ReceiveLimits { window: 1 << 20, file_size: u64::MAX, bytes: u64::MAX, entries: u64::MAX };

fn copy(tree: BTreeMap<RelPath, MemoryFile>, pipes: Pipes) -> (Seen, MemoryStore) {
    let mut store = MemoryStore::default();
    let seen = push(&mut MemorySource::new(tree), &mut store, LIMITS, pipes);
    (seen, store)
}

#[test]
fn a_tree_arrives_whole_with_modes_and_times() {
    let mut sent = tree(&[("a/", 0), ("a/b/", 0), ("a/b/deep", 3_000_000), ("a/empty", 0), ("top", 17)]);
    sent.get_mut(&path("a/b")).unwrap().mode = 0o500;
    sent.get_mut(&path("a/b/deep")).unwrap().mtime.nanos = 999_999_999;
    let (seen, store) = copy(sent.clone(), Pipes::WIDE);
    assert_eq!(store.tree, sent);
    assert_eq!(seen.totals(), Totals { files: 3, bytes: 3_000_017, directories: 2, ..Totals::default() });
    let digest = Digest::of(&sent[&path("top")].content);
    for events in [&seen.sender, &seen.receiver] {
        assert!(events.iter().any(|event| matches!(event, FileEvent::Verified(entry, verified, _)
            if entry.path == path("top") && *verified == digest)));
    }
}

#[test]
fn files_of_unknown_size_arrive_with_the_size_that_they_had() {
    let sent = tree(&[("a", 0), ("b", 1), ("c", 256 << 10), ("d", (700 << 10) + 1), ("e", 5)]);
    let mut source =
        MemorySource { streamed: vec![path("a"), path("b"), path("c"), path("d")], ..MemorySource::new(sent.clone()) };
    let mut store = MemoryStore::default();
    let seen = push(&mut source, &mut store, LIMITS, Pipes { seed: 5, step: 90_000 });
    assert_eq!(store.tree, sent);
    assert_eq!(seen.totals().bytes, sent.values().map(|file| file.content.len() as u64).sum::<u64>());
    for events in [&seen.sender, &seen.receiver] {
        let sizes: Vec<u64> = events
            .iter()
            .filter_map(|event| match event {
                FileEvent::Verified(entry, ..) => Some(entry.size),
                _ => None,
            })
            .collect();
        assert_eq!(sizes, [0, 1, 256 << 10, (700 << 10) + 1, 5]);
    }
}

#[test]
fn both_sides_learn_each_others_figures() {
    use farhaul_units::Duration;
    let sent = tree(&[("a", 70_000), ("b", 3)]);
    let here = Figures { packets_sent: Some(50), disk: Some(Duration::from_millis(3)), ..Figures::default() };
    let there =
        Figures { elapsed: Duration::from_secs(2), cpu_user: Some(Duration::from_secs(1)), ..Figures::default() };
    let mut source = MemorySource { figures: here, ..MemorySource::new(sent) };
    let mut store = MemoryStore { figures: there, ..MemoryStore::default() };
    for pushed in [true, false] {
        let seen = match pushed {
            true => push(&mut source, &mut store, LIMITS, Pipes::WIDE),
            false => {
                let request = CopyScope { paths: vec![RelPath::root()], recursive: true, ..CopyScope::default() };
                pull(
                    request,
                    &mut MemorySource { figures: here, ..MemorySource::new(source.tree.clone()) },
                    &mut store,
                    LIMITS,
                    Pipes::WIDE,
                )
            }
        };
        let bytes = seen.totals().bytes;
        assert_eq!(seen.figures, (Some(Figures { bytes, ..there }), Some(Figures { bytes, ..here })));
    }
}

#[test]
fn small_files_need_one_round_trip() {
    let sent = tree(&[("d/", 0), ("d/a", 5_000), ("d/have", 7), ("top", 400_000)]);
    let mut store = MemoryStore { tree: tree(&[("d/", 0), ("d/have", 7)]), ..MemoryStore::default() };
    let (mut source, mut sender) = (MemorySource::new(sent.clone()), FileSender::push(Push::default()));
    let (mut forth, mut back) = (Vec::new(), Vec::new());
    loop {
        let pending = sender.poll_write(&mut source);
        let count = pending.len();
        forth.extend_from_slice(pending);
        sender.handle_written(count);
        if count == 0 {
            break;
        }
    }
    let (used, open) = Acceptor::new().handle_received(&forth).unwrap();
    let mut receiver = FileReceiver::answer(&open.unwrap(), LIMITS);
    assert_eq!(receiver.handle_received(&mut store, &forth[used..]), Ok(forth.len() - used));
    assert!(receiver.is_over() && receiver.error().is_none(), "everything was in flight: {receiver:?}");
    back.extend_from_slice(receiver.poll_write());
    assert_eq!(sender.handle_received(&back), Ok(back.len()));
    assert!(sender.is_over() && sender.error().is_none());
    assert_eq!((store.tree, sender.totals().files + sender.totals().kept), (sent, 3));
}

#[test]
fn an_empty_copy_is_done_at_once() {
    let (seen, store) = copy(BTreeMap::new(), Pipes::WIDE);
    assert_eq!(seen.totals(), Totals::default());
    assert!(store.tree.is_empty());
}

#[test]
fn existing_targets_are_replaced_whole() {
    let sent = tree(&[("d/", 0), ("d/f", 10)]);
    let mut store = MemoryStore { tree: tree(&[("d/", 0), ("d/f", 99), ("d/other", 5)]), ..MemoryStore::default() };
    push(&mut MemorySource::new(sent.clone()), &mut store, LIMITS, Pipes::WIDE).totals();
    assert_eq!(store.tree[&path("d/f")], sent[&path("d/f")]);
    assert!(store.tree.contains_key(&path("d/other")));
}

#[test]
fn a_pull_brings_the_requested_paths() {
    let sent = tree(&[("data/", 0), ("data/x", 2_000_000), ("notes", 3)]);
    let mut store = MemoryStore::default();
    let request =
        CopyScope { paths: vec![path("srv/data"), path("home/notes")], recursive: true, ..CopyScope::default() };
    let seen = pull(request, &mut MemorySource::new(sent.clone()), &mut store, LIMITS, Pipes::WIDE);
    assert_eq!(seen.totals().files, 2);
    assert_eq!(store.tree, sent);
    assert_eq!(seen.receiver[0], FileEvent::Accepted);
}

#[test]
fn a_store_that_works_in_the_background_holds_the_sender_to_the_window() {
    let sent = tree(&[("d/", 0), ("d/big", 9_000_000), ("d/small", 1)]);
    let mut store = MemoryStore { deferred: true, ..MemoryStore::default() };
    let seen = push(&mut MemorySource::new(sent.clone()), &mut store, LIMITS, Pipes { seed: 3, step: 400_000 });
    assert_eq!(seen.totals().files, 2);
    assert_eq!(store.tree, sent);
    assert!(seen.most_ahead <= 1 << 20, "{} bytes ahead of the store", seen.most_ahead);
}

#[test]
fn a_store_that_commits_itself_needs_nothing_of_its_driver() {
    let sent = tree(&[("d/", 0), ("d/a", 10), ("d/b", 20), ("e", 30)]);
    let mut source = MemorySource::new(sent.clone());
    let mut sender = FileSender::push(Push::default());
    let bytes = said(&mut sender, &mut source);
    let (used, open) = Acceptor::new().handle_received(&bytes).unwrap();
    let mut receiver = FileReceiver::answer(&open.unwrap(), LIMITS);
    let mut store = MemoryStore { deferred: true, commits_itself: true, ..MemoryStore::default() };
    assert_eq!(receiver.handle_received(&mut store, &bytes[used..]).unwrap(), bytes.len() - used);
    let answers = receiver.poll_write().to_vec();
    receiver.handle_written(answers.len());
    sender.handle_received(&answers).unwrap();
    let end = said(&mut sender, &mut source);
    assert_eq!(receiver.handle_received(&mut store, &end).unwrap(), end.len());
    assert!(receiver.is_over() && receiver.error().is_none());
    assert_eq!((receiver.totals().files, receiver.totals().directories), (3, 1));
    assert_eq!(store.tree, sent);
}

#[test]
fn many_small_files_need_no_answer_one_by_one() {
    let names: Vec<String> = (0..9000).map(|index| format!("f{index:05}")).collect();
    let sent = tree(&names.iter().map(|name| (name.as_str(), 3)).collect::<Vec<_>>());
    let (seen, store) = copy(sent.clone(), Pipes::WIDE);
    assert_eq!(seen.totals().files, 9000);
    assert_eq!(store.tree, sent);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_tree_survives_any_fragmentation(
        picks in proptest::collection::btree_map("[a-c]{1,2}(/[a-c]){0,3}", (0usize..3000, any::<u32>()), 0..12),
        seed in any::<u64>(),
        step in 1u64..9000,
        deferred in any::<bool>(),
        pulls in any::<bool>(),
    ) {
        // Every prefix of a path is a directory, and leaves are files.
        let mut sent = BTreeMap::new();
        for (name, (size, mode)) in &picks {
            let leaf = path(name);
            let mut parent = RelPath::root();
            for component in &leaf.components()[..leaf.components().len() - 1] {
                parent.push(component.clone()).unwrap();
                sent.insert(parent.clone(), MemoryFile { mode: mode & 0o777, ..MemoryFile::directory() });
            }
            sent.entry(leaf).or_insert_with(|| MemoryFile::file(vec![7; *size]));
        }
        let mut store = MemoryStore { deferred, ..MemoryStore::default() };
        let pipes = Pipes { seed, step };
        let mut source = MemorySource::new(sent.clone());
        let seen = if pulls {
            let request = CopyScope { paths: vec![RelPath::root()], recursive: true, ..CopyScope::default() };
            pull(request, &mut source, &mut store, LIMITS, pipes)
        } else {
            push(&mut source, &mut store, LIMITS, pipes)
        };
        prop_assert_eq!(seen.totals().failed, 0);
        prop_assert_eq!(store.tree, sent);
    }
}
