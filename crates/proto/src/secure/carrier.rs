//! A secure UDT connection that carries a connection of another protocol, and its end.
//!
//! ```text
//! Open ─▶ Flushing ─▶ Finishing ─▶ Closing ─▶ Closed
//!         rest of     peer has     close
//!         the stream  everything   packets
//! ```

use farhaul_units::Instant;

use super::sealed::Sealed;
use crate::config::Config;
use crate::endpoint::closing::{CloseKind, LONGEST_CLOSE};
use crate::endpoint::protocol::{Established, Output};
use crate::error::ConnectionLost;

/// Bytes of the stream in flight in one direction. The longest control record, a bitmap of a blast, has less than a tenth.
const STREAM_BUFFER: u64 = 4 << 20;

/// The settings of a carrier. Its stream carries control records, so it needs little memory and the usual rate control.
pub(super) fn settings(config: &Config) -> Config {
    Config {
        mss: config.mss,
        send_buffer: STREAM_BUFFER,
        recv_buffer: STREAM_BUFFER,
        connect_timeout: config.connect_timeout,
        peer_timeout: config.peer_timeout,
        linger: LONGEST_CLOSE,
        keep_alive: config.keep_alive,
        max_connections: config.max_connections,
        backlog: config.backlog,
        ..Config::default()
    }
}

/// The state of a carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    /// It is to end after the last bytes of the stream.
    Flushing,
    /// The peer has not acknowledged everything.
    Finishing,
    /// It tells its peer that it ends.
    Closing,
    /// Nothing is left to do for its peer.
    Closed,
}

/// A carrier.
pub(super) struct Carrier {
    pub(super) connection: Sealed,
    stage: Stage,
    /// Bytes of the stream that the connection did not take yet.
    unsent: Vec<u8>,
}

impl Carrier {
    pub(super) const fn new(connection: Sealed) -> Self {
        Self { connection, stage: Stage::Open, unsent: Vec::new() }
    }

    // ---- the stream ----

    /// Sends bytes of the stream. Returns false if some wait, and no others may follow.
    pub(super) fn write(&mut self, now: Instant, bytes: &[u8]) -> bool {
        if self.stage != Stage::Open {
            // Nobody hears them any more.
            return true;
        }
        let taken = self.connection.write(now, bytes);
        self.unsent.extend_from_slice(&bytes[taken..]);
        self.unsent.is_empty()
    }

    /// Sends the bytes that waited, if there is room. Returns whether they have all left now.
    pub(super) fn write_on(&mut self, now: Instant) -> bool {
        if self.unsent.is_empty() || !self.connection.has_room_again() {
            return false;
        }
        let taken = self.connection.write(now, &self.unsent);
        self.unsent.drain(..taken);
        if !self.unsent.is_empty() {
            return false;
        }
        if self.stage == Stage::Flushing {
            self.finish(now);
        }
        true
    }

    // ---- the end ----

    /// Ends it in order, after everything sent.
    pub(super) fn finish(&mut self, now: Instant) {
        match self.stage {
            Stage::Open if !self.unsent.is_empty() => self.stage = Stage::Flushing,
            Stage::Open | Stage::Flushing => {
                self.stage = Stage::Finishing;
                self.connection.begin_linger(now, LONGEST_CLOSE);
                self.check(now);
            }
            Stage::Finishing | Stage::Closing | Stage::Closed => {}
        }
    }

    /// Ends it at once.
    pub(super) fn end(&mut self, now: Instant, kind: CloseKind) {
        if matches!(self.stage, Stage::Open | Stage::Flushing) {
            self.stage = Stage::Closing;
            self.connection.begin_close(now, kind);
        }
    }

    /// Closes once the peer has everything.
    pub(super) fn check(&mut self, now: Instant) {
        if self.stage == Stage::Finishing && self.connection.may_close() {
            self.stage = Stage::Closing;
            self.connection.begin_close(now, CloseKind::Closed);
        }
    }

    /// The peer ended it, or it failed. Returns false if this side was ending it.
    pub(super) fn lose(&mut self) -> bool {
        let was = std::mem::replace(&mut self.stage, Stage::Closed);
        if was != Stage::Closed {
            self.unsent = Vec::new();
            self.connection.close();
        }
        was == Stage::Open
    }

    // ---- output ----

    /// Its own next packets.
    pub(super) fn poll(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<Output> {
        if self.stage == Stage::Closed {
            return None;
        }
        self.check(now);
        let output = self.connection.poll(now, scratch);
        if output.is_none() && self.stage == Stage::Closing && self.connection.is_close_sent() {
            self.connection.close();
            self.stage = Stage::Closed;
        }
        output
    }

    /// When to call next.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        if self.stage == Stage::Closed { None } else { self.connection.deadline(now) }
    }

    // ---- facts ----

    /// Whether this side has not begun to end it.
    pub(super) fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Whether nothing is left to do for its peer.
    pub(super) fn is_closed(&self) -> bool {
        self.stage == Stage::Closed
    }
}

/// Whether a connection ended as its sides wanted.
pub(super) const fn is_orderly(reason: ConnectionLost) -> bool {
    matches!(reason, ConnectionLost::ClosedByPeer | ConnectionLost::Aborted | ConnectionLost::ClosedLocally)
}
