//! The filler bytes of a measurement.

use bytes::Bytes;
use farhaul_units::{Duration, Rng};

use crate::frame_kind::{FrameKind, MAX_DATA};
use crate::framing::{HEADER_LEN, header};
use crate::request::measurement::Stop;

/// Body of a full DATA frame. With its header it has the length of the longest body, and so fills whole pages.
pub(super) const BODY: usize = MAX_DATA - HEADER_LEN;
/// Body of the first frames if time ends the measurement: a few packets, which leave soon at any rate.
const SMALLEST: usize = 4 << 10;
/// A frame is at most one part in this many of all data before it, so it takes about that share of the time.
const OVERRUN: u64 = 16;
/// Any seed serves, because the bytes only must not be compressible.
const FILL_SEED: u64 = 0x6661_7268_6175_6c21;

/// One DATA frame that is sent repeatedly.
pub(super) struct Filler {
    /// The longest frame.
    longest: Bytes,
    /// The frame under way, and how much of it is written.
    frame: Bytes,
    written: usize,
    stop: Stop,
}

impl Filler {
    pub(super) fn new(stop: Stop) -> Self {
        let longest = match stop {
            Stop::After(_) => BODY,
            Stop::Bytes(bytes) => usize::try_from(bytes).unwrap_or(BODY).min(BODY),
        };
        let mut frame = vec![0; HEADER_LEN + longest];
        frame[..HEADER_LEN].copy_from_slice(&header(FrameKind::Data, longest));
        let mut rng = Rng::new(FILL_SEED);
        for word in frame[HEADER_LEN..].chunks_mut(8) {
            word.copy_from_slice(&rng.next_u64().to_be_bytes()[..word.len()]);
        }
        Self { longest: frame.into(), frame: Bytes::new(), written: 0, stop }
    }

    /// The rest of the time after `spent`; `None` if it has passed, or if bytes end the measurement.
    pub(super) fn time_left(&self, spent: Duration) -> Option<Duration> {
        match self.stop {
            Stop::After(duration) => duration.checked_sub(spent).filter(|rest| !rest.is_zero()),
            Stop::Bytes(_) => None,
        }
    }

    /// Makes the next frame pending. Returns `false` if there is none.
    pub(super) fn begin_frame(&mut self, spent: Duration, sent: u64) -> bool {
        let body = match self.stop {
            Stop::After(duration) if spent >= duration => 0,
            // A share of the data before it, so that the last frame exceeds the time by at most that share.
            Stop::After(_) => usize::try_from(sent / OVERRUN).unwrap_or(BODY).clamp(SMALLEST, BODY),
            Stop::Bytes(bytes) => usize::try_from(bytes.saturating_sub(sent)).unwrap_or(BODY).min(BODY),
        };
        if body == 0 {
            return false;
        }
        let fill = &self.longest[HEADER_LEN..];
        self.frame = match body == fill.len() {
            true => self.longest.clone(),
            false => [&header(FrameKind::Data, body), &fill[..body]].concat().into(),
        };
        self.written = 0;
        true
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.written < self.frame.len()
    }

    pub(super) fn pending(&self) -> &[u8] {
        &self.frame[self.written..]
    }

    /// The same as a block.
    pub(super) fn pending_block(&self) -> Bytes {
        self.frame.slice(self.written..)
    }

    /// Returns the payload bytes among the written ones.
    pub(super) fn handle_written(&mut self, count: usize) -> u64 {
        assert!(count <= self.frame.len() - self.written, "the driver wrote more than was pending");
        let before = self.written.max(HEADER_LEN);
        self.written += count;
        (self.written.max(HEADER_LEN) - before) as u64
    }
}

impl std::fmt::Debug for Filler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Filler({:?}, {} pending)", self.stop, self.frame.len() - self.written)
    }
}
