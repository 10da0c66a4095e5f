//! Figures of a running session, for other threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Figures that a session updates and any thread may read. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counters>);

/// What a session has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// Bytes of all files whose sizes are known.
    pub announced: u64,
    /// Bytes that arrived and were new, or that the peer has.
    pub bytes: u64,
    /// Datagrams of the peer that arrived.
    pub packets_received: u64,
    /// Datagrams that were sent.
    pub packets_sent: u64,
    /// Datagrams of them that were sent again.
    pub packets_retransmitted: u64,
}

/// The figures as counters: datagrams are counted one by one, and a lock for each would cost more than its count.
#[derive(Debug, Default)]
struct Counters {
    announced: AtomicU64,
    bytes: AtomicU64,
    packets_received: AtomicU64,
    packets_sent: AtomicU64,
    packets_retransmitted: AtomicU64,
}

impl Progress {
    /// The figures of now. While the session runs, one may be a moment older than another.
    pub fn figures(&self) -> Figures {
        let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Figures {
            announced: now(&self.0.announced),
            bytes: now(&self.0.bytes),
            packets_received: now(&self.0.packets_received),
            packets_sent: now(&self.0.packets_sent),
            packets_retransmitted: now(&self.0.packets_retransmitted),
        }
    }

    /// The size of another file is known.
    pub(super) fn announce(&self, bytes: u64) {
        self.0.announced.fetch_add(bytes, Ordering::Relaxed);
    }

    /// New bytes arrived, or the peer has them.
    pub(super) fn add_bytes(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A datagram of the peer arrived.
    pub(super) fn add_received(&self) {
        self.0.packets_received.fetch_add(1, Ordering::Relaxed);
    }

    /// So many datagrams were sent since the begin, and so many of them again.
    pub(super) fn set_sent(&self, packets: u64, again: u64) {
        self.0.packets_sent.store(packets, Ordering::Relaxed);
        self.0.packets_retransmitted.store(again, Ordering::Relaxed);
    }
}
