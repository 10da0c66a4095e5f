//! Slow disks, in virtual time. The opening is answered within an RTT, and the copy is only slow.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use farhaul_units::{Duration, Instant};

use super::{path, tree};
use crate::failure::Failure;
use crate::file::{FileEvent, FileReceiver, FileSender, ReceiveLimits, Totals};
use crate::handshake::{Acceptor, Open};
use crate::integrity::Digest;
use crate::manifest::{Entry, EntryId, Stamp};
use crate::path_rules::RelPath;
use crate::request::{CopyScope, Push};
use crate::store::{Chunk, Commit, Leftover, Made, MemorySource, MemoryStore, Next, Source, Store, Verdict};

/// One-way delay.
const TRIP: Duration = Duration::from_millis(50);
/// Duration of each call of a slow disk. It exceeds any time-out of an opening.
const DISK: Duration = Duration::from_secs(60);

/// The time at one end. Each call of its disk advances it.
#[derive(Clone, Debug, Default)]
struct Watch(Rc<Cell<Instant>>);

impl Watch {
    fn wait_for_disk(&self) {
        self.0.set(self.0.get() + DISK);
    }
}

/// A source or store with slow calls: each call that uses the disk takes [`DISK`].
#[derive(Debug)]
struct Slow<T>(T, Watch);

impl Source for Slow<MemorySource> {
    fn next_entry(&mut self, id: EntryId) -> Next {
        self.1.wait_for_disk();
        self.0.next_entry(id)
    }

    fn open(&mut self, id: EntryId) -> Result<Stamp, Failure> {
        self.1.wait_for_disk();
        self.0.open(id)
    }

    fn read(&mut self, id: EntryId, offset: u64, out: &mut [u8]) -> Result<Chunk, Failure> {
        self.1.wait_for_disk();
        self.0.read(id, offset, out)
    }

    fn recheck(&mut self, id: EntryId) -> Result<Stamp, Failure> {
        self.1.wait_for_disk();
        self.0.recheck(id)
    }

    fn close(&mut self, id: EntryId) {
        self.0.close(id);
    }

    fn forget(&mut self, id: EntryId) {
        self.0.forget(id);
    }
}

impl Store for Slow<MemoryStore> {
    fn examine(&mut self, id: EntryId, entry: &Entry) -> Result<Verdict, Failure> {
        self.1.wait_for_disk();
        self.0.examine(id, entry)
    }

    fn zeros(&mut self, id: EntryId, offset: u64, count: u64) -> Result<(), Failure> {
        self.1.wait_for_disk();
        self.0.zeros(id, offset, count)
    }

    fn make_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Made, Failure> {
        self.1.wait_for_disk();
        self.0.make_dir(id, entry)
    }

    fn begin(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure> {
        self.1.wait_for_disk();
        self.0.begin(id, entry)
    }

    fn write(&mut self, id: EntryId, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        self.1.wait_for_disk();
        self.0.write(id, offset, bytes)
    }

    fn commit(&mut self, id: EntryId, entry: &Entry, digest: &Digest) -> Result<Commit, Failure> {
        self.1.wait_for_disk();
        self.0.commit(id, entry, digest)
    }

    fn finish_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Commit, Failure> {
        self.1.wait_for_disk();
        self.0.finish_dir(id, entry)
    }

    fn abort(&mut self, id: EntryId, leftover: Leftover) {
        self.0.abort(id, leftover);
    }
}

/// One end with its disk. Its driver follows the contract: it writes everything pending before it passes input.
trait End {
    fn watch(&self) -> &Watch;
    /// Bytes to write. Reading them from the disk may advance the time.
    fn write(&mut self) -> Vec<u8>;
    fn receive(&mut self, bytes: &[u8]);
    fn events(&mut self) -> Vec<FileEvent>;
}

struct Sending(FileSender, Slow<MemorySource>);
struct Receiving(FileReceiver, Slow<MemoryStore>);

impl End for Sending {
    fn watch(&self) -> &Watch {
        &self.1.1
    }

    fn write(&mut self) -> Vec<u8> {
        let bytes = self.0.poll_write(&mut self.1).to_vec();
        self.0.handle_written(bytes.len());
        bytes
    }

    fn receive(&mut self, bytes: &[u8]) {
        assert_eq!(self.0.handle_received(bytes), Ok(bytes.len()));
    }

    fn events(&mut self) -> Vec<FileEvent> {
        std::iter::from_fn(|| self.0.poll_event()).collect()
    }
}

impl End for Receiving {
    fn watch(&self) -> &Watch {
        &self.1.1
    }

    fn write(&mut self) -> Vec<u8> {
        let bytes = self.0.poll_write().to_vec();
        self.0.handle_written(bytes.len());
        bytes
    }

    fn receive(&mut self, bytes: &[u8]) {
        assert_eq!(self.0.handle_received(&mut self.1, bytes), Ok(bytes.len()));
    }

    fn events(&mut self) -> Vec<FileEvent> {
        std::iter::from_fn(|| self.0.poll_event()).collect()
    }
}

/// Blocks in flight, with their arrival times.
type Flight = VecDeque<(Instant, Vec<u8>)>;

/// Lets one end write everything, and collects its session's events.
fn speak(end: &mut dyn End, flight: &mut Flight, told: &mut Vec<(Instant, FileEvent)>) {
    loop {
        let bytes = end.write();
        let now = end.watch().0.get();
        told.extend(end.events().into_iter().map(|event| (now, event)));
        if bytes.is_empty() {
            return;
        }
        flight.push_back((now + TRIP, bytes));
    }
}

/// A copy as seen by the connecting end.
struct Seen {
    /// Arrival of the first answer.
    answered: Instant,
    events: Vec<(Instant, FileEvent)>,
}

impl Seen {
    /// Runs the copy. `accept` makes the other end, once the opening has arrived.
    fn of(connecting: &mut dyn End, accept: impl FnOnce(&Open, Watch) -> Box<dyn End>) -> Self {
        let (mut forth, mut back, mut seen, mut there) = (Flight::new(), Flight::new(), Vec::new(), Vec::new());
        let (mut accept, mut answered) = (Some(accept), None);
        let mut accepting: Option<Box<dyn End>> = None;
        speak(connecting, &mut forth, &mut seen);
        while !matches!(seen.last(), Some((_, FileEvent::Done(_)))) {
            let early = |flight: &Flight| flight.front().map(|(time, _)| *time);
            let forward = early(&back).is_none_or(|back| early(&forth).is_some_and(|forth| forth <= back));
            let (arrived, mut bytes) = if forward { &mut forth } else { &mut back }.pop_front().expect("it goes on");
            if !forward {
                answered.get_or_insert(arrived);
                let watch = connecting.watch().0.clone();
                watch.set(watch.get().max(arrived));
                connecting.receive(&bytes);
                speak(connecting, &mut forth, &mut seen);
                continue;
            }
            let end = accepting.get_or_insert_with(|| {
                let (used, open) = Acceptor::new().handle_received(&bytes).unwrap();
                bytes.drain(..used);
                let watch = Watch::default();
                watch.0.set(arrived);
                accept.take().expect("there is one opening")(&open.expect("it comes whole"), watch)
            });
            let watch = end.watch().0.clone();
            watch.set(watch.get().max(arrived));
            speak(&mut **end, &mut back, &mut there);
            end.receive(&bytes);
            speak(&mut **end, &mut back, &mut there);
        }
        assert!(seen.iter().any(|(_, event)| *event == FileEvent::Accepted));
        Self { answered: answered.expect("it was accepted"), events: seen }
    }

    /// Time until the answer to the opening.
    fn answered(&self) -> Duration {
        self.answered.saturating_since(Instant::ZERO)
    }

    fn totals(&self) -> (Duration, Totals) {
        let Some((at, FileEvent::Done(totals))) = self.events.last() else { panic!("{:?}", self.events) };
        (at.saturating_since(Instant::ZERO), *totals)
    }
}

const LIMITS: ReceiveLimits =
    ReceiveLimits { window: 1 << 20, file_size: u64::MAX, bytes: u64::MAX, entries: u64::MAX };

fn source() -> MemorySource {
    MemorySource::new(tree(&[("d/", 0), ("d/f", 3), ("g", 400_000)]))
}

#[test]
fn a_push_to_a_slow_disk_is_answered_within_a_round_trip() {
    let mut sender = Sending(FileSender::push(Push::default()), Slow(source(), Watch::default()));
    let seen = Seen::of(&mut sender, |open, watch| {
        Box::new(Receiving(FileReceiver::answer(open, LIMITS), Slow(MemoryStore::default(), watch)))
    });
    assert_eq!(seen.answered(), 2 * TRIP);
    let (time, totals) = seen.totals();
    assert_eq!((totals.files, totals.directories, totals.failed), (2, 1, 0));
    assert!(time > 4 * DISK, "the disks took their time: {time:?}");
}

#[test]
fn a_pull_from_a_slow_disk_is_answered_within_a_round_trip() {
    let request = CopyScope { paths: vec![RelPath::root()], recursive: true, ..CopyScope::default() };
    let receiver = FileReceiver::pull(request, LIMITS).unwrap();
    let mut receiver = Receiving(receiver, Slow(MemoryStore::default(), Watch::default()));
    let seen =
        Seen::of(&mut receiver, |open, watch| Box::new(Sending(FileSender::answer(open), Slow(source(), watch))));
    assert_eq!(seen.answered(), 2 * TRIP);
    assert_eq!(seen.totals().1.files, 2);
    assert!(receiver.1.0.tree.contains_key(&path("d/f")));
}
