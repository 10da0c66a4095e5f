//! A rendezvous: both sides call, and one of the two calls becomes the connection.
//!
//! ```text
//! side with the larger id                                side with the smaller id
//! Initial of its own call                             ─▶  answers as TLS server
//!   (ignored)                                        ◀─   Initial of its own call
//! Initial, Handshake of the server                   ◀─
//! Handshake, application data                         ─▶
//! ```
//!
//! The ids are the random bytes that name the two calls. Each side goes on with its own call until a connection is established,
//! and also answers a peer's call whose id is larger. So a forged call changes nothing for the calls of the two sides. Behind
//! the handshake each side knows the peer's id from transport parameters that TLS has authenticated, and the connection counts
//! only if the client's is the larger one. The two sides therefore never have the same role, and no side ever meets itself (ADR
//! 0022).

use farhaul_wire::secure::{Epoch, Header, InitialHeader};

use super::client_id::ClientId;
use super::exchange::Exchange;
use super::protector::Side;
use super::transport_parameters::peer_call;

/// What a side in a rendezvous knows beside its own call.
pub(super) struct Rendezvous {
    /// The id of its own call.
    own: ClientId,
    /// The handshake with a caller whose id is larger.
    answering: Option<Exchange>,
}

/// A call from the address of the peer, by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// This side's own one came back.
    Reflected,
    /// It is answered already.
    Answered,
    /// The peer must answer this side's call.
    Smaller,
    /// This side must answer it, and answers no other one.
    Larger,
    /// This side must answer it if it proves its address, and give up the other one for it.
    Another,
}

impl Rendezvous {
    pub(super) const fn new(own: ClientId) -> Self {
        Self { own, answering: None }
    }

    /// The id of this side's own call.
    pub(super) const fn own(&self) -> ClientId {
        self.own
    }

    /// What to do about a call with this id.
    pub(super) fn judge(&self, id: ClientId) -> Call {
        match &self.answering {
            _ if id == self.own => Call::Reflected,
            Some(answering) if answering.client_id() == id => Call::Answered,
            _ if id < self.own => Call::Smaller,
            Some(_) => Call::Another,
            None => Call::Larger,
        }
    }

    /// Answers a call from now on, and no other.
    pub(super) fn answer(&mut self, exchange: Exchange) {
        self.answering = Some(exchange);
    }

    pub(super) const fn answering(&self) -> Option<&Exchange> {
        self.answering.as_ref()
    }

    pub(super) const fn answering_mut(&mut self) -> Option<&mut Exchange> {
        self.answering.as_mut()
    }

    /// The call that is answered becomes the connection, or is given up.
    pub(super) const fn take_answering(&mut self) -> Option<Exchange> {
        self.answering.take()
    }

    /// Whether a packet of the handshake belongs to the call that is answered, and not to this side's own.
    pub(super) fn is_for_answering(&self, header: &Header, datagram: &[u8]) -> bool {
        let Some(answering) = &self.answering else { return false };
        match header.epoch {
            Epoch::INITIAL => InitialHeader::decode(datagram)
                .is_ok_and(|(initial, _)| initial.client_id == answering.client_id().bytes()),
            _ => answering.opens(header, datagram),
        }
    }

    /// Whether the transport parameters of the peer are those of the call that this side answers, as far as they are known.
    /// They are not authentic before the end of the handshake. But a call of which they are not is none of the peer, so it gets
    /// no answer: its forger has copied the messages of another call, perhaps of this side's own.
    pub(super) fn is_consistent(&self) -> bool {
        let Some(answering) = &self.answering else { return true };
        let Some(parameters) = answering.peer_parameters() else { return true };
        self.admits(Side::Server, answering.client_id(), parameters)
    }

    /// Whether the authenticated transport parameters are those of the peer of this rendezvous: `side` is this side's role, and
    /// `named` the id in the Initial packets.
    pub(super) fn admits(&self, side: Side, named: ClientId, parameters: &[u8]) -> bool {
        let Some(peer) = peer_call(parameters) else { return false };
        match side {
            Side::Client => peer < self.own,
            Side::Server => peer > self.own && peer == named,
        }
    }
}
