//! Figures of a running session, for other threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts that a session updates and any thread may read. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    announced: AtomicU64,
    bytes: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
    retransmitted: AtomicU64,
}

impl Progress {
    /// Bytes of all files whose sizes are known so far.
    pub fn announced(&self) -> u64 {
        self.0.announced.load(Ordering::Relaxed)
    }

    /// Bytes that arrived and were new, or that the peer has.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Datagrams of the peer that arrived.
    pub fn packets_received(&self) -> u64 {
        self.0.received.load(Ordering::Relaxed)
    }

    /// Datagrams that were sent.
    pub fn packets_sent(&self) -> u64 {
        self.0.sent.load(Ordering::Relaxed)
    }

    /// Datagrams of them that were sent again.
    pub fn packets_retransmitted(&self) -> u64 {
        self.0.retransmitted.load(Ordering::Relaxed)
    }

    pub(super) fn announce(&self, bytes: u64) {
        self.0.announced.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn add_bytes(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn add_received(&self, packets: u64) {
        self.0.received.fetch_add(packets, Ordering::Relaxed);
    }

    pub(super) fn set_sent(&self, packets: u64, retransmitted: u64) {
        self.0.sent.store(packets, Ordering::Relaxed);
        self.0.retransmitted.store(retransmitted, Ordering::Relaxed);
    }
}
