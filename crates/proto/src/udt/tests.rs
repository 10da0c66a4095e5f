//! Two endpoints on the simplest network: a fixed delay, and a decision for each datagram.

use core::net::SocketAddr;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use farhaul_cc::{AckEvent, Control, Controller, LossEvent, Path, ReceivedEvent, SentEvent};
use farhaul_units::{Duration, Instant, MsgNo, PacketRate, Rate, SendPeriod};

use super::*;
use crate::transport::{Readiness, StreamError};
use crate::{Batch, Config, ConnectionId, ControllerFactory, Entropy, Event, Mode, Read, Streams, Transport};

const DELAY: Duration = Duration::from_millis(10);

/// The network's treatment of a datagram.
type Fate = Box<dyn FnMut(usize, &[u8]) -> bool>;

/// What happens to a datagram in flight.
type Rewrite = Box<dyn FnMut(&mut [u8])>;

struct Pair {
    ends: [Endpoint; 2],
    now: Instant,
    wire: VecDeque<(Instant, usize, Vec<u8>)>,
    events: [Vec<Event>; 2],
    keep: Fate,
    /// Changes datagrams in flight.
    rewrite: Option<Rewrite>,
    sent: u64,
}

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 5000 + end as u16))
}

impl Pair {
    fn new() -> Self {
        let end = |seed| endpoint(Config::default(), Entropy { cookie_key: [seed; 16], seed: u64::from(seed) });
        Self {
            ends: [end(1), end(2)],
            now: Instant::from_nanos(1),
            wire: VecDeque::new(),
            events: [Vec::new(), Vec::new()],
            keep: Box::new(|_, _| true),
            rewrite: None,
            sent: 0,
        }
    }

    /// Everything due now happens, then time advances. Returns false when nothing will ever happen again.
    fn step(&mut self) -> bool {
        let mut batch = Batch::new();
        for end in 0..2 {
            self.ends[end].handle_timeout(self.now);
            while let Some(transmit) = self.ends[end].poll_transmit(self.now, &mut batch) {
                for datagram in transmit.datagrams() {
                    self.sent += 1;
                    if (self.keep)(end, datagram) {
                        let mut datagram = datagram.to_vec();
                        if let Some(rewrite) = &mut self.rewrite {
                            rewrite(&mut datagram);
                        }
                        self.wire.push_back((self.now + DELAY, 1 - end, datagram));
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
        self.ends[1].listen(mode).unwrap();
        let caller =
            self.ends[0].connect_with(self.now, address(1), ConnectOptions { mode, rendezvous: false }).unwrap();
        self.run_until(5, |pair| pair.events[0].contains(&Event::Connected(caller)) && !pair.events[1].is_empty());
        [caller, self.events[1][0].connection()]
    }

    /// Sends `data` from one end to the other and returns the received bytes.
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

#[test]
fn a_writer_that_was_refused_is_woken_although_another_one_was_not() {
    let mut pair = Pair::new();
    let [caller, _] = pair.connect(Mode::Stream);
    let large = content(5_000_000);
    assert!(pair.ends[0].write(pair.now, caller, &large).unwrap() < large.len());
    pair.run_until(5, |pair| pair.ends[0].writable(caller) >= 100);
    assert_eq!(pair.ends[0].write(pair.now, caller, &large[..100]), Ok(100));
    pair.events[0].clear();
    pair.run_until(5, |pair| pair.events[0].contains(&Event::Writable(caller)));
}

#[test]
fn readiness_consumes_nothing_and_promises_an_event_for_what_is_not_ready() {
    for mode in [Mode::Stream, Mode::Message] {
        let mut pair = Pair::new();
        let [caller, listener] = pair.connect(mode);
        let idle = pair.ends[1].readiness(listener).unwrap();
        assert_eq!([idle.connected, idle.readable, idle.writable, idle.ended], [true, false, true, false]);
        let now = pair.now;
        match mode {
            Mode::Stream => assert_eq!(pair.ends[0].write(now, caller, b"ready"), Ok(5)),
            Mode::Message => {
                assert_eq!(pair.ends[0].send_message(now, caller, b"ready", MessageOptions::default()), Ok(true));
            }
        }
        pair.run_until(5, |pair| pair.events[1].contains(&Event::Readable(listener)));
        assert!([(); 2].map(|()| pair.ends[1].readiness(listener).unwrap().readable)[1]);
        pair.ends[0].close(now, caller);
        pair.run_until(5, |pair| pair.ends[1].readiness(listener).unwrap().ended);
        let ended = pair.ends[1].readiness(listener).unwrap();
        assert_eq!([ended.connected, ended.readable, ended.writable], [true; 3]);
    }
}

#[test]
fn a_connection_in_the_making_is_neither_readable_nor_writable_and_wakes_its_writer_once_established() {
    let mut pair = Pair::new();
    pair.ends[1].listen(Mode::Stream).unwrap();
    let now = pair.now;
    let caller = pair.ends[0].connect(now, address(1)).unwrap();
    assert_eq!(pair.ends[0].readiness(caller), Ok(Readiness::default()));
    assert_eq!(pair.ends[0].write(now, caller, b"early"), Err(StreamError::NotConnected));
    pair.run_until(5, |pair| pair.events[0].contains(&Event::Writable(caller)));
    assert!(pair.ends[0].readiness(caller).unwrap().connected);
}

#[test]
fn a_slow_sender_takes_no_more_than_leaves_soon() {
    let mut pair = Pair::new();
    let max_rate = Some(Rate::from_bits_per_second(1_000_000));
    pair.ends[0] = endpoint(Config { max_rate, ..Config::default() }, Entropy { cookie_key: [1; 16], seed: 1 });
    let [caller, _] = pair.connect(Mode::Stream);
    let taken = pair.ends[0].write(pair.now, caller, &content(1_000_000)).unwrap();
    assert!((20_000..40_000).contains(&taken), "{taken} bytes");
}

#[test]
fn waits_for_a_cap_below_the_rate_of_congestion_control_count_as_its_own() {
    let mut pair = Pair::new();
    let max_rate = Some(Rate::from_bits_per_second(2_000_000));
    pair.ends[0] = endpoint(Config { max_rate, ..Config::default() }, Entropy { cookie_key: [1; 16], seed: 1 });
    let [caller, listener] = pair.connect(Mode::Stream);
    let data = content(300_000);
    assert!(pair.transfer(caller, listener, &data) == data);
    let capped = pair.ends[0].stats(pair.now, caller).unwrap().totals;
    assert!(capped.limited_by_rate_cap > capped.send_duration / 2, "{capped:?}");
    assert!(capped.limited_by_congestion < capped.send_duration / 10, "{capped:?}");
    // Answers without a cap.
    assert!(pair.transfer(listener, caller, &data) == data);
    let free = pair.ends[1].stats(pair.now, listener).unwrap().totals;
    assert_eq!(free.limited_by_rate_cap, Duration::ZERO);
}

#[test]
fn messages_follow_one_another_however_long_they_are() {
    let mut pair = Pair::new();
    let [caller, _] = pair.connect(Mode::Message);
    let (now, large) = (pair.now, content(1_500_000));
    let mut send = || pair.ends[0].send_message(now, caller, &large, MessageOptions::default());
    assert_eq!([send(), send(), send()], [Ok(true), Ok(true), Ok(false)]);
    pair.run_until(5, |pair| pair.events[0].contains(&Event::Writable(caller)));
}

#[test]
fn empty_messages_fill_the_buffer_too() {
    let mut pair = Pair::new();
    let [caller, _] = pair.connect(Mode::Message);
    let now = pair.now;
    let taken =
        (0..10_000).take_while(|_| pair.ends[0].send_message(now, caller, &[], MessageOptions::default()) == Ok(true));
    let taken = taken.count();
    assert!((1_000..2_000).contains(&taken), "{taken}");
}

#[test]
fn a_message_that_no_window_holds_is_refused() {
    let mut pair = Pair::new();
    let [caller, _] = pair.connect(Mode::Message);
    let (now, longest) = (pair.now, Config::default().max_flow_window as usize * 1_456);
    let mut send = |len| pair.ends[0].send_message(now, caller, &vec![0; len], MessageOptions::default());
    assert_eq!(send(longest + 1), Err(StreamError::MessageTooLong(longest as u64)));
    assert_eq!(send(longest), Ok(true));
}

#[test]
fn a_rendezvous_takes_no_longer_than_its_round_trips() {
    let mut pair = Pair::new();
    let options = ConnectOptions { mode: Mode::Stream, rendezvous: true };
    let begin = pair.now;
    let ids = [0, 1].map(|end| pair.ends[end].connect_with(begin, address(1 - end), options).unwrap());
    pair.run_until(5, |pair| (0..2).all(|end| pair.events[end].contains(&Event::Connected(ids[end]))));
    assert!(pair.now - begin < DELAY * 5, "{:?}", pair.now - begin);
}

/// Counts events for single packets.
#[derive(Clone, Default)]
struct Counting(Arc<[AtomicU64; 4]>);

impl Controller for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn on_ack(&mut self, _: &Path, _: &AckEvent, control: &mut Control) {
        control.cwnd = Some(100.0);
    }

    fn on_loss(&mut self, _: &Path, _: &LossEvent<'_>, _: &mut Control) {}

    fn on_sent(&mut self, path: &Path, sent: &SentEvent<'_>, _: &mut Control) {
        for (packet, next) in sent.packets.iter().zip(&sent.packets[1..]) {
            assert_eq!((packet.seq.next(), packet.message.map(MsgNo::next)), (next.seq, next.message));
        }
        assert!(sent.packets.iter().all(|packet| packet.seq.is_before(path.next_seq)), "they have been sent");
        assert!(sent.at <= path.now && sent.packets.iter().all(|packet| packet.payload <= 1_456));
        self.0[usize::from(sent.retransmission)].fetch_add(sent.packets.len() as u64, Ordering::Relaxed);
    }

    fn on_received(&mut self, path: &Path, received: &ReceivedEvent<'_>, _: &mut Control) {
        assert!(received.at <= path.now && received.packets.iter().all(|packet| packet.message.is_some()));
        let bytes: u64 = received.packets.iter().map(|packet| u64::from(packet.payload)).sum();
        self.0[2].fetch_add(received.packets.len() as u64, Ordering::Relaxed);
        self.0[3].fetch_add(bytes, Ordering::Relaxed);
    }

    fn wants_packets(&self) -> bool {
        true
    }
}

#[test]
fn a_controller_that_asks_for_packets_hears_of_every_one() {
    let mut pair = Pair::new();
    let counted = Counting::default();
    for end in &mut pair.ends {
        let counted = counted.clone();
        *end = endpoint(
            Config { controller: ControllerFactory::new(move |_| Box::new(counted.clone())), ..Config::default() },
            Entropy { cookie_key: [7; 16], seed: 7 },
        );
    }
    let mut count = 0;
    pair.keep = Box::new(move |_, _| {
        count += 1;
        count % 50 != 0
    });
    let [caller, listener] = pair.connect(Mode::Stream);
    let data = content(1_000_000);
    assert!(pair.transfer(caller, listener, &data) == data);
    let told = [0, 1, 2].map(|what| counted.0[what].load(Ordering::Relaxed));
    let [sent, received] =
        [(0, caller), (1, listener)].map(|(end, id)| pair.ends[end].stats(pair.now, id).unwrap().totals);
    let again = sent.packets_retransmitted;
    assert!(again > 0);
    assert_eq!(told, [sent.packets_sent - again, again, received.packets_received]);
    let duplicates = received.packets_duplicate * 1_456;
    let bytes = counted.0[3].load(Ordering::Relaxed);
    assert!((1_000_000..=1_000_000 + duplicates).contains(&bytes), "{bytes}");
}

#[test]
fn a_controller_that_takes_over_from_the_default_hears_of_every_packet() {
    let mut pair = Pair::new();
    let ids = pair.connect(Mode::Stream);
    let counted = [Counting::default(), Counting::default()];
    for (end, counted) in counted.iter().enumerate() {
        assert!(pair.ends[end].set_controller(pair.now, ids[end], Box::new(counted.clone())));
    }
    let data = content(300_000);
    assert!(pair.transfer(ids[0], ids[1], &data) == data);
    let sent = pair.ends[0].stats(pair.now, ids[0]).unwrap().totals.packets_sent;
    assert!(sent > 200);
    assert_eq!(counted[0].0[0].load(Ordering::Relaxed), sent);
    assert_eq!(counted[1].0[2].load(Ordering::Relaxed), sent);
}

mod ccc;
mod conversing;
mod deliveries;
mod packet_size;
