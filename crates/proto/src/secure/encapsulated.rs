//! A connection of another protocol inside a secure UDT connection of its own, its carrier.
//!
//! ```text
//!              ┌──────────────────── Encapsulated ───────────────────────┐
//!              │                    ┌─ unreliable datagrams ─▶ datagrams │
//! packets ◀──▶ │ Carrier (Sealed) ──┤                                    │ Phase of the protocol ◀──▶ application
//!              │                    └─ stream ─▶ control channel         │
//!              └─────────────────────────────────────────────────────────┘
//! ```
//!
//! The channel's bytes are the carrier's stream, so the port needs no TCP. The datagrams travel beside the stream in packets
//! with the same keys, and may be lost. The protocol knows of none of this.
//!
//! **Hostile peers.** A peer has proved its key before the protocol hears of it. Whatever it sends through a carrier reaches the
//! one connection inside.

use farhaul_units::{Duration, Instant, Rate};
use farhaul_wire::probe::is_probe;

use super::carrier::{Carrier, is_orderly};
use super::sealed::Sealed;
use crate::channel::ChannelEnd;
use crate::endpoint::closing::CloseKind;
use crate::endpoint::connection::Phase;
use crate::endpoint::control_channel::Request;
use crate::endpoint::protocol::{Effect, Established, Opening, Output, Setup};
use crate::error::ConnectionLost;
use crate::stats::Stats;
use crate::transport::{AddressPair, Batch, Protection, earliest};

/// Bytes of the stream that are read at once.
const BLOCK: usize = 16 << 10;

/// A connection and its carrier.
pub struct Encapsulated {
    carrier: Carrier,
    inner: Phase,
    /// When the packets of the present receive call reached this computer, and whether some had datagrams of the protocol.
    arrived: Instant,
    in_batch: bool,
    /// Whether the protocol uses the stream as its control channel.
    has_channel: bool,
    /// This side closes.
    is_closing: bool,
    /// It is closed for its application.
    is_closed: bool,
    /// Why the carrier failed. The protocol has no words for that.
    fault: Option<ConnectionLost>,
    /// The source of the packets of the last [`Output::Data`].
    planned: Planned,
    /// A train of datagrams of one size that waits for the next call, because the packets of all did not fit.
    waiting: (usize, Vec<u8>),
    /// Datagrams of the protocol that wait to be put into packets.
    batch: Batch,
}

#[derive(Clone, Copy, Debug)]
enum Planned {
    Carrier,
    Inner,
    Waiting,
}

impl Encapsulated {
    /// The connection that `inner` opens on an established carrier.
    pub(super) fn new(carrier: Sealed, inner: Box<dyn Opening>, has_channel: bool) -> Self {
        Self {
            carrier: Carrier::new(carrier),
            inner: Phase::Opening(inner),
            arrived: Instant::ZERO,
            in_batch: false,
            has_channel,
            is_closing: false,
            is_closed: false,
            fault: None,
            planned: Planned::Carrier,
            waiting: (0, Vec::new()),
            batch: Batch::default(),
        }
    }

    // ---- input ----

    /// The meaning of the carrier's packet for the connection inside.
    fn on_packet(&mut self, effect: Effect, datagram: &mut [u8], mut setup: Setup<'_>) -> Effect {
        match effect {
            Effect::Datagram { start, end } if is_probe(&datagram[start..end]) => effect,
            Effect::Datagram { .. } if self.is_closed => Effect::GoOn,
            Effect::Datagram { start, end } => {
                if !std::mem::replace(&mut self.in_batch, true) {
                    self.inner.begin_batch(self.arrived);
                }
                self.inner.on_datagram(&mut datagram[start..end], setup)
            }
            Effect::PeerClosed { .. } | Effect::Lost(_) => {
                // What arrived in order before counts.
                match self.read_channel(setup.again()) {
                    Effect::GoOn => self.on_carrier(effect, setup.now),
                    ended => ended,
                }
            }
            effect => self.on_carrier(effect, setup.now),
        }
    }

    /// The meaning of a change of the carrier for the connection inside.
    fn on_carrier(&mut self, effect: Effect, now: Instant) -> Effect {
        match effect {
            Effect::PeerClosed { complete, delivered } => {
                let in_order = complete && delivered;
                self.on_lost(now, if in_order { ConnectionLost::ClosedByPeer } else { ConnectionLost::Aborted })
            }
            Effect::Lost(reason) => self.on_lost(now, reason),
            // Only applications of UDT signal errors.
            Effect::Complained(_) => Effect::GoOn,
            effect => effect,
        }
    }

    fn on_lost(&mut self, now: Instant, reason: ConnectionLost) -> Effect {
        if !self.carrier.lose() {
            return Effect::GoOn;
        }
        let fault = !is_orderly(reason) && !self.is_closed;
        if fault {
            self.fault = Some(reason);
        }
        if self.has_channel {
            let in_order = reason == ConnectionLost::ClosedByPeer;
            self.inner.channel_ended(now, if in_order { ChannelEnd::Finished } else { ChannelEnd::Failed })
        } else {
            // The protocol's own close comes before the end of a carrier, unless it was lost.
            Effect::Lost(if fault { reason } else { ConnectionLost::Aborted })
        }
    }

    /// Passes on the bytes of the channel. A stream that no channel uses says nothing.
    fn read_channel(&mut self, mut setup: Setup<'_>) -> Effect {
        if self.carrier.connection.readable() == 0 {
            return Effect::GoOn;
        }
        let mut block = [0; BLOCK];
        loop {
            let length = self.carrier.connection.read(setup.now, &mut block);
            if length == 0 {
                return Effect::GoOn;
            }
            if self.has_channel && !self.is_closed {
                let effect = self.inner.on_channel(&block[..length], setup.again());
                if effect != Effect::GoOn {
                    return effect;
                }
            }
        }
    }

    /// Whether the connection inside has sent its last close packet, or need not.
    fn is_close_sent_inside(&self) -> bool {
        self.is_closed || self.is_closing && self.inner.established().is_none_or(Established::is_close_sent)
    }

    // ---- output ----

    /// Finds datagrams of the protocol that may leave. Those that wait come first.
    fn poll_inner(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<Output> {
        if !self.carrier.is_open() || !self.carrier.connection.may_send_datagrams(now) {
            return None;
        }
        if !self.waiting.1.is_empty() {
            self.planned = Planned::Waiting;
            return Some(Output::Data);
        }
        // A side that has failed may still have to say why.
        if self.is_closed && self.inner.is_gone() {
            return None;
        }
        let alone = self.batch.cleared();
        match &mut self.inner {
            Phase::Opening(opening) => {
                if !opening.poll(now, alone) {
                    return None;
                }
            }
            Phase::Established(established) => match established.poll(now, alone)? {
                Output::Data => {
                    self.planned = Planned::Inner;
                    return Some(Output::Data);
                }
                Output::Scratch | Output::Probe | Output::Detour(_) => {}
            },
        }
        let sent = self.carrier.connection.send_datagrams(now, (self.batch.bytes(), self.batch.bytes().len()), scratch);
        sent.map(|_| Output::Scratch)
    }

    /// The datagrams of the protocol that may leave now, without their packets, and the length of each. For tests that send
    /// them elsewhere.
    #[cfg(any(test, feature = "testing"))]
    pub fn train(&mut self, now: Instant) -> Option<(usize, Vec<u8>)> {
        self.handle_timeout(now);
        self.serve_channel(now);
        let Self { inner, batch, .. } = self;
        let established = inner.established_mut()?;
        match established.poll(now, batch.cleared())? {
            Output::Data => {
                let (size, bytes) = established.emit(now, batch.cleared())?;
                Some((size, bytes.to_vec()))
            }
            _ => None,
        }
    }

    /// Carries out what the protocol requests of its channel. Returns whether there was anything.
    fn serve_channel(&mut self, now: Instant) -> bool {
        let mut served = false;
        if self.carrier.write_on(now) {
            self.inner.channel_drained();
            served = true;
        }
        while let Some(request) = self.inner.poll_channel(now) {
            served = true;
            match request {
                Request::Open => self.inner.channel_opened(now),
                Request::Send => {
                    if self.carrier.write(now, self.inner.channel_bytes()) {
                        self.inner.channel_drained();
                    }
                }
                Request::Finish => self.carrier.finish(now),
                Request::Reset => self.carrier.end(now, CloseKind::Aborted),
            }
        }
        // A protocol without a channel tells its peer by datagrams, and the carrier ends after them.
        if self.is_close_sent_inside() && self.inner.is_gone() && self.carrier.is_open() {
            let kind = self.carrier.connection.close_kind();
            self.carrier.end(now, kind);
            served = true;
        }
        served
    }
}

impl Established for Encapsulated {
    fn is_ready(&self) -> bool {
        self.inner.established().is_some()
    }

    // ---- input ----

    fn begin_batch(&mut self, arrived: Instant) {
        self.carrier.connection.begin_batch(arrived);
        self.arrived = arrived;
    }

    fn on_datagram(&mut self, datagram: &mut [u8], mut setup: Setup<'_>) -> Effect {
        if self.carrier.is_closed() {
            return Effect::GoOn;
        }
        let effect = self.carrier.connection.on_datagram(datagram, setup.again());
        self.on_packet(effect, datagram, setup)
    }

    fn on_datagram_from(&mut self, from: AddressPair, datagram: &mut [u8], mut setup: Setup<'_>) -> Effect {
        if self.carrier.is_closed() {
            return Effect::Invalid;
        }
        let effect = self.carrier.connection.on_datagram_from(from, datagram, setup.again());
        self.on_packet(effect, datagram, setup)
    }

    fn finish_batch(&mut self, mut setup: Setup<'_>) -> Effect {
        let effect = self.carrier.connection.finish_batch(setup.again());
        let effect = self.on_carrier(effect, setup.now);
        if effect != Effect::GoOn {
            return effect;
        }
        // Packets of the carrier alone are no news for the protocol.
        if std::mem::take(&mut self.in_batch) {
            let effect = self.inner.finish_batch(setup.again());
            if effect != Effect::GoOn {
                return effect;
            }
        }
        self.read_channel(setup)
    }

    fn handle_timeout(&mut self, now: Instant) -> Effect {
        if !self.carrier.is_closed() {
            let effect = self.carrier.connection.handle_timeout(now);
            let effect = self.on_carrier(effect, now);
            if effect != Effect::GoOn {
                return effect;
            }
        }
        self.inner.handle_timeout(now, self.is_closed)
    }

    fn on_suspended(&mut self, now: Instant, gap: Duration) {
        self.carrier.connection.on_suspended(now, gap);
        self.inner.on_suspended(now, gap);
    }

    // ---- output ----

    fn poll(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<Output> {
        loop {
            if let Some(output) = self.carrier.poll(now, scratch) {
                self.planned = Planned::Carrier;
                return Some(output);
            }
            // As in plain, the channel follows datagrams: a protocol decides last what goes by its channel.
            if let Some(output) = self.poll_inner(now, scratch) {
                return Some(output);
            }
            if !self.serve_channel(now) {
                return None;
            }
        }
    }

    fn emit<'a>(&'a mut self, now: Instant, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        let Self { carrier: Carrier { connection, .. }, inner, planned, waiting, batch, .. } = self;
        let (taken, size) = match planned {
            Planned::Carrier => return connection.emit(now, scratch),
            Planned::Inner => {
                let (stride, datagrams) = inner.established_mut()?.emit(now, batch.cleared())?;
                let (taken, size) = connection.send_datagrams(now, (datagrams, stride), scratch)?;
                waiting.0 = stride;
                waiting.1.extend_from_slice(&datagrams[taken..]);
                (0, size)
            }
            Planned::Waiting => connection.send_datagrams(now, (&waiting.1, waiting.0), scratch)?,
        };
        waiting.1.drain(..taken);
        Some((size, scratch))
    }

    fn deadline(&self, now: Instant) -> Option<Instant> {
        let carrier = self.carrier.deadline(now);
        // Nothing that the protocol does could leave.
        let is_done = self.inner.is_gone() || self.carrier.is_closed();
        let rests = self.carrier.connection.is_held() || self.is_close_sent_inside() && is_done;
        let inner = if rests { None } else { self.inner.deadline(now) };
        let waiting = (!rests && !self.waiting.1.is_empty() && self.carrier.is_open()).then_some(now);
        earliest(waiting, earliest(carrier, inner))
    }

    fn send_datagrams(&mut self, now: Instant, datagrams: (&[u8], usize), out: &mut Vec<u8>) -> Option<(usize, usize)> {
        if self.carrier.is_open() { self.carrier.connection.send_datagrams(now, datagrams, out) } else { None }
    }

    // ---- commands ----

    fn write(&mut self, now: Instant, data: &[u8]) -> usize {
        self.inner.established_mut().map_or(0, |inner| inner.write(now, data))
    }

    fn room(&self) -> u64 {
        self.inner.established().map_or(0, Established::room)
    }

    fn has_room_again(&mut self) -> bool {
        self.inner.established_mut().is_some_and(Established::has_room_again)
    }

    fn read(&mut self, now: Instant, out: &mut [u8]) -> usize {
        self.inner.established_mut().map_or(0, |inner| inner.read(now, out))
    }

    fn readable(&self) -> u64 {
        self.inner.established().map_or(0, Established::readable)
    }

    fn can_read(&mut self) -> bool {
        self.inner.established_mut().is_some_and(Established::can_read)
    }

    fn begin_linger(&mut self, now: Instant, linger: Duration) {
        if let Some(inner) = self.inner.established_mut() {
            inner.begin_linger(now, linger);
        }
    }

    fn begin_close(&mut self, now: Instant, kind: CloseKind) {
        self.is_closing = true;
        match self.inner.established_mut() {
            Some(inner) => inner.begin_close(now, kind),
            None => self.close(),
        }
    }

    fn is_close_sent(&self) -> bool {
        self.is_close_sent_inside() && self.carrier.is_closed()
    }

    fn set_max_rate(&mut self, now: Instant, rate: Option<Rate>) -> bool {
        self.inner.established_mut().is_some_and(|inner| inner.set_max_rate(now, rate))
    }

    fn close(&mut self) {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.inner.close();
        }
    }

    fn is_gone(&self) -> bool {
        // The carrier ends after the connection inside. If it ended before, that one cannot tell its peer anything any more.
        self.carrier.is_closed()
    }

    // ---- facts ----

    fn protection(&self) -> Option<&Protection> {
        self.carrier.connection.protection()
    }

    fn is_flushed(&self) -> bool {
        self.inner.established().is_some_and(Established::is_flushed)
    }

    fn may_close(&self) -> bool {
        self.inner.established().is_some_and(Established::may_close)
    }

    fn is_complete(&self) -> bool {
        self.inner.established().is_some_and(Established::is_complete)
    }

    fn was_heard(&self) -> bool {
        // Both sides have proved who they are.
        true
    }

    fn close_kind(&self) -> CloseKind {
        self.inner.established().map_or(CloseKind::Aborted, Established::close_kind)
    }

    fn explain(&self, reason: ConnectionLost) -> ConnectionLost {
        let reason = self.inner.established().map_or(reason, |inner| inner.explain(reason));
        match (self.fault, reason) {
            (Some(fault), ConnectionLost::ChannelBroken | ConnectionLost::ClosedLocally) => fault,
            _ => reason,
        }
    }

    fn fill_stats(&self, now: Instant, stats: &mut Stats) {
        if let Some(inner) = self.inner.established() {
            inner.fill_stats(now, stats);
        }
        let mut carrier = Stats::default();
        self.carrier.connection.fill_stats(now, &mut carrier);
        stats.totals.packets_invalid += carrier.totals.packets_invalid;
        stats.memory += carrier.memory;
    }
}
