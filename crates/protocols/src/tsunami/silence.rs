//! A server that hears nothing slows down (tsunami-udp 1.1).

use farhaul_units::{Duration, Instant};

/// Datagrams without any record of the client after which the server slows down.
const SLOTS: u32 = 2_049;
/// Shortest time from the last record, or from the last such event, to the next.
const SHORTEST: Duration = Duration::from_millis(500);

/// The silence of a client.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    slots: u32,
    since: Instant,
}

impl Silence {
    /// The client was heard now.
    pub const fn new(now: Instant) -> Self {
        Self { slots: 0, since: now }
    }

    /// A record came.
    pub fn on_record(&mut self, now: Instant) {
        *self = Self::new(now);
    }

    /// `datagrams` left. Returns whether the sender must slow down as if all were lost.
    pub fn on_sent(&mut self, now: Instant, datagrams: u32) -> bool {
        self.slots = self.slots.saturating_add(datagrams);
        if self.slots < SLOTS {
            return false;
        }
        self.slots = 0;
        let slow = now - self.since >= SHORTEST;
        if slow {
            self.since = now;
        }
        slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_thousand_datagrams_and_half_a_second_without_a_record_count_as_loss_of_all() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut silence = Silence::new(at(0));
        assert!(!silence.on_sent(at(400), SLOTS), "too early");
        assert!(!silence.on_sent(at(600), SLOTS - 1), "too few");
        assert!(silence.on_sent(at(600), 1));
        assert!(!silence.on_sent(at(1_099), SLOTS), "counted from the last event");
        assert!(silence.on_sent(at(1_100), SLOTS));
        silence.on_record(at(1_500));
        assert!(!silence.on_sent(at(1_999), SLOTS));
    }
}
