//! Finds the connection of a datagram by its connection id, and receives callers.
//!
//! ```text
//! Initial packet, connection id 0 ─▶ known client: its connection
//!                                    a rendezvous with its sender
//!                                    refused:      the same Close again, without state
//!                                    too many callers without proof: nothing
//!                                    many callers, of one network or in all: a Retry, without state
//!                                    with a proof: a place of its own, or that of another caller: see `callers`
//!                                    no room:      a Close, without state, after which it calls again
//!                                    no start of a ClientHello: nothing
//!                                    else:         a new connection that is being opened
//! ```

mod rendezvous;

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use farhaul_units::{Instant, SeqNo};
use farhaul_wire::secure::inner::DATAGRAM_OVERHEAD;
use farhaul_wire::secure::{
    CloseCode, ConnectionName, Epoch, Header, InitialHeader, MIN_INITIAL, VERSION, destination, is_protected,
};

use self::rendezvous::is_rendezvous;
use super::callers::{CallerPlace, Callers};
use super::carrier;
use super::client_id::ClientId;
use super::close_cache::{CachedClose, CloseCache};
use super::exchange::{self, Exchange, Progress};
use super::opening::SecureOpening;
use super::protector::{Provider, Side};
use super::sealed::Sealed;
use super::stateless_replies;
use super::token::Token;
use super::transport_parameters::{Service, inner_mss, parameters};
use super::unvalidated::UnvalidatedCallers;
use crate::config::{Config, Mode};
use crate::endpoint::Connections;
use crate::endpoint::Demultiplexer;
use crate::endpoint::connection::Connection;
use crate::endpoint::handshake::admission::{Admission, MAX_HALF_OPEN};
use crate::endpoint::handshake::{Offer, Room, mss_towards};
use crate::endpoint::protocol::Carried;
use crate::endpoint::replies::Replies;
use crate::entropy::Secrets;
use crate::error::ConnectError;
use crate::event::ConnectionId;
use crate::transport::{AddressPair, ConnectOptions};
use crate::udt;

/// Callers in the middle of their handshakes beyond which each address is validated first (attack A6): a quarter of those
/// that are permitted.
const MOST_UNVALIDATED: usize = 256;
/// And this part of the places that a listener has, if those are few.
const UNVALIDATED_PART: usize = 4;

/// The connections of an endpoint by the keys that find them, and its callers.
pub(crate) struct Router {
    provider: Box<dyn Provider>,
    /// The use of the connections: their own protocol, or one that they carry.
    serves: Service,
    /// The protocol of the connections inside; `None` if they are UDT's own.
    carries: Option<Box<dyn Carried>>,
    secrets: Secrets,
    listens: Option<Mode>,
    admission: Admission,
    unvalidated: UnvalidatedCallers,
    callers: Callers,
    by_name: BTreeMap<u64, u32>,
    /// Accepted connections by the caller's address and random bytes, so that its repeated packets find them.
    by_client: BTreeMap<(SocketAddr, ClientId), u32>,
    /// Rendezvous in progress, by address.
    rendezvous: BTreeMap<SocketAddr, u32>,
    replies: Replies<Vec<u8>>,
    close_cache: CloseCache,
}

impl Router {
    /// Without connections. `key` must be secret.
    pub(super) fn new(provider: Box<dyn Provider>, key: [u8; 16]) -> Self {
        Self {
            provider,
            serves: Service::Protocol { name: udt::NAME, answers: false },
            carries: None,
            secrets: Secrets::new(key),
            listens: None,
            admission: Admission::new(key),
            unvalidated: UnvalidatedCallers::default(),
            callers: Callers::default(),
            by_name: BTreeMap::new(),
            by_client: BTreeMap::new(),
            rendezvous: BTreeMap::new(),
            replies: Replies::new(),
            close_cache: CloseCache::default(),
        }
    }

    /// The same for connections that carry those of another protocol.
    pub(super) fn carrying(mut self, protocol: &'static str, carried: Box<dyn Carried>) -> Self {
        self.serves = Service::Protocol { name: protocol, answers: false };
        self.carries = Some(carried);
        self
    }

    fn connect_for(
        &mut self,
        connections: &mut Connections<'_>,
        now: Instant,
        peer: SocketAddr,
        (service, options): (Service, ConnectOptions),
    ) -> Result<ConnectionId, ConnectError> {
        let ConnectOptions { mode, rendezvous } = options;
        if self.carries.is_some() && options != ConnectOptions::default() {
            return Err(ConnectError::StreamsOnly);
        }
        if rendezvous && self.rendezvous.contains_key(&peer) {
            return Err(ConnectError::RendezvousUnderWay);
        }
        connections.check_room()?;
        let client_id = ClientId::draw(&mut self.secrets);
        let offer = self.offer(connections.config, peer, mode);
        let call = rendezvous.then_some(client_id);
        let tls = self.provider.call(peer, parameters(service, &offer, call)).map_err(|_| ConnectError::NoTrust)?;
        let keys = self.provider.initial(client_id.bytes(), Side::Client);
        let names = (offer.socket_id, ConnectionName::NONE);
        let exchange = Exchange::new(Side::Client, tls, keys, client_id, names, true);
        let key = self.secrets.draw_bytes();
        let opening = SecureOpening::new(exchange, (service, offer), (Side::Client, key), connections.config, now);
        let opening = if rendezvous { opening.in_rendezvous(connections.config) } else { opening };
        let carries = self.carries.as_deref_mut().filter(|_| service != Service::Measured);
        let mss = carried_mss(connections.config);
        let carried =
            carries.map(|carried| (carried.call(peer, mss, connections.config, now), carried.needs_channel()));
        let opening = opening.carrying(carried);
        Ok(self.enter(match rendezvous {
            true => connections.meet(now, offer.name(), opening),
            false => connections.open(now, offer.name(), opening),
        }))
    }

    /// The endpoint has a new connection.
    fn enter(&mut self, connection: &Connection) -> ConnectionId {
        let id = connection.id();
        self.by_name.insert(connection.key(), id.slot);
        if let Some(client) = client(connection) {
            self.by_client.insert(client, id.slot);
        }
        if is_rendezvous(connection) {
            self.rendezvous.insert(connection.peer(), id.slot);
        }
        id
    }

    /// This side's contribution to a connection, with a new name and first number.
    fn offer(&mut self, config: &Config, peer: SocketAddr, mode: Mode) -> Offer {
        let carrier = self.carries.as_ref().map(|_| carrier::settings(config));
        let config = carrier.as_ref().unwrap_or(config);
        let isn = config.initial_seq.unwrap_or_else(|| SeqNo::new(self.secrets.draw()));
        Offer {
            mode,
            isn,
            mss: inner_mss(mss_towards(peer.ip(), config.mss), mode),
            largest: config.largest_mss.map(|largest| inner_mss(mss_towards(peer.ip(), largest), mode)),
            wants_receipts: config.supervised(0).wants_deliveries(),
            is_ours: true,
            flow_window: config.recv_window(),
            max_flow_window: config.max_flow_window,
            socket_id: self.new_name(),
            peer,
        }
    }

    fn new_name(&mut self) -> ConnectionName {
        loop {
            let name = ConnectionName::new(self.secrets.draw());
            if !name.is_none() && !self.by_name.contains_key(&name.value().into()) {
                return name;
            }
        }
    }

    // ---- callers ----

    /// An Initial packet of a client without a connection here.
    fn on_caller(
        &mut self,
        connections: &mut Connections<'_>,
        now: Instant,
        from: AddressPair,
        header: &Header,
        datagram: &mut [u8],
    ) {
        let Ok((initial, head_len)) = InitialHeader::decode(datagram) else { return connections.count_invalid() };
        let Some(client_id) = ClientId::new(initial.client_id) else { return connections.count_invalid() };
        if let Some(&slot) = self.by_client.get(&(from.peer, client_id)) {
            return connections.deliver_alone(slot, now, from, datagram);
        }
        if let Some(&slot) = self.rendezvous.get(&from.peer) {
            return self.on_call_in_rendezvous(connections, slot, (now, from), (header, client_id), datagram);
        }
        if let Some(close) = self.close_cache.find(now, from.peer, |close| close.client_id == client_id) {
            let answer = close.for_packet(datagram.len());
            return self.repeat(from, answer);
        }
        let Some(mode) = self.listens else { return };
        // A short one proves nothing about the path, and its answer would be larger (attack A11).
        if datagram.len() < MIN_INITIAL {
            return connections.count_invalid();
        }
        let validated = self.is_validated(&Token { from: from.peer, client_id, made: now }, &initial, Token::admits);
        if !validated && !self.unvalidated.take(now) {
            return;
        }
        if initial.version != VERSION {
            return self.refuse(from, &initial, (CloseCode::Version, "another version"));
        }
        let held = connections.held();
        // Forged callers of a network must not keep out those that are there, so a proof comes before any place.
        let many = held.half_open >= most_unvalidated(connections.config);
        let room = self.admission.room(from.peer.ip(), now, held, connections.config);
        let place = self.callers.place(from.peer.ip(), now, places(connections.config), room == Room::None);
        if !validated && (room != Room::Free || many || place != CallerPlace::Free) {
            return self.ask_for_proof(from, &initial, client_id, now);
        }
        let keys = self.provider.initial(client_id.bytes(), Side::Server);
        // TLS is expensive, and a damaged packet must cost none.
        let Some(frames) = exchange::opened(&keys, header, datagram, head_len) else {
            return connections.count_invalid();
        };
        if !exchange::starts(&frames) {
            // The rest of a ClientHello whose start is late or lost, perhaps. Its client sends both again.
            return;
        }
        let evicted = match place {
            CallerPlace::Free => None,
            CallerPlace::Of(slot) => Some(slot),
            CallerPlace::Later if room == Room::None => {
                return self.refuse(from, &initial, (CloseCode::Busy, "no room"));
            }
            CallerPlace::Later => return,
        };
        let offer = self.offer(connections.config, from.peer, mode);
        let names = (offer.socket_id, initial.from);
        let Ok(tls) = self.provider.answer(from.peer, parameters(self.serves, &offer, None)) else { return };
        let mut exchange = Exchange::new(Side::Server, tls, keys, client_id, names, validated);
        match exchange.on_packet(header, datagram, now) {
            Progress::Wait if exchange.is_with_rendezvous() => return connections.count_invalid(),
            Progress::Wait => {}
            Progress::Failed(failure) => {
                let Ok((initial, _)) = InitialHeader::decode(datagram) else { return };
                return self.refuse(from, &initial, (failure.code, "the handshake failed"));
            }
            Progress::Invalid | Progress::Seen | Progress::Closed(..) | Progress::Complete | Progress::Retry(_) => {
                return connections.count_invalid();
            }
        }
        if !validated {
            self.admission.on_accepted(from.peer.ip(), now);
        }
        let key = self.secrets.draw_bytes();
        let opening = SecureOpening::new(exchange, (self.serves, offer), (Side::Server, key), connections.config, now);
        let mss = carried_mss(connections.config);
        let carried = self.carries.as_deref_mut();
        let carried =
            carried.map(|carried| (carried.answer(from.peer, mss, connections.config, now), carried.needs_channel()));
        let opening = opening.carrying(carried).asked_at(from.local);
        if let Some(evicted) = evicted.and_then(|slot| connections.evict(slot)) {
            self.on_forgotten(&evicted);
        }
        let id = self.enter(connections.answer_datagram(now, (offer.name(), from.local), opening));
        self.callers.enter(from.peer.ip(), id.slot, now);
    }

    /// Whether a caller shows a token of this endpoint that its note `admits`.
    fn is_validated(&self, note: &Token, initial: &InitialHeader<'_>, admits: impl Fn(&Token, &[u8]) -> bool) -> bool {
        let content = (!initial.token.is_empty()).then(|| self.provider.open_token(initial.token)).flatten();
        content.is_some_and(|content| admits(note, &content))
    }

    fn ask_for_proof(&mut self, from: AddressPair, initial: &InitialHeader<'_>, client_id: ClientId, now: Instant) {
        let keys = self.provider.initial(client_id.bytes(), Side::Server);
        let token = self.provider.seal_token(&Token { from: from.peer, client_id, made: now }.content());
        let mut reply = Vec::new();
        stateless_replies::retry(initial, &keys, &token, &mut reply);
        self.replies.push(from, reply);
    }

    fn refuse(&mut self, from: AddressPair, initial: &InitialHeader<'_>, why: (CloseCode, &str)) {
        let keys = self.provider.initial(initial.client_id, Side::Server);
        let mut reply = Vec::new();
        stateless_replies::close(initial, &keys, why, &mut reply);
        self.replies.push(from, reply);
    }

    fn repeat(&mut self, to: AddressPair, close: Option<Vec<u8>>) {
        if let Some(packet) = close {
            self.replies.push(to, packet);
        }
    }
}

impl Demultiplexer for Router {
    fn recognizes(&self, _from: SocketAddr, datagram: &[u8]) -> bool {
        is_protected(datagram)
    }

    fn key(&self, _from: SocketAddr, datagram: &[u8]) -> Option<u64> {
        destination(datagram).filter(|id| !id.is_none()).map(|id| id.value().into())
    }

    fn find(&self, _from: AddressPair, key: u64) -> Option<u32> {
        self.by_name.get(&key).copied()
    }

    fn on_unaddressed(
        &mut self,
        connections: &mut Connections<'_>,
        now: Instant,
        from: AddressPair,
        datagram: &mut [u8],
    ) {
        match Header::decode(datagram) {
            Ok(header) if header.epoch == Epoch::INITIAL && header.to.is_none() => {
                self.on_caller(connections, now, from, &header, datagram);
            }
            _ => connections.count_invalid(),
        }
    }

    /// A client that was refused may go on, because it does not know.
    fn on_unknown(&mut self, connections: &mut Connections<'_>, now: Instant, from: AddressPair, datagram: &mut [u8]) {
        connections.count_invalid();
        if let Ok(header) = Header::decode(datagram) {
            let close = self.close_cache.find(now, from.peer, |close| close.name == header.to);
            let answer = close.and_then(|close| close.for_packet(datagram.len()));
            self.repeat(from, answer);
        }
    }

    fn connect(
        &mut self,
        connections: &mut Connections<'_>,
        now: Instant,
        peer: SocketAddr,
        options: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError> {
        self.connect_for(connections, now, peer, (self.serves, options))
    }

    fn listen(&mut self, mode: Option<Mode>) -> Result<(), ConnectError> {
        if self.carries.is_some() && mode == Some(Mode::Message) {
            return Err(ConnectError::StreamsOnly);
        }
        self.listens = mode;
        Ok(())
    }

    fn admit_datagram_callers(&mut self, admits: bool) {
        if let Service::Protocol { answers, .. } = &mut self.serves {
            *answers = admits;
        }
    }

    fn connect_for_datagrams(
        &mut self,
        connections: &mut Connections<'_>,
        now: Instant,
        peer: SocketAddr,
    ) -> Result<ConnectionId, ConnectError> {
        self.connect_for(connections, now, peer, (Service::Measured, ConnectOptions::default()))
    }

    fn is_plain(&self) -> bool {
        false
    }

    fn on_changed(&mut self, connection: &Connection) {
        if !self.callers.is_empty() && (connection.is_closed() || connection.is_established()) {
            self.callers.leave(connection.id().slot);
        }
        if !self.rendezvous.is_empty() && !is_rendezvous(connection) {
            self.end_rendezvous(connection);
        }
    }

    fn on_forgotten(&mut self, connection: &Connection) {
        self.callers.leave(connection.id().slot);
        self.by_name.remove(&connection.key());
        self.end_rendezvous(connection);
        let peer = connection.peer();
        if let Some((_, client_id)) = client(connection) {
            self.by_client.remove(&(peer, client_id));
        }
        let Some(opening) = connection.opening_as::<SecureOpening>() else { return };
        if let Some((packet, sent)) = opening.close_packet() {
            let (client_id, name) = (opening.client_id(), opening.offer().socket_id);
            self.close_cache.keep(CachedClose { peer, name, client_id, packet: packet.clone(), sent: *sent });
        }
    }

    fn on_caller_heard(&mut self, caller: SocketAddr) {
        let ip: IpAddr = caller.ip();
        self.admission.on_heard(ip);
    }

    fn poll_reply(&mut self, out: &mut Vec<u8>) -> Option<AddressPair> {
        let (to, reply) = self.replies.pop()?;
        out.extend_from_slice(&reply);
        Some(to)
    }

    fn has_reply(&self) -> bool {
        !self.replies.is_empty()
    }
}

/// The largest packet of a connection inside a carrier.
const fn carried_mss(config: &Config) -> u32 {
    config.mss.saturating_sub(DATAGRAM_OVERHEAD as u32)
}

/// Places for callers in the middle of their handshakes.
fn places(config: &Config) -> usize {
    config.backlog.min(config.max_connections).min(MAX_HALF_OPEN)
}

/// Callers in the middle of their handshakes that need no proof.
fn most_unvalidated(config: &Config) -> usize {
    MOST_UNVALIDATED.min(places(config) / UNVALIDATED_PART)
}

/// The caller of a connection that was accepted.
fn client(connection: &Connection) -> Option<(SocketAddr, ClientId)> {
    if !connection.is_accepted() {
        return None;
    }
    let opening = connection.opening_as().map(SecureOpening::client_id);
    let client_id = opening.or_else(|| connection.established_as().map(Sealed::client_id))?;
    Some((connection.peer(), client_id))
}
