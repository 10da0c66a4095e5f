//! Two endpoints with applications, a network with loss, duplicates, reordering and damage, and attackers who know the
//! state.
//!
//! Invariants for every input: no panic, bounded memory, no endless loop, and every connection ends. Without forgery
//! also: the data read is a prefix of the data written.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::marker::PhantomData;
use std::net::SocketAddr;

use farhaul_proto::{
    Batch, Config, ConnectionId, Endpoint, Entropy, Event, Message, MessageOptions, Mode, Read, Streams, Transport,
};
use farhaul_units::{Duration, Instant, SeqNo};

use super::protocol::Protocol;
use super::script::Script;

const DELAY: Duration = Duration::from_millis(10);
/// Limits of the endpoints' buffers. The rest of their memory is small.
const BUFFER: u64 = 1 << 20;
const MAX_MEMORY: u64 = 6 << 20;
/// Most datagrams at one instant, and most wake-ups per millisecond beyond some. More is an endless loop.
const MAX_AT_ONCE: u32 = 20_000;
const WAKES_PER_MILLI: u64 = 60;
/// Most connections that an application opens.
const MAX_CONNECTIONS: usize = 6;
/// Time after which every connection has ended: lingering, silence, and a peer that claims an RTT of a minute.
const PATIENCE: Duration = Duration::from_secs(4_000);

pub(super) struct Pair<P> {
    protocol: PhantomData<P>,
    ends: [Endpoint; 2],
    now: Instant,
    mode: Mode,
    forging: bool,
    flying: Vec<Flying>,
    order: u64,
    fates: VecDeque<Fate>,
    /// Datagrams that an attacker may replay.
    overheard: VecDeque<Flying>,
    /// Connection ids seen on the wire, by the receiving host.
    ids: [Vec<[u8; 4]>; 2],
    connections: [Vec<ConnectionId>; 2],
    ended: BTreeMap<(usize, ConnectionId), Event>,
    /// Bytes written and read, by host and connection.
    written: BTreeMap<(usize, ConnectionId), u64>,
    read: BTreeMap<(usize, ConnectionId), u64>,
    messages_sent: [u32; 2],
    messages_read: [Vec<u32>; 2],
    wakes: u64,
}

#[derive(Clone)]
struct Flying {
    at: Instant,
    order: u64,
    to: usize,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Fate {
    Drop,
    Twice,
    Late(u8),
    Damage(u8, u8),
}

fn address(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8 + 1], 9000))
}

/// The byte of every stream at `at`.
fn content(at: u64) -> u8 {
    (at.wrapping_mul(31) ^ (at >> 8)) as u8
}

impl<P: Protocol> Pair<P> {
    pub(super) fn new(script: &mut Script<'_>) -> Self {
        let flags = script.byte();
        let mode = P::MODES[usize::from(flags & 1) % P::MODES.len()];
        let end = |seed: u8| {
            let config = Config {
                send_buffer: BUFFER,
                recv_buffer: BUFFER,
                mss: if flags & 16 == 0 { 1500 } else { 600 },
                ..P::config()
            };
            let config = Config { reorder_tolerance: if flags & 8 == 0 { 0 } else { 3 }, ..config };
            let config =
                if flags & 4 == 0 { config } else { Config { initial_seq: Some(SeqNo::MAX.minus(20)), ..config } };
            P::listening(config, Entropy { cookie_key: [seed; 16], seed: seed.into() }, mode)
        };
        let mut pair = Self {
            protocol: PhantomData,
            ends: [end(1), end(2)],
            now: Instant::from_nanos(1),
            mode,
            forging: flags & 2 != 0,
            flying: Vec::new(),
            order: 0,
            fates: VecDeque::new(),
            overheard: VecDeque::new(),
            ids: [Vec::new(), Vec::new()],
            connections: [Vec::new(), Vec::new()],
            ended: BTreeMap::new(),
            written: BTreeMap::new(),
            read: BTreeMap::new(),
            messages_sent: [0; 2],
            messages_read: [Vec::new(), Vec::new()],
            wakes: 0,
        };
        pair.connect(0, false);
        if flags & 32 != 0 {
            pair.run_for(Duration::from_millis(100));
        }
        pair
    }

    /// Performs one operation. Returns `false` at the end of the script.
    pub(super) fn step(&mut self, script: &mut Script<'_>) -> bool {
        let (operation, argument) = (script.byte(), script.byte());
        let host = usize::from(operation >> 7);
        let id = self.connections[host].get(usize::from(argument) % MAX_CONNECTIONS).copied();
        match operation % 16 {
            0 | 1 => self.send(host, id, usize::from(script.byte()) * 100 + usize::from(argument)),
            2 => self.receive(host, id, usize::from(script.byte()) * 50),
            3 | 4 => self.run_for(Duration::from_millis(u64::from(argument))),
            5 => self.run_for(Duration::from_micros(u64::from(argument) * 40)),
            6 => self.run_for(Duration::from_millis(u64::from(argument) * u64::from(argument))),
            7 => self.fates.extend(std::iter::repeat_n(Fate::Drop, usize::from(argument) % 40)),
            8 => self.fates.push_back(Fate::Twice),
            9 => self.fates.push_back(Fate::Late(argument)),
            10 => self.fates.push_back(Fate::Damage(argument, script.byte())),
            11 | 12 => self.forge(host, argument, script),
            13 => self.replay(host, argument, script),
            14 => self.end_some(host, id, argument),
            _ => match argument % 4 {
                0 => self.sleep(script.byte()),
                1 => self.connect(host, script.byte() & 1 != 0),
                2 => self.receive(host, id, 1 << 20),
                _ => self.run_for(Duration::from_millis(1)),
            },
        }
        !script.is_over()
    }

    /// Both applications read and finish, and the network is good from now on. All connections must end and free their
    /// memory.
    pub(super) fn conclude(&mut self) {
        self.fates.clear();
        let start = self.now;
        for host in [0, 1] {
            for id in self.connections[host].clone() {
                self.ends[host].finish(self.now, id);
            }
        }
        let mut step = Duration::from_millis(20);
        while !self.all_over() {
            self.run_for(step);
            step = (step * 2).min(Duration::from_secs(5));
            for host in [0, 1] {
                for id in self.connections[host].clone() {
                    self.receive(host, Some(id), 1 << 22);
                    self.ends[host].finish(self.now, id);
                }
            }
            assert!(self.now - start < PATIENCE, "a connection never ends: {:?}", self.ended);
        }
        // A caller's last packet may still be in flight and be accepted in the meantime.
        for _ in 0..2 {
            for host in [0, 1] {
                for id in self.connections[host].clone() {
                    self.ends[host].release(self.now, id);
                }
            }
            self.run_for(Duration::from_secs(300));
        }
        assert_eq!(self.ends.each_ref().map(Endpoint::connections), [0, 0], "a connection is left over");
    }

    /// How the connections ended, as words.
    pub(super) fn endings(&self) -> BTreeSet<String> {
        let word = |event: &Event| match event {
            Event::Closed(_, reason) => {
                format!("{reason:?}").split(|letter: char| !letter.is_alphabetic()).next().unwrap_or("").to_lowercase()
            }
            _ => "finished".to_owned(),
        };
        let honesty = if self.forging { "forged" } else { "honest" };
        self.ended.values().map(|event| format!("{honesty}-{}", word(event))).collect()
    }

    fn all_over(&self) -> bool {
        [0, 1].iter().all(|&host| self.connections[host].iter().all(|&id| self.ended.contains_key(&(host, id))))
    }

    // ---- applications ----

    fn connect(&mut self, host: usize, rendezvous: bool) {
        if self.connections[host].len() < MAX_CONNECTIONS {
            let options = P::options(self.mode, rendezvous);
            let id = self.ends[host].connect_with(self.now, address(1 - host), options);
            self.connections[host].extend(id);
        }
        self.drain(host);
    }

    fn send(&mut self, host: usize, id: Option<ConnectionId>, bytes: usize) {
        let Some(id) = id else { return };
        if self.mode == Mode::Message {
            self.send_message(host, id, bytes);
        } else {
            let written = self.written.entry((host, id)).or_default();
            let data: Vec<u8> = (*written..*written + bytes as u64).map(content).collect();
            if let Ok(taken) = self.ends[host].write(self.now, id, &data) {
                assert!(taken <= bytes);
                *written += taken as u64;
            }
        }
        self.drain(host);
    }

    fn send_message(&mut self, host: usize, id: ConnectionId, bytes: usize) {
        let number = self.messages_sent[host];
        let ttl = bytes.is_multiple_of(3).then(|| Duration::from_millis(bytes as u64 % 500));
        let options = MessageOptions { ttl, in_order: bytes.is_multiple_of(2) };
        if self.ends[host].send_message(self.now, id, &message(number, bytes), options) == Ok(true) {
            self.messages_sent[host] += 1;
        }
    }

    fn receive(&mut self, host: usize, id: Option<ConnectionId>, most: usize) {
        let Some(id) = id else { return };
        let mut out = vec![0; most];
        if self.mode == Mode::Message {
            while let Ok(Message::Received { len, truncated }) = self.ends[host].recv_message(self.now, id, &mut out) {
                if !truncated && !self.forging {
                    self.check_message(host, &out[..len]);
                }
            }
        } else if let Ok(Read::Data(count)) = self.ends[host].read(self.now, id, &mut out) {
            let read = self.read.entry((host, id)).or_default();
            if !self.forging {
                let right = (*read..).zip(&out[..count]).all(|(at, &byte)| byte == content(at));
                assert!(right, "a byte is wrong after {read}");
            }
            *read += count as u64;
            let most = self.written.iter().filter(|((writer, _), _)| *writer != host).map(|(_, &n)| n).max();
            assert!(self.forging || *read <= most.unwrap_or(0), "more was read than written");
        }
        self.drain(host);
    }

    fn check_message(&mut self, host: usize, bytes: &[u8]) {
        let number = bytes.first_chunk().map_or(u32::MAX, |head| u32::from_be_bytes(*head));
        assert!(number < self.messages_sent[1 - host], "a message that was never sent");
        assert!(message(number, bytes.len()) == bytes, "message {number} is damaged");
        assert!(!self.messages_read[host].contains(&number), "message {number} was received twice");
        self.messages_read[host].push(number);
    }

    fn end_some(&mut self, host: usize, id: Option<ConnectionId>, argument: u8) {
        let Some(id) = id else { return };
        let end = &mut self.ends[host];
        match argument % 5 {
            0 => end.finish(self.now, id),
            1 if argument & 0x80 != 0 => end.abort(self.now, id),
            1 => end.close(self.now, id),
            2 => {
                end.release(self.now, id);
                self.connections[host].retain(|&other| other != id);
            }
            3 => end.signal_error(id, argument.into()),
            _ => end.send_custom(id, 7, &[argument; 20]),
        }
        self.drain(host);
    }

    // ---- attackers ----

    /// Injects a forged datagram of any type with a valid address and usually a valid id.
    fn forge(&mut self, host: usize, kind: u8, script: &mut Script<'_>) {
        let near = |script: &mut Script<'_>| self.near(host, script);
        let bytes = P::forge(kind, self.id_of(host, kind >> 5), &near, script);
        self.inject(host, bytes);
    }

    /// A number close to the latest that a host has seen, so that forgeries pass the first check.
    fn near(&self, host: usize, script: &mut Script<'_>) -> u32 {
        let newest = |flying: &&Flying| flying.to == host && flying.bytes.first().is_some_and(|byte| byte >> 7 == 0);
        let seen = self.overheard.iter().rev().find(newest).and_then(|flying| flying.bytes.first_chunk());
        let offset = i32::from(script.byte().cast_signed());
        seen.map_or(0, |head| u32::from_be_bytes(*head)).wrapping_add_signed(offset) & P::MAX_SEQ
    }

    fn replay(&mut self, host: usize, which: u8, script: &mut Script<'_>) {
        let Some(mut old) = self.overheard.get(usize::from(which) % 64).cloned() else { return };
        if which & 0x80 != 0 {
            let at = usize::from(script.byte());
            if let Some(byte) = old.bytes.get_mut(at) {
                *byte ^= script.byte();
            }
        }
        // To its original receiver, or reflected to the other host.
        let to = if which & 0x40 == 0 { old.to } else { host };
        self.inject(to, old.bytes);
    }

    fn inject(&mut self, to: usize, mut bytes: Vec<u8>) {
        if self.forging {
            let stride = bytes.len();
            self.ends[to].handle_datagrams(self.now, self.now, address(1 - to), &mut bytes, stride);
            self.drain(to);
        }
    }

    fn id_of(&self, host: usize, which: u8) -> [u8; 4] {
        let ids = &self.ids[host];
        if ids.is_empty() { [0; 4] } else { ids[usize::from(which) % ids.len()] }
    }

    // ---- time and network ----

    /// Suspends the host: its timers are not served for minutes.
    fn sleep(&mut self, minutes: u8) {
        self.now += Duration::from_secs(u64::from(minutes) * 10);
        self.run_for(Duration::ZERO);
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        let most = self.wakes + 2_000 + time.as_millis() as u64 * WAKES_PER_MILLI;
        loop {
            let arrival = self.flying.iter().map(|flying| (flying.at, flying.order)).min();
            let timers = self.ends.each_ref().map(Endpoint::poll_timeout);
            let next = [arrival.map(|(at, _)| at), timers[0], timers[1]].into_iter().flatten().min();
            let Some(next) = next.filter(|&next| next <= end) else { break };
            self.now = self.now.max(next);
            match arrival.filter(|&(at, _)| at <= next) {
                Some((_, order)) => self.arrive(order),
                None => self.wake(),
            }
            assert!(self.wakes < most + 2, "too many wake-ups in {time:?}");
        }
        self.now = self.now.max(end);
    }

    fn arrive(&mut self, order: u64) {
        let at = self.flying.iter().position(|flying| flying.order == order).expect("it is flying");
        let Flying { to, mut bytes, .. } = self.flying.swap_remove(at);
        let stride = bytes.len();
        self.ends[to].handle_datagrams(self.now, self.now, address(1 - to), &mut bytes, stride);
        self.drain(to);
    }

    fn wake(&mut self) {
        for host in [0, 1] {
            if self.ends[host].poll_timeout().is_some_and(|at| at <= self.now) {
                self.wakes += 1;
                self.ends[host].handle_timeout(self.now);
                self.drain(host);
            }
        }
    }

    fn drain(&mut self, host: usize) {
        let (mut batch, mut count) = (Batch::new(), 0);
        let mut sent = Vec::new();
        while let Some(transmit) = self.ends[host].poll_transmit(self.now, &mut batch) {
            sent.extend(transmit.datagrams().map(<[u8]>::to_vec));
            count += 1;
            assert!(count < MAX_AT_ONCE, "endless transmission");
        }
        for bytes in sent {
            self.depart(1 - host, bytes);
        }
        while let Some(event) = self.ends[host].poll_event() {
            match event {
                Event::Accepted(id) => self.connections[host].push(id),
                Event::Closed(id, _) | Event::Finished(id) => {
                    self.ended.entry((host, id)).or_insert(event);
                }
                _ => {}
            }
        }
        for &id in &self.connections[host] {
            let memory = self.ends[host].stats(self.now, id).map_or(0, |stats| stats.memory);
            assert!(memory < MAX_MEMORY, "{memory} bytes");
        }
    }

    fn depart(&mut self, to: usize, mut bytes: Vec<u8>) {
        if let Some(id) = P::id_in(&bytes).filter(|id| !self.ids[to].contains(id) && self.ids[to].len() < 16) {
            self.ids[to].push(id);
        }
        self.order += 1;
        let (mut at, order) = (self.now + DELAY, self.order);
        match self.fates.pop_front() {
            // UDP's checksum detects the damage. An attacker would write a valid one.
            Some(Fate::Drop) => return,
            Some(Fate::Damage(..)) if !self.forging => return,
            Some(Fate::Damage(place, mask)) => {
                if let Some(byte) = bytes.get_mut(usize::from(place)) {
                    *byte ^= mask;
                }
            }
            Some(Fate::Late(millis)) => at += Duration::from_millis(millis.into()),
            Some(Fate::Twice) => {
                self.order += 1;
                self.flying.push(Flying { at: at + DELAY / 3, order: self.order, to, bytes: bytes.clone() });
            }
            None => {}
        }
        let flying = Flying { at, order, to, bytes };
        if self.overheard.len() == 64 {
            self.overheard.pop_front();
        }
        self.overheard.push_back(flying.clone());
        self.flying.push(flying);
    }
}

/// The content of a message: its number, and bytes that follow from it.
fn message(number: u32, bytes: usize) -> Vec<u8> {
    let head = number.to_be_bytes();
    head.into_iter().chain((4..bytes.max(4)).map(|at| content(at as u64 + u64::from(number)))).collect()
}
