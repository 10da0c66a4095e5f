//! What connections learn of paths, for later connections to the same peer (paper:rfc9959).

use core::net::SocketAddr;
use std::sync::Arc;

use farhaul_cc::{KnownPath, Path, Supervised};
use farhaul_units::Duration;

/// The least time under congestion control after which a rate is worth keeping: schedulers of busy hosts delay by tenths of it.
const SHORTEST: Duration = Duration::from_secs(1);
/// The same in round trips: start-up takes up to five, and its queue as many to drain.
const ROUND_TRIPS: u32 = 10;

/// Keeps what connections have found. A connection asks at its beginning and tells at its end, so calls are rare. They come from
/// the thread that drives the connection, which waits for them.
pub trait PathMemory: Send + Sync {
    /// Takes out what is known of the path to `peer`. So of several connections that begin together, one sends by it.
    fn take(&self, peer: SocketAddr) -> Option<KnownPath>;

    /// Keeps what a connection to `peer` has found, which congestion control `held` for as long, or gives back what it took. `None`: what
    /// it took did not hold.
    fn keep(&self, peer: SocketAddr, path: Option<KnownPath>, held: Duration);
}

/// The memory of a connection to one peer; without effect if there is none.
pub(crate) struct Recollection {
    memory: Option<Arc<dyn PathMemory>>,
    peer: SocketAddr,
    has_taken: bool,
}

impl Recollection {
    pub(crate) fn new(memory: Option<&Arc<dyn PathMemory>>, peer: SocketAddr) -> Self {
        Self { memory: memory.cloned(), peer, has_taken: false }
    }

    /// Tells a new controller what is known.
    pub(crate) fn recall(&mut self, controller: &mut Supervised) {
        if let Some(known) = self.memory.as_ref().and_then(|memory| memory.take(self.peer)) {
            self.has_taken = true;
            controller.recall(known);
        }
    }

    /// The connection has moved to another path.
    pub(crate) fn leave(&mut self) {
        self.memory = None;
    }

    /// Keeps what the controller has found, if congestion control held the connection for `limited`: what a shorter transfer shows is
    /// its start-up, and what another limit leaves over says nothing about the path.
    pub(crate) fn keep(&self, controller: &mut Supervised, path: &Path, limited: Duration) {
        if let Some(memory) = &self.memory {
            let limited_by_path = limited >= SHORTEST.max(path.rtt.saturating_mul(ROUND_TRIPS));
            let found = controller.remember(path, limited_by_path);
            if found.is_some() || self.has_taken {
                memory.keep(self.peer, found, limited);
            }
        }
    }
}
