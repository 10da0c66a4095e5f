//! The threads that read the flows, and the order of their blocks.

use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use farhaul::{ConnectionLost, Error};
use farhaul_proto::PeerMisbehaved;
use farhaul_session::{BLOCK_HEADER, MAX_BLOCK, Reassembly, Record};

use super::SLICE;
use super::shared::{Cause, Flow, Shared, lock};

/// Bytes that may wait for an earlier block: 1 Gbit/s for half a second, which is a few round trips of a long path in which a lost
/// packet of one flow comes again.
const WINDOW: u64 = 64 << 20;
/// Most buffers that wait to be used again.
const SPARE: usize = 32;

/// The direction of the peer.
pub(super) struct Incoming {
    /// Who reads the first connection: a caller, as long as no flow has joined, and then a thread.
    first: Mutex<()>,
    /// The block of which a part was read. Locked by the caller that reads.
    front: Mutex<Front>,
    state: Mutex<State>,
    /// There is something to read.
    ready: Condvar,
    /// There is room for blocks that lie ahead.
    room: Condvar,
}

#[derive(Default)]
struct Front {
    bytes: Vec<u8>,
    used: usize,
}

struct State {
    order: Reassembly<Vec<u8>>,
    failed: Option<Cause>,
    is_gone: bool,
    /// Threads that read.
    readers: usize,
    /// Flows that the peer says will tell the end, and those that have ended.
    tellers: usize,
    told: usize,
    /// The first connection has ended in order, or in any way.
    has_first_ended: bool,
    is_first_done: bool,
    /// A flow brought something.
    has_records: bool,
    spare: Vec<Vec<u8>>,
}

impl State {
    /// Whether all was taken, and each connection that matters has ended. A flow that the peer never took does not matter.
    fn is_over(&self) -> bool {
        let has_ended = self.is_first_done && self.told >= self.tellers;
        self.order.is_over() && (self.readers == 0 || has_ended)
    }
}

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

impl Incoming {
    pub(super) fn after(received: u64) -> Self {
        Self {
            first: Mutex::default(),
            front: Mutex::default(),
            state: Mutex::new(State {
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

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(super) fn add_readers(&self, count: usize) {
        self.state().readers += count;
    }

    pub(super) fn notify(&self) {
        self.ready.notify_all();
        self.room.notify_all();
    }

    pub(super) fn fail(&self, cause: Cause) {
        self.state().failed.get_or_insert(cause);
        self.notify();
    }

    pub(super) fn leave(&self) {
        self.state().is_gone = true;
        self.notify();
    }

    /// Whether everything of the peer has come.
    pub(super) fn has_all(&self) -> bool {
        self.state().order.has_all()
    }

    /// Whether everything of the peer was taken, and it has ended.
    pub(super) fn is_over(&self) -> bool {
        self.state().is_over()
    }

    /// Waits until a block may be stored, and gives a buffer for it. `None` once the stream is over.
    fn admit(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        let mut state = self.state();
        while !state.order.admits(offset, len) {
            if state.is_gone || state.failed.is_some() {
                return None;
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Some(state.spare.pop().unwrap_or_default())
    }

    fn store(&self, offset: u64, bytes: Vec<u8>) -> Result<(), Cause> {
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
const fn misbehaved() -> Cause {
    Cause::Lost(ConnectionLost::PeerMisbehaved(PeerMisbehaved::out_of_turn("block of several flows")))
}

impl Shared {
    pub(super) fn recv(&self, out: &mut [u8]) -> Result<usize, Error> {
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
        wait: impl Fn(MutexGuard<'a, State>) -> Result<MutexGuard<'a, State>, Error>,
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
    pub(super) fn read_first(&self) {
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
    pub(super) fn read_flow(&self, flow: &Flow, early: Vec<u8>) {
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
