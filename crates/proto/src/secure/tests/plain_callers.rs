//! A port for both kinds of clients, with several clients around it on the simplest network.

use core::net::SocketAddr;
use std::collections::VecDeque;

use farhaul_units::{Duration, Instant, Rate, Rng};
use farhaul_wire::secure::{Epoch, HEADER_LEN, Header, destination as secure_name, is_protected};
use farhaul_wire::udt4::destination as plain_name;
use farhaul_wire::udt4::{Control, Handshake, Largest, Request, SocketId, SocketType, Timestamp};

use crate::error::ConnectionLost;
use crate::secure::{Null, endpoint, endpoint_with_plain_callers};
use crate::{Batch, Config, ConnectionId, Endpoint, Entropy, Event, Mode, Read, Streams, Transport, udt};

const DELAY: Duration = Duration::from_millis(10);
const SERVER: &str = "10.0.0.1:9000";
const SECURE: &str = "192.0.2.5:4000";
const PLAIN: &str = "10.7.0.2:4000";
const OUTSIDE: &str = "11.0.0.2:4000";

type Fate = Box<dyn FnMut(SocketAddr, &mut Vec<u8>) -> u32>;

/// Hosts by their addresses, and a fate for each datagram: how often it arrives.
struct Net {
    hosts: Vec<(SocketAddr, Endpoint, Vec<Event>)>,
    now: Instant,
    wire: VecDeque<(Instant, SocketAddr, SocketAddr, Vec<u8>)>,
    fate: Fate,
    /// Senders of all datagrams so far, whether each was protected, and its destination.
    sent: Vec<(SocketAddr, bool, SocketAddr)>,
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn entropy(seed: u8) -> Entropy {
    Entropy { cookie_key: [seed; 16], seed: seed.into() }
}

fn server() -> Endpoint {
    let plain = Config { max_rate: Some(Rate::from_megabits_per_second(100)), ..Config::default() };
    let networks = vec!["10.0.0.0/8".parse().unwrap()];
    let mut server =
        endpoint_with_plain_callers([Config::default(), plain], networks, entropy(1), Box::new(Null::new(1)));
    server.listen(Mode::Stream).unwrap();
    server
}

fn secure_client() -> Endpoint {
    endpoint(Config::default(), entropy(2), Box::new(Null::new(2)))
}

fn plain_client() -> Endpoint {
    udt::endpoint(Config::default(), entropy(3))
}

impl Net {
    fn of(hosts: Vec<(&str, Endpoint)>) -> Self {
        Self {
            hosts: hosts.into_iter().map(|(address, host)| (at(address), host, Vec::new())).collect(),
            now: Instant::from_nanos(1),
            wire: VecDeque::new(),
            fate: Box::new(|_, _| 1),
            sent: Vec::new(),
        }
    }

    /// The port, a secure client elsewhere, and a plain one at an admitted address.
    fn new() -> Self {
        Self::of(vec![(SERVER, server()), (SECURE, secure_client()), (PLAIN, plain_client())])
    }

    fn step(&mut self) -> bool {
        let mut batch = Batch::new();
        for (address, host, events) in &mut self.hosts {
            host.handle_timeout(self.now);
            while let Some(transmit) = host.poll_transmit(self.now, &mut batch) {
                for datagram in transmit.datagrams() {
                    let mut datagram = datagram.to_vec();
                    self.sent.push((*address, is_protected(&datagram), transmit.to));
                    for _ in 0..(self.fate)(*address, &mut datagram) {
                        self.wire.push_back((self.now + DELAY, *address, transmit.to, datagram.clone()));
                    }
                }
            }
            while let Some(event) = host.poll_event() {
                events.push(event);
            }
        }
        let timers = self.hosts.iter().filter_map(|(_, host, _)| host.poll_timeout());
        let Some(next) = timers.chain(self.wire.front().map(|(at, ..)| *at)).min() else { return false };
        self.now = self.now.max(next);
        while self.wire.front().is_some_and(|(at, ..)| *at <= self.now) {
            let (_, from, to, mut datagram) = self.wire.pop_front().unwrap();
            self.arrive(from, to, &mut datagram, usize::MAX);
        }
        true
    }

    fn arrive(&mut self, from: SocketAddr, to: SocketAddr, bytes: &mut [u8], stride: usize) {
        if let Some((_, host, _)) = self.hosts.iter_mut().find(|(address, ..)| *address == to) {
            host.handle_datagrams(self.now, self.now, from, bytes, stride);
        }
    }

    fn run_until(&mut self, seconds: u64, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.now + Duration::from_secs(seconds);
        while !done(self) {
            let goes_on = self.step() && self.now < end || done(self);
            let events: Vec<_> = self.hosts.iter().map(|(address, _, events)| (address, events)).collect();
            assert!(goes_on, "not done at {}: {events:?}", self.now);
        }
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end && self.step() {}
    }

    fn host(&mut self, index: usize) -> &mut Endpoint {
        &mut self.hosts[index].1
    }

    fn accepted(&self) -> Vec<ConnectionId> {
        let events = self.hosts[0].2.iter();
        events.filter_map(|event| if let Event::Accepted(id) = event { Some(*id) } else { None }).collect()
    }

    /// Connects the client `index`. Returns the ids at both sides.
    fn connect(&mut self, index: usize) -> (ConnectionId, ConnectionId) {
        let now = self.now;
        let here = self.host(index).connect(now, at(SERVER)).unwrap();
        let before = self.accepted().len();
        self.run_until(5, |net| net.accepted().len() > before && net.hosts[index].2.contains(&Event::Connected(here)));
        (here, self.accepted()[before])
    }

    fn transfer(&mut self, (from, sender): (usize, ConnectionId), (to, reader): (usize, ConnectionId), len: usize) {
        let data: Vec<u8> = (0..len).map(|i| (i * 7 + i / 251) as u8).collect();
        let (mut written, mut got, mut buffer) = (0, Vec::new(), vec![0; 100_000]);
        self.run_until(60, |net| {
            let now = net.now;
            written += net.host(from).write(now, sender, &data[written..]).unwrap();
            while let Ok(Read::Data(n)) = net.host(to).read(now, reader, &mut buffer) {
                got.extend_from_slice(&buffer[..n]);
            }
            got.len() == len
        });
        assert!(got == data);
    }
}

/// The first packet of a plain caller.
fn call() -> Vec<u8> {
    let mut bytes = Vec::new();
    let packet = Handshake {
        version: Handshake::VERSION,
        socket_type: SocketType::Stream,
        isn: farhaul_units::SeqNo::new(5),
        mss: 1_500,
        flow_window: 8_192,
        request: Request::Induction,
        socket_id: SocketId::new(77),
        cookie: 0,
        peer_ip: [127, 0, 0, 1].into(),
        largest: Largest::Unsaid,
        wants_receipts: false,
    };
    Control::Handshake(packet).encode(Timestamp::ZERO, SocketId::NONE, &mut bytes);
    bytes
}

#[test]
fn one_port_serves_secure_and_plain_clients_at_the_same_time() {
    let mut net = Net::new();
    let (secure, there) = net.connect(1);
    let (plain, here) = net.connect(2);
    assert_eq!([net.host(0).is_plain(there), net.host(0).is_plain(here)], [false, true]);
    assert!(net.host(0).protection(there).is_some() && net.host(0).protection(here).is_none());
    assert_eq!([net.host(0).peer(there), net.host(0).peer(here)], [Some(at(SECURE)), Some(at(PLAIN))]);
    net.transfer((1, secure), (0, there), 500_000);
    net.transfer((0, there), (1, secure), 500_000);
    net.transfer((2, plain), (0, here), 500_000);
    net.transfer((0, here), (2, plain), 500_000);
    for (from, sealed, to) in &net.sent {
        assert_eq!(*sealed, *from == at(SECURE) || *to == at(SECURE), "each client has its own kind");
    }
    assert_eq!(net.host(0).invalid_datagrams(), 0);
    assert_eq!(net.host(0).connections(), 2);
}

#[test]
fn connections_that_the_port_opens_are_secure() {
    let mut net = Net::of(vec![(SERVER, server()), (PLAIN, plain_client())]);
    net.host(1).listen(Mode::Stream).unwrap();
    let now = net.now;
    let called = net.host(0).connect(now, at(PLAIN)).unwrap();
    assert!(!net.host(0).is_plain(called));
    net.run_until(20, |net| net.hosts[0].2.iter().any(|event| matches!(event, Event::Closed(..))));
    assert!(net.sent.iter().all(|(from, sealed, _)| *from != at(SERVER) || *sealed));
}

#[test]
fn a_plain_client_outside_of_the_networks_gets_no_answer_and_takes_no_place() {
    let mut net = Net::of(vec![(SERVER, server()), (OUTSIDE, plain_client())]);
    let now = net.now;
    let called = net.host(1).connect(now, at(SERVER)).unwrap();
    let gone = Event::Closed(called, ConnectionLost::ConnectTimeout(Duration::from_secs(5)));
    net.run_until(10, |net| net.hosts[1].2.contains(&gone));
    assert!(net.sent.iter().all(|(from, ..)| *from == at(OUTSIDE)), "no answer");
    assert_eq!(net.host(0).connections(), 0);
    assert!(net.host(0).invalid_datagrams() > 0, "they are counted");
}

/// The first packet of UDT4 has an answer without state, so a forged sender costs nothing.
#[test]
fn a6_forged_senders_of_an_admitted_network_leave_no_state() {
    let mut net = Net::of(vec![(SERVER, server())]);
    for port in 1..2_000 {
        net.arrive(SocketAddr::from(([10, 1, 2, 3], port)), at(SERVER), &mut call(), usize::MAX);
        net.step();
    }
    assert_eq!(net.host(0).connections(), 0);
}

/// Plain packets for the name of a secure connection, and protected packets for that of a plain one, from the right addresses.
#[test]
fn a9_neither_kind_of_client_changes_a_connection_of_the_other_kind() {
    let mut net = Net::new();
    let (secure, there) = net.connect(1);
    let (plain, here) = net.connect(2);
    let names: Vec<u32> = {
        net.transfer((1, secure), (0, there), 1_000);
        net.transfer((2, plain), (0, here), 1_000);
        let seen = std::rc::Rc::new(std::cell::RefCell::new([0; 2]));
        let tap = std::rc::Rc::clone(&seen);
        net.fate = Box::new(move |from, datagram| {
            if from == at(SECURE) {
                tap.borrow_mut()[0] = secure_name(datagram).unwrap().value();
            } else if from == at(PLAIN) {
                tap.borrow_mut()[1] = plain_name(datagram).unwrap().value();
            }
            1
        });
        net.transfer((1, secure), (0, there), 1_000);
        net.transfer((2, plain), (0, here), 1_000);
        seen.borrow().to_vec()
    };
    let before = net.host(0).invalid_datagrams();
    let mut rng = Rng::new(3);
    for round in 0..2_000_u32 {
        // A shutdown, an acknowledgement, data: plain and in a protected packet without a key.
        let kind = [0x8005_u16, 0x8002, 0, 0x8000][rng.below(4) as usize];
        for (sealed, from, name) in [(false, SECURE, names[0]), (true, PLAIN, names[1])] {
            let mut packet = vec![0; 25 + rng.below(60) as usize];
            if sealed {
                let header = Header { epoch: Epoch::FIRST_APPLICATION, number: round.into(), to: SocketId::new(name) };
                packet[..HEADER_LEN].copy_from_slice(&header.bytes());
            } else {
                packet[..2].copy_from_slice(&kind.to_be_bytes());
                packet[8..12].copy_from_slice(&round.to_be_bytes());
                packet[12..16].copy_from_slice(&name.to_be_bytes());
            }
            assert_eq!(is_protected(&packet), sealed);
            net.arrive(at(from), at(SERVER), &mut packet, usize::MAX);
        }
    }
    assert_eq!(net.host(0).invalid_datagrams() - before, 4_000);
    net.transfer((1, secure), (0, there), 100_000);
    net.transfer((2, plain), (0, here), 100_000);
    assert_eq!([net.host(0).is_plain(there), net.host(0).is_plain(here)], [false, true]);
    assert!(!net.hosts[0].2.iter().any(|event| matches!(event, Event::Closed(..))));
}

/// An attacker on the path drops every protected packet of a client, and calls plain from its address, which is admitted.
#[test]
fn a9_a_secure_client_at_an_admitted_address_is_never_made_plain() {
    let mut net = Net::of(vec![(SERVER, server()), (PLAIN, secure_client())]);
    net.fate = Box::new(|_, datagram| u32::from(!is_protected(datagram)));
    let now = net.now;
    let called = net.host(1).connect(now, at(SERVER)).unwrap();
    let lost = |events: &[Event]| events.iter().any(|event| matches!(event, Event::Closed(id, _) if *id == called));
    net.run_until(20, |net| {
        let forged = call();
        net.arrive(at(PLAIN), at(SERVER), &mut forged.clone(), usize::MAX);
        lost(&net.hosts[1].2)
    });
    assert!(!net.hosts[1].2.contains(&Event::Connected(called)));
}

/// The kernel joins datagrams of one sender, whatever they are.
#[test]
fn datagrams_of_both_kinds_in_one_call_go_to_their_protocols() {
    let mut net = Net::new();
    let len = call().len();
    let mut protected = vec![0; len];
    let header = Header { epoch: Epoch::FIRST_APPLICATION, number: 1, to: SocketId::new(5) };
    protected[..HEADER_LEN].copy_from_slice(&header.bytes());
    let mut joined = [&protected[..], &call(), &protected, &call(), &call()].concat();
    joined.truncate(joined.len() - 3);
    net.arrive(at(PLAIN), at(SERVER), &mut joined, len);
    let mut batch = Batch::new();
    let now = net.now;
    let mut answers = 0;
    while let Some(transmit) = net.host(0).poll_transmit(now, &mut batch) {
        answers += transmit.datagrams().count();
    }
    assert_eq!(
        (answers, net.host(0).invalid_datagrams()),
        (2, 3),
        "two protected packets and the short one are invalid"
    );
    let mut joined = [&protected[..], &call(), &call()].concat();
    net.arrive(at(OUTSIDE), at(SERVER), &mut joined, len);
    assert!(net.host(0).poll_transmit(now, &mut batch).is_none());
    assert_eq!(net.host(0).invalid_datagrams(), 6);
}

#[test]
fn networks_that_are_admitted_no_more_lose_their_connections_at_once() {
    let mut net = Net::new();
    let (secure, there) = net.connect(1);
    let (plain, here) = net.connect(2);
    net.transfer((2, plain), (0, here), 1_000);
    let now = net.now;
    assert!(net.host(0).admit_plain(now, &["10.8.0.0/16".parse().unwrap()]));
    net.run_until(5, |net| net.hosts[0].2.contains(&Event::Closed(here, ConnectionLost::ClosedLocally)));
    net.run_until(60, |net| net.hosts[2].2.iter().any(|event| matches!(event, Event::Closed(id, _) if *id == plain)));
    net.transfer((1, secure), (0, there), 100_000);
    // The close packet is repeated for a while.
    net.run_for(Duration::from_secs(40));
    let now = net.now;
    let answered = net.sent.iter().filter(|(from, _, to)| *from == at(SERVER) && *to == at(PLAIN)).count();
    net.host(2).connect(now, at(SERVER)).unwrap();
    net.run_for(Duration::from_secs(6));
    let later = net.sent.iter().filter(|(from, _, to)| *from == at(SERVER) && *to == at(PLAIN)).count();
    assert_eq!(later, answered, "no answer to a new call");
    assert!(!secure_client().admit_plain(now, &[]) && !plain_client().admit_plain(now, &[]));
}

#[test]
fn plain_connections_keep_to_their_cap() {
    let mut net = Net::new();
    let (plain, here) = net.connect(2);
    let began = net.now;
    net.transfer((0, here), (2, plain), 5_000_000);
    let seconds = (net.now - began).as_secs_f64();
    assert!(seconds > 0.35, "5 MB at 100 Mbit/s take 0.4 s: {seconds}");
}

/// Each of two kinds that always have something to send gets its share.
#[test]
fn neither_kind_waits_for_the_other_to_fall_silent() {
    let mut net = Net::new();
    let (_, there) = net.connect(1);
    let (_, here) = net.connect(2);
    let now = net.now;
    for id in [there, here] {
        net.host(0).write(now, id, &vec![0; 1_000_000]).unwrap();
    }
    let mut batch = Batch::new();
    let mut kinds = Vec::new();
    while let Some(transmit) = net.host(0).poll_transmit(now, &mut batch) {
        kinds.push(is_protected(transmit.bytes));
    }
    assert!(kinds[..2].contains(&true) && kinds[..2].contains(&false), "{kinds:?}");
}
