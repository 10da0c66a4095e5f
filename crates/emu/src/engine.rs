//! Packets on the links of a network, from a host's write to a host's read. Real time is an argument.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use farhaul_netem::{Counters, Element, PathSpec, Pipe, Routes, Variation};
use farhaul_units::{Duration, Instant};

use crate::network::{HostId, NetworkSpec, NodeId};
use crate::packet::Packet;

/// Links with their packets.
pub(crate) struct Engine {
    links: Vec<EngineLink>,
    routes: Routes,
    spec: NetworkSpec,
    /// Packets that have arrived, with their arrival times.
    arrived: VecDeque<(Instant, Packet)>,
    /// Packets that left the links too early, ordered by the earliest possible arrival and then by the time of leaving.
    held: BTreeMap<(Instant, u64), (Instant, Packet)>,
    /// Number of packets held so far.
    held_so_far: u64,
    /// The current time of all links. Never decreases.
    now: Instant,
    /// Packets without a route.
    pub(crate) stranded: u64,
}

/// A link, its destination, and its next event.
struct EngineLink {
    path: Pipe<Packet>,
    to: usize,
    next: Option<Instant>,
}

impl Engine {
    pub(crate) fn new(spec: &NetworkSpec) -> Self {
        let links = spec.links.iter().map(|link| EngineLink { path: link.path.build(), to: link.to.0, next: None });
        Self {
            links: links.collect(),
            routes: spec.routes(),
            spec: spec.clone(),
            arrived: VecDeque::new(),
            held: BTreeMap::new(),
            held_so_far: 0,
            now: Instant::ZERO,
            stranded: 0,
        }
    }

    /// The host with this address.
    pub(crate) fn host_at(&self, address: IpAddr) -> Option<HostId> {
        self.spec.host_at(address)
    }

    /// Takes in a packet that `from` probably sent at `now`, and certainly had sent by `latest`.
    ///
    /// The packet takes its place on the links as of `now`. It reaches its host no earlier than if it had been sent at
    /// `latest`. Returns by how much the links are already ahead of `now`.
    pub(crate) fn push(&mut self, now: Instant, latest: Instant, from: HostId, mut packet: Packet) -> Duration {
        let late = self.now - now;
        self.now = self.now.max(now);
        if latest > now {
            packet.earliest = latest + self.distance(from, packet.to());
        }
        let node = self.spec.node(from).0;
        self.forward(self.now, node, packet);
        late
    }

    /// Processes everything that is due by `now`.
    pub(crate) fn advance(&mut self, now: Instant) {
        while let Some((index, due)) = self.earliest()
            && due <= now
        {
            self.let_go(due);
            self.now = self.now.max(due);
            while let Some(packet) = self.links[index].path.pop(self.now) {
                let node = self.links[index].to;
                self.forward(self.now, node, packet);
            }
            self.links[index].next = self.links[index].path.next_event();
        }
        self.let_go(now);
        self.now = self.now.max(now);
    }

    /// Releases packets that were held until `now` or earlier.
    fn let_go(&mut self, now: Instant) {
        while let Some(held) = self.held.first_entry().filter(|held| held.key().0 <= now) {
            self.arrived.push_back(held.remove());
        }
    }

    /// When something happens next. In the past if arrived packets wait for delivery to their hosts.
    pub(crate) fn next_event(&self) -> Option<Instant> {
        let held = self.held.first_key_value().map(|((due, _), _)| *due);
        let moves = self.earliest().map(|(_, due)| due).into_iter().chain(held).min();
        self.arrived.front().map(|(due, _)| *due).or(moves)
    }

    /// The next arrived packet, and when it arrived.
    pub(crate) fn pop(&mut self) -> Option<(Instant, Packet)> {
        self.arrived.pop_front()
    }

    /// Writes the counters of all links at the current time to `into`.
    pub(crate) fn counters(&mut self, into: &mut Vec<Counters>) {
        into.clear();
        for link in &mut self.links {
            link.path.advance(self.now);
            into.push(link.path.counters());
        }
    }

    fn earliest(&self) -> Option<(usize, Instant)> {
        let next = |(index, link): (usize, &EngineLink)| link.next.map(|next| (index, next));
        self.links.iter().enumerate().filter_map(next).min_by_key(|(_, next)| *next)
    }

    /// The shortest time between two hosts, without transmission times.
    fn distance(&self, from: HostId, to: HostId) -> Duration {
        let (mut node, destination) = (self.spec.node(from).0, self.spec.node(to).0);
        let mut distance = Duration::ZERO;
        // Detours can form a loop.
        for _ in 0..self.links.len() {
            let Some(link) = self.routes.next(node, destination).filter(|_| node != destination) else { break };
            distance += least_delay(&self.spec.links[link].path);
            node = self.links[link].to;
        }
        distance
    }

    /// Forwards a packet at `node`.
    fn forward(&mut self, now: Instant, node: usize, packet: Packet) {
        let destination = packet.to();
        if self.spec.host_on(NodeId(node)) == Some(destination) {
            match packet.earliest {
                earliest if earliest > now => {
                    self.held.insert((earliest, self.held_so_far), (now, packet));
                    self.held_so_far += 1;
                }
                _ => self.arrived.push_back((now, packet)),
            }
            return;
        }
        let Some(link) = self.routes.next(node, self.spec.node(destination).0) else {
            self.stranded += 1;
            return;
        };
        let link = &mut self.links[link];
        link.path.push(now, packet);
        link.next = link.path.next_event();
    }
}

/// The shortest time across a link, without transmission. Zero if its delay changes.
fn least_delay(path: &PathSpec) -> Duration {
    if matches!(path.variation, Variation::Schedule(_)) { Duration::ZERO } else { path.delay }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use farhaul_units::Rate;

    use super::*;
    use crate::pool::Pool;

    /// One host on each side of two routers. 8 Mbit/s and 1 ms in the middle, 2 ms on the right.
    fn chain() -> (Engine, [HostId; 2], Rc<Pool>) {
        let mut network = NetworkSpec::new(1);
        let hosts = [network.host(), network.host()];
        let routers = [network.router(), network.router()];
        let path = |rate: Option<u64>, delay| PathSpec {
            rate: rate.map(Rate::from_megabits_per_second),
            delay: Duration::from_millis(delay),
            ..PathSpec::default()
        };
        network.duplex(network.node(hosts[0]), routers[0], &path(None, 0));
        network.duplex(routers[0], routers[1], &path(Some(8), 1));
        network.duplex(routers[1], network.node(hosts[1]), &path(None, 2));
        (Engine::new(&network), hosts, Rc::new(Pool::default()))
    }

    fn packet(pool: &Rc<Pool>, to: HostId, length: usize) -> Packet {
        Packet::new(pool.copy(&vec![0x45; length]).unwrap(), None, to)
    }

    #[test]
    fn hops_are_exact_however_late_the_engine_is_driven() {
        let (mut engine, [left, right], pool) = chain();
        for _ in 0..2 {
            assert_eq!(engine.push(Instant::ZERO, Instant::ZERO, left, packet(&pool, right, 1_000)), Duration::ZERO);
        }
        engine.advance(Instant::from_nanos(50_000_000));
        assert_eq!(engine.next_event(), Some(Instant::from_nanos(4_000_000)), "who has arrived waits to be delivered");
        let arrivals: Vec<u64> = std::iter::from_fn(|| engine.pop()).map(|(at, _)| at.as_nanos()).collect();
        assert_eq!(arrivals, [4_000_000, 5_000_000], "1 ms to send each, 3 ms to travel");
        assert_eq!(engine.next_event(), None);
    }

    #[test]
    fn a_packet_from_before_the_current_time_is_late() {
        let (mut engine, [left, right], pool) = chain();
        engine.advance(Instant::from_nanos(700));
        assert_eq!(
            engine.push(Instant::from_nanos(200), Instant::from_nanos(200), left, packet(&pool, right, 9)),
            Duration::from_nanos(500)
        );
    }

    #[test]
    fn a_packet_dated_into_a_pause_crosses_no_faster_and_keeps_its_place() {
        let (mut engine, [left, right], pool) = chain();
        let latest = Instant::from_nanos(2_000_000);
        for at in [500_000, 1_600_000, 2_000_000] {
            engine.advance(Instant::from_nanos(at));
            let _ = engine.push(Instant::from_nanos(at), latest, left, packet(&pool, right, 1_000));
        }
        engine.advance(Instant::from_nanos(4_999_999));
        assert!(engine.pop().is_none(), "it would have arrived after 4.5 ms, and may have been sent at 2");
        assert_eq!(engine.next_event(), Some(Instant::from_nanos(5_000_000)));
        engine.advance(Instant::from_nanos(7_000_000));
        let arrivals: Vec<u64> = std::iter::from_fn(|| engine.pop()).map(|(at, _)| at.as_nanos()).collect();
        assert_eq!(arrivals, [4_500_000, 5_600_000, 6_600_000], "what was waited for is lateness");
    }

    #[test]
    fn packets_without_a_route_are_counted() {
        let mut network = NetworkSpec::new(1);
        let hosts = [network.host(), network.host()];
        let mut engine = Engine::new(&network);
        let pool = Rc::new(Pool::default());
        let _ = engine.push(Instant::ZERO, Instant::ZERO, hosts[0], packet(&pool, hosts[1], 9));
        let _ = engine.push(Instant::ZERO, Instant::ZERO, hosts[0], packet(&pool, hosts[0], 9));
        assert_eq!((engine.stranded, engine.pop().map(|(_, packet)| packet.to())), (1, Some(HostId(0))));
    }
}
