//! Frames: a kind, the length of the body in three bytes of network order, and the body.

/// Bytes before each body.
pub(super) const HEADER: usize = 4;
/// Most bytes of the stream in a frame: few enough for a message not to wait long behind them.
pub(super) const MOST_DATA: usize = 128 << 10;
/// Longest body: that of a message, behind its length.
const LONGEST: usize = (4 << 20) + 64;

const DATA: u8 = 0;
const MESSAGE: u8 = 1;
const COUNT: u8 = 2;
const END: u8 = 3;
const CLOSE: u8 = 4;

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// Bytes of the stream.
    Data(&'a [u8]),
    /// A message to the program.
    Message(&'a [u8]),
    /// What has arrived of the peer's stream, its end as one more byte, and the offset up to which the peer may send.
    Count { received: u64, limit: u64 },
    /// The sender's direction of the stream has ended.
    End,
    /// The sender has left the stream: in order, or because it cannot go on.
    Close { in_order: bool },
}

/// Bytes that are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl<'a> Frame<'a> {
    /// Whether it belongs to the stream.
    pub(super) const fn is_of_stream(self) -> bool {
        !matches!(self, Self::Message(_))
    }

    /// Adds its bytes.
    pub(super) fn put(self, bytes: &mut Vec<u8>) {
        let mut counts = [0; 16];
        let (kind, body): (u8, &[u8]) = match self {
            Self::Data(body) => (DATA, body),
            Self::Message(body) => (MESSAGE, body),
            Self::Count { received, limit } => {
                counts[..8].copy_from_slice(&received.to_be_bytes());
                counts[8..].copy_from_slice(&limit.to_be_bytes());
                (COUNT, &counts)
            }
            Self::End => (END, &[]),
            Self::Close { in_order } => (CLOSE, if in_order { &[1] } else { &[0] }),
        };
        bytes.extend_from_slice(&header(kind, body.len()));
        bytes.extend_from_slice(body);
    }

    /// The first frame of these bytes, and its length. `None` until it is whole.
    pub(super) fn first_of(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let Some((&[kind, len @ ..], rest)) = bytes.split_first_chunk::<HEADER>() else { return Ok(None) };
        let len = len.iter().fold(0, |len, &byte| len << 8 | usize::from(byte));
        let is_possible = match kind {
            DATA => (1..=MOST_DATA).contains(&len),
            MESSAGE => len <= LONGEST,
            COUNT => len == 16,
            END => len == 0,
            CLOSE => len == 1,
            _ => false,
        };
        if !is_possible {
            return Err(Malformed);
        }
        let Some(body) = rest.get(..len) else { return Ok(None) };
        let count = |at: usize| body[at..].first_chunk().copied().map(u64::from_be_bytes).ok_or(Malformed);
        let frame = match kind {
            DATA => Self::Data(body),
            MESSAGE => Self::Message(body),
            COUNT => Self::Count { received: count(0)?, limit: count(8)? },
            END => Self::End,
            _ => Self::Close { in_order: body == [1] },
        };
        Ok(Some((frame, HEADER + len)))
    }
}

/// The header of a frame.
fn header(kind: u8, len: usize) -> [u8; HEADER] {
    let [.., a, b, c] = len.to_be_bytes();
    [kind, a, b, c]
}

/// Adds bytes to a frame of data that has room for them. Returns how many it took, which is zero for any other frame.
pub(super) fn append(frame: &mut Vec<u8>, bytes: &[u8]) -> usize {
    if frame.first() != Some(&DATA) {
        return 0;
    }
    let taken = bytes.len().min((HEADER + MOST_DATA).saturating_sub(frame.len()));
    frame.extend_from_slice(&bytes[..taken]);
    let head = header(DATA, frame.len() - HEADER);
    frame[..HEADER].copy_from_slice(&head);
    taken
}

/// Whether these are the bytes of a frame of data.
pub(super) fn is_data(frame: &[u8]) -> bool {
    frame.first() == Some(&DATA)
}

/// Whether these are the bytes of a message.
pub(super) fn is_message(frame: &[u8]) -> bool {
    frame.first() == Some(&MESSAGE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes_of(frame: Frame<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame.put(&mut bytes);
        bytes
    }

    #[test]
    fn each_frame_is_read_as_it_was_written_and_not_before_it_is_whole() {
        for frame in [
            Frame::Data(b"x"),
            Frame::Data(&[7; MOST_DATA]),
            Frame::Message(b""),
            Frame::Message(&[b'j'; 70_000]),
            Frame::Count { received: u64::MAX, limit: 1 << 40 },
            Frame::End,
            Frame::Close { in_order: true },
            Frame::Close { in_order: false },
        ] {
            let bytes = bytes_of(frame);
            assert_eq!(Frame::first_of(&bytes), Ok(Some((frame, bytes.len()))));
            assert_eq!(Frame::first_of(&bytes[..bytes.len() - 1]), Ok(None), "{frame:?}");
            assert_eq!(Frame::first_of(&bytes[..HEADER - 1]), Ok(None));
        }
    }

    #[test]
    fn a_length_that_no_frame_of_its_kind_has_is_malformed_at_once() {
        for head in
            [[0, 0, 0, 0], [0, 2, 0, 1], [1, 0x40, 0, 65], [2, 0, 0, 15], [3, 0, 0, 1], [4, 0, 0, 0], [5, 0, 0, 0]]
        {
            assert_eq!(Frame::first_of(&head), Err(Malformed), "{head:?}");
        }
    }

    #[test]
    fn small_writes_share_a_frame_of_data() {
        let mut frame = bytes_of(Frame::Data(b"over "));
        assert_eq!(append(&mut frame, b"the hills"), 9);
        assert_eq!(Frame::first_of(&frame), Ok(Some((Frame::Data(b"over the hills"), frame.len()))));
        assert_eq!(append(&mut frame, &[0; 2 * MOST_DATA]), MOST_DATA - 14);
        assert_eq!(append(&mut frame, b"x"), 0, "it is full");
        assert_eq!(append(&mut bytes_of(Frame::Message(b"m")), b"x"), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_are_frames_or_malformed(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut rest = bytes.as_slice();
            while let Ok(Some((_, len))) = Frame::first_of(rest) {
                prop_assert!(len >= HEADER);
                rest = &rest[len..];
            }
        }
    }
}
