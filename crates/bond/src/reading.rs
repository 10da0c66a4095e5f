//! The threads that read the flows, and the calls that read the stream.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use farhaul::{ConnectionLost, Error};
use farhaul_session::{BLOCK_HEADER, MAX_BLOCK, Record};

use crate::flow::{Cause, Flow, lock};
use crate::incoming::{Front, IncomingState, SPARE, misbehaved};
use crate::shared::Shared;

/// A wait for the first connection looks this often whether other flows have joined.
const SLICE: Duration = Duration::from_millis(50);

/// What ended a flow.
enum FlowEnd {
    /// The end of the stream was told.
    Told,
    /// The connection closed without it.
    Closed,
    /// The flow has carried nothing.
    Unused,
    Failed(Cause),
}

impl Shared {
    pub(crate) fn recv(&self, out: &mut [u8]) -> Result<usize, Error> {
        if out.is_empty() {
            return Ok(0);
        }
        let timeout = lock(&self.timeouts).read;
        let deadline = self.deadline(timeout);
        let mut front = lock(&self.incoming.front);
        while !self.is_bonded() {
            let _first = lock(&self.incoming.first);
            if self.is_bonded() {
                break;
            }
            let left = deadline.map(|deadline| deadline.saturating_since(self.clock.now()));
            // The flow that joins wakes a wait for ssh.
            let slice = self.first.connection().map(|_| SLICE);
            self.first.set_read_timeout([left, slice].into_iter().flatten().min());
            match self.first.recv(out) {
                Err(Error::TimedOut(_)) if self.is_bonded() || deadline.is_none_or(|due| self.clock.now() < due) => {}
                Err(Error::TimedOut(_)) => return Err(Error::TimedOut(timeout.unwrap_or_default())),
                // Flows may have the rest.
                Ok(0) if self.is_bonded() => {}
                Ok(0) => {
                    let mut state = self.incoming.state();
                    let total = state.order.next();
                    state.order.end_at(total).map_err(|_| misbehaved())?;
                    return Ok(0);
                }
                Ok(len) => {
                    self.incoming.state().order.advance(len).map_err(|_| misbehaved())?;
                    return Ok(len);
                }
                Err(error) => return Err(error),
            }
        }
        self.read_in_order(&mut front, out, |state| match deadline {
            None => Ok(self.incoming.ready.wait(state).unwrap_or_else(PoisonError::into_inner)),
            Some(deadline) => {
                let left = deadline.saturating_since(self.clock.now());
                if left.is_zero() {
                    return Err(Error::TimedOut(timeout.unwrap_or_default()));
                }
                Ok(self.incoming.ready.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0)
            }
        })
    }

    fn read_in_order<'a>(
        &'a self,
        front: &mut Front,
        out: &mut [u8],
        wait: impl Fn(MutexGuard<'a, IncomingState>) -> Result<MutexGuard<'a, IncomingState>, Error>,
    ) -> Result<usize, Error> {
        if front.used == front.bytes.len() {
            let mut state = self.incoming.state();
            let last = std::mem::take(front);
            if last.bytes.capacity() > 0 && state.spare.len() < SPARE {
                state.spare.push(last.bytes);
            }
            loop {
                if let Some(bytes) = state.order.take() {
                    *front = Front { bytes, used: 0 };
                    break;
                }
                if state.is_over() {
                    return Ok(0);
                }
                if let Some(cause) = state.failed {
                    return Err(cause.into());
                }
                if state.readers == 0 && self.is_closing() {
                    // This side has finished, and gave up the rest.
                    return Ok(0);
                }
                if state.is_gone {
                    return Err(Error::Lost(ConnectionLost::ClosedLocally));
                }
                if self.is_cancelled.load(Ordering::Acquire) {
                    return Err(Error::Cancelled);
                }
                state = wait(state)?;
            }
            drop(state);
            self.incoming.room.notify_all();
        }
        let len = out.len().min(front.bytes.len() - front.used);
        out[..len].copy_from_slice(&front.bytes[front.used..front.used + len]);
        front.used += len;
        Ok(len)
    }

    /// Reads what the first connection has left of the stream.
    pub(crate) fn read_first(&self) {
        // A caller that waits there looks up soon.
        let _first = lock(&self.incoming.first);
        self.first.set_read_timeout(None);
        let mut offset = self.incoming.state().order.next();
        let end = loop {
            let Some(mut bytes) = self.incoming.admit(offset, MAX_BLOCK) else { break Ok(()) };
            bytes.resize(MAX_BLOCK, 0);
            match self.first.recv(&mut bytes) {
                Ok(0) => {
                    self.incoming.state().has_first_ended = true;
                    break Ok(());
                }
                Ok(len) => {
                    bytes.truncate(len);
                    if let Err(cause) = self.incoming.store(offset, bytes) {
                        break Err(cause);
                    }
                    offset += len as u64;
                }
                // It was woken, since flows carry the stream.
                Err(Error::TimedOut(_)) => {}
                Err(error) => break Err(Cause::from(&error)),
            }
        };
        self.end_reader(end.map_or_else(FlowEnd::Failed, |()| FlowEnd::Told), true);
    }

    /// Reads the blocks of a flow until its end.
    pub(crate) fn read_flow(&self, flow: &Flow, early: Vec<u8>) {
        let mut early = (early, 0);
        let end = self.read_records(flow, &mut early).unwrap_or_else(FlowEnd::Failed);
        // A cancellation ends the reader, and last words may still leave.
        if !matches!(end, FlowEnd::Told | FlowEnd::Failed(Cause::Cancelled)) {
            flow.is_lost.store(true, Ordering::Release);
            self.outgoing.notify();
        }
        self.end_reader(if flow.has_bytes() { end } else { FlowEnd::Unused }, false);
    }

    fn read_records(&self, flow: &Flow, early: &mut (Vec<u8>, usize)) -> Result<FlowEnd, Cause> {
        let mut header = [0; BLOCK_HEADER];
        loop {
            if !fill(flow, early, &mut header)? {
                return Ok(FlowEnd::Closed);
            }
            let record = Record::from_bytes(header);
            if record != Ok(Record::Ready) {
                flow.has_brought.store(true, Ordering::Release);
            }
            match record.map_err(|_| misbehaved())? {
                Record::Ready => self.confirm(flow),
                Record::Block { offset, len } => {
                    let Some(mut bytes) = self.incoming.admit(offset, len) else { return Ok(FlowEnd::Told) };
                    bytes.resize(len, 0);
                    if !fill(flow, early, &mut bytes)? {
                        return Err(Cause::Lost(ConnectionLost::Aborted));
                    }
                    self.incoming.state().has_records = true;
                    self.incoming.store(offset, bytes)?;
                }
                Record::Total { total, flows } => {
                    self.confirm(flow);
                    let mut state = self.incoming.state();
                    state.has_records = true;
                    state.tellers = state.tellers.max(flows);
                    state.order.end_at(total).map_err(|_| misbehaved())?;
                    drop(state);
                    self.incoming.notify();
                    // The end of the flow follows, and with the last one that of the stream.
                    return match flow.stream.recv(&mut [0]) {
                        Ok(1..) => Err(misbehaved()),
                        _ => Ok(FlowEnd::Told),
                    };
                }
            }
        }
    }

    /// Judges the end of a reader.
    fn end_reader(&self, end: FlowEnd, is_first: bool) {
        let mut state = self.incoming.state();
        state.readers -= 1;
        match end {
            FlowEnd::Unused => {}
            _ if is_first => state.is_first_done = true,
            _ => state.told += 1,
        }
        let is_last = state.readers == 0;
        if self.is_closing() || state.is_gone || state.order.has_all() {
            drop(state);
            return self.incoming.notify();
        }
        let cause = match end {
            // That ends every reader, and loses no flow.
            _ if self.is_cancelled.load(Ordering::Acquire) => Cause::Cancelled,
            FlowEnd::Failed(cause) => cause,
            // Blocks of this flow may be missing.
            FlowEnd::Closed if state.has_records => Cause::Lost(ConnectionLost::Aborted),
            // The peer closed before it used any flow: the first connection had everything.
            _ if is_last && !state.has_records && state.has_first_ended => {
                let total = state.order.next().saturating_add(state.order.held_bytes());
                if state.order.end_at(total).is_ok() {
                    drop(state);
                    return self.incoming.notify();
                }
                misbehaved()
            }
            _ if is_last => Cause::Lost(ConnectionLost::Aborted),
            _ => return,
        };
        drop(state);
        if matches!(cause, Cause::Cancelled) {
            self.cancel();
        }
        self.fail(cause);
    }
}

/// Fills `out` with the next bytes of a flow. Returns whether there were so many; the flow may end only before the first one.
fn fill(flow: &Flow, (early, used): &mut (Vec<u8>, usize), out: &mut [u8]) -> Result<bool, Cause> {
    let len = out.len().min(early.len() - *used);
    out[..len].copy_from_slice(&early[*used..*used + len]);
    *used += len;
    let mut filled = len;
    while filled < out.len() {
        match flow.stream.recv(&mut out[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(Cause::Lost(ConnectionLost::Aborted)),
            Ok(len) => filled += len,
            Err(error) => return Err(Cause::from(&error)),
        }
    }
    Ok(true)
}
