//! One connection of a bulk transfer: data written, data read, and its integrity.

use farhaul_proto::{ConnectionId, ConnectionLost, Read, Streams};
use farhaul_units::Instant;

use super::content::Content;
use super::workload::{Amount, Workload};

/// Bytes moved per call.
pub(super) const CHUNK: usize = 64 * 1024;

/// Bytes at the front of a stream: its seed (word 0 of the content) and its length.
const HEADER: usize = 16;

/// The length of an endless stream.
const ENDLESS: u64 = u64::MAX;

/// Integrity of the bytes read so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integrity {
    /// Every byte read is the byte that was sent.
    Intact,
    /// The byte at this offset is wrong or beyond the end of the stream.
    Damaged(u64),
}

/// The part of a stream that was read.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Bytes read.
    pub bytes: u64,
    /// Seed and length, known once the stream's header has arrived. The length of an endless stream is `None`.
    pub header: Option<(u64, Option<u64>)>,
    /// Integrity of the bytes.
    pub integrity: Integrity,
    /// When the last byte of the stream was read.
    pub complete_at: Option<Instant>,
    /// Whether the transport reported the end of the stream.
    pub ended: bool,
}

/// A connection and its state in the application.
#[derive(Clone, Debug)]
pub struct Flow {
    id: ConnectionId,
    workload: Workload,
    content: Content,
    written: u64,
    received: Received,
    header: [u8; HEADER],
    finish_called: bool,
    may_read: bool,
    /// When it was established.
    pub connected_at: Option<Instant>,
    /// When all data of a side that half-closes, and its end, had been acknowledged.
    pub sending_finished_at: Option<Instant>,
    /// When all data had been acknowledged and the peer knew the end of the stream.
    pub finished_at: Option<Instant>,
    /// When and why it ended.
    pub closed: Option<(Instant, ConnectionLost)>,
}

impl Flow {
    pub(super) fn new(id: ConnectionId, content: Content, workload: Workload) -> Self {
        let received =
            Received { bytes: 0, header: None, integrity: Integrity::Intact, complete_at: None, ended: false };
        Self {
            id,
            workload,
            content,
            written: 0,
            received,
            header: [0; HEADER],
            finish_called: false,
            may_read: true,
            connected_at: None,
            sending_finished_at: None,
            finished_at: None,
            closed: None,
        }
    }

    /// Its id at the endpoint.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// The seed of the stream that this side sends.
    pub fn sent_seed(&self) -> u64 {
        self.content.seed()
    }

    /// Whether this side sends data.
    pub fn is_sending(&self) -> bool {
        self.workload.send != Amount::Nothing
    }

    /// Bytes accepted by the transport.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The data read.
    pub fn received(&self) -> &Received {
        &self.received
    }

    /// Whether it is closed and read to its end, or has nothing left to write, read or acknowledge.
    pub fn is_done(&self) -> bool {
        let idle = self.workload.keep_open && self.all_written() && self.all_received();
        // A side that half-closes reads to the end of the peer's direction.
        let read = !self.workload.half_close || !self.may_read;
        idle || (self.finished_at.is_some() && read) || (self.closed.is_some() && !self.may_read)
    }

    pub(super) fn may_read(&self) -> bool {
        self.may_read
    }

    /// Length of this side's stream; `ENDLESS` if it has no end.
    fn length(&self) -> u64 {
        match self.workload.send {
            Amount::Nothing => 0,
            Amount::Bytes(bytes) => bytes.max(HEADER as u64),
            Amount::Unlimited => ENDLESS,
        }
    }

    fn all_written(&self) -> bool {
        self.written == self.length()
    }

    fn all_received(&self) -> bool {
        !self.workload.expect || self.received.complete_at.is_some()
    }

    /// Writes until the transport accepts no more, so that it reports when there is room again.
    pub(super) fn write<T: Streams>(&mut self, now: Instant, transport: &mut T, buffer: &mut [u8]) {
        while !self.all_written() && !self.finish_called {
            let room = transport.writable(self.id).clamp(1, buffer.len()) as u64;
            let chunk = &mut buffer[..room.min(self.length() - self.written) as usize];
            self.content.fill(self.written, chunk);
            self.put_length(chunk);
            match transport.write(now, self.id, chunk) {
                Ok(0) | Err(_) => return,
                Ok(taken) => self.written += taken as u64,
            }
        }
    }

    /// Overwrites the bytes of `chunk`, which is about to be written, that belong to the length field.
    fn put_length(&self, chunk: &mut [u8]) {
        let length = self.length().to_le_bytes();
        for (at, byte) in (self.written..HEADER as u64).zip(chunk) {
            if at >= 8 {
                *byte = length[at as usize - 8];
            }
        }
    }

    /// Reads up to `limit` bytes and checks each of them.
    pub(super) fn read<T: Streams>(&mut self, now: Instant, transport: &mut T, buffer: &mut [u8], limit: u64) {
        let mut left = limit;
        while left > 0 && self.may_read {
            let room = left.min(buffer.len() as u64) as usize;
            match transport.read(now, self.id, &mut buffer[..room]) {
                Ok(Read::Data(count)) => {
                    self.check(now, &buffer[..count]);
                    left -= count as u64;
                }
                Ok(Read::Pending) => return,
                Ok(Read::End) => {
                    self.received.ended = true;
                    self.may_read = false;
                }
                Err(_) => self.may_read = false,
            }
        }
    }

    fn check(&mut self, now: Instant, data: &[u8]) {
        let offset = self.received.bytes;
        self.received.bytes += data.len() as u64;
        let header_part = (HEADER as u64).saturating_sub(offset).min(data.len() as u64) as usize;
        if header_part > 0 {
            let start = offset as usize;
            self.header[start..start + header_part].copy_from_slice(&data[..header_part]);
            if start + header_part == HEADER {
                self.received.header = Some(self.parse_header());
            }
        }
        let Some((seed, length)) = self.received.header else { return };
        let body = &data[header_part..];
        if let Some(at) = Content::new(seed).first_difference(offset + header_part as u64, body) {
            self.damage(at);
        }
        match length {
            Some(length) if self.received.bytes > length => self.damage(length),
            Some(length) if self.received.bytes == length => self.received.complete_at = Some(now),
            _ => {}
        }
    }

    fn parse_header(&self) -> (u64, Option<u64>) {
        let (seed, length) = self.header.split_at(8);
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        (word(seed), Some(word(length)).filter(|&length| length != ENDLESS))
    }

    /// Records the first damage.
    fn damage(&mut self, at: u64) {
        if self.received.integrity == Integrity::Intact {
            self.received.integrity = Integrity::Damaged(at);
        }
    }

    pub(super) fn finish_if_done<T: Streams>(&mut self, now: Instant, transport: &mut T) {
        if self.finish_called || self.workload.keep_open || !self.all_written() {
            return;
        }
        if self.workload.half_close {
            self.finish_called = transport.finish_sending(now, self.id).is_ok();
            return;
        }
        if !self.all_received() {
            return;
        }
        // A side that neither sends nor expects data waits for the peer to close.
        if self.length() > 0 || self.workload.expect {
            self.finish_called = true;
            transport.finish(now, self.id);
        }
    }
}
