//! The smallest protocol in the shell: both sides know a connection's tag from elsewhere, and no datagram is ever lost.

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};

use farhaul_units::{Duration, Instant};

use super::Demultiplexer;
use super::closing::{CloseKind, Closing};
use super::connection::{Connection, Name};
use super::protocol::{Effect, Established, Opening, Output, Setup, Step};
use super::{Connections, Endpoint};
use crate::{
    AddressPair, Batch, Config, ConnectError, ConnectOptions, ConnectionId, ConnectionLost, Event, Mode, Read, Stats,
    StreamError, Streams, Transport,
};

const RTT: Duration = Duration::from_millis(20);
const TIMEOUT: Duration = Duration::from_secs(1);

/// A datagram is the tag, a letter, and the payload of `D`.
fn datagram(tag: u64, letter: u8, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&tag.to_be_bytes());
    out.push(letter);
    out.extend_from_slice(payload);
}

#[derive(Default)]
struct Tags(BTreeMap<u64, u32>);

struct Hello {
    tag: u64,
    said: bool,
    give_up: Instant,
}

#[derive(Default)]
struct Pipe {
    tag: u64,
    unsent: Vec<u8>,
    in_flight: bool,
    arrived: VecDeque<u8>,
    owes_ack: bool,
    closing: Closing,
}

impl Demultiplexer for Tags {
    fn key(&self, _from: SocketAddr, datagram: &[u8]) -> Option<u64> {
        datagram.first_chunk().map(|tag| u64::from_be_bytes(*tag))
    }

    fn find(&self, _from: AddressPair, tag: u64) -> Option<u32> {
        self.0.get(&tag).copied()
    }

    fn on_unaddressed(&mut self, connections: &mut Connections<'_>, _: Instant, _: AddressPair, _: &mut [u8]) {
        connections.count_invalid();
    }

    fn connect(
        &mut self,
        connections: &mut Connections<'_>,
        now: Instant,
        peer: SocketAddr,
        _: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError> {
        connections.check_room()?;
        let tag = u64::from(peer.port().min(PORTS[0]));
        let hello = Hello { tag, said: false, give_up: now + TIMEOUT };
        let id = connections.open(now, Name { key: tag, peer, mode: Mode::Stream }, hello).id();
        self.0.insert(tag, id.slot);
        Ok(id)
    }

    fn listen(&mut self, _: Option<Mode>) -> Result<(), ConnectError> {
        Ok(())
    }

    fn on_changed(&mut self, _: &Connection) {}

    fn on_forgotten(&mut self, connection: &Connection) {
        self.0.remove(&connection.key());
    }
}

impl Opening for Hello {
    fn on_datagram(&mut self, _: &mut [u8], _: Setup<'_>) -> Step<Box<dyn Established>> {
        // The peer may not have heard this side yet.
        Step::Done(Box::new(Pipe { tag: self.tag, owes_ack: true, ..Pipe::default() }))
    }

    fn check(&self, now: Instant) -> Option<ConnectionLost> {
        (now >= self.give_up).then_some(ConnectionLost::ConnectTimeout(TIMEOUT))
    }

    fn on_suspended(&mut self, gap: Duration) {
        self.give_up += gap;
    }

    fn poll(&mut self, _: Instant, out: &mut Vec<u8>) -> bool {
        let due = !std::mem::replace(&mut self.said, true);
        if due {
            datagram(self.tag, b'H', &[], out);
        }
        due
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.give_up)
    }
}

impl Established for Pipe {
    fn begin_batch(&mut self, _: Instant) {}

    fn on_datagram(&mut self, datagram: &mut [u8], _: Setup<'_>) -> Effect {
        match datagram.get(8) {
            Some(b'H') => {}
            Some(b'A') => self.in_flight = false,
            Some(b'D') => {
                self.arrived.extend(&datagram[9..]);
                self.owes_ack = true;
            }
            Some(b'C') => return Effect::PeerClosed { complete: true, delivered: self.is_flushed() },
            _ => return Effect::Invalid,
        }
        Effect::GoOn
    }

    fn finish_batch(&mut self, _: Setup<'_>) -> Effect {
        Effect::GoOn
    }

    fn handle_timeout(&mut self, _: Instant) -> Effect {
        Effect::GoOn
    }

    fn on_suspended(&mut self, _: Instant, _: Duration) {}

    fn poll(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<Output> {
        if std::mem::take(&mut self.owes_ack) {
            datagram(self.tag, b'A', &[], scratch);
        } else if !self.unsent.is_empty() && !self.closing.has_begun() {
            datagram(self.tag, b'D', &std::mem::take(&mut self.unsent), scratch);
            self.in_flight = true;
        } else if self.closing.poll(now, RTT) == Some(CloseKind::Closed) {
            datagram(self.tag, b'C', &[], scratch);
        } else {
            return None;
        }
        Some(Output::Scratch)
    }

    fn emit<'a>(&'a mut self, _: Instant, _: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        None
    }

    fn deadline(&self, _: Instant) -> Option<Instant> {
        self.closing.deadline()
    }

    fn write(&mut self, _: Instant, data: &[u8]) -> usize {
        let taken = data.len().min(self.room() as usize);
        self.unsent.extend_from_slice(&data[..taken]);
        taken
    }

    fn room(&self) -> u64 {
        if self.is_flushed() { 1_000 } else { 0 }
    }

    fn has_room_again(&mut self) -> bool {
        self.is_flushed()
    }

    fn read(&mut self, _: Instant, out: &mut [u8]) -> usize {
        let len = out.len().min(self.arrived.len());
        for (to, byte) in out.iter_mut().zip(self.arrived.drain(..len)) {
            *to = byte;
        }
        len
    }

    fn readable(&self) -> u64 {
        self.arrived.len() as u64
    }

    fn begin_linger(&mut self, _: Instant, _: Duration) {}

    fn begin_close(&mut self, now: Instant, kind: CloseKind) {
        self.closing.begin(now, kind);
    }

    fn is_close_sent(&self) -> bool {
        self.closing.is_sent()
    }

    fn close(&mut self) {}

    fn is_flushed(&self) -> bool {
        self.unsent.is_empty() && !self.in_flight
    }

    fn is_complete(&self) -> bool {
        true
    }

    fn was_heard(&self) -> bool {
        true
    }

    fn fill_stats(&self, _: Instant, _: &mut Stats) {}
}

/// The tag of the connection is the first port.
const PORTS: [u16; 2] = [7, 8];

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], PORTS[end]))
}

/// Two endpoints with a connection each.
struct Pair {
    ends: [Endpoint; 2],
    ids: [ConnectionId; 2],
    events: [Vec<Event>; 2],
    now: Instant,
}

impl Pair {
    fn new() -> Self {
        let now = Instant::from_nanos(1);
        let mut ends = [1, 2].map(|seed| Endpoint::new(Config::default(), seed, Tags::default()));
        let ids = [0, 1].map(|end| ends[end].connect(now, address(1 - end)).expect("the endpoint has room"));
        Self { ends, ids, events: [Vec::new(), Vec::new()], now }
    }

    /// Carries datagrams both ways until there are none.
    fn run(&mut self) {
        let mut batch = Batch::new();
        while (0..2).map(|end| self.carry(end, &mut batch)).fold(false, |any, moved| any | moved) {}
        for (end, events) in self.ends.iter_mut().zip(&mut self.events) {
            events.extend(std::iter::from_fn(|| end.poll_event()));
        }
    }

    fn carry(&mut self, from: usize, batch: &mut Batch) -> bool {
        let Some(transmit) = self.ends[from].poll_transmit(self.now, batch) else { return false };
        let (stride, mut bytes) = (transmit.segment_size, transmit.bytes.to_vec());
        self.ends[1 - from].handle_datagrams(self.now, self.now, address(from), &mut bytes, stride);
        true
    }

    fn advance(&mut self, time: Duration) {
        self.now += time;
        for end in &mut self.ends {
            end.handle_timeout(self.now);
        }
        self.run();
    }
}

#[test]
fn a_tagged_connection_opens_carries_bytes_and_ends() {
    let mut pair = Pair::new();
    pair.run();
    let [a, b] = pair.ids;
    assert_eq!(pair.events, [vec![Event::Connected(a)], vec![Event::Connected(b)]]);

    assert_eq!(pair.ends[0].write(pair.now, a, &[7; 1_500]), Ok(1_000));
    pair.ends[0].finish(pair.now, a);
    assert_eq!(pair.ends[1].read(pair.now, b, &mut [0; 9]), Ok(Read::Pending));
    pair.run();
    assert!(pair.ends[0].is_closing(a));
    assert_eq!(pair.events[0][1..], [Event::Writable(a), Event::Finished(a), Event::Readable(a)]);
    assert_eq!(pair.events[1][1..], [Event::Readable(b), Event::Closed(b, ConnectionLost::ClosedByPeer)]);

    let mut out = [0; 2_000];
    assert_eq!(pair.ends[1].read(pair.now, b, &mut out), Ok(Read::Data(1_000)));
    assert_eq!(pair.ends[1].read(pair.now, b, &mut out), Ok(Read::End));
    assert_eq!(pair.ends[0].write(pair.now, a, b"x"), Err(StreamError::Lost(ConnectionLost::ClosedLocally)));
    for end in 0..2 {
        pair.ends[end].release(pair.now, pair.ids[end]);
    }
    for _ in 0..3 {
        pair.advance(RTT);
    }
    let tags = |end: &mut Endpoint| end.first_demultiplexer::<Tags>().map(|tags| tags.0.len());
    assert_eq!(pair.ends.map(|mut end| (end.connections(), tags(&mut end))), [(0, Some(0)); 2]);
}

#[test]
fn a_datagram_of_another_tag_or_address_changes_nothing() {
    let mut pair = Pair::new();
    pair.run();
    let wrong = |end: &mut Endpoint, tag, from| {
        let mut bytes = Vec::new();
        datagram(tag, b'C', &[], &mut bytes);
        end.handle_datagrams(pair.now, pair.now, from, &mut bytes, 9);
    };
    let tag = u64::from(PORTS[0]);
    wrong(&mut pair.ends[0], tag + 1, address(1));
    wrong(&mut pair.ends[0], tag, address(0));
    pair.ends[0].handle_datagrams(pair.now, pair.now, address(1), &mut [1, 2, 3], 3);
    pair.run();
    assert_eq!(pair.ends[0].invalid_datagrams(), 3);
    assert_eq!(pair.events[0], [Event::Connected(pair.ids[0])]);
}

#[test]
fn an_opening_without_an_answer_ends_after_its_time() {
    let mut pair = Pair::new();
    pair.ends[1].close(pair.now, pair.ids[1]);
    pair.run();
    assert_eq!(pair.ends[0].poll_timeout(), Some(pair.now + TIMEOUT));
    pair.advance(TIMEOUT);
    let timeout = ConnectionLost::ConnectTimeout(TIMEOUT);
    assert_eq!(pair.events[0][0], Event::Closed(pair.ids[0], timeout));
}
