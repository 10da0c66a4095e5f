//! A port of two addresses: its datagrams leave from the one that the peer asked.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;

use farhaul_proto::secure::Null;
use farhaul_proto::{
    AddressPair, Batch, Config, ConnectOptions, Endpoint, Entropy, Event, Mode, Read, Streams, Transport, secure, udt,
};
use farhaul_units::{Duration, Instant};

const DELAY: Duration = Duration::from_millis(5);
/// Longest virtual time of a scene.
const LIMIT: Duration = Duration::from_secs(20);
const CLIENT: SocketAddr = SocketAddr::new(host(1), 4_000);
const PORT: u16 = 9_000;
/// The addresses of the server: the one that the client calls, and that of its routes.
const ASKED: IpAddr = host(2);
const OTHER: IpAddr = host(3);

const fn host(last: u8) -> IpAddr {
    IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, last))
}

fn endpoint(is_secure: bool, seed: u8) -> Endpoint {
    let entropy = Entropy { cookie_key: [seed; 16], seed: seed.into() };
    match is_secure {
        true => secure::endpoint(Config::default(), entropy, Box::new(Null::new(seed.into()))),
        false => udt::endpoint(Config::default(), entropy),
    }
}

/// A client and a server with a perfect path.
struct World {
    ends: [Endpoint; 2],
    now: Instant,
    /// Where the client is.
    client: SocketAddr,
    /// Where its datagrams to the first address arrive. A translator on the path chooses.
    arrives_at: IpAddr,
    wire: VecDeque<(Instant, usize, AddressPair, Vec<u8>)>,
    events: Vec<(usize, Event)>,
    /// Source addresses of the server since the last look.
    sources: Vec<Option<IpAddr>>,
}

impl World {
    fn new(is_secure: bool) -> Self {
        let ends = [endpoint(is_secure, 1), endpoint(is_secure, 2)];
        let (wire, events, sources) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { ends, now: Instant::from_nanos(1), client: CLIENT, arrives_at: ASKED, wire, events, sources }
    }

    /// Sends everything that is due.
    fn transmit(&mut self) {
        let mut batch = Batch::new();
        for from in [0, 1] {
            while let Some(train) = self.ends[from].poll_transmit(self.now, &mut batch) {
                let between = match from {
                    0 => {
                        assert_eq!(train.source, None, "the routes of a caller decide");
                        AddressPair { peer: self.client, local: Some(self.arrives_at) }
                    }
                    _ => {
                        self.sources.push(train.source);
                        // Without a source, the system would take the other address.
                        let source = train.source.unwrap_or(OTHER);
                        AddressPair { peer: SocketAddr::new(source, PORT), local: Some(CLIENT.ip()) }
                    }
                };
                let all = train.datagrams().map(|datagram| (self.now + DELAY, 1 - from, between, datagram.to_vec()));
                self.wire.extend(all);
            }
            while let Some(event) = self.ends[from].poll_event() {
                self.events.push((from, event));
            }
        }
    }

    /// Goes on until `is_done`, which sees each moment.
    fn run(&mut self, what: &str, mut is_done: impl FnMut(&mut Self) -> bool) {
        let end = self.now + LIMIT;
        loop {
            self.transmit();
            if is_done(self) {
                return;
            }
            self.transmit();
            let arrival = self.wire.front().map(|(at, ..)| *at);
            let due = self.ends.iter().filter_map(Endpoint::poll_timeout).chain(arrival).min();
            self.now = due.expect("something is due").max(self.now);
            assert!(self.now < end, "{what}: {:?}", self.events);
            while self.wire.front().is_some_and(|(at, ..)| *at <= self.now) {
                let (_, to, between, mut bytes) = self.wire.pop_front().unwrap();
                let stride = bytes.len();
                self.ends[to].handle_datagrams(self.now, self.now, between, &mut bytes, stride);
            }
            self.ends.iter_mut().for_each(|end| end.handle_timeout(self.now));
        }
    }

    fn connect(&mut self) -> [farhaul_proto::ConnectionId; 2] {
        self.ends[1].listen(Mode::Stream).unwrap();
        self.ends[0].connect(self.now, SocketAddr::new(ASKED, PORT)).unwrap();
        self.run("a connection", |world| world.events.len() >= 2);
        let mut ids = [self.events[0].1.connection(); 2];
        for (end, event) in &self.events {
            assert!(matches!(event, Event::Accepted(_) | Event::Connected(_)), "{event:?}");
            ids[*end] = event.connection();
        }
        ids
    }

    /// The server sends bytes, and the client reads all of them.
    fn send(&mut self, [client, server]: [farhaul_proto::ConnectionId; 2], bytes: usize) {
        let mut left = [bytes; 2];
        self.run("a transfer", |world| {
            left[1] -= world.ends[1].write(world.now, server, &vec![7; left[1]]).unwrap();
            let mut out = vec![0; bytes];
            while let Read::Data(length @ 1..) = world.ends[0].read(world.now, client, &mut out).unwrap() {
                left[0] -= length;
            }
            left == [0; 2]
        });
    }
}

#[test]
fn everything_from_the_answer_to_the_first_packet_to_the_close_leaves_from_the_address_that_was_asked() {
    for is_secure in [false, true] {
        let mut world = World::new(is_secure);
        let ids = world.connect();
        world.send(ids, 300_000);
        world.ends[1].finish(world.now, ids[1]);
        world.run("the end", |world| {
            let is_over = |(_, event): &&(usize, Event)| matches!(event, Event::Finished(_) | Event::Closed(..));
            world.events.iter().filter(is_over).count() >= 2
        });
        assert!(world.sources.iter().all(|source| *source == Some(ASKED)), "{is_secure}: {:?}", world.sources);
    }
}

#[test]
fn a_request_for_a_proof_and_a_refusal_leave_from_the_address_that_was_asked() {
    let mut world = World::new(true);
    world.ends[1].listen(Mode::Stream).unwrap();
    let server = SocketAddr::new(ASKED, PORT);
    let mut batch = Batch::new();
    // Callers that never go on, and at last one that must prove its address.
    for caller in 0..400_u16 {
        world.ends[0].connect(world.now, server).unwrap();
        let mut first = Vec::new();
        while let Some(train) = world.ends[0].poll_transmit(world.now, &mut batch) {
            first.extend(train.datagrams().map(<[u8]>::to_vec));
        }
        let [high, low] = caller.to_be_bytes();
        let peer = SocketAddr::from(([11, high, low, 1], 4_000));
        for mut datagram in first {
            let stride = datagram.len();
            let between = AddressPair { peer, local: Some(if caller % 2 == 0 { ASKED } else { OTHER }) };
            world.ends[1].handle_datagrams(world.now, world.now, between, &mut datagram, stride);
        }
    }
    let mut answers = 0;
    while let Some(train) = world.ends[1].poll_transmit(world.now, &mut batch) {
        let SocketAddr::V4(to) = train.to else { panic!("{train:?}") };
        let expected = if to.ip().octets()[2] % 2 == 0 { ASKED } else { OTHER };
        assert_eq!(train.source, Some(expected), "{to}");
        answers += 1;
    }
    assert!(answers >= 400, "{answers}");
}

#[test]
fn what_comes_to_another_address_of_a_host_arrives_and_moves_nothing() {
    for is_secure in [false, true] {
        let mut world = World::new(is_secure);
        let ids = world.connect();
        world.send(ids, 100_000);
        // Anybody can send copies there, and a path may lead there.
        for arrives_at in [OTHER, ASKED, OTHER] {
            world.arrives_at = arrives_at;
            world.ends[0].write(world.now, ids[0], &[7; 1_000]).unwrap();
            world.run("data", |world| {
                let mut out = [0; 1_000];
                world.ends[1].read(world.now, ids[1], &mut out).unwrap() != Read::Pending
            });
        }
        world.arrives_at = ASKED;
        world.send(ids, 300_000);
        assert!(world.sources.iter().all(|source| *source == Some(ASKED)), "{is_secure}: {:?}", world.sources);
    }
}

#[test]
fn a_peer_that_moves_hears_the_address_that_it_asked_from_the_question_on() {
    let mut world = World::new(true);
    let ids = world.connect();
    world.send(ids, 100_000);
    world.client = SocketAddr::new(host(9), 4_009);
    world.sources.clear();
    world.run("a move", |world| {
        let _ = world.ends[0].write(world.now, ids[0], b"x").unwrap();
        world.ends[1].peer(ids[1]) == Some(world.client)
    });
    world.send(ids, 300_000);
    assert!(world.sources.iter().all(|source| *source == Some(ASKED)), "{:?}", world.sources);
}

#[test]
fn both_sides_of_a_rendezvous_answer_from_the_address_that_the_other_one_calls() {
    for is_secure in [false, true] {
        let mut world = World::new(is_secure);
        let options = ConnectOptions { rendezvous: true, ..ConnectOptions::default() };
        let id = world.ends[1].connect_with(world.now, CLIENT, options).unwrap();
        let mut batch = Batch::new();
        let first = world.ends[1].poll_transmit(world.now, &mut batch).unwrap();
        assert_eq!(first.source, None, "nobody has called yet");
        let call = |to| {
            let mut end = endpoint(is_secure, 1);
            let between = AddressPair { peer: CLIENT, local: Some(to) };
            end.connect_with(Instant::from_nanos(1), SocketAddr::new(to, PORT), options).unwrap();
            let mut batch = Batch::new();
            let train = end.poll_transmit(Instant::from_nanos(1), &mut batch).unwrap();
            (between, train.bytes.to_vec(), train.segment_size)
        };
        let (between, mut bytes, stride) = call(OTHER);
        world.ends[1].handle_datagrams(world.now, world.now, between, &mut bytes, stride);
        world.now += Duration::from_secs(1);
        world.ends[1].handle_timeout(world.now);
        let answer = world.ends[1].poll_transmit(world.now, &mut batch).expect("an answer");
        assert_eq!((answer.to, answer.source), (CLIENT, Some(OTHER)), "secure: {is_secure}");
        world.ends[1].abort(world.now, id);
    }
}
