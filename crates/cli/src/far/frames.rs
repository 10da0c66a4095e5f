//! Messages in a stream of bytes: each behind its length. The first one comes behind a mark, and whatever login shells print
//! before the mark is skipped.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Line before the first message. A control character keeps people from printing it.
pub(crate) const MARK: &[u8] = b"\x01farhaul-bootstrap\n";
/// Digits of a length.
const HEAD: usize = 8;
/// Longest message, bytes: a million paths are not copied by one command line.
const LONGEST: usize = 4 << 20;
/// Most noise before the mark, bytes.
const MOST_NOISE: usize = 256 << 10;

/// A stream that is no dialogue of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameError {
    /// Too much before the mark.
    Noise,
    /// A message longer than any that makes sense.
    TooLong,
    /// No message of this version.
    Malformed,
}

/// One message, ready to be written: its length in hexadecimal digits, and JSON.
pub(crate) fn encode(message: &impl Serialize) -> String {
    let body = serde_json::to_string(message).unwrap_or_default();
    format!("{:0HEAD$x}{body}", body.len())
}

/// The message at the beginning of `bytes`, and its length with the head. `None` until it is whole.
pub(super) fn decode<M: DeserializeOwned>(bytes: &[u8]) -> Result<Option<(M, usize)>, FrameError> {
    let Some(head) = bytes.first_chunk::<HEAD>() else { return Ok(None) };
    let len = std::str::from_utf8(head).ok().and_then(|head| usize::from_str_radix(head, 16).ok());
    let len = len.ok_or(FrameError::Malformed)?;
    if len > LONGEST {
        return Err(FrameError::TooLong);
    }
    let Some(body) = bytes.get(HEAD..HEAD + len) else { return Ok(None) };
    let message = serde_json::from_slice(body).map_err(|_| FrameError::Malformed)?;
    Ok(Some((message, HEAD + len)))
}

/// Takes messages out of received bytes.
#[derive(Debug)]
pub(crate) struct Frames {
    pending: Vec<u8>,
    has_begun: bool,
    noise: usize,
}

impl Frames {
    /// A stream with noise and the mark before the first message.
    pub(crate) const fn behind_noise() -> Self {
        Self { pending: Vec::new(), has_begun: false, noise: 0 }
    }

    /// A stream of messages alone.
    pub(crate) const fn clean() -> Self {
        Self { pending: Vec::new(), has_begun: true, noise: 0 }
    }

    /// Whether the mark has come.
    pub(crate) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Takes received bytes.
    pub(crate) fn extend(&mut self, bytes: &[u8]) -> Result<(), FrameError> {
        self.pending.extend_from_slice(bytes);
        if self.has_begun {
            return Ok(());
        }
        match self.pending.windows(MARK.len()).position(|window| window == MARK) {
            Some(at) => {
                self.pending.drain(..at + MARK.len());
                self.has_begun = true;
                Ok(())
            }
            None => {
                // The beginning of a mark may be at the end.
                let skipped = self.pending.len().saturating_sub(MARK.len() - 1);
                self.pending.drain(..skipped);
                self.noise += skipped;
                if self.noise > MOST_NOISE { Err(FrameError::Noise) } else { Ok(()) }
            }
        }
    }

    /// The next whole message.
    pub(crate) fn next<M: DeserializeOwned>(&mut self) -> Result<Option<M>, FrameError> {
        if !self.has_begun {
            return Ok(None);
        }
        let Some((message, len)) = decode(&self.pending)? else { return Ok(None) };
        self.pending.drain(..len);
        Ok(Some(message))
    }

    /// Bytes behind the last message.
    pub(crate) fn into_rest(self) -> Vec<u8> {
        self.pending
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::far::messages::Near;

    proptest! {
        #[test]
        fn messages_survive_noise_and_any_division(noise in "[ -~\n\u{1}]{0,300}", sizes in prop::collection::vec(1usize..40, 1..60)) {
            let mut bytes = noise.into_bytes();
            bytes.extend_from_slice(MARK);
            bytes.extend(encode(&Near::Tunnel).bytes());
            bytes.extend(encode(&Near::Tunnel).bytes());
            bytes.extend_from_slice(b"rest");
            let (mut frames, mut found, mut sizes) = (Frames::behind_noise(), 0, sizes.iter().cycle());
            let mut left = bytes.as_slice();
            while !left.is_empty() {
                let (now, later) = left.split_at((*sizes.next().unwrap()).min(left.len()));
                left = later;
                frames.extend(now).unwrap();
                while found < 2 && frames.next::<Near>().unwrap() == Some(Near::Tunnel) {
                    found += 1;
                }
            }
            prop_assert_eq!((found, frames.into_rest()), (2, b"rest".to_vec()));
        }

        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut frames = Frames::clean();
            frames.extend(&bytes).unwrap();
            let _ = frames.next::<Near>();
        }
    }

    #[test]
    fn endless_noise_and_endless_messages_are_refused() {
        let mut frames = Frames::behind_noise();
        assert_eq!(frames.extend(&vec![b'm'; MOST_NOISE + 100]), Err(FrameError::Noise));
        let mut frames = Frames::clean();
        frames.extend(b"ffffffff").unwrap();
        assert_eq!(frames.next::<Near>(), Err(FrameError::TooLong));
    }
}
