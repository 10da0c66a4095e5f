//! Measured streams inside envelopes: beside the connections of an endpoint, and in connections that have nothing else.
//!
//! ```text
//! datagram in an envelope ─▶ question ─▶ the responder of this side, if it answers
//!                            answer   ─▶ the stream of this side, if it has one
//! connection for streams alone: the application never hears of it, and its own stream carries nothing
//! ```
//!
//! The datagrams are those of [`probe`](crate::probe), as they are in plain. Only a peer whose key was admitted can seal
//! one. The responder sees an [address](super::address) for each connection, so streams of two peers stay apart.

use core::net::SocketAddr;

use farhaul_units::Instant;
use farhaul_wire::probe::{is_probe, is_question};
use farhaul_wire::secure::destination;
use farhaul_wire::secure::inner::DATAGRAM_OVERHEAD;

use super::address;
use super::around::MAX_TRAIN;
use super::mail::Mail;
use super::router::Router;
use super::sealed::Sealed;
use crate::error::ConnectError;
use crate::event::{ConnectionId, Event};
use crate::shell::connection::Connection;
use crate::shell::endpoint::{Endpoint, check_address};
use crate::transport::Streams;

/// Connections for measured streams alone that an endpoint holds: as many as a responder remembers streams. Further ones
/// are ended.
const MOST_CONNECTIONS: usize = 256;
/// Bytes of datagrams that wait for the host. It takes them after each receive call, which has half a megabyte.
const MOST_WAITING: usize = 4 << 20;

/// A datagram of a measured stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It asks for an answer.
    Question,
    /// It answers a question.
    Answer,
}

/// The kind of a datagram; `None` if it is of no measured stream.
fn kind_of(datagram: &[u8]) -> Option<Kind> {
    match is_probe(datagram) {
        true if is_question(datagram) => Some(Kind::Question),
        true => Some(Kind::Answer),
        false => None,
    }
}

/// The datagrams that wait for the host, and the connections that have nothing else.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// `None` while nobody wants them.
    questions: Option<Box<Inbox>>,
    answers: Option<Box<Inbox>>,
    /// Connections of callers for measured streams alone, and some that are forgotten.
    connections: Vec<ConnectionId>,
    mail: Mail,
    /// The time of the last input.
    now: Instant,
}

#[derive(Debug, Default)]
struct Inbox {
    bytes: Vec<u8>,
    runs: Vec<Run>,
}

/// Datagrams of a measured stream that came through one connection in one receive call.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// When they arrived.
    pub arrived: Instant,
    /// The sender's [address inside](Endpoint::address_inside).
    pub from: SocketAddr,
    /// The address from which their envelopes came.
    pub peer: SocketAddr,
    /// The datagrams back to back.
    pub bytes: &'a [u8],
    /// Bytes of each; the last may be shorter.
    pub stride: usize,
}

impl<'a> Arrival<'a> {
    /// The datagrams one by one.
    pub fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.bytes.chunks(self.stride.max(1))
    }
}

/// An arrival among others.
#[derive(Clone, Copy, Debug)]
struct Run {
    origin: Origin,
    end: usize,
    stride: usize,
}

/// The time of an arrival, the sender's address inside, and the one from which the envelopes came.
pub(super) type Origin = (Instant, SocketAddr, SocketAddr);

impl Inbox {
    fn put(&mut self, origin: Origin, bytes: &[u8], stride: usize) {
        if self.bytes.len() + bytes.len() <= MOST_WAITING {
            self.bytes.extend_from_slice(bytes);
            self.runs.push(Run { origin, end: self.bytes.len(), stride });
        }
    }

    fn deliver(&mut self, to: &mut dyn FnMut(&Arrival<'_>)) {
        let mut begin = 0;
        for Run { origin: (arrived, from, peer), end, stride } in self.runs.drain(..) {
            to(&Arrival { arrived, from, peer, bytes: &self.bytes[begin..end], stride });
            begin = end;
        }
        self.bytes.clear();
    }
}

impl Beside {
    /// Whether somebody wants such datagrams.
    pub(super) const fn is_wanted(&self) -> bool {
        self.questions.is_some() || self.answers.is_some()
    }

    /// Keeps the measured datagrams among those that came through one connection. Passes on all others.
    pub(super) fn sort(&mut self, origin: Origin, bytes: &mut [u8], stride: usize, mut others: impl FnMut(&mut [u8])) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let kind = kind_of(rest);
            let same = rest.chunks(stride).take_while(|datagram| kind_of(datagram) == kind).count();
            let (run, behind) = rest.split_at_mut(rest.len().min(same.max(1) * stride));
            match kind {
                None => others(run),
                Some(kind) => {
                    if let Some(inbox) = self.inbox(kind) {
                        inbox.put(origin, run, stride);
                    }
                }
            }
            rest = behind;
        }
    }

    fn inbox(&mut self, kind: Kind) -> Option<&mut Inbox> {
        match kind {
            Kind::Question => self.questions.as_deref_mut(),
            Kind::Answer => self.answers.as_deref_mut(),
        }
    }
}

/// Bytes of the first datagrams that have one name.
pub(super) fn first_of_one_name(bytes: &[u8], stride: usize) -> usize {
    let name = destination(bytes);
    let same = bytes.chunks(stride).take_while(|datagram| destination(datagram) == name).count();
    bytes.len().min(same.max(1) * stride)
}

/// Measured streams. Their hosts are drivers and [`SharedChannel`](crate::SharedChannel).
impl Endpoint {
    /// Keeps questions of measured streams from now on, until the host [takes](Self::take) them. Callers for such streams
    /// alone are admitted while the endpoint listens for streams.
    pub fn answer(&mut self) {
        if let Some((router, _)) = self.first_protocol_as::<Router>() {
            router.answer_measured();
        }
        self.beside.questions.get_or_insert_default();
    }

    /// Keeps answers to a stream of this side from now on, until the host [takes](Self::take) them; or no more.
    pub fn hear_answers(&mut self, wanted: bool) {
        match wanted {
            true => drop(self.beside.answers.get_or_insert_default()),
            false => self.beside.answers = None,
        }
    }

    /// Opens a connection for measured streams alone to a peer of any protocol that [answers](Self::answer) them.
    ///
    /// # Errors
    /// As for [`Streams::connect`].
    pub fn connect_measured(&mut self, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        check_address(peer)?;
        let (router, mut connections) = self.first_protocol_as::<Router>().ok_or(ConnectError::StreamsOnly)?;
        router.connect_measured(&mut connections, now, peer)
    }

    /// Appends the envelopes of datagrams to `out`: of `size` bytes each, the last may be shorter. `to` is an
    /// [address inside](Endpoint::address_inside). Returns the destination and the length of an envelope. `None` if
    /// the datagrams are lost: the connection is over, or no key may be used now.
    pub fn enclose(
        &mut self,
        now: Instant,
        to: SocketAddr,
        (datagrams, size): (&[u8], usize),
        out: &mut Vec<u8>,
    ) -> Option<(SocketAddr, usize)> {
        let id = address::tunnel(to)?;
        if self.sealed(id)?.carry(now, (datagrams, size), MAX_TRAIN, out) == 0 {
            self.touch(id);
            return None;
        }
        Some((self.peer(id)?, size + DATAGRAM_OVERHEAD))
    }

    /// Passes on the datagrams of a kind that arrived since the last call.
    pub fn take(&mut self, kind: Kind, to: &mut dyn FnMut(&Arrival<'_>)) {
        if let Some(inbox) = self.beside.inbox(kind) {
            inbox.deliver(to);
        }
    }

    /// Datagrams to connections without anything else inside.
    pub(crate) fn receive_beside(
        &mut self,
        now: Instant,
        arrived: Instant,
        from: SocketAddr,
        bytes: &mut [u8],
        stride: usize,
    ) {
        if !self.beside.is_wanted() {
            return self.receive(now, arrived, from, bytes, stride);
        }
        let stride = stride.max(1);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (run, others) = rest.split_at_mut(first_of_one_name(rest, stride));
            let mail = std::mem::take(&mut self.beside.mail);
            let (id, mail) = self.receive_mail(mail, (now, arrived, from), run, stride);
            self.beside.mail = mail;
            // This side has ended a connection that is leaving, whatever its peer still sends.
            let heard = id.filter(|id| !self.is_leaving(*id));
            if let Some(inside) = heard.and_then(|id| self.address_inside(id)) {
                let mut mail = std::mem::take(&mut self.beside.mail);
                mail.deliver(|bytes, stride| self.beside.sort((arrived, inside, from), bytes, stride, |_| ()));
                self.beside.mail = mail;
            } else {
                self.beside.mail.deliver(|_, _| ());
            }
            rest = others;
        }
    }

    /// Datagrams to one name. Returns its connection if that goes on, and `mail` with the datagrams of another protocol
    /// inside. A connection that ended takes them along.
    pub(super) fn receive_mail(
        &mut self,
        mail: Mail,
        (now, arrived, from): (Instant, Instant, SocketAddr),
        bytes: &mut [u8],
        stride: usize,
    ) -> (Option<ConnectionId>, Mail) {
        self.beside.now = now;
        let id = self.addressee(from, bytes);
        let mut mail = Some(mail);
        if let Some(sealed) = id.and_then(|id| self.sealed(id)) {
            sealed.lend_mail(mail.take().unwrap_or_default());
        }
        self.receive(now, arrived, from, bytes, stride);
        let returned = id.and_then(|id| self.sealed(id)).and_then(Sealed::take_mail);
        let goes_on = id.filter(|_| returned.is_some());
        (goes_on, returned.or(mail).unwrap_or_default())
    }

    /// The address by which datagrams of measured streams reach the peer of a connection inside its envelope. `None`
    /// without an envelope.
    pub fn address_inside(&self, id: ConnectionId) -> Option<SocketAddr> {
        if self.is_plain(id) { None } else { Some(address::behind(id, self.origin(id)?.0)) }
    }

    /// The established connection of a datagram.
    fn addressee(&self, from: SocketAddr, datagram: &[u8]) -> Option<ConnectionId> {
        let slot = self.find(from, datagram)?;
        let connection = self.at(slot)?;
        connection.is_established().then(|| connection.id())
    }

    /// The envelope of an established connection that is not over.
    pub(super) fn sealed(&mut self, id: ConnectionId) -> Option<&mut Sealed> {
        self.get_mut(id).filter(|connection| !connection.is_over())?.established_as_mut()
    }

    /// Where the peer was when the connection began, and whether it called.
    pub(super) fn origin(&self, id: ConnectionId) -> Option<(SocketAddr, bool)> {
        let connection = self.get(id)?;
        Some((connection.peer(), connection.is_accepted()))
    }

    /// The deadline of a connection may have changed.
    pub(super) fn touch(&mut self, id: ConnectionId) {
        let _ = self.command(id, |_| ());
    }

    /// Whether a connection of a caller has measured streams alone.
    pub(super) fn is_measured(&self, id: ConnectionId) -> bool {
        let accepted = self.get(id).filter(|connection| connection.is_accepted());
        accepted.and_then(Connection::established_as).is_some_and(Sealed::is_measured)
    }

    /// The next event of a connection that the application knows.
    pub(crate) fn next_event_for_application(&mut self) -> Option<Event> {
        loop {
            let event = self.next_event()?;
            let id = event.connection();
            match event {
                Event::Accepted(_) if self.is_measured(id) => self.take_in(id),
                // It is over. Or it carries data, which nobody reads.
                _ if self.beside.connections.contains(&id) => self.release(self.beside.now, id),
                _ => return Some(event),
            }
        }
    }

    /// A caller for measured streams alone was admitted.
    fn take_in(&mut self, id: ConnectionId) {
        let mut connections = std::mem::take(&mut self.beside.connections);
        connections.retain(|held| self.get(*held).is_some());
        connections.push(id);
        self.beside.connections = connections;
        self.claim(id);
        if self.beside.connections.len() > MOST_CONNECTIONS {
            self.release(self.beside.now, id);
        }
    }
}

#[cfg(test)]
mod tests;
