//! A source or store that measures how long the disk takes, and tells the peer about this side at the end.

use std::time::Duration;

use farhaul::Stream;
use farhaul_session::{Chunk, Commit, Digest, Entry, EntryId, Failure, Figures, Leftover, Next, Source, Stamp, Store};
use farhaul_units::Instant;

use crate::host::measure::Meter;
use crate::host::watch::RoundTrips;

/// Something with a disk behind it, and the time that was spent there.
pub(crate) struct Timed<T> {
    inner: T,
    stream: Stream,
    meter: Meter,
    spent: Duration,
    /// When content was first and last read or written.
    first: Option<Instant>,
    last: Option<Instant>,
    round_trips: RoundTrips,
}

impl<T> Timed<T> {
    /// `inner` as one end of a copy over `stream`.
    pub(crate) fn new(inner: T, stream: Stream, meter: Meter) -> Self {
        let round_trips = RoundTrips::default();
        Self { inner, stream, meter, spent: Duration::ZERO, first: None, last: None, round_trips }
    }

    /// Round-trip times that the peer is told as well.
    pub(super) fn tells(&mut self, round_trips: RoundTrips) {
        self.round_trips = round_trips;
    }

    /// Seconds spent on the disk.
    pub(crate) const fn seconds(&self) -> f64 {
        self.spent.as_secs_f64()
    }

    /// From the first to the last bytes of content.
    pub(crate) fn moving(&self) -> Duration {
        self.first.zip(self.last).map_or(Duration::ZERO, |(first, last)| last - first)
    }

    fn moves(&mut self) {
        let now = self.meter.now();
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    /// What the peer is told.
    fn figures(&self) -> Figures {
        let stats = self.stream.stats().unwrap_or_default();
        let figures = self.meter.figures(&stats, self.round_trips.summary(&stats));
        Figures { elapsed: self.moving(), disk: Some(self.spent), ..figures }
    }

    fn timed<R>(&mut self, call: impl FnOnce(&mut T) -> R) -> R {
        let began = self.meter.now();
        let result = call(&mut self.inner);
        self.spent += self.meter.now() - began;
        result
    }
}

impl<T: Source> Source for Timed<T> {
    fn next_entry(&mut self, id: EntryId) -> Next {
        self.timed(|inner| inner.next_entry(id))
    }

    fn read(&mut self, id: EntryId, offset: u64, out: &mut [u8]) -> Result<Chunk, Failure> {
        self.moves();
        self.timed(|inner| inner.read(id, offset, out))
    }

    fn recheck(&mut self, id: EntryId) -> Result<Stamp, Failure> {
        self.timed(|inner| inner.recheck(id))
    }

    fn close(&mut self, id: EntryId) {
        self.inner.close(id);
    }

    fn figures(&mut self) -> Figures {
        Self::figures(self)
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
        self.moves();
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

    fn figures(&mut self) -> Figures {
        Self::figures(self)
    }
}
