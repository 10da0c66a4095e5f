//! The bytes that a host sends over a channel, and their division into segments.
//!
//! A segment takes the bytes that are there when it leaves, up to a full segment. Repetitions have the same bytes.

use std::collections::VecDeque;

use farhaul_cc::Spec;
use farhaul_units::Instant;

use super::config::{SEGMENT, SEND_BUFFER, sender_config};
use crate::agent::tcp::{Segment, SegmentKind, SenderConfig, TcpSender};

/// The end of this direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// More bytes may come.
    None,
    /// No more bytes come.
    Announced,
    /// This segment carries the FIN.
    In(u64),
}

/// One direction of a connection, at its sender.
#[derive(Debug)]
pub(super) struct Outgoing {
    sender: TcpSender,
    /// The bytes written and not acknowledged.
    bytes: VecDeque<u8>,
    /// Offset of the first of them in the stream.
    start: u64,
    /// Number of the first segment in flight.
    first: u64,
    /// Where each segment in flight ends in the stream.
    ends: VecDeque<u64>,
    end: End,
    /// Whether the transport waits until the buffer has room.
    is_full: bool,
}

impl Outgoing {
    /// A direction that begins with [`start`](Outgoing::start), with a SYN if its host `calls`.
    pub(super) fn new(calls: bool) -> Self {
        let config = SenderConfig { handshake: calls, ..sender_config() };
        let window = "reno".parse::<Spec>().expect("it is in the registry of controllers");
        Self {
            // Reno draws nothing.
            sender: TcpSender::growing(config, || window.build(0)),
            bytes: VecDeque::new(),
            start: 0,
            first: 0,
            ends: VecDeque::new(),
            end: End::None,
            is_full: false,
        }
    }

    /// Begins to send.
    pub(super) fn start(&mut self, now: Instant) {
        self.sender.start(now);
    }

    /// Takes bytes. Returns whether there is room for more.
    pub(super) fn write(&mut self, bytes: &[u8]) -> bool {
        self.bytes.extend(bytes);
        self.announce();
        self.is_full = self.bytes.len() > SEND_BUFFER;
        !self.is_full
    }

    /// No more bytes come.
    pub(super) fn finish(&mut self) {
        if self.end == End::None {
            self.end = End::Announced;
            self.announce();
        }
    }

    /// Whether the buffer has room again. True once after each [`write`](Outgoing::write) that filled it.
    pub(super) fn take_drained(&mut self) -> bool {
        let drained = self.is_full && self.bytes.len() <= SEND_BUFFER;
        self.is_full &= !drained;
        drained
    }

    /// Whether the peer has acknowledged everything, the FIN included.
    pub(super) fn is_done(&self) -> bool {
        self.sender.finished_at().is_some()
    }

    /// The answer to the SYN, or an acknowledgement.
    pub(super) fn handle_ack(&mut self, now: Instant, segment: &Segment) {
        self.sender.handle_ack(now, segment);
        while self.first < self.sender.acknowledged() {
            let Some(end) = self.ends.pop_front() else { return };
            self.bytes.drain(..(end - self.start) as usize);
            (self.start, self.first) = (end, self.first + 1);
        }
    }

    /// The acknowledgement in a data segment of the peer. It never counts as a duplicate.
    //= paper:rfc5681 §2
    pub(super) fn handle_riding_ack(&mut self, now: Instant, segment: &Segment) {
        if segment.ack > self.first {
            let mut ack = Segment::new(SegmentKind::Ack, segment.header, segment.sent);
            (ack.ack, ack.echo) = (segment.ack, segment.echo);
            self.handle_ack(now, &ack);
        }
    }

    /// The segment to send now. Its bytes are in `scratch`.
    pub(super) fn poll_transmit(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<Segment> {
        scratch.clear();
        let mut segment = self.sender.poll_transmit(now)?;
        if segment.kind == SegmentKind::Syn {
            return Some(segment);
        }
        let index = (segment.seq - self.first) as usize;
        if index == self.ends.len() {
            self.cut(now, segment.seq);
        }
        let place = |index: usize| (self.ends[index] - self.start) as usize;
        let begin = index.checked_sub(1).map_or(0, place);
        scratch.extend(self.bytes.range(begin..place(index)));
        segment.payload = scratch.len() as u32;
        segment.kind = if self.end == End::In(segment.seq) { SegmentKind::LastData } else { SegmentKind::Data };
        Some(segment)
    }

    /// When it needs [`handle_timeout`](Outgoing::handle_timeout).
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.sender.poll_timeout()
    }

    /// Fires the retransmission timer if it is due. Returns how often it fired since the peer last acknowledged
    /// anything.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> u32 {
        self.sender.handle_timeout(now);
        self.sender.timeouts_in_a_row()
    }

    /// Divides off the segment of this number.
    fn cut(&mut self, now: Instant, number: u64) {
        let begin = self.ends.back().copied().unwrap_or(self.start);
        let length = self.uncut().min(u64::from(SEGMENT));
        self.ends.push_back(begin + length);
        if self.end == End::Announced && self.uncut() == 0 {
            self.end = End::In(number);
            self.sender.stop_growing(now);
        }
        self.announce();
    }

    /// Bytes that no segment has taken yet.
    fn uncut(&self) -> u64 {
        let begin = self.ends.back().copied().unwrap_or(self.start);
        self.start + self.bytes.len() as u64 - begin
    }

    /// Tells the sender how many segments are to come. A FIN without bytes is one.
    fn announce(&mut self) {
        let segments = self.uncut().div_ceil(u64::from(SEGMENT));
        self.sender.set_unsent(segments.max(u64::from(self.end == End::Announced)));
    }
}
