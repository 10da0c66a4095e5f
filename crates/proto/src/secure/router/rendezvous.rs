//! Rendezvous of an endpoint: calls that arrive from the address of a peer that this side calls.

use farhaul_units::Instant;
use farhaul_wire::secure::{CloseCode, Header, InitialHeader, MIN_INITIAL, VERSION};

use super::Router;
use crate::endpoint::Connections;
use crate::endpoint::connection::Connection;
use crate::secure::client_id::ClientId;
use crate::secure::exchange::{self, Exchange, Progress};
use crate::secure::opening::SecureOpening;
use crate::secure::protector::Side;
use crate::secure::rendezvous::Call;
use crate::secure::token::Token;
use crate::secure::transport_parameters::parameters;
use crate::transport::AddressPair;

impl Router {
    /// A call of the peer of a rendezvous, or of somebody in its name. The calls of both sides go on as they are.
    pub(super) fn on_call_in_rendezvous(
        &mut self,
        connections: &mut Connections<'_>,
        slot: u32,
        (now, from): (Instant, AddressPair),
        (header, client_id): (&Header, ClientId),
        datagram: &mut [u8],
    ) {
        let Ok((initial, head_len)) = InitialHeader::decode(datagram) else { return connections.count_invalid() };
        let Some(opening) = connections.at(slot).and_then(|connection| connection.opening_as::<SecureOpening>()) else {
            return;
        };
        let (offer, Some(rendezvous)) = (*opening.offer(), opening.rendezvous()) else { return };
        let (own, judged) = (rendezvous.own(), rendezvous.judge(client_id));
        if judged == Call::Answered {
            return connections.deliver_alone(slot, now, from, datagram);
        }
        if judged == Call::Reflected || datagram.len() < MIN_INITIAL {
            return connections.count_invalid();
        }
        // A caller keeps the token of its first answer for as long as a rendezvous may last.
        let lifetime = connections.config.udt.rendezvous_timeout;
        let token = Token { from: from.peer, client_id, made: now };
        let admits = |token: &Token, content: &[u8]| token.admits_within(content, lifetime);
        let validated = self.is_validated(&token, &initial, admits);
        if !validated && !self.unvalidated.take(now) {
            return;
        }
        if initial.version != VERSION {
            return self.refuse(from, &initial, (CloseCode::Version, "another version"));
        }
        let keys = self.provider.initial(client_id.bytes(), Side::Server);
        if !exchange::is_sealed_with(&keys, header, datagram, head_len) {
            return connections.count_invalid();
        }
        // Somebody else may have sent it, but the peer calls again, and after the handshake it proves its path.
        connections.note_call(slot, from);
        if judged == Call::Smaller {
            return connections.on_opening(slot, |opening: &mut SecureOpening| opening.hurry(now));
        }
        if judged == Call::Another && !validated {
            return self.ask_for_proof(from, &initial, client_id, now);
        }
        let Ok(tls) = self.provider.meet(from.peer, parameters(self.serves, &offer, Some(own))) else { return };
        let names = (offer.socket_id, initial.from);
        let mut exchange = Exchange::new(Side::Server, tls, keys, client_id, names, validated);
        match exchange.on_packet(header, datagram, now) {
            Progress::Wait => connections.on_opening(slot, |opening: &mut SecureOpening| opening.answer(exchange)),
            Progress::Failed(failure) => {
                let Ok((initial, _)) = InitialHeader::decode(datagram) else { return };
                self.refuse(from, &initial, (failure.code, "the handshake failed"));
            }
            Progress::Invalid | Progress::Seen | Progress::Closed(..) | Progress::Complete | Progress::Retry(_) => {
                connections.count_invalid();
            }
        }
    }

    /// The address is free for another rendezvous.
    pub(super) fn end_rendezvous(&mut self, connection: &Connection) {
        let peer = connection.peer();
        if self.rendezvous.get(&peer) == Some(&connection.id().slot) {
            self.rendezvous.remove(&peer);
        }
    }
}

/// Whether it is a rendezvous in progress.
pub(super) fn is_rendezvous(connection: &Connection) -> bool {
    !connection.is_closed()
        && connection.opening_as().is_some_and(|opening: &SecureOpening| opening.rendezvous().is_some())
}
