//! The receiving program: asks for a file or a stream, and takes it.

use farhaul_units::{Duration, Instant};
use farhaul_wire::rbudp::{
    ByteOrder, EndOfBlast, RECORD_LEN, RecordError, STREAM_MODE, decode_length, encode_bitmap, encode_name,
};

use super::{Fault, NO_FILE, Terms, UDP_PATIENCE};
use crate::session::{DatagramOutcome, OriginalSession};
use farhaul_proto::channel::ChannelEnd;
use farhaul_proto::error::PeerMisbehaved;
use farhaul_proto::stats::Stats;
use farhaul_proto::transport::earliest;
use farhaul_protocols::blast::engine::Receiver as _;
use farhaul_protocols::rbudp::Division;
use farhaul_protocols::rbudp::receiver::{Datagrams, Receiver};

/// A receiver that speaks to an original sender.
#[derive(Debug)]
pub struct ReceivingSession {
    terms: Terms,
    receiver: Receiver,
    state: ReceivingState,
    /// Bytes for the channel.
    out: Vec<u8>,
    /// A record that arrives in pieces.
    record: Vec<u8>,
    size: Option<u64>,
    /// When the peer was last heard.
    heard: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceivingState {
    /// The name was sent, and the size is awaited.
    Size,
    /// The file is received, or has been.
    File,
    /// The file is empty. A sender may end its blast without packets.
    Empty,
    Stream,
    /// Nothing follows.
    Over,
}

impl ReceivingSession {
    /// Asks for a file.
    ///
    /// # Errors
    /// The name or the payload is out of range.
    pub fn file(now: Instant, terms: Terms, name: &[u8]) -> Result<Self, Fault> {
        if name.is_empty() {
            return Err(Fault::OutOfTurn("an empty name"));
        }
        let out = encode_name(name)?.to_vec();
        Self::new(now, terms, NO_FILE, ReceivingState::Size, out)
    }

    /// Asks for a stream.
    ///
    /// # Errors
    /// The payload is out of range.
    pub fn stream(now: Instant, terms: Terms) -> Result<Self, Fault> {
        Self::new(now, terms, Division::Stream, ReceivingState::Stream, vec![STREAM_MODE])
    }

    fn new(now: Instant, terms: Terms, division: Division, state: ReceivingState, out: Vec<u8>) -> Result<Self, Fault> {
        terms.check()?;
        let receiver = terms.receiver(division, now);
        Ok(Self { terms, receiver, state, out, record: Vec::new(), size: None, heard: now })
    }

    /// Asks for the next file of a list. The bytes of the last may be unread. An empty name ends the list.
    ///
    /// # Errors
    /// The name is out of range, or the last file is not complete.
    pub fn ask(&mut self, now: Instant, name: &[u8]) -> Result<(), Fault> {
        if !self.is_complete() || !matches!(self.state, ReceivingState::File | ReceivingState::Empty) {
            return Err(Fault::OutOfTurn("another name"));
        }
        self.out.extend_from_slice(&encode_name(name)?);
        self.state = if name.is_empty() { ReceivingState::Over } else { ReceivingState::Size };
        self.size = None;
        self.heard = now;
        Ok(())
    }

    // ---- facts ----

    /// The size of the file, once the sender has said it.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Whether everything has arrived: the file as a whole, or the stream up to its end. Some of it may be unread.
    pub fn is_complete(&self) -> bool {
        match self.state {
            ReceivingState::Size => false,
            ReceivingState::File => self.receiver.is_between_blasts(),
            ReceivingState::Empty | ReceivingState::Over => true,
            ReceivingState::Stream => self.receiver.is_ended(),
        }
    }

    /// Bytes in order that [`read`](Self::read) would return.
    pub fn available(&self) -> usize {
        self.receiver.available()
    }

    /// Moves bytes in order into `out`, and returns their number. Drain [`poll_channel`](Self::poll_channel) afterwards.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        self.receiver.read(out)
    }

    /// Counts of this session.
    pub fn stats(&self, now: Instant) -> Stats {
        let mut stats = Stats::default();
        stats.payload_size = self.terms.payload.into();
        stats.rtt = self.terms.round_trip;
        self.receiver.fill_stats(now, &mut stats);
        stats
    }

    /// Takes a record off the front of `rest`; `None` if more bytes are needed.
    fn take_record(&mut self, rest: &mut &[u8]) -> Option<[u8; RECORD_LEN]> {
        let taken = rest.len().min(RECORD_LEN - self.record.len());
        self.record.extend_from_slice(&rest[..taken]);
        *rest = &rest[taken..];
        let record = self.record.as_slice().try_into().ok()?;
        self.record.clear();
        Some(record)
    }

    fn on_size(&mut self, now: Instant, record: [u8; RECORD_LEN]) -> Result<(), Fault> {
        let size = decode_length(record).map_err(|fault| match fault {
            RecordError::Negative(size) => Fault::NegativeSize(size),
            _ => PeerMisbehaved::out_of_turn("a size").into(),
        })?;
        let division = self.terms.division(size)?;
        self.size = Some(size);
        self.state = if size == 0 { ReceivingState::Empty } else { ReceivingState::File };
        self.receiver.expect(now, division);
        Ok(())
    }

    /// The end of a blast without packets, which a sender may send for an empty file.
    fn on_empty_blast(&mut self, record: [u8; RECORD_LEN]) -> Result<(), Fault> {
        EndOfBlast::decode(record, ByteOrder::Little)
            .map_err(|_| PeerMisbehaved::out_of_turn("a record after an empty file"))?;
        encode_bitmap(0, std::iter::empty(), &mut self.out);
        self.state = ReceivingState::File;
        Ok(())
    }

    /// How long the sender may be silent now; `None` if it need not say anything. A stream pauses between blasts.
    fn patience(&self) -> Option<Duration> {
        match self.state {
            ReceivingState::Size => Some(self.terms.patience),
            _ if self.awaits_first_datagram() => Some(UDP_PATIENCE.min(self.terms.patience)),
            _ => self.receiver.awaits_peer().then_some(self.terms.patience),
        }
    }

    fn awaits_first_datagram(&self) -> bool {
        self.receiver.awaits_peer() && self.receiver.datagrams().valid == 0
    }

    /// Judges the lengths of the datagrams at the end of a blast.
    fn check_payload(&self) -> Result<(), Fault> {
        if self.receiver.has_end() { self.payload_fault().map_or(Ok(()), Err) } else { Ok(()) }
    }

    /// The fault of a peer most of whose datagrams have another length. The last one of a blast may fit by chance.
    fn payload_fault(&self) -> Option<Fault> {
        let Datagrams { valid, foreign, largest_foreign } = self.receiver.datagrams();
        (foreign > valid).then_some(Fault::OtherPayload { own: self.terms.payload, peers: largest_foreign })
    }
}

impl OriginalSession for ReceivingSession {
    type Fault = Fault;

    fn handle_channel(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Fault> {
        self.heard = now;
        let mut rest = bytes;
        while !rest.is_empty() && matches!(self.state, ReceivingState::Size | ReceivingState::Empty) {
            let Some(record) = self.take_record(&mut rest) else { return Ok(()) };
            match self.state {
                ReceivingState::Size => self.on_size(now, record)?,
                _ => self.on_empty_blast(record)?,
            }
        }
        match self.state {
            _ if rest.is_empty() => {}
            ReceivingState::Over => return Err(PeerMisbehaved::out_of_turn("a record after the end").into()),
            _ => self.receiver.handle_control(now, rest)?,
        }
        self.check_payload()
    }

    fn channel_ended(&mut self, _now: Instant, end: ChannelEnd) -> Result<(), Fault> {
        let between = end == ChannelEnd::Finished && self.receiver.is_between_blasts();
        match self.state {
            // A sender that refuses may reset the connection.
            ReceivingState::Size => Err(Fault::NoAnswer),
            // The original simply ends the channel after a stream.
            ReceivingState::Stream if between => {
                self.state = ReceivingState::Over;
                Ok(())
            }
            _ if self.is_complete() => Ok(()),
            _ => Err(Fault::ChannelBroke),
        }
    }

    fn poll_channel(&mut self, now: Instant, out: &mut Vec<u8>) {
        out.append(&mut self.out);
        self.receiver.poll_control(now, out);
    }

    fn peer_port(&self) -> Option<u16> {
        Some(self.terms.port)
    }

    fn receives(&self) -> bool {
        true
    }

    fn handle_datagram<'d>(&mut self, now: Instant, _from_port: u16, datagram: &'d [u8]) -> DatagramOutcome<'d> {
        if !self.receiver.handle_datagram(now, datagram) {
            return DatagramOutcome::Foreign;
        }
        self.heard = now;
        DatagramOutcome::Taken
    }

    fn end_batch(&mut self, now: Instant) {
        self.receiver.end_batch(now);
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Fault> {
        self.check_payload()?;
        self.receiver.handle_timeout(now);
        match self.patience() {
            Some(time) if now >= self.heard + time => {
                let blocked = self.awaits_first_datagram();
                let fault = if blocked { Fault::UdpBlocked(time) } else { Fault::Silent(time) };
                Err(self.payload_fault().unwrap_or(fault))
            }
            _ => Ok(()),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        earliest(self.receiver.deadline(), self.patience().map(|time| self.heard + time))
    }
}
