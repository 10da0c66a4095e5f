//! Two secure endpoints on the simplest network: a fixed delay, and a fate for each datagram.

mod attack;
mod refusals;

use core::net::SocketAddr;
use std::collections::VecDeque;

use farhaul_units::{Duration, Instant, Rng};
use farhaul_wire::secure::{CloseCode, Epoch, Greeting, HEADER_LEN, Header, MIN_INITIAL, OVERHEAD, VERSION};

use super::*;
use crate::error::{ConnectionLost, SecurityFault};
use crate::{AnyEndpoint, Batch, Config, ConnectionId, Entropy, Event, Mode, Read, Streams, Transport};

const DELAY: Duration = Duration::from_millis(10);

/// The network's treatment of a datagram of one end: how often it arrives, and changes to it.
type Fate = Box<dyn FnMut(usize, &mut Vec<u8>) -> u32>;

struct Pair {
    ends: [Endpoint; 2],
    now: Instant,
    wire: VecDeque<(Instant, usize, Vec<u8>)>,
    events: [Vec<Event>; 2],
    /// When the last event came.
    news: Instant,
    fate: Fate,
    sent: [Vec<usize>; 2],
}

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 5000 + end as u16))
}

fn end(seed: u8, provider: Null) -> Endpoint {
    Endpoint::new(Config::default(), Entropy { cookie_key: [seed; 16], seed: u64::from(seed) }, Box::new(provider))
}

impl Pair {
    fn new() -> Self {
        Self::of(Null::new(1), Null::new(2))
    }

    fn of(client: Null, server: Null) -> Self {
        let mut pair = Self {
            ends: [end(1, client), end(2, server)],
            now: Instant::from_nanos(1),
            wire: VecDeque::new(),
            events: [Vec::new(), Vec::new()],
            news: Instant::ZERO,
            fate: Box::new(|_, _| 1),
            sent: [Vec::new(), Vec::new()],
        };
        pair.ends[1].listen(Mode::Stream).unwrap();
        pair
    }

    /// Everything due now happens, then time advances. Returns false when nothing will ever happen again.
    fn step(&mut self) -> bool {
        let mut batch = Batch::new();
        for end in 0..2 {
            self.ends[end].handle_timeout(self.now);
            while let Some(transmit) = self.ends[end].poll_transmit(self.now, &mut batch) {
                for datagram in transmit.datagrams() {
                    self.sent[end].push(datagram.len());
                    let mut datagram = datagram.to_vec();
                    for _ in 0..(self.fate)(end, &mut datagram) {
                        self.wire.push_back((self.now + DELAY, 1 - end, datagram.clone()));
                    }
                }
            }
        }
        self.note_events();
        let next = [self.wire.front().map(|(at, ..)| *at), self.ends[0].poll_timeout(), self.ends[1].poll_timeout()];
        let Some(next) = next.into_iter().flatten().min() else { return false };
        self.now = self.now.max(next);
        while self.wire.front().is_some_and(|(at, ..)| *at <= self.now) {
            let (_, to, mut datagram) = self.wire.pop_front().unwrap();
            let len = datagram.len();
            self.ends[to].handle_datagrams(self.now, self.now, address(1 - to), &mut datagram, len);
        }
        true
    }

    fn note_events(&mut self) {
        for end in 0..2 {
            while let Some(event) = self.ends[end].poll_event() {
                self.events[end].push(event);
                self.news = self.now;
            }
        }
    }

    fn run_until(&mut self, seconds: u64, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.now + Duration::from_secs(seconds);
        while !done(self) {
            let goes_on = self.step() && self.now < end;
            assert!(goes_on || done(self), "not done at {}: {:?}", self.now, self.events);
        }
    }

    fn call(&mut self) -> ConnectionId {
        self.ends[0].connect(self.now, address(1)).unwrap()
    }

    fn connect(&mut self) -> [ConnectionId; 2] {
        let caller = self.call();
        self.run_until(5, |pair| pair.events[0].contains(&Event::Connected(caller)) && !pair.events[1].is_empty());
        [caller, self.events[1][0].connection()]
    }

    fn transfer(&mut self, [from, to]: [ConnectionId; 2], data: &[u8]) -> Vec<u8> {
        let (mut written, mut got, mut buffer) = (0, Vec::new(), vec![0; 100_000]);
        self.run_until(120, |pair| {
            written += pair.ends[0].write(pair.now, from, &data[written..]).unwrap();
            while let Ok(Read::Data(n)) = pair.ends[1].read(pair.now, to, &mut buffer) {
                got.extend_from_slice(&buffer[..n]);
            }
            got.len() == data.len()
        });
        got
    }

    /// The end of a call that fails.
    fn failure(&mut self, seconds: u64) -> ConnectionLost {
        self.call();
        let closed = |events: &[Event]| {
            events.iter().find_map(|event| if let Event::Closed(_, reason) = event { Some(*reason) } else { None })
        };
        self.run_until(seconds, |pair| closed(&pair.events[0]).is_some());
        closed(&self.events[0]).unwrap()
    }
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

#[test]
fn a_stream_arrives_and_ends_inside_envelopes() {
    let mut pair = Pair::new();
    pair.fate = Box::new(|_, datagram| {
        assert!(farhaul_wire::secure::is_envelope(datagram) && datagram.len() <= 1472);
        1
    });
    let ids = pair.connect();
    let data = content(3_000_000);
    assert!(pair.transfer(ids, &data) == data);
    assert!(pair.sent[0].contains(&1472), "full packets fill the path: {:?}", pair.sent[0].iter().max());
    let now = pair.now;
    pair.ends[0].finish(now, ids[0]);
    pair.run_until(5, |pair| pair.ends[1].read(pair.now, ids[1], &mut [0; 10]) == Ok(Read::End));
    assert_eq!([0, 1].map(|end| pair.ends[end].invalid_datagrams()), [0, 0]);
    let stats = pair.ends[0].stats(pair.now, ids[0]).unwrap();
    assert_eq!((stats.totals.packets_retransmitted, stats.totals.bytes_acked), (0, 3_000_000));
    assert_eq!(stats.payload_size as usize, 1472 - 16 - OVERHEAD);
}

#[test]
fn data_leaves_after_one_round_trip() {
    let mut pair = Pair::new();
    let caller = pair.call();
    let began = pair.now;
    pair.run_until(5, |pair| pair.events[0].contains(&Event::Connected(caller)));
    assert_eq!(pair.news - began, DELAY * 2);
    pair.run_until(5, |pair| pair.events[1].len() == 1);
    assert_eq!(pair.news - began, DELAY * 3, "the server knows its client");
}

#[test]
fn both_sides_forget_the_handshake() {
    let mut pair = Pair::new();
    let ids = pair.connect();
    let end = pair.now + Duration::from_secs(12);
    while pair.now < end && pair.step() {}
    let handshakes = pair.sent[0].iter().filter(|&&len| len > 200).count();
    assert_eq!(handshakes, 3, "two Initials and one Handshake: {:?}", pair.sent[0]);
    assert!(pair.ends[1].stats(pair.now, ids[1]).is_some());
}

#[test]
fn of_fifty_handshakes_over_thirty_percent_of_loss_and_damage_49_succeed() {
    let mut connected = 0;
    for seed in 0..50 {
        let mut pair = Pair::new();
        let mut rng = Rng::new(seed);
        pair.fate = Box::new(move |_, datagram| {
            let luck = rng.next_u64() % 100;
            if (15..30).contains(&luck) {
                let at = rng.next_u64() as usize % datagram.len();
                datagram[at] ^= 1 << (rng.next_u64() % 8);
            }
            u32::from(luck >= 15)
        });
        let caller = pair.call();
        let end = pair.now + Duration::from_secs(10);
        while pair.now < end && pair.step() {
            if pair.events[0].contains(&Event::Connected(caller)) && !pair.events[1].is_empty() {
                connected += 1;
                break;
            }
        }
    }
    assert!(connected >= 49, "{connected} of 50");
}

#[test]
fn a_stream_survives_loss_damage_and_repetition() {
    let mut pair = Pair::new();
    let ids = pair.connect();
    let mut rng = Rng::new(7);
    pair.fate = Box::new(move |_, datagram| {
        match rng.next_u64() % 100 {
            0..=2 => return 0,
            3..=5 => return 2,
            6..=8 => {
                let at = rng.next_u64() as usize % datagram.len();
                datagram[at] ^= 0x10;
            }
            _ => {}
        }
        1
    });
    let data = content(2_000_000);
    assert!(pair.transfer(ids, &data) == data);
}

#[test]
fn a_repeated_packet_never_reaches_the_protocol_inside() {
    let mut pair = Pair::new();
    let ids = pair.connect();
    pair.fate = Box::new(|_, _| 2);
    let data = content(500_000);
    assert!(pair.transfer(ids, &data) == data);
    let totals = pair.ends[1].stats(pair.now, ids[1]).unwrap().totals;
    assert_eq!(totals.packets_duplicate, 0);
}

#[test]
fn keys_change_before_they_wear_out_and_the_stream_goes_on() {
    let limited = |seed| Null::new(seed).with_confidentiality_limit(512);
    let mut pair = Pair::of(limited(1), limited(2));
    let ids = pair.connect();
    let data = content(3_000_000);
    let epochs = std::sync::Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let seen = std::sync::Arc::clone(&epochs);
    pair.fate = Box::new(move |_, datagram| {
        seen.lock().unwrap().insert(Header::decode(datagram).unwrap().epoch);
        1
    });
    assert!(pair.transfer(ids, &data) == data);
    assert!(epochs.lock().unwrap().len() >= 6, "{:?}", epochs.lock().unwrap());
    assert!(!pair.events[0].iter().any(|event| matches!(event, Event::Closed(..))));
}

/// The peer sees nothing of the new keys, so it cannot follow to them.
#[test]
fn a_side_whose_peer_does_not_follow_to_new_keys_stops_at_the_limit_and_then_ends() {
    let limited = |seed| Null::new(seed).with_confidentiality_limit(512);
    let mut pair = Pair::of(limited(1), limited(2));
    let [caller, _] = pair.connect();
    pair.fate = Box::new(|_, datagram| {
        u32::from(Header::decode(datagram).is_ok_and(|header| header.epoch == Epoch::FIRST_APPLICATION))
    });
    let data = content(100_000);
    let mut sealed = 0;
    let end = pair.now + Duration::from_secs(30);
    let lost = Event::Closed(caller, ConnectionLost::Insecure(SecurityFault::KeyLimit));
    while !pair.events[0].contains(&lost) {
        let _ = pair.ends[0].write(pair.now, caller, &data);
        let before = pair.sent[0].len();
        assert!(pair.step() && pair.now < end, "{:?}", pair.events[0]);
        sealed += pair.sent[0].len() - before;
    }
    assert!(sealed <= 1_024, "{sealed} packets with two keys of 512");
}

/// The server follows, and the client never hears of it.
#[test]
fn a_peer_is_told_of_keys_that_are_worn_out() {
    let limited = |seed| Null::new(seed).with_confidentiality_limit(512);
    let mut pair = Pair::of(limited(1), limited(2));
    let [caller, listener] = pair.connect();
    pair.fate = Box::new(|end, datagram| {
        u32::from(end == 0 || Header::decode(datagram).is_ok_and(|header| header.epoch == Epoch::FIRST_APPLICATION))
    });
    let data = content(100_000);
    let lost = Event::Closed(listener, ConnectionLost::Insecure(SecurityFault::KeyLimit));
    pair.run_until(30, |pair| {
        let _ = pair.ends[0].write(pair.now, caller, &data);
        pair.events[1].contains(&lost)
    });
}

#[test]
fn a_client_that_is_not_admitted_is_told() {
    let mut pair = Pair::of(Null::new(1), Null::new(2).that_admits_nobody());
    let caller = pair.call();
    let lost = Event::Closed(caller, ConnectionLost::Insecure(SecurityFault::NotAdmitted));
    pair.run_until(5, |pair| pair.events[0].contains(&lost));
    assert!(pair.events[1].is_empty(), "its application never knew: {:?}", pair.events[1]);
    let end = pair.now + Duration::from_secs(12);
    while pair.now < end && pair.step() {}
    assert_eq!(pair.ends[1].connections(), 0);
}

#[test]
fn a_stream_without_data_ends_well_only_if_the_server_admits_its_client() {
    let mut pair = Pair::of(Null::new(1), Null::new(2).that_admits_nobody());
    let caller = pair.call();
    pair.run_until(5, |pair| pair.events[0].contains(&Event::Connected(caller)));
    let now = pair.now;
    pair.ends[0].finish(now, caller);
    pair.run_until(5, |pair| pair.events[0].iter().any(|event| matches!(event, Event::Closed(..))));
    assert!(!pair.events[0].contains(&Event::Finished(caller)));
}

#[test]
fn a_client_that_the_server_never_confirms_is_lost() {
    let mut pair = Pair::new();
    pair.fate = Box::new(|end, datagram| {
        let application = Header::decode(datagram).is_ok_and(|header| header.epoch.is_application());
        u32::from(end == 0 || !application)
    });
    let caller = pair.call();
    let lost = Event::Closed(caller, ConnectionLost::ConnectTimeout(Duration::from_secs(10)));
    pair.run_until(15, |pair| pair.events[0].contains(&lost));
}

#[test]
fn nobody_who_listens_is_a_time_out() {
    let mut pair = Pair::new();
    pair.ends[1].stop_listening();
    assert!(matches!(pair.failure(20), ConnectionLost::ConnectTimeout(_)));
}

/// A listener of a later version answers in that of the caller, so the caller can read it.
#[test]
fn a_side_of_another_version_is_named() {
    let mut pair = Pair::new();
    pair.fate = Box::new(|end, datagram| {
        if end == 0 {
            // The version stands behind the header. The listener sees it before it opens the body.
            datagram[HEADER_LEN + 3] = 9;
        } else {
            let (greeting, _) = Greeting::decode(datagram).unwrap();
            assert_eq!(greeting.version, 9);
            let client_id = greeting.client_id.to_vec();
            let asked = Greeting {
                version: VERSION,
                from: Header::decode(datagram).unwrap().to,
                client_id: &client_id,
                token: &[],
            };
            let mut answer = Vec::new();
            let keys = Null::new(2).initial(&client_id, Side::Server);
            exchange::refusal(&asked, &keys, (CloseCode::Version, "another version"), &mut answer);
            assert!(answer.len() <= datagram.len());
            *datagram = answer;
        }
        1
    });
    assert_eq!(pair.failure(20), ConnectionLost::Insecure(SecurityFault::Version));
    assert_eq!(pair.ends[1].connections(), 0);
}
