//! A stream of bytes over one connection or several: its calls.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use farhaul::{Bytes, ConnectionLost, Error, Rate, Stats, Stream};

use crate::first::{First, recv_copied};
use crate::flow::{last_stats, lock};
use crate::shared::{BACKGROUND, Shared};

/// A stream of bytes in both directions, over one connection or several. Clones are handles of the same stream.
///
/// Its calls are those of [`Stream`]. Dropping the last handle without an end aborts it.
#[derive(Clone)]
pub struct BondedStream(Arc<Handle>);

struct Handle(Arc<Shared>);

impl From<Stream> for BondedStream {
    /// A stream over this connection alone.
    fn from(first: Stream) -> Self {
        Self::new(first.into(), false, 0)
    }
}

impl BondedStream {
    /// A stream that flows may join. `received` bytes of it were read from its first connection already.
    pub fn open(first: Stream, received: u64) -> Self {
        Self::open_from(first.into(), received)
    }

    /// The same, however it begins.
    pub fn open_from(first: First, received: u64) -> Self {
        Self::new(first, true, received)
    }

    /// The same after so many bytes of this side, which have gone with [`mux::opening`](crate::mux::opening).
    #[must_use]
    pub fn after_opening(self, bytes: usize) -> Self {
        *lock(&self.shared().outgoing.first) += bytes as u64;
        self
    }

    /// A stream over this one alone.
    pub fn only(first: First) -> Self {
        Self::new(first, false, 0)
    }

    fn new(first: First, is_open: bool, received: u64) -> Self {
        Self(Arc::new(Handle(Arc::new(Shared::new(first, is_open, received)))))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }

    /// What it begins as.
    pub fn first(&self) -> &First {
        &self.shared().first
    }

    /// Its first connection, for the peer's keys. `None` if it began through ssh.
    pub fn connection(&self) -> Option<&Stream> {
        self.first().connection()
    }

    /// A connection over UDP that carries it, for the peer's keys: the first one, or a flow that has joined.
    pub fn any_connection(&self) -> Option<Stream> {
        self.connection().cloned().or_else(|| self.shared().joined().first().map(|flow| flow.stream.clone()))
    }

    /// The address of its peer; the unspecified one if ssh does not tell it.
    pub fn peer_addr(&self) -> SocketAddr {
        self.first().peer_addr()
    }

    /// Flows that carry its data: those that have joined, or the first connection.
    pub fn flows(&self) -> usize {
        lock(&self.shared().flows).len().max(1)
    }

    /// Takes as much of `data` as fits, as [`Stream::send`].
    ///
    /// # Errors
    /// As there. The loss of one flow is the loss of the stream.
    pub fn send(&self, data: &[u8]) -> Result<usize, Error> {
        let shared = self.shared();
        if shared.is_open { shared.send(data) } else { shared.first.send(data) }
    }

    /// Takes as much of a block as fits, as [`Stream::send_block`]. A stream that flows may join copies it.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn send_block(&self, block: Bytes) -> Result<usize, Error> {
        let shared = self.shared();
        if shared.is_open { shared.send(&block) } else { shared.first.send_block(block) }
    }

    /// Takes all of `data`, as [`Stream::send_all`].
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn send_all(&self, mut data: &[u8]) -> Result<(), Error> {
        while !data.is_empty() {
            data = &data[self.send(data)?..];
        }
        Ok(())
    }

    /// Sends the offer of a stream that no request begins. Its bytes do not count as acknowledged ones.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn send_offer(&self, offer: &[u8]) -> Result<(), Error> {
        self.shared().offered.store(offer.len() as u64, Ordering::Release);
        self.send_all(offer)
    }

    /// Moves received bytes into `out`, as [`Stream::recv`]. Zero is the end of the stream.
    ///
    /// # Errors
    /// As there. The loss of one flow is the loss of the stream.
    pub fn recv(&self, out: &mut [u8]) -> Result<usize, Error> {
        let shared = self.shared();
        if shared.is_open { shared.recv(out) } else { shared.first.recv(out) }
    }

    /// Appends received blocks to `blocks`, as [`Stream::recv_blocks`].
    ///
    /// # Errors
    /// As for [`recv`](Self::recv).
    pub fn recv_blocks(&self, blocks: &mut Vec<Bytes>) -> Result<usize, Error> {
        let shared = self.shared();
        match shared.is_open {
            true => recv_copied(blocks, |out| shared.recv(out)),
            false => shared.first.recv_blocks(blocks),
        }
    }

    /// Sets the longest wait of a receiving call, as [`farhaul::Connection::set_read_timeout`].
    pub fn set_read_timeout(&self, timeout: Option<Duration>) {
        let shared = self.shared();
        lock(&shared.timeouts).read = timeout;
        // Flows may have joined. Then a thread reads the first connection, and waits as long as the stream lasts.
        if !shared.is_open {
            shared.first.set_read_timeout(timeout);
        }
    }

    /// Sets the longest wait of a sending call, as [`farhaul::Connection::set_write_timeout`].
    pub fn set_write_timeout(&self, timeout: Option<Duration>) {
        lock(&self.shared().timeouts).write = timeout;
        self.first().set_write_timeout(timeout);
    }

    /// Sends the last words to a peer that may be gone, and finishes in the background. Never waits.
    pub fn part(&self, words: &[u8]) {
        self.set_write_timeout(Some(Duration::ZERO));
        // A short message fits, unless the peer has acknowledged nothing so far.
        let _ = self.shared().send_at_once(words);
        self.finish_in_background();
    }

    /// Waits until the peer has acknowledged everything, and closes, as [`farhaul::Connection::finish`].
    ///
    /// # Errors
    /// As there.
    pub fn finish(&self) -> Result<(), Error> {
        let shared = self.shared();
        if !shared.begin_closing() {
            return shared.first.finish();
        }
        let written = shared.end_outgoing(false).and_then(|()| shared.wait_for_writers(None));
        written.inspect_err(|error| {
            // The peer would wait for blocks that are lost. After a cancellation, last words may still leave.
            if !matches!(error, Error::Cancelled) {
                self.abort();
            }
        })?;
        for flow in shared.joined() {
            flow.stream.finish_in_background();
        }
        shared.first.finish_in_background();
        shared.wait_until_closed()
    }

    /// Finishes, and does not wait for the peer, as [`farhaul::Connection::finish_in_background`].
    pub fn finish_in_background(&self) {
        let shared = self.shared();
        if shared.begin_closing() {
            let deadline = shared.clock.now() + BACKGROUND;
            let _ = shared.end_outgoing(false).and_then(|()| shared.wait_for_writers(Some(deadline)));
            shared.joined().iter().for_each(|flow| flow.stream.finish_in_background());
        }
        shared.first.finish_in_background();
    }

    /// Whether each direction can end alone, as [`Stream::has_half_close`].
    ///
    /// # Errors
    /// As there.
    pub fn has_half_close(&self) -> Result<bool, Error> {
        self.first().has_half_close()
    }

    /// Ends this side's direction, as [`Stream::finish_sending`].
    ///
    /// # Errors
    /// As there.
    pub fn finish_sending(&self) -> Result<(), Error> {
        let shared = self.shared();
        if shared.is_open {
            shared.end_outgoing(true)?;
        }
        shared.first.finish_sending()
    }

    /// Waits until the stream has closed at both ends.
    ///
    /// # Errors
    /// As there.
    pub fn wait_until_closed(&self) -> Result<(), Error> {
        let shared = self.shared();
        // Flows may join as long as the first connection lasts.
        shared.first.wait_until_closed()?;
        if shared.is_bonded() {
            shared.wait_for_writers(None)?;
        }
        shared.wait_until_closed()
    }

    /// Ends the stream at once, in both directions.
    pub fn close(&self) {
        self.shared().leave(|stream| stream.close());
    }

    /// Ends the stream at once, because this side cannot go on, as [`farhaul::Connection::abort`].
    pub fn abort(&self) {
        self.shared().leave(|stream| stream.abort());
    }

    /// Caps the sending rate from now on, as [`farhaul::Connection::set_max_rate`]. The cap holds for all flows together.
    ///
    /// # Errors
    /// As there.
    pub fn set_max_rate(&self, rate: Option<Rate>) -> Result<(), Error> {
        self.shared().set_max_rate(rate)
    }

    /// Replaces the congestion controller of each flow, as [`farhaul::Connection::set_controller`].
    ///
    /// # Errors
    /// As there.
    pub fn set_controller(&self, name: &str) -> Result<(), Error> {
        self.shared().set_controller(name)
    }

    /// Ends the calls that wait, now and from now on.
    pub fn cancel(&self) {
        self.shared().cancel();
    }

    /// Whether the calls that wait have ended.
    pub fn is_cancelled(&self) -> bool {
        self.shared().is_cancelled.load(Ordering::Acquire) || self.first().is_cancelled()
    }

    /// What ends the calls that wait, for another thread.
    pub fn canceller(&self) -> impl Fn() + Send + use<> {
        let shared = Arc::downgrade(self.shared());
        move || {
            if let Some(shared) = shared.upgrade() {
                shared.cancel();
            }
        }
    }

    /// How the stream has ended, as [`farhaul::Connection::ending`].
    ///
    /// # Errors
    /// As there.
    pub fn ending(&self) -> Result<Option<ConnectionLost>, Error> {
        let shared = self.shared();
        // The first connection may end a moment later.
        match shared.first.ending()? {
            None if shared.is_bonded() && shared.incoming.is_over() => Ok(Some(ConnectionLost::ClosedByPeer)),
            ending => Ok(ending),
        }
    }

    /// Counters and estimates of all its connections: sums of amounts, means of times.
    ///
    /// # Errors
    /// The first connection is gone.
    pub fn stats(&self) -> Result<Stats, Error> {
        let shared = self.shared();
        let first = shared.first.stats()?;
        let mut stats = if shared.is_bonded() { shared.sum(first) } else { first };
        stats.max_rate = shared.cap(stats.max_rate);
        let acknowledged = &mut stats.totals.bytes_acked;
        *acknowledged = acknowledged.saturating_sub(shared.offered.load(Ordering::Acquire));
        Ok(stats)
    }

    /// The figures of each connection. One that has ended keeps its last ones.
    pub fn each_stats(&self) -> Vec<Stats> {
        let shared = self.shared();
        let first = last_stats(shared.first.stats(), &shared.first_stats);
        let further = shared.joined();
        std::iter::once(first).chain(further.iter().map(|flow| flow.stats())).collect()
    }
}

impl fmt::Debug for BondedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BondedStream").field("first", self.first()).field("flows", &self.flows()).finish()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let shared = &self.0;
        // Its threads have handles of the connections, so these do not end by themselves.
        if shared.is_bonded() && !shared.is_closing.load(Ordering::Acquire) {
            shared.leave(|stream| stream.abort());
        }
    }
}
