//! What a receiver asks of its sender while both run.
//!
//! These are extension frames, which may stand between any two frames of the receiver behind its first one. A sender that does not
//! know one skips it. So the host of a session writes them, and looks for them, without the session.
//!
//! ```text
//! RATE        type 0xa0   length 8   rate u64, bits per second on the wire; 0: this side has no cap
//! BACKGROUND  type 0xa1   length 0   the sender is to give way to all other traffic
//! ```
//!
//! What of the first requests it cannot do, a sender tells in the capabilities of its answer.

use farhaul_units::Rate;

use crate::capabilities::Capabilities;
use crate::framing::HEADER_LEN;

const RATE: u8 = 0xa0;
const BACKGROUND: u8 = 0xa1;
/// The longest body: one number.
const BODY: usize = 8;

/// A request of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SenderRequest {
    /// To send at this rate at most, everything on the wire counted; `None` takes the last such request back.
    Rate(Option<Rate>),
    /// To give way to all other traffic.
    Background,
}

impl SenderRequest {
    /// Its frame.
    pub fn encode(self) -> Vec<u8> {
        match self {
            Self::Rate(rate) => {
                let mut frame = vec![RATE, 0, 0, 0, BODY as u8];
                frame.extend_from_slice(&rate.map_or(0, Rate::bits_per_second).to_be_bytes());
                frame
            }
            Self::Background => vec![BACKGROUND, 0, 0, 0, 0],
        }
    }
}

/// What a receiver asks of its sender from the begin, within its opening frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderSettings {
    /// A cap on the rate, everything on the wire counted.
    pub rate: Option<Rate>,
    /// Whether it is to give way to all other traffic.
    pub background: bool,
}

impl SenderSettings {
    /// As requests.
    pub fn requests(self) -> impl Iterator<Item = SenderRequest> {
        let rate = self.rate.map(|rate| SenderRequest::Rate(Some(rate)));
        self.background.then_some(SenderRequest::Background).into_iter().chain(rate)
    }

    /// Reads the frames of requests. Others belong to later versions.
    pub(crate) fn decode(mut bytes: &[u8]) -> Self {
        let (mut settings, mut requests) = (Self::default(), SenderRequests::default());
        while let Some(request) = requests.next(&mut bytes) {
            match request {
                SenderRequest::Rate(rate) => settings.rate = rate,
                SenderRequest::Background => settings.background = true,
            }
        }
        settings
    }
}

/// What a sender cannot do of what its receiver asked for in its opening frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unable {
    /// Cap its rate.
    pub rate: bool,
    /// Give way to all other traffic.
    pub background: bool,
}

impl Unable {
    pub(crate) fn to_capabilities(self) -> Capabilities {
        let rate = if self.rate { Capabilities::NO_RATE.0 } else { 0 };
        Capabilities(rate | if self.background { Capabilities::NO_BACKGROUND.0 } else { 0 })
    }

    pub(crate) fn in_capabilities(capabilities: Capabilities) -> Self {
        let has = |capability| capabilities.has(capability);
        Self { rate: has(Capabilities::NO_RATE), background: has(Capabilities::NO_BACKGROUND) }
    }

    /// Whether it is anything.
    pub const fn is_any(self) -> bool {
        self.rate || self.background
    }
}

/// Finds the requests in what a receiver sends. It holds at most the start of one frame.
#[derive(Debug, Default)]
pub struct SenderRequests {
    /// The start of a header, or of a request with its header.
    held: Vec<u8>,
    /// Bytes of another frame that are still to come.
    skipped: u64,
}

impl SenderRequests {
    /// Takes bytes of the receiver, and advances `bytes` past them. Returns the next request; `None` once all are taken.
    ///
    /// What is no sequence of frames has no requests either. The session finds the violation.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Option<SenderRequest> {
        while !bytes.is_empty() {
            if self.skipped > 0 {
                let len = usize::try_from(self.skipped).unwrap_or(usize::MAX).min(bytes.len());
                *bytes = &bytes[len..];
                self.skipped -= len as u64;
                continue;
            }
            let wanted = if self.held.len() < HEADER_LEN { HEADER_LEN } else { HEADER_LEN + BODY };
            let (taken, rest) = bytes.split_at((wanted - self.held.len()).min(bytes.len()));
            self.held.extend_from_slice(taken);
            *bytes = rest;
            let request = match *self.held.as_slice() {
                [RATE, 0, 0, 0, 8, a, b, c, d, e, f, g, h] => {
                    let rate = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
                    Some(SenderRequest::Rate((rate > 0).then(|| Rate::from_bits_per_second(rate))))
                }
                [RATE, 0, 0, 0, 8, ..] => continue,
                [BACKGROUND, 0, 0, 0, 0] => Some(SenderRequest::Background),
                [_, a, b, c, d] => {
                    self.skipped = u32::from_be_bytes([a, b, c, d]).into();
                    None
                }
                _ => continue,
            };
            self.held.clear();
            if request.is_some() {
                return request;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame_kind::FrameKind;
    use crate::framing::{Decoder, put_frame};

    fn requests(bytes: &[u8], step: usize) -> Vec<SenderRequest> {
        let mut requests = SenderRequests::default();
        let mut found = Vec::new();
        for mut chunk in bytes.chunks(step) {
            found.extend(std::iter::from_fn(|| requests.next(&mut chunk)));
        }
        found
    }

    const SLOW: Option<Rate> = Some(Rate::from_megabits_per_second(3));
    const ALL: [SenderRequest; 3] = [SenderRequest::Rate(SLOW), SenderRequest::Background, SenderRequest::Rate(None)];

    #[test]
    fn requests_are_found_between_other_frames_however_the_bytes_are_divided() {
        let mut bytes = Vec::new();
        for request in ALL {
            put_frame(&mut bytes, FrameKind::Accept, |out| out.extend_from_slice(&[RATE; 18]));
            bytes.extend_from_slice(&request.encode());
            put_frame(&mut bytes, FrameKind::Grant, |out| out.extend_from_slice(&[8; 8]));
        }
        for step in 1..=bytes.len() {
            assert_eq!(requests(&bytes, step), ALL, "{step}");
        }
    }

    #[test]
    fn a_session_that_does_not_know_a_request_skips_it() {
        let (frames, mut decoder) = (ALL.map(SenderRequest::encode).concat(), Decoder::default());
        assert!(matches!(decoder.next(&mut frames.as_slice()), Ok(None)));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_hold_nothing_but_the_start_of_a_frame(
            bytes in proptest::collection::vec(prop_oneof![3 => any::<u8>(), 2 => Just(0), 1 => 0xa0u8..0xa2], 0..300),
            step in 1usize..40,
        ) {
            let mut requests = SenderRequests::default();
            for mut chunk in bytes.chunks(step) {
                while requests.next(&mut chunk).is_some() {}
                prop_assert!(requests.held.len() < HEADER_LEN + BODY);
            }
        }
    }
}
