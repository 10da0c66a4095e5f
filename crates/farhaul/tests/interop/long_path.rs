//! A way between both sides like a long path: a relay with a path model in each direction.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use farhaul_emu::{Relay, RelayReport};
use farhaul_netem::{LossSpec, PathSpec, ReorderSpec};
use farhaul_units::Duration;

/// A relay at work, until it is dropped.
pub(crate) struct LongPath {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    relaying: Option<JoinHandle<RelayReport>>,
}

impl LongPath {
    /// To `server`; a round trip of 20 ms, on which packets get lost, arrive twice and overtake one another.
    pub(crate) fn bad(server: SocketAddr) -> Self {
        let path = |seed| PathSpec {
            delay: Duration::from_millis(10),
            loss: Some(LossSpec::Bernoulli(0.01)),
            duplicate: 0.01,
            reorder: Some(ReorderSpec { probability: 0.01, extra_delay: Duration::from_millis(3) }),
            seed,
            ..PathSpec::default()
        };
        Self::new(server, path(1), path(2))
    }

    /// To `server`; a round trip of 20 ms, on which one packet in twenty gets lost in either direction.
    pub(crate) fn lossy(server: SocketAddr) -> Self {
        let path = |seed| PathSpec {
            delay: Duration::from_millis(10),
            loss: Some(LossSpec::Bernoulli(0.05)),
            seed,
            ..PathSpec::default()
        };
        Self::new(server, path(3), path(4))
    }

    pub(crate) fn new(server: SocketAddr, up: PathSpec, down: PathSpec) -> Self {
        let mut relay = Relay::bind(SocketAddr::from(([127, 0, 0, 1], 0)), server, up, down).unwrap();
        let (address, stop) = (relay.local_addr(), Arc::new(AtomicBool::new(false)));
        let flag = Arc::clone(&stop);
        let relaying = thread::spawn(move || relay.run(&flag).unwrap());
        Self { address, stop, relaying: Some(relaying) }
    }

    /// Where clients send to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What happened on the way.
    pub(crate) fn end(mut self) -> RelayReport {
        self.stop.store(true, Ordering::Relaxed);
        self.relaying.take().unwrap().join().unwrap()
    }
}

impl Drop for LongPath {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(relaying) = self.relaying.take() {
            // The test fails for a better reason if the relay did.
            let _ = relaying.join();
        }
    }
}
