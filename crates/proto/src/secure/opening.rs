//! A secure connection until it is established, at the calling and at the called side.

use farhaul_units::{Duration, Instant};
use farhaul_wire::secure::{CloseCode, Epoch, Header};

use super::client_id::ClientId;
use super::enclosed::{Enclosed, TermsRefused, agree, data_form};
use super::exchange::{Exchange, Progress};
use super::paths::Paths;
use super::protector::{Failure, Side};
use super::sealed::Sealed;
use super::tunnel::Tunnel;
use crate::config::Config;
use crate::error::{ConnectionLost, PeerIncompatible, SecurityFault};
use crate::shell::handshake::Offer;
use crate::shell::protocol::{self, Setup, Step};
use crate::transport::earliest;

/// A handshake, and what follows from it.
pub(crate) struct Opening<E> {
    /// `None` once the connection is established.
    exchange: Option<Exchange>,
    client_id: ClientId,
    /// The protocol that the connection serves.
    protocol: &'static str,
    offer: Offer,
    side: Side,
    /// Makes challenges of the peer's address that nobody guesses.
    key: [u8; 16],
    opened: Instant,
    give_up: Instant,
    timeout: Duration,
    /// Failed, and the peer must still be told.
    ends: bool,
    /// The packet that told it, and when that left.
    last_word: Option<(Vec<u8>, Instant)>,
    enclosed: core::marker::PhantomData<fn() -> E>,
}

impl<E: Enclosed> Opening<E> {
    pub(super) fn new(
        exchange: Exchange,
        (protocol, offer): (&'static str, Offer),
        (side, key): (Side, [u8; 16]),
        config: &Config,
        now: Instant,
    ) -> Self {
        let timeout = config.connect_timeout;
        Self {
            client_id: exchange.client_id(),
            exchange: Some(exchange),
            protocol,
            offer,
            side,
            key,
            opened: now,
            give_up: now + timeout,
            timeout,
            ends: false,
            last_word: None,
            enclosed: core::marker::PhantomData,
        }
    }

    /// The client's random bytes.
    pub(super) fn client_id(&self) -> ClientId {
        self.client_id
    }

    /// The packet that told a client of its failure here, and when that left.
    pub(super) const fn last_word(&self) -> Option<&(Vec<u8>, Instant)> {
        self.last_word.as_ref()
    }

    fn establish(&mut self, setup: Setup<'_>) -> Step<Box<Sealed<E>>> {
        let now = setup.now;
        let Some(exchange) = &mut self.exchange else { return Step::Wait };
        let Some((keys, generations)) = exchange.take_keys() else { return Step::Wait };
        let agreed = exchange.peer_terms().map(|terms| agree(self.protocol, &self.offer, terms));
        let mut agreed = match agreed {
            Some(Ok(agreed)) => agreed,
            Some(Err(refused)) => {
                exchange.give_up(CloseCode::Terms, "the terms do not fit");
                return self.fail(lost_by_terms(&refused));
            }
            None => {
                exchange.give_up(CloseCode::Violation, "no terms");
                return self.fail(ConnectionLost::Insecure(SecurityFault::Handshake));
            }
        };
        agreed.round_trip = exchange.round_trip();
        let tunnel = Tunnel::new((exchange.peer(), data_form(self.offer.mode)), keys, generations, now);
        let called = self.side == Side::Server;
        let inner = E::establish(agreed, self.offer, called, self.opened, setup);
        let Some(exchange) = self.exchange.take() else { return Step::Wait };
        let paths = Paths::new(self.offer.peer, self.key);
        Step::Done(Box::new(Sealed::new(inner, (tunnel, paths), exchange, self.side, now)))
    }

    fn fail(&mut self, reason: ConnectionLost) -> Step<Box<Sealed<E>>> {
        self.ends = true;
        Step::Failed(reason)
    }
}

impl<E: Enclosed> protocol::Opening for Opening<E> {
    type Established = Sealed<E>;

    fn on_datagram(&mut self, datagram: &mut [u8], setup: Setup<'_>) -> Step<Box<Sealed<E>>> {
        let Ok(header) = Header::decode(datagram) else { return Step::Invalid };
        if header.epoch.is_application() || !matches!(header.epoch, Epoch::INITIAL | Epoch::HANDSHAKE) {
            // Data that overtook the end of the handshake. Its sender repeats it.
            return Step::Wait;
        }
        let Some(exchange) = &mut self.exchange else { return Step::Wait };
        match exchange.on_packet(&header, datagram, setup.now) {
            Progress::Invalid => Step::Invalid,
            Progress::Wait | Progress::Seen => Step::Wait,
            Progress::Retry(token) => {
                exchange.show(token);
                Step::Wait
            }
            Progress::Complete => self.establish(setup),
            Progress::Closed(code, _reason) => Step::Failed(lost_by_peer(code)),
            Progress::Failed(failure) => self.fail(lost(&failure)),
        }
    }

    fn check(&self, now: Instant) -> Option<ConnectionLost> {
        (now >= self.give_up).then_some(ConnectionLost::ConnectTimeout(self.timeout))
    }

    fn on_suspended(&mut self, gap: Duration) {
        self.give_up += gap;
    }

    fn poll(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let Some(exchange) = &mut self.exchange else { return false };
        let tells = self.side == Side::Server && exchange.has_last_word();
        let wrote = exchange.poll(now, out);
        if wrote && tells {
            self.last_word = Some((out.clone(), now));
        }
        self.ends &= exchange.has_last_word() && exchange.has_output();
        wrote
    }

    fn deadline(&self) -> Option<Instant> {
        let probe = self.exchange.as_ref().and_then(Exchange::deadline);
        earliest(probe, Some(self.give_up))
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
        CloseCode::Terms => ConnectionLost::PeerIncompatible(PeerIncompatible::OtherProtocol),
        CloseCode::KeyLimit => ConnectionLost::Insecure(SecurityFault::KeyLimit),
        _ => ConnectionLost::Insecure(SecurityFault::Handshake),
    }
}

const fn lost_by_terms(refused: &TermsRefused) -> ConnectionLost {
    match refused {
        TermsRefused::Malformed(_) => ConnectionLost::Insecure(SecurityFault::Handshake),
        TermsRefused::Protocol(_) => ConnectionLost::PeerIncompatible(PeerIncompatible::OtherProtocol),
        TermsRefused::Mode => ConnectionLost::PeerIncompatible(PeerIncompatible::SocketType),
        TermsRefused::Incompatible(reason) => ConnectionLost::PeerIncompatible(*reason),
    }
}
