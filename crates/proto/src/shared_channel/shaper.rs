//! Releases the bulk's datagrams at a rate, in bursts of a bounded length.
//!
//! An endpoint hands over trains of up to 64 kB, half a millisecond of a link with 1 Gbit/s. A control datagram behind
//! such a train waits as long. So the shaper cuts trains, and keeps the rest until it is due.

use farhaul_units::{Duration, Instant};

use crate::consts::IP_UDP_HEADER;
use crate::transport::{AddressPair, Transmit};

/// Longest lateness of the driver that is caught up. A timer of the system is late by about as much.
const CATCH_UP: Duration = Duration::from_micros(500);

/// The limit of the bulk, and the train that waits.
#[derive(Debug, Default)]
pub(super) struct Shaper {
    /// Bits per second, headers of IP and UDP included, and the longest burst; `None` for no limit.
    limit: Option<(f64, Duration)>,
    /// When the next burst may leave.
    due: Instant,
    /// Bits that have left.
    sent: f64,
    /// Bits of the longest datagram so far.
    datagram: f64,
    held: Held,
}

/// Datagrams that count as sent by the endpoint, and have not left.
#[derive(Debug, Default)]
struct Held {
    between: Option<AddressPair>,
    segment_size: usize,
    bytes: Vec<u8>,
    gone: usize,
}

impl Shaper {
    /// Limits the bulk from now on. The time without a limit is not caught up.
    pub(super) fn limit(&mut self, now: Instant, rate: f64, burst: Duration) {
        if self.limit.is_none() {
            self.due = self.due.max(now);
        }
        self.limit = Some((rate, burst));
    }

    /// Ends the limit.
    pub(super) fn lift(&mut self) {
        self.limit = None;
    }

    /// Bits that have left so far.
    pub(super) const fn sent(&self) -> f64 {
        self.sent
    }

    /// Bits of the longest datagram so far; zero before the first.
    pub(super) const fn datagram(&self) -> f64 {
        self.datagram
    }

    /// Whether datagrams wait here.
    pub(super) const fn is_holding(&self) -> bool {
        self.held.between.is_some()
    }

    /// Whether a burst may leave now.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        self.limit.is_none() || self.due <= now
    }

    /// When a burst may leave; `None` without a limit.
    pub(super) fn next(&self) -> Option<Instant> {
        match self.limit {
            Some(_) => Some(self.due),
            None => self.is_holding().then_some(Instant::ZERO),
        }
    }

    /// The endpoint has nothing to send. The time since then is not caught up.
    pub(super) fn on_idle(&mut self, now: Instant) {
        self.due = self.due.max(now);
    }

    /// Passes the first burst of a train, and holds the rest.
    pub(super) fn pass<'a>(&mut self, now: Instant, train: Transmit<'a>) -> Transmit<'a> {
        let length = self.burst_of(now, train.segment_size, train.bytes.len());
        if length < train.bytes.len() {
            self.held.keep(&train, length);
        }
        Transmit { bytes: &train.bytes[..length], ..train }
    }

    /// The next burst of the train that waits, if it is due.
    pub(super) fn release(&mut self, now: Instant) -> Option<Transmit<'_>> {
        if !self.is_open(now) {
            return None;
        }
        let between = self.held.between?;
        let (segment_size, from) = (self.held.segment_size, self.held.gone);
        let length = self.burst_of(now, segment_size, self.held.bytes.len() - from);
        self.held.gone += length;
        if self.held.gone == self.held.bytes.len() {
            self.held.between = None;
        }
        Some(Transmit::between(between, segment_size, &self.held.bytes[from..from + length]))
    }

    /// Bytes of a train of `length` bytes that leave now, at least one datagram. They count as sent.
    fn burst_of(&mut self, now: Instant, segment_size: usize, length: usize) -> usize {
        let segment = segment_size.clamp(1, length.max(1));
        let bits = (segment as f64 + f64::from(IP_UDP_HEADER)) * 8.0;
        self.datagram = self.datagram.max(bits);
        let whole = length.div_ceil(segment);
        let datagrams = match self.limit {
            None => whole,
            Some((rate, burst)) => {
                self.due = self.due.max(now.saturating_sub(CATCH_UP));
                let time = (now - self.due + burst).as_secs_f64();
                ((time * rate / bits) as usize).clamp(1, whole)
            }
        };
        let length = length.min(datagrams * segment);
        let bits = (length as f64 + datagrams as f64 * f64::from(IP_UDP_HEADER)) * 8.0;
        self.sent += bits;
        if let Some((rate, _)) = self.limit {
            self.due += Duration::from_secs_f64(bits / rate.max(1.0));
        }
        length
    }
}

impl Held {
    fn keep(&mut self, train: &Transmit<'_>, from: usize) {
        self.between = Some(AddressPair { peer: train.to, local: train.source });
        self.segment_size = train.segment_size;
        self.bytes.clear();
        self.bytes.extend_from_slice(&train.bytes[from..]);
        self.gone = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + 1_000 * micros)
    }

    /// A train of this many datagrams, 1472 bytes each: 12 µs at 1 Gbit/s.
    fn train(datagrams: usize, bytes: &[u8]) -> Transmit<'_> {
        let to = core::net::SocketAddr::from(([10, 0, 0, 1], 9));
        Transmit::between(to.into(), 1_472, &bytes[..1_472 * datagrams])
    }

    #[test]
    fn a_train_leaves_in_bursts_at_the_rate_of_the_limit() {
        let memory = vec![7; 1_472 * 44];
        let mut shaper = Shaper::default();
        assert_eq!(shaper.pass(at(0), train(44, &memory)).bytes.len(), memory.len(), "no limit");
        shaper.limit(at(1_000), 1e9, Duration::from_micros(48));
        let mut left = vec![(0, shaper.pass(at(1_000), train(10, &memory)).datagrams().count())];
        while shaper.is_holding() {
            let next = shaper.next().unwrap();
            assert!(shaper.release(next.saturating_sub(Duration::from_nanos(1))).is_none());
            left.push((next.as_micros() - at(1_000).as_micros(), shaper.release(next).unwrap().datagrams().count()));
        }
        assert_eq!(left, [(0, 4), (48, 4), (96, 2)]);
        assert_eq!(shaper.next(), Some(at(1_120)));
    }

    #[test]
    fn a_late_driver_catches_up_a_little_and_an_idle_bulk_nothing() {
        let memory = vec![7; 1_472 * 44];
        let mut shaper = Shaper::default();
        shaper.limit(at(0), 1e9, Duration::from_micros(12));
        assert_eq!(shaper.pass(at(60), train(6, &memory)).datagrams().count(), 6);
        assert_eq!(shaper.pass(at(10_000), train(44, &memory)).datagrams().count(), 42, "500 µs, and one burst");
        assert!(shaper.is_holding());
        shaper.lift();
        assert_eq!(shaper.release(at(10_000)).unwrap().datagrams().count(), 2, "without a limit, at once");
        shaper.limit(at(20_000), 1e9, Duration::from_micros(12));
        assert_eq!(shaper.pass(at(20_000), train(6, &memory)).datagrams().count(), 1);
    }
}
