use proptest::prelude::*;

use super::pair::{Pipes, Seen, pull, push};
use super::{path, said, tree};
use crate::error::{Abort, AbortCode, SessionError};
use crate::failure::{FailCode, Failure};
use crate::file::{FileEvent, FileReceiver, FileSender, ReceiveLimits, Side};
use crate::handshake::Acceptor;
use crate::manifest::ShownPath;
use crate::request::{CopyScope, Push};
use crate::store::{Ending, MemorySource, MemoryStore};

fn limits() -> ReceiveLimits {
    ReceiveLimits { window: 1 << 20, ..ReceiveLimits::default() }
}

/// Checks that both sides report this one failure, each from its point of view.
fn assert_one_failure(seen: &Seen, name: &str, code: FailCode, at: Side) {
    let other = if at == Side::Here { Side::Peer } else { Side::Here };
    assert_eq!(Seen::failures(&seen.sender), [(name.to_owned(), code, at)]);
    assert_eq!(Seen::failures(&seen.receiver), [(name.to_owned(), code, other)]);
}

#[test]
fn a_source_that_changes_fails_alone_and_leaves_the_old_target() {
    let sent = tree(&[("a", 5), ("changing", 2_000_000), ("z", 5)]);
    let mut store = MemoryStore { tree: tree(&[("changing", 4)]), ..MemoryStore::default() };
    let mut source = MemorySource { touched: vec![path("changing")], ..MemorySource::new(sent) };
    let seen = push(&mut source, &mut store, limits(), Pipes::WIDE);
    assert_one_failure(&seen, "changing", FailCode::SourceChanged, Side::Here);
    assert_eq!((seen.totals().files, seen.totals().failed), (2, 1));
    assert_eq!(store.tree[&path("changing")].content.len(), 4);
    assert!(store.partial.is_empty(), "its content is of no moment");
}

#[test]
fn a_source_that_ends_early_or_cannot_be_read_fails_alone() {
    let sent = tree(&[("short", 1_500_000), ("unreadable", 800_000), ("z", 5)]);
    let mut source = MemorySource::new(sent);
    source.truncated.insert(path("short"), 1_000_000);
    source.unreadable.insert(path("unreadable"), 0);
    let mut store = MemoryStore::default();
    let seen = push(&mut source, &mut store, limits(), Pipes { seed: 8, step: 100_000 });
    let failed = [
        ("short".to_owned(), FailCode::SourceChanged, Side::Here),
        ("unreadable".to_owned(), FailCode::Io, Side::Here),
    ];
    assert_eq!(Seen::failures(&seen.sender), failed);
    assert_eq!(store.tree.keys().collect::<Vec<_>>(), [&path("z")]);
}

#[test]
fn small_files_that_cannot_be_opened_fail_alone_though_their_answers_are_in_flight() {
    let mut source = MemorySource::new(tree(&[("a", 5), ("b", 6), ("c", 2_000_000), ("d", 7)]));
    source.closed = vec![path("a"), path("c"), path("d")];
    let mut store = MemoryStore::default();
    let seen = push(&mut source, &mut store, limits(), Pipes { seed: 3, step: 80 });
    let failed: Vec<String> = Seen::failures(&seen.receiver).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(failed, ["a", "c", "d"]);
    assert_eq!((seen.totals().files, seen.totals().failed), (1, 3));
}

#[test]
fn items_that_cannot_be_sent_are_reported_on_both_sides() {
    let mut source = MemorySource::new(tree(&[("ok", 1)]));
    source.skipped.push((ShownPath::new(b"srv/\x1b[2J"), FailCode::NotFound.into()));
    let seen = push(&mut source, &mut MemoryStore::default(), limits(), Pipes::WIDE);
    assert_one_failure(&seen, "srv/\\x1b[2J", FailCode::NotFound, Side::Here);
    assert_eq!(seen.totals().files, 1);
}

#[test]
fn what_no_copy_can_have_is_named_on_both_sides_and_is_no_failure() {
    let mut source = MemorySource::new(tree(&[("ok", 1)]));
    source.left_out.push((ShownPath::new(b"dev/null"), FailCode::SpecialFile.into()));
    let mut store = MemoryStore::default();
    let seen = push(&mut source, &mut store, limits(), Pipes::WIDE);
    assert_eq!((seen.totals().left_out, seen.totals().failed, seen.totals().files), (1, 0, 1));
    let named = |events: &[FileEvent]| {
        events.iter().any(|event| matches!(event, FileEvent::LeftOut(path, _) if path.to_string() == "dev/null"))
    };
    assert!(named(&seen.sender) && named(&seen.receiver));
    assert_eq!(store.ending, Some(Ending::Whole));
}

#[test]
fn a_store_learns_whether_all_of_a_copy_arrived() {
    let ending = |mut source: MemorySource, forbidden| {
        let mut store = MemoryStore { forbidden, ..MemoryStore::default() };
        push(&mut source, &mut store, limits(), Pipes::WIDE);
        store.ending
    };
    let source = || MemorySource::new(tree(&[("a", 5)]));
    let skipped = vec![(ShownPath::new(b"b"), FailCode::NotFound.into())];
    assert_eq!(ending(source(), Vec::new()), Some(Ending::Whole));
    assert_eq!(ending(MemorySource::default(), Vec::new()), Some(Ending::Whole), "nothing was to come");
    assert_eq!(ending(source(), vec![path("a")]), Some(Ending::Lacking));
    assert_eq!(ending(MemorySource { skipped, ..source() }, Vec::new()), Some(Ending::Lacking));
}

#[test]
fn forbidden_targets_fail_alone_and_a_forbidden_directory_with_all_in_it() {
    let sent = tree(&[("a", 3_000_000), ("d/", 0), ("d/e/", 0), ("d/e/f", 4), ("d/x", 9), ("z", 5)]);
    let forbidden = vec![path("a"), path("d")];
    let mut store = MemoryStore { forbidden, ..MemoryStore::default() };
    let seen = push(&mut MemorySource::new(sent), &mut store, limits(), Pipes { seed: 2, step: 50_000 });
    let codes: Vec<_> = Seen::failures(&seen.receiver).into_iter().map(|(name, code, _)| (name, code)).collect();
    let expected = [
        ("a", FailCode::PermissionDenied),
        ("d", FailCode::PermissionDenied),
        ("d/e", FailCode::ParentFailed),
        ("d/e/f", FailCode::ParentFailed),
        ("d/x", FailCode::ParentFailed),
    ];
    assert_eq!(codes, expected.map(|(name, code)| (name.to_owned(), code)));
    assert_eq!((seen.totals().files, seen.totals().failed), (1, 5));
    assert_eq!(store.tree.keys().collect::<Vec<_>>(), [&path("z")]);
}

#[test]
fn a_refused_file_stops_early() {
    let mut store = MemoryStore { forbidden: vec![path("big")], ..MemoryStore::default() };
    let mut source = MemorySource::new(tree(&[("big", 40_000_000), ("z", 1)]));
    let seen = push(&mut source, &mut store, limits(), Pipes { seed: 2, step: 1 << 20 });
    assert_one_failure(&seen, "big", FailCode::PermissionDenied, Side::Peer);
    assert!(seen.most_ahead < 4_000_000);
}

#[test]
fn files_over_the_limit_fail_alone() {
    let sent = tree(&[("big", 1001), ("fits", 1000)]);
    let limits = ReceiveLimits { file_size: 1000, ..limits() };
    let seen = push(&mut MemorySource::new(sent), &mut MemoryStore::default(), limits, Pipes::WIDE);
    assert_one_failure(&seen, "big", FailCode::TooLarge, Side::Peer);
}

#[test]
fn a_commit_that_fails_at_once_or_later_is_never_reported_as_verified() {
    for deferred in [false, true] {
        let sent = tree(&[("d/", 0), ("d/bad", 300_000), ("d/good", 5)]);
        let mut store = MemoryStore { deferred, uncommittable: vec![path("d/bad")], ..MemoryStore::default() };
        let seen = push(&mut MemorySource::new(sent), &mut store, limits(), Pipes { seed: 6, step: 40_000 });
        assert_one_failure(&seen, "d/bad", FailCode::Io, Side::Peer);
        assert_eq!((seen.totals().files, seen.totals().directories), (1, 1));
        assert!(!store.tree.contains_key(&path("d/bad")));
    }
}

#[test]
fn a_full_disk_ends_the_session_and_keeps_the_partial_file() {
    let sent = tree(&[("a", 10), ("b", 2_000_000), ("c", 10)]);
    let mut store = MemoryStore { capacity: Some(1_000_000), ..MemoryStore::default() };
    let seen = push(&mut MemorySource::new(sent.clone()), &mut store, limits(), Pipes { seed: 4, step: 60_000 });
    assert!(matches!(&seen.receiver_error, Some(SessionError::Store(Failure { code: FailCode::NoSpace, .. }))));
    let Some(SessionError::PeerAborted(Abort { code: AbortCode::NoSpace, message })) = &seen.sender_error else {
        panic!("{:?}", seen.sender_error)
    };
    assert!(message.contains("memory store is full"), "{message}");
    assert_eq!(Seen::failures(&seen.sender), [("b".to_owned(), FailCode::NoSpace, Side::Peer)]);
    assert_eq!(store.tree.keys().collect::<Vec<_>>(), [&path("a")]);
    let partial = &store.partial[&path("b")];
    assert!(partial.len() > 900_000 && sent[&path("b")].content.starts_with(partial));
}

#[test]
fn files_complete_when_the_peer_left_count() {
    let mut source = MemorySource::new(tree(&[("a", 10), ("b", 200_000)]));
    let mut sender = FileSender::push(Push::default());
    let mut bytes = sender.first_frame().to_vec();
    sender.handle_written(bytes.len());
    bytes.extend(said(&mut sender, &mut source));
    bytes.truncate(50_000);
    let (used, open) = Acceptor::new().handle_received(&bytes).unwrap();
    let mut receiver = FileReceiver::answer(&open.unwrap(), limits());
    let mut store = MemoryStore { deferred: true, commits_itself: true, ..MemoryStore::default() };
    receiver.handle_received(&mut store, &bytes[used..]).unwrap();
    assert_eq!(receiver.totals().files, 0, "the commit is still under way");
    assert_eq!(receiver.handle_end(&mut store), Err(SessionError::PeerLeft));
    assert_eq!(receiver.totals().files, 1);
    let events = std::iter::from_fn(|| receiver.poll_event());
    assert!(
        events
            .into_iter()
            .any(|event| matches!(event, crate::FileEvent::Verified(entry, ..) if entry.path == path("a")))
    );
    assert_eq!(store.tree.keys().collect::<Vec<_>>(), [&path("a")]);
}

#[test]
fn a_peer_that_leaves_is_no_success_and_partial_files_stay() {
    let mut source = MemorySource::new(tree(&[("a", 100_000)]));
    let mut sender = FileSender::push(Push::default());
    let mut bytes = sender.first_frame().to_vec();
    sender.handle_written(bytes.len());
    bytes.extend(said(&mut sender, &mut source));
    bytes.truncate(50_000);
    let (used, open) = Acceptor::new().handle_received(&bytes).unwrap();
    let mut receiver = FileReceiver::answer(&open.unwrap(), limits());
    let mut store = MemoryStore::default();
    receiver.handle_received(&mut store, &bytes[used..]).unwrap();
    assert_eq!(receiver.handle_end(&mut store), Err(SessionError::PeerLeft));
    assert_eq!(sender.handle_end(), Err(SessionError::PeerLeft));
    assert_eq!(store.ending, Some(Ending::Lacking));
    assert!(store.partial.contains_key(&path("a")) && store.tree.is_empty());
    assert!(receiver.is_over() && sender.is_over());
}

#[test]
fn a_cancelled_side_tells_the_other() {
    let mut source = MemorySource::new(tree(&[("a", 900_000)]));
    let mut sender = FileSender::push(Push::default());
    let mut bytes = sender.first_frame().to_vec();
    sender.handle_written(bytes.len());
    let piece = sender.poll_write(&mut source).to_vec();
    sender.handle_written(piece.len());
    bytes.extend(piece);
    sender.cancel(Abort { code: AbortCode::Cancelled, message: "interrupted".to_owned() });
    bytes.extend_from_slice(sender.poll_write(&mut source));
    let (used, open) = Acceptor::new().handle_received(&bytes).unwrap();
    let mut receiver = FileReceiver::answer(&open.unwrap(), limits());
    let mut store = MemoryStore::default();
    let error = receiver.handle_received(&mut store, &bytes[used..]).unwrap_err();
    assert_eq!(error.to_string(), "the peer ended the session: stopped: interrupted");
    assert!(source.is_idle());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// For any fault, both sides end and agree. Files with final names have the sent content.
    #[test]
    fn faults_never_leave_wrong_content(
        sizes in proptest::collection::vec(0usize..400_000, 1..8),
        faults in proptest::collection::vec((0usize..8, 0u8..5), 0..5),
        seed in any::<u64>(),
        step in 1000u64..300_000,
        capacity in proptest::option::of(0u64..2_000_000),
        deferred in any::<bool>(),
    ) {
        let names: Vec<String> = (0..sizes.len()).map(|index| format!("d/{index}")).collect();
        let mut entries: Vec<(&str, usize)> = names.iter().map(String::as_str).zip(sizes.iter().copied()).collect();
        entries.push(("d/", 0));
        let sent = tree(&entries);
        let mut source = MemorySource::new(sent.clone());
        let mut store = MemoryStore { capacity, deferred, ..MemoryStore::default() };
        for (file, fault) in faults {
            let file = path(&format!("d/{file}"));
            match fault {
                0 => source.touched.push(file),
                1 => drop(source.truncated.insert(file, 50_000)),
                2 => drop(source.unreadable.insert(file, 100_000)),
                3 => store.forbidden.push(file),
                _ => store.forbidden.push(path("d")),
            }
        }
        let request = CopyScope { paths: vec![path("d")], recursive: true, ..CopyScope::default() };
        let seen = pull(request, &mut source, &mut store, limits(), Pipes { seed, step });
        if seen.receiver_error.is_none() {
            let totals = seen.totals();
            prop_assert_eq!(totals.files + totals.failed + totals.directories, sent.len() as u64);
        }
        store.finish_commits();
        for (path, file) in store.tree.iter().filter(|(path, _)| path.components().len() > 1) {
            prop_assert_eq!(&file.content, &sent[path].content);
        }
    }
}
