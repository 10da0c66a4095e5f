//! The receiving engine: tallies each blast and answers its end with a bitmap.

mod incoming;

use farhaul_units::{Instant, SeqNo, SeqRange};
use farhaul_wire::rbudp::{self, ByteOrder, EndOfBlast, RECORD_LEN, decode_length, packets_of};

use self::incoming::{Fit, Incoming};
use super::{Division, MAX_BLAST_PACKETS, Numbering, first_number};
use crate::blast::engine::{self, Setup};
use crate::blast::receiving::{ReceiverState, packets_in};
use farhaul_proto::buffer::Insert;
use farhaul_proto::error::PeerMisbehaved;
use farhaul_proto::stats::Stats;

/// Packets that the buffer holds in addition, for blasts that end with a short one.
const SHORT_PACKETS: u32 = 64;
/// Least bytes of the buffer: the credit that a Farhaul sender begins with.
const MIN_BUFFER: u64 = 64 << 10;

/// The receiving end of a direction.
#[derive(Debug)]
pub struct Receiver {
    state: ReceiverState,
    numbering: Numbering,
    division: Division,
    blast: Option<Incoming>,
    /// The first packet of the next blast.
    next: SeqNo,
    order: ByteOrder,
    /// The sender announced a length of zero, so nothing follows.
    ended: bool,
    /// Records that the channel has not taken.
    control: Vec<u8>,
    /// Datagrams of another length than their packet has, and payload bytes of the largest.
    foreign: u64,
    largest_foreign: usize,
}

/// Datagrams so far.
#[derive(Clone, Copy, Debug)]
pub struct Datagrams {
    /// Those of the length that their packet has.
    pub valid: u64,
    /// Those of another length than their packet has.
    pub foreign: u64,
    /// Payload bytes of the largest of those.
    pub largest_foreign: usize,
}

impl Receiver {
    /// A receiver of packets with `payload` bytes.
    pub fn new(payload: usize, division: Division, setup: Setup<'_>) -> Self {
        let by_memory = packets_in(setup.config.recv_buffer.max(MIN_BUFFER), payload);
        let capacity = by_memory.min(MAX_BLAST_PACKETS) + SHORT_PACKETS;
        let first = first_number(&setup);
        let mut receiver = Self {
            state: ReceiverState::new(first, payload, capacity, &setup),
            numbering: setup.prefix.into(),
            division,
            blast: None,
            next: first,
            order: ByteOrder::default(),
            ended: false,
            control: Vec::new(),
            foreign: 0,
            largest_foreign: 0,
        };
        receiver.begin_of_file(setup.now);
        receiver
    }

    /// Whether nothing is under way: a stream may end here, and a file has arrived.
    pub fn is_between_blasts(&self) -> bool {
        let waits = self.blast.is_some() || !self.state.partial.is_empty();
        !waits && !matches!(self.division, Division::File { left: 1.., .. })
    }

    /// Whether the sender announced the end of the stream.
    pub const fn is_ended(&self) -> bool {
        self.ended
    }

    /// The datagrams so far.
    pub const fn datagrams(&self) -> Datagrams {
        let (foreign, largest_foreign) = (self.foreign, self.largest_foreign);
        Datagrams { valid: self.state.counts.packets, foreign, largest_foreign }
    }

    /// Whether a blast waits for the peer, and not for the reader.
    pub fn awaits_peer(&self) -> bool {
        self.blast.as_ref().is_some_and(|blast| !blast.awaits_reader(&self.state))
    }

    /// Whether the end of the round under way has come.
    pub fn has_end(&self) -> bool {
        self.blast.as_ref().is_some_and(Incoming::has_end)
    }

    /// Expects the next file of an original's dialogue.
    pub fn expect(&mut self, now: Instant, division: Division) {
        self.division = division;
        self.begin_of_file(now);
    }

    // ---- the channel ----

    fn on_record(&mut self, now: Instant, record: [u8; RECORD_LEN]) -> Result<(), PeerMisbehaved> {
        // A sender goes on once it has read the bitmap. Without this rule, one that reads nothing could have bitmaps
        // pile up here (attack C3).
        if !self.control.is_empty() {
            return Err(PeerMisbehaved::out_of_turn("a record before its bitmap was read"));
        }
        let Some(blast) = &mut self.blast else { return self.on_length(now, record) };
        let end = EndOfBlast::decode(record, self.order).map_err(|_| {
            PeerMisbehaved::out_of_range(
                "the mark of the end of a blast",
                u64::from_be_bytes(record) & 0xFFFF_FFFF,
                "\"EEE\" and a pad",
            )
        })?;
        // Whether all original programs count rounds alike is not known.
        if self.numbering == Numbering::Running && end.round != blast.round() {
            return Err(PeerMisbehaved::out_of_range(
                "the round of a blast",
                end.round.into(),
                "one more than that of the last end",
            ));
        }
        if !blast.on_end(now) {
            return Err(PeerMisbehaved::out_of_turn("the end of a blast"));
        }
        self.answer_if_due(now);
        Ok(())
    }

    fn on_length(&mut self, now: Instant, record: [u8; RECORD_LEN]) -> Result<(), PeerMisbehaved> {
        if self.division != Division::Stream || self.ended {
            return Err(PeerMisbehaved::out_of_turn("a record after the last blast"));
        }
        let out = || {
            PeerMisbehaved::out_of_range(
                "the length of a blast",
                u64::from_be_bytes(record),
                "what the receiver has room for",
            )
        };
        let length = decode_length(record).map_err(|_| out())?;
        self.ended = length == 0;
        if !self.ended && !self.begin(now, length) {
            return Err(out());
        }
        Ok(())
    }

    // ---- blasts ----

    /// Begins the next blast of a file.
    fn begin_of_file(&mut self, now: Instant) {
        if let Some(length) = self.division.next_of_file() {
            self.begin(now, length);
        }
    }

    /// Begins a blast of `length` bytes. Returns false if it is beyond every limit.
    fn begin(&mut self, now: Instant, length: u64) -> bool {
        // A Farhaul sender has credit for no more than the buffer. A file of an original sender may exceed the buffer,
        // and then takes more rounds.
        let most = match self.numbering {
            Numbering::Running => self.state.buffer.capacity(),
            Numbering::PerBlast => MAX_BLAST_PACKETS,
        };
        let Some(packets) =
            packets_of(length, self.state.payload_size).filter(|&packets| (1..=most).contains(&packets))
        else {
            return false;
        };
        let before = u64::from(packets - 1) * self.state.payload_size as u64;
        let blast = Incoming::new(self.next, packets, self.state.payload_size, (length - before) as usize, now);
        // A packet that came before its announcement was taken for a full one.
        let last = blast.end().minus(1);
        let early = last.is_before(self.state.buffer.end())
            && self.state.buffer.missing(SeqRange::new(last, last)).next().is_none();
        if early && blast.fit(last, self.state.payload_size) == Fit::Foreign {
            return false;
        }
        self.next = blast.end();
        self.blast = Some(blast);
        true
    }

    /// Writes the bitmap if it is due.
    fn answer_if_due(&mut self, now: Instant) {
        let Some(blast) = &mut self.blast else { return };
        if blast.due(&self.state).is_none_or(|due| now < due) {
            return;
        }
        let (mut missing, mut last) = (0, None);
        let ranges = blast.missing(&self.state).inspect(|range| {
            missing += u64::from(range.end - range.start);
            last = Some(range.end - 1);
        });
        rbudp::encode_bitmap(blast.packets, ranges, &mut self.control);
        self.state.counts.lost += missing;
        match last {
            Some(last) => {
                self.state.counts.naks += 1;
                blast.repeat(last);
            }
            None => {
                self.state.counts.acks += 1;
                self.blast = None;
                self.begin_of_file(now);
            }
        }
    }

    // ---- datagrams ----

    /// The packet of an index on the wire. `Err` is the answer for datagrams without one.
    fn locate(&mut self, index: [u8; 4]) -> Result<SeqNo, bool> {
        match (self.numbering, &self.blast) {
            (Numbering::Running, _) => {
                let index = ByteOrder::Little.read(index);
                if index <= SeqNo::MAX.value() { Ok(SeqNo::new(index)) } else { Err(false) }
            }
            (Numbering::PerBlast, Some(blast)) => {
                let index = self.order.index(index, blast.packets).ok_or(false)?;
                Ok(blast.first.plus(index))
            }
            // Late, of an earlier blast.
            (Numbering::PerBlast, None) => Err(true),
        }
    }

    fn on_packet(&mut self, now: Instant, seq: SeqNo, payload: &[u8]) -> bool {
        let is_late = seq.is_before(self.state.buffer.ack_point());
        match &mut self.blast {
            Some(blast) if !is_late => {
                if blast.fit(seq, payload.len()) == Fit::Foreign {
                    self.foreign += 1;
                    self.largest_foreign = self.largest_foreign.max(payload.len());
                    return false;
                }
                let stored = self.state.store(seq, payload);
                blast.on_packet(now, seq, stored == Insert::Rejected);
            }
            None if !is_late => {
                self.state.counts.packets += 1;
                // It overtook the announcement of its blast. A shorter one waits for its repetition.
                if payload.len() == self.state.payload_size {
                    self.state.insert(seq, payload);
                }
            }
            _ => {
                self.state.store(seq, payload);
            }
        }
        true
    }
}

impl engine::Receiver for Receiver {
    fn state(&self) -> &ReceiverState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut ReceiverState {
        &mut self.state
    }

    fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> bool {
        let Ok((index, payload)) = rbudp::split_data(datagram) else { return false };
        match self.locate(index) {
            Ok(seq) => self.on_packet(now, seq, payload),
            Err(late) => {
                self.state.counts.duplicates += u64::from(late);
                late
            }
        }
    }

    fn end_batch(&mut self, now: Instant) {
        self.answer_if_due(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.answer_if_due(now);
    }

    fn deadline(&self) -> Option<Instant> {
        self.blast.as_ref()?.due(&self.state)
    }

    fn handle_record(&mut self, now: Instant, bytes: &[u8]) -> Result<Option<usize>, PeerMisbehaved> {
        let Some(record) = bytes.first_chunk() else { return Ok(None) };
        self.on_record(now, *record)?;
        Ok(Some(RECORD_LEN))
    }

    fn poll_control(&mut self, now: Instant, out: &mut Vec<u8>) {
        // A bitmap may have waited for the reader.
        self.answer_if_due(now);
        out.append(&mut self.control);
    }

    fn fill_stats(&self, _now: Instant, stats: &mut Stats) {
        self.state.fill_stats(stats);
        // Packets after a gap count once the gap is filled.
        stats.totals.bytes_received = self.state.delivered();
    }
}
