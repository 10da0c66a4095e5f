//! A file whose length and offsets need more than 32 bits, from a source and into a store that keep none of it.

use super::path;
use crate::failure::Failure;
use crate::file::{FileEvent, FileReceiver, FileSender, ReceiveLimits};
use crate::handshake::Acceptor;
use crate::integrity::Digest;
use crate::manifest::{Entry, EntryId, EntryKind, Mtime, Stamp};
use crate::request::Push;
use crate::store::{Chunk, Commit, Leftover, Made, Next, Source, Store};

/// Beyond 4 GiB, and no multiple of anything.
const LENGTH: u64 = (4 << 30) + 3_000_001;

/// A file in which each piece that is read begins with its offset, and is zero otherwise.
struct Numbered {
    given: bool,
}

impl Source for Numbered {
    fn next_entry(&mut self, _: EntryId) -> Next {
        if std::mem::replace(&mut self.given, true) {
            return Next::End;
        }
        let (kind, mtime) = (EntryKind::File, Mtime::default());
        Next::Entry(Entry::new(path("large"), kind, LENGTH, 0o644, mtime))
    }

    fn open(&mut self, _: EntryId) -> Result<Stamp, Failure> {
        self.recheck(EntryId(0))
    }

    fn read(&mut self, _: EntryId, offset: u64, out: &mut [u8]) -> Result<Chunk, Failure> {
        out.fill(0);
        if let Some(start) = out.first_chunk_mut() {
            *start = offset.to_be_bytes();
        }
        Ok(Chunk::Data(out.len()))
    }

    fn recheck(&mut self, _: EntryId) -> Result<Stamp, Failure> {
        Ok(Stamp { size: LENGTH, mtime: Mtime::default() })
    }

    fn close(&mut self, _: EntryId) {}
}

/// The sizes of the file that was received.
#[derive(Default)]
struct Counted {
    announced: u64,
    written: u64,
    committed: Option<Entry>,
}

impl Store for Counted {
    fn make_dir(&mut self, _: EntryId, _: &Entry) -> Result<Made, Failure> {
        unreachable!("there is no directory")
    }

    fn begin(&mut self, _: EntryId, entry: &Entry) -> Result<(), Failure> {
        self.announced = entry.size;
        Ok(())
    }

    fn write(&mut self, _: EntryId, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        assert_eq!(offset, self.written, "offsets ascend without gaps");
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn zeros(&mut self, _: EntryId, _: u64, _: u64) -> Result<(), Failure> {
        unreachable!("there is no hole")
    }

    fn commit(&mut self, _: EntryId, entry: &Entry, _: &Digest) -> Result<Commit, Failure> {
        self.committed = Some(entry.clone());
        Ok(Commit::Done)
    }

    fn finish_dir(&mut self, _: EntryId, _: &Entry) -> Result<Commit, Failure> {
        unreachable!("there is no directory")
    }

    fn abort(&mut self, _: EntryId, _: Leftover) {}
}

// Slow: every byte is hashed at both ends.
#[test]
fn a_file_of_more_than_four_gibibytes_arrives_whole_and_verified() {
    let (mut source, mut store) = (Numbered { given: false }, Counted::default());
    let mut sender = FileSender::push(Push::default());
    let (count, open) = Acceptor::new().handle_received(sender.first_frame()).unwrap();
    sender.handle_written(count);
    let mut receiver = FileReceiver::answer(&open.expect("it comes whole"), ReceiveLimits::default());
    while !sender.is_over() {
        let used = receiver.handle_received(&mut store, sender.poll_write(&mut source)).unwrap();
        sender.handle_written(used);
        let answers = receiver.poll_write().len();
        assert!(used + answers > 0, "stuck at {:?}", sender.progress());
        sender.handle_received(receiver.poll_write()).unwrap();
        receiver.handle_written(answers);
        while receiver.poll_event().is_some() {}
    }
    assert_eq!((store.announced, store.written), (LENGTH, LENGTH));
    assert_eq!(store.committed.map(|entry| entry.size), Some(LENGTH));
    assert_eq!((sender.error(), sender.totals().bytes), (None, LENGTH));
    let events: Vec<FileEvent> = std::iter::from_fn(|| sender.poll_event()).collect();
    assert!(matches!(events.last(), Some(FileEvent::Done(totals)) if totals.bytes == LENGTH), "{events:?}");
}
