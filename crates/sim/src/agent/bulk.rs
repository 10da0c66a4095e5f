//! Bulk transfer over any transport, for measuring: content is not looked at, so that a simulated packet costs little.
//!
//! What is sent is checked byte by byte by [`Traffic`](crate::Traffic), which tests use.

use std::net::SocketAddr;

use farhaul_proto::{ConnectionId, Event, Read, Streams, earliest};
use farhaul_units::Instant;

use crate::host::Application;

/// Bytes moved per call.
const CHUNK: usize = 64 * 1024;

/// Opens one connection, sends, and closes it.
#[derive(Clone, Debug)]
pub struct BulkSender {
    to: SocketAddr,
    /// When it begins; `None` once it has.
    begin: Option<Instant>,
    /// When it closes, done or not; `None` once it has, and for never.
    end: Option<Instant>,
    /// What is left to be written; `None` for no end of it.
    left: Option<u64>,
    id: Option<ConnectionId>,
    finished_at: Option<Instant>,
    chunk: Vec<u8>,
}

impl BulkSender {
    /// Connects to `to` at `begin` and sends without end.
    pub fn new(to: SocketAddr, begin: Instant) -> Self {
        let chunk = vec![0; CHUNK];
        Self { to, begin: Some(begin), end: None, left: None, id: None, finished_at: None, chunk }
    }

    /// Sends so many bytes and closes once they are acknowledged.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.left = Some(bytes);
        self
    }

    /// Closes at `end`, done or not.
    #[must_use]
    pub fn until(mut self, end: Instant) -> Self {
        self.end = Some(end);
        self
    }

    fn write<T: Streams>(&mut self, now: Instant, transport: &mut T) {
        let Some(id) = self.id else { return };
        while self.left != Some(0) {
            let length = self.left.map_or(CHUNK, |left| left.min(CHUNK as u64) as usize);
            match transport.write(now, id, &self.chunk[..length]) {
                Ok(0) | Err(_) => return,
                Ok(taken) => self.left = self.left.map(|left| left - taken as u64),
            }
        }
        transport.finish(now, id);
    }
}

impl<T: Streams> Application<T> for BulkSender {
    fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.begin, self.end)
    }

    fn handle_timeout(&mut self, now: Instant, transport: &mut T) {
        if self.begin.take_if(|begin| *begin <= now).is_some() {
            self.id = transport.connect(now, self.to).ok();
        }
        if self.end.take_if(|end| *end <= now).is_some()
            && let Some(id) = self.id
        {
            transport.close(now, id);
        }
    }

    fn handle_event(&mut self, now: Instant, transport: &mut T, event: Event) {
        match event {
            Event::Connected(_) | Event::Writable(_) => self.write(now, transport),
            Event::Finished(_) => self.finished_at = Some(now),
            _ => {}
        }
    }

    fn list_connections(&self, out: &mut Vec<ConnectionId>) {
        out.extend(self.id);
    }

    fn finished_at(&self) -> Option<Instant> {
        self.finished_at
    }
}

/// Takes every connection and reads whatever comes.
#[derive(Clone, Debug)]
pub struct BulkReceiver {
    ids: Vec<ConnectionId>,
    chunk: Vec<u8>,
}

impl BulkReceiver {
    /// Nobody has connected.
    pub fn new() -> Self {
        Self { ids: Vec::new(), chunk: vec![0; CHUNK] }
    }
}

impl Default for BulkReceiver {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Streams> Application<T> for BulkReceiver {
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _: Instant, _: &mut T) {}

    fn handle_event(&mut self, now: Instant, transport: &mut T, event: Event) {
        match event {
            Event::Accepted(id) => self.ids.push(id),
            Event::Readable(id) => while let Ok(Read::Data(_)) = transport.read(now, id, &mut self.chunk) {},
            _ => {}
        }
    }

    fn list_connections(&self, out: &mut Vec<ConnectionId>) {
        out.extend(&self.ids);
    }
}

#[cfg(test)]
mod tests {
    use farhaul_netem::PathSpec;
    use farhaul_proto::udt::Endpoint;
    use farhaul_proto::{Config, Entropy, Mode};
    use farhaul_units::{Duration, Rate};

    use super::*;
    use crate::agent::Agent;
    use crate::host::Host;
    use crate::topology::graph::Graph;
    use crate::world::World;

    fn endpoint(seed: u64) -> Endpoint {
        Endpoint::new(Config::default(), Entropy { cookie_key: [0; 16], seed })
    }

    /// One sender and one receiver at 100 Mbit/s, 10 ms.
    fn world(sender: impl FnOnce(SocketAddr) -> BulkSender) -> (World<Box<dyn Agent>>, usize, usize) {
        let mut graph = Graph::new(2);
        let spec = PathSpec {
            rate: Some(Rate::from_megabits_per_second(100)),
            delay: Duration::from_millis(5),
            ..PathSpec::default()
        };
        let [link, _] = graph.duplex(0, 1, &spec);
        let flow = graph.next_flow();
        let sender = sender(graph.address(1, 9));
        let mut listener = endpoint(2);
        listener.listen(Mode::Stream);
        graph.add(0, 9, flow, Box::new(Host::new(endpoint(1), sender)));
        graph.add(1, 9, flow, Box::new(Host::new(listener, BulkReceiver::new())));
        (graph.start(1), link, flow)
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn read(world: &World<Box<dyn Agent>>) -> u64 {
        let mut connections = Vec::new();
        world.agent(1).sample(world.now(), &mut connections);
        connections.iter().map(|(_, stats)| stats.totals.bytes_read).sum()
    }

    #[test]
    fn a_transfer_of_known_size_ends() {
        let (mut world, link, flow) = world(|to| BulkSender::new(to, at(0)).bytes(5_000_000));
        world.run_until(at(2_000));
        assert_eq!(read(&world), 5_000_000);
        let finished = world.agent(0).finished_at().expect("it is done");
        assert!((at(400)..at(700)).contains(&finished), "{finished:?}"); // 411 ms are the packets alone
        assert_eq!(world.flow_tally(link, flow).repeated.packets, 0);
    }

    #[test]
    fn a_sender_stops_when_its_time_is_over() {
        let (mut world, link, flow) = world(|to| BulkSender::new(to, at(100)).until(at(1_100)));
        world.run_until(at(99));
        assert_eq!(world.flow_tally(link, flow).control.packets, 0);
        world.run_until(at(1_500));
        let by_then = read(&world);
        assert!(by_then > 8_000_000, "{by_then}");
        world.run_until(at(5_000));
        assert_eq!(read(&world), by_then);
    }
}
