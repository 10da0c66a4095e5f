//! What the peer sends: blocks that wait for their reader, and what the peer is told of them.

use std::collections::VecDeque;
use std::time::Duration;

use farhaul::ConnectionLost;
use farhaul_units::Instant;

use super::outgoing::FIRST_WINDOW;
use super::{KEEP_ALIVE, MuxState};
use crate::mux::WINDOW;
use crate::mux::frame::{Frame, HEADER, MOST_DATA};

/// Bytes after whose arrival the peer is told: a part of its window, which has grown by all that arrived.
const TOLD_AFTER: (u64, u64) = (FIRST_WINDOW / 4, WINDOW / 8);
/// Time after which it is told in any case: that of UDT's acknowledgements (paper B, SYN).
const TOLD_WITHIN: Duration = Duration::from_millis(10);
/// Blocks that wait to be used again.
const SPARE: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Incoming {
    pub(super) blocks: VecDeque<Vec<u8>>,
    /// Bytes of the first block that were read.
    pub(super) used: usize,
    pub(super) received: u64,
    pub(super) read: u64,
    pub(super) has_ended: bool,
    /// What the peer was told last.
    pub(super) told: u64,
    pub(super) told_limit: u64,
    /// When it is to be told again.
    pub(super) due: Option<Instant>,
    pub(super) spare: Vec<Vec<u8>>,
}

impl Incoming {
    pub(in crate::mux) fn new() -> Self {
        Self { told_limit: WINDOW, ..Self::default() }
    }
}

impl MuxState {
    /// Takes a frame of the stream.
    pub(in crate::mux) fn handle(&mut self, frame: Frame<'_>, now: Instant) {
        match frame {
            Frame::Message(_) => {}
            Frame::Data(bytes) => self.arrived(bytes, now),
            Frame::Count { received, limit } => self.counted(received, limit, now),
            Frame::End if self.into.has_ended => self.misbehaved("end of a stream through ssh"),
            Frame::End => {
                self.begin(now);
                self.into.has_ended = true;
                self.into.due = Some(now);
            }
            Frame::Close { in_order } => {
                // An end without bytes before it tells a peer nothing that has left in order.
                let has_all = self.out.arrived >= self.out.taken;
                self.lose(match in_order && has_all {
                    true => ConnectionLost::ClosedByPeer,
                    false => ConnectionLost::Aborted,
                });
            }
        }
    }

    fn arrived(&mut self, bytes: &[u8], now: Instant) {
        self.begin(now);
        let into = &mut self.into;
        if into.has_ended || into.received + bytes.len() as u64 > into.told_limit {
            return self.misbehaved("data of a stream through ssh");
        }
        into.received += bytes.len() as u64;
        into.due.get_or_insert(now + TOLD_WITHIN);
        let (least, most) = TOLD_AFTER;
        if into.received - into.told >= (into.received / 8).clamp(least, most) {
            into.due = Some(now);
        }
        if self.over.is_some() {
            // Nobody reads it any more, and the peer's end may be behind it.
            into.read = into.received;
            return;
        }
        match into.blocks.back_mut().filter(|last| last.len() + bytes.len() <= MOST_DATA) {
            Some(last) => last.extend_from_slice(bytes),
            None => {
                let mut block = into.spare.pop().unwrap_or_else(|| Vec::with_capacity(MOST_DATA));
                block.clear();
                block.extend_from_slice(bytes);
                into.blocks.push_back(block);
            }
        }
    }

    /// Moves bytes that have arrived into `out`.
    pub(in crate::mux) fn read(&mut self, out: &mut [u8], now: Instant) -> usize {
        let into = &mut self.into;
        let Some(block) = into.blocks.front() else { return 0 };
        let rest = &block[into.used..];
        let len = rest.len().min(out.len());
        out[..len].copy_from_slice(&rest[..len]);
        into.used += len;
        into.read += len as u64;
        if into.used == block.len() {
            into.used = 0;
            let block = into.blocks.pop_front().unwrap_or_default();
            if into.spare.len() < SPARE {
                into.spare.push(block);
            }
        }
        if into.read + WINDOW - into.told_limit >= TOLD_AFTER.1 {
            into.due = Some(now);
        }
        len
    }

    /// Whether the peer's direction has ended, and everything was read.
    pub(in crate::mux) fn has_read_all(&self) -> bool {
        self.into.has_ended && self.into.blocks.is_empty()
    }

    /// What is to be told to the peer now, in bytes.
    pub(in crate::mux) fn count(&mut self, now: Instant) -> Option<Vec<u8>> {
        let keeps_alive = self.is_watched() && now.saturating_since(self.spoke) >= KEEP_ALIVE;
        if !keeps_alive && self.into.due.is_none_or(|due| due > now) {
            return None;
        }
        self.begins_to_write();
        let into = &mut self.into;
        (into.told, into.told_limit, into.due) = (into.received, into.read + WINDOW, None);
        self.counts_sent += 1;
        let mut bytes = Vec::with_capacity(HEADER + 16);
        let received = into.received + u64::from(into.has_ended);
        Frame::Count { received, limit: into.told_limit }.put(&mut bytes);
        Some(bytes)
    }

    /// When there is something to tell.
    pub(in crate::mux) fn count_due(&self) -> Option<Instant> {
        let alive = self.is_watched().then_some(self.spoke + KEEP_ALIVE);
        [alive, self.into.due].into_iter().flatten().min()
    }
}
