//! The thread that writes: what the peer is to know first, and then the frames in their order.

use std::io::Write;
use std::sync::PoisonError;
use std::time::Duration;

use farhaul_units::{Instant, Rate};

use super::Shared;

/// How far a capped sender may be behind its rate and catch up: as much as leaves at once without a cap.
const CATCH_UP: Duration = Duration::from_millis(10);

/// The times at which a cap lets frames leave.
#[derive(Debug)]
struct Pace {
    /// When the next frame may leave.
    next: Instant,
}

impl Pace {
    /// A frame of so many bytes leaves.
    fn leaves(&mut self, bytes: usize, cap: Option<Rate>, now: Instant) {
        let Some(cap) = cap.map(Rate::bits_per_second).filter(|&cap| cap > 0) else { return };
        let takes = Duration::from_secs_f64(bytes as f64 * 8.0 / cap as f64);
        self.next = self.next.max(now.saturating_sub(CATCH_UP)) + takes;
    }
}

impl Shared {
    /// Writes until the pipe or this side ends.
    pub(super) fn write_to(&self, mut to: impl Write) {
        let mut pace = Pace { next: self.clock.now() };
        while let Some(bytes) = self.next_bytes(&mut pace) {
            let written = to.write_all(&bytes).and_then(|()| to.flush());
            let mut state = self.state();
            match written {
                Ok(()) => state.wrote(self.clock.now()),
                Err(_) => state.lose_out(),
            }
            let is_gone = state.is_pipe_gone();
            drop(state);
            self.changed.notify_all();
            if is_gone {
                return;
            }
        }
    }

    /// Waits for the next bytes. `None` once nothing more is said.
    fn next_bytes(&self, pace: &mut Pace) -> Option<Vec<u8>> {
        let mut state = self.state();
        loop {
            let now = self.clock.now();
            state.look(now);
            if let Some(count) = state.count(now) {
                return Some(count);
            }
            let paced = state.cap().map(|_| pace.next).filter(|&next| next > now);
            if paced.is_none() {
                if let Some(frame) = state.next_frame() {
                    pace.leaves(frame.len(), state.cap(), now);
                    return Some(frame);
                }
                if state.hangs_up() {
                    return None;
                }
            }
            let due = [state.count_due(), paced].into_iter().flatten().min();
            let left = due.map_or(super::LOOK, |due| due.saturating_since(now).min(super::LOOK));
            state = self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
