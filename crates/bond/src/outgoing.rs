//! The direction of this side: the blocks that wait for a flow.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

use farhaul_session::BLOCK_HEADER;

use crate::flow::{Cause, lock};

/// Most blocks that wait for a flow. Few, so that a block waits for the flow that has room first, and small data is soon sent.
pub(crate) const QUEUE: usize = 4;
/// Most buffers that wait to be used again: one for each flow that writes, and those of the queue.
pub(crate) const SPARE: usize = QUEUE + 16;

/// The direction of this side.
#[derive(Default)]
pub(crate) struct Outgoing {
    /// Bytes of the stream that the first connection carries. Locked while it takes some.
    pub(crate) first: Mutex<u64>,
    /// Flows carry what is sent from now on: the peer has taken one. Before, it could not tell bytes that wait on a flow from none,
    /// once the first connection has ended.
    pub(crate) is_by_flows: AtomicBool,
    pub(crate) state: Mutex<OutgoingState>,
    /// There is room in the queue, or a writer has ended.
    pub(crate) room: Condvar,
    /// There is work for a writer.
    pub(crate) work: Condvar,
    /// A flow was confirmed, or nothing more comes. Its writer waits for that first, and then for the first connection.
    pub(crate) confirmed: Condvar,
}

#[derive(Default)]
pub(crate) struct OutgoingState {
    pub(crate) queue: VecDeque<Block>,
    /// Bytes that wait, or that a writer has in hand.
    pub(crate) queued: u64,
    /// The offset behind all bytes that were taken, once blocks carry the stream.
    pub(crate) next: Option<u64>,
    pub(crate) end: Option<End>,
    /// The stream was left: nothing more is sent.
    pub(crate) is_gone: bool,
    pub(crate) failed: Option<Cause>,
    pub(crate) writers: usize,
    pub(crate) spare: Vec<Vec<u8>>,
}

/// The end of the direction.
#[derive(Clone, Copy)]
pub(crate) struct End {
    pub(crate) total: u64,
    /// Each flow ends its direction alone.
    pub(crate) is_half: bool,
}

/// Bytes of the stream with room for their header in front.
pub(crate) struct Block {
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Block {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - BLOCK_HEADER
    }
}

impl Outgoing {
    pub(crate) fn state(&self) -> MutexGuard<'_, OutgoingState> {
        lock(&self.state)
    }

    pub(crate) fn add_writer(&self) {
        self.state().writers += 1;
    }

    /// Notifies those that wait. What they look at was changed before.
    pub(crate) fn notify(&self) {
        // A thread that has looked and does not wait yet has it locked.
        drop(self.state());
        self.room.notify_all();
        self.work.notify_all();
        self.confirmed.notify_all();
    }

    pub(crate) fn carry_by_flows(&self) {
        self.is_by_flows.store(true, Ordering::Release);
        self.notify();
    }

    pub(crate) fn is_by_flows(&self) -> bool {
        self.is_by_flows.load(Ordering::Acquire)
    }

    pub(crate) fn fail(&self, cause: Cause) {
        self.state().failed.get_or_insert(cause);
        self.notify();
    }

    pub(crate) fn leave(&self) {
        let mut state = self.state();
        state.is_gone = true;
        state.queue.clear();
        drop(state);
        self.notify();
    }

    /// Whether nothing more is sent.
    pub(crate) fn has_ended(&self) -> bool {
        let state = self.state();
        state.end.is_some() || state.is_gone
    }

    /// Bytes of the stream that connections have taken.
    pub(crate) fn taken(&self) -> u64 {
        let state = self.state();
        // Before the first block, the first connection has everything.
        let next = state.next.unwrap_or_else(|| self.first.try_lock().map_or(0, |first| *first));
        next - state.queued
    }
}
