//! What a peer makes this side remember, fed with ten times what is kept.

use super::super::{FileReceiver, FileSender, MAX_PENDING, MAX_PENDING_WEIGHT, MAX_WORK, ReceiveLimits};
use super::path;
use crate::error::{SessionError, Violation};
use crate::failure::{FailCode, Failure};
use crate::frame_kind::FrameKind;
use crate::framing::put_frame;
use crate::handshake::Open;
use crate::integrity::{CHUNK_LEN, Digest};
use crate::manifest::{Attribute, Entry, EntryId, EntryKind, Mtime, Properties, Stamp};
use crate::path_rules::RelPath;
use crate::request::{Push, Request};
use crate::rules::{Kept, Rules};
use crate::scratch::{MemoryScratch, Scratch};
use crate::store::{Change, Chunk, Commit, KnownChunk, Leftover, Made, Next, Source, Store, Verdict};

/// Attributes as long as those of the attack.
const LONG: usize = 60_000;

fn entry(name: &str, kind: EntryKind, properties: Properties) -> Entry {
    Entry { properties: Some(Box::new(properties)), ..Entry::new(path(name), kind, 0, 0o644, Mtime::default()) }
}

fn long() -> Vec<Attribute> {
    vec![Attribute { name: b"user.a".to_vec(), value: vec![b'x'; LONG] }]
}

fn framed(entry: &Entry) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_frame(&mut bytes, FrameKind::Entry, |out| entry.encode(out));
    bytes
}

fn receiver(keep: Kept) -> FileReceiver {
    let push = Push { rules: Rules { keep, ..Rules::default() }, ..Push::default() };
    FileReceiver::answer(&Open::new(Request::Push(push), 0), ReceiveLimits::default())
}

/// A store that has every file, as in a dry run, or wants it.
#[derive(Debug, Default)]
struct Target {
    has_all: bool,
    scratches: u32,
    /// Chunks of the file 0 that are known, and of those the ones that were told.
    known: u64,
    told: u64,
}

impl Store for Target {
    fn make_dir(&mut self, _: EntryId, entry: &Entry) -> Result<Made, Failure> {
        if entry.name().as_bytes() == b"refused" { Err(FailCode::PermissionDenied.into()) } else { Ok(Made::New) }
    }
    fn examine(&mut self, _: EntryId, _: &Entry) -> Result<Verdict, Failure> {
        let claimed = Some(0..self.known).filter(|range| !range.is_empty()).into_iter().collect();
        Ok(if self.has_all { Verdict::Have(Change::New) } else { Verdict::Want(Change::New, claimed) })
    }
    fn poll_known(&mut self) -> Option<(EntryId, KnownChunk)> {
        let index = Some(self.told).filter(|&told| told < self.known)?;
        self.told += 1;
        Some((EntryId(0), KnownChunk::of(index, b"x")))
    }
    fn begin(&mut self, _: EntryId, _: &Entry) -> Result<(), Failure> {
        Ok(())
    }
    fn write(&mut self, _: EntryId, _: u64, _: &[u8]) -> Result<(), Failure> {
        Ok(())
    }
    fn zeros(&mut self, _: EntryId, _: u64, _: u64) -> Result<(), Failure> {
        Ok(())
    }
    fn commit(&mut self, _: EntryId, _: &Entry, _: &Digest) -> Result<Commit, Failure> {
        Ok(Commit::Done)
    }
    fn finish_dir(&mut self, _: EntryId, _: &Entry) -> Result<Commit, Failure> {
        Ok(Commit::Done)
    }
    fn make_hard_link(&mut self, id: EntryId, _: &Entry, first: &RelPath) -> Result<(Change, Commit), Failure> {
        assert!(first.to_bytes().starts_with(format!("{:07}-", id.0 - 1).as_bytes()), "the right file");
        Ok((Change::New, Commit::Done))
    }
    fn scratch(&mut self) -> Result<Box<dyn Scratch>, Failure> {
        self.scratches += 1;
        Ok(Box::<MemoryScratch>::default())
    }
    fn abort(&mut self, _: EntryId, _: Leftover) {}
}

/// Passes what a hostile sender says, and drops the answers. Returns the most that the receiver kept.
fn feed(
    mut receiver: FileReceiver,
    store: &mut Target,
    said: impl Iterator<Item = Vec<u8>>,
) -> (Result<(), SessionError>, usize) {
    let mut most = 0;
    for bytes in said {
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match receiver.handle_received(store, rest) {
                Ok(used) => rest = &rest[used..],
                Err(error) => return (Err(error), most),
            }
            receiver.handle_written(receiver.poll_write().len());
            while receiver.poll_event().is_some() {}
        }
        most = most.max(receiver.kept());
    }
    (Ok(()), most)
}

/// Pairs of a file and one more name of it.
fn linked_files(count: u64, attributes: Vec<Attribute>) -> impl Iterator<Item = Vec<u8>> {
    (0..count).map(move |pair| {
        let (id, attributes) = (EntryId(2 * pair), attributes.clone());
        let name = |id: u64| format!("{id:07}-{}", "x".repeat(30));
        let first = Properties { has_links: true, attributes: attributes.clone(), ..Properties::default() };
        let link = Properties { first_name: Some(id), attributes, ..Properties::default() };
        let first = framed(&entry(&name(id.0), EntryKind::File, first));
        [first, framed(&entry(&name(id.0 + 1), EntryKind::HardLink, link))].concat()
    })
}

#[test]
fn files_with_further_names_are_remembered_outside_of_memory_and_without_their_attributes() {
    let mut store = Target { has_all: true, ..Target::default() };
    let (outcome, most) = feed(receiver(Kept::ALL), &mut store, linked_files(500, long()));
    assert_eq!((outcome, store.scratches), (Ok(()), 0));
    assert!(most < 1 << 18, "{most}");
    // Ten times what is kept in memory.
    let (outcome, most) = feed(receiver(Kept::ALL), &mut store, linked_files(130_000, Vec::new()));
    assert_eq!((outcome, store.scratches), (Ok(()), 2));
    assert!(most < 2 << 20, "{most}");
    // A copy that keeps no links remembers none.
    let (outcome, most) = feed(receiver(Kept::default()), &mut store, linked_files(500, long()));
    assert_eq!((outcome, most, store.scratches), (Ok(()), 0, 2));
}

#[test]
fn further_names_of_a_file_whose_directory_failed_fail_alone() {
    let first = Properties { has_links: true, ..Properties::default() };
    let link = Properties { first_name: Some(EntryId(1)), ..Properties::default() };
    let said = [
        framed(&entry("refused", EntryKind::Directory, Properties::default())),
        framed(&entry("refused/file", EntryKind::File, first)),
        framed(&entry("second", EntryKind::HardLink, link)),
    ];
    let mut store = Target { has_all: true, ..Target::default() };
    assert_eq!(feed(receiver(Kept::ALL), &mut store, said.into_iter()).0, Ok(()));
}

#[test]
fn entries_without_an_answer_are_bounded_by_number_and_memory() {
    let beyond = Err(Violation::Limit("entries without an answer").into());
    let file = |id: u64, properties| framed(&entry(&format!("{id:07}"), EntryKind::File, properties));
    let heavy = || Properties { attributes: long(), ..Properties::default() };
    let wants = || Target { has_all: false, ..Target::default() };
    let feed = |keep, said: &mut dyn Iterator<Item = Vec<u8>>| feed(receiver(keep), &mut wants(), said);
    let all = 20 * MAX_PENDING as u64;
    let (outcome, most) = feed(Kept::ALL, &mut (0..all).map(|id| file(id, heavy())));
    assert_eq!(outcome, beyond);
    assert!(most <= 2 * MAX_PENDING_WEIGHT + 2 * LONG, "{most}");
    let (outcome, most) = feed(Kept::default(), &mut (0..all).map(|id| file(id, Properties::default())));
    assert_eq!(outcome, beyond);
    assert!(most <= 2 * MAX_PENDING * 1_000, "{most}");
    // Attributes that the copy does not keep cost nothing.
    let (outcome, most) = feed(Kept::default(), &mut (0..3_000).map(|id| file(id, heavy())));
    assert!(outcome.is_ok() && most < 3_000 * 1_000, "{outcome:?} {most}");
    // Links that wait for one file.
    let first = Properties { has_links: true, ..Properties::default() };
    let link = Properties { first_name: Some(EntryId(0)), ..Properties::default() };
    let link = |id: u64| framed(&entry(&format!("{id:07}"), EntryKind::HardLink, link.clone()));
    let (outcome, _) = feed(Kept::ALL, &mut std::iter::once(file(0, first)).chain((1..all).map(link)));
    assert_eq!(outcome, beyond);
    // Directories that wait for one file each, in chains.
    let chain = |index: u64| {
        let mut name = format!("{index:07}");
        let mut said = Vec::new();
        for _ in 0..100 {
            said.extend(framed(&entry(&name, EntryKind::Directory, Properties::default())));
            name.push_str("/d");
        }
        said.extend(framed(&entry(&name, EntryKind::File, Properties::default())));
        said
    };
    let (outcome, most) = feed(Kept::default(), &mut (0..all).map(chain));
    assert_eq!(outcome, beyond);
    assert!(most < 2 * MAX_PENDING_WEIGHT + (1 << 20), "{most}");
}

/// A tree without end, whose files open or not.
struct Endless(Properties, bool);

impl Source for Endless {
    fn next_entry(&mut self, id: EntryId) -> Next {
        Next::Entry(entry(&format!("{:09}", id.0), EntryKind::File, self.0.clone()))
    }
    fn open(&mut self, _: EntryId) -> Result<Stamp, Failure> {
        let stamp = Stamp { size: 0, mtime: Mtime::default() };
        if self.1 { Ok(stamp) } else { Err(FailCode::PermissionDenied.into()) }
    }
    fn read(&mut self, _: EntryId, _: u64, _: &mut [u8]) -> Result<Chunk, Failure> {
        unreachable!("files are empty")
    }
    fn recheck(&mut self, id: EntryId) -> Result<Stamp, Failure> {
        self.open(id)
    }
    fn close(&mut self, _: EntryId) {}
}

#[test]
fn a_receiver_that_never_answers_stops_the_walk() {
    let few = MAX_PENDING_WEIGHT / LONG;
    for (attributes, opens, most) in
        [(Vec::new(), true, MAX_PENDING), (Vec::new(), false, MAX_PENDING), (long(), true, few)]
    {
        let mut source = Endless(Properties { attributes, ..Properties::default() }, opens);
        let mut sender = FileSender::answer(&Open::new(Request::Push(Push::default()), 0));
        let mut idle = 0;
        while idle < 2 {
            let count = sender.poll_write(&mut source).len();
            idle = if count == 0 { idle + 1 } else { 0 };
            sender.handle_written(count);
            while sender.poll_event().is_some() {}
            assert!(sender.progress().entries <= most as u64 + 1, "{}", sender.progress().entries);
        }
    }
}

/// Frames of the content of one file, the entry 0, of this size.
fn begun(size: u64) -> Vec<u8> {
    let mut file = entry("0", EntryKind::File, Properties::default());
    file.size = size;
    [framed(&file), content(size)].concat()
}

fn frame(kind: FrameKind, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_frame(&mut bytes, kind, |out| out.extend_from_slice(body));
    bytes
}

fn content(size: u64) -> Vec<u8> {
    frame(FrameKind::Content, &[&0u64.to_be_bytes()[..], &size.to_be_bytes(), &[0; 12]].concat())
}

/// A chunk that is a hole, with a wrong digest, which costs its receiver as much as the right one.
fn hole() -> Vec<u8> {
    [frame(FrameKind::Zeros, &CHUNK_LEN.to_be_bytes()), frame(FrameKind::Chunk, &[0; 32])].concat()
}

#[test]
fn a_file_is_begun_a_few_times_and_gets_its_bytes_once_in_each() {
    let wants = || Target { has_all: false, ..Target::default() };
    let anew = std::iter::once(begun(9)).chain((0..60).map(|_| content(9)));
    let (outcome, _) = feed(receiver(Kept::default()), &mut wants(), anew);
    assert_eq!(outcome, Err(Violation::Limit("attempts to send a file").into()));
    let back = || frame(FrameKind::Seek, &0u64.to_be_bytes());
    let twice = [begun(2 * CHUNK_LEN), hole(), back(), hole(), back(), hole()];
    let (outcome, _) = feed(receiver(Kept::default()), &mut wants(), twice.into_iter());
    assert!(matches!(outcome, Err(SessionError::PeerMisbehaved(Violation::Length { .. }))), "{outcome:?}");
}

#[test]
fn holes_return_to_the_driver_before_they_have_cost_much() {
    let (mut receiver, mut store) = (receiver(Kept::default()), Target { has_all: false, ..Target::default() });
    let all = 10 * MAX_WORK / CHUNK_LEN;
    let said = [begun(1 << 40), (0..all).flat_map(|_| hole()).collect()].concat();
    let (mut rest, mut calls) = (&said[..], 0);
    while !rest.is_empty() {
        let before = receiver.progress().spared;
        rest = &rest[receiver.handle_received(&mut store, rest).unwrap()..];
        assert!(receiver.progress().spared - before <= MAX_WORK, "call {calls}");
        calls += 1;
    }
    assert!(calls >= 10, "{calls}");
}

/// A file of 1 TiB that is a hole.
struct Hole(bool);

impl Source for Hole {
    fn next_entry(&mut self, _: EntryId) -> Next {
        let entry = Entry::new(path("0"), EntryKind::File, 1 << 40, 0o644, Mtime::default());
        if std::mem::replace(&mut self.0, true) { Next::End } else { Next::Entry(entry) }
    }
    fn open(&mut self, _: EntryId) -> Result<Stamp, Failure> {
        Ok(Stamp { size: 1 << 40, mtime: Mtime::default() })
    }
    fn read(&mut self, _: EntryId, offset: u64, _: &mut [u8]) -> Result<Chunk, Failure> {
        Ok(Chunk::Zeros((1 << 40) - offset))
    }
    fn recheck(&mut self, id: EntryId) -> Result<Stamp, Failure> {
        self.open(id)
    }
    fn close(&mut self, _: EntryId) {}
}

fn sender_of(source: &mut impl Source) -> FileSender {
    let mut sender = FileSender::answer(&Open::new(Request::Push(Push::default()), 1 << 20));
    while let count @ 1.. = sender.poll_write(source).len() {
        sender.handle_written(count);
        while sender.poll_event().is_some() {}
    }
    sender
}

#[test]
fn holes_of_a_sender_return_to_the_driver_before_they_have_cost_much() {
    let mut source = Hole(false);
    let mut sender = sender_of(&mut source);
    sender.handle_received(&frame(FrameKind::Want, &[0; 9])).unwrap();
    let mut polls = 0;
    while sender.progress().spared < 10 * MAX_WORK {
        let before = sender.progress().spared;
        let count = sender.poll_write(&mut source).len();
        assert!(sender.progress().spared - before <= MAX_WORK + CHUNK_LEN, "poll {polls}");
        sender.handle_written(count);
        polls += 1;
    }
    assert!(polls >= 9, "{polls}");
}

#[test]
fn a_receiver_may_ask_for_damaged_chunks_a_few_times_and_claim_chunks_of_some_files() {
    let mut source = Endless(Properties::default(), true);
    let mut sender = sender_of(&mut source);
    let again = frame(FrameKind::Again, &0u64.to_be_bytes());
    let mut asked = 0;
    let outcome = loop {
        if let Err(error) = sender.handle_received(&again) {
            break error;
        }
        asked += 1;
        let count = sender.poll_write(&mut source).len();
        sender.handle_written(count);
        while sender.poll_event().is_some() {}
    };
    assert_eq!((outcome, asked), (Violation::Limit("repairs").into(), 2));

    let mut sender = sender_of(&mut Endless(Properties::default(), true));
    let claim = |id: u64| [&id.to_be_bytes()[..], &[0], &0u64.to_be_bytes(), &1u64.to_be_bytes()].concat();
    let outcome = (0..16_000).find_map(|id| sender.handle_received(&frame(FrameKind::Want, &claim(id))).err());
    assert_eq!(outcome, Some(Violation::Limit("files with claimed chunks").into()));
}

#[test]
fn sizes_beyond_all_disks_are_counted_without_an_overflow() {
    let sized = |id: u64| {
        let mut file = entry(&id.to_string(), EntryKind::File, Properties::default());
        file.size = u64::MAX - 1;
        framed(&file)
    };
    let mut store = Target { has_all: true, ..Target::default() };
    let mut receiver = receiver(Kept::default());
    (0..3).for_each(|id| assert!(receiver.handle_received(&mut store, &sized(id)).is_ok()));
    assert_eq!((receiver.totals().kept, receiver.totals().kept_bytes), (3, u64::MAX));
}

#[test]
fn known_chunks_are_read_no_further_than_the_sender_compares() {
    const AHEAD: u64 = 1 << 14;
    let mut store = Target { known: 10 * AHEAD, ..Target::default() };
    let mut receiver = receiver(Kept::default());
    let tell = |receiver: &mut FileReceiver, store: &mut Target| {
        while let before = store.told
            && receiver.handle_store(store).is_ok()
            && store.told > before
        {
            receiver.handle_written(receiver.poll_write().len());
        }
    };
    receiver.handle_received(&mut store, &begun(10 * AHEAD * CHUNK_LEN)).unwrap();
    tell(&mut receiver, &mut store);
    assert_eq!(store.told, AHEAD);
    for index in 0..100u64 {
        receiver.handle_received(&mut store, &frame(FrameKind::Keep, &index.to_be_bytes())).unwrap();
    }
    tell(&mut receiver, &mut store);
    assert_eq!(store.told, AHEAD + 100, "each one that is compared makes room");
}
