//! The blast under way, and when its bitmap is due.
//!
//! The end of a blast travels on the channel and may overtake the last packets. An answer at once would report them
//! missing. So the bitmap waits for the last packet of the round, or for a pause of the datagrams.

use core::ops::Range;

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};

use crate::blast::receiving::ReceiverState;

/// The pause of datagrams that ends a round whose last packet was lost: a part of the RTT, within bounds.
const PAUSE_PART: u32 = 4;
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(25);

/// One blast and its repetitions.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) first: SeqNo,
    pub(super) packets: u32,
    /// Payload bytes of a full packet and of the last one.
    full: usize,
    last: usize,
    round: u32,
    /// The last packet that the sender sends in this round, and whether it has arrived.
    last_of_round: SeqNo,
    round_complete: bool,
    /// When the end of the round came.
    ended: Option<Instant>,
    /// When the last datagram came.
    latest: Instant,
    /// A packet of this round found no room.
    refused: bool,
}

/// Whether a packet belongs to a blast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// The payload has the length that this packet has.
    Whole,
    /// It has another length, or the packet lies beyond the blast.
    Foreign,
}

impl Incoming {
    /// A blast of `packets` packets, the last of which has `last` bytes.
    pub(super) fn new(first: SeqNo, packets: u32, full: usize, last: usize, now: Instant) -> Self {
        Self {
            first,
            packets,
            full,
            last,
            round: 0,
            last_of_round: first.plus(packets).minus(1),
            round_complete: false,
            ended: None,
            latest: now,
            refused: false,
        }
    }

    /// One after the last packet.
    pub(super) fn end(&self) -> SeqNo {
        self.first.plus(self.packets)
    }

    /// The number of this round, zero for the blast.
    pub(super) const fn round(&self) -> u32 {
        self.round
    }

    /// Whether packet `seq` of this blast has payloads of `length` bytes.
    pub(super) fn fit(&self, seq: SeqNo, length: usize) -> Fit {
        let expected = if seq.next() == self.end() { self.last } else { self.full };
        if seq.is_before(self.end()) && length == expected { Fit::Whole } else { Fit::Foreign }
    }

    /// A packet of this blast came. `refused` is whether it found no room.
    pub(super) fn on_packet(&mut self, now: Instant, seq: SeqNo, refused: bool) {
        self.latest = now;
        self.refused |= refused;
        self.round_complete |= seq == self.last_of_round;
    }

    /// The end of the round came. Returns false if it did before.
    pub(super) fn on_end(&mut self, now: Instant) -> bool {
        self.ended.replace(now).is_none()
    }

    /// Whether all packets have arrived.
    fn is_complete(&self, state: &ReceiverState) -> bool {
        !state.buffer.ack_point().is_before(self.end())
    }

    /// Whether the end of the round has come.
    pub(super) const fn has_end(&self) -> bool {
        self.ended.is_some()
    }

    /// Whether the bitmap waits for the reader: a repetition needs room.
    pub(super) fn awaits_reader(&self, state: &ReceiverState) -> bool {
        self.has_end() && self.refused && state.buffer.available() > 0 && !self.is_complete(state)
    }

    /// When the bitmap is due; `None` if that depends on the peer or on the reader.
    pub(super) fn due(&self, state: &ReceiverState) -> Option<Instant> {
        let ended = self.ended?;
        if self.is_complete(state) {
            return Some(ended);
        }
        if self.awaits_reader(state) {
            return None;
        }
        let pause = (state.round_trip / PAUSE_PART).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        Some(if self.round_complete { ended } else { ended.max(self.latest) + pause })
    }

    /// The ranges of missing packets, counted from the first packet of the blast.
    pub(super) fn missing(&self, state: &ReceiverState) -> impl Iterator<Item = Range<u32>> {
        let first = self.first;
        state.missing(SeqRange::new(first, self.end().minus(1))).map(move |range| {
            let index = |seq: SeqNo| seq.distance_from(first).unsigned_abs();
            index(range.first)..index(range.last) + 1
        })
    }

    /// The bitmap was sent, and the packets up to `last` will be repeated.
    pub(super) fn repeat(&mut self, last: u32) {
        self.round = self.round.saturating_add(1);
        self.last_of_round = self.first.plus(last);
        self.round_complete = false;
        self.ended = None;
        self.refused = false;
    }
}
