//! One connection from its first packet to its last: its phases, its end, and what its application hears.

mod commands;

use core::net::SocketAddr;

use farhaul_units::{Duration, Instant};

use super::farewell::Parting;
use super::life::{Ending, Life};
use super::protocol::{Conductor, Effect, Opening, Output, Protocol, Setup, Step};
use super::slots::Occupant;
use super::standing::Standing;
use crate::config::Mode;
use crate::error::ConnectionLost;
use crate::event::{ConnectionId, Event};
use crate::stats::Stats;

/// A connection.
pub(crate) struct Connection<P: Protocol> {
    standing: Standing,
    name: Name<P::Key>,
    opened: Instant,
    linger: Duration,
    /// The peer called this side.
    accepted: bool,
    phase: Phase<P::Opening, P::Established>,
}

/// The facts of a connection that never change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<K> {
    /// Its name in the datagrams of the peer.
    pub(crate) key: K,
    pub(crate) peer: SocketAddr,
    pub(crate) mode: Mode,
}

enum Phase<O, E> {
    Opening(Box<O>),
    Established(Box<E>),
}

impl<P: Protocol> Connection<P> {
    /// A connection that this side opens. `linger` is the longest time without progress after `finish`.
    pub(super) fn opening(
        id: ConnectionId,
        name: Name<P::Key>,
        opening: P::Opening,
        linger: Duration,
        now: Instant,
    ) -> Self {
        let phase = Phase::Opening(Box::new(opening));
        Self { standing: Standing::opening(id), name, opened: now, linger, accepted: false, phase }
    }

    /// A connection that a caller opened and that the application must take.
    pub(super) fn accepted(
        id: ConnectionId,
        name: Name<P::Key>,
        established: P::Established,
        linger: Duration,
        now: Instant,
    ) -> Self {
        let phase = Phase::Established(Box::new(established));
        Self { standing: Standing::accepted(id), name, opened: now, linger, accepted: true, phase }
    }

    // ---- input ----

    /// A datagram from the peer's address. Returns false if it is invalid.
    pub(super) fn on_datagram(&mut self, datagram: &[u8], setup: Setup<'_>) -> bool {
        if self.standing.is_over() {
            return true;
        }
        let now = setup.now;
        if let Phase::Opening(opening) = &mut self.phase {
            match opening.on_datagram(datagram, setup) {
                Step::Wait => return true,
                Step::Invalid => return false,
                Step::Failed(reason) => {
                    self.end(reason);
                    return true;
                }
                Step::Done(established) => {
                    self.phase = Phase::Established(established);
                    self.standing.established();
                }
            }
        }
        let Phase::Established(established) = &mut self.phase else { return true };
        let effect = established.on_datagram(datagram, now);
        self.apply(effect);
        effect != Effect::Invalid
    }

    /// The next datagrams reached this computer at `arrived`.
    pub(super) fn begin_batch(&mut self, arrived: Instant) {
        if let Phase::Established(established) = &mut self.phase {
            established.begin_batch(arrived);
        }
    }

    /// Ends a batch: all datagrams of one receive call were handled.
    pub(super) fn finish_batch(&mut self, now: Instant) {
        if let Phase::Established(established) = &mut self.phase {
            established.finish_batch(now);
        }
        self.wake();
        self.check_flushed(now);
    }

    /// The driver called `gap` late after a deadline, so this computer was suspended.
    pub(super) fn on_suspended(&mut self, now: Instant, gap: Duration) {
        match &mut self.phase {
            Phase::Opening(opening) => opening.on_suspended(gap),
            Phase::Established(established) => established.on_suspended(now),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        match &mut self.phase {
            Phase::Opening(opening) => {
                if let Some(reason) = opening.check(now) {
                    self.end(reason);
                }
            }
            Phase::Established(established) => {
                if !self.standing.is_over() {
                    let effect = established.handle_timeout(now);
                    self.apply(effect);
                }
            }
        }
        self.check_flushed(now);
        self.wake();
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::GoOn | Effect::Invalid => {}
            Effect::Lost(reason) => self.end(reason),
            Effect::Complained(code) => self.standing.complain(code),
            Effect::PeerLeft { complete, delivered } => {
                let in_order = complete && delivered;
                let reason = if in_order { ConnectionLost::ClosedByPeer } else { ConnectionLost::Aborted };
                self.conclude(Ending { reason, complete });
            }
        }
    }

    fn end(&mut self, reason: ConnectionLost) {
        self.conclude(Ending::early(reason));
    }

    fn conclude(&mut self, mut ending: Ending) {
        if let Phase::Established(established) = &self.phase {
            ending.reason = established.explain(ending.reason);
        }
        if self.standing.lost(ending) {
            if let Phase::Established(established) = &mut self.phase {
                established.close();
            }
            self.wake();
        }
    }

    fn check_flushed(&mut self, now: Instant) {
        let Phase::Established(established) = &mut self.phase else { return };
        if self.standing.life() == Life::Finishing && established.is_flushed() {
            established.farewell().begin(now, Parting::Closed);
            // Nothing more will arrive. As far as this side can know, the received data is complete.
            let complete = established.is_complete();
            self.standing.flushed(complete);
            self.wake();
        }
    }

    /// Wakes waiting readers and writers if their state changed.
    fn wake(&mut self) {
        let Phase::Established(established) = &mut self.phase else {
            self.standing.wake_reader(|| false);
            return;
        };
        self.standing.wake_reader(|| established.can_read());
        self.standing.wake_writer(|| established.has_room_again());
    }

    // ---- output ----

    /// The next datagrams to send, if any.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        scratch: &mut Vec<u8>,
    ) -> Option<Output<<P::Established as Conductor>::Transmission>> {
        if self.standing.is_over() {
            return None;
        }
        let established = match &mut self.phase {
            Phase::Opening(opening) => return opening.poll(now, scratch).then_some(Output::Scratch),
            Phase::Established(established) => established,
        };
        let output = established.poll(now, scratch);
        if output.is_none() && self.standing.life() == Life::Leaving && established.farewell().is_told() {
            established.close();
            self.standing.told();
        }
        output
    }

    /// The data packets of an output.
    pub(super) fn emit(
        &mut self,
        transmission: <P::Established as Conductor>::Transmission,
        now: Instant,
    ) -> Option<(usize, &[u8])> {
        let established = self.established_mut()?;
        established.emit(transmission, now).map(|run| (run.segment_size, &*run.bytes))
    }

    /// When to call this connection next.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        if self.standing.is_over() {
            return None;
        }
        match &self.phase {
            Phase::Opening(opening) => opening.deadline(),
            Phase::Established(established) => established.deadline(now),
        }
    }

    /// The events since the last call.
    pub(super) fn take_events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.standing.take_events()
    }

    // ---- facts ----

    /// Its name in the datagrams of the peer.
    pub(crate) const fn key(&self) -> P::Key {
        self.name.key
    }

    /// Whether nothing is sent or received any more.
    pub(crate) const fn is_over(&self) -> bool {
        self.standing.is_over()
    }

    /// Whether it can be forgotten.
    pub(super) const fn is_done(&self) -> bool {
        self.standing.is_done()
    }

    /// Whether this side has closed it and still repeats its shutdown.
    pub(super) fn is_leaving(&self) -> bool {
        self.standing.life() == Life::Leaving
    }

    /// Whether the peer called.
    pub(crate) const fn is_accepted(&self) -> bool {
        self.accepted
    }

    /// Its opening; `None` once it is established.
    pub(crate) fn as_opening(&self) -> Option<&P::Opening> {
        match &self.phase {
            Phase::Opening(opening) => Some(opening),
            Phase::Established(_) => None,
        }
    }

    /// The protocol's part; `None` before it is established.
    pub(crate) fn established(&self) -> Option<&P::Established> {
        match &self.phase {
            Phase::Established(established) => Some(established),
            Phase::Opening(_) => None,
        }
    }

    /// The same, mutable.
    pub(crate) fn established_mut(&mut self) -> Option<&mut P::Established> {
        match &mut self.phase {
            Phase::Established(established) => Some(established),
            Phase::Opening(_) => None,
        }
    }

    pub(super) fn stats(&self, now: Instant) -> Stats {
        let mut stats = Stats { elapsed: now - self.opened, ..Stats::default() };
        if let Some(established) = self.established() {
            established.fill_stats(now, &mut stats);
        }
        stats
    }
}

impl<P: Protocol> Occupant for Connection<P> {
    fn id(&self) -> ConnectionId {
        self.standing.id()
    }

    fn peer(&self) -> SocketAddr {
        self.name.peer
    }

    fn was_heard(&self) -> bool {
        self.established().is_some_and(Conductor::was_heard)
    }

    fn is_half_open(&self) -> bool {
        self.accepted && !self.was_heard() && self.standing.life().is_alive()
    }

    fn waits_for_application(&self) -> bool {
        self.standing.waits_for_application()
    }
}
