//! What connections learn of paths, for later connections to the same peer (paper:rfc9959).

use core::net::SocketAddr;
use std::sync::Arc;

use farhaul_cc::{KnownPath, Path, Supervised};

/// Keeps what connections have found. A connection asks at its beginning and tells at its end, so calls are rare. They come from
/// the thread that drives the connection, which waits for them.
pub trait PathMemory: Send + Sync {
    /// Takes out what is known of the path to `peer`. So of several connections that begin together, one sends by it.
    fn take(&self, peer: SocketAddr) -> Option<KnownPath>;

    /// Keeps what a connection to `peer` has found.
    fn keep(&self, peer: SocketAddr, path: KnownPath);
}

/// The memory of a connection to one peer; without effect if there is none.
pub(crate) struct Recollection {
    memory: Option<Arc<dyn PathMemory>>,
    peer: SocketAddr,
}

impl Recollection {
    pub(crate) fn new(memory: Option<&Arc<dyn PathMemory>>, peer: SocketAddr) -> Self {
        Self { memory: memory.cloned(), peer }
    }

    /// Tells a new controller what is known.
    pub(crate) fn recall(&self, controller: &mut Supervised) {
        if let Some(known) = self.memory.as_ref().and_then(|memory| memory.take(self.peer)) {
            controller.recall(known);
        }
    }

    /// The connection has moved to another path.
    pub(crate) fn leave(&mut self) {
        self.memory = None;
    }

    /// Keeps what the controller has found.
    pub(crate) fn keep(&self, controller: &mut Supervised, path: &Path) {
        if let Some(memory) = &self.memory
            && let Some(known) = controller.remember(path)
        {
            memory.keep(self.peer, known);
        }
    }
}

impl core::fmt::Debug for Recollection {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Recollection").field("peer", &self.peer).finish_non_exhaustive()
    }
}
