//! A source or store that measures how long the disk takes.

use farhaul_session::{Chunk, Commit, Digest, Entry, EntryId, Failure, Leftover, Next, Source, Stamp, Store};
use farhaul_udp::Clock;

/// Something with a disk behind it, and the seconds that were spent there.
pub(crate) struct Timed<T> {
    inner: T,
    clock: Clock,
    pub(crate) seconds: f64,
}

impl<T> Timed<T> {
    pub(crate) const fn new(inner: T, clock: Clock) -> Self {
        Self { inner, clock, seconds: 0.0 }
    }

    fn timed<R>(&mut self, call: impl FnOnce(&mut T) -> R) -> R {
        let began = self.clock.now();
        let result = call(&mut self.inner);
        self.seconds += (self.clock.now() - began).as_secs_f64();
        result
    }
}

impl<T: Source> Source for Timed<T> {
    fn next_entry(&mut self, id: EntryId) -> Next {
        self.timed(|inner| inner.next_entry(id))
    }

    fn read(&mut self, id: EntryId, offset: u64, out: &mut [u8]) -> Result<Chunk, Failure> {
        self.timed(|inner| inner.read(id, offset, out))
    }

    fn recheck(&mut self, id: EntryId) -> Result<Stamp, Failure> {
        self.timed(|inner| inner.recheck(id))
    }

    fn close(&mut self, id: EntryId) {
        self.inner.close(id);
    }
}

impl<T: Store> Store for Timed<T> {
    fn make_dir(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure> {
        self.timed(|inner| inner.make_dir(id, entry))
    }

    fn begin(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure> {
        self.timed(|inner| inner.begin(id, entry))
    }

    fn write(&mut self, id: EntryId, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        self.timed(|inner| inner.write(id, offset, bytes))
    }

    fn commit(&mut self, id: EntryId, entry: &Entry, digest: &Digest) -> Result<Commit, Failure> {
        self.timed(|inner| inner.commit(id, entry, digest))
    }

    fn finish_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Commit, Failure> {
        self.timed(|inner| inner.finish_dir(id, entry))
    }

    fn abort(&mut self, id: EntryId, leftover: Leftover) {
        self.inner.abort(id, leftover);
    }

    fn backlog(&self) -> u64 {
        self.inner.backlog()
    }

    fn settle(&mut self) {
        self.timed(Store::settle);
    }

    fn poll_committed(&mut self) -> Option<(EntryId, Result<(), Failure>)> {
        self.inner.poll_committed()
    }
}
