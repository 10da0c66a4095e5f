//! Arriving datagrams: they are opened, and their content goes to the part that it concerns.

use farhaul_units::Instant;
use farhaul_wire::secure::{DataForm, Epoch, HEADER_LEN, Header, TAG_LEN, inner};
use farhaul_wire::udt4::{DataHeader, Timestamp, is_receipt};

use super::Sealed;
use crate::endpoint::protocol::{Effect, Setup};
use crate::secure::exchange::Progress;
use crate::secure::key_schedule::Opened;
use crate::secure::opening::lost_by_peer;
use crate::secure::protector::Side;
use crate::transport::AddressPair;

impl Sealed {
    /// A datagram from the peer's address.
    pub(super) fn receive(&mut self, datagram: &mut [u8], now: Instant) -> Effect {
        let Ok(header) = Header::decode(datagram) else { return Effect::Invalid };
        if !header.epoch.is_application() {
            return self.on_handshake(&header, datagram, now);
        }
        match self.open(&header, datagram, now) {
            Ok(opened) => {
                if matches!(opened, Opened::Newest(_)) {
                    self.paths.on_newest_from_peer();
                }
                self.on_opened(opened, datagram, self.paths.present(), now)
            }
            Err(effect) => effect,
        }
    }

    /// A datagram from another address.
    pub(super) fn receive_from(&mut self, from: AddressPair, datagram: &mut [u8], setup: Setup<'_>) -> Effect {
        let Ok(header) = Header::decode(datagram) else { return Effect::Invalid };
        let now = setup.now;
        if !header.epoch.is_application() {
            return self.on_handshake_from(from, &header, datagram, now);
        }
        let opened = match self.open(&header, datagram, now) {
            Ok(opened) => opened,
            Err(effect) => return effect,
        };
        match self.look_elsewhere(from, opened, datagram, setup) {
            Effect::GoOn => self.on_opened(opened, datagram, from, now),
            effect => effect,
        }
    }

    /// A packet of the handshake, although that is over here: the peer may not know.
    fn on_handshake(&mut self, header: &Header, datagram: &mut [u8], now: Instant) -> Effect {
        // Anybody on the path can seal Initial packets, and neither side needs them any more.
        if header.epoch == Epoch::INITIAL {
            return Effect::GoOn;
        }
        let Some((exchange, _)) = &mut self.handshake else { return Effect::GoOn };
        match exchange.on_packet(header, datagram, now) {
            Progress::Invalid => Effect::Invalid,
            // Also the packet that has just completed the handshake.
            Progress::Seen => Effect::GoOn,
            Progress::Closed(code, _) => Effect::Lost(lost_by_peer(code)),
            _ => {
                self.done_due |= self.side == Side::Server;
                Effect::GoOn
            }
        }
    }

    /// The same from another address: a client may move before it hears that the handshake is over.
    fn on_handshake_from(&mut self, from: AddressPair, header: &Header, datagram: &mut [u8], now: Instant) -> Effect {
        let Some((exchange, _)) = &mut self.handshake else { return Effect::Invalid };
        if header.epoch == Epoch::INITIAL || self.side == Side::Client || self.key_schedule.has_opened() {
            return Effect::Invalid;
        }
        match exchange.on_packet(header, datagram, now) {
            Progress::Wait | Progress::Complete => {
                self.paths.question(from, datagram.len(), now, self.udt.answer_time());
                Effect::GoOn
            }
            _ => Effect::Invalid,
        }
    }

    /// Opens a packet of the application in place.
    ///
    /// # Errors
    /// It does not count, and this is its effect.
    fn open(&mut self, header: &Header, datagram: &mut [u8], now: Instant) -> Result<Opened, Effect> {
        let opened = match self.key_schedule.open(header, datagram, now) {
            Ok(opened) if opened.order().is_some() => opened,
            Ok(_) => return Err(Effect::Invalid),
            Err(reason) => {
                // The peer is told first.
                self.worn_out = Some(reason);
                return Err(Effect::GoOn);
            }
        };
        if self.side == Side::Client {
            // A server speaks with these keys once it has verified the client.
            self.handshake = None;
        }
        Ok(opened)
    }

    fn on_message(&mut self, body: &[u8], from: AddressPair) -> Effect {
        match inner::Message::decode(body) {
            Some(inner::Message::Close(code, _)) => return Effect::Lost(lost_by_peer(code)),
            Some(inner::Message::Challenge(challenge)) => self.paths.on_challenge(from, challenge),
            // An empty one says nothing.
            Some(inner::Message::Datagram(datagram)) if !datagram.is_empty() => {
                let end = HEADER_LEN + body.len();
                return Effect::Datagram { start: end - datagram.len(), end };
            }
            // A response counts from another address alone.
            Some(inner::Message::Response(_) | inner::Message::Done | inner::Message::Datagram(_)) | None => {}
        }
        Effect::GoOn
    }

    /// An opened packet came from another address than the peer's.
    fn look_elsewhere(&mut self, from: AddressPair, opened: Opened, datagram: &[u8], setup: Setup<'_>) -> Effect {
        let (now, answer_time) = (setup.now, self.udt.answer_time());
        self.paths.on_elsewhere(from, datagram.len());
        let body = body(datagram);
        match inner::Message::decode(body).filter(|_| inner::is_message(body)) {
            Some(inner::Message::Response(response)) => {
                let old = self.paths.present();
                if self.paths.on_response(from, response, now, answer_time) {
                    if old.peer.ip() != from.peer.ip() {
                        self.udt.restart_path(setup);
                    }
                    return Effect::Moved(from);
                }
            }
            // Questions about paths move nothing (RFC 9000, section 9.1).
            Some(inner::Message::Challenge(_)) => {}
            _ if matches!(opened, Opened::Newest(_)) => self.paths.question(from, datagram.len(), now, answer_time),
            _ => {}
        }
        Effect::GoOn
    }

    /// Passes on the content of an opened packet.
    fn on_opened(&mut self, opened: Opened, datagram: &mut [u8], from: AddressPair, now: Instant) -> Effect {
        let body = body(datagram);
        let streams = self.key_schedule.form() == DataForm::Stream;
        let order = opened.order().unwrap_or_default();
        if streams && let Some((seq, payload)) = inner::stream_data(body) {
            return self.udt.on_stream_data(seq, payload, order, now);
        }
        if inner::is_message(body) {
            return self.on_message(body, from);
        }
        let Some(packet) = inner::restore(datagram) else { return Effect::Invalid };
        if streams && !is_receipt(packet) {
            // Fragments of data packets must compare with whole ones. The stamp of a receipt is a time.
            DataHeader::set_timestamp(packet, Timestamp::new(order));
        }
        self.udt.on_packet(packet, now)
    }
}

/// The body of an opened datagram.
fn body(datagram: &[u8]) -> &[u8] {
    datagram.get(HEADER_LEN..datagram.len().saturating_sub(TAG_LEN)).unwrap_or_default()
}
