//! Random datagrams into an endpoint that listens, calls, meets in a rendezvous, and has connections.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::net::SocketAddr;

use farhaul_proto::{Batch, Config, ConnectionId, Endpoint, Entropy, Event, Message, Mode, Read, Streams, Transport};
use farhaul_units::{Duration, Instant, Rng};

use super::protocol::{FIRST, Protocol};
use super::script::Script;

const MAX_MEMORY: u64 = 6 << 20;
const MAX_AT_ONCE: u32 = 20_000;

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 9000))
}

struct Target<P> {
    protocol: PhantomData<P>,
    end: Endpoint,
    now: Instant,
    ids: Vec<[u8; 4]>,
    connections: Vec<ConnectionId>,
    /// Bytes from and to each address.
    received: BTreeMap<SocketAddr, usize>,
    sent: BTreeMap<SocketAddr, usize>,
}

/// Delivers datagrams of chosen lengths and origins, for a chosen connection or unchanged, with pauses between them.
pub(super) fn run<P: Protocol>(script: &mut Script<'_>) {
    let mode = P::MODES[usize::from(script.byte() & 1) % P::MODES.len()];
    let mut target = Target::<P>::new(mode);
    while !script.is_over() {
        let (selector, length) = (script.byte(), script.byte());
        let mut datagram = script.bytes(usize::from(length)).to_vec();
        if selector & 7 < 6 {
            P::claim_id(&mut datagram, target.ids.get(usize::from(selector & 7)).copied().unwrap_or_default());
        }
        // From an address that the endpoint knows, or from a stranger.
        let nearest = if selector & 7 < 7 { 1 } else { 5 };
        target.deliver(address(nearest + (selector >> 3 & 3)), &mut datagram);
        let pause = u64::from(selector >> 5) * 30;
        if pause > 0 {
            target.run_for(Duration::from_millis(pause));
            target.use_connections(mode);
        }
    }
    target.conclude();
}

impl<P: Protocol> Target<P> {
    /// An endpoint that listens. Hosts 1 and 2 have called it. It calls host 3, and meets host 4 or calls it.
    fn new(mode: Mode) -> Self {
        let config = Config { recv_buffer: 1 << 20, send_buffer: 1 << 20, ..P::config() };
        let config = Config { initial_seq: Some(FIRST), ..config };
        let mut target = Self {
            protocol: PhantomData,
            end: P::listening(config, Entropy { cookie_key: [3; 16], seed: 3 }, mode),
            now: Instant::from_nanos(1),
            ids: Vec::new(),
            connections: Vec::new(),
            received: BTreeMap::new(),
            sent: BTreeMap::new(),
        };
        for host in [1, 2] {
            target.accept(host, mode);
        }
        for (host, rendezvous) in [(3, false), (4, true)] {
            let options = P::options(mode, rendezvous);
            let id = target.end.connect_with(target.now, address(host), options).expect("there is room");
            target.connections.push(id);
        }
        target.drain();
        target
    }

    fn accept(&mut self, host: u8, mode: Mode) {
        let mut answer: Option<Vec<u8>> = None;
        for _ in 0..2 {
            let mut bytes = P::introduction(host, mode, answer.as_deref());
            let stride = bytes.len();
            self.end.handle_datagrams(self.now, self.now, address(host), &mut bytes, stride);
            answer = self.drain().into_iter().next();
        }
        let answer = answer.expect("it accepts callers");
        self.ids.push(P::id_announced(&answer).expect("the answer names the connection"));
    }

    fn deliver(&mut self, from: SocketAddr, datagram: &mut [u8]) {
        *self.received.entry(from).or_default() += datagram.len();
        let (before, stride) = (self.sent.get(&from).copied().unwrap_or(0), datagram.len());
        let to_nobody = P::is_unaddressed(datagram);
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
                while matches!(self.end.recv_message(self.now, id, &mut out), Ok(Message::Received { .. })) {}
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
            assert!(count < MAX_AT_ONCE, "endless transmission");
        }
        while let Some(event) = self.end.poll_event() {
            if let Event::Accepted(id) = event {
                self.connections.push(id);
            }
        }
        all
    }

    /// Releases all connections, after which nothing may be left.
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
pub(super) fn plausible<P: Protocol>(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut input = vec![rng.next_u64() as u8];
    for _ in 0..rng.below(60) {
        let datagram = P::plausible(&mut rng);
        input.extend([rng.next_u64() as u8, datagram.len() as u8]);
        input.extend(datagram);
    }
    input
}
