//! The threads that write the flows, and the calls that write the stream.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError, TryLockError};

use farhaul::{ConnectionLost, Error};
use farhaul_session::{BLOCK_HEADER, MAX_BLOCK, Record};
use farhaul_units::{Duration, Instant};

use crate::flow::{Cause, Flow, lock};
use crate::outgoing::{Block, End, OutgoingState, QUEUE, SPARE};
use crate::shared::{BACKGROUND, Shared};

/// A flow that waits for the first connection looks this often whether that has sent everything.
const LOOK: Duration = Duration::from_millis(10);

impl Shared {
    pub(crate) fn send(&self, data: &[u8]) -> Result<usize, Error> {
        if data.is_empty() {
            return Ok(0);
        }
        let deadline = self.deadline(lock(&self.timeouts).write);
        if !self.outgoing.is_by_flows() {
            let mut first = lock(&self.outgoing.first);
            if !self.outgoing.is_by_flows() {
                let len = self.first.send(data)?;
                *first += len as u64;
                return Ok(len);
            }
        }
        self.enqueue(data, deadline)
    }

    /// Sends what fits without a wait.
    pub(crate) fn send_at_once(&self, data: &[u8]) -> Result<usize, Error> {
        if !self.is_open {
            return self.first.send(data);
        }
        if self.outgoing.is_by_flows() {
            return self.enqueue(data, Some(self.clock.now()));
        }
        // A thread that waits for room on the first connection has it locked.
        let mut first = match self.outgoing.first.try_lock() {
            Ok(first) => first,
            Err(TryLockError::Poisoned(first)) => first.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(0),
        };
        let len = self.first.send(data)?;
        *first += len as u64;
        Ok(len)
    }

    /// Adds to the blocks that wait, or waits for room.
    fn enqueue(&self, data: &[u8], deadline: Option<Instant>) -> Result<usize, Error> {
        let first = *lock(&self.outgoing.first);
        let mut state = self.outgoing.state();
        loop {
            if let Some(cause) = state.failed {
                return Err(cause.into());
            }
            if state.end.is_some() || state.is_gone || self.is_closing() {
                return Err(Error::Finished);
            }
            if state.writers == 0 {
                // No flow is left.
                return Err(Error::Lost(ConnectionLost::Aborted));
            }
            let next = state.next.unwrap_or(first);
            if let Some(last) = state.queue.back_mut().filter(|last| last.len() < MAX_BLOCK) {
                let len = data.len().min(MAX_BLOCK - last.len());
                last.bytes.extend_from_slice(&data[..len]);
                return Ok(self.took(state, next, len));
            }
            if state.queue.len() < QUEUE {
                let len = data.len().min(MAX_BLOCK);
                let mut bytes = state.spare.pop().unwrap_or_default();
                bytes.clear();
                bytes.resize(BLOCK_HEADER, 0);
                bytes.extend_from_slice(&data[..len]);
                state.queue.push_back(Block { offset: next, bytes });
                return Ok(self.took(state, next, len));
            }
            if self.is_cancelled.load(Ordering::Acquire) {
                return Err(Error::Cancelled);
            }
            let limit = || lock(&self.timeouts).write.unwrap_or_default();
            state = self.wait_for_room(state, deadline, limit)?;
        }
    }

    /// Waits for room in the queue, or for the end of a writer. After the deadline, the error tells the limit.
    fn wait_for_room<'a>(
        &self,
        state: MutexGuard<'a, OutgoingState>,
        deadline: Option<Instant>,
        limit: impl FnOnce() -> Duration,
    ) -> Result<MutexGuard<'a, OutgoingState>, Error> {
        let room = &self.outgoing.room;
        let Some(deadline) = deadline else { return Ok(room.wait(state).unwrap_or_else(PoisonError::into_inner)) };
        let left = deadline.saturating_since(self.clock.now());
        if left.is_zero() {
            return Err(Error::TimedOut(limit()));
        }
        Ok(room.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0)
    }

    fn took(&self, mut state: MutexGuard<'_, OutgoingState>, next: u64, len: usize) -> usize {
        state.next = Some(next + len as u64);
        state.queued += len as u64;
        drop(state);
        self.outgoing.work.notify_one();
        len
    }

    /// Nothing more comes. With `is_half`, each flow ends its direction alone.
    pub(crate) fn end_outgoing(&self, is_half: bool) -> Result<(), Error> {
        let first = *lock(&self.outgoing.first);
        let mut state = self.outgoing.state();
        if let Some(cause) = state.failed {
            return Err(cause.into());
        }
        let total = state.next.unwrap_or(first);
        state.end.get_or_insert(End { total, is_half });
        drop(state);
        self.outgoing.notify();
        Ok(())
    }

    /// Waits until every flow has what it is to send.
    pub(crate) fn wait_for_writers(&self, deadline: Option<Instant>) -> Result<(), Error> {
        let mut state = self.outgoing.state();
        while state.writers > 0 {
            if let Some(cause) = state.failed {
                return Err(cause.into());
            }
            if self.is_cancelled.load(Ordering::Acquire) && deadline.is_none() {
                return Err(Error::Cancelled);
            }
            state = self.wait_for_room(state, deadline, || BACKGROUND)?;
        }
        state.failed.map_or(Ok(()), |cause| Err(cause.into()))
    }

    /// Writes the blocks that wait on this flow, for as long as the stream lasts.
    pub(crate) fn write_flow(&self, flow: &Flow) {
        match self.write_blocks(flow) {
            // Its reader may still find the reason that the peer gave.
            Err(error) if flow.has_sent.load(Ordering::Acquire) => self.outgoing.fail(Cause::from(&error)),
            _ => {}
        }
        let mut state = self.outgoing.state();
        state.writers -= 1;
        if state.writers == 0 && !state.queue.is_empty() {
            state.failed.get_or_insert(Cause::Lost(ConnectionLost::Aborted));
        }
        drop(state);
        self.outgoing.notify();
    }

    /// Waits while the first connection needs the cap of all. After a cancellation, last words leave without that.
    fn wait_for_first(&self) {
        while !self.is_cancelled.load(Ordering::Acquire) && self.has_first_the_cap() {
            let state = self.outgoing.state();
            if state.is_gone || state.failed.is_some() {
                return;
            }
            drop(self.outgoing.confirmed.wait_timeout(state, LOOK));
        }
    }

    fn write_blocks(&self, flow: &Flow) -> Result<(), Error> {
        // This side reads the flow by now.
        flow.stream.send_all(&Record::Ready.to_bytes())?;
        let mut state = self.outgoing.state();
        loop {
            if state.is_gone || state.failed.is_some() || flow.is_lost.load(Ordering::Acquire) {
                return Ok(());
            }
            let is_confirmed = flow.is_confirmed.load(Ordering::Acquire);
            if is_confirmed && let Some(mut block) = state.queue.pop_front() {
                drop(state);
                self.outgoing.room.notify_one();
                let len = block.len();
                block.bytes[..BLOCK_HEADER].copy_from_slice(&Record::Block { offset: block.offset, len }.to_bytes());
                flow.has_sent.store(true, Ordering::Release);
                self.wait_for_first();
                flow.stream.send_all(&block.bytes)?;
                state = self.outgoing.state();
                state.queued -= len as u64;
                if state.spare.len() < SPARE {
                    state.spare.push(block.bytes);
                }
            } else if let Some(End { total, is_half }) = state.end {
                drop(state);
                let flows = self.joined().iter().filter(|flow| flow.is_confirmed.load(Ordering::Acquire)).count();
                let told = flow.stream.send_all(&Record::Total { total, flows }.to_bytes());
                let told = told.and_then(|()| if is_half { flow.stream.finish_sending() } else { Ok(()) });
                // A peer that has told its own end may have closed.
                return if self.incoming.has_all() { Ok(()) } else { told };
            } else {
                let turn = if is_confirmed { &self.outgoing.work } else { &self.outgoing.confirmed };
                state = turn.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}
