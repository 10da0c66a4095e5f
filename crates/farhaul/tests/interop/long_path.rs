//! A relay between both sides that resembles a long path, with a path model in each direction.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use farhaul_emu::{Relay, RelayReport};
use farhaul_netem::{LossSpec, PathSpec, ReorderSpec};
use farhaul_units::Duration;

/// A running relay, until it is dropped.
pub(crate) struct LongPath {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    relaying: Option<JoinHandle<RelayReport>>,
}

impl LongPath {
    /// A relay to `server` with an RTT of 20 ms that loses, duplicates and reorders packets.
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

    /// A relay to `server` with an RTT of 20 ms that loses one packet in twenty in each direction.
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

    /// The address for clients to send to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the relay and returns its report.
    pub(crate) fn end(mut self) -> RelayReport {
        self.stop.store(true, Ordering::Relaxed);
        self.relaying.take().unwrap().join().unwrap()
    }
}

impl Drop for LongPath {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(relaying) = self.relaying.take() {
            // If the relay failed, the test fails for a better reason.
            let _ = relaying.join();
        }
    }
}
