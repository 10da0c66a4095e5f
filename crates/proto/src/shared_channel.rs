//! One channel for a bulk transfer and a control stream: the future work of paper:ornl §4.
//!
//! ```text
//!                 ┌──────────────── SharedChannel of an endpoint ───────────────┐
//!  StableStream ──│── datagrams that are due leave first ──────────────────────▶│──▶ the peer
//!                 │      │ round trips                                          │
//!                 │      ▼                                                      │
//!                 │   Ceiling ── rate, length of a burst                        │
//!                 │      ▼                                                      │
//!  connections ───│─▶ Shaper ── short bursts, below what the channel carries ──▶│──▶ the peer
//!                 └─────────────────────────────────────────────────────────────┘
//! ```
//!
//! The control stream keeps its goodput by its own law. Its delay is at the mercy of the bulk: a bulk that fills the
//! bottleneck also fills the queue in front of it. So the control stream is the sensor of that queue, and the bulk has a
//! ceiling where the queue is about to begin. The bulk's own protocol decides below the ceiling. It needs no change,
//! because to it the ceiling looks like a slow network card.
//!
//! Without a control stream, everything passes as it is (departures D320 to D323).
//!
//! Beside encrypted connections, the control stream travels inside one of them, by its unreliable datagrams.

mod ceiling;
mod shaper;

use core::net::SocketAddr;

use farhaul_units::{Duration, Instant, Rate};

use self::ceiling::Ceiling;
use self::shaper::Shaper;
use crate::event::ConnectionId;
use crate::probe::{Probing, StableConfig, StableStream, is_probe};
use crate::transport::{AddressPair, Batch, DatagramKind, ReceivedDatagrams, Transmit, Transport, earliest};

/// The control stream beside the connections of an endpoint, if there is one, and their ceiling.
///
/// The ceiling holds for everything that the endpoint sends. So an endpoint with a control stream should have one peer.
#[derive(Default)]
pub(crate) struct SharedChannel {
    control: Option<Box<Control>>,
    shaper: Shaper,
    /// Datagrams of the control stream that wait to be put into packets.
    batch: Batch,
}

/// A control stream and what it found about the channel.
struct Control {
    stream: StableStream,
    path: ControlPath,
    ceiling: Ceiling,
}

/// The path of a control stream to its responder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlPath {
    /// Plain datagrams to this address.
    Plain(SocketAddr),
    /// Unreliable datagrams of a connection, whose peer has this address.
    Inside(ConnectionId, SocketAddr),
}

impl ControlPath {
    /// The address of the responder.
    const fn peer(self) -> SocketAddr {
        match self {
            Self::Plain(peer) | Self::Inside(_, peer) => peer,
        }
    }
}

/// The bulk's ceiling at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CeilingFigures {
    /// The highest rate of the bulk, headers of IP and UDP included; `None` if the control stream hears nothing, which
    /// lifts the ceiling.
    pub rate: Option<Rate>,
    /// The queueing delay that the control stream saw last.
    pub queueing: Duration,
    /// The longest burst of the bulk.
    pub burst: Duration,
}

impl SharedChannel {
    /// The control stream.
    pub(crate) fn control(&self) -> Option<&StableStream> {
        self.control.as_deref().map(|control| &control.stream)
    }

    /// The control stream, to give it payloads or to take its delays.
    pub(crate) fn control_mut(&mut self) -> Option<&mut StableStream> {
        self.control.as_deref_mut().map(|control| &mut control.stream)
    }

    /// The ceiling of the bulk; `None` without a control stream.
    pub(crate) fn ceiling(&self, now: Instant) -> Option<CeilingFigures> {
        let control = self.control.as_deref()?;
        let rate = Rate::from_bits_per_second(control.ceiling.limit() as u64);
        Some(CeilingFigures {
            rate: Some(rate).filter(|_| !control.stream.is_alone(now)),
            queueing: control.ceiling.queueing(),
            burst: control.ceiling.burst(),
        })
    }

    /// Sets the limit of the bulk to that of now.
    pub(crate) fn apply_ceiling(&mut self, now: Instant) {
        let Some(control) = &self.control else { return };
        if control.stream.is_alone(now) {
            self.shaper.lift();
        } else {
            self.shaper.limit(now, control.ceiling.limit(), control.ceiling.burst());
        }
    }
}

impl Control {
    /// Takes answers to the stream.
    fn hear(
        &mut self,
        (now, arrived): (Instant, Instant),
        from: SocketAddr,
        bytes: &[u8],
        stride: usize,
        shaper: &mut Shaper,
    ) {
        for datagram in bytes.chunks(stride.max(1)) {
            self.stream.handle_datagram(arrived, from, datagram);
            if let Some((sent, round_trip)) = self.stream.take_round_trip() {
                self.ceiling.on_round_trip(now, sent, round_trip, shaper);
            }
        }
    }
}

impl SharedChannel {
    /// Begins a control stream beside `bulk` to a responder, instead of one that ran before. `session` is a random number
    /// that strangers do not guess.
    pub(crate) fn begin(
        &mut self,
        bulk: &mut impl Transport,
        now: Instant,
        path: ControlPath,
        (config, session): (StableConfig, u64),
    ) {
        let stream = StableStream::new(config, path.peer(), session, now);
        let ceiling = Ceiling::new(now, config.target);
        self.control = Some(Box::new(Control { stream, path, ceiling }));
        want_answers(bulk, true);
        self.apply_ceiling(now);
    }

    /// Ends the control stream. The bulk has no ceiling any more.
    pub(crate) fn end(&mut self, bulk: &mut impl Transport) {
        self.control = None;
        want_answers(bulk, false);
        self.shaper.lift();
    }

    /// Takes datagrams: those of the stream, and those of `bulk`.
    pub(crate) fn handle_datagrams(
        &mut self,
        bulk: &mut impl Transport,
        (now, arrived): (Instant, Instant),
        from: AddressPair,
        bytes: &mut [u8],
        stride: usize,
    ) {
        if !self.take_answers((now, arrived), from.peer, bytes, stride) {
            bulk.handle_datagrams(now, arrived, from, bytes, stride);
            self.take_answers_inside(bulk, now);
        }
    }

    /// The next datagrams: those of the stream that are due, then those of `bulk` below its ceiling.
    pub(crate) fn poll_transmit<'a>(
        &'a mut self,
        bulk: &'a mut impl Transport,
        now: Instant,
        scratch: &'a mut Batch,
    ) -> Option<Transmit<'a>> {
        if let Some((between, segment_size)) = self.poll_control(bulk, now, scratch) {
            return Some(Transmit::between(between, segment_size, scratch.bytes()));
        }
        if self.shaper.is_holding() {
            return self.shaper.release(now);
        }
        if !self.shaper.is_open(now) {
            return None;
        }
        match bulk.poll_transmit(now, scratch) {
            Some(train) => Some(self.shaper.pass(now, train)),
            None => {
                self.shaper.on_idle(now);
                None
            }
        }
    }

    /// When to call next, beside `bulk`.
    pub(crate) fn poll_timeout(&self, bulk: &impl Transport) -> Option<Instant> {
        let stream = self.control.as_deref().and_then(|control| control.stream.poll_timeout());
        let bulk = match self.shaper.next() {
            None => bulk.poll_timeout(),
            Some(next) if self.shaper.is_holding() => Some(next),
            Some(next) => bulk.poll_timeout().map(|due| due.max(next)),
        };
        earliest(stream, bulk)
    }

    /// Takes plain answers to the control stream. Returns whether `bytes` were for it.
    fn take_answers(
        &mut self,
        (now, arrived): (Instant, Instant),
        from: SocketAddr,
        bytes: &[u8],
        stride: usize,
    ) -> bool {
        let Some(control) = &mut self.control else { return false };
        // Anybody can send what comes outside of encrypted connections.
        if !is_probe(bytes) || !matches!(control.path, ControlPath::Plain(_)) {
            return false;
        }
        control.hear((now, arrived), from, bytes, stride, &mut self.shaper);
        self.apply_ceiling(now);
        true
    }

    /// Takes answers to the control stream that came inside its connection.
    fn take_answers_inside(&mut self, bulk: &mut impl Transport, now: Instant) {
        let Self { control: Some(control), shaper, .. } = self else { return };
        let ControlPath::Inside(id, peer) = control.path else { return };
        let Some(datagrams) = bulk.datagrams() else { return };
        let mut heard = false;
        datagrams.take_datagrams(
            DatagramKind::Answer,
            &mut |&ReceivedDatagrams { arrived, connection, bytes, stride, .. }| {
                if connection == id {
                    control.hear((now, arrived), peer, bytes, stride, shaper);
                    heard = true;
                }
            },
        );
        if heard {
            self.apply_ceiling(now);
        }
    }

    /// Writes the datagrams of the control stream that are due into `out`. Returns their addresses and the length of each.
    fn poll_control(
        &mut self,
        bulk: &mut impl Transport,
        now: Instant,
        out: &mut Batch,
    ) -> Option<(AddressPair, usize)> {
        let Self { control: Some(control), batch, .. } = self else { return None };
        while control.stream.poll_timeout().is_some_and(|due| due <= now) {
            let ControlPath::Inside(id, _) = control.path else {
                let train = control.stream.poll_transmit(now, out)?;
                return Some((train.to.into(), train.segment_size));
            };
            let train = control.stream.poll_transmit(now, batch)?;
            let sent = bulk.datagrams()?.send_datagrams(now, id, (train.bytes, train.segment_size), out.cleared());
            if sent.is_some() {
                return sent;
            }
        }
        None
    }
}

/// Has `bulk` keep answers that come inside its connections, or no more.
fn want_answers(bulk: &mut impl Transport, wanted: bool) {
    if let Some(datagrams) = bulk.datagrams() {
        datagrams.want_datagrams(DatagramKind::Answer, wanted);
    }
}

#[cfg(test)]
mod tests;
