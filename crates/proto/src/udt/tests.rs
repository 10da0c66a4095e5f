//! Two endpoints on the simplest of networks: a fixed delay, and a say in what becomes of each datagram.

use std::collections::VecDeque;
use std::net::SocketAddr;

use farhaul_units::{Duration, Instant};

use super::*;
use crate::{Batch, Config, ConnectionId, Entropy, Event, Mode, Read, Streams, Transport};

const DELAY: Duration = Duration::from_millis(10);

/// What the network does with a datagram.
type Fate = Box<dyn FnMut(usize, &[u8]) -> bool>;

struct Pair {
    ends: [Endpoint; 2],
    now: Instant,
    wire: VecDeque<(Instant, usize, Vec<u8>)>,
    events: [Vec<Event>; 2],
    keep: Fate,
    sent: u64,
}

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 5000 + end as u16))
}

impl Pair {
    fn new() -> Self {
        let end = |seed| Endpoint::new(Config::default(), Entropy { cookie_key: [seed; 16], seed: u64::from(seed) });
        Self {
            ends: [end(1), end(2)],
            now: Instant::from_nanos(1),
            wire: VecDeque::new(),
            events: [Vec::new(), Vec::new()],
            keep: Box::new(|_, _| true),
            sent: 0,
        }
    }

    /// Everything that can happen now happens; then time moves on. False when nothing will ever happen again.
    fn step(&mut self) -> bool {
        let mut batch = Batch::new();
        for end in 0..2 {
            self.ends[end].handle_timeout(self.now);
            while let Some(transmit) = self.ends[end].poll_transmit(self.now, &mut batch) {
                for datagram in transmit.datagrams() {
                    self.sent += 1;
                    if (self.keep)(end, datagram) {
                        self.wire.push_back((self.now + DELAY, 1 - end, datagram.to_vec()));
                    }
                }
            }
            while let Some(event) = self.ends[end].poll_event() {
                self.events[end].push(event);
            }
        }
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

    fn run_until(&mut self, seconds: u64, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.now + Duration::from_secs(seconds);
        while !done(self) {
            assert!(self.step() && self.now < end, "not done at {}: {:?}", self.now, self.events);
        }
    }

    fn connect(&mut self, mode: Mode) -> [ConnectionId; 2] {
        self.ends[1].listen(mode);
        let caller =
            self.ends[0].connect_with(self.now, address(1), ConnectOptions { mode, rendezvous: false }).unwrap();
        self.run_until(5, |pair| pair.events[0].contains(&Event::Connected(caller)) && !pair.events[1].is_empty());
        [caller, self.events[1][0].connection()]
    }

    /// Sends `data` from one end to the other and back to the test.
    fn transfer(&mut self, from: ConnectionId, to: ConnectionId, data: &[u8]) -> Vec<u8> {
        let (mut written, mut got, mut buffer) = (0, Vec::new(), vec![0; 100_000]);
        let total = data.len();
        self.run_until(120, |pair| {
            written += pair.ends[0].write(pair.now, from, &data[written..]).unwrap();
            while let Ok(Read::Data(n)) = pair.ends[1].read(pair.now, to, &mut buffer) {
                got.extend_from_slice(&buffer[..n]);
            }
            got.len() == total
        });
        got
    }
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

#[test]
fn a_stream_arrives_and_ends() {
    let mut pair = Pair::new();
    let [caller, listener] = pair.connect(Mode::Stream);
    let data = content(3_000_000);
    assert!(pair.transfer(caller, listener, &data) == data);
    let now = pair.now;
    pair.ends[0].finish(now, caller);
    pair.run_until(5, |pair| pair.ends[1].read(pair.now, listener, &mut [0; 10]) == Ok(Read::End));
    assert!(pair.events[0].contains(&Event::Finished(caller)));
    let stats = pair.ends[0].stats(pair.now, caller).unwrap();
    assert_eq!((stats.totals.packets_retransmitted, stats.totals.bytes_acked), (0, 3_000_000));
}

#[test]
fn a_reader_that_waits_is_woken_when_its_own_side_has_finished() {
    let mut pair = Pair::new();
    let [caller, _] = pair.connect(Mode::Stream);
    let now = pair.now;
    assert_eq!(pair.ends[0].read(now, caller, &mut [0; 10]), Ok(Read::Pending));
    pair.ends[0].finish(now, caller);
    pair.run_until(5, |pair| pair.events[0].contains(&Event::Finished(caller)));
    assert!(pair.events[0].contains(&Event::Readable(caller)), "{:?}", pair.events[0]);
    assert_eq!(pair.ends[0].read(pair.now, caller, &mut [0; 10]), Ok(Read::End));
}

#[test]
fn a_stream_survives_the_loss_of_every_tenth_datagram() {
    let mut pair = Pair::new();
    let mut count = 0;
    pair.keep = Box::new(move |_, _| {
        count += 1;
        count % 10 != 0
    });
    let [caller, listener] = pair.connect(Mode::Stream);
    let data = content(2_000_000);
    assert!(pair.transfer(caller, listener, &data) == data);
}

#[test]
fn released_connections_leave_nothing_behind() {
    let mut pair = Pair::new();
    let ids = pair.connect(Mode::Stream);
    for (end, id) in ids.into_iter().enumerate() {
        let now = pair.now;
        pair.ends[end].release(now, id);
    }
    while pair.step() {}
    assert_eq!((pair.ends[0].connections(), pair.ends[1].connections()), (0, 0));
}

#[test]
fn messages_keep_their_boundaries() {
    let mut pair = Pair::new();
    let [caller, listener] = pair.connect(Mode::Message);
    let now = pair.now;
    for size in [1usize, 5_000, 0, 1456] {
        let options = MessageOptions { ttl: None, in_order: true };
        assert!(pair.ends[0].send_message(now, caller, &content(size), options).unwrap());
    }
    let (mut sizes, mut out) = (Vec::new(), vec![0; 10_000]);
    pair.run_until(5, |pair| {
        while let Ok(Message::Received { len, .. }) = pair.ends[1].recv_message(pair.now, listener, &mut out) {
            assert!(out[..len] == content(len));
            sizes.push(len);
        }
        sizes.len() == 4
    });
    assert_eq!(sizes, [1, 5_000, 0, 1456]);
}

#[test]
fn a_rendezvous_connects_both_sides() {
    let mut pair = Pair::new();
    let options = ConnectOptions { mode: Mode::Stream, rendezvous: true };
    let now = pair.now;
    let ids = [0, 1].map(|end| pair.ends[end].connect_with(now, address(1 - end), options).unwrap());
    pair.run_until(5, |pair| {
        pair.events[0].contains(&Event::Connected(ids[0])) && pair.events[1].contains(&Event::Connected(ids[1]))
    });
    let data = content(100_000);
    assert!(pair.transfer(ids[0], ids[1], &data) == data);
}

#[test]
fn an_idle_connection_sends_a_keep_alive_about_every_ten_seconds() {
    let mut pair = Pair::new();
    pair.connect(Mode::Stream);
    let (start, before) = (pair.now, pair.sent);
    while pair.now < start + Duration::from_secs(600) {
        assert!(pair.step());
    }
    let per_side = (pair.sent - before) / 2;
    assert!((50..=80).contains(&per_side), "{per_side} datagrams in ten minutes");
}
