//! A relay between both sides that records the packets, drops some and injects others.

use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use farhaul_wire::DecodeError;
use farhaul_wire::udt4::{Ack, Control, Packet, SocketId, Timestamp};

/// Time in which a tap's threads notice that they must stop.
const TICK: Duration = Duration::from_millis(20);
/// Longest wait for a packet.
const PATIENCE: Duration = Duration::from_secs(10);

/// The kind of a packet: data, or a control packet by type, acknowledgements also by length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Data,
    Handshake,
    KeepAlive,
    LightAck,
    MediumAck,
    FullAck,
    Nak,
    CongestionWarning,
    Shutdown,
    Ack2,
    DropRequest,
    ErrorSignal,
    Custom,
    Unknown,
}

/// From the client to the server, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

/// The tap, until it is dropped.
pub(crate) struct Tap {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    /// Faces the client.
    front: UdpSocket,
    /// Faces the server.
    back: UdpSocket,
    server: SocketAddr,
    client: Mutex<Option<SocketAddr>>,
    /// One data packet in this many is dropped. Zero drops none.
    lose_one_in: u64,
    seen: [Mutex<Seen>; 2],
    news: Condvar,
    stop: AtomicBool,
}

#[derive(Default)]
struct Seen {
    kinds: BTreeSet<Kind>,
    /// Errors of packets that could not be decoded.
    undecodable: Vec<DecodeError>,
    /// The destination socket of packets in this direction.
    destination: Option<SocketId>,
    data: u64,
}

impl Tap {
    /// A relay to `server` that drops one data packet in `lose_one_in`. Zero drops none.
    pub(crate) fn new(server: SocketAddr, lose_one_in: u64) -> Self {
        let shared = Arc::new(Shared {
            front: socket(),
            back: socket(),
            server,
            client: Mutex::default(),
            lose_one_in,
            seen: Default::default(),
            news: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let threads = [Direction::Up, Direction::Down].map(|direction| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.forward(direction))
        });
        Self { shared, threads: threads.into() }
    }

    /// The address for the client to send to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.shared.front.local_addr().unwrap()
    }

    /// The source address of packets as seen by the server. A server that also calls must know it.
    pub(crate) fn back_address(&self) -> SocketAddr {
        self.shared.back.local_addr().unwrap()
    }

    /// The kinds that passed so far.
    pub(crate) fn kinds(&self, direction: Direction) -> BTreeSet<Kind> {
        self.shared.seen[direction as usize].lock().unwrap().kinds.clone()
    }

    /// The decoding errors so far.
    pub(crate) fn undecodable(&self) -> Vec<DecodeError> {
        self.shared.seen.iter().flat_map(|seen| seen.lock().unwrap().undecodable.clone()).collect()
    }

    /// Waits until a packet of this kind has passed.
    pub(crate) fn wait_for(&self, direction: Direction, kind: Kind) {
        let seen = self.shared.seen[direction as usize].lock().unwrap();
        let waited = self.shared.news.wait_timeout_while(seen, PATIENCE, |seen| !seen.kinds.contains(&kind));
        let (seen, timeout) = waited.unwrap();
        assert!(!timeout.timed_out(), "no {kind:?} {direction:?} among {:?}", seen.kinds);
    }

    /// Injects a packet. A packet of that direction must have passed before.
    pub(crate) fn slip_in(&self, direction: Direction, control: &Control<'_>) {
        let destination = self.shared.seen[direction as usize].lock().unwrap().destination.unwrap();
        let mut datagram = Vec::new();
        control.encode(Timestamp::ZERO, destination, &mut datagram);
        self.shared.pass_on(direction, &datagram);
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // If a thread failed, the test fails for a better reason.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn forward(&self, direction: Direction) {
        let socket = if direction == Direction::Up { &self.front } else { &self.back };
        let mut room = [0; 2_000];
        while !self.stop.load(Ordering::Relaxed) {
            let Ok((len, from)) = socket.recv_from(&mut room) else { continue };
            if direction == Direction::Up {
                *self.client.lock().unwrap() = Some(from);
            }
            if self.note(direction, &room[..len]) {
                self.pass_on(direction, &room[..len]);
            }
        }
    }

    /// Records a datagram. Returns whether it may pass.
    fn note(&self, direction: Direction, datagram: &[u8]) -> bool {
        let seen = &mut *self.seen[direction as usize].lock().unwrap();
        let (kind, destination) = match Packet::decode(datagram) {
            Ok(Packet::Data { header, .. }) => (Kind::Data, header.destination),
            Ok(Packet::Control { destination, control, .. }) => (kind(&control), destination),
            Err(error) => {
                seen.undecodable.push(error);
                return true;
            }
        };
        if !destination.is_none() {
            seen.destination = Some(destination);
        }
        if kind == Kind::Data {
            seen.data += 1;
            if self.lose_one_in > 0 && seen.data.is_multiple_of(self.lose_one_in) {
                return false;
            }
        }
        if seen.kinds.insert(kind) {
            self.news.notify_all();
        }
        true
    }

    fn pass_on(&self, direction: Direction, datagram: &[u8]) {
        let sent = match direction {
            Direction::Up => self.back.send_to(datagram, self.server),
            Direction::Down => match *self.client.lock().unwrap() {
                Some(client) => self.front.send_to(datagram, client),
                None => return,
            },
        };
        // A side that has left answers late packets with an error.
        assert!(sent.is_ok() || sent.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused));
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(TICK)).unwrap();
    socket
}

fn kind(control: &Control<'_>) -> Kind {
    match control {
        Control::Handshake(_) => Kind::Handshake,
        Control::KeepAlive => Kind::KeepAlive,
        Control::Ack(Ack::Light { .. }) => Kind::LightAck,
        Control::Ack(Ack::Medium { .. }) => Kind::MediumAck,
        Control::Ack(Ack::Full { .. }) => Kind::FullAck,
        Control::Nak(_) => Kind::Nak,
        Control::CongestionWarning => Kind::CongestionWarning,
        Control::Shutdown => Kind::Shutdown,
        Control::Ack2(_) => Kind::Ack2,
        Control::DropRequest(_) => Kind::DropRequest,
        Control::ErrorSignal(_) => Kind::ErrorSignal,
        Control::Custom { .. } => Kind::Custom,
        Control::Path(_) | Control::Receipt(_) | Control::Unknown { .. } => Kind::Unknown,
    }
}
