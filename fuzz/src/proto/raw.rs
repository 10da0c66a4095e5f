//! Any bytes into an endpoint that listens, calls, meets, and has connections.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use farhaul_proto::udt::{ConnectOptions, Endpoint};
use farhaul_proto::{Batch, Config, ConnectionId, Entropy, Event, Mode, Read, Streams, Transport};
use farhaul_units::{Duration, Instant, Rng, SeqNo};
use farhaul_wire::udt4::{Control, Handshake, Request, SocketId, SocketType, Timestamp, destination};

use super::script::Script;

/// The first packet of both sides of every connection.
const FIRST: SeqNo = SeqNo::new(0x0101_0101);
/// Among the types of control packets, the one that stands for data.
const DATA: u8 = 9;
const MAX_MEMORY: u64 = 6 << 20;
const MAX_AT_ONCE: u32 = 20_000;

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 9000))
}

struct Target {
    end: Endpoint,
    now: Instant,
    ids: Vec<SocketId>,
    connections: Vec<ConnectionId>,
    /// Bytes to and from each address.
    received: BTreeMap<SocketAddr, usize>,
    sent: BTreeMap<SocketAddr, usize>,
}

/// Datagrams of chosen lengths and origins, with a chosen destination or as they come; time passes in between.
pub(super) fn run(script: &mut Script<'_>) {
    let mode = if script.byte() & 1 == 0 { Mode::Stream } else { Mode::Message };
    let mut target = Target::new(mode);
    while !script.is_over() {
        let (selector, length) = (script.byte(), script.byte());
        let mut datagram = script.bytes(usize::from(length)).to_vec();
        if selector & 7 < 6 && datagram.len() >= 16 {
            let known = target.ids.get(usize::from(selector & 7)).copied().unwrap_or(SocketId::NONE);
            datagram[12..16].copy_from_slice(&known.value().to_be_bytes());
        }
        target.deliver(address(1 + (selector >> 3 & 3)), &mut datagram);
        let pause = u64::from(selector >> 5) * 30;
        if pause > 0 {
            target.run_for(Duration::from_millis(pause));
            target.use_connections(mode);
        }
    }
    target.conclude();
}

impl Target {
    /// It listens; hosts 1 and 2 have called it, it calls host 3 and meets host 4.
    fn new(mode: Mode) -> Self {
        let config = Config { recv_buffer: 1 << 20, send_buffer: 1 << 20, ..Config::default() };
        let config = Config { initial_seq: Some(FIRST), ..config };
        let mut target = Self {
            end: Endpoint::new(config, Entropy { cookie_key: [3; 16], seed: 3 }),
            now: Instant::from_nanos(1),
            ids: Vec::new(),
            connections: Vec::new(),
            received: BTreeMap::new(),
            sent: BTreeMap::new(),
        };
        target.end.listen(mode);
        for host in [1, 2] {
            target.accept(host, mode);
        }
        for (host, rendezvous) in [(3, false), (4, true)] {
            let options = ConnectOptions { mode, rendezvous };
            let id = target.end.connect_with(target.now, address(host), options).expect("there is room");
            target.connections.push(id);
        }
        target.drain();
        target
    }

    fn accept(&mut self, host: u8, mode: Mode) {
        let socket_type = if mode == Mode::Stream { SocketType::Stream } else { SocketType::Dgram };
        let mut call = Handshake {
            version: Handshake::VERSION,
            socket_type,
            isn: FIRST,
            mss: 1500,
            flow_window: 8192,
            request: Request::Induction,
            socket_id: SocketId::new(host.into()),
            cookie: 0,
            peer_ip: [10, 0, 0, 9].into(),
        };
        for request in [Request::Induction, Request::Conclusion] {
            call.request = request;
            let mut bytes = Vec::new();
            Control::Handshake(call).encode(Timestamp::ZERO, SocketId::NONE, &mut bytes);
            let stride = bytes.len();
            self.end.handle_datagrams(self.now, self.now, address(host), &mut bytes, stride);
            for answer in self.drain() {
                if let Ok((_, _, Control::Handshake(answer))) = Control::decode(&answer) {
                    call.cookie = answer.cookie;
                    if answer.request == Request::Conclusion {
                        self.ids.push(answer.socket_id);
                    }
                }
            }
        }
    }

    fn deliver(&mut self, from: SocketAddr, datagram: &mut [u8]) {
        *self.received.entry(from).or_default() += datagram.len();
        let (before, stride) = (self.sent.get(&from).copied().unwrap_or(0), datagram.len());
        let to_nobody = destination(datagram).is_none_or(SocketId::is_none);
        self.end.handle_datagrams(self.now, self.now, from, datagram, stride);
        self.drain();
        if to_nobody && self.connections.iter().all(|&id| self.end.peer(id) != Some(from)) {
            let after = self.sent.get(&from).copied().unwrap_or(0);
            assert!(after - before <= stride, "{} bytes for {stride}", after - before);
        }
    }

    /// The applications write a little and read everything.
    fn use_connections(&mut self, mode: Mode) {
        let mut out = vec![0; 10_000];
        for id in self.connections.clone() {
            if mode == Mode::Stream {
                let _ = self.end.write(self.now, id, &[7; 500]);
                while let Ok(Read::Data(_)) = self.end.read(self.now, id, &mut out) {}
            } else {
                let _ = self.end.send_message(self.now, id, &[7; 3_000], Default::default());
                while let Ok(farhaul_proto::udt::Message::Received { .. }) =
                    self.end.recv_message(self.now, id, &mut out)
                {}
            }
            let memory = self.end.stats(self.now, id).map_or(0, |stats| stats.memory);
            assert!(memory < MAX_MEMORY, "{memory} bytes");
        }
        self.drain();
    }

    fn run_for(&mut self, time: Duration) {
        let (end, mut wakes) = (self.now + time, 0);
        while let Some(deadline) = self.end.poll_timeout().filter(|&at| at <= end) {
            self.now = self.now.max(deadline);
            self.end.handle_timeout(self.now);
            self.drain();
            wakes += 1;
            assert!(wakes < 2_000 + time.as_millis() * 60, "{wakes} wake-ups in {time:?}");
        }
        self.now = end;
    }

    fn drain(&mut self) -> Vec<Vec<u8>> {
        let (mut batch, mut all, mut count) = (Batch::new(), Vec::new(), 0);
        while let Some(transmit) = self.end.poll_transmit(self.now, &mut batch) {
            *self.sent.entry(transmit.to).or_default() += transmit.bytes.len();
            all.extend(transmit.datagrams().map(<[u8]>::to_vec));
            count += 1;
            assert!(count < MAX_AT_ONCE, "it sends for ever");
        }
        while let Some(event) = self.end.poll_event() {
            if let Event::Accepted(id) = event {
                self.connections.push(id);
            }
        }
        all
    }

    /// Released, everything goes.
    fn conclude(&mut self) {
        for id in self.connections.clone() {
            self.end.release(self.now, id);
        }
        self.run_for(Duration::from_secs(300));
        assert_eq!(self.end.connections(), 0);
        let stranger = address(200);
        assert_eq!(self.sent.get(&stranger), None);
    }
}

/// An input of datagrams of all types with numbers near those in use.
pub(super) fn plausible(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut below = |bound: u64| rng.next_u64() % bound;
    let mut input = vec![below(256) as u8];
    for _ in 0..below(60) {
        let kind = below(10) as u8;
        let words = match kind {
            0 => 12,
            2 => [1, 4, 6][below(3) as usize],
            7 => 2,
            3 | 4 => 1 + below(7) as usize,
            _ => below(2) as usize,
        };
        let payload = if kind == DATA { below(100) as usize } else { 0 };
        input.extend([below(256) as u8, (16 + 4 * words + payload) as u8]);
        if kind == DATA {
            input.extend(FIRST.plus(below(40) as u32).value().to_be_bytes());
            input.extend([[0xC0, 0x80, 0x00, 0x40][below(4) as usize], 0, 0, below(6) as u8]);
        } else {
            input.extend([0x80, kind, 0, 0, 0, 0, 0, below(6) as u8]);
        }
        input.extend([0; 8]);
        for at in 0..words {
            let begins_range = u32::from(kind == 3 && at % 2 == 0 && below(2) == 0) << 31;
            let near = FIRST.plus(below(40) as u32).value() | begins_range;
            let word = if below(8) == 0 { below(1 << 32) as u32 } else { near };
            input.extend(word.to_be_bytes());
        }
        input.extend(std::iter::repeat_n(1, payload));
    }
    input
}
