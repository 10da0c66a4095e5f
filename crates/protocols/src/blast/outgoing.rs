//! This side's stream: which bytes go on the channel, which by datagrams, and how far the peer has them.
//!
//! A dialogue writes a little and then waits for an answer. A transfer writes as much as it can. So bytes are staged
//! until the application pauses: a small stage goes on the channel, anything larger goes to the engine.

use std::collections::VecDeque;

use farhaul_units::Instant;
use farhaul_wire::blast::Frame;

use super::engine::Sender;

/// Most bytes that go on the channel at once: a dozen packets. A blast for less would cost its round trip for nothing.
const INLINE_MAX: usize = 16 << 10;

/// Room after which a writer that waited is woken. A wake-up for less costs more than it brings.
const WORTH_WAKING: usize = 64 << 10;

/// The stream towards the peer.
#[derive(Debug)]
pub(super) struct Outgoing<S> {
    pub(super) engine: S,
    /// Bytes that wait for the decision where they go.
    staged: Vec<u8>,
    /// Bytes given to the engine that the peer has not been told of.
    unannounced: u64,
    /// Offsets in the stream: of the next byte from the application, of what the peer permits, of what it has.
    written: u64,
    granted: u64,
    delivered: u64,
    /// The parts of the stream that the peer does not have as a whole, oldest first.
    parts: VecDeque<Part>,
    /// Bytes of all parts before those that went to the engine.
    engine_delivered: u64,
    /// The application wrote something since the last flush.
    unflushed: bool,
    /// Most bytes of a datagram.
    datagram: u64,
    /// A write found no room.
    writer_waits: bool,
    /// Room for which a waiting writer is woken.
    enough: usize,
}

/// A part of the stream that went by one path.
#[derive(Clone, Copy, Debug)]
struct Part {
    bytes: u64,
    by_engine: bool,
}

impl<S: Sender> Outgoing<S> {
    /// A stream with the credit `granted`. `buffer` is the size of the send buffer, and `datagram` that of a datagram.
    pub(super) fn new(engine: S, granted: u64, buffer: u64, datagram: usize) -> Self {
        Self {
            engine,
            staged: Vec::with_capacity(INLINE_MAX),
            unannounced: 0,
            written: 0,
            granted,
            delivered: 0,
            parts: VecDeque::new(),
            engine_delivered: 0,
            unflushed: false,
            datagram: datagram as u64,
            writer_waits: false,
            enough: WORTH_WAKING.min(usize::try_from(buffer / 2).unwrap_or(WORTH_WAKING)),
        }
    }

    // ---- the application's side ----

    /// Bytes that [`write`](Self::write) takes now.
    pub(super) fn room(&self) -> usize {
        let credit = usize::try_from(self.granted - self.written).unwrap_or(usize::MAX);
        credit.min(self.engine.room().saturating_sub(self.staged.len()))
    }

    /// Whether there is room for a writer that waited: enough bytes, or a quarter of what a slow engine buffers. Its
    /// whole buffer may be smaller. The writer waits no more.
    pub(super) fn has_room_again(&mut self) -> bool {
        let room = self.room();
        let again = room > 0 && (room >= self.enough || 3 * room as u64 >= self.outstanding());
        self.writer_waits &= !again;
        again
    }

    /// Takes bytes of the application and returns their number. A writer that finds no room for all of them waits.
    pub(super) fn write(&mut self, now: Instant, data: &[u8]) -> usize {
        let taken = self.take(now, data);
        self.writer_waits |= taken < data.len();
        taken
    }

    fn take(&mut self, now: Instant, data: &[u8]) -> usize {
        let data = &data[..data.len().min(self.room())];
        if data.is_empty() {
            return 0;
        }
        let taken = if self.staged.len() + data.len() <= INLINE_MAX {
            self.staged.extend_from_slice(data);
            data.len()
        } else {
            self.unstage(now);
            if self.staged.is_empty() { self.hand_over(now, data) } else { 0 }
        };
        self.written += taken as u64;
        self.unflushed |= taken > 0;
        taken
    }

    /// Gives the engine what belongs to it. The stage of a writer that waits for room is part of something larger.
    pub(super) fn pass_on(&mut self, now: Instant) {
        if self.writer_waits {
            self.unstage(now);
        }
        // The application has nothing more to write for now. Or its writer waits for less than a datagram to be delivered,
        // which no engine need send.
        let waits_for_more = self.writer_waits && self.outstanding() >= self.datagram;
        if !waits_for_more && std::mem::take(&mut self.unflushed) {
            self.engine.flush(now);
        }
    }

    fn unstage(&mut self, now: Instant) {
        let staged = std::mem::take(&mut self.staged);
        let taken = self.hand_over(now, &staged);
        self.staged = staged;
        self.staged.drain(..taken);
    }

    /// Gives bytes to the engine, and returns the number that it took. An engine may take less than its room, which it
    /// counts in whole packets.
    fn hand_over(&mut self, now: Instant, data: &[u8]) -> usize {
        if data.is_empty() {
            return 0;
        }
        let taken = self.engine.write(now, data);
        self.unannounced += taken as u64;
        self.note(taken as u64, true);
        taken
    }

    fn note(&mut self, bytes: u64, by_engine: bool) {
        match self.parts.back_mut() {
            Some(part) if part.by_engine == by_engine => part.bytes += bytes,
            _ => self.parts.push_back(Part { bytes, by_engine }),
        }
    }

    /// Whether the peer has everything written.
    pub(super) fn is_delivered(&self) -> bool {
        self.delivered == self.written
    }

    /// Whether the peer has everything, and nobody waits to write more.
    pub(super) fn is_idle(&self) -> bool {
        self.is_delivered() && !self.writer_waits
    }

    /// Bytes written and not delivered.
    pub(super) fn outstanding(&self) -> u64 {
        self.written - self.delivered
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    // ---- the channel ----

    /// Appends the frames that are due: announcements, the engine's records, the stage.
    pub(super) fn poll_frames(&mut self, now: Instant, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
        if self.unannounced > 0 {
            Frame::Bulk(std::mem::take(&mut self.unannounced)).encode(out);
        }
        scratch.clear();
        self.engine.poll_control(now, scratch);
        super::frames::in_parts(scratch, |part| Frame::Forward(part).encode(out));
        if !self.staged.is_empty() {
            Frame::Inline(&self.staged).encode(out);
            self.note(self.staged.len() as u64, false);
            self.staged.clear();
        }
    }

    /// The peer permits the stream up to `offset`. A grant never shrinks.
    pub(super) fn on_grant(&mut self, offset: u64) {
        self.granted = self.granted.max(offset);
    }

    /// The peer has the stream up to `offset`. Returns the bytes that this is more than before; `None` if it was never
    /// written.
    pub(super) fn on_delivered(&mut self, now: Instant, offset: u64) -> Option<u64> {
        if offset > self.written {
            return None;
        }
        let mut news = offset.checked_sub(self.delivered)?;
        let result = news;
        self.delivered = offset;
        while news > 0 {
            let part = self.parts.front_mut()?;
            let bytes = news.min(part.bytes);
            part.bytes -= bytes;
            news -= bytes;
            if part.by_engine {
                self.engine_delivered += bytes;
            }
            if part.bytes == 0 {
                self.parts.pop_front();
            }
        }
        self.engine.on_delivered(now, self.engine_delivered);
        Some(result)
    }
}
