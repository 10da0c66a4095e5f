//! The TLS messages of one epoch, as a stream of bytes in each direction, over packets that may be lost.

use farhaul_wire::secure::Frame;

/// Most bytes of one direction and epoch. A chain of raw keys and a post-quantum exchange need less than 4 KiB.
const MOST: usize = 16 << 10;
/// Segments that may wait behind a gap.
const MOST_SEGMENTS: usize = 32;

/// Both directions.
#[derive(Debug, Default)]
pub struct CryptoStream {
    /// Everything that this side has written.
    written: Vec<u8>,
    /// The peer has everything before this byte.
    confirmed: usize,
    /// The next byte to send.
    next: usize,
    /// Bytes that the peer has written, without a gap.
    received: usize,
    /// Segments behind a gap, in the order of their offsets.
    segments: Vec<(usize, Vec<u8>)>,
}

/// The peer has written more than any handshake needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch;

impl CryptoStream {
    // ---- what this side writes ----

    /// Appends bytes of this side.
    pub fn write(&mut self, bytes: &[u8]) {
        self.written.extend_from_slice(bytes);
    }

    /// Whether something was not sent, since the last [`repeat`](Self::repeat).
    pub const fn has_unsent(&self) -> bool {
        self.next < self.written.len()
    }

    /// Whether the peer may lack something.
    pub const fn has_unconfirmed(&self) -> bool {
        self.confirmed < self.written.len()
    }

    /// The next segment, of at most `room` bytes with its frame. It counts as sent.
    pub fn take(&mut self, room: usize) -> Option<Frame<'_>> {
        let room = room.checked_sub(Frame::CRYPTO_OVERHEAD).filter(|&room| room > 0)?;
        if !self.has_unsent() {
            return None;
        }
        let (offset, end) = (self.next, self.written.len().min(self.next + room));
        self.next = end;
        Some(Frame::Crypto { offset: u32::try_from(offset).ok()?, bytes: &self.written[offset..end] })
    }

    /// Sends everything again that the peer may lack.
    pub const fn repeat(&mut self) {
        self.next = self.confirmed;
    }

    /// The peer has everything before `offset`. A peer that confirms more than was written has no effect.
    pub fn on_confirmed(&mut self, offset: u32) {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        if offset <= self.written.len() {
            self.confirmed = self.confirmed.max(offset);
            self.next = self.next.max(self.confirmed);
        }
    }

    /// The peer has proved that it knows everything that was written.
    pub fn forget_written(&mut self) {
        self.written = Vec::new();
        (self.confirmed, self.next) = (0, 0);
    }

    // ---- what the peer writes ----

    /// A segment arrived. Appends to `out` what can be read in order.
    ///
    /// # Errors
    /// The stream is longer than any handshake.
    pub fn receive(&mut self, offset: u32, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), TooMuch> {
        let offset = usize::try_from(offset).map_err(|_| TooMuch)?;
        let end = offset.checked_add(bytes.len()).filter(|&end| end <= MOST).ok_or(TooMuch)?;
        if end <= self.received {
            return Ok(());
        }
        if offset > self.received {
            self.keep(offset, bytes);
            return Ok(());
        }
        out.extend_from_slice(&bytes[self.received - offset..]);
        self.received = end;
        while let Some((offset, segment)) = self.segments.first() {
            if *offset > self.received {
                break;
            }
            if let Some(rest) = segment.get(self.received - offset..) {
                out.extend_from_slice(rest);
                self.received += rest.len();
            }
            self.segments.remove(0);
        }
        Ok(())
    }

    /// Keeps a segment behind a gap. If too many wait, it is dropped, and the peer sends it again.
    fn keep(&mut self, offset: usize, bytes: &[u8]) {
        let at = self.segments.partition_point(|(begin, segment)| (*begin, segment.len()) < (offset, bytes.len()));
        let known = self.segments.get(at).is_some_and(|(begin, it)| *begin == offset && it.len() == bytes.len());
        let kept: usize = self.segments.iter().map(|(_, segment)| segment.len()).sum();
        if !known && self.segments.len() < MOST_SEGMENTS && kept + bytes.len() <= MOST {
            self.segments.insert(at, (offset, bytes.to_vec()));
        }
    }

    /// Bytes that the peer has written, without a gap.
    pub fn received(&self) -> u32 {
        u32::try_from(self.received).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_confirmed_is_not_sent_again() {
        let mut stream = CryptoStream::default();
        stream.write(b"hello world");
        let room = Frame::CRYPTO_OVERHEAD + 5;
        assert_eq!(stream.take(room), Some(Frame::Crypto { offset: 0, bytes: b"hello" }));
        assert_eq!(stream.take(room), Some(Frame::Crypto { offset: 5, bytes: b" worl" }));
        stream.on_confirmed(5);
        stream.repeat();
        assert_eq!(stream.take(100), Some(Frame::Crypto { offset: 5, bytes: b" world" }));
        assert_eq!(stream.take(100), None);
        stream.on_confirmed(12);
        assert!(stream.has_unconfirmed(), "more than was written");
        stream.on_confirmed(11);
        assert!(!stream.has_unconfirmed());
        assert_eq!(stream.take(Frame::CRYPTO_OVERHEAD), None, "no room");
    }

    #[test]
    fn a_stream_longer_than_a_handshake_is_refused() {
        let mut stream = CryptoStream::default();
        let mut out = Vec::new();
        assert_eq!(stream.receive(MOST as u32 - 1, &[0], &mut out), Ok(()));
        assert_eq!(stream.receive(MOST as u32, &[0], &mut out), Err(TooMuch));
        assert_eq!(stream.receive(u32::MAX, &[0], &mut out), Err(TooMuch));
    }

    proptest! {
        #[test]
        fn segments_in_any_order_give_the_stream(
            cuts in proptest::collection::vec((0..900_usize, 1..300_usize), 0..60),
            length in 1..900_usize,
        ) {
            let written: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let (mut stream, mut heard) = (CryptoStream::default(), Vec::new());
            for (offset, size) in cuts {
                let offset = offset.min(length);
                let end = (offset + size).min(length);
                stream.receive(offset as u32, &written[offset..end], &mut heard).unwrap();
                prop_assert_eq!(&heard[..], &written[..stream.received() as usize]);
            }
            stream.receive(0, &written, &mut heard).unwrap();
            prop_assert_eq!(heard, written);
        }
    }
}
