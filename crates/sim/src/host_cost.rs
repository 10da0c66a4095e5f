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
//!
//! Other programs may take the processor at times ([`Load`]), and packets may leave later than the transport meant
//! ([`HostCost::send_jitter`]).

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use farhaul_netem::{Impair, Impairment, Outlet, WireLen};
use farhaul_units::{Duration, Instant, Rng};

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
    /// Longest random delay of a packet sent, uniformly distributed: late timers and interrupts. Packets stay in order,
    /// so a burst leaves together.
    pub send_jitter: Duration,
    /// How long the network interface gathers packets before it interrupts: the first one after a delivery starts the
    /// time, and at its end all of them arrive at once. Zero for an interrupt for each packet. Receive offload does the same.
    pub gather: Duration,
    /// Other programs; `None` if there are none.
    pub load: Option<Load>,
}

/// Other programs on a host. They take its processor for a while at the beginning of each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// How long they take it.
    pub busy: Duration,
    /// The period.
    pub every: Duration,
}

impl Load {
    /// When `work` is done that begins at `start` at the earliest.
    fn done(self, start: Instant, work: Duration) -> Instant {
        let (busy, every) = (nanos(self.busy), nanos(self.every));
        let free = every - busy;
        let (period, within) = (start.as_nanos() / every, start.as_nanos() % every);
        if work.is_zero() {
            return Instant::from_nanos(period * every + within.max(busy));
        }
        // The free time up to the end of the work, counted from instant zero. It ends inside of a free part.
        let needed = period * free + within.saturating_sub(busy) + nanos(work);
        let (period, within) = ((needed - 1) / free, (needed - 1) % free);
        Instant::from_nanos(period * every + busy + within + 1)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Default for HostCost {
    /// A host without processor cost that never drops.
    fn default() -> Self {
        let free = Duration::ZERO;
        Self {
            per_arrival: free,
            per_data: free,
            per_request: free,
            per_sent: free,
            receive_buffer: None,
            send_jitter: free,
            gather: free,
            load: None,
        }
    }
}

/// Puts these costs between `interface`, where the host's links end, and `host`, the node of its agents. `seed` decides
/// the jitter.
///
/// # Panics
/// If other programs take the whole processor.
pub fn attach(graph: &mut Graph, interface: NodeId, host: NodeId, spec: HostCost, seed: u64) {
    assert!(spec.load.is_none_or(|load| load.busy < load.every), "other programs take the whole processor");
    let processor = Processor { free_at: Rc::default(), load: spec.load };
    graph.element(interface, host, Impair::new(Ingress::new(spec, processor.clone())));
    graph.element(host, interface, Impair::new(Egress::new(spec, processor, seed)));
}

/// A processor that both directions share.
#[derive(Clone, Debug)]
struct Processor {
    free_at: Rc<Cell<Instant>>,
    load: Option<Load>,
}

impl Processor {
    /// Adds `time` of work behind all earlier work and returns when it is done.
    fn work(&self, now: Instant, time: Duration) -> Instant {
        let start = self.free_at.get().max(now);
        let done = self.load.map_or(start + time, |load| load.done(start, time));
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
    /// When the interface interrupts for the packets that it gathers.
    interrupt: Instant,
}

impl Ingress {
    fn new(spec: HostCost, processor: Processor) -> Self {
        Self { spec, processor, waiting: VecDeque::new(), bytes: 0, interrupt: Instant::ZERO }
    }

    fn forget_served(&mut self, now: Instant) {
        while let Some(&(_, bytes)) = self.waiting.front().filter(|(served, _)| *served <= now) {
            self.waiting.pop_front();
            self.bytes -= u64::from(bytes);
        }
    }
}

impl Impairment<PooledPacket> for Ingress {
    fn apply(&mut self, now: Instant, mut packet: PooledPacket, out: &mut Outlet<PooledPacket>) {
        if now > self.interrupt || self.spec.gather.is_zero() {
            self.interrupt = now + self.spec.gather;
        }
        let now = self.interrupt;
        packet.stamp(now);
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
    rng: Rng,
    /// When the last packet leaves.
    last: Instant,
}

impl Egress {
    fn new(spec: HostCost, processor: Processor, seed: u64) -> Self {
        Self { spec, processor, rng: Rng::new(seed), last: Instant::ZERO }
    }
}

impl Impairment<PooledPacket> for Egress {
    fn apply(&mut self, now: Instant, packet: PooledPacket, out: &mut Outlet<PooledPacket>) {
        let mut leaves = self.processor.work(now, self.spec.per_sent);
        if !self.spec.send_jitter.is_zero() {
            leaves = self.last.max(leaves + self.spec.send_jitter.mul_f64(self.rng.unit()));
            self.last = leaves;
        }
        out.pass(leaves, packet);
    }
}

#[cfg(test)]
mod tests {
    use farhaul_netem::PathSpec;
    use farhaul_units::Rate;

    use super::*;
    use crate::agent::source::{Sink, Source, Timing};

    /// Packets that the application receives in one second at this arrival rate, after one second to fill the buffer.
    fn served(arriving: u64, spec: HostCost) -> u64 {
        let mut graph = Graph::new(3);
        let (source, interface, host) = (0, 1, 2);
        graph.duplex(source, interface, &PathSpec::default());
        attach(&mut graph, interface, host, spec, 1);
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

    /// A host that sends evenly for one second, so many packets, and when each reaches the link behind it.
    fn departures(packets: u64, spec: HostCost) -> Vec<Instant> {
        let mut graph = Graph::new(3);
        let (host, interface, sink) = (0, 1, 2);
        attach(&mut graph, interface, host, spec, 3);
        graph.duplex(interface, sink, &PathSpec::default());
        let (begin, end) = (Instant::ZERO, Instant::ZERO + Duration::from_secs(1));
        let rate = Rate::from_bits_per_second(packets * 12_000);
        let flow = graph.next_flow();
        let to = graph.address(sink, 9);
        graph.add(host, 9, flow, Box::new(Source::new(to, rate, Timing::Even { begin, end }, 1)));
        graph.add(sink, 9, flow, Box::new(Sink::new()));
        let mut world = graph.start(1);
        let arrivals = Rc::new(std::cell::RefCell::new(Vec::new()));
        let log = Rc::clone(&arrivals);
        world.set_capture(Some(Box::new(move |now, passing, _| {
            if matches!(passing, crate::Passing::Delivered(_)) {
                log.borrow_mut().push(now);
            }
        })));
        world.run_until(end);
        arrivals.take()
    }

    #[test]
    fn sending_takes_the_same_processor_as_receiving() {
        let spec = HostCost { per_sent: Duration::from_micros(50), ..HostCost::default() };
        let sent = departures(40_000, spec).len();
        assert!((19_990..=20_000).contains(&sent), "{sent}");
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn packets_leave_late_by_at_most_the_jitter_and_in_order() {
        // One packet a millisecond, so that the delays are independent.
        let spec = HostCost { send_jitter: Duration::from_micros(900), ..HostCost::default() };
        let departures = departures(1_000, spec);
        let late = |(due, at): (u64, &Instant)| *at - (Instant::ZERO + millis(due));
        let delays: Vec<Duration> = (0..).zip(&departures).map(late).collect();
        assert!(delays.iter().all(|delay| *delay < Duration::from_micros(900)), "{delays:?}");
        let mean = delays.iter().sum::<Duration>() / 1_000;
        // The standard deviation of the mean is 8 µs.
        assert!((418..=482).contains(&mean.as_micros()), "{mean:?}");
    }

    #[test]
    fn an_interface_that_gathers_hands_over_at_once_what_came_in_its_time() {
        let mut graph = Graph::new(3);
        let (source, interface, host) = (0, 1, 2);
        graph.duplex(source, interface, &PathSpec::default());
        attach(&mut graph, interface, host, HostCost { gather: millis(3), ..HostCost::default() }, 1);
        // One packet a millisecond. The interface interrupts at 0, when the first one comes.
        let even = Timing::Even { begin: Instant::ZERO, end: Instant::ZERO + millis(12) };
        let flow = graph.next_flow();
        let to = graph.address(host, 9);
        graph.add(source, 9, flow, Box::new(Source::new(to, Rate::from_bits_per_second(12_000_000), even, 1)));
        graph.add(host, 9, flow, Box::new(Sink::new()));
        let mut world = graph.start(1);
        let arrivals = Rc::new(std::cell::RefCell::new(Vec::new()));
        let log = Rc::clone(&arrivals);
        world.set_capture(Some(Box::new(move |now, passing, _| {
            if matches!(passing, crate::Passing::Delivered(_)) {
                log.borrow_mut().push((now - Instant::ZERO).as_millis());
            }
        })));
        world.run_until(Instant::ZERO + millis(30));
        assert_eq!(arrivals.take(), [0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12]);
    }

    #[test]
    fn a_burst_shorter_than_the_jitter_keeps_its_order() {
        let spec = HostCost { send_jitter: millis(5), ..HostCost::default() };
        let departures = departures(100_000, spec);
        assert!(departures.is_sorted());
        assert!(departures.len() > 99_000, "{}", departures.len());
    }

    #[test]
    fn other_programs_delay_packets_until_they_rest() {
        let load = Some(Load { busy: millis(4), every: millis(10) });
        let departures = departures(1_000, HostCost { load, ..HostCost::default() });
        let due = |at: u64| Instant::ZERO + millis(at / 10 * 10 + (at % 10).max(4));
        assert_eq!(departures[..100], (0..100).map(due).collect::<Vec<_>>());
    }

    #[test]
    fn other_programs_leave_the_rest_of_the_processor() {
        // 10 000 packets a second at most, and 6 000 while others take 40 %.
        let load = Some(Load { busy: millis(4), every: millis(10) });
        let served = served(20_000, HostCost { load, ..slow(0, 100) });
        assert!((5_990..=6_010).contains(&served), "{served}");
    }

    #[test]
    fn work_is_done_in_the_free_parts_of_the_periods() {
        let load = Load { busy: millis(4), every: millis(10) };
        let done = |start, work| (load.done(Instant::ZERO + millis(start), millis(work)) - Instant::ZERO).as_millis();
        assert_eq!([done(0, 0), done(3, 0), done(4, 0), done(9, 0)], [4, 4, 4, 9]);
        assert_eq!([done(0, 1), done(5, 2), done(5, 5), done(5, 6)], [5, 7, 10, 15]);
        assert_eq!([done(12, 6), done(12, 12), done(12, 13)], [20, 30, 35]);
    }
}
