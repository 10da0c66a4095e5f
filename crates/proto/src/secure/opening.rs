//! A secure connection until it is established, at the calling and at the called side.

use core::net::IpAddr;

use farhaul_units::{Duration, Instant};
use farhaul_wire::secure::{CloseCode, Epoch, Header};

use super::carrier;
use super::client_id::ClientId;
use super::encapsulated::Encapsulated;
use super::exchange::{Exchange, Progress};
use super::key_schedule::KeySchedule;
use super::paths::Paths;
use super::protector::{Failure, Side};
use super::rendezvous::Rendezvous;
use super::sealed::Sealed;
use super::transport_parameters::{ParametersRefused, Service, agree, data_form, peer_call};
use crate::config::Config;
use crate::endpoint::handshake::Offer;
use crate::endpoint::protocol::{self, Established, Setup, Step};
use crate::error::{ConnectionLost, PeerIncompatible, SecurityFault};
use crate::transport::{AddressPair, earliest};
use crate::udt;

/// A handshake, and what follows from it.
pub(crate) struct SecureOpening {
    /// `None` once the connection is established.
    exchange: Option<Exchange>,
    client_id: ClientId,
    service: Service,
    offer: Offer,
    side: Side,
    /// The address of this side that its caller asked.
    asked: Option<IpAddr>,
    /// The connection that it will carry, and whether that has a channel.
    carried: Option<(Box<dyn protocol::Opening>, bool)>,
    /// In a rendezvous, what is known beside this side's own call.
    rendezvous: Option<Rendezvous>,
    /// Makes challenges of the peer's address that nobody guesses.
    key: [u8; 16],
    opened: Instant,
    give_up: Instant,
    timeout: Duration,
    /// The peer has said that it has no room. Anybody who knows the keys of Initial packets may have said so.
    is_busy: bool,
    /// The peer has answered something.
    is_heard: bool,
    /// Failed, and the peer must still be told.
    ends: bool,
    /// The packet that told it, and when that left.
    close_packet: Option<(Vec<u8>, Instant)>,
}

impl SecureOpening {
    pub(super) fn new(
        exchange: Exchange,
        (service, offer): (Service, Offer),
        (side, key): (Side, [u8; 16]),
        config: &Config,
        now: Instant,
    ) -> Self {
        let timeout = config.connect_timeout;
        Self {
            client_id: exchange.client_id(),
            exchange: Some(exchange),
            service,
            offer,
            side,
            asked: None,
            carried: None,
            rendezvous: None,
            key,
            opened: now,
            give_up: now + timeout,
            timeout,
            is_busy: false,
            is_heard: false,
            ends: false,
            close_packet: None,
        }
    }

    /// The same of a connection that carries another one.
    pub(super) fn carrying(mut self, carried: Option<(Box<dyn protocol::Opening>, bool)>) -> Self {
        self.carried = carried;
        self
    }

    /// The same of a side that was called at an address of its own.
    pub(super) const fn asked_at(mut self, local: Option<IpAddr>) -> Self {
        self.asked = local;
        self
    }

    /// The same of a side that calls in a rendezvous.
    pub(super) fn in_rendezvous(mut self, config: &Config) -> Self {
        self.timeout = config.udt.rendezvous_timeout;
        self.give_up = self.opened + self.timeout;
        self.rendezvous = Some(Rendezvous::new(self.client_id));
        self
    }

    /// What is known in a rendezvous beside this side's own call.
    pub(super) const fn rendezvous(&self) -> Option<&Rendezvous> {
        self.rendezvous.as_ref()
    }

    /// The transport parameters of both sides' calls are those of this opening.
    pub(super) const fn offer(&self) -> &Offer {
        &self.offer
    }

    /// Answers the peer's call as well from now on.
    pub(super) fn answer(&mut self, exchange: Exchange) {
        if let Some(rendezvous) = &mut self.rendezvous {
            rendezvous.answer(exchange);
        }
        self.drop_inconsistent();
    }

    /// The peer is there, and must answer this side's call.
    pub(super) fn hurry(&mut self, now: Instant) {
        if let Some(exchange) = &mut self.exchange {
            exchange.hurry(now);
        }
    }

    /// The client's random bytes.
    pub(super) fn client_id(&self) -> ClientId {
        self.client_id
    }

    /// The packet that told a client of its failure here, and when that left.
    pub(super) const fn close_packet(&self) -> Option<&(Vec<u8>, Instant)> {
        self.close_packet.as_ref()
    }

    fn establish(&mut self, setup: Setup<'_>) -> Step<Box<dyn Established>> {
        let now = setup.now;
        let Some(exchange) = &mut self.exchange else { return Step::Wait };
        let Some((keys, generations)) = exchange.take_keys() else { return Step::Wait };
        let fits = |parameters: &[u8]| match &self.rendezvous {
            Some(rendezvous) => rendezvous.admits(self.side, self.client_id, parameters),
            None => peer_call(parameters).is_none(),
        };
        if exchange.peer_parameters().is_some_and(|parameters| !fits(parameters)) {
            exchange.give_up(CloseCode::TransportParameters, "one side alone is in a rendezvous");
            return self.fail(ConnectionLost::PeerIncompatible(PeerIncompatible::Rendezvous));
        }
        let agreed = exchange.peer_parameters().map(|parameters| agree(self.service, &self.offer, parameters));
        let (mut agreed, is_measured) = match agreed {
            Some(Ok(agreed)) => agreed,
            Some(Err(refused)) => {
                exchange.give_up(CloseCode::TransportParameters, "the terms do not fit");
                return self.fail(lost_by_parameters(&refused));
            }
            None => {
                exchange.give_up(CloseCode::Violation, "no terms");
                return self.fail(ConnectionLost::Insecure(SecurityFault::Handshake));
            }
        };
        agreed.round_trip = exchange.round_trip();
        let key_schedule = KeySchedule::new((exchange.peer(), data_form(self.offer.mode)), keys, generations, now);
        let called = self.side == Side::Server;
        let carrier = self.carried.as_ref().map(|_| carrier::settings(setup.config));
        let setup = Setup { config: carrier.as_ref().unwrap_or(setup.config), ..setup };
        let inner = udt::UdtConnection::enclosed(agreed, self.offer, called, self.opened, setup);
        let Some(exchange) = self.exchange.take() else { return Step::Wait };
        let between = AddressPair { peer: self.offer.peer, local: self.asked };
        let paths = Paths::new(between, self.key);
        let mut sealed = Sealed::new(inner, (key_schedule, paths), exchange, self.side, now);
        sealed.note_datagrams_alone(is_measured);
        match self.carried.take().filter(|_| !is_measured) {
            None => Step::Done(Box::new(sealed)),
            Some((inner, has_channel)) => Step::Done(Box::new(Encapsulated::new(sealed, inner, has_channel))),
        }
    }

    fn fail(&mut self, reason: ConnectionLost) -> Step<Box<dyn Established>> {
        self.ends = true;
        Step::Failed(reason)
    }

    /// A packet for the call of the peer that this side answers. Only the peer's host has the keys of the handshake, so nothing
    /// before them ends the rendezvous.
    fn on_answering(&mut self, header: &Header, datagram: &mut [u8], setup: Setup<'_>) -> Step<Box<dyn Established>> {
        let Some(answering) = self.rendezvous.as_mut().and_then(Rendezvous::answering_mut) else { return Step::Wait };
        let progress = answering.on_packet(header, datagram, setup.now);
        let is_authentic = header.epoch == Epoch::HANDSHAKE;
        match progress {
            Progress::Invalid => Step::Invalid,
            Progress::Wait | Progress::Seen | Progress::Retry(_) => {
                self.drop_inconsistent();
                Step::Wait
            }
            Progress::Complete => {
                self.take_over();
                self.establish(setup)
            }
            Progress::Closed(code, _reason) if is_authentic => Step::Failed(lost_by_peer(code)),
            Progress::Failed(failure) if is_authentic => {
                self.take_over();
                self.fail(lost(&failure))
            }
            // It is told, and keeps its place until another one proves its address.
            Progress::Failed(_) => Step::Wait,
            Progress::Closed(..) => {
                let _ = self.rendezvous.as_mut().and_then(Rendezvous::take_answering);
                Step::Wait
            }
        }
    }

    /// The call that this side answers becomes the connection, and its own is given up.
    fn take_over(&mut self) {
        if let Some(answering) = self.rendezvous.as_mut().and_then(Rendezvous::take_answering) {
            (self.client_id, self.side) = (answering.client_id(), Side::Server);
            self.exchange = Some(answering);
        }
    }

    /// Gives up the peer's call if it turns out to be none.
    fn drop_inconsistent(&mut self) {
        if let Some(rendezvous) = self.rendezvous.as_mut().filter(|rendezvous| !rendezvous.is_consistent()) {
            let _ = rendezvous.take_answering();
        }
    }
}

impl protocol::Opening for SecureOpening {
    fn on_datagram(&mut self, datagram: &mut [u8], setup: Setup<'_>) -> Step<Box<dyn Established>> {
        let Ok(header) = Header::decode(datagram) else { return Step::Invalid };
        if header.epoch.is_application() || !matches!(header.epoch, Epoch::INITIAL | Epoch::HANDSHAKE) {
            // Data that overtook the end of the handshake. Its sender repeats it.
            return Step::Wait;
        }
        if self.rendezvous.as_ref().is_some_and(|rendezvous| rendezvous.is_for_answering(&header, datagram)) {
            return self.on_answering(&header, datagram, setup);
        }
        let listens = self.side == Side::Server && self.rendezvous.is_none();
        let Some(exchange) = &mut self.exchange else { return Step::Wait };
        let progress = exchange.on_packet(&header, datagram, setup.now);
        self.is_heard |= matches!(progress, Progress::Seen | Progress::Retry(_));
        match progress {
            Progress::Invalid => Step::Invalid,
            // A listener has no word for it, because that would end a rendezvous that it had with this side a moment ago.
            Progress::Wait if listens && exchange.is_with_rendezvous() => Step::Failed(ConnectionLost::Refused),
            Progress::Wait | Progress::Seen => Step::Wait,
            Progress::Retry(token) => {
                exchange.show(token);
                Step::Wait
            }
            Progress::Complete => self.establish(setup),
            Progress::Closed(CloseCode::Busy, _) if header.epoch == Epoch::INITIAL => {
                // There may be room for a later call.
                self.is_busy = true;
                Step::Wait
            }
            Progress::Closed(code, _reason) => Step::Failed(lost_by_peer(code)),
            Progress::Failed(failure) => self.fail(lost(&failure)),
        }
    }

    fn check(&self, now: Instant) -> Option<ConnectionLost> {
        let reason = match (self.is_busy, self.is_heard && self.side == Side::Client) {
            (true, _) => ConnectionLost::Refused,
            (false, true) => ConnectionLost::HandshakeTimeout(self.timeout),
            (false, false) => ConnectionLost::ConnectTimeout(self.timeout),
        };
        (now >= self.give_up).then_some(reason)
    }

    fn on_suspended(&mut self, gap: Duration) {
        self.give_up += gap;
    }

    fn poll(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        if !self.ends
            && let Some(answering) = self.rendezvous.as_mut().and_then(Rendezvous::answering_mut)
            && answering.poll(now, out)
        {
            return true;
        }
        let Some(exchange) = &mut self.exchange else { return false };
        let tells = self.side == Side::Server && exchange.has_close_packet();
        let wrote = exchange.poll(now, out);
        if wrote && tells {
            self.close_packet = Some((out.clone(), now));
        }
        self.ends &= exchange.has_close_packet() && exchange.has_output();
        wrote
    }

    fn deadline(&self) -> Option<Instant> {
        let probe = self.exchange.as_ref().and_then(Exchange::deadline);
        let answering = self.rendezvous.as_ref().and_then(Rendezvous::answering).and_then(Exchange::deadline);
        earliest(earliest(probe, answering), Some(self.give_up))
    }

    fn is_gone(&self) -> bool {
        !self.ends
    }
}

/// The end of an attempt that failed at this side.
fn lost(failure: &Failure) -> ConnectionLost {
    ConnectionLost::Insecure(match failure.code {
        CloseCode::Unauthorised => SecurityFault::UnknownKey,
        CloseCode::Version => SecurityFault::Version,
        _ => SecurityFault::Handshake,
    })
}

/// The end of an attempt that the peer gave up.
pub(super) const fn lost_by_peer(code: CloseCode) -> ConnectionLost {
    match code {
        CloseCode::Unauthorised => ConnectionLost::Insecure(SecurityFault::NotAdmitted),
        CloseCode::Version => ConnectionLost::Insecure(SecurityFault::Version),
        CloseCode::Busy => ConnectionLost::Refused,
        CloseCode::TransportParameters => ConnectionLost::PeerIncompatible(PeerIncompatible::OtherProtocol),
        CloseCode::KeyLimit => ConnectionLost::Insecure(SecurityFault::KeyLimit),
        _ => ConnectionLost::Insecure(SecurityFault::Handshake),
    }
}

const fn lost_by_parameters(refused: &ParametersRefused) -> ConnectionLost {
    match refused {
        ParametersRefused::Malformed(_) => ConnectionLost::Insecure(SecurityFault::Handshake),
        ParametersRefused::Protocol(_) => ConnectionLost::PeerIncompatible(PeerIncompatible::OtherProtocol),
        ParametersRefused::Mode => ConnectionLost::PeerIncompatible(PeerIncompatible::SocketType),
        ParametersRefused::Incompatible(reason) => ConnectionLost::PeerIncompatible(*reason),
    }
}
