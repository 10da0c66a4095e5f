//! When this side counts for the peer what has arrived: see [`Receipt`].
//!
//! | due | |
//! | --- | --- |
//! | by count | after 64 packets; if the last acknowledgement is as old and is outdated, the receipt is a light one as well |
//! | with an acknowledgement by timer | before it |
//! | by time | a quarter of an RTT after the first packet not counted, within 1 to 10 ms |
//!
//! The last packets of the application need none if nothing is missing, since their acknowledgement does not wait.
//!
//! Only a peer whose controller wants deliveries gets receipts. Four per RTT are what BBR's model needs (draft-ietf-ccwg-bbr §4.1).
//! They come while packets are missing as well.

use farhaul_units::{Duration, Instant, SeqNo};
use farhaul_wire::udt4::Receipt;

use crate::consts::SYN_INTERVAL;
use crate::timer::Timer;

/// Packets after which a receipt is due. Source: libudt's light acknowledgements.
const INTERVAL: u32 = 64;
/// Receipts per RTT at the least.
const PER_ROUND_TRIP: u32 = 4;
/// Shortest time between receipts by timer. A host's timers are hardly finer.
const MIN_PERIOD: Duration = Duration::from_millis(1);

/// The counting half of a receiver.
#[derive(Debug, Default)]
pub(crate) struct Receipts {
    timer: Timer,
    /// Packets since the last receipt.
    uncounted: u32,
    /// Packets since the last acknowledgement of any kind, and the first missing packet in it.
    unacknowledged: u32,
    acknowledged: SeqNo,
    interval: u32,
    /// Distinct packets received.
    received: u32,
    /// The packet that arrived last, and when.
    latest: SeqNo,
    arrived: Instant,
}

impl Receipts {
    /// For a peer whose first packet is `first`.
    pub(crate) fn new(first: SeqNo, now: Instant) -> Self {
        Self { acknowledged: first, interval: INTERVAL, latest: first, arrived: now, ..Self::default() }
    }

    /// `packets` distinct packets reached this computer at `arrived`, `latest` last.
    pub(crate) fn on_arrival(&mut self, packets: u32, latest: SeqNo, arrived: Instant, now: Instant, rtt: Duration) {
        if packets == 0 {
            return;
        }
        self.received = self.received.wrapping_add(packets);
        self.uncounted += packets;
        self.unacknowledged += packets;
        (self.latest, self.arrived) = (latest, arrived);
        self.timer.start(now, (rtt / PER_ROUND_TRIP).clamp(MIN_PERIOD, SYN_INTERVAL));
    }

    /// Sets the packets after which a receipt is due.
    pub(crate) fn set_interval(&mut self, interval: Option<u32>) {
        self.interval = interval.unwrap_or(INTERVAL).max(1);
    }

    /// The receipt to send now, if any. The first packet not received is `seq`. `is_due` is whether an acknowledgement by timer is.
    pub(crate) fn poll(&mut self, now: Instant, seq: SeqNo, is_due: bool) -> Option<Receipt> {
        let prompt = self.unacknowledged >= self.interval && seq.is_after(self.acknowledged);
        if !prompt && !is_due && self.uncounted < self.interval && !self.timer.fires(now) {
            return None;
        }
        if prompt {
            (self.unacknowledged, self.acknowledged) = (0, seq);
        }
        self.timer.stop();
        if std::mem::take(&mut self.uncounted) == 0 && !prompt {
            return None;
        }
        let delay = now - self.arrived;
        Some(Receipt { seq, received: self.received, latest: self.latest, prompt, delay })
    }

    /// A full or medium acknowledgement of everything before `seq` leaves. `says_all` is whether it says as much as a receipt would, of
    /// the last packets that the application had.
    pub(crate) const fn on_acknowledgement(&mut self, seq: SeqNo, says_all: bool) {
        (self.unacknowledged, self.acknowledged) = (0, seq);
        if says_all {
            self.uncounted = 0;
            self.timer = Timer::stopped();
        }
    }

    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.timer.deadline()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn arrive(receipts: &mut Receipts, packets: u32, latest: u32, millis: u64) {
        let rtt = Duration::from_millis(20);
        receipts.on_arrival(packets, SeqNo::new(latest), at(millis), at(millis), rtt);
    }

    #[test]
    fn a_receipt_is_due_after_64_packets_or_a_quarter_of_a_round_trip() {
        let mut receipts = Receipts::new(SeqNo::new(0), at(0));
        arrive(&mut receipts, 63, 62, 100);
        assert_eq!((receipts.poll(at(100), SeqNo::new(63), false), receipts.deadline()), (None, Some(at(105))));
        arrive(&mut receipts, 1, 63, 101);
        let receipt = receipts.poll(at(101), SeqNo::new(64), false).unwrap();
        assert_eq!((receipt.received, receipt.latest.value(), receipt.delay), (64, 63, Duration::ZERO));
        assert!(receipt.prompt);
        assert_eq!((receipts.poll(at(200), SeqNo::new(64), false), receipts.deadline()), (None, None));
        arrive(&mut receipts, 1, 64, 210);
        let receipt = receipts.poll(at(215), SeqNo::new(65), false).unwrap();
        assert_eq!((receipt.received, receipt.delay), (65, Duration::from_millis(5)));
    }

    #[test]
    fn packets_behind_a_gap_are_counted_and_repeated_ones_are_not() {
        let mut receipts = Receipts::new(SeqNo::new(0), at(0));
        arrive(&mut receipts, 2, 7, 0);
        arrive(&mut receipts, 0, 7, 3);
        let receipt = receipts.poll(at(5), SeqNo::new(1), false).unwrap();
        assert_eq!((receipt.seq.value(), receipt.received, receipt.delay), (1, 2, Duration::from_millis(5)));
    }

    #[test]
    fn a_receipt_acknowledges_where_a_light_acknowledgement_would() {
        let mut receipts = Receipts::new(SeqNo::new(0), at(0));
        let mut after = |packets: u32, seq: u32, millis: u64| {
            arrive(&mut receipts, packets, 200, millis);
            receipts.poll(at(millis), SeqNo::new(seq), false).map(|receipt| receipt.prompt)
        };
        assert_eq!(after(64, 0, 10), Some(false), "packet 0 is missing");
        assert_eq!(after(64, 0, 11), Some(false));
        assert_eq!(after(1, 129, 12), Some(true), "it came late");
        assert_eq!(after(63, 192, 13), None);
        receipts.on_acknowledgement(SeqNo::new(192), false);
        assert_eq!(receipts.poll(at(18), SeqNo::new(192), false).map(|receipt| receipt.prompt), Some(false));
    }
}
