//! Bulk transfers: connections, the data in each direction, and a check of every byte.

mod content;
pub(crate) mod delivery;
mod flow;
mod workload;

pub use content::Content;
pub use flow::{Flow, Integrity, Received};
pub use workload::{Amount, Workload};

use core::net::SocketAddr;

use farhaul_proto::{ConnectionId, ConnectionLost, Event, Streams, earliest};
use farhaul_units::{Duration, Instant};

use crate::agent::transport::Application;

/// How often a slow application reads.
const READ_TICK: Duration = Duration::from_millis(1);

/// The application of a host: opens and accepts connections, and performs one [`Workload`] on each.
pub struct Traffic {
    workload: Workload,
    seed: u64,
    /// Connections to open, latest first.
    calls: Vec<(Instant, SocketAddr)>,
    /// When slow readers read next.
    next_read: Option<Instant>,
    flows: Vec<Flow>,
    /// The flow of each slot in the endpoint's table.
    by_slot: Vec<Option<usize>>,
    log: Vec<(Instant, Event)>,
    buffer: Vec<u8>,
}

impl Traffic {
    /// Performs `workload` on every connection. `seed` determines the data.
    pub fn new(workload: Workload, seed: u64) -> Self {
        Self {
            workload,
            seed,
            calls: Vec::new(),
            next_read: None,
            flows: Vec::new(),
            by_slot: Vec::new(),
            log: Vec::new(),
            buffer: vec![0; flow::CHUNK],
        }
    }

    /// Connects to `peer` at `at`.
    #[must_use]
    pub fn calling(mut self, at: Instant, peer: SocketAddr) -> Self {
        self.calls.push((at, peer));
        self.calls.sort_by_key(|&(at, _)| core::cmp::Reverse(at));
        self
    }

    /// The connections, oldest first.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// All events of the transport, in order.
    pub fn log(&self) -> &[(Instant, Event)] {
        &self.log
    }

    /// Whether all connections were opened, and each is over or idle for good.
    pub fn is_done(&self) -> bool {
        self.calls.is_empty() && !self.flows.is_empty() && self.flows.iter().all(Flow::is_done)
    }

    /// Adopts a connection that was opened without this application, such as a rendezvous.
    pub fn adopt(&mut self, id: ConnectionId) {
        self.add_flow(id);
    }

    fn add_flow(&mut self, id: ConnectionId) -> usize {
        let index = self.flows.len();
        // Streams differ by connection and by host, so that misplaced data is detected.
        let content = Content::new(self.seed.rotate_left(17).wrapping_add(index as u64 + 1));
        self.flows.push(Flow::new(id, content, self.workload));
        if self.by_slot.len() <= id.slot() {
            self.by_slot.resize(id.slot() + 1, None);
        }
        self.by_slot[id.slot()] = Some(index);
        index
    }

    fn flow_of(&mut self, id: ConnectionId) -> Option<usize> {
        let index = self.by_slot.get(id.slot()).copied().flatten()?;
        (self.flows[index].id() == id).then_some(index)
    }

    fn open_due<T: Streams>(&mut self, now: Instant, transport: &mut T) {
        while let Some(&(at, peer)) = self.calls.last() {
            if at > now {
                return;
            }
            self.calls.pop();
            let id = transport.connect(now, peer).expect("the scenario connects only where the transport allows it");
            self.add_flow(id);
        }
    }

    fn begin<T: Streams>(&mut self, now: Instant, transport: &mut T, index: usize) {
        self.flows[index].connected_at = Some(now);
        if self.workload.read_rate.is_some() && self.next_read.is_none() {
            self.next_read = Some(now + READ_TICK);
        }
        self.work(now, transport, index);
    }

    /// Reads and writes as much as possible, and finishes when all is done.
    fn work<T: Streams>(&mut self, now: Instant, transport: &mut T, index: usize) {
        let flow = &mut self.flows[index];
        if self.workload.read_rate.is_none() {
            flow.read(now, transport, &mut self.buffer, u64::MAX);
        }
        flow.write(now, transport, &mut self.buffer);
        flow.finish_if_done(now, transport);
    }

    fn read_slowly<T: Streams>(&mut self, now: Instant, transport: &mut T) {
        let Some(rate) = self.workload.read_rate else { return };
        for flow in self.flows.iter_mut().filter(|flow| flow.connected_at.is_some()) {
            flow.read(now, transport, &mut self.buffer, rate.bytes_in(READ_TICK));
            flow.finish_if_done(now, transport);
        }
        let reading = self.flows.iter().any(Flow::may_read);
        self.next_read = reading.then_some(now + READ_TICK);
    }

    fn end<T: Streams>(&mut self, now: Instant, transport: &mut T, index: usize, reason: ConnectionLost) {
        let flow = &mut self.flows[index];
        flow.closed = Some((now, reason));
        if self.workload.read_rate.is_none() || flow.connected_at.is_none() {
            flow.read(now, transport, &mut self.buffer, u64::MAX);
        }
    }
}

impl<T: Streams> Application<T> for Traffic {
    fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.calls.last().map(|&(at, _)| at), self.next_read)
    }

    fn handle_timeout(&mut self, now: Instant, transport: &mut T) {
        self.open_due(now, transport);
        if self.next_read.is_some_and(|at| at <= now) {
            self.read_slowly(now, transport);
        }
    }

    fn handle_event(&mut self, now: Instant, transport: &mut T, event: Event) {
        self.log.push((now, event));
        let id = event.connection();
        if let Event::Accepted(_) = event {
            let index = self.add_flow(id);
            return self.begin(now, transport, index);
        }
        let Some(index) = self.flow_of(id) else { return };
        match event {
            Event::Connected(_) => self.begin(now, transport, index),
            Event::Readable(_) | Event::Writable(_) => self.work(now, transport, index),
            Event::SendingFinished(_) => self.flows[index].sending_finished_at = Some(now),
            Event::Finished(_) => self.flows[index].finished_at = Some(now),
            Event::Closed(_, reason) => self.end(now, transport, index, reason),
            _ => {}
        }
    }

    fn list_connections(&self, out: &mut Vec<ConnectionId>) {
        out.extend(self.flows.iter().map(Flow::id));
    }
}
