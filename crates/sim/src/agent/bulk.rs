//! Bulk transfer over any transport, for measurements. The content is not checked, which makes a simulated packet
//! cheap.
//!
//! `Traffic`, which tests use, checks every byte.

use core::net::SocketAddr;

use farhaul_proto::{ConnectionId, Event, Read, Streams, earliest};
use farhaul_units::{Duration, Instant};

use super::disk::{DiskSpec, Drain, Supply};
use crate::agent::transport::Application;

/// Bytes written per call.
const CHUNK: usize = 64 * 1024;

/// Bytes read per call. Small, so that unchecked data does not evict the rest of a first-level cache of 32 kB.
const READ_CHUNK: usize = 8 * 1024;

/// Delay between the arrival of data and the read by the application, which must be woken first. One wake-up serves
/// many packets.
const WAKE_UP: Duration = Duration::from_micros(500);

/// How often an application that waits for the network polls whether all written data has been acknowledged.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Opens one connection, sends, and closes it.
#[derive(Clone, Debug)]
pub struct BulkSender {
    to: SocketAddr,
    /// When it begins; `None` once it has begun.
    begin: Option<Instant>,
    /// When it closes, with or without data left; `None` once it has closed, and for never.
    end: Option<Instant>,
    /// Bytes left to write; `None` for an endless transfer.
    left: Option<u64>,
    /// The disk it reads from; `None` for memory, which is always ready.
    disk: Option<DiskSpec>,
    supply: Option<Supply>,
    /// When it next polls whether all written data has been acknowledged.
    next_poll: Option<Instant>,
    id: Option<ConnectionId>,
    finished_at: Option<Instant>,
    chunk: Vec<u8>,
}

impl BulkSender {
    /// Connects to `to` at `begin` and sends endlessly.
    pub fn new(to: SocketAddr, begin: Instant) -> Self {
        let chunk = vec![0; CHUNK];
        let (end, left, disk, supply, next_poll, id, finished_at) = (None, None, None, None, None, None, None);
        Self { to, begin: Some(begin), end, left, disk, supply, next_poll, id, finished_at, chunk }
    }

    /// Sends `bytes` bytes and closes after their acknowledgement.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.left = Some(bytes);
        self
    }

    /// Closes at `end`, with or without data left.
    #[must_use]
    pub fn until(mut self, end: Instant) -> Self {
        self.end = Some(end);
        self
    }

    /// Reads the data from a disk.
    #[must_use]
    pub fn from_disk(mut self, disk: DiskSpec) -> Self {
        self.disk = Some(disk);
        self
    }

    fn start<T: Streams>(&mut self, now: Instant, transport: &mut T) {
        self.supply = self.disk.map(|disk| Supply::new(disk, self.left));
        if let Some(supply) = &mut self.supply {
            supply.begin(now);
        }
        self.write(now, transport);
    }

    fn write<T: Streams>(&mut self, now: Instant, transport: &mut T) {
        let Some(id) = self.id else { return };
        while self.left != Some(0) {
            let ready = self.supply.as_mut().map_or(u64::MAX, |supply| supply.ready(now));
            let length = self.left.unwrap_or(u64::MAX).min(ready).min(CHUNK as u64) as usize;
            if length == 0 {
                return self.wait_for_network(now, transport, id);
            }
            match transport.write(now, id, &self.chunk[..length]) {
                Ok(0) | Err(_) => return,
                Ok(taken) => self.written(now, taken as u64),
            }
        }
        transport.finish(now, id);
    }

    /// A coupled disk reads the next block once everything written has been acknowledged.
    fn wait_for_network<T: Streams>(&mut self, now: Instant, transport: &T, id: ConnectionId) {
        let Some(supply) = self.supply.as_mut().filter(|supply| supply.waits_for_network()) else { return };
        if transport.stats(now, id).is_some_and(|stats| stats.send_buffer_packets > 0) {
            self.next_poll = Some(now + POLL_INTERVAL);
        } else {
            supply.begin(now);
        }
    }

    fn written(&mut self, now: Instant, bytes: u64) {
        self.left = self.left.map(|left| left - bytes);
        if let Some(supply) = &mut self.supply {
            supply.take(now, bytes);
        }
    }
}

impl<T: Streams> Application<T> for BulkSender {
    fn poll_timeout(&self) -> Option<Instant> {
        let disk = self.supply.as_ref().and_then(Supply::next);
        earliest(earliest(self.begin, self.end), earliest(self.next_poll, disk))
    }

    fn handle_timeout(&mut self, now: Instant, transport: &mut T) {
        if self.begin.take_if(|begin| *begin <= now).is_some() {
            self.id = transport.connect(now, self.to).ok();
        }
        if self.end.take_if(|end| *end <= now).is_some()
            && let Some(id) = self.id
        {
            transport.close(now, id);
            (self.supply, self.left, self.next_poll) = (None, Some(0), None);
        }
        let polls = self.next_poll.take_if(|next_poll| *next_poll <= now).is_some();
        if polls || self.supply.as_mut().is_some_and(|supply| supply.next().is_some_and(|done| done <= now)) {
            self.write(now, transport);
        }
    }

    fn handle_event(&mut self, now: Instant, transport: &mut T, event: Event) {
        match event {
            Event::Connected(_) => self.start(now, transport),
            Event::Writable(_) => self.write(now, transport),
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

/// Accepts every connection and reads all data.
#[derive(Clone, Debug)]
pub struct BulkReceiver {
    ids: Vec<ConnectionId>,
    disk: Option<Drain>,
    /// When it reads next: after a wake-up, or when a full disk buffer has room again.
    next_read: Option<Instant>,
    chunk: Vec<u8>,
}

impl BulkReceiver {
    /// A receiver without connections.
    pub fn new() -> Self {
        Self { ids: Vec::new(), disk: None, next_read: None, chunk: vec![0; READ_CHUNK] }
    }

    /// Writes the data to a disk.
    #[must_use]
    pub fn to_disk(mut self, disk: DiskSpec) -> Self {
        self.disk = Some(Drain::new(disk));
        self
    }

    fn read<T: Streams>(&mut self, now: Instant, transport: &mut T, id: ConnectionId) {
        loop {
            let room = self.disk.as_ref().map_or(READ_CHUNK as u64, |disk| disk.room(now));
            if room == 0 {
                self.next_read = self.disk.as_ref().map(|disk| disk.next(now));
                return;
            }
            let most = room.min(READ_CHUNK as u64) as usize;
            let Ok(Read::Data(bytes)) = transport.read(now, id, &mut self.chunk[..most]) else { return };
            if let Some(disk) = &mut self.disk {
                disk.put(now, bytes as u64);
            }
        }
    }
}

impl Default for BulkReceiver {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Streams> Application<T> for BulkReceiver {
    fn poll_timeout(&self) -> Option<Instant> {
        self.next_read
    }

    fn handle_timeout(&mut self, now: Instant, transport: &mut T) {
        if self.next_read.take_if(|next| *next <= now).is_some() {
            for index in 0..self.ids.len() {
                self.read(now, transport, self.ids[index]);
            }
        }
    }

    fn handle_event(&mut self, now: Instant, transport: &mut T, event: Event) {
        match event {
            Event::Accepted(id) => self.ids.push(id),
            Event::Readable(_) => self.next_read = earliest(self.next_read, Some(now + WAKE_UP)),
            Event::Closed(id, _) => self.read(now, transport, id),
            _ => {}
        }
    }

    fn list_connections(&self, out: &mut Vec<ConnectionId>) {
        out.extend(&self.ids);
    }
}

#[cfg(test)]
mod tests {
    use farhaul_netem::{LossSpec, PathSpec};
    use farhaul_proto::{Config, Endpoint, Entropy, Mode, udt};
    use farhaul_units::{Duration, Rate};

    use super::*;
    use crate::agent::Agent;
    use crate::agent::transport::TransportAgent;
    use crate::topology::graph::Graph;
    use crate::world::World;

    fn endpoint(seed: u64) -> Endpoint {
        udt::endpoint(Config::default(), Entropy { cookie_key: [0; 16], seed })
    }

    /// One sender and one receiver at 100 Mbit/s, 10 ms.
    fn world(sender: impl FnOnce(SocketAddr) -> BulkSender) -> (World<dyn Agent>, usize, usize) {
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
        listener.listen(Mode::Stream).expect("UDT has the mode");
        graph.add(0, 9, flow, Box::new(TransportAgent::new(endpoint(1), sender)));
        graph.add(1, 9, flow, Box::new(TransportAgent::new(listener, BulkReceiver::new())));
        (graph.start(1), link, flow)
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn read(world: &World<dyn Agent>) -> u64 {
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
        assert!((at(400)..at(700)).contains(&finished), "{finished:?}"); // the packets alone take 411 ms
        assert_eq!(world.flow_tally(link, flow).repeated.packets, 0);
    }

    fn slow_disk(ahead: Option<u64>) -> DiskSpec {
        DiskSpec { rate: Rate::from_megabits_per_second(80), block: 1_000_000, ahead }
    }

    #[test]
    fn without_its_payload_a_connection_takes_less_memory_and_sends_the_same() {
        let run = |blank_payload| {
            let udt = udt::Config { blank_payload, ..udt::Config::default() };
            let make = |seed| {
                udt::endpoint(Config { udt: udt.clone(), ..Config::default() }, Entropy { cookie_key: [0; 16], seed })
            };
            let mut graph = Graph::new(2);
            let loss = Some(LossSpec::Bernoulli(0.001));
            let rate = Some(Rate::from_megabits_per_second(100));
            graph.duplex(0, 1, &PathSpec { rate, loss, delay: Duration::from_millis(5), ..PathSpec::default() });
            let (flow, sender) = (graph.next_flow(), BulkSender::new(graph.address(1, 9), at(0)));
            let mut listener = make(2);
            listener.listen(Mode::Stream).expect("UDT has the mode");
            graph.add(0, 9, flow, Box::new(TransportAgent::new(make(1), sender)));
            graph.add(1, 9, flow, Box::new(TransportAgent::new(listener, BulkReceiver::new())));
            let mut world = graph.start(1);
            world.run_until(at(1_000));
            let mut connections = Vec::new();
            (0..2).for_each(|agent| world.agent(agent).sample(world.now(), &mut connections));
            let memory: u64 = connections.iter().map(|(_, stats)| stats.memory).sum();
            (world.trace_hash(), read(&world), memory)
        };
        let [(trace, bytes, memory), (same_trace, same_bytes, less)] = [false, true].map(run);
        assert_eq!((same_trace, same_bytes), (trace, bytes));
        assert!(bytes > 1_000_000 && less * 10 < memory, "{bytes} bytes, {memory} and {less} of memory");
    }

    #[test]
    fn a_coupled_disk_makes_disk_and_network_wait_for_each_other() {
        // 5 MB take 0.5 s at 80 Mbit/s from the disk and 0.41 s at 100 Mbit/s on the link. The two add up or overlap.
        let times = [None, Some(4_000_000)].map(|ahead| {
            let (mut world, ..) = world(|to| BulkSender::new(to, at(0)).bytes(5_000_000).from_disk(slow_disk(ahead)));
            world.run_until(at(3_000));
            assert_eq!(read(&world), 5_000_000);
            world.agent(0).finished_at().expect("it is done")
        });
        assert!(times[1] < at(680) && times[0] > times[1] + Duration::from_millis(100), "{times:?}");
    }

    #[test]
    fn a_slow_disk_at_the_remote_end_slows_the_transfer() {
        let mut graph = Graph::new(2);
        graph.duplex(0, 1, &PathSpec { rate: Some(Rate::from_megabits_per_second(100)), ..PathSpec::default() });
        let flow = graph.next_flow();
        let sender = BulkSender::new(graph.address(1, 9), at(0)).until(at(5_000));
        let mut listener = endpoint(2);
        listener.listen(Mode::Stream).expect("UDT has the mode");
        let receiver =
            BulkReceiver::new().to_disk(DiskSpec { rate: Rate::from_megabits_per_second(40), ..slow_disk(None) });
        graph.add(0, 9, flow, Box::new(TransportAgent::new(endpoint(1), sender)));
        graph.add(1, 9, flow, Box::new(TransportAgent::new(listener, receiver)));
        let mut world = graph.start(1);
        world.run_until(at(5_000));
        let bytes = read(&world);
        assert!((22_000_000..26_100_000).contains(&bytes), "{bytes}");
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
