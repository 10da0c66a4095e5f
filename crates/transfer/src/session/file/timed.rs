//! A source or store that times the disk, and reports this side's figures to the peer at the end.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use delegate::delegate;
use farhaul::Stats;
use farhaul_bond::BondedStream;
use farhaul_session::{
    Change, Chunk, ChunkDigest, Commit, Digest, Ending, Entry, EntryId, Failure, Figures, KnownChunk, Leftover, Made,
    NameList, Next, RelPath, Scratch, ShownPath, Source, Stamp, Store, Verdict,
};
use farhaul_units::{ByteSize, Instant, Rate};

use crate::limit::Caps;
use crate::session::WaitTimes;
use crate::session::measure::{self, Meter, Sender};
use crate::session::watch::RoundTrips;

/// Counts the time for which data waits for the cap of a key. Clones share the count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holding(Rc<Cell<Duration>>);

impl Holding {
    /// Adds a wait.
    pub(crate) fn add(&self, time: Duration) {
        self.0.set(self.0.get() + time);
    }

    fn time(&self) -> Duration {
        self.0.get()
    }
}

/// Whether a session is busy with its own side, and so waits for no peer. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Working(Arc<AtomicBool>);

impl Working {
    /// Whether it is now.
    pub(crate) fn is_working(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Sets it.
    pub(crate) fn set(&self, is_working: bool) {
        self.0.store(is_working, Ordering::Release);
    }
}

/// A source or store, and the time spent in it.
pub(crate) struct Timed<T> {
    inner: T,
    stream: BondedStream,
    meter: Meter,
    spent: Duration,
    /// Waits inside of it that are no disk's.
    holding: Holding,
    working: Working,
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
    pub(crate) fn new(inner: T, stream: BondedStream, meter: Meter) -> Self {
        let (caps, round_trips) = (Caps::default(), RoundTrips::default());
        let (is_program, wait_times, spent, holding) = (false, None, Duration::ZERO, Holding::default());
        let working = Working::default();
        Self {
            inner,
            stream,
            meter,
            spent,
            holding,
            working,
            is_program,
            caps,
            wait_times,
            first: None,
            last: None,
            round_trips,
        }
    }

    /// Adds the RTTs for the report to the peer.
    pub(super) fn set_round_trips(&mut self, round_trips: RoundTrips) {
        self.round_trips = round_trips;
    }

    /// Marks another program behind it instead of a disk.
    pub(crate) fn program(self) -> Self {
        Self { is_program: true, caps: Caps { fed: true, ..self.caps }, ..self }
    }

    /// Waits within it for the cap of a key are counted by `holding`.
    pub(crate) fn held_by(self, holding: Holding) -> Self {
        Self { holding, ..self }
    }

    /// `working` shows the time spent within it.
    pub(crate) fn shown_by(self, working: Working) -> Self {
        Self { working, ..self }
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

    /// Time for which the data was held back for the cap of a key.
    pub(crate) fn held_back(&self) -> Duration {
        self.holding.time()
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
        let disk = Some(self.spent).filter(|_| !self.is_program);
        let held_back = Some(self.held_back()).filter(|time| !time.is_zero());
        Figures { elapsed: self.moving(), disk, held_back, ..figures }
    }

    /// Figures of a sender, with its limit.
    fn sending_figures(&self) -> Figures {
        let stats = self.stream.stats().unwrap_or_default();
        let mut figures = self.figures_of(&stats);
        if let Some(wait_times) = &self.wait_times {
            let disk = if self.is_program { 0.0 } else { self.seconds() };
            let held_back = self.held_back().as_secs_f64();
            let rate = stats.max_rate.or(self.caps.rate);
            let sender = Sender { disk, held_back, rate, ..self.caps.sender(wait_times.waits()) };
            measure::write_limit(&mut figures, self.meter, &stats, &sender);
        }
        figures
    }

    /// The source or store, whose time counts until this is dropped.
    fn timing(&mut self) -> Timing<'_, T> {
        self.working.set(true);
        Timing { began: self.meter.now(), held_before: self.held_back(), timed: self }
    }
}

/// A call of a source or store.
struct Timing<'a, T> {
    timed: &'a mut Timed<T>,
    began: Instant,
    held_before: Duration,
}

impl<T> Deref for Timing<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.timed.inner
    }
}

impl<T> DerefMut for Timing<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.timed.inner
    }
}

impl<T> Drop for Timing<'_, T> {
    fn drop(&mut self) {
        let held = self.timed.held_back() - self.held_before;
        self.timed.working.set(false);
        self.timed.spent += (self.timed.meter.now() - self.began).saturating_sub(held);
    }
}

impl<T: Source> Source for Timed<T> {
    delegate! {
        to self.timing() {
            fn restrict(&mut self, names: NameList);
            fn next_entry(&mut self, id: EntryId) -> Next;
            fn open(&mut self, id: EntryId) -> Result<Stamp, Failure>;
            fn read_known(&mut self, id: EntryId, offset: u64, out: &mut [u8]) -> Result<Chunk, Failure>;
            fn recheck(&mut self, id: EntryId) -> Result<Stamp, Failure>;
        }
        to self.inner {
            fn forget(&mut self, id: EntryId);
            fn close(&mut self, id: EntryId);
        }
    }

    fn read(&mut self, id: EntryId, offset: u64, out: &mut [u8]) -> Result<Chunk, Failure> {
        self.moves();
        self.timing().read(id, offset, out)
    }

    fn figures(&mut self) -> Figures {
        self.sending_figures()
    }
}

impl<T: Store> Store for Timed<T> {
    delegate! {
        to self.timing() {
            fn make_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Made, Failure>;
            fn begin(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure>;
            fn finish_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Commit, Failure>;
            fn examine(&mut self, id: EntryId, entry: &Entry) -> Result<Verdict, Failure>;
            fn zeros(&mut self, id: EntryId, offset: u64, count: u64) -> Result<(), Failure>;
            fn keep(&mut self, id: EntryId, index: u64) -> Result<(), Failure>;
            fn chunk(&mut self, id: EntryId, index: u64, digest: &ChunkDigest);
            fn make_symlink(&mut self, id: EntryId, entry: &Entry) -> Result<(Change, Commit), Failure>;
            fn make_hard_link(&mut self, id: EntryId, entry: &Entry, first: &RelPath) -> Result<(Change, Commit), Failure>;
            fn delete_next(&mut self) -> Option<(ShownPath, Result<(), Failure>)>;
            fn finish_commits(&mut self);
            fn commit(&mut self, id: EntryId, entry: &Entry, digest: &Digest) -> Result<Commit, Failure>;
        }
        to self.inner {
            fn abort(&mut self, id: EntryId, leftover: Leftover);
            fn poll_known(&mut self) -> Option<(EntryId, KnownChunk)>;
            fn has_unknown(&self) -> bool;
            fn compares_enough(&self) -> bool;
            fn can_repair(&self) -> bool;
            fn forget(&mut self, id: EntryId);
            fn scratch(&mut self) -> Result<Box<dyn Scratch>, Failure>;
            fn backlog(&self) -> u64;
            fn conclude(&mut self, ending: Ending);
            fn poll_committed(&mut self) -> Option<(EntryId, Result<(), Failure>)>;
        }
    }

    fn write(&mut self, id: EntryId, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        self.moves();
        self.timing().write(id, offset, bytes)
    }

    fn figures(&mut self) -> Figures {
        Self::figures(self)
    }
}
