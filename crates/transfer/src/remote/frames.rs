//! Messages in a stream of bytes: each behind its length. The first one comes behind a mark, and whatever login shells print
//! before the mark is skipped.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Line before the first message. A control character keeps people from printing it.
pub(crate) const MARK: &[u8] = b"\x01farhaul-bootstrap\n";
/// Line of the shell that starts the program, before that speaks.
pub(super) const SHELL_MARK: &str = "\x01farhaul-shell\n";
/// Line before that, if the program is the copy of `--install`.
pub(super) const COPY_MARK: &str = "\x01farhaul-copy\n";
/// Digits of a length.
const HEAD: usize = 8;
/// Longest message, bytes: a million paths are not copied by one command line.
const LONGEST: usize = 4 << 20;
/// Heaviest message, in values. A value in memory is many times as long as in a message, so the length alone bounds little: this
/// bounds a message to 16 MiB. No command line of Linux has as many paths: each needs ten bytes of the 2 MiB that `execve` permits.
const MOST_WEIGHT: usize = 1 << 17;
/// Weight of an object. Its map begins with room for eleven entries.
const OBJECT_WEIGHT: usize = 16;
/// Most noise before the mark, bytes.
pub(super) const MOST_NOISE: usize = 256 << 10;
/// Noise that is kept for a report, bytes: the last words of a login shell.
const KEPT_NOISE: usize = 1 << 10;

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

/// A stream that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Silence {
    /// Why nothing more is read, if the stream itself goes on.
    pub(super) error: Option<FrameError>,
    /// Whether the mark had come: the program spoke.
    pub(super) has_begun: bool,
    /// Whether the mark of the shell had come, which starts the program.
    pub(super) has_shell: bool,
    /// Whether that program is the copy of `--install`.
    pub(super) is_copy: bool,
    /// The last line of the noise.
    pub(super) words: String,
}

fn position(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

/// One message, ready to be written: its length in hexadecimal digits, and JSON.
pub(crate) fn encode(message: &impl Serialize) -> String {
    let body = encode_body(message);
    format!("{:0HEAD$x}{body}", body.len())
}

/// A message for frames that tell its length.
pub(crate) fn encode_body(message: &impl Serialize) -> String {
    serde_json::to_string(message).unwrap_or_default()
}

/// The message of such a frame.
pub(crate) fn decode_body<M: DeserializeOwned>(body: &[u8]) -> Result<M, FrameError> {
    if body.len() > LONGEST || weight(body) > MOST_WEIGHT {
        return Err(FrameError::TooLong);
    }
    serde_json::from_slice(body).map_err(|_| FrameError::Malformed)
}

/// The message at the beginning of `bytes`, and its length with the head. `None` until it is whole.
fn decode<M: DeserializeOwned>(bytes: &[u8]) -> Result<Option<(M, usize)>, FrameError> {
    let Some(head) = bytes.first_chunk::<HEAD>() else { return Ok(None) };
    let len = std::str::from_utf8(head).ok().and_then(|head| usize::from_str_radix(head, 16).ok());
    let len = len.ok_or(FrameError::Malformed)?;
    if len > LONGEST {
        return Err(FrameError::TooLong);
    }
    let Some(body) = bytes.get(HEAD..HEAD + len) else { return Ok(None) };
    Ok(Some((decode_body(body)?, HEAD + len)))
}

/// The memory that a JSON text takes once it is decoded, in values. Only its separators and brackets count.
fn weight(json: &[u8]) -> usize {
    let (mut weight, mut is_string, mut is_escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_string,
            b'"' => is_string = !is_string,
            _ if is_string => {}
            b'{' => weight += OBJECT_WEIGHT,
            b',' | b':' | b'[' => weight += 1,
            _ => {}
        }
    }
    weight
}

/// Takes messages out of received bytes.
#[derive(Debug)]
pub(crate) struct Frames {
    pending: Vec<u8>,
    has_begun: bool,
    /// Whether the mark of the shell has come.
    has_shell: bool,
    is_copy: bool,
    noise: usize,
    /// The end of the noise.
    last_noise: Vec<u8>,
}

impl Frames {
    /// A stream with noise and the mark before the first message.
    pub(crate) const fn behind_noise() -> Self {
        Self::new(false)
    }

    /// A stream of messages alone.
    pub(crate) const fn clean() -> Self {
        Self::new(true)
    }

    const fn new(has_begun: bool) -> Self {
        Self { pending: Vec::new(), has_begun, has_shell: has_begun, is_copy: false, noise: 0, last_noise: Vec::new() }
    }

    /// Takes received bytes.
    pub(crate) fn extend(&mut self, bytes: &[u8]) -> Result<(), FrameError> {
        self.pending.extend_from_slice(bytes);
        if self.has_begun {
            return Ok(());
        }
        self.has_shell |= position(&self.pending, SHELL_MARK.as_bytes()).is_some();
        self.is_copy |= position(&self.pending, COPY_MARK.as_bytes()).is_some();
        match position(&self.pending, MARK) {
            Some(at) => {
                self.pending.drain(..at + MARK.len());
                self.has_begun = true;
                Ok(())
            }
            None => {
                // The beginning of a mark may be at the end.
                let skipped = self.pending.len().saturating_sub(MARK.len() - 1);
                self.last_noise.extend(self.pending.drain(..skipped));
                self.last_noise.drain(..self.last_noise.len().saturating_sub(KEPT_NOISE));
                self.noise += skipped;
                if self.noise > MOST_NOISE { Err(FrameError::Noise) } else { Ok(()) }
            }
        }
    }

    /// Whether the shell that starts the program has spoken.
    pub(super) const fn has_shell(&self) -> bool {
        self.has_shell
    }

    /// The end of a stream, because of this error if it goes on.
    pub(super) fn into_silence(self, error: Option<FrameError>) -> Silence {
        let noise = [self.last_noise, self.pending].concat();
        let noise = String::from_utf8_lossy(&noise);
        let words = noise.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default().to_owned();
        Silence { error, has_begun: self.has_begun, has_shell: self.has_shell, is_copy: self.is_copy, words }
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

    /// Whether no byte came behind the last message.
    pub(crate) const fn is_empty(&self) -> bool {
        self.pending.is_empty()
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
    use crate::remote::messages::{FromRemote, ToRemote};

    proptest! {
        #[test]
        fn messages_survive_noise_and_any_division(noise in "[ -~\n\u{1}]{0,300}", sizes in prop::collection::vec(1usize..40, 1..60)) {
            let mut bytes = noise.into_bytes();
            bytes.extend_from_slice(MARK);
            bytes.extend(encode(&ToRemote::Through).bytes());
            bytes.extend(encode(&ToRemote::Through).bytes());
            bytes.extend_from_slice(b"rest");
            let (mut frames, mut found, mut sizes) = (Frames::behind_noise(), 0, sizes.iter().cycle());
            let mut left = bytes.as_slice();
            while !left.is_empty() {
                let (now, later) = left.split_at((*sizes.next().unwrap()).min(left.len()));
                left = later;
                frames.extend(now).unwrap();
                while found < 2 && frames.next::<ToRemote>().unwrap() == Some(ToRemote::Through) {
                    found += 1;
                }
            }
            prop_assert_eq!((found, frames.into_rest()), (2, b"rest".to_vec()));
        }

        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut frames = Frames::clean();
            frames.extend(&bytes).unwrap();
            let _ = frames.next::<ToRemote>();
        }
    }

    #[test]
    fn the_end_of_a_stream_tells_how_far_it_came() {
        let ended = |pieces: &[&[u8]]| {
            let mut frames = Frames::behind_noise();
            pieces.iter().for_each(|piece| frames.extend(piece).unwrap());
            let Silence { has_begun, has_shell, words, .. } = frames.into_silence(None);
            (has_begun, has_shell, words)
        };
        let (noise, nothing) = (vec![b'x'; 2_000], String::new());
        assert_eq!(ended(&[]), (false, false, nothing));
        assert_eq!(ended(&[&noise, b"\nThis account is", b" not available.\n\n"]).2, "This account is not available.");
        assert!(ended(&[b"Hi\n\x01farhaul", b"-shell\n"]).1);
        assert!(ended(&[SHELL_MARK.as_bytes(), MARK]).0);
    }

    #[test]
    fn endless_noise_and_endless_messages_are_refused() {
        let mut frames = Frames::behind_noise();
        assert_eq!(frames.extend(&vec![b'm'; MOST_NOISE + 100]), Err(FrameError::Noise));
        let mut frames = Frames::clean();
        frames.extend(b"ffffffff").unwrap();
        assert_eq!(frames.next::<ToRemote>(), Err(FrameError::TooLong));
    }

    #[test]
    fn a_message_of_many_small_values_is_refused_before_it_fills_memory() {
        let record = |value: &str, count: usize| {
            let body = format!("{{\"record\":[{}]}}", vec![value; count].join(","));
            format!("{:08x}{body}", body.len())
        };
        for (value, weight) in [("0", 1), ("[]", 2), ("\"\"", 1), ("{}", 17), ("{\"a\":0}", 18)] {
            let mut frames = Frames::clean();
            frames.extend(record(value, MOST_WEIGHT / weight + 1).as_bytes()).unwrap();
            assert_eq!(frames.next::<FromRemote>(), Err(FrameError::TooLong), "{value}");
        }
        let mut frames = Frames::clean();
        frames.extend(record("\"a,b\\\",[{,c\"", MOST_WEIGHT / 2).as_bytes()).unwrap();
        assert!(frames.next::<FromRemote>().unwrap().is_some(), "separators in strings are none");
    }
}
