//! The receiving end: objects, and bitmaps of what arrived of them.

use std::collections::VecDeque;

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};
use farhaul_wire::fobs::{
    MAX_PACKETS, Record, Segment, Terms, Version, encode_ack, encode_completed, encode_feedback, split,
};

use super::{GREEDY_ACK, Options};
use crate::blast::engine::{self, Setup};
use crate::blast::numbered::{self, FIRST};
use crate::blast::partial::unreadable;
use crate::blast::receiving::ReceiverState;
use farhaul_proto::buffer::Insert;
use farhaul_proto::error::PeerMisbehaved;
use farhaul_proto::timer::Timer;

/// Shortest time that the packets of a segment may come after its record, because the channel can be faster. Half an
/// RTT if that is longer (ours).
const SHORTEST_GRACE: Duration = Duration::from_millis(10);
/// Most objects, and most segments, that a sender may announce ahead. Each has a packet at least, so an honest one stays
/// far below.
const MOST_AHEAD: usize = 1 << 16;
/// Bytes of bitmaps after which further ones wait for the next poll. A sender that asks for more gets them more slowly.
const MOST_AT_ONCE: usize = 256 << 10;
/// A sender is at most this far ahead of its receiver: everything else would leave no order of the numbers.
const FAR_AHEAD: i32 = 1 << 29;

/// The receiver of one direction.
#[derive(Debug)]
pub(crate) struct Receiver {
    state: ReceiverState,
    version: Version,
    ordered: bool,
    /// Greedy: new packets per acknowledgement.
    every: u32,
    /// Ends and bytes of the objects that the sender has told and that are not complete.
    objects: VecDeque<(SeqNo, u32)>,
    /// The end of the last object told, and that of the last one complete.
    told: SeqNo,
    complete: SeqNo,
    /// The sender does not know yet that this one is complete.
    untold: bool,
    /// Bytes of the stream that may be read.
    usable: u64,
    /// Bytes of the complete objects.
    complete_bytes: u64,
    /// Segments to answer, and when to answer at the latest.
    segments: VecDeque<(Segment, Instant)>,
    /// How many of them should be here by now.
    overdue: usize,
    /// Greedy: packets that arrived since the last acknowledgement, and when to send the next at the latest.
    new: u32,
    silence: Timer,
}

impl Receiver {
    pub(super) fn new(options: &Options, terms: Terms, setup: &Setup<'_>) -> Self {
        let terms_packets = Some(terms.packets).filter(|&packets| packets > 0);
        Self {
            state: numbered::receiver_state(setup),
            version: terms.version,
            ordered: options.ordered || terms.ordered,
            every: options.segment.or(terms_packets).unwrap_or(GREEDY_ACK).max(1),
            objects: VecDeque::new(),
            told: FIRST,
            complete: FIRST,
            untold: false,
            usable: 0,
            complete_bytes: 0,
            segments: VecDeque::new(),
            overdue: 0,
            new: 0,
            silence: Timer::stopped(),
        }
    }

    fn grace(&self) -> Duration {
        (self.state.round_trip / 2).max(SHORTEST_GRACE)
    }

    /// Finds the objects that are complete, and what may be read.
    fn advance(&mut self) {
        let ack_point = self.state.buffer.ack_point();
        while let Some(&(end, bytes)) = self.objects.front()
            && !ack_point.is_before(end)
        {
            self.objects.pop_front();
            self.complete_bytes += u64::from(bytes);
            (self.complete, self.untold) = (end, true);
        }
        let arrived = self.state.delivered();
        // An object that exceeds the buffer would never be complete.
        let full = ack_point == self.state.room_end();
        let usable = if self.ordered || full { arrived } else { self.complete_bytes.min(arrived) };
        self.usable = self.usable.max(usable);
    }

    // ---- the sender's records ----

    fn on_record(&mut self, now: Instant, record: Record<'_>) -> Result<(), PeerMisbehaved> {
        match record {
            Record::Done { end, bytes } => self.on_done(end, bytes),
            Record::Segment(segment) => self.on_segment(now, segment),
            Record::Feedback(..) => Err(PeerMisbehaved::out_of_turn("the bitmap of a segment")),
            Record::Ack(..) => Err(PeerMisbehaved::out_of_turn("an acknowledgement")),
            Record::Completed(_) => Err(PeerMisbehaved::out_of_turn("the completion of an object")),
        }
    }

    fn on_done(&mut self, end: SeqNo, bytes: u32) -> Result<(), PeerMisbehaved> {
        if !self.is_near(end) || !end.is_after(self.told) || self.objects.len() >= MOST_AHEAD {
            let (field, value) = ("end of an object", end.value().into());
            return Err(PeerMisbehaved::out_of_range(field, value, "after the last one, and not far ahead"));
        }
        let packets = u64::from(end.distance_from(self.told).unsigned_abs());
        if u64::from(bytes).div_ceil(self.state.payload_size as u64) != packets {
            return Err(PeerMisbehaved::out_of_range("bytes of an object", bytes.into(), "those of its packets"));
        }
        self.told = end;
        self.objects.push_back((end, bytes));
        self.advance();
        Ok(())
    }

    fn on_segment(&mut self, now: Instant, segment: Segment) -> Result<(), PeerMisbehaved> {
        if self.version == Version::Greedy {
            return Err(PeerMisbehaved::out_of_turn("the end of a segment"));
        }
        if !self.is_near(segment.range.last) || self.segments.len() >= MOST_AHEAD {
            let (field, value) = ("last packet of a segment", segment.range.last.value().into());
            return Err(PeerMisbehaved::out_of_range(field, value, "not far ahead"));
        }
        self.segments.push_back((segment, now + self.grace()));
        Ok(())
    }

    fn is_near(&self, packet: SeqNo) -> bool {
        packet.distance_from(self.state.buffer.ack_point()) < FAR_AHEAD
    }

    // ---- bitmaps ----

    /// Answers the segments whose packets are here, or should be.
    fn answer_segments(&mut self, out: &mut Vec<u8>) {
        let ack_point = self.state.buffer.ack_point();
        while let Some(&(segment, _)) = self.segments.front()
            && (self.overdue > 0 || segment.range.last.is_before(ack_point))
            && out.len() < MOST_AT_ONCE
        {
            self.segments.pop_front();
            self.overdue = self.overdue.saturating_sub(1);
            let mut missing = 0;
            let ranges = self.state.missing(segment.range).inspect(|range| missing += range.len());
            encode_feedback(segment, ranges, out);
            self.state.counts.lost += u64::from(missing);
            self.state.counts.naks += 1;
        }
    }

    /// Acknowledges everything of the present object.
    fn acknowledge(&mut self, out: &mut Vec<u8>) {
        let (mut first, end) = (self.complete, self.state.buffer.end());
        while first.is_before(end) {
            let last = first.plus(MAX_PACKETS - 1).earlier(end.minus(1));
            let range = SeqRange::new(first, last);
            encode_ack(range, self.state.missing(range), out);
            first = last.next();
        }
        self.state.counts.acks += 1;
        self.new = 0;
        self.silence.stop();
    }
}

impl engine::Receiver for Receiver {
    fn state(&self) -> &ReceiverState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut ReceiverState {
        &mut self.state
    }

    fn handle_datagram(&mut self, _now: Instant, datagram: &[u8]) -> bool {
        let stored = numbered::store(&mut self.state, split(datagram));
        self.new += u32::from(stored.is_some_and(|(_, stored)| stored == Insert::New));
        stored.is_some()
    }

    fn end_batch(&mut self, now: Instant) {
        self.advance();
        if self.version == Version::Greedy && self.new > 0 {
            self.silence.set(now + self.grace());
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while self.segments.get(self.overdue).is_some_and(|(_, latest)| *latest <= now) {
            self.overdue += 1;
        }
        if self.silence.fires(now) {
            self.new = self.new.max(self.every);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let answer = self.segments.get(self.overdue).map(|(_, latest)| *latest);
        [answer, self.silence.deadline()].into_iter().flatten().min()
    }

    fn handle_record(&mut self, now: Instant, bytes: &[u8]) -> Result<Option<usize>, PeerMisbehaved> {
        let Some((record, length)) = Record::decode(bytes).map_err(unreadable)? else { return Ok(None) };
        self.on_record(now, record)?;
        Ok(Some(length))
    }

    fn poll_control(&mut self, _now: Instant, out: &mut Vec<u8>) {
        self.answer_segments(out);
        if std::mem::take(&mut self.untold) {
            encode_completed(self.complete, out);
        }
        if self.version == Version::Greedy && self.new >= self.every {
            self.acknowledge(out);
        }
    }

    fn available(&self) -> usize {
        usize::try_from(self.usable - self.state.counts.read).unwrap_or(usize::MAX)
    }

    fn read(&mut self, out: &mut [u8]) -> usize {
        let most = out.len().min(self.available());
        self.state.read(&mut out[..most])
    }
}
