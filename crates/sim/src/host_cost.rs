//! The cost of packets on a host: a processor that every packet occupies, and a receive buffer in front of it.
//!
//! ```text
//!   link ──▶ Ingress: receive buffer, processor ──▶ agent
//!   link ◀── Egress: processor                 ◀── agent
//! ```
//!
//! Both are elements on links of a [`Graph`] between a host's network interface, which is its own node, and the node of
//! its agents. [`attach`] makes them.
//!
//! The processor serves in order of arrival. A packet that finds the receive buffer full has still cost its interrupt.
//! Beyond a certain arrival rate, throughput therefore *falls* (receive livelock; Mogul and Ramakrishnan 1997,
//! paper:livelock-1997).

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use farhaul_netem::{Impair, Impairment, Outlet, WireLen};
use farhaul_units::{Duration, Instant};

use crate::network::NodeId;
use crate::packet::{PooledPacket, Share};
use crate::topology::graph::Graph;

/// Processor time per packet on a host, and the size of its receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCost {
    /// Processor time of every arriving packet, dropped or not: interrupt and driver.
    pub per_arrival: Duration,
    /// Processor time of every data packet in the receive buffer: protocol and application.
    pub per_data: Duration,
    /// Processor time of every control packet in the receive buffer: retransmission requests, acknowledgements, and
    /// segments of channels, which carry such requests.
    pub per_request: Duration,
    /// Processor time of every packet sent.
    pub per_sent: Duration,
    /// Size of the receive buffer in bytes, headers included; `None` for no limit.
    pub receive_buffer: Option<u64>,
}

impl Default for HostCost {
    /// A host without processor cost that never drops.
    fn default() -> Self {
        let free = Duration::ZERO;
        Self { per_arrival: free, per_data: free, per_request: free, per_sent: free, receive_buffer: None }
    }
}

/// Puts these costs between `interface`, where the host's links end, and `host`, the node of its agents.
pub fn attach(graph: &mut Graph, interface: NodeId, host: NodeId, spec: HostCost) {
    let processor = Processor::default();
    graph.element(interface, host, Impair::new(Ingress::new(spec, processor.clone())));
    graph.element(host, interface, Impair::new(Egress { spec, processor }));
}

/// A processor that both directions share.
#[derive(Clone, Debug, Default)]
struct Processor {
    free_at: Rc<Cell<Instant>>,
}

impl Processor {
    /// Adds `time` of work behind all earlier work and returns when it is done.
    fn work(&self, now: Instant, time: Duration) -> Instant {
        let done = self.free_at.get().max(now) + time;
        self.free_at.set(done);
        done
    }
}

/// The receiving side of a host.
#[derive(Debug)]
struct Ingress {
    spec: HostCost,
    processor: Processor,
    /// Packets in the receive buffer: completion time and bytes of each.
    waiting: VecDeque<(Instant, u32)>,
    bytes: u64,
}

impl Ingress {
    fn new(spec: HostCost, processor: Processor) -> Self {
        Self { spec, processor, waiting: VecDeque::new(), bytes: 0 }
    }

    fn forget_served(&mut self, now: Instant) {
        while let Some(&(_, bytes)) = self.waiting.front().filter(|(served, _)| *served <= now) {
            self.waiting.pop_front();
            self.bytes -= u64::from(bytes);
        }
    }
}

impl Impairment<PooledPacket> for Ingress {
    fn apply(&mut self, now: Instant, packet: PooledPacket, out: &mut Outlet<PooledPacket>) {
        self.forget_served(now);
        let length = packet.wire_len();
        let is_full = self.spec.receive_buffer.is_some_and(|limit| self.bytes + u64::from(length) > limit);
        if is_full && !self.waiting.is_empty() {
            self.processor.work(now, self.spec.per_arrival);
            out.counters.dropped_queue.add(length);
            return;
        }
        let cost = match packet.share() {
            Share::New | Share::Repeated => self.spec.per_data,
            Share::Control | Share::Channel => self.spec.per_request,
        };
        let served = self.processor.work(now, self.spec.per_arrival + cost);
        self.waiting.push_back((served, length));
        self.bytes += u64::from(length);
        out.pass(served, packet);
    }
}

/// The sending side of a host.
#[derive(Debug)]
struct Egress {
    spec: HostCost,
    processor: Processor,
}

impl Impairment<PooledPacket> for Egress {
    fn apply(&mut self, now: Instant, packet: PooledPacket, out: &mut Outlet<PooledPacket>) {
        out.pass(self.processor.work(now, self.spec.per_sent), packet);
    }
}

#[cfg(test)]
mod tests {
    use farhaul_netem::PathSpec;
    use farhaul_units::Rate;

    use super::*;
    use crate::Agent;
    use crate::agent::source::{Sink, Source, Timing};

    /// Packets that the application receives in one second at this arrival rate, after one second to fill the buffer.
    fn served(arriving: u64, spec: HostCost) -> u64 {
        let mut graph = Graph::new(3);
        let (source, interface, host) = (0, 1, 2);
        graph.duplex(source, interface, &PathSpec::default());
        attach(&mut graph, interface, host, spec);
        let (begin, end) = (Instant::ZERO, Instant::ZERO + Duration::from_secs(9));
        let rate = Rate::from_bits_per_second(arriving * 12_000);
        let flow = graph.next_flow();
        let to = graph.address(host, 9);
        graph.add(source, 9, flow, Box::new(Source::new(to, rate, Timing::Even { begin, end }, 1)));
        graph.add(host, 9, flow, Box::new(Sink::new()));
        let mut world = graph.start(1);
        let [before, after] = [1, 2].map(|seconds| {
            world.run_until(Instant::ZERO + Duration::from_secs(seconds));
            let mut connections = Vec::new();
            world.agent(1).sample(world.now(), &mut connections);
            connections[0].1.totals.packets_received
        });
        after - before
    }

    fn slow(per_arrival: u64, per_data: u64) -> HostCost {
        HostCost {
            per_arrival: Duration::from_micros(per_arrival),
            per_data: Duration::from_micros(per_data),
            receive_buffer: Some(100 * 1_500),
            ..HostCost::default()
        }
    }

    #[test]
    fn a_host_without_processor_cost_receives_everything() {
        assert_eq!(served(50_000, HostCost::default()), 50_000);
    }

    #[test]
    fn a_saturated_processor_serves_at_its_capacity() {
        assert_eq!(served(5_000, slow(0, 100)), 5_000);
        assert_eq!(served(20_000, slow(0, 100)), 10_000);
    }

    #[test]
    fn beyond_its_capacity_a_host_receives_less_as_arrivals_grow() {
        // At most 1 / (20 + 80 µs) = 10 000 a second. The interrupts of 40 000 arrivals alone take 0.8 s.
        let rates = [8_000, 10_000, 20_000, 40_000].map(|arriving| served(arriving, slow(20, 80)));
        assert_eq!(rates[..2], [8_000, 10_000]);
        assert!((7_495..=7_505).contains(&rates[2]), "{rates:?}"); // (1 - 0.4) / 80 µs
        assert!((2_495..=2_505).contains(&rates[3]), "{rates:?}"); // (1 - 0.8) / 80 µs
    }

    #[test]
    fn sending_takes_the_same_processor_as_receiving() {
        let spec = HostCost { per_sent: Duration::from_micros(50), ..HostCost::default() };
        let mut graph = Graph::new(3);
        let (host, interface, sink) = (0, 1, 2);
        attach(&mut graph, interface, host, spec);
        graph.duplex(interface, sink, &PathSpec::default());
        let (begin, end) = (Instant::ZERO, Instant::ZERO + Duration::from_secs(1));
        let rate = Rate::from_bits_per_second(40_000 * 12_000);
        let flow = graph.next_flow();
        let to = graph.address(sink, 9);
        graph.add(host, 9, flow, Box::new(Source::new(to, rate, Timing::Even { begin, end }, 1)));
        graph.add(sink, 9, flow, Box::new(Sink::new()));
        let way = graph.way(host, sink).expect("they are connected");
        let mut world = graph.start(1);
        world.run_until(end);
        let sent = world.flow_tally(way[1], flow).new.packets;
        assert!((19_990..=20_000).contains(&sent), "{sent}");
    }
}
