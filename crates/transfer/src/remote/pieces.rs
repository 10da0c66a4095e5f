//! Datagrams and messages in one stream of bytes, once a tunnel is open. Each datagram is behind its length, 16 bits in network
//! byte order. A message is behind a length that no datagram has.

use super::frames::{FrameError, decode, encode};
use super::messages::FromRemote;

/// Stands before a message. No UDP datagram is that long: its length of 16 bits counts 8 bytes of header (RFC 768).
const MESSAGE: u16 = u16::MAX;

/// A part of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Datagram(&'a [u8]),
    Message(FromRemote),
}

/// Adds a datagram to `bytes`. One that is too long for UDP is left out.
pub(super) fn put(bytes: &mut Vec<u8>, datagram: &[u8]) {
    if let Some(len) = u16::try_from(datagram.len()).ok().filter(|&len| len != MESSAGE) {
        bytes.extend_from_slice(&len.to_be_bytes());
        bytes.extend_from_slice(datagram);
    }
}

/// The bytes of a message.
pub(super) fn message(message: &FromRemote) -> Vec<u8> {
    let mut bytes = MESSAGE.to_be_bytes().to_vec();
    bytes.extend(encode(message).bytes());
    bytes
}

/// Takes pieces out of received bytes.
#[derive(Debug)]
pub(super) struct Pieces {
    pending: Vec<u8>,
    /// Bytes of `pending` that were taken.
    taken: usize,
}

impl Pieces {
    /// `first` was received already.
    pub(super) const fn new(first: Vec<u8>) -> Self {
        Self { pending: first, taken: 0 }
    }

    /// Takes received bytes.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.pending.drain(..std::mem::take(&mut self.taken));
        self.pending.extend_from_slice(bytes);
    }

    /// The next whole piece.
    pub(super) fn next(&mut self) -> Result<Option<Piece<'_>>, FrameError> {
        let Some((head, rest)) = self.pending[self.taken..].split_first_chunk() else { return Ok(None) };
        let (piece, len) = match u16::from_be_bytes(*head) {
            MESSAGE => match decode(rest)? {
                Some((message, len)) => (Piece::Message(message), len),
                None => return Ok(None),
            },
            len => match rest.get(..len.into()) {
                Some(datagram) => (Piece::Datagram(datagram), len.into()),
                None => return Ok(None),
            },
        };
        self.taken += head.len() + len;
        Ok(Some(piece))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn datagrams_and_messages_survive_any_division(
            lens in prop::collection::vec(0..2_000usize, 0..20),
            sizes in prop::collection::vec(1..3_000usize, 1..20),
        ) {
            let mut bytes = Vec::new();
            for &len in &lens {
                put(&mut bytes, &vec![0xFF; len]);
                bytes.extend(message(&FromRemote::Tunneling));
            }
            let (mut pieces, mut left, mut sizes) = (Pieces::new(Vec::new()), bytes.as_slice(), sizes.iter().cycle());
            let (mut found, mut messages) = (Vec::new(), 0);
            while !left.is_empty() {
                let (now, later) = left.split_at((*sizes.next().unwrap()).min(left.len()));
                left = later;
                pieces.extend(now);
                while let Some(piece) = pieces.next().unwrap() {
                    match piece {
                        Piece::Datagram(datagram) => found.push(datagram.len()),
                        Piece::Message(message) => messages += usize::from(message == FromRemote::Tunneling),
                    }
                }
            }
            prop_assert_eq!(messages, lens.len());
            prop_assert_eq!(found, lens);
        }

        #[test]
        fn any_bytes_are_pieces_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut pieces = Pieces::new(bytes);
            while let Ok(Some(_)) = pieces.next() {}
        }
    }

    #[test]
    fn what_looks_like_a_message_and_is_none_ends_the_stream() {
        assert_eq!(Pieces::new(b"\xFF\xFFffffffff".to_vec()).next(), Err(FrameError::TooLong));
        assert_eq!(Pieces::new(b"\xFF\xFFno number".to_vec()).next(), Err(FrameError::Malformed));
        assert_eq!(Pieces::new(vec![0, 2, b'h']).next(), Ok(None));
    }
}
