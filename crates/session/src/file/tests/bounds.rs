//! What a peer makes this side remember, fed with ten times what is kept.

use super::super::{Change, FileReceiver, FileSender, MAX_PENDING, MAX_PENDING_WEIGHT, ReceiveLimits};
use super::path;
use crate::error::{SessionError, Violation};
use crate::failure::{FailCode, Failure};
use crate::frame_kind::FrameKind;
use crate::framing::put_frame;
use crate::integrity::Digest;
use crate::manifest::{Attribute, Entry, EntryId, EntryKind, Mtime, Properties, Stamp};
use crate::opening::{Open, Push, Request};
use crate::path_rules::RelPath;
use crate::rules::{Kept, Rules};
use crate::scratch::{MemoryScratch, Scratch};
use crate::store::{Chunk, Commit, Leftover, Made, Next, Source, Store, Verdict};

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
#[derive(Debug)]
struct Target {
    has_all: bool,
    scratches: u32,
}

impl Store for Target {
    fn make_dir(&mut self, _: EntryId, _: &Entry) -> Result<Made, Failure> {
        Ok(Made::New)
    }
    fn examine(&mut self, _: EntryId, _: &Entry) -> Result<Verdict, Failure> {
        Ok(if self.has_all { Verdict::Have(Change::New) } else { Verdict::Want(Change::New, Vec::new()) })
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
    let mut store = Target { has_all: true, scratches: 0 };
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
fn entries_without_an_answer_are_bounded_by_number_and_memory() {
    let beyond = Err(Violation::Limit("entries without an answer").into());
    let file = |id: u64, properties| framed(&entry(&format!("{id:07}"), EntryKind::File, properties));
    let heavy = || Properties { attributes: long(), ..Properties::default() };
    let wants = || Target { has_all: false, scratches: 0 };
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
