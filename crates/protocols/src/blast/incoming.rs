//! The peer's stream: puts what came on the channel and by datagrams in order, and grants credit.

use std::collections::VecDeque;

use farhaul_wire::blast::Frame;

use super::engine::Receiver;
use farhaul_proto::error::PeerMisbehaved;

/// A grant is renewed when this part of the window was read.
const GRANT_PART: u64 = 4;
/// Most parts that wait for the application. An honest dialogue never has so many, and each takes memory (attack C3).
const MAX_PARTS: usize = 1 << 16;

/// The stream from the peer.
#[derive(Debug)]
pub(super) struct Incoming<R> {
    pub(super) engine: R,
    /// The next parts of the stream, oldest first.
    parts: VecDeque<Part>,
    /// Bytes read by the application, and announced or sent by the peer.
    read: u64,
    announced: u64,
    /// Bytes that may wait for the application.
    window: u64,
    granted: u64,
    /// The last offset that the peer was told.
    told: u64,
    ended: bool,
}

/// A part of the stream that came by one path.
#[derive(Debug)]
enum Part {
    Inline {
        bytes: Vec<u8>,
        read: usize,
    },
    /// Bytes left to read from the engine.
    Engine(u64),
}

impl<R: Receiver> Incoming<R> {
    /// `granted` is the credit that the peer begins with, and `window` the bytes that may wait here.
    pub(super) fn new(engine: R, window: u64, granted: u64) -> Self {
        let (read, announced, told) = (0, 0, 0);
        Self { engine, parts: VecDeque::new(), read, announced, window, granted, told, ended: false }
    }

    // ---- the channel ----

    /// Bytes of the stream came on the channel.
    ///
    /// # Errors
    /// The peer exceeds its credit, or had ended its stream.
    pub(super) fn on_inline(&mut self, bytes: &[u8]) -> Result<(), PeerMisbehaved> {
        self.announce(bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        match self.parts.back_mut() {
            Some(Part::Inline { bytes: last, .. }) => last.extend_from_slice(bytes),
            _ => self.parts.push_back(Part::Inline { bytes: bytes.to_vec(), read: 0 }),
        }
        Ok(())
    }

    /// The next `bytes` bytes of the stream come by datagrams.
    ///
    /// # Errors
    /// The peer exceeds its credit, or had ended its stream.
    pub(super) fn on_bulk(&mut self, bytes: u64) -> Result<(), PeerMisbehaved> {
        self.announce(bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        match self.parts.back_mut() {
            Some(Part::Engine(left)) => *left += bytes,
            _ => self.parts.push_back(Part::Engine(bytes)),
        }
        Ok(())
    }

    fn announce(&mut self, bytes: u64) -> Result<(), PeerMisbehaved> {
        if self.ended {
            return Err(PeerMisbehaved::out_of_turn("data after the end"));
        }
        if self.parts.len() >= MAX_PARTS {
            return Err(PeerMisbehaved::out_of_turn("a stream in so many parts"));
        }
        self.announced = self.announced.saturating_add(bytes);
        if self.announced > self.granted {
            return Err(PeerMisbehaved::out_of_range("data", self.announced, "within the credit"));
        }
        Ok(())
    }

    /// The peer's stream is complete.
    pub(super) fn on_end(&mut self) {
        self.ended = true;
    }

    /// Whether everything that the peer announced has arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.read + self.available() == self.announced
    }

    /// Appends a grant if enough was read since the last.
    pub(super) fn poll_grant(&mut self, out: &mut Vec<u8>) {
        let grant = self.read + self.window;
        if grant - self.granted >= self.window / GRANT_PART {
            self.granted = grant;
            Frame::Grant(grant).encode(out);
        }
    }

    /// Whether the peer does not know how much has arrived.
    pub(super) fn has_news(&self) -> bool {
        self.read + self.available() > self.told
    }

    /// Appends what has arrived.
    pub(super) fn tell(&mut self, out: &mut Vec<u8>) {
        self.told = self.read + self.available();
        Frame::Delivered(self.told).encode(out);
    }

    // ---- the application's side ----

    /// Bytes in order.
    pub(super) fn available(&self) -> u64 {
        let (mut available, mut of_engine) = (0, self.engine.available() as u64);
        for part in &self.parts {
            match part {
                Part::Inline { bytes, read } => available += (bytes.len() - read) as u64,
                Part::Engine(left) => {
                    let here = of_engine.min(*left);
                    available += here;
                    of_engine -= here;
                    if here < *left {
                        break;
                    }
                }
            }
        }
        available
    }

    /// Moves bytes in order into `out`, and returns their number.
    pub(super) fn read(&mut self, out: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < out.len()
            && let Some(part) = self.parts.front_mut()
        {
            let room = &mut out[filled..];
            let (moved, done) = match part {
                Part::Inline { bytes, read } => {
                    let moved = room.len().min(bytes.len() - *read);
                    room[..moved].copy_from_slice(&bytes[*read..*read + moved]);
                    *read += moved;
                    (moved, *read == bytes.len())
                }
                Part::Engine(left) => {
                    let most = usize::try_from(*left).unwrap_or(usize::MAX).min(room.len());
                    let moved = self.engine.read(&mut room[..most]);
                    *left -= moved as u64;
                    (moved, *left == 0)
                }
            };
            filled += moved;
            if done {
                self.parts.pop_front();
            } else if moved == 0 {
                break;
            }
        }
        self.read += filled as u64;
        filled
    }

    /// Bytes of memory that hold what came on the channel.
    pub(super) fn inline_memory(&self) -> usize {
        let inline = |part: &Part| if let Part::Inline { bytes, .. } = part { bytes.capacity() } else { 0 };
        self.parts.iter().map(inline).sum()
    }

    pub(super) fn received(&self) -> u64 {
        self.read + self.available()
    }

    pub(super) fn total_read(&self) -> u64 {
        self.read
    }
}
