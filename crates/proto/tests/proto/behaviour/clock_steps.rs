//! A system clock that is set during a transfer.
//!
//! The kernel stamps datagrams by that clock, but no timer uses it. The driver compares it with the monotonic clock at each reception, and
//! takes no stamp from around a step. So a clock that is set moves arrivals by a millisecond at most, and never beyond the present.

use core::net::SocketAddr;

use farhaul_proto::{
    AddressPair, Batch, Channels, ConnectError, ConnectionId, Endpoint, Event, Read, Stats, StreamError, Streams,
    Transmit, Transport,
};
use farhaul_sim::Workload;
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_units::{Duration, Instant, Rng};

use crate::behaviour::scenario::{LENGTH, LIMIT, clean_path, endpoint, listener, small_buffers};

/// Largest error of an accepted stamp.
const MOST: Duration = Duration::from_millis(1);
/// The clock is set at one batch in this many.
const STEPS: u64 = 20;

/// An endpoint on a computer whose clock is set again and again.
struct Stepping {
    inner: Endpoint,
    rng: Rng,
}

impl Stepping {
    fn new(inner: Endpoint, seed: u64) -> Self {
        Self { inner, rng: Rng::new(seed) }
    }
}

impl Transport for Stepping {
    fn handle_datagrams(
        &mut self,
        now: Instant,
        _: Instant,
        from: impl Into<AddressPair>,
        bytes: &mut [u8],
        stride: usize,
    ) {
        let step = self.rng.below(STEPS) == 0;
        let early = if step { MOST.mul_f64(self.rng.unit()) } else { Duration::ZERO };
        self.inner.handle_datagrams(now, now.saturating_sub(early), from, bytes, stride);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.inner.handle_timeout(now);
    }

    fn poll_transmit<'a>(&'a mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        self.inner.poll_transmit(now, scratch)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.inner.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.inner.poll_event()
    }
}

impl Channels for Stepping {}

impl Streams for Stepping {
    fn connect(&mut self, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        self.inner.connect(now, peer)
    }

    fn write(&mut self, now: Instant, id: ConnectionId, data: &[u8]) -> Result<usize, StreamError> {
        self.inner.write(now, id, data)
    }

    fn writable(&self, id: ConnectionId) -> usize {
        self.inner.writable(id)
    }

    fn read(&mut self, now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Read, StreamError> {
        self.inner.read(now, id, out)
    }

    fn readable(&self, id: ConnectionId) -> usize {
        self.inner.readable(id)
    }

    fn finish(&mut self, now: Instant, id: ConnectionId) {
        self.inner.finish(now, id);
    }

    fn close(&mut self, now: Instant, id: ConnectionId) {
        self.inner.close(now, id);
    }

    fn abort(&mut self, now: Instant, id: ConnectionId) {
        self.inner.abort(now, id);
    }

    fn release(&mut self, now: Instant, id: ConnectionId) {
        self.inner.release(now, id);
    }

    fn is_closing(&self, id: ConnectionId) -> bool {
        self.inner.is_closing(id)
    }

    fn peer(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.inner.peer(id)
    }

    fn stats(&self, now: Instant, id: ConnectionId) -> Option<Stats> {
        self.inner.stats(now, id)
    }
}

#[test]
fn a_system_clock_that_is_set_back_and_forth_costs_no_byte_and_little_time() {
    for seed in 0..10 {
        let plan = Workload::exchange(LENGTH);
        let ends = || [endpoint(2 * seed, small_buffers()), listener(2 * seed + 1, small_buffers())];
        let [here, there] = ends();
        let mut steady = Pair::new(here, there).seed(seed).path(clean_path()).caller(plan).listener(plan).start();
        assert!(steady.run_until_done(LIMIT));
        let [here, there] = ends();
        let stepping = Pair::new(Stepping::new(here, seed), Stepping::new(there, seed + 100));
        let mut run = stepping.seed(seed).path(clean_path()).caller(plan).listener(plan).start();
        assert!(run.run_until_done(LIMIT), "seed {seed}");
        assert_eq!([run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat(), [""; 0], "seed {seed}");
        let (time, usual) = (run.now() - Instant::ZERO, steady.now() - Instant::ZERO);
        assert!(time < usual * 2, "seed {seed}: {time:?} in place of {usual:?}");
    }
}
