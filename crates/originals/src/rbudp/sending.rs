//! The sending program: is asked for a file or a stream, and blasts it.

use farhaul_units::Instant;
use farhaul_wire::rbudp::{EndOfBlast, NAME_BLOCK_LEN, STREAM_MODE, bitmap_len, decode_name, encode_length};

use super::bitmap_mismatch::BitmapMismatch;
use super::{Fault, NO_FILE, Terms};
use crate::session::OriginalSession;
use farhaul_proto::channel::ChannelEnd;
use farhaul_proto::error::PeerMisbehaved;
use farhaul_proto::stats::Stats;
use farhaul_proto::transport::earliest;
use farhaul_protocols::blast::engine::Sender as _;
use farhaul_protocols::rbudp::Division;
use farhaul_protocols::rbudp::sender::{Bitmap, Sender};

/// Rounds without a new packet after which the receiver is given up. iRODS waits for as many.
const FRUITLESS_ROUNDS: u32 = 10;
/// Packets of a first round of which none arrives only if UDP is blocked.
const CERTAIN_PACKETS: u32 = 32;

/// A sender that speaks to an original receiver.
#[derive(Debug)]
pub struct SendingSession {
    terms: Terms,
    sender: Sender,
    state: SendingState,
    /// Bytes for the channel. Datagrams wait for them.
    out: Vec<u8>,
    /// The last name, once it is complete.
    block: Vec<u8>,
    size: Option<u64>,
    /// When the peer was last heard, or last sent to.
    heard: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendingState {
    /// A name is awaited: the first, or the next of a list.
    Name { first: bool },
    /// The host must [answer](SendingSession::answer) a name.
    Asked,
    /// The file is sent, or has been.
    File,
    /// The file is empty, and bytes of a bitmap without packets may come.
    Empty { bitmap: usize },
    /// The request for a stream is awaited.
    StreamRequest,
    /// The stream is sent. `finished` is whether the host has written all of it.
    Stream { finished: bool },
    /// A bitmap did not fit, and its end is awaited.
    Mismatch(BitmapMismatch),
    /// Nothing follows.
    Over,
}

impl SendingSession {
    /// Gives the files that the peer names.
    ///
    /// # Errors
    /// The payload is out of range.
    pub fn files(now: Instant, terms: Terms) -> Result<Self, Fault> {
        Self::new(now, terms, NO_FILE, SendingState::Name { first: true })
    }

    /// Gives a stream.
    ///
    /// # Errors
    /// The payload is out of range.
    pub fn stream(now: Instant, terms: Terms) -> Result<Self, Fault> {
        Self::new(now, terms, Division::Stream, SendingState::StreamRequest)
    }

    fn new(now: Instant, terms: Terms, division: Division, state: SendingState) -> Result<Self, Fault> {
        terms.check()?;
        let sender = terms.sender(division, now);
        Ok(Self { terms, sender, state, out: Vec::new(), block: Vec::new(), size: None, heard: now })
    }

    // ---- the host's side ----

    /// The name that the peer asks for, until it is [answered](Self::answer). These are the peer's bytes: they may be an
    /// absolute path, or end with a newline. To refuse, reset the channel: the dialogue has no word for it.
    pub fn asked(&self) -> Option<&[u8]> {
        let block = self.block.as_slice().try_into().ok()?;
        (self.state == SendingState::Asked).then(|| decode_name(block).unwrap_or_default())
    }

    /// Answers a name with the size of the file, whose bytes follow by [`write`](Self::write).
    ///
    /// # Errors
    /// Nobody asked, or the file is too large.
    pub fn answer(&mut self, now: Instant, size: u64) -> Result<(), Fault> {
        if self.state != SendingState::Asked {
            return Err(Fault::OutOfTurn("an answer"));
        }
        let division = self.terms.division(size)?;
        self.size = Some(size);
        self.block.clear();
        self.out.extend_from_slice(&encode_length(size));
        self.heard = now;
        if size == 0 {
            // The original crashes here, so what its receiver expects is not known.
            self.out.extend_from_slice(&EndOfBlast { round: 0 }.encode());
            self.state = SendingState::Empty { bitmap: bitmap_len(0) };
        } else {
            self.state = SendingState::File;
            self.sender.give(now, division);
        }
        Ok(())
    }

    /// The size that was answered last.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Bytes that [`write`](Self::write) takes now. A file is taken as a whole.
    pub fn room(&self) -> usize {
        match self.state {
            SendingState::File | SendingState::Stream { finished: false } => self.sender.room(),
            _ => 0,
        }
    }

    /// Takes bytes of the file or stream, and returns their number.
    pub fn write(&mut self, now: Instant, data: &[u8]) -> usize {
        if self.room() == 0 { 0 } else { self.sender.write(now, data) }
    }

    /// Nothing follows for now, so the next blast of a stream need not wait for more.
    pub fn flush(&mut self, now: Instant) {
        self.sender.flush(now);
    }

    /// The stream is written as a whole.
    pub fn finish(&mut self, now: Instant) {
        if let SendingState::Stream { finished } = &mut self.state {
            *finished = true;
            self.sender.flush(now);
            self.end_stream_if_delivered();
        }
    }

    /// Whether the peer has everything: the last file asked for, or the stream. Drain
    /// [`poll_channel`](Self::poll_channel), then end the channel, or await the next name of a list.
    pub fn is_complete(&self) -> bool {
        matches!(self.state, SendingState::Over | SendingState::Name { first: false }) && self.out.is_empty()
    }

    /// Counts of this session.
    pub fn stats(&self, now: Instant) -> Stats {
        let mut stats = Stats::default();
        stats.rtt = self.terms.round_trip;
        self.sender.fill_stats(now, &mut stats);
        stats
    }

    fn on_name(&mut self, rest: &mut &[u8]) -> Result<(), Fault> {
        let taken = rest.len().min(NAME_BLOCK_LEN - self.block.len());
        self.block.extend_from_slice(&rest[..taken]);
        *rest = &rest[taken..];
        if let Ok(block) = self.block.as_slice().try_into() {
            self.state = if decode_name(block)?.is_empty() { SendingState::Over } else { SendingState::Asked };
        }
        Ok(())
    }

    /// Takes bytes of one bitmap, and returns their number.
    fn on_bitmap(&mut self, now: Instant, bytes: &[u8]) -> Result<usize, Fault> {
        let before = self.sender.bitmap();
        let used = match self.sender.take_bitmap(now, bytes) {
            Ok(used) => used,
            Err(fault) => {
                self.state = SendingState::Mismatch(self.mismatch(now, before, bytes, fault.into())?);
                return Ok(bytes.len());
            }
        };
        if let Some(packets) = self.sender.lost_altogether().filter(|&packets| packets >= CERTAIN_PACKETS) {
            return Err(Fault::NothingArrived(packets));
        }
        if self.sender.fruitless_rounds() >= FRUITLESS_ROUNDS {
            let none = self.sender.lost_altogether().map(Fault::NothingArrived);
            return Err(none.unwrap_or(Fault::NoProgress(FRUITLESS_ROUNDS)));
        }
        if self.state == SendingState::File && self.sender.has_given() {
            self.state = SendingState::Name { first: false };
        }
        self.end_stream_if_delivered();
        Ok(used)
    }

    /// A bitmap was refused for `fault`. It may be one for more packets: bytes follow its end, or its first byte says that
    /// packets are missing, which are then beyond the end of the blast.
    fn mismatch(
        &self,
        now: Instant,
        before: Option<Bitmap>,
        bytes: &[u8],
        fault: Fault,
    ) -> Result<BitmapMismatch, Fault> {
        let Some(before) = before else { return Err(fault) };
        let has_flag = before.read > 0 || (self.sender.awaits_bitmap() && bytes[0] == 0);
        let is_missing_others = self.sender.bitmap().is_some_and(|after| after.missing == 0);
        if !has_flag || !is_missing_others {
            return Err(fault);
        }
        Ok(BitmapMismatch::longer(now, self.terms.payload, &before, bytes.len(), fault))
    }

    fn end_stream_if_delivered(&mut self) {
        if self.state == (SendingState::Stream { finished: true }) && self.sender.is_delivered() {
            self.out.extend_from_slice(&encode_length(0));
            self.state = SendingState::Over;
        }
    }

    /// Why a receiver said no more in the middle of a transfer: `otherwise`, unless it expects fewer packets.
    fn unanswered(&self, now: Instant, otherwise: Fault) -> Fault {
        let Some(bitmap) = self.sender.bitmap() else { return otherwise };
        if bitmap.round == 0 && bitmap.read == 0 && otherwise == Fault::ChannelBroke {
            return Fault::LeftUnanswered(self.terms.payload);
        }
        BitmapMismatch::shorter(now, self.terms.payload, &bitmap, otherwise).fault()
    }

    /// Whether the request was answered. The size goes first.
    fn may_send(&self) -> bool {
        self.out.is_empty() && matches!(self.state, SendingState::File | SendingState::Stream { .. })
    }

    fn awaits_peer(&self) -> bool {
        match self.state {
            SendingState::Name { first } => first || !self.block.is_empty(),
            SendingState::StreamRequest | SendingState::Empty { .. } => true,
            SendingState::File | SendingState::Stream { .. } => self.sender.awaits_bitmap(),
            SendingState::Asked | SendingState::Mismatch(_) | SendingState::Over => false,
        }
    }
}

impl OriginalSession for SendingSession {
    type Fault = Fault;

    fn handle_channel(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Fault> {
        self.heard = now;
        let mut rest = bytes;
        while let Some(&byte) = rest.first() {
            match &mut self.state {
                SendingState::Name { .. } => self.on_name(&mut rest)?,
                SendingState::StreamRequest if byte == STREAM_MODE => {
                    self.state = SendingState::Stream { finished: false };
                    rest = &rest[1..];
                }
                SendingState::StreamRequest => return Err(Fault::WantsFile),
                SendingState::Empty { bitmap } => {
                    *bitmap -= 1;
                    rest = &rest[1..];
                    if *bitmap == 0 {
                        self.state = SendingState::Name { first: false };
                    }
                }
                SendingState::File | SendingState::Stream { .. } => {
                    rest = &rest[self.on_bitmap(now, rest)?..];
                }
                SendingState::Mismatch(mismatch) => {
                    mismatch.add(rest.len());
                    return Ok(());
                }
                SendingState::Asked | SendingState::Over => {
                    return Err(PeerMisbehaved::out_of_turn("a record of the receiver").into());
                }
            }
        }
        Ok(())
    }

    fn channel_ended(&mut self, now: Instant, _end: ChannelEnd) -> Result<(), Fault> {
        match self.state {
            SendingState::Name { first: false } if self.block.is_empty() => Ok(()),
            SendingState::Name { first: true } if self.block.is_empty() => Err(Fault::NothingAsked),
            SendingState::Over => Ok(()),
            SendingState::Empty { .. } => {
                // Nothing is missing. The original receiver cannot map an empty file, and leaves without an answer.
                self.state = SendingState::Name { first: false };
                Ok(())
            }
            SendingState::File | SendingState::Stream { .. } => Err(self.unanswered(now, Fault::ChannelBroke)),
            SendingState::Mismatch(mismatch) => Err(mismatch.fault()),
            _ => Err(Fault::ChannelBroke),
        }
    }

    fn poll_channel(&mut self, now: Instant, out: &mut Vec<u8>) {
        out.append(&mut self.out);
        self.sender.poll_control(now, out);
    }

    fn peer_port(&self) -> Option<u16> {
        self.terms.port.checked_add(1)
    }

    fn poll_datagrams<'a, E>(
        &'a mut self,
        now: Instant,
        _content: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Option<(usize, &'a [u8])>, E> {
        if !self.may_send() {
            return Ok(None);
        }
        let Some(plan) = self.sender.plan(now) else { return Ok(None) };
        self.heard = now;
        Ok(self.sender.emit(now, plan, scratch))
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Fault> {
        if let SendingState::Mismatch(mismatch) = self.state {
            return if now < mismatch.until { Ok(()) } else { Err(mismatch.fault()) };
        }
        if !self.awaits_peer() || now < self.heard + self.terms.patience {
            return Ok(());
        }
        if let SendingState::Empty { .. } = self.state {
            // Nothing is missing there.
            self.state = SendingState::Name { first: false };
            return Ok(());
        }
        Err(self.unanswered(now, Fault::Silent(self.terms.patience)))
    }

    fn deadline(&self) -> Option<Instant> {
        let sending = if self.may_send() { self.sender.deadline() } else { None };
        let patience = match self.state {
            SendingState::Mismatch(mismatch) => Some(mismatch.until),
            _ => self.awaits_peer().then(|| self.heard + self.terms.patience),
        };
        earliest(sending, patience)
    }
}
