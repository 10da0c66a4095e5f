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

mod ceiling;
mod endpoint;
mod shaper;

use core::net::SocketAddr;

use farhaul_units::{Duration, Instant, Rate};

use self::ceiling::Ceiling;
use self::shaper::Shaper;
use crate::probe::{Probing, StableConfig, StableStream, is_probe};
use crate::transport::{Batch, Transmit, Transport, earliest};

/// An endpoint that can have a control stream beside its connections.
///
/// The ceiling holds for everything that the endpoint sends. So an endpoint with a control stream should have one peer.
#[derive(Debug)]
pub struct SharedChannel<T> {
    bulk: T,
    control: Option<Box<Control>>,
    shaper: Shaper,
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
        Self { bulk, control: None, shaper: Shaper::default() }
    }

    /// The endpoint of the bulk.
    pub const fn bulk(&self) -> &T {
        &self.bulk
    }

    /// The endpoint of the bulk, for commands.
    pub const fn bulk_mut(&mut self) -> &mut T {
        &mut self.bulk
    }

    /// Begins a control stream to the responder at `to`, instead of one that ran before. `session` is a random number
    /// that strangers do not guess.
    pub fn begin_control(&mut self, now: Instant, to: SocketAddr, config: StableConfig, session: u64) {
        let stream = StableStream::new(config, to, session, now);
        let ceiling = Ceiling::new(now, config.target);
        self.control = Some(Box::new(Control { stream, ceiling }));
        self.apply_ceiling(now);
    }

    /// Ends the control stream. The bulk has no ceiling any more.
    pub fn end_control(&mut self) {
        self.control = None;
        self.shaper.lift();
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

    /// Takes answers to the control stream. Returns whether `bytes` were for it.
    fn take_answers(&mut self, now: Instant, arrived: Instant, from: SocketAddr, bytes: &[u8], stride: usize) -> bool {
        let Some(control) = &mut self.control else { return false };
        if !is_probe(bytes) {
            return false;
        }
        for datagram in bytes.chunks(stride.max(1)) {
            control.stream.handle_datagram(arrived, from, datagram);
            if let Some((sent, round_trip)) = control.stream.take_round_trip() {
                control.ceiling.on_round_trip(now, sent, round_trip, &mut self.shaper);
            }
        }
        self.apply_ceiling(now);
        true
    }
}

impl<T: Transport> Transport for SharedChannel<T> {
    fn handle_datagrams(&mut self, now: Instant, arrived: Instant, from: SocketAddr, bytes: &mut [u8], stride: usize) {
        if !self.take_answers(now, arrived, from, bytes, stride) {
            self.bulk.handle_datagrams(now, arrived, from, bytes, stride);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.apply_ceiling(now);
        self.bulk.handle_timeout(now);
    }

    fn poll_transmit<'a>(&'a mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        if let Some(control) = &mut self.control
            && control.stream.poll_timeout().is_some_and(|due| due <= now)
        {
            return control.stream.poll_transmit(now, scratch);
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
}

#[cfg(test)]
mod tests;
