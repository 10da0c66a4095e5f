//! What this side sends: frames that wait for the pipe, the window of the peer, and round-trip times.

use std::collections::VecDeque;
use std::time::Duration;

use farhaul::ConnectionLost;
use farhaul_units::{Instant, Rate};

use super::MuxState;
use crate::mux::frame::{Frame, HEADER, MOST_DATA, append, is_message};
use crate::mux::{Gone, WINDOW};

/// Bytes that wait for the writer: one frame under way, and the next ones.
pub(super) const QUEUE: usize = 4 * (HEADER + MOST_DATA);
/// Bytes of messages that wait for the writer, before who says more waits.
const MOST_SAID: usize = 1 << 20;
/// Bytes that may be underway at first. The window grows by what arrives, as that of TCP below it does in its slow start, from four times the
/// ten packets of that (RFC 6928). So little waits in ssh when the stream moves to UDP soon.
pub(super) const FIRST_WINDOW: u64 = 64 << 10;
/// Weight of a new round-trip time, as in UDT: one eighth.
const RTT_WEIGHT: u32 = 8;

#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pub(super) frames: VecDeque<Vec<u8>>,
    /// Bytes of the frames of a stream among them, and of the one that the writer has in hand.
    pub(super) waiting: usize,
    pub(super) in_hand: usize,
    /// The writer has a frame of any kind that it has not written yet.
    is_writing: bool,
    /// Bytes of the messages among them.
    pub(super) said: usize,
    /// Most bytes underway.
    pub(super) window: u64,
    /// Bytes of the stream that were taken, and that have arrived; the end counts as one more.
    pub(super) taken: u64,
    pub(super) arrived: u64,
    pub(super) limit: u64,
    pub(super) has_ended: bool,
    pub(super) cap: Option<Rate>,
    /// Time for which the peer had no room.
    pub(super) no_room: Duration,
    pub(super) timing: Timing,
}

/// Round-trip times: from an offset that is taken to its arrival.
#[derive(Debug, Default)]
pub(super) struct Timing {
    pub(super) probe: Option<(u64, Instant)>,
    pub(super) smoothed: Duration,
    pub(super) least: Option<Duration>,
}

impl Outgoing {
    pub(in crate::mux) fn new() -> Self {
        Self { limit: WINDOW, window: FIRST_WINDOW, ..Self::default() }
    }
}

impl MuxState {
    /// Adds a frame that needs no room.
    pub(in crate::mux) fn put(&mut self, frame: Frame<'_>) -> Result<(), Gone> {
        if self.is_out_gone || self.hangs_up {
            return Err(Gone);
        }
        let mut bytes = Vec::new();
        frame.put(&mut bytes);
        match frame.is_of_stream() {
            true => self.out.waiting += bytes.len(),
            false => self.out.said += bytes.len(),
        }
        self.out.frames.push_back(bytes);
        Ok(())
    }

    /// Whether there is room for messages, or the pipe is gone.
    pub(in crate::mux) fn hears_more(&self) -> bool {
        self.out.said < MOST_SAID || self.is_out_gone || self.hangs_up
    }

    /// Adds a frame of another stream, which has a bound of its own.
    pub(in crate::mux) fn pass(&mut self, frame: &[u8]) {
        if !self.is_out_gone && !self.hangs_up {
            self.out.waiting += frame.len();
            self.out.frames.push_back(frame.to_vec());
        }
    }

    /// Whether frames of another stream have room.
    pub(in crate::mux) fn has_queue(&self) -> bool {
        self.out.waiting + self.out.in_hand < QUEUE || self.is_out_gone || self.hangs_up
    }

    /// Takes bytes of the stream as far as there is room, and returns their number.
    pub(in crate::mux) fn take(&mut self, data: &[u8], now: Instant) -> usize {
        let out = &mut self.out;
        let most = out.limit.min(out.arrived + out.window);
        let room = usize::try_from(most.saturating_sub(out.taken)).unwrap_or(usize::MAX);
        let room = room.min(QUEUE.saturating_sub(out.waiting + out.in_hand));
        let data = &data[..data.len().min(room).min(MOST_DATA)];
        if data.is_empty() {
            return 0;
        }
        let taken = match out.frames.back_mut().map_or(0, |last| append(last, data)) {
            0 => {
                let mut frame = Vec::with_capacity(HEADER + MOST_DATA);
                Frame::Data(data).put(&mut frame);
                out.waiting += HEADER;
                out.frames.push_back(frame);
                data.len()
            }
            taken => taken,
        };
        out.waiting += taken;
        out.taken += taken as u64;
        out.timing.probe.get_or_insert((out.taken, now));
        self.begin(now);
        taken
    }

    /// So many bytes of the stream went to the pipe before this.
    pub(in crate::mux) fn has_sent(&mut self, opening: usize, now: Instant) {
        self.out.taken = opening as u64;
        if opening > 0 {
            self.begin(now);
        }
    }

    /// Whether the peer has no room, so that a wait is for it.
    pub(in crate::mux) fn is_out_of_room(&self) -> bool {
        self.out.taken >= self.out.limit
    }

    pub(in crate::mux) fn add_no_room(&mut self, time: Duration) {
        self.out.no_room += time;
    }

    pub(in crate::mux) fn set_cap(&mut self, cap: Option<Rate>) {
        self.out.cap = cap;
    }

    pub(in crate::mux) fn cap(&self) -> Option<Rate> {
        self.out.cap
    }

    /// The next frame, for the writer.
    pub(in crate::mux) fn next_frame(&mut self) -> Option<Vec<u8>> {
        let frame = self.out.frames.pop_front()?;
        self.out.is_writing = true;
        match is_message(&frame) {
            true => self.out.said -= frame.len(),
            false => {
                self.out.waiting -= frame.len();
                self.out.in_hand = frame.len();
            }
        }
        Some(frame)
    }

    /// The writer has a frame that did not wait in the queue.
    pub(super) fn begins_to_write(&mut self) {
        self.out.is_writing = true;
    }

    /// The writer has written a frame.
    pub(in crate::mux) fn wrote(&mut self, now: Instant) {
        self.spoke = now;
        (self.out.in_hand, self.out.is_writing) = (0, false);
    }

    /// Whether nothing waits for the writer, which has nothing in hand.
    pub(in crate::mux) fn is_written(&self) -> bool {
        self.out.frames.is_empty() && !self.out.is_writing && self.into.due.is_none()
    }

    pub(in crate::mux) fn hang_up(&mut self) {
        self.hangs_up = true;
    }

    pub(in crate::mux) fn hangs_up(&self) -> bool {
        self.hangs_up
    }

    pub(in crate::mux) fn is_pipe_gone(&self) -> bool {
        self.is_out_gone
    }

    /// The pipe takes no more.
    pub(in crate::mux) fn lose_out(&mut self) {
        self.is_out_gone = true;
        self.out.frames.clear();
        (self.out.waiting, self.out.in_hand, self.out.said) = (0, 0, 0);
        self.out.is_writing = false;
        self.lose(ConnectionLost::Aborted);
    }

    pub(in crate::mux) fn counted(&mut self, received: u64, limit: u64, now: Instant) {
        self.counts_received += 1;
        let out = &mut self.out;
        if received > out.taken + u64::from(out.has_ended) {
            return self.misbehaved("count of a stream through ssh");
        }
        out.window = (out.window + received.saturating_sub(out.arrived)).min(WINDOW);
        (out.arrived, out.limit) = (out.arrived.max(received), out.limit.max(limit));
        out.timing.arrived(out.arrived, now);
    }
}

impl Timing {
    fn arrived(&mut self, offset: u64, now: Instant) {
        let Some((_, since)) = self.probe.take_if(|(awaited, _)| *awaited <= offset) else { return };
        let sample = now.saturating_since(since);
        self.smoothed = match self.least {
            None => sample,
            Some(_) => (self.smoothed * (RTT_WEIGHT - 1) + sample) / RTT_WEIGHT,
        };
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
    }
}
