//! Cross traffic: packets at a fixed rate, without feedback.

use core::net::SocketAddr;

use farhaul_proto::{ConnectionId, Stats};
use farhaul_units::{Duration, Instant, Rate, Rng};

use super::{Agent, Outbox};
use crate::packet::{Payload, PooledPacket, Share};

/// Bytes of each packet on the link, headers included: the MTU of the papers.
pub const PACKET: u32 = 1_500;

/// The connection id of agents with only one connection.
pub const CONNECTION: ConnectionId = ConnectionId::from_parts(0, 0);

/// When a source sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Timing {
    /// Constant bit rate: evenly spaced packets.
    Even {
        /// Time of the first packet.
        begin: Instant,
        /// End of sending.
        end: Instant,
    },
    /// Constant bit rate in bursts: sends for a while, pauses for a while, and repeats.
    OnOff {
        /// Time of the first packet.
        begin: Instant,
        /// End of sending.
        end: Instant,
        /// Length of a burst.
        on: Duration,
        /// Length of a pause.
        off: Duration,
    },
    /// A Poisson process: exponentially distributed gaps whose mean gives the rate.
    Poisson {
        /// Start of sending.
        begin: Instant,
        /// End of sending.
        end: Instant,
    },
}

/// The instants at which the packets of a source leave.
#[derive(Clone, Debug)]
pub struct Schedule {
    rate: Rate,
    timing: Timing,
    packet: u32,
    rng: Rng,
    /// When the next packet leaves.
    due: Option<Instant>,
    /// The start of this burst and the packets sent since. Each packet leaves at its exact time after the start, so
    /// that errors do not add up.
    period: (Instant, u64),
}

impl Schedule {
    /// Packets of so many bytes at `rate` on the link. `seed` determines random gaps.
    pub fn new(rate: Rate, timing: Timing, packet: u32, seed: u64) -> Self {
        let (begin, end) = timing.span();
        let due = (rate > Rate::ZERO && begin < end).then_some(begin);
        Self { rate, timing, packet, rng: Rng::new(seed), due, period: (begin, 0) }
    }

    /// When the packet after the last one is due.
    fn following(&mut self, now: Instant) -> Instant {
        let (begin, count) = self.period;
        match self.timing {
            Timing::Poisson { .. } => {
                let mean = self.rate.time_for(u64::from(self.packet)).as_nanos() as f64;
                // 1 - u is never zero, so the logarithm is finite.
                now + Duration::from_nanos((-libm::log(1.0 - self.rng.unit()) * mean) as u64)
            }
            Timing::Even { .. } => {
                self.period.1 = count + 1;
                begin + self.rate.time_for((count + 1) * u64::from(self.packet))
            }
            Timing::OnOff { on, off, .. } => {
                self.period.1 = count + 1;
                let next = begin + self.rate.time_for((count + 1) * u64::from(self.packet));
                if next < begin + on {
                    return next;
                }
                self.period = (begin + on + off, 0);
                self.period.0
            }
        }
    }
}

impl Iterator for Schedule {
    type Item = Instant;

    fn next(&mut self) -> Option<Instant> {
        let due = self.due?;
        let end = self.timing.span().1;
        self.due = Some(self.following(due)).filter(|next| *next < end);
        Some(due)
    }
}

/// Sends packets of [`PACKET`] bytes at a rate, without reacting to loss.
#[derive(Clone, Debug)]
pub struct Source {
    to: SocketAddr,
    schedule: Schedule,
    sent: u64,
}

impl Source {
    /// A source that sends to `to` at `rate` on the link. `seed` determines random gaps.
    pub fn new(to: SocketAddr, rate: Rate, timing: Timing, seed: u64) -> Self {
        Self { to, schedule: Schedule::new(rate, timing, PACKET, seed), sent: 0 }
    }

    /// Sets the packet size, headers included.
    #[must_use]
    pub fn packets_of(mut self, bytes: u32) -> Self {
        self.schedule.packet = bytes.max(1);
        self
    }
}

impl Timing {
    fn span(&self) -> (Instant, Instant) {
        match *self {
            Self::Even { begin, end } | Self::OnOff { begin, end, .. } | Self::Poisson { begin, end } => (begin, end),
        }
    }
}

impl Agent for Source {
    fn handle_packet(&mut self, _: Instant, _: &mut PooledPacket, _: &mut Outbox<'_>) {}

    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox<'_>) {
        while self.schedule.due.is_some_and(|due| due <= now) {
            out.packet(self.to, Payload::Filler, self.schedule.packet, Share::New);
            self.sent += 1;
            self.schedule.next();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.schedule.due
    }

    fn sample(&self, _: Instant, out: &mut Vec<(ConnectionId, Stats)>) {
        let mut stats = Stats::default();
        stats.totals.packets_sent = self.sent;
        out.push((CONNECTION, stats));
    }
}

/// Counts all packets it receives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sink {
    packets: u64,
    bytes: u64,
}

impl Sink {
    /// A sink that has received nothing.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Agent for Sink {
    fn handle_packet(&mut self, _: Instant, packet: &mut PooledPacket, _: &mut Outbox<'_>) {
        self.packets += 1;
        self.bytes += u64::from(farhaul_netem::WireLen::wire_len(packet));
    }

    fn handle_timeout(&mut self, _: Instant, _: &mut Outbox<'_>) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Counts bytes on the link, headers included, because the packets have no other content.
    fn sample(&self, _: Instant, out: &mut Vec<(ConnectionId, Stats)>) {
        let mut stats = Stats::default();
        stats.totals.packets_received = self.packets;
        stats.totals.bytes_received = self.bytes;
        stats.totals.bytes_read = self.bytes;
        out.push((CONNECTION, stats));
    }
}

#[cfg(test)]
mod tests {
    use farhaul_netem::PathSpec;

    use super::*;
    use crate::topology::graph::Graph;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Packets that arrived by each of these milliseconds, over a perfect link.
    fn arrivals(timing: Timing, checks: &[u64]) -> Vec<u64> {
        let mut graph = Graph::new(2);
        let [link, _] = graph.duplex(0, 1, &PathSpec::default());
        let source = Source::new(graph.address(1, 9), Rate::from_megabits_per_second(12), timing, 3);
        let flow = graph.next_flow();
        graph.add(0, 9, flow, Box::new(source));
        graph.add(1, 9, flow, Box::new(Sink::new()));
        let mut world = graph.start(1);
        let mut count = |&millis| {
            world.run_until(at(millis));
            world.flow_tally(link, flow).new.packets
        };
        checks.iter().map(&mut count).collect()
    }

    #[test]
    fn a_constant_rate_is_evenly_spaced() {
        // At 12 Mbit/s: one packet per millisecond.
        let counts = arrivals(Timing::Even { begin: at(10), end: at(20) }, &[9, 10, 11, 15, 19, 20, 30]);
        assert_eq!(counts, [0, 1, 2, 6, 10, 10, 10]);
    }

    #[test]
    fn an_on_off_source_is_silent_in_between() {
        let timing =
            Timing::OnOff { begin: at(0), end: at(100), on: Duration::from_millis(10), off: Duration::from_millis(30) };
        assert_eq!(arrivals(timing, &[9, 39, 40, 49, 79, 99, 200]), [10, 10, 11, 20, 20, 30, 30]);
    }

    #[test]
    fn a_poisson_source_keeps_its_mean_rate_with_uneven_gaps() {
        let timing = Timing::Poisson { begin: at(0), end: at(10_000) };
        let counts = arrivals(timing.clone(), &[10_000]);
        assert!((9_600..10_400).contains(&counts[0]), "{counts:?}"); // four standard deviations
        let per_tick = arrivals(timing, &(0..1_000).map(|tick| tick * 10).collect::<Vec<_>>());
        let gaps: Vec<u64> = per_tick.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().any(|&packets| packets < 5) && gaps.iter().any(|&packets| packets > 15));
    }
}
