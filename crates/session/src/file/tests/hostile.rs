use proptest::prelude::*;

use super::{path, said};
use crate::error::{SessionError, Violation};
use crate::figures::Figures;
use crate::file::{FileReceiver, FileSender, ReceiveLimits};
use crate::frame_kind::FrameKind;
use crate::framing::put_frame;
use crate::handshake::{Accept, Open};
use crate::integrity::{ChunkDigest, Digest};
use crate::manifest::{Entry, EntryKind, Mtime};
use crate::path_rules::RelPath;
use crate::request::{CopyScope, Push, Request};
use crate::store::{MemoryFile, MemorySource, MemoryStore};

/// Frames of a hostile peer.
#[derive(Clone, Default)]
struct Script {
    bytes: Vec<u8>,
    entries: u64,
}

impl Script {
    fn frame(mut self, kind: FrameKind, body: &[u8]) -> Self {
        put_frame(&mut self.bytes, kind, |out| out.extend_from_slice(body));
        self
    }

    fn entry(mut self, name: &str, kind: EntryKind, size: u64) -> Self {
        let entry = Entry::new(path(name), kind, size, 0o644, Mtime::default());
        put_frame(&mut self.bytes, FrameKind::Entry, |out| entry.encode(out));
        self.entries += 1;
        self
    }

    /// The start of the content of the last entry, with this size.
    fn content(self, size: u64) -> Self {
        let id = self.entries - 1;
        self.content_of(id, size)
    }

    fn content_of(self, id: u64, size: u64) -> Self {
        self.frame(FrameKind::Content, &[&id.to_be_bytes()[..], &size.to_be_bytes(), &[0; 12]].concat())
    }

    /// A file whose content may follow.
    fn begun(self, name: &str, size: u64) -> Self {
        self.entry(name, EntryKind::File, size).content(size)
    }

    fn file(self, name: &str, content: &[u8]) -> Self {
        let this = self.begun(name, content.len() as u64);
        let this = if content.is_empty() { this } else { this.frame(FrameKind::Data, content) };
        this.frame(FrameKind::Digest, Digest::of(content).as_bytes())
    }

    /// An END that claims this many bytes of content.
    fn end(self, entries: u64, skipped: u64, bytes: u64) -> Self {
        let mut body = [entries.to_be_bytes(), skipped.to_be_bytes()].concat();
        Figures { bytes, ..Figures::default() }.encode(&mut body);
        self.frame(FrameKind::End, &body)
    }

    /// An ENTRY with a raw path.
    fn raw_entry(self, names: &[&[u8]]) -> Self {
        let mut body = vec![0; 25];
        body.extend_from_slice(&u16::try_from(names.len()).unwrap().to_be_bytes());
        for name in names {
            body.push(u8::try_from(name.len()).unwrap());
            body.extend_from_slice(name);
        }
        self.frame(FrameKind::Entry, &body)
    }
}

fn limits() -> ReceiveLimits {
    ReceiveLimits { window: 1 << 20, entries: 5000, ..ReceiveLimits::default() }
}

fn receiver() -> FileReceiver {
    FileReceiver::answer(&Open::new(Request::Push(Push::default()), 0), limits())
}

fn puller(paths: &[&str], recursive: bool) -> FileReceiver {
    let paths = paths.iter().map(|text| path(text)).collect();
    FileReceiver::pull(CopyScope { paths, recursive, ..CopyScope::default() }, limits()).unwrap()
}

fn accepted() -> Script {
    let mut script = Script::default();
    Accept::new(0).put(&mut script.bytes);
    script
}

/// Passes everything to the receiver, as a driver does. Returns the result and the store.
fn feed(mut receiver: FileReceiver, script: &Script) -> (Result<(), SessionError>, MemoryStore) {
    let mut store = MemoryStore::default();
    let mut rest = &script.bytes[..];
    while !rest.is_empty() {
        match receiver.handle_received(&mut store, rest) {
            Ok(used) => rest = &rest[used..],
            Err(error) => {
                assert!(store.is_idle(), "a violation leaves nothing open");
                assert!(receiver.is_over());
                return (Err(error), store);
            }
        }
        let pending = receiver.poll_write().len();
        assert!(pending < 100_000, "answers pile up");
        receiver.handle_written(pending);
        while receiver.poll_event().is_some() {}
    }
    (Ok(()), store)
}

fn violation(receiver: FileReceiver, script: Script) -> Violation {
    let (outcome, store) = feed(receiver, &script);
    assert!(store.tree.is_empty(), "nothing may stand: {:?}", store.tree);
    match outcome {
        Err(SessionError::PeerMisbehaved(violation)) => violation,
        other => panic!("no violation: {other:?}"),
    }
}

/// Attack D1: names that leave the target.
#[test]
fn path_escapes_are_refused() {
    let attacks: &[&[&[u8]]] =
        &[&[], &[b".."], &[b"a", b"..", b"b"], &[b""], &[b"/etc"], &[b"a/../b"], &[b"."], &[b"x\0y"]];
    for names in attacks {
        let violation = violation(receiver(), Script::default().raw_entry(names));
        assert!(violation.to_string().contains("path refused"), "{violation}");
    }
    let deep = vec![&b"d"[..]; 1025];
    violation(receiver(), Script::default().raw_entry(&deep));
}

/// Attack D3: files that this side did not request.
#[test]
fn files_not_requested_are_refused() {
    let script = accepted().entry(".bashrc", EntryKind::File, 0);
    assert_eq!(violation(puller(&["x/data"], true), script), Violation::NotRequested(".bashrc".to_owned()));
    let script = accepted().entry("data", EntryKind::Directory, 0);
    assert_eq!(violation(puller(&["x/data"], false), script), Violation::NotRequested("data".to_owned()));
}

/// Attack D3 in a copy between two other hosts: the receiver was asked to take what a third side named.
#[test]
fn a_push_on_behalf_of_a_third_side_brings_what_that_asked_for_and_nothing_else() {
    let open = Open::new(Request::Push(Push { target_is_directory: true, ..Push::default() }), 0);
    let receiver = |asked: CopyScope| FileReceiver::answer_only(&open, &asked, limits());
    let one = || CopyScope { paths: vec![path("a")], ..CopyScope::default() };
    let tree = || CopyScope { recursive: true, ..one() };
    let matching = || CopyScope { paths: vec![path("*.gz")], patterns: true, ..CopyScope::default() };
    let single = || CopyScope { single: true, ..matching() };
    let content = || CopyScope { paths: vec![RelPath::root()], ..CopyScope::default() };
    for (asked, script, refused) in [
        (one(), Script::default().entry(".ssh", EntryKind::Directory, 0), ".ssh"),
        (one(), Script::default().entry("a", EntryKind::Directory, 0), "a"),
        (tree(), Script::default().entry(".bashrc", EntryKind::File, 0), ".bashrc"),
        (matching(), Script::default().entry("a", EntryKind::File, 0), "a"),
        (matching(), Script::default().entry("a.gz", EntryKind::Directory, 0), "a.gz"),
        (content(), Script::default().entry(".profile", EntryKind::File, 0), ".profile"),
    ] {
        assert_eq!(violation(receiver(asked), script), Violation::NotRequested(refused.to_owned()));
    }
    let tree =
        feed(receiver(tree()), &Script::default().entry("a", EntryKind::Directory, 0).file("a/b", b"b").end(2, 0, 1));
    assert_eq!((tree.0, tree.1.tree.len()), (Ok(()), 2));
    // A target that takes one entry takes one, whatever matches.
    let (outcome, store) = feed(receiver(single()), &Script::default().file("a.gz", b"a").file("b.gz", b"b"));
    assert_eq!(outcome, Err(Violation::NotRequested("b.gz".to_owned()).into()));
    assert_eq!(store.tree.len(), 1);
}

#[test]
fn a_pattern_admits_the_names_that_match_it_and_no_others() {
    let pull = |patterns| CopyScope { paths: vec![path("x/*.gz")], patterns, ..CopyScope::default() };
    let receiver = |patterns| FileReceiver::pull(pull(patterns), limits()).unwrap();
    let (outcome, store) = feed(receiver(true), &accepted().file("a.gz", b"a").file("b.gz", b"b").end(2, 0, 2));
    assert_eq!((outcome, store.tree.len()), (Ok(()), 2));
    for (name, patterns) in [(".bashrc", true), ("a.gz.sh", true), (".a.gz", true), ("a.gz", false)] {
        let script = accepted().entry(name, EntryKind::File, 0);
        assert_eq!(violation(receiver(patterns), script), Violation::NotRequested(name.to_owned()));
    }
}

/// Attack D5: the same target twice.
#[test]
fn duplicates_are_refused() {
    let (outcome, store) = feed(receiver(), &Script::default().file("a", b"first").file("a", b"second"));
    assert_eq!(outcome, Err(Violation::EntryOrder("a".to_owned()).into()));
    assert_eq!(store.tree[&path("a")].content, b"first");
    let script = Script::default().entry("d", EntryKind::Directory, 0).entry("d/x/y", EntryKind::File, 0);
    let (outcome, _) = feed(receiver(), &script);
    assert_eq!(outcome, Err(Violation::EntryOrder("d/x/y".to_owned()).into()));
}

#[test]
fn data_must_have_exactly_the_announced_length() {
    let long = Script::default().begun("a", 3).frame(FrameKind::Data, b"four");
    assert!(matches!(violation(receiver(), long), Violation::Length { announced: 3, .. }));
    let short = Script::default().begun("a", 3).frame(FrameKind::Data, b"2.");
    let short = short.frame(FrameKind::Digest, Digest::of(b"2.").as_bytes());
    assert!(matches!(violation(receiver(), short), Violation::Length { received: 2, .. }));
}

#[test]
fn a_file_without_a_size_may_not_pass_the_limits_either() {
    let endless = || Script::default().begun("a", Entry::UNKNOWN_SIZE);
    let small = ReceiveLimits { file_size: 1000, ..limits() };
    let begin = |limits| FileReceiver::answer(&Open::new(Request::Push(Push::default()), 0), limits);
    let script =
        endless().frame(FrameKind::Data, &[0; 1001]).frame(FrameKind::Digest, Digest::of(&[0; 1001]).as_bytes());
    let (outcome, store) = feed(begin(small), &script.file("b", b"good").end(2, 0, 1005));
    assert_eq!((outcome, store.tree.keys().next()), (Ok(()), Some(&path("b"))), "the file fails alone");
    let mut store = MemoryStore { deferred: true, ..MemoryStore::default() };
    let chunk = ChunkDigest::of(0, &[0; 1 << 20]);
    let script = endless().frame(FrameKind::Data, &[0; 1 << 20]).frame(FrameKind::Chunk, chunk.as_bytes());
    let script = script.frame(FrameKind::Data, b"x");
    let error = receiver().handle_received(&mut store, &script.bytes).unwrap_err();
    assert_eq!(error, Violation::CreditExceeded.into());
    let directory = Script::default().entry("d", EntryKind::Directory, Entry::UNKNOWN_SIZE);
    assert!(matches!(violation(receiver(), directory), Violation::Malformed { kind: FrameKind::Entry, .. }));
}

#[test]
fn a_chunk_at_the_end_of_all_offsets_is_none() {
    let last = (u64::MAX.div_ceil(1 << 20) - 1).to_be_bytes();
    let begun = || Script::default().begun("a", Entry::UNKNOWN_SIZE);
    let script = begun().frame(FrameKind::Keep, &last);
    assert_eq!(violation(receiver(), script), Violation::UnknownEntry, "it was never known");
    let script = begun().frame(FrameKind::Seek, &last).frame(FrameKind::Zeros, &((1u64 << 20) - 1).to_be_bytes());
    let script = script.frame(FrameKind::Chunk, &[0; 32]).frame(FrameKind::Zeros, &1u64.to_be_bytes());
    assert!(
        feed(
            FileReceiver::answer(
                &Open::new(Request::Push(Push::default()), 0),
                ReceiveLimits { file_size: 9, ..limits() }
            ),
            &script
        )
        .0
        .is_err()
    );
}

#[test]
fn data_beyond_the_credit_is_refused() {
    let mut store = MemoryStore { deferred: true, ..MemoryStore::default() };
    let mut receiver = receiver();
    let script = Script::default().begun("a", 1 << 40);
    let chunk = ChunkDigest::of(0, &[0; 1 << 20]);
    let script = script
        .frame(FrameKind::Data, &[0; 1 << 20])
        .frame(FrameKind::Chunk, chunk.as_bytes())
        .frame(FrameKind::Data, b"x");
    let error = receiver.handle_received(&mut store, &script.bytes).unwrap_err();
    assert_eq!(error, Violation::CreditExceeded.into());
}

#[test]
fn a_wrong_digest_fails_the_file_alone_and_removes_it() {
    let again = |script: Script| {
        let script = script.content_of(0, 3).frame(FrameKind::Data, b"abc");
        script.frame(FrameKind::Digest, Digest::of(b"abd").as_bytes())
    };
    let script = again(again(again(Script::default().entry("a", EntryKind::File, 3))));
    let (outcome, store) = feed(receiver(), &script.file("b", b"good").end(2, 0, 13));
    assert_eq!(outcome, Ok(()));
    assert_eq!(store.tree.keys().collect::<Vec<_>>(), [&path("b")]);
    assert!(store.partial.is_empty());
}

#[test]
fn frames_out_of_place_are_refused() {
    let begun = || Script::default().begun("a", 3);
    for (script, kind) in [
        (Script::default().frame(FrameKind::Data, b"x"), FrameKind::Data),
        (Script::default().frame(FrameKind::Digest, &[0; 32]), FrameKind::Digest),
        (Script::default().frame(FrameKind::Verified, &[0; 40]), FrameKind::Verified),
        (Script::default().frame(FrameKind::Open, b""), FrameKind::Open),
        (Script::default().end(0, 0, 0).entry("a", EntryKind::File, 0), FrameKind::Entry),
        (Script::default().frame(FrameKind::Keep, &[0; 8]), FrameKind::Keep),
        (begun().frame(FrameKind::Chunk, &[0; 32]), FrameKind::Chunk),
        (begun().frame(FrameKind::Seek, &[1; 8]), FrameKind::Seek),
        (begun().end(1, 0, 0), FrameKind::End),
    ] {
        // After DONE, input is ignored.
        if kind == FrameKind::Entry && script.bytes.starts_with(&[FrameKind::End as u8]) {
            assert_eq!(feed(receiver(), &script).1.tree.len(), 0);
        } else {
            assert_eq!(violation(receiver(), script), Violation::OutOfPlace(kind));
        }
    }
    assert_eq!(violation(receiver(), Script::default().end(1, 0, 0)), Violation::Counts);
}

#[test]
fn figures_that_do_not_fit_the_session_are_refused() {
    assert_eq!(violation(receiver(), Script::default().end(0, 0, 1)), Violation::Counts, "a byte that never came");
    for body in [&[0; 16][..], &[[0; 16].as_slice(), &[200], &[0; 16]].concat(), &[[0; 16].as_slice(), &[1]].concat()] {
        let refused = violation(receiver(), Script::default().frame(FrameKind::End, body));
        assert!(matches!(refused, Violation::Malformed { kind: FrameKind::End, .. }), "{refused}");
    }
    let mut trailing = vec![0; 16];
    Figures::default().encode(&mut trailing);
    trailing.push(0);
    let refused = violation(receiver(), Script::default().frame(FrameKind::End, &trailing));
    assert!(refused.to_string().contains("after the last field"), "{refused}");
}

#[test]
fn a_confirmation_of_other_bytes_than_those_sent_is_refused() {
    let confirmed = |bytes| {
        let mut script = Script::default();
        let verified = [&0u64.to_be_bytes()[..], Digest::of(b"abc").as_bytes()].concat();
        script = script.frame(FrameKind::Verified, &verified);
        let mut body = 1u64.to_be_bytes().to_vec();
        Figures { bytes, ..Figures::default() }.encode(&mut body);
        script.frame(FrameKind::Done, &body)
    };
    assert!(sender_hears(confirmed(3)).is_ok());
    assert_eq!(sender_hears(confirmed(4)), Err(Violation::Counts.into()));
}

/// Attack D5: an endless manifest needs no memory and ends at the limit of entries.
#[test]
fn an_endless_manifest_stays_within_memory_and_limits() {
    let mut script = Script::default();
    for index in 0..6000 {
        script = match index % 3 {
            0 => script.entry(&format!("{index:05}d"), EntryKind::Directory, 0),
            1 => script.file(&format!("{index:05}f"), b""),
            _ => script.frame(FrameKind::Skipped, &[0, 0, 1, b'x', 0, 3]),
        };
    }
    assert_eq!(feed(receiver(), &script).0, Err(Violation::Limit("entries").into()));
}

#[test]
fn a_peer_that_reads_no_answers_is_not_read_either() {
    let mut script = Script::default();
    for index in 0..4500 {
        script = script.file(&format!("{index:05}"), b"");
    }
    let (mut receiver, mut store) = (receiver(), MemoryStore::default());
    let mut taken = 0;
    for _ in 0..10 {
        taken += receiver.handle_received(&mut store, &script.bytes[taken..]).unwrap();
        while receiver.poll_event().is_some() {}
    }
    assert!(taken < script.bytes.len() && receiver.poll_write().len() < 70_000);
}

/// A sender that expects confirmation of `a` (3 bytes) gets `answer`.
fn sender_hears(answer: Script) -> Result<usize, SessionError> {
    let tree = [(path("a"), MemoryFile::file(b"abc".to_vec()))].into_iter().collect();
    let mut sender = FileSender::answer(&Open::new(Request::from(CopyScope::default()), 1 << 20));
    let mut source = MemorySource::new(tree);
    said(&mut sender, &mut source);
    sender.handle_received(&Script::default().frame(FrameKind::Want, &[0; 9]).bytes).unwrap();
    said(&mut sender, &mut source);
    let outcome = sender.handle_received(&answer.bytes);
    assert!(!matches!(sender.poll_event(), Some(crate::FileEvent::Done(_))));
    outcome
}

#[test]
fn a_sender_trusts_only_its_own_digest() {
    let verified = |id: u64, content: &[u8]| {
        let body = [&id.to_be_bytes()[..], Digest::of(content).as_bytes()].concat();
        Script::default().frame(FrameKind::Verified, &body)
    };
    assert_eq!(sender_hears(verified(0, b"abd")), Err(Violation::WrongDigest("a".to_owned()).into()));
    assert_eq!(sender_hears(verified(1, b"abc")), Err(Violation::UnknownEntry.into()));
    let twice = Script { bytes: [verified(0, b"abc").bytes, verified(0, b"abc").bytes].concat(), entries: 0 };
    assert_eq!(sender_hears(twice), Err(Violation::UnknownEntry.into()));
    let mut nothing = 0u64.to_be_bytes().to_vec();
    Figures { bytes: 3, ..Figures::default() }.encode(&mut nothing);
    let done = Script::default().frame(FrameKind::Done, &nothing);
    assert_eq!(sender_hears(done), Err(Violation::Counts.into()), "done without an answer for `a`");
    let grant = Script::default().frame(FrameKind::Grant, &[0; 16]);
    assert_eq!(sender_hears(grant), Err(Violation::CreditWithdrawn.into()));
}

#[test]
fn a_wrong_first_frame_is_not_farhaul() {
    let (outcome, _) = feed(puller(&["x"], true), &Script::default().entry("x", EntryKind::File, 0));
    assert_eq!(outcome, Err(SessionError::NotFarhaul));
}

proptest! {
    #[test]
    fn arbitrary_frames_never_panic(
        frames in proptest::collection::vec((0u8..24, proptest::collection::vec(any::<u8>(), 0..60), any::<bool>()), 0..20),
        step in 1usize..50,
    ) {
        const KINDS: [FrameKind; 24] = [
            FrameKind::Open, FrameKind::Accept, FrameKind::Abort, FrameKind::Entry, FrameKind::Data, FrameKind::Digest,
            FrameKind::End, FrameKind::Skipped, FrameKind::Grant, FrameKind::Verified, FrameKind::Made, FrameKind::Failed,
            FrameKind::Done, FrameKind::Report, FrameKind::Content, FrameKind::Seek, FrameKind::Zeros, FrameKind::Chunk,
            FrameKind::Keep, FrameKind::Want, FrameKind::Have, FrameKind::Known, FrameKind::Again, FrameKind::Deleted,
        ];
        let mut script = Script::default();
        for (index, (pick, body, proper)) in frames.into_iter().enumerate() {
            script = match proper {
                true => script.entry(&format!("{index:02}"), EntryKind::File, body.len() as u64),
                false => script.frame(KINDS[usize::from(pick)], &body),
            };
        }
        let mut store = MemoryStore::default();
        let mut receiver = receiver();
        let mut sender = FileSender::answer(&Open::new(Request::from(CopyScope { paths: vec![RelPath::root()], recursive: true, ..CopyScope::default() }), 0));
        let mut source = MemorySource::default();
        for bytes in script.bytes.chunks(step) {
            let _ = receiver.handle_received(&mut store, bytes);
            let _ = sender.handle_received(bytes);
            sender.poll_write(&mut source);
        }
        prop_assert!(receiver.handle_end(&mut store).is_err() || receiver.is_over());
        prop_assert!(store.is_idle());
    }
}
