//! One connection as seen by its handles: what streams and message sockets have in common.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(feature = "tokio")]
use std::task::{Context, Poll};
use std::time::Duration;

use farhaul_proto::{ConnectionId, ConnectionLost, Stats, Streams};
use farhaul_units::Instant;

use crate::canceller::{CancelFlag, Canceller};
use crate::driver::{CancelFlags, Core, Driver, Place};
#[cfg(feature = "tokio")]
use crate::driver::{Registration, TaskWait};
use crate::error::Error;
use crate::protocol::AnyEndpoint;
use crate::reach::Reaching;

/// A UDP port with a UDT endpoint on it, shared by all handles.
pub(crate) struct Port {
    pub(crate) driver: Driver<AnyEndpoint>,
    /// Raised by the endpoint's canceller: ends every wait on this port.
    pub(crate) cancelled: Arc<CancelFlag>,
    /// How long a connection attempt may take, and one by rendezvous.
    pub(crate) connect_timeouts: [Duration; 2],
    /// Longest message that can ever be sent.
    pub(crate) longest_message: u64,
}

/// What a [`Stream`](crate::Stream) and a [`MessageSocket`](crate::MessageSocket) have in common; both dereference to it.
///
/// All clones of a stream or message socket share one. When the last of them is dropped the connection is
/// [aborted](Connection::abort), unless it was finished or closed before.
pub struct Connection {
    port: Arc<Port>,
    id: ConnectionId,
    peer: SocketAddr,
    cancelled: Arc<CancelFlag>,
    read_timeout: TimeLimit,
    write_timeout: TimeLimit,
}

/// An optional duration that threads share.
struct TimeLimit(AtomicU64);

impl Port {
    pub(crate) fn canceller(&self) -> Canceller {
        Canceller::new(&self.cancelled, self.driver.cancellation())
    }
}

impl Connection {
    pub(crate) fn new(port: Arc<Port>, id: ConnectionId, peer: SocketAddr) -> Self {
        let cancelled = Arc::default();
        Self { port, id, peer, cancelled, read_timeout: TimeLimit::none(), write_timeout: TimeLimit::none() }
    }

    /// The connection that waited longest to be accepted. An attempt for [`Place::Accept`].
    pub(crate) fn accept(port: &Arc<Port>, core: &mut Core<AnyEndpoint>) -> Option<Self> {
        while let Some(id) = core.next_accepted() {
            core.transport.claim(id);
            if let Some(peer) = core.transport.peer(id) {
                return Some(Self::new(Arc::clone(port), id, peer));
            }
        }
        None
    }

    /// Waits until the peer has acknowledged everything that was written, then closes the connection.
    ///
    /// Writing is over from the call on, for every handle; reading goes on until everything is acknowledged. What the peer
    /// sent by then can still be read, and after it comes the end of the stream.
    ///
    /// **This is no half-close.** UDT4 cannot close one direction alone, so what the peer had yet to send never comes, and the
    /// peer's writes fail. If both sides have something to say, let one finish only after it has read the other's last word.
    /// If both finish at the same time, the one whose data is still on its way when the other's close arrives gets
    /// [`ConnectionLost::Aborted`].
    ///
    /// # Errors
    /// The connection was lost before everything was acknowledged, or the peer made no progress for the endpoint's
    /// linger time.
    pub fn finish(&self) -> Result<(), Error> {
        self.begin_to_finish()?;
        self.port.driver.wait_for(Place::Settle(self.id), self.flags(), None, self.is_finished())
    }

    /// Begins to [finish](Connection::finish) and returns at once. The connection then outlives its last handle, until the
    /// peer has acknowledged everything or the linger time is over. It needs another handle of the same port, such as the
    /// endpoint's, to live that long. Input that arrives after the last handle is gone is thrown away.
    ///
    /// For last words to a peer that nobody waits for. An endpoint keeps the latest 256 connections without handles, and
    /// aborts older ones.
    pub fn finish_in_background(&self) {
        // Without a driver thread there is nothing left to finish.
        if let Ok(mut turn) = self.port.driver.turn() {
            let now = turn.now();
            turn.finish_in_background(now, self.id);
        }
    }

    /// Ends the connection at once, in both directions, without waiting.
    ///
    /// If the peer has acknowledged everything that was written, it reads to the end of the stream, as after
    /// [`finish`](Connection::finish). Otherwise data is lost, and this is an [`abort`](Connection::abort).
    pub fn close(&self) {
        if let Ok(mut turn) = self.port.driver.turn() {
            let now = turn.now();
            turn.transport.close(now, self.id);
        }
    }

    /// Ends the connection at once, in both directions, because this side cannot go on.
    ///
    /// The peer reads what has arrived, and then [`ConnectionLost::Aborted`] in place of the end of the stream, whether or not
    /// anything is missing. Its writes fail. Dropping the last handle of an unfinished connection does the same. Without effect
    /// after [`finish`](Connection::finish) has returned.
    ///
    /// Plain UDT4 has no packet for this, so between two ends of this library an error signal stands for it, with libudt's code
    /// for a broken connection (2001). libudt does not know it as an end: a libudt peer notices the silence after 53 s.
    pub fn abort(&self) {
        if let Ok(mut turn) = self.port.driver.turn() {
            let now = turn.now();
            turn.transport.abort(now, self.id);
        }
    }

    /// The address of the peer.
    pub fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// The address of this side's UDP port.
    pub fn local_addr(&self) -> SocketAddr {
        self.port.driver.local_addr()
    }

    /// Counters and estimates, as UDT's `perfmon` gives them and more.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn stats(&self) -> Result<Stats, Error> {
        let turn = self.port.driver.turn()?;
        turn.transport.stats(turn.now(), self.id).ok_or(Error::Lost(ConnectionLost::ClosedLocally))
    }

    /// Sends a user-defined control packet of this `kind` to the peer's congestion controller (`sendCustomMsg` of libudt's
    /// CCC): at once, past the data that waits, and at most once, since nothing repeats it when it is lost. What more than a
    /// few at a time would take is dropped as well.
    ///
    /// `body` may be as long as a packet's payload, [`Stats::payload_size`]. libudt reads it as 32-bit words in the byte order
    /// of its machine, having turned each from that of the network, so for libudt it should be whole such words.
    ///
    /// At the other end a controller gets it that asks for such packets: in this library
    /// [`Controller::on_custom_message`](farhaul_cc::Controller::on_custom_message) with
    /// [`wants_custom_messages`](farhaul_cc::Controller::wants_custom_messages), set with
    /// [`controller_with`](crate::Builder::controller_with); in libudt `processCustomMsg`. All others ignore it.
    ///
    /// # Errors
    /// The body is too long; the connection is over.
    pub fn send_custom(&self, kind: u16, body: &[u8]) -> Result<(), Error> {
        let mut turn = self.port.driver.turn()?;
        let status = turn.status(self.id).ok_or(Error::Lost(ConnectionLost::ClosedLocally))?;
        if let Some(lost) = status.lost {
            return Err(lost.into());
        }
        if status.finished {
            return Err(Error::Finished);
        }
        let stats = turn.transport.stats(turn.now(), self.id).ok_or(Error::Lost(ConnectionLost::ClosedLocally))?;
        let (len, longest) = (body.len(), u64::from(stats.payload_size));
        if len as u64 > longest {
            return Err(Error::MessageTooLong { len, longest });
        }
        turn.transport.send_custom(self.id, kind, body);
        Ok(())
    }

    /// How long receiving may wait (`UDT_RCVTIMEO`); `None`, the default, is for ever. Shared by all clones. For blocking
    /// calls only: tasks use the time-outs of their runtime, such as `tokio::time::timeout`.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) {
        self.read_timeout.set(timeout);
    }

    /// How long sending may wait (`UDT_SNDTIMEO`); `None`, the default, is for ever. Shared by all clones. For blocking
    /// calls only, as for [reading](Connection::set_read_timeout).
    pub fn set_write_timeout(&self, timeout: Option<Duration>) {
        self.write_timeout.set(timeout);
    }

    /// Ends blocked calls of this connection from elsewhere, and later ones that would have to wait until
    /// [`reset`](Canceller::reset): of all its clones, in both directions, [`finish`](Connection::finish) included.
    pub fn canceller(&self) -> Canceller {
        Canceller::new(&self.cancelled, self.port.driver.cancellation())
    }

    pub(crate) fn id(&self) -> ConnectionId {
        self.id
    }

    pub(crate) fn longest_message(&self) -> u64 {
        self.port.longest_message
    }

    /// Waits until `attempt` gives something, trying again whenever there is something to read.
    pub(crate) fn when_readable<R>(&self, attempt: impl Attempt<R>) -> Result<R, Error> {
        self.port.driver.wait_for(Place::Read(self.id), self.flags(), self.read_timeout.value(), attempt)
    }

    /// Waits until `attempt` gives something, trying again whenever there is room.
    pub(crate) fn when_writable<R>(&self, attempt: impl Attempt<R>) -> Result<R, Error> {
        self.port.driver.wait_for(Place::Write(self.id), self.flags(), self.write_timeout.value(), attempt)
    }

    /// Waits until the connection is established, or `reaching` gives up.
    pub(crate) fn wait_until_connected(&self, mut reaching: Reaching) -> Result<(), Error> {
        let id = self.id;
        let look = |core: &mut Core<_>, now| reaching.look(core, now, id);
        self.port.driver.wait_for(Place::Settle(id), self.flags(), None, look)
    }

    /// Tells the peer that what it sends cannot be stored.
    pub(crate) fn signal_error(&self, code: u32) {
        if let Ok(mut turn) = self.port.driver.turn() {
            turn.transport.signal_error(self.id, code);
        }
    }

    /// Says that no more data will be written.
    pub(crate) fn begin_to_finish(&self) -> Result<(), Error> {
        let mut turn = self.port.driver.turn()?;
        let now = turn.now();
        turn.transport.finish(now, self.id);
        Ok(())
    }

    /// Tries `attempt` once, and has the task woken when it is worth another try.
    #[cfg(feature = "tokio")]
    pub(crate) fn poll<R>(
        &self,
        place: Place,
        cx: &Context<'_>,
        registration: &mut Registration,
        attempt: impl Attempt<R>,
    ) -> Poll<Result<R, Error>> {
        self.port.driver.poll_for(place, self.flags(), cx, registration, attempt)
    }

    /// A task no longer waits for what it [polled](Self::poll).
    #[cfg(feature = "tokio")]
    pub(crate) fn withdraw(&self, place: Place, registration: &mut Registration) {
        self.port.driver.withdraw(place, registration);
    }

    /// Has a task wait until `attempt` gives something, trying again whenever the bell of `place` rings.
    #[cfg(feature = "tokio")]
    pub(crate) fn wait<R>(&self, place: Place, attempt: impl Attempt<R>) -> impl Future<Output = Result<R, Error>> {
        TaskWait::new(&self.port.driver, place, self.flags(), attempt)
    }

    /// Whether everything was acknowledged: an attempt for [`Place::Settle`].
    pub(crate) fn is_finished(&self) -> impl Attempt<()> {
        let id = self.id;
        move |core: &mut Core<_>, _| {
            let status = core.status(id).ok_or(Error::Lost(ConnectionLost::ClosedLocally))?;
            match status.lost {
                _ if status.finished => Ok(Some(())),
                // The peer closed first, and it had everything.
                Some(ConnectionLost::ClosedByPeer) => Ok(Some(())),
                Some(lost) => Err(lost.into()),
                None => Ok(None),
            }
        }
    }

    fn flags(&self) -> CancelFlags<'_> {
        [&self.cancelled, &self.port.cancelled]
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Without a driver thread there is nothing left to release.
        if let Ok(mut turn) = self.port.driver.turn() {
            let now = turn.now();
            turn.release(now, self.id);
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("local", &self.local_addr())
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

/// What is tried under the lock: something, nothing yet, or an error.
pub(crate) trait Attempt<R>: FnMut(&mut Core<AnyEndpoint>, Instant) -> Result<Option<R>, Error> {}

impl<R, F: FnMut(&mut Core<AnyEndpoint>, Instant) -> Result<Option<R>, Error>> Attempt<R> for F {}

impl TimeLimit {
    /// Stands for no limit; as nanoseconds it would be 584 years.
    const NONE: u64 = u64::MAX;

    fn none() -> Self {
        Self(AtomicU64::new(Self::NONE))
    }

    fn set(&self, limit: Option<Duration>) {
        let nanos = limit.map_or(Self::NONE, |limit| u64::try_from(limit.as_nanos()).unwrap_or(Self::NONE));
        self.0.store(nanos, Ordering::Relaxed);
    }

    fn value(&self) -> Option<Duration> {
        match self.0.load(Ordering::Relaxed) {
            Self::NONE => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }
}
