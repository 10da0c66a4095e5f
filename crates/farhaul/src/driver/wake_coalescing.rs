//! Holds back the wake-ups of readers while data streams in, so that one wake-up serves many packets.
//!
//! The driver thread receives a few packets per call. A reader that is woken after each call takes the lock from the driver
//! thread, reads little and sleeps again: two context switches for eight packets. While the driver thread is sure to return
//! at once or after a sleep, a reader can wait for more data.

use std::time::Duration;

use farhaul_proto::ConnectionId;
use farhaul_units::Instant;

/// A reader is woken for this much data, bytes: as much as one read takes under the lock.
pub(super) const ENOUGH: usize = 256 << 10;
/// Longest wait of a reader for more. At 1 Gbit/s that is the time of [`ENOUGH`].
const LONGEST: Duration = Duration::from_millis(2);

/// The readers that wait for more data.
#[derive(Debug, Default)]
pub(super) struct WakeCoalescing {
    /// The driver thread returns within a sleep, without a further cause.
    is_streaming: bool,
    /// Each with the time of its first data.
    held: Vec<(Instant, ConnectionId)>,
}

impl WakeCoalescing {
    /// Sets whether the driver thread will return within a sleep. If not, [`release`](Self::release) follows.
    pub(super) fn set_streaming(&mut self, is_streaming: bool) {
        self.is_streaming = is_streaming;
    }

    /// Whether any reader is held back.
    pub(super) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Holds the reader of `id` back, with `readable` bytes for it. Returns false if it is to be woken now. A connection
    /// without readable bytes has ended, or carries messages.
    pub(super) fn hold(&mut self, now: Instant, id: ConnectionId, readable: usize) -> bool {
        let holds = self.is_streaming && (1..ENOUGH).contains(&readable);
        if holds {
            self.held.push((now, id));
        }
        holds
    }

    /// Calls `wake` for each reader that has waited enough. `readable` tells the bytes for a reader.
    pub(super) fn release(
        &mut self,
        now: Instant,
        readable: impl Fn(ConnectionId) -> usize,
        mut wake: impl FnMut(ConnectionId),
    ) {
        let is_streaming = self.is_streaming;
        self.held.retain(|&(since, id)| {
            let waits = is_streaming && now.saturating_since(since) < LONGEST && (1..ENOUGH).contains(&readable(id));
            if !waits {
                wake(id);
            }
            waits
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ConnectionId = ConnectionId::from_parts(0, 0);

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    /// Who is woken at `now`, if `readable` bytes wait.
    fn woken(coalescing: &mut WakeCoalescing, now: Instant, readable: usize) -> Vec<ConnectionId> {
        let mut woken = Vec::new();
        coalescing.release(now, |_| readable, |id| woken.push(id));
        woken
    }

    fn streaming() -> WakeCoalescing {
        WakeCoalescing { is_streaming: true, held: Vec::new() }
    }

    #[test]
    fn a_reader_of_a_lone_packet_is_woken_at_once() {
        assert!(!WakeCoalescing::default().hold(at(0), ID, 1_000));
    }

    #[test]
    fn a_reader_of_a_stream_waits_for_enough_data() {
        let mut coalescing = streaming();
        assert!(coalescing.hold(at(0), ID, 12_000) && coalescing.is_holding());
        assert_eq!(woken(&mut coalescing, at(500), 60_000), []);
        assert_eq!(woken(&mut coalescing, at(1_000), ENOUGH), [ID]);
        assert!(!coalescing.is_holding());
    }

    #[test]
    fn a_reader_of_a_slow_stream_waits_no_longer_than_two_milliseconds() {
        let mut coalescing = streaming();
        coalescing.hold(at(0), ID, 1_000);
        assert_eq!(woken(&mut coalescing, at(1_999), 8_000), []);
        assert_eq!(woken(&mut coalescing, at(2_000), 8_000), [ID]);
    }

    #[test]
    fn the_end_of_a_stream_of_packets_wakes_every_reader() {
        let mut coalescing = streaming();
        coalescing.hold(at(0), ID, 1_000);
        coalescing.set_streaming(false);
        assert_eq!(woken(&mut coalescing, at(1), 1_000), [ID]);
    }

    #[test]
    fn an_end_and_a_message_wake_a_reader_at_once() {
        let mut coalescing = streaming();
        assert!(!coalescing.hold(at(0), ID, 0));
        coalescing.hold(at(0), ID, 1_000);
        assert_eq!(woken(&mut coalescing, at(1), 0), [ID]);
    }
}
