//! A source or store that times the disk, and reports this side's figures to the peer at the end.

use std::rc::Rc;
use std::time::Duration;

use farhaul::{Stats, Stream};
use farhaul_session::{Chunk, Commit, Digest, Entry, EntryId, Failure, Figures, Leftover, Next, Source, Stamp, Store};
use farhaul_units::{ByteSize, Instant, Rate};

use crate::session::WaitTimes;
use crate::session::measure::{self, Caps, Meter, Sender};
use crate::session::watch::RoundTrips;

/// A source or store, and the time spent in it.
pub(crate) struct Timed<T> {
    inner: T,
    stream: Stream,
    meter: Meter,
    spent: Duration,
    /// Another program is behind it instead of a disk.
    is_program: bool,
    caps: Caps,
    wait_times: Option<Rc<WaitTimes>>,
    /// When content was first and last read or written.
    first: Option<Instant>,
    last: Option<Instant>,
    round_trips: RoundTrips,
}

impl<T> Timed<T> {
    /// `inner` as one end of a copy over `stream`.
    pub(crate) fn new(inner: T, stream: Stream, meter: Meter) -> Self {
        let (caps, round_trips) = (Caps::default(), RoundTrips::default());
        let (is_program, wait_times, spent) = (false, None, Duration::ZERO);
        Self { inner, stream, meter, spent, is_program, caps, wait_times, first: None, last: None, round_trips }
    }

    /// Adds the RTTs for the report to the peer.
    pub(super) fn tells(&mut self, round_trips: RoundTrips) {
        self.round_trips = round_trips;
    }

    /// Marks another program behind it instead of a disk.
    pub(crate) fn program(self) -> Self {
        Self { is_program: true, caps: Caps { fed: true, ..self.caps }, ..self }
    }

    /// The end under these caps, which may limit it.
    pub(crate) fn under(self, rate: Option<Rate>, buffer: Option<ByteSize>) -> Self {
        Self { caps: Caps { rate, buffer, ..self.caps }, ..self }
    }

    /// Starts the session, with the account of its times.
    pub(in crate::session) fn begin(&mut self, wait_times: &Rc<WaitTimes>) {
        self.wait_times = Some(Rc::clone(wait_times));
    }

    /// Seconds spent in the disk, or in the program instead of it.
    pub(crate) const fn seconds(&self) -> f64 {
        self.spent.as_secs_f64()
    }

    /// Whether another program is behind it instead of a disk.
    pub(crate) const fn is_program(&self) -> bool {
        self.is_program
    }

    /// Time from the first to the last access to content.
    pub(crate) fn moving(&self) -> Duration {
        self.first.zip(self.last).map_or(Duration::ZERO, |(first, last)| last - first)
    }

    fn moves(&mut self) {
        let now = self.meter.now();
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    /// Figures for the peer.
    fn figures(&self) -> Figures {
        self.figures_of(&self.stream.stats().unwrap_or_default())
    }

    fn figures_of(&self, stats: &Stats) -> Figures {
        let figures = self.meter.figures(stats, self.round_trips.summary(stats));
        Figures { elapsed: self.moving(), disk: Some(self.spent).filter(|_| !self.is_program), ..figures }
    }

    /// Figures of a sender, with its limit.
    fn sending_figures(&self) -> Figures {
        let stats = self.stream.stats().unwrap_or_default();
        let mut figures = self.figures_of(&stats);
        if let Some(wait_times) = &self.wait_times {
            let disk = if self.is_program { 0.0 } else { self.seconds() };
            let sender = Sender { disk, ..self.caps.sender(wait_times.waits()) };
            measure::tell_limit(&mut figures, self.meter, &stats, &sender);
        }
        figures
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
        self.sending_figures()
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
