//! The state of the stream: both directions, who is heard, and the end.

mod incoming;
mod outgoing;

use std::time::Duration;

use farhaul::{ConnectionLost, Stats};
use farhaul_proto::PeerMisbehaved;
use farhaul_units::Instant;

use super::frame::{Frame, is_data, is_message};
use super::{SILENCE, WINDOW};
use incoming::Incoming;
use outgoing::{Outgoing, QUEUE};

/// Time without anything to say, after which the peer is told all the same.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// What both threads and all handles share.
#[derive(Debug)]
pub(super) struct MuxState {
    out: Outgoing,
    into: Incoming,
    /// Why the stream is over for this side.
    over: Option<Over>,
    /// The stream is used: the peer is to be heard from now on.
    has_begun: bool,
    began: Instant,
    /// When the peer said something, and when this side did.
    heard: Instant,
    spoke: Instant,
    /// The longest silence of a peer that is not lost.
    pub(super) silence: Duration,
    /// Others carry the stream, so its silence means nothing.
    rests: bool,
    /// A reader that waits is to look up.
    pub(super) is_woken: bool,
    /// The pipe takes no more.
    is_out_gone: bool,
    /// Nothing is said any more once everything was written.
    hangs_up: bool,
    counts_received: u64,
    counts_sent: u64,
    pub(super) read_timeout: Option<Duration>,
    pub(super) write_timeout: Option<Duration>,
}

/// The end of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// This side has left it. What was taken is still written.
    Left,
    /// This side has given it up.
    GivenUp,
    Lost(ConnectionLost),
}

impl MuxState {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            out: Outgoing::new(),
            into: Incoming::new(),
            over: None,
            has_begun: false,
            began: now,
            heard: now,
            spoke: now,
            silence: SILENCE,
            rests: false,
            is_woken: false,
            is_out_gone: false,
            hangs_up: false,
            counts_received: 0,
            counts_sent: 0,
            read_timeout: None,
            write_timeout: None,
        }
    }

    fn begin(&mut self, now: Instant) {
        if !self.has_begun {
            self.has_begun = true;
            self.heard = now;
        }
    }

    /// Whether both sides are to hear of each other.
    fn is_watched(&self) -> bool {
        let is_awaited = self.over.is_none() || self.over == Some(Over::Left) && !self.has_arrived();
        self.has_begun && !self.rests && is_awaited && !self.has_closed()
    }

    /// Others carry the stream from now on.
    pub(super) fn rest(&mut self) {
        (self.rests, self.is_woken) = (true, true);
    }

    /// The peer has said something.
    pub(super) fn hear(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Looks whether the peer has been silent for too long.
    pub(super) fn look(&mut self, now: Instant) {
        if self.is_watched() && now.saturating_since(self.heard) >= self.silence {
            self.lose(ConnectionLost::PeerSilent(self.silence));
        }
    }

    /// The pipe gives no more.
    pub(super) fn lose_in(&mut self) {
        self.lose(ConnectionLost::Aborted);
    }

    fn misbehaved(&mut self, what: &'static str) {
        self.lose(ConnectionLost::PeerMisbehaved(PeerMisbehaved::out_of_turn(what)));
    }

    pub(super) fn malformed(&mut self) {
        self.misbehaved("frame through ssh");
    }

    fn lose(&mut self, why: ConnectionLost) {
        match self.over {
            _ if self.has_closed() => {}
            None => self.over = Some(Over::Lost(why)),
            // What was taken is lost.
            Some(Over::Left) if !self.has_arrived() => self.over = Some(Over::Lost(why)),
            Some(_) => {}
        }
    }

    /// Ends this side's direction.
    pub(super) fn end(&mut self) {
        if !self.out.has_ended && self.put(Frame::End).is_ok() {
            self.out.has_ended = true;
        }
    }

    /// Leaves the stream behind everything that was taken.
    pub(super) fn leave(&mut self) {
        self.end();
        if self.has_begun && self.over.is_none() {
            let _ = self.put(Frame::Close { in_order: true });
        }
        self.over.get_or_insert(Over::Left);
    }

    /// Gives the stream up.
    pub(super) fn give_up(&mut self) {
        if self.has_begun && matches!(self.over, None | Some(Over::Lost(_))) && !self.has_closed() {
            self.out.frames.retain(|frame| !is_data(frame));
            self.out.waiting = self.out.frames.iter().filter(|frame| !is_message(frame)).map(Vec::len).sum();
            let _ = self.put(Frame::Close { in_order: false });
        }
        self.over.get_or_insert(Over::GivenUp);
    }

    /// Whether both directions have ended, and everything has arrived.
    pub(super) fn has_closed(&self) -> bool {
        self.has_arrived() && self.into.has_ended
    }

    /// Whether the stream is used.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether this side's direction has ended, and all of it has arrived.
    pub(super) fn has_arrived(&self) -> bool {
        self.out.has_ended && self.out.arrived > self.out.taken
    }

    pub(super) fn has_ended(&self) -> bool {
        self.out.has_ended
    }

    pub(super) fn over(&self) -> Option<Over> {
        self.over
    }

    pub(super) fn stats(&self, now: Instant) -> Stats {
        let mut stats = Stats::default();
        let Self { out, into, .. } = self;
        stats.elapsed = now.saturating_since(self.began);
        stats.silence = Some(now.saturating_since(self.heard));
        stats.max_rate = out.cap;
        stats.rtt = out.timing.smoothed;
        stats.min_rtt = out.timing.least.unwrap_or_default();
        stats.send_buffer_free = QUEUE.saturating_sub(out.waiting + out.in_hand) as u64;
        stats.recv_buffer_free = WINDOW - (into.received - into.read).min(WINDOW);
        stats.memory = (out.waiting + out.in_hand) as u64 + (into.received - into.read);
        let totals = &mut stats.totals;
        (totals.acks_received, totals.acks_sent) = (self.counts_received, self.counts_sent);
        (totals.bytes_written, totals.bytes_acked) = (out.taken, out.arrived.min(out.taken));
        (totals.bytes_received, totals.bytes_read) = (into.received, into.read);
        totals.limited_by_flow_window = out.no_room;
        totals.send_duration = stats.elapsed;
        stats
    }
}
