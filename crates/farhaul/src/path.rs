//! Examination of a path: who answers at a UDP port, after what time, and how large packets may be.
//!
//! The questions open no connection, and leave at most a count at the far end. Each kind of port answers its own forms:
//!
//! | form | is | answered by |
//! | --- | --- | --- |
//! | [`Form::Plain`] | a datagram of a measured stream | a plain port with [`answer_probes`](crate::Builder::answer_probes) |
//! | [`Form::Udt`] | the first packet of a handshake of UDT4 | every plain port that listens with UDT4, also one of libudt |
//! | [`Form::Secure`] | an Initial packet of a version that nobody speaks | a port with encryption, while it listens |

mod search;

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use farhaul_udp::{Clock, PathSocket};
use farhaul_units::{Instant, SeqNo};
use farhaul_wire::probe::{ANSWER_LEN, Acknowledge, Kind, Probe};
use farhaul_wire::secure::{ConnectionName, Epoch, Header, InitialHeader, MIN_INITIAL};
use farhaul_wire::udt4::{Control, HEADER_LEN, Handshake, Largest, Packet, Request, SocketId, SocketType, Timestamp};

use crate::error::Error;
use crate::randomness::session;
use search::Search;

/// Headers of IPv4 and UDP, and of IPv6 and UDP, bytes.
const IPV4_HEADERS: u32 = 28;
const IPV6_HEADERS: u32 = 48;
/// The version of an Initial packet that asks which versions there are.
const NO_VERSION: u32 = 0;
/// The part of a number that fits into the ids and sequence numbers of UDT4.
const LOW_31_BITS: u64 = 0x7FFF_FFFF;
/// Longest answer that is read, bytes.
const LONGEST: usize = 2_048;
/// Shortest and longest wait for the answers of one round of sizes.
const LEAST_WAIT: Duration = Duration::from_millis(150);
const MOST_WAIT: Duration = Duration::from_millis(800);

/// After an answer, the others are awaited for this part of the wait.
const TOGETHER: u32 = 3;

/// The form of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Form {
    /// For plain ports that answer measured streams.
    Plain,
    /// For plain ports that listen. Its size is fixed.
    Udt,
    /// For ports with encryption.
    Secure,
}

/// An answer of the far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The form of the question.
    pub form: Form,
    /// The size of the question's packet, in bytes, headers of IP and UDP included.
    pub packet: u32,
    /// The time from question to answer.
    pub round_trip: Duration,
}

/// The size of packets that pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMtu {
    /// The largest packet that was answered, in bytes, headers of IP and UDP included.
    pub passes: u32,
    /// The smallest larger one that was not. `None` if everything up to the limit of the search passed.
    pub fails: Option<u32>,
}

/// A UDP port that asks one peer.
#[derive(Debug)]
pub struct PathProbe {
    socket: PathSocket,
    clock: Clock,
    /// Tells answers to this port's questions from others.
    session: u64,
    headers: u32,
    buffer: Vec<u8>,
}

impl PathProbe {
    /// Opens a UDP port for questions to `peer`.
    ///
    /// # Errors
    /// There is no route, or the system has no port or no randomness.
    pub fn towards(peer: SocketAddr) -> Result<Self, Error> {
        let unreachable = |source| Error::Unreachable { peer, time: Duration::ZERO, source };
        Ok(Self {
            socket: PathSocket::towards(peer).map_err(unreachable)?,
            clock: Clock::start(),
            session: session()?,
            headers: if peer.is_ipv4() { IPV4_HEADERS } else { IPV6_HEADERS },
            buffer: vec![0; LONGEST],
        })
    }

    /// The peer.
    pub fn peer(&self) -> SocketAddr {
        self.socket.peer()
    }

    /// This side's address towards the peer.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The largest packet that the system expects to pass, in bytes: see [`PathSocket::mtu`]. `None` if it does not tell.
    pub fn system_mtu(&self) -> Option<u32> {
        self.socket.mtu().ok().filter(|mtu| *mtu > 0)
    }

    /// The smallest packet of a question, in bytes.
    pub const fn least_packet(&self, form: Form) -> u32 {
        self.headers
            + match form {
                Form::Plain => ANSWER_LEN as u32,
                Form::Udt => (HEADER_LEN + Handshake::LEN) as u32,
                Form::Secure => MIN_INITIAL as u32,
            }
    }

    /// Asks with a packet of this many bytes, or the [smallest](Self::least_packet) if that is more or the only one.
    ///
    /// # Errors
    /// `EMSGSIZE` if the interface permits no such packet. `ECONNREFUSED` if the peer's host answered an earlier question
    /// by saying that nothing listens there.
    pub fn send(&self, form: Form, packet: u32) -> io::Result<()> {
        let least = self.least_packet(form);
        let packet = if form == Form::Udt { least } else { packet.max(least) };
        let mut datagram = question(form, self.session, packet, self.micros());
        datagram.resize((packet - self.headers) as usize, 0);
        self.socket.send(&datagram)
    }

    /// The next answer within `wait`. `None` if none came.
    ///
    /// # Errors
    /// The network's report about an earlier question, such as `ECONNREFUSED`. It is only a hint, because anybody can
    /// forge such messages.
    pub fn receive(&mut self, wait: Duration) -> io::Result<Option<Answer>> {
        let end = self.clock.now() + wait;
        loop {
            let left = end.saturating_since(self.clock.now());
            match self.socket.recv(&mut self.buffer, left) {
                Ok(len) => {
                    if let Some((form, packet, asked)) = answer(&self.buffer[..len], self.session) {
                        let packet = packet.unwrap_or_else(|| self.least_packet(form));
                        return Ok(Some(Answer { form, packet, round_trip: since(asked, self.micros()) }));
                    }
                }
                // A router that reports a smaller packet size. The answer to the question does not come.
                Err(error) if is_about_size(&error) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.clock.now() >= end {
                return Ok(None);
            }
        }
    }

    /// Finds the largest packet that passes, up to `most` bytes, in about `time`. `round_trip` is that of the path. `None`
    /// if the far end answers no question of this form.
    ///
    /// The far end must answer, so a return path for small packets is part of the result. A loss can make it too small.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn find_mtu(
        &mut self,
        form: Form,
        most: u32,
        round_trip: Duration,
        time: Duration,
    ) -> io::Result<Option<PathMtu>> {
        let end = self.clock.now() + time;
        let wait = (round_trip * 2).clamp(LEAST_WAIT, MOST_WAIT);
        let mut search = Search::new(self.least_packet(form), most);
        loop {
            let sizes = search.next(self.system_mtu());
            if sizes.is_empty() || self.clock.now() >= end {
                return Ok(search.found());
            }
            let answered = self.round(form, &sizes, wait)?;
            search.take(&sizes, &answered);
        }
    }

    /// Asks with each of these sizes twice. Returns those that were answered.
    fn round(&mut self, form: Form, sizes: &[u32], wait: Duration) -> io::Result<BTreeSet<u32>> {
        let mut answered = BTreeSet::new();
        for _ in 0..2 {
            for &size in sizes.iter().filter(|size| !answered.contains(*size)) {
                match self.send(form, size) {
                    Err(error) if !is_about_size(&error) => return Err(error),
                    _ => {}
                }
            }
            let mut end = self.clock.now() + wait;
            while answered.len() < sizes.len() && self.clock.now() < end {
                match self.receive(end.saturating_since(self.clock.now()))? {
                    Some(answer) if answer.form == form => {
                        answered.insert(answer.packet);
                        // The answers to all sizes come together.
                        end = end.min(self.clock.now() + wait / TOGETHER);
                    }
                    _ => {}
                }
            }
            // Larger packets that pass make smaller ones certain.
            if answered.contains(sizes.iter().max().unwrap_or(&0)) {
                break;
            }
        }
        Ok(answered)
    }

    fn micros(&self) -> u64 {
        u64::try_from((self.clock.now() - Instant::ZERO).as_micros()).unwrap_or(u64::MAX)
    }
}

fn is_about_size(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error())
}

/// The time from `asked` to `now`, microseconds of which the wire has room for the low 31 bits.
fn since(asked: u64, now: u64) -> Duration {
    Duration::from_micros(now.wrapping_sub(asked) & LOW_31_BITS)
}

/// The front of a question. Size and time come back in the answer.
fn question(form: Form, session: u64, packet: u32, micros: u64) -> Vec<u8> {
    let mut datagram = Vec::new();
    match form {
        Form::Plain => {
            let kind = Kind::Data { group: 1, acknowledge: Acknowledge::Each };
            Probe { kind, session, number: packet.into(), clock: micros }.encode(&mut datagram);
        }
        Form::Udt => {
            let handshake = Handshake {
                version: Handshake::VERSION,
                socket_type: SocketType::Stream,
                isn: SeqNo::new((micros & LOW_31_BITS) as u32),
                mss: 1_500,
                flow_window: 8_192,
                request: Request::Induction,
                socket_id: socket_id(session),
                cookie: 0,
                peer_ip: Ipv4Addr::UNSPECIFIED.into(),
                largest: Largest::Unsaid,
                wants_receipts: false,
            };
            let control = Control::Handshake(handshake);
            let packet = Packet::Control { timestamp: Timestamp::new(0), destination: SocketId::NONE, control };
            packet.encode(&mut datagram);
        }
        Form::Secure => {
            let header = Header { epoch: Epoch::INITIAL, number: 0, to: ConnectionName::NONE };
            datagram.extend_from_slice(&header.bytes());
            let client_id = [session.to_be_bytes(), micros.to_be_bytes()].concat();
            let from = ConnectionName::new(packet);
            InitialHeader { version: NO_VERSION, from, client_id: &client_id, token: &[] }.encode(&mut datagram);
        }
    }
    datagram
}

/// This port's socket of UDT4.
fn socket_id(session: u64) -> SocketId {
    // Zero is no socket.
    SocketId::new((session & LOW_31_BITS).max(1) as u32)
}

/// Form, size and time of the question that `datagram` answers. `None` if it answers none of this session. A form of one
/// size has none in its answer.
fn answer(datagram: &[u8], session: u64) -> Option<(Form, Option<u32>, u64)> {
    if let Ok(Packet::Control { control: Control::Handshake(answer), .. }) = Packet::decode(datagram) {
        let is_ours = answer.request == Request::Induction && answer.cookie != 0;
        let is_ours = is_ours && answer.socket_id == socket_id(session);
        return is_ours.then_some((Form::Udt, None, answer.isn.value().into()));
    }
    if let Ok(probe) = Probe::decode(datagram) {
        let is_ours = probe.session == session && matches!(probe.kind, Kind::Acknowledgement(_));
        return is_ours.then_some((Form::Plain, Some(u32::try_from(probe.number).ok()?), probe.clock));
    }
    let header = Header::decode(datagram).ok().filter(|header| header.epoch == Epoch::INITIAL)?;
    let (initial, _) = InitialHeader::decode(datagram).ok()?;
    let (id, micros) = initial.client_id.split_first_chunk()?;
    let micros = micros.try_into().ok().map(u64::from_be_bytes)?;
    (u64::from_be_bytes(*id) == session).then_some((Form::Secure, Some(header.to.value()), micros))
}

#[cfg(test)]
mod tests;
