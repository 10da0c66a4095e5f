//! The handshake of one connection: TLS messages in packets that may be lost, at either side.
//!
//! ```text
//! client                                                             server
//! Initial    Crypto: ClientHello with transport parameters       ─▶
//!                                                               ◀─   Initial    Crypto: ServerHello
//!                                                               ◀─   Handshake  Crypto: parameters, key, proof
//! Handshake  Crypto: key, proof                                  ─▶
//! application data                                               ─▶
//!                                                               ◀─   application Done, data
//! ```
//!
//! A packet confirms what has arrived before it. After silence, a side sends everything again that was not confirmed.

use farhaul_units::{Duration, Instant};
use farhaul_wire::secure::{
    CloseCode, ConnectionName, Epoch, Frame, HEADER_LEN, Header, InitialHeader, MIN_INITIAL, PacketNumber, TAG_LEN,
    VERSION,
};

use super::client_id::ClientId;
use super::crypto_stream::CryptoStream;
use super::protector::{Failure, Generations, Handshake, KeyChange, Keys, Side};
use super::replay::Replay;
use super::transport_parameters::peer_call;
use crate::timer::Timer;
use crate::transport::Protection;

/// Silence after which everything unconfirmed is sent again. It doubles from time to time.
const PROBE: Duration = Duration::from_millis(200);
/// Longest such silence before anything is heard. Nobody may be there.
const LONGEST_CALL: Duration = Duration::from_millis(800);
/// Longest such silence after that, so that a lossy path has many turns within the time for connecting.
const LONGEST_PROBE: Duration = Duration::from_millis(400);
/// Bytes of a packet of the handshake. It fits through every path that carries IPv6 (RFC 8200: 1280), even inside a
/// tunnel.
const DATAGRAM: usize = 1_232;
/// A server sends at most so many times the bytes that came from an address that is not validated (attack A11).
const AMPLIFICATION: u64 = 3;

/// Packets of one epoch.
struct Level {
    epoch: Epoch,
    keys: Keys,
    stream: CryptoStream,
    number: PacketNumber,
    replay: Replay,
}

impl Level {
    fn new(epoch: Epoch, keys: Keys) -> Self {
        Self { epoch, keys, stream: CryptoStream::default(), number: 0, replay: Replay::default() }
    }
}

/// The first keys of the application, which a handshake has made.
pub(super) type ApplicationKeys = (Keys, Box<dyn Generations>);

/// The state of a handshake.
pub(super) struct Exchange {
    side: Side,
    /// `None` once it is over and nothing more is asked of it.
    tls: Option<Box<dyn Handshake>>,
    client_id: ClientId,
    token: Vec<u8>,
    own: ConnectionName,
    peer: ConnectionName,
    initial: Option<Level>,
    handshake: Option<Level>,
    application: Option<ApplicationKeys>,
    /// The peer must learn what has arrived.
    confirm: bool,
    /// This side gives up, and tells the peer once.
    close: Option<(CloseCode, &'static str)>,
    probe: Timer,
    silence: Duration,
    /// Bytes that came and left before the address of a client is validated; `None` after that.
    budget: Option<(u64, u64)>,
    /// When the first packet left, and the time to the first answer, if none was sent twice.
    asked: Option<Instant>,
    repeated: bool,
    round_trip: Option<Duration>,
}

/// The meaning of a packet for the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It was damaged or forged.
    Invalid,
    /// It was seen before.
    Seen,
    /// Further packets are needed.
    Wait,
    /// The server wants to see this token first.
    Retry(Vec<u8>),
    /// Both sides have proved who they are.
    Complete,
    /// The peer gave up.
    Closed(CloseCode, String),
    /// This side gives up. The peer is told.
    Failed(Failure),
}

impl Exchange {
    /// The handshake of one side. `client_id` has the client's random bytes.
    pub(super) fn new(
        side: Side,
        tls: Box<dyn Handshake>,
        initial: Keys,
        client_id: ClientId,
        (own, peer): (ConnectionName, ConnectionName),
        validated: bool,
    ) -> Self {
        let mut exchange = Self {
            side,
            tls: Some(tls),
            client_id,
            token: Vec::new(),
            own,
            peer,
            initial: Some(Level::new(Epoch::INITIAL, initial)),
            handshake: None,
            application: None,
            confirm: false,
            close: None,
            probe: Timer::stopped(),
            silence: PROBE,
            budget: (side == Side::Server && !validated).then_some((0, 0)),
            asked: None,
            repeated: false,
            round_trip: None,
        };
        exchange.converse();
        exchange
    }

    /// Calls again, with the token of a server that asked for one. The keys of the Initial packets stay.
    pub(super) fn show(&mut self, token: Vec<u8>) {
        self.token = token;
        if let Some(initial) = &mut self.initial {
            initial.stream.repeat();
        }
    }

    /// Calls again at once, unless it did so a moment ago: the peer can hear now.
    pub(super) fn hurry(&mut self, now: Instant) {
        let waits = |at| now + self.silence >= at + PROBE;
        if self.peer.is_none() && self.probe.deadline().is_some_and(waits) {
            self.repeat();
        }
    }

    // ---- input ----

    /// A packet of the handshake arrived.
    pub(super) fn on_packet(&mut self, header: &Header, datagram: &mut [u8], now: Instant) -> Progress {
        if let Some((came, _)) = &mut self.budget {
            *came += datagram.len() as u64;
        }
        let mut head_len = HEADER_LEN;
        if header.epoch == Epoch::INITIAL {
            let Ok((initial, length)) = InitialHeader::decode(datagram) else { return Progress::Invalid };
            if initial.client_id != self.client_id.bytes() || initial.version != VERSION {
                return Progress::Invalid;
            }
            let from = initial.from;
            head_len = length;
            let progress = self.on_body(header, datagram, head_len, now);
            // Who keeps nothing of a caller has no name for it, either.
            let has_state =
                !matches!(progress, Progress::Invalid | Progress::Seen | Progress::Retry(_) | Progress::Closed(..));
            if self.side == Side::Client && has_state && self.peer.is_none() {
                self.peer = from;
            }
            return progress;
        }
        self.on_body(header, datagram, head_len, now)
    }

    fn on_body(&mut self, header: &Header, datagram: &mut [u8], head_len: usize, now: Instant) -> Progress {
        let level = match header.epoch {
            Epoch::INITIAL => &mut self.initial,
            Epoch::HANDSHAKE => &mut self.handshake,
            _ => return Progress::Invalid,
        };
        let Some(level) = level else { return Progress::Wait };
        let (head, body) = datagram.split_at_mut(head_len);
        if !level.replay.is_new(header.number) {
            return Progress::Seen;
        }
        if body.len() < TAG_LEN || !level.keys.remote.open(header.number, head, body) {
            return Progress::Invalid;
        }
        level.replay.note(header.number);
        if header.epoch == Epoch::HANDSHAKE {
            // Only the owner of the address has the keys (RFC 9000, section 8.1).
            self.budget = None;
        }
        let frames = &body[..body.len() - TAG_LEN];
        if let (Some(asked), false, None) = (self.asked, self.repeated, self.round_trip) {
            self.round_trip = Some(now - asked);
        }
        self.on_frames(header.epoch, frames)
    }

    fn on_frames(&mut self, epoch: Epoch, frames: &[u8]) -> Progress {
        let mut rest = frames;
        let mut heard = Vec::new();
        loop {
            let frame = match Frame::decode(rest) {
                Ok(Some((frame, behind))) => {
                    rest = behind;
                    frame
                }
                Ok(None) => break,
                Err(error) => return self.fail(CloseCode::Violation, error.to_string(), "a malformed frame"),
            };
            match frame {
                // Everything in Initial packets has come once there are keys of the handshake. Anybody on the path could seal
                // more of it.
                Frame::Crypto { .. } if epoch == Epoch::INITIAL && self.handshake.is_some() => self.confirm = true,
                Frame::Crypto { offset, bytes } => {
                    let Some(level) = self.level(epoch) else { continue };
                    let before = level.stream.received();
                    if level.stream.receive(offset, bytes, &mut heard).is_err() {
                        return self.fail(CloseCode::Violation, "its handshake is too long".into(), "too long");
                    }
                    // The peer sends again what it assumes lost, or a segment before it is missing.
                    let moved = level.stream.received() > before;
                    self.confirm |= !moved;
                }
                // Keys that anybody can derive confirm nothing that others protect.
                Frame::Received { epoch: of, .. } if of > epoch => {}
                Frame::Received { epoch, offset } => {
                    if let Some(level) = self.level(epoch) {
                        level.stream.on_confirmed(offset);
                    }
                }
                Frame::Retry(token)
                    if self.side == Side::Client && epoch == Epoch::INITIAL && self.token.is_empty() =>
                {
                    return Progress::Retry(token.to_vec());
                }
                Frame::Retry(_) => {}
                Frame::Close(code, reason) => return Progress::Closed(code, reason.to_owned()),
            }
        }
        if heard.is_empty() {
            return if self.is_complete() { Progress::Complete } else { Progress::Wait };
        }
        // After the end of a handshake, TLS has nothing to say in this profile.
        let Some(tls) = &mut self.tls else { return Progress::Complete };
        if let Err(failure) = tls.read(&heard) {
            self.close = Some((failure.code, ""));
            return Progress::Failed(failure);
        }
        self.converse();
        if self.is_complete() { Progress::Complete } else { Progress::Wait }
    }

    fn is_complete(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| tls.is_complete())
    }

    /// The handshake is complete. What is left repeats the last messages to a peer that has not heard them.
    pub(super) fn release(&mut self) {
        self.tls = None;
        if self.side == Side::Server {
            // The client's proof came with keys of the handshake, so the client needs no Initial packet any more.
            self.initial = None;
            self.token = Vec::new();
            if let Some(handshake) = &mut self.handshake {
                // The proof covers all messages of the server (RFC 8446, section 4.4.4).
                handshake.stream.forget_written();
            }
        }
    }

    fn fail(&mut self, code: CloseCode, reason: String, told: &'static str) -> Progress {
        self.close = Some((code, told));
        Progress::Failed(Failure { code, reason })
    }

    /// This side gives up for a reason outside the handshake.
    pub(super) const fn give_up(&mut self, code: CloseCode, told: &'static str) {
        self.close = Some((code, told));
    }

    /// The keys of both epochs, as far as they are known.
    fn levels(&self) -> impl Iterator<Item = &Level> {
        [&self.initial, &self.handshake].into_iter().flatten()
    }

    fn level(&mut self, epoch: Epoch) -> Option<&mut Level> {
        match epoch {
            Epoch::INITIAL => self.initial.as_mut(),
            Epoch::HANDSHAKE => self.handshake.as_mut(),
            _ => None,
        }
    }

    /// Takes from TLS everything that it has to say, and its keys.
    fn converse(&mut self) {
        loop {
            let mut said = Vec::new();
            let Some(tls) = &mut self.tls else { return };
            let change = tls.write(&mut said);
            let level = self.handshake.as_mut().or(self.initial.as_mut());
            if let Some(level) = level
                && !said.is_empty()
            {
                level.stream.write(&said);
                self.probe.stop();
            }
            match change {
                Some(KeyChange::Handshake(keys)) => self.handshake = Some(Level::new(Epoch::HANDSHAKE, keys)),
                Some(KeyChange::Application(keys, generations)) => self.application = Some((keys, generations)),
                None => return,
            }
        }
    }

    // ---- output ----

    /// Writes one packet into `out`. Returns false if none is due.
    pub(super) fn poll(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        if self.probe.fires(now) {
            self.repeat();
        }
        let Some(epoch) = self.due() else { return false };
        if !self.may_send(DATAGRAM) {
            return false;
        }
        self.write(epoch, out);
        if let Some((_, left)) = &mut self.budget {
            *left += out.len() as u64;
        }
        if !self.is_confirmed() || self.side == Side::Client {
            self.probe.set(now + self.silence);
        }
        self.asked.get_or_insert(now);
        true
    }

    fn repeat(&mut self) {
        self.repeated = true;
        let longest = if self.peer.is_none() { LONGEST_CALL } else { LONGEST_PROBE };
        self.silence = (self.silence * 2).min(longest);
        for level in [&mut self.initial, &mut self.handshake].into_iter().flatten() {
            level.stream.repeat();
        }
        // A side that has nothing to repeat still asks: the other one may not be permitted to send more.
        self.confirm |= !self.has_unsent();
    }

    fn has_unsent(&self) -> bool {
        self.levels().any(|level| level.stream.has_unsent())
    }

    /// The epoch of the next packet, if one is due.
    fn due(&self) -> Option<Epoch> {
        let last = || self.handshake.as_ref().or(self.initial.as_ref());
        let due = if self.close.is_some() {
            // A peer that has not confirmed the Initial messages may have no other keys.
            self.initial.as_ref().filter(|level| level.stream.has_unconfirmed()).or_else(last)
        } else {
            let unsent = self.levels().find(|level| level.stream.has_unsent());
            unsent.or_else(|| last().filter(|_| self.confirm))
        };
        due.map(|level| level.epoch)
    }

    /// Whether this side has yet to tell that it gives up.
    pub(super) const fn has_close_packet(&self) -> bool {
        self.close.is_some()
    }

    fn write(&mut self, epoch: Epoch, out: &mut Vec<u8>) {
        let heard =
            [&self.initial, &self.handshake].map(|level| level.as_ref().map(|l| (l.epoch, l.stream.received())));
        let close = self.close.take();
        self.confirm = false;
        let (own, peer) = (self.own, self.peer);
        let (client_id, token) = (self.client_id, std::mem::take(&mut self.token));
        if let Some(level) = self.level(epoch) {
            let start = out.len();
            let header = Header { epoch, number: level.number, to: peer };
            level.number += 1;
            out.extend_from_slice(&header.bytes());
            if epoch == Epoch::INITIAL {
                InitialHeader { version: VERSION, from: own, client_id: client_id.bytes(), token: &token }.encode(out);
            }
            let body = out.len();
            for (epoch, offset) in heard.into_iter().flatten().filter(|(_, offset)| *offset > 0) {
                Frame::Received { epoch, offset }.encode(out);
            }
            if let Some((code, reason)) = close {
                // Nothing goes with it, because it may be repeated in answer to short packets.
                Frame::Close(code, reason).encode(out);
            } else if let Some(frame) = level.stream.take(start + DATAGRAM - TAG_LEN - out.len()) {
                frame.encode(out);
            }
            let least = if epoch == Epoch::INITIAL { start + MIN_INITIAL - TAG_LEN } else { 0 };
            out.resize(out.len().max(least), 0);
            let (head, frames) = out[start..].split_at_mut(body - start);
            let tag = level.keys.local.seal(header.number, head, frames);
            out.extend_from_slice(&tag);
        }
        self.token = token;
    }

    fn may_send(&self, bytes: usize) -> bool {
        self.budget.is_none_or(|(came, left)| left + bytes as u64 <= AMPLIFICATION * came)
    }

    /// Whether the peer has confirmed everything that this side said.
    fn is_confirmed(&self) -> bool {
        !self.levels().any(|level| level.stream.has_unconfirmed())
    }

    /// When to call [`poll`](Self::poll) next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.probe.deadline()
    }

    // ---- facts ----

    /// Whether a packet could be sent now.
    pub(super) fn has_output(&self) -> bool {
        self.due().is_some() && self.may_send(DATAGRAM)
    }

    /// Whether a packet was sealed with the peer's keys of the handshake. It stays as it is.
    pub(super) fn opens(&self, header: &Header, datagram: &[u8]) -> bool {
        let handshake = self.handshake.as_ref().filter(|level| level.epoch == header.epoch);
        handshake.is_some_and(|level| is_sealed_with(&level.keys, header, datagram, HEADER_LEN))
    }

    /// Takes the keys of the application.
    pub(super) fn take_keys(&mut self) -> Option<ApplicationKeys> {
        self.application.take()
    }

    /// The peer's transport parameters, once they are authentic.
    pub(super) fn peer_parameters(&self) -> Option<&[u8]> {
        self.tls.as_ref()?.peer_parameters()
    }

    /// Whether the peer says that it is in a rendezvous. That is authentic once the handshake is complete.
    pub(super) fn is_with_rendezvous(&self) -> bool {
        self.peer_parameters().is_some_and(|parameters| peer_call(parameters).is_some())
    }

    /// The protection of the connection, once the handshake is complete.
    pub(super) fn protection(&self) -> Protection {
        self.tls.as_ref().map(|tls| tls.protection()).unwrap_or_default()
    }

    pub(super) const fn peer(&self) -> ConnectionName {
        self.peer
    }

    pub(super) const fn client_id(&self) -> ClientId {
        self.client_id
    }

    /// The time from the first packet to the first answer, if that was an answer to one packet.
    pub(super) const fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }
}

/// Whether a packet was sealed with these keys. It stays as it is.
pub(super) fn is_sealed_with(keys: &Keys, header: &Header, datagram: &[u8], head_len: usize) -> bool {
    opened(keys, header, datagram, head_len).is_some()
}

/// The frames of a packet that was sealed with these keys. It stays as it is.
pub(super) fn opened(keys: &Keys, header: &Header, datagram: &[u8], head_len: usize) -> Option<Vec<u8>> {
    let mut copy = datagram.to_vec();
    let (head, body) = copy.split_at_mut(head_len.min(datagram.len()));
    if body.len() < TAG_LEN || !keys.remote.open(header.number, head, body) {
        return None;
    }
    Some(body[..body.len() - TAG_LEN].to_vec())
}

/// Whether frames have the first bytes of a handshake.
pub(super) fn starts(frames: &[u8]) -> bool {
    let mut rest = frames;
    while let Ok(Some((frame, behind))) = Frame::decode(rest) {
        if matches!(frame, Frame::Crypto { offset: 0, bytes } if !bytes.is_empty()) {
            return true;
        }
        rest = behind;
    }
    false
}
