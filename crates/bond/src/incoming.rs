//! The direction of the peer: the order of its blocks, and who waits for them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use farhaul::ConnectionLost;
use farhaul_proto::PeerMisbehaved;
use farhaul_session::Reassembly;

use crate::flow::{Cause, lock};

/// Bytes that may wait for an earlier block: 1 Gbit/s for half a second, which is a few round trips of a long path in which a lost
/// packet of one flow comes again.
const WINDOW: u64 = 64 << 20;
/// Most buffers that wait to be used again.
pub(crate) const SPARE: usize = 32;

/// The direction of the peer.
pub(crate) struct Incoming {
    /// Who reads the first connection: a caller, as long as no flow has joined, and then a thread.
    pub(crate) first: Mutex<()>,
    /// The block of which a part was read. Locked by the caller that reads.
    pub(crate) front: Mutex<Front>,
    pub(crate) state: Mutex<IncomingState>,
    /// There is something to read.
    pub(crate) ready: Condvar,
    /// There is room for blocks that lie ahead.
    pub(crate) room: Condvar,
}

#[derive(Default)]
pub(crate) struct Front {
    pub(crate) bytes: Vec<u8>,
    pub(crate) used: usize,
}

pub(crate) struct IncomingState {
    pub(crate) order: Reassembly<Vec<u8>>,
    pub(crate) failed: Option<Cause>,
    pub(crate) is_gone: bool,
    /// Threads that read.
    pub(crate) readers: usize,
    /// Flows that the peer says will tell the end, and those that have ended.
    pub(crate) tellers: usize,
    pub(crate) told: usize,
    /// The first connection has ended in order, or in any way.
    pub(crate) has_first_ended: bool,
    pub(crate) is_first_done: bool,
    /// A flow brought something.
    pub(crate) has_records: bool,
    pub(crate) spare: Vec<Vec<u8>>,
}

impl IncomingState {
    /// Whether all was taken, and each connection that matters has ended. A flow that the peer never took does not matter.
    pub(crate) fn is_over(&self) -> bool {
        let has_ended = self.is_first_done && self.told >= self.tellers;
        self.order.is_over() && (self.readers == 0 || has_ended)
    }
}

impl Incoming {
    pub(crate) fn after(received: u64) -> Self {
        Self {
            first: Mutex::default(),
            front: Mutex::default(),
            state: Mutex::new(IncomingState {
                order: Reassembly::new(received, WINDOW),
                failed: None,
                is_gone: false,
                readers: 0,
                tellers: 0,
                told: 0,
                has_first_ended: false,
                is_first_done: false,
                has_records: false,
                spare: Vec::new(),
            }),
            ready: Condvar::new(),
            room: Condvar::new(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, IncomingState> {
        lock(&self.state)
    }

    pub(crate) fn add_readers(&self, count: usize) {
        self.state().readers += count;
    }

    pub(crate) fn notify(&self) {
        self.ready.notify_all();
        self.room.notify_all();
    }

    pub(crate) fn fail(&self, cause: Cause) {
        self.state().failed.get_or_insert(cause);
        self.notify();
    }

    pub(crate) fn leave(&self) {
        self.state().is_gone = true;
        self.notify();
    }

    /// Whether everything of the peer has come.
    pub(crate) fn has_all(&self) -> bool {
        self.state().order.has_all()
    }

    /// Whether everything of the peer was taken, and it has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.state().is_over()
    }

    /// Waits until a block may be stored, and gives a buffer for it. `None` once the stream is over.
    pub(crate) fn admit(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        let mut state = self.state();
        while !state.order.admits(offset, len) {
            if state.is_gone || state.failed.is_some() {
                return None;
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Some(state.spare.pop().unwrap_or_default())
    }

    pub(crate) fn store(&self, offset: u64, bytes: Vec<u8>) -> Result<(), Cause> {
        let mut state = self.state();
        let is_due = offset == state.order.next();
        state.order.insert(offset, bytes.len(), bytes).map_err(|_| misbehaved())?;
        drop(state);
        if is_due {
            self.ready.notify_all();
        }
        Ok(())
    }
}

/// The cause of blocks that make no stream.
pub(crate) const fn misbehaved() -> Cause {
    Cause::Lost(ConnectionLost::PeerMisbehaved(PeerMisbehaved::out_of_turn("block of several flows")))
}
