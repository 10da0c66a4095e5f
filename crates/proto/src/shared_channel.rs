//! One channel for a bulk transfer and a control stream: the future work of paper:ornl §4.
//!
//! ```text
//!                 ┌──────────────── SharedChannel (one UDP port) ───────────────┐
//!  StableStream ──│── datagrams that are due leave first ──────────────────────▶│──▶ the peer
//!                 │      │ round trips                                          │
//!                 │      ▼                                                      │
//!                 │   Ceiling ── rate, length of a burst                        │
//!                 │      ▼                                                      │
//!  bulk endpoint ─│─▶ Shaper ── short bursts, below what the channel carries ──▶│──▶ the peer
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
//! Beside encrypted connections, the control stream travels inside the envelope of one of them.

mod ceiling;
mod endpoint;
mod shaper;

use core::net::SocketAddr;

use farhaul_units::{Duration, Instant, Rate};

use self::ceiling::Ceiling;
use self::shaper::Shaper;
use crate::probe::{Probing, StableConfig, StableStream, is_probe};
use crate::secure::{Arrival, Kind};
use crate::shell::endpoint::Endpoint;
use crate::transport::{Batch, Transmit, Transport, earliest};

/// An endpoint that can have a control stream beside its connections.
///
/// The ceiling holds for everything that the endpoint sends. So an endpoint with a control stream should have one peer.
#[derive(Debug)]
pub struct SharedChannel<T> {
    bulk: T,
    control: Option<Box<Control>>,
    shaper: Shaper,
    /// Datagrams of the control stream on their way into envelopes.
    batch: Batch,
}

/// A control stream and what it found about the channel.
#[derive(Debug)]
struct Control {
    stream: StableStream,
    ceiling: Ceiling,
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

impl<T> SharedChannel<T> {
    /// An endpoint without a control stream.
    pub fn new(bulk: T) -> Self {
        Self { bulk, control: None, shaper: Shaper::default(), batch: Batch::default() }
    }

    /// The endpoint of the bulk.
    pub const fn bulk(&self) -> &T {
        &self.bulk
    }

    /// The endpoint of the bulk, for commands.
    pub const fn bulk_mut(&mut self) -> &mut T {
        &mut self.bulk
    }

    /// The control stream.
    pub fn control(&self) -> Option<&StableStream> {
        self.control.as_deref().map(|control| &control.stream)
    }

    /// The control stream, to give it payloads or to take its delays.
    pub fn control_mut(&mut self) -> Option<&mut StableStream> {
        self.control.as_deref_mut().map(|control| &mut control.stream)
    }

    /// The ceiling of the bulk; `None` without a control stream.
    pub fn ceiling(&self, now: Instant) -> Option<CeilingFigures> {
        let control = self.control.as_deref()?;
        let rate = Rate::from_bits_per_second(control.ceiling.limit() as u64);
        Some(CeilingFigures {
            rate: Some(rate).filter(|_| !control.stream.is_alone(now)),
            queueing: control.ceiling.queueing(),
            burst: control.ceiling.burst(),
        })
    }

    fn apply_ceiling(&mut self, now: Instant) {
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

impl<T: Transport> SharedChannel<T> {
    /// Begins a control stream to the responder at `to`, instead of one that ran before. `session` is a random number
    /// that strangers do not guess.
    ///
    /// Beside encrypted connections, `to` is the [address inside](crate::AnyEndpoint::address_inside) one of them.
    pub fn begin_control(&mut self, now: Instant, to: SocketAddr, config: StableConfig, session: u64) {
        let stream = StableStream::new(config, to, session, now);
        let ceiling = Ceiling::new(now, config.target);
        self.control = Some(Box::new(Control { stream, ceiling }));
        if let Some(envelopes) = self.bulk.envelopes() {
            envelopes.hear_answers(true);
        }
        self.apply_ceiling(now);
    }

    /// Ends the control stream. The bulk has no ceiling any more.
    pub fn end_control(&mut self) {
        self.control = None;
        if let Some(envelopes) = self.bulk.envelopes() {
            envelopes.hear_answers(false);
        }
        self.shaper.lift();
    }

    /// Takes answers to the control stream. Returns whether `bytes` were for it.
    fn take_answers(&mut self, now: Instant, arrived: Instant, from: SocketAddr, bytes: &[u8], stride: usize) -> bool {
        let Some(control) = &mut self.control else { return false };
        // Anybody can send what comes outside of envelopes.
        if !is_probe(bytes) || self.bulk.envelopes().is_some() {
            return false;
        }
        control.hear((now, arrived), from, bytes, stride, &mut self.shaper);
        self.apply_ceiling(now);
        true
    }

    /// Takes answers to the control stream out of the envelopes that have arrived.
    fn take_enclosed_answers(&mut self, now: Instant) {
        let Self { bulk, control: Some(control), shaper, .. } = self else { return };
        let Some(envelopes) = bulk.envelopes() else { return };
        let mut heard = false;
        envelopes.take(Kind::Answer, &mut |&Arrival { arrived, from, bytes, stride, .. }| {
            control.hear((now, arrived), from, bytes, stride, shaper);
            heard = true;
        });
        if heard {
            self.apply_ceiling(now);
        }
    }

    /// Writes the datagrams of the control stream that are due into `out`. Returns their destination and the length of
    /// each.
    fn poll_control(&mut self, now: Instant, out: &mut Batch) -> Option<(SocketAddr, usize)> {
        let Self { bulk, control: Some(control), batch, .. } = self else { return None };
        while control.stream.poll_timeout().is_some_and(|due| due <= now) {
            let Some(envelopes) = bulk.envelopes() else {
                let train = control.stream.poll_transmit(now, out)?;
                return Some((train.to, train.segment_size));
            };
            let train = control.stream.poll_transmit(now, batch)?;
            let sealed = envelopes.enclose(now, train.to, (train.bytes, train.segment_size), out.cleared());
            if sealed.is_some() {
                return sealed;
            }
        }
        None
    }
}

impl<T: Transport> Transport for SharedChannel<T> {
    fn handle_datagrams(&mut self, now: Instant, arrived: Instant, from: SocketAddr, bytes: &mut [u8], stride: usize) {
        if !self.take_answers(now, arrived, from, bytes, stride) {
            self.bulk.handle_datagrams(now, arrived, from, bytes, stride);
            self.take_enclosed_answers(now);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.apply_ceiling(now);
        self.bulk.handle_timeout(now);
    }

    fn poll_transmit<'a>(&'a mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        if let Some((to, segment_size)) = self.poll_control(now, scratch) {
            return Some(Transmit { to, segment_size, bytes: scratch.bytes(), whole: false });
        }
        if self.shaper.is_holding() {
            return self.shaper.release(now);
        }
        if !self.shaper.is_open(now) {
            return None;
        }
        match self.bulk.poll_transmit(now, scratch) {
            Some(train) => Some(self.shaper.pass(now, train)),
            None => {
                self.shaper.on_idle(now);
                None
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let stream = self.control.as_deref().and_then(|control| control.stream.poll_timeout());
        let bulk = match self.shaper.next() {
            None => self.bulk.poll_timeout(),
            Some(next) if self.shaper.is_holding() => Some(next),
            Some(next) => self.bulk.poll_timeout().map(|due| due.max(next)),
        };
        earliest(stream, bulk)
    }

    fn poll_event(&mut self) -> Option<crate::event::Event> {
        self.bulk.poll_event()
    }

    fn envelopes(&mut self) -> Option<&mut Endpoint> {
        self.bulk.envelopes()
    }
}

#[cfg(test)]
mod tests;
