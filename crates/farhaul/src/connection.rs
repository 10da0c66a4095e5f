//! One connection as seen by its handles: the shared part of streams and message sockets.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(feature = "tokio")]
use std::task::{Context, Poll};
use std::time::Duration;

use farhaul_cc::{Controller, Spec};
use farhaul_proto::probe::StableConfig;
use farhaul_proto::{ConnectionId, ConnectionLost, Endpoint, Stats, Streams};
use farhaul_units::{Instant, Rate};

use crate::canceller::{CancelFlag, Canceller};
use crate::connect_attempt::ConnectAttempt;
use crate::control_stream::ControlStream;
use crate::driver::{CancelFlags, Core, WaitPlace};
#[cfg(feature = "tokio")]
use crate::driver::{Registration, TaskWait};
use crate::error::{ControllerError, Error};
use crate::port::{Attempt, Port};
use crate::randomness;
use crate::readiness::{self, Readiness, Watch};
use crate::security::Protection;

/// The shared part of [`Stream`](crate::Stream) and [`MessageSocket`](crate::MessageSocket). Both dereference to it.
///
/// All clones of a stream or message socket share one. When the last of them is dropped, the connection is
/// [aborted](Connection::abort), unless it was finished or closed before.
pub struct Connection {
    port: Arc<Port>,
    id: ConnectionId,
    /// Where the peer was when the connection began.
    peer: SocketAddr,
    cancelled: Arc<CancelFlag>,
    read_timeout: TimeLimit,
    write_timeout: TimeLimit,
}

/// An optional duration that threads share.
struct TimeLimit(AtomicU64);

impl Connection {
    pub(crate) fn new(port: Arc<Port>, id: ConnectionId, peer: SocketAddr) -> Self {
        let cancelled = Arc::default();
        Self { port, id, peer, cancelled, read_timeout: TimeLimit::none(), write_timeout: TimeLimit::none() }
    }

    /// A connection that waits to be accepted. An attempt for [`WaitPlace::Accept`].
    pub(crate) fn accept(port: &Arc<Port>, core: &mut Core<Endpoint>, newest_first: bool) -> Option<Self> {
        while let Some(id) = if newest_first { core.newest_accepted() } else { core.next_accepted() } {
            core.transport.claim(id);
            if let Some(peer) = core.transport.peer(id) {
                return Some(Self::new(Arc::clone(port), id, peer));
            }
        }
        None
    }

    /// Waits until the peer has acknowledged everything that was written, then closes the connection. Gives up an attempt to
    /// [connect](crate::Endpoint::begin_connect).
    ///
    /// From this call on, no handle can write. Reading goes on until the peer has acknowledged everything. Data that
    /// arrived by then can still be read, followed by the end of the stream.
    ///
    /// **This is no half-close**, which is [`Stream::finish_sending`](crate::Stream::finish_sending). Data that the peer has
    /// not sent yet never comes, and the peer's writes fail. If both sides send, one of them must finish only after it has
    /// read the other's last data. If both finish at the same time, one may get [`ConnectionLost::Aborted`]: its data was
    /// still in flight when the other's close arrived.
    ///
    /// After `finish_sending` and the end of the peer's direction, the connection closes by itself. Then this call waits until
    /// the peer has acknowledged everything.
    ///
    /// # Errors
    /// The connection was lost before everything was acknowledged, or the peer made no progress for the endpoint's
    /// linger time.
    pub fn finish(&self) -> Result<(), Error> {
        self.begin_to_finish()?;
        self.wait_until_closed()
    }

    /// Waits until the connection has closed, and does nothing for it. After
    /// [`Stream::finish_sending`](crate::Stream::finish_sending), that is once both directions have ended and everything was
    /// acknowledged.
    ///
    /// # Errors
    /// The connection was lost before, or a canceller ended the call.
    #[doc(hidden)] // For the protocols of this workspace, whose dialogues end by a last word of the peer.
    pub fn wait_until_closed(&self) -> Result<(), Error> {
        self.port.driver.wait_for(WaitPlace::Change(self.id), self.flags(), None, self.is_finished())
    }

    /// How the connection has ended; `None` while it goes on. [`ConnectionLost::ClosedLocally`] if this side finished or
    /// closed it, or if both directions have ended.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn ending(&self) -> Result<Option<ConnectionLost>, Error> {
        let status = self.port.driver.lock()?.status(self.id).unwrap_or_default();
        Ok(status.lost.or(status.finished.then_some(ConnectionLost::ClosedLocally)))
    }

    /// Begins to [finish](Connection::finish) and returns at once. The connection then outlives its last handle, until
    /// the peer has acknowledged everything or the linger time is over. That requires another handle of the same port,
    /// such as the endpoint. Input that arrives after the last handle is gone is discarded.
    ///
    /// Use it for a last message to a peer whose acknowledgement no caller awaits. An endpoint keeps the latest 256
    /// connections without handles, and aborts older ones.
    pub fn finish_in_background(&self) {
        self.command(|core, now| core.finish_in_background(now, self.id));
    }

    /// Ends the connection at once, in both directions, without waiting.
    ///
    /// If the peer has acknowledged everything that was written, it reads to the end of the stream, as after
    /// [`finish`](Connection::finish). Otherwise data is lost, and the call is an [`abort`](Connection::abort).
    #[doc(hidden)] // For the protocols of this workspace, whose last word everybody has already.
    pub fn close(&self) {
        self.command(|core, now| core.transport.close(now, self.id));
    }

    /// Ends the connection at once, in both directions, because this side cannot go on.
    ///
    /// The peer reads the data that has arrived, and then [`ConnectionLost::Aborted`] in place of the end of the
    /// stream, whether or not data is missing. Its writes fail. Dropping the last handle of an unfinished connection
    /// does the same. Has no effect after [`finish`](Connection::finish) has returned.
    ///
    /// Plain UDT4 has no packet for this. Two ends of this library use an error signal with libudt's code for a broken
    /// connection (2001). A libudt peer does not take it for an end, and notices the silence after 53 s.
    pub fn abort(&self) {
        self.command(|core, now| core.transport.abort(now, self.id));
    }

    /// The address of the peer. That of a secure connection may change, because it follows a peer that moves.
    pub fn peer_addr(&self) -> SocketAddr {
        let guard = self.port.driver.lock().ok();
        guard.and_then(|guard| guard.transport.peer(self.id)).unwrap_or(self.peer)
    }

    /// Where the peer was when the connection began. Unlike [`peer_addr`](Self::peer_addr), it needs no guard.
    pub(crate) const fn first_peer(&self) -> SocketAddr {
        self.peer
    }

    /// The address of this side's UDP port.
    pub fn local_addr(&self) -> SocketAddr {
        self.port.driver.local_addr()
    }

    /// The address of this host that the peer called, and that answers it. `None` if this side called, or if the port is at
    /// one address.
    pub fn asked_ip(&self) -> Option<IpAddr> {
        self.port.driver.lock().ok()?.transport.asked(self.id)
    }

    /// Counters and estimates, as UDT's `perfmon` gives them and more.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn stats(&self) -> Result<Stats, Error> {
        let guard = self.port.driver.lock()?;
        guard.transport.stats(guard.now(), self.id).ok_or(Error::Lost(ConnectionLost::ClosedLocally))
    }

    /// The protection of the connection: cipher, key exchange and the peer's key. `None` if it has none.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn protection(&self) -> Result<Option<Protection>, Error> {
        self.under_lock(|core, _| core.transport.protection(self.id).map(Protection::of))
    }

    /// Whether the connection is neither encrypted nor authenticated. On a port with
    /// [plain clients](crate::Builder::plain_clients), it tells them from the others.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn is_plain(&self) -> Result<bool, Error> {
        self.under_lock(|core, _| core.transport.is_plain(self.id))
    }

    /// Begins a control stream to the peer, beside this connection and on the same port. It is protected as the connection
    /// is, and ends with it if that is encrypted.
    ///
    /// # Errors
    /// The endpoint has a control stream. Its driver thread is gone. The system has no randomness.
    pub fn control_stream(&self, config: StableConfig) -> Result<ControlStream, Error> {
        ControlStream::begin(&self.port, self.peer_addr(), Some(self.id), config)
    }

    /// Caps the sending rate of this side from now on, as [`Builder::max_rate`](crate::Builder::max_rate) does from the
    /// begin: the headers of IP, UDP and the protocol count, and retransmissions as well. `None` takes the cap away. All
    /// clones share it. What the peer sends has the peer's cap.
    ///
    /// # Errors
    /// A cap of zero. The protocol cannot change its cap ([`Error::FixedCap`]): of the protocols for dedicated channels,
    /// each has a rate of its own. The endpoint's driver thread is gone.
    pub fn set_max_rate(&self, rate: Option<Rate>) -> Result<(), Error> {
        if rate == Some(Rate::ZERO) {
            return Err(Error::InvalidOption { option: "max_rate", range: "above zero" });
        }
        let is_set = self.under_lock(|core, now| core.transport.set_max_rate(now, self.id, rate))?;
        if is_set { Ok(()) } else { Err(Error::FixedCap) }
    }

    /// Replaces the congestion controller of this side by the one of this name, as
    /// [`Builder::controller`](crate::Builder::controller) takes it, while the connection goes on. See
    /// [`set_controller_with`](Connection::set_controller_with).
    ///
    /// # Errors
    /// There is no such controller. The protocol has none of the user's choice ([`Error::FixedController`]): only UDT4 has. The
    /// endpoint's driver thread is gone.
    pub fn set_controller(&self, name: &str) -> Result<(), Error> {
        let spec: Spec = name.parse().map_err(ControllerError::Spec)?;
        self.set_controller_with(spec.build(randomness::session()?))
    }

    /// Replaces the congestion controller of this side by this one, while the connection goes on. Nothing is lost or sent
    /// again by the switch. The new controller takes over the window, the period and the measurements of the one before
    /// ([`Controller::on_take_over`]), and the rate cap stays. All clones share it.
    ///
    /// # Errors
    /// The protocol has no controller of the user's choice ([`Error::FixedController`]). The endpoint's driver thread is gone.
    pub fn set_controller_with(&self, controller: Box<dyn Controller>) -> Result<(), Error> {
        let is_set = self.under_lock(|core, now| core.transport.set_controller(now, self.id, controller))?;
        if is_set { Ok(()) } else { Err(Error::FixedController) }
    }

    /// Sends a user-defined control packet of this `kind` to the peer's congestion controller (`sendCustomMsg` of
    /// libudt's CCC). It leaves at once, before queued data, and is never retransmitted. If too many such packets wait,
    /// further ones are dropped.
    ///
    /// `body` may be as long as a packet's payload, [`Stats::payload_size`]. A libudt peer converts it from network
    /// byte order as 32-bit words. So for libudt its length should be a multiple of four bytes.
    ///
    /// Only a controller that asks for such packets gets them. In this library that is
    /// [`Controller::on_custom_message`](farhaul_cc::Controller::on_custom_message) with
    /// [`wants_custom_messages`](farhaul_cc::Controller::wants_custom_messages), set with
    /// [`controller_with`](crate::Builder::controller_with). In libudt it is `processCustomMsg`. All others ignore
    /// them.
    ///
    /// # Errors
    /// The body is too long; the connection is over.
    pub fn send_custom(&self, kind: u16, body: &[u8]) -> Result<(), Error> {
        let mut guard = self.port.driver.lock()?;
        let status = guard.status(self.id).ok_or(Error::Lost(ConnectionLost::ClosedLocally))?;
        if let Some(lost) = status.lost {
            return Err(lost.into());
        }
        if status.finished {
            return Err(Error::Finished);
        }
        let stats = guard.transport.stats(guard.now(), self.id).ok_or(Error::Lost(ConnectionLost::ClosedLocally))?;
        let (len, longest) = (body.len(), u64::from(stats.payload_size));
        if len as u64 > longest {
            return Err(Error::MessageTooLong { len, longest });
        }
        guard.transport.send_custom(self.id, kind, body);
        Ok(())
    }

    /// Sets the longest wait of a receiving call (`UDT_RCVTIMEO`). `None`, the default, is for ever. All clones share
    /// it. It applies to blocking calls only: tasks use the time-outs of their runtime, such as `tokio::time::timeout`.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) {
        self.read_timeout.set(timeout);
    }

    /// Sets the longest wait of a sending call (`UDT_SNDTIMEO`). `None`, the default, is for ever. All clones share it.
    /// It applies to blocking calls only, as for [reading](Connection::set_read_timeout).
    pub fn set_write_timeout(&self, timeout: Option<Duration>) {
        self.write_timeout.set(timeout);
    }

    /// Returns a handle that ends blocked calls of this connection from another thread. Until
    /// [`reset`](Canceller::reset), later calls that would wait end too. It covers all clones and both directions,
    /// [`finish`](Connection::finish) included.
    pub fn canceller(&self) -> Canceller {
        Canceller::new(&self.cancelled, self.port.driver.cancellation())
    }

    /// Whether calls that would wait end, because a canceller of this connection or of its endpoint was used. For work between
    /// calls that takes long.
    pub fn is_cancelled(&self) -> bool {
        self.flags().iter().any(|flag| flag.is_raised())
    }

    /// What the connection permits now, without waiting and without consuming anything. [`Connection::watch`] has a waker
    /// called when it may have changed.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn readiness(&self) -> Result<Readiness, Error> {
        readiness::of_connection(&mut *self.port.driver.lock()?, self.id)
    }

    /// A watch of this connection, for an event loop.
    pub fn watch(&self) -> Watch {
        Watch::of_connection(&self.port, self.id)
    }

    /// Tries `attempt` once.
    pub(crate) fn attempt<R>(&self, mut attempt: impl Attempt<R>) -> Result<Option<R>, Error> {
        self.under_lock(|core, now| attempt(core, now))?
    }

    fn under_lock<R>(&self, call: impl FnOnce(&mut Core<Endpoint>, Instant) -> R) -> Result<R, Error> {
        self.port.under_lock(call)
    }

    /// Tells the transport something. Without a driver thread there is nothing left to tell it to.
    fn command(&self, give: impl FnOnce(&mut Core<Endpoint>, Instant)) {
        let _ = self.under_lock(give);
    }

    pub(crate) fn id(&self) -> ConnectionId {
        self.id
    }

    pub(crate) fn longest_message(&self) -> u64 {
        self.port.longest_message
    }

    /// Waits until `attempt` gives a result. Retries whenever the connection becomes readable.
    pub(crate) fn when_readable<R>(&self, attempt: impl Attempt<R>) -> Result<R, Error> {
        self.port.driver.wait_for(WaitPlace::Read(self.id), self.flags(), self.read_timeout.value(), attempt)
    }

    /// Waits until `attempt` gives a result. Retries whenever the connection becomes writable.
    pub(crate) fn when_writable<R>(&self, attempt: impl Attempt<R>) -> Result<R, Error> {
        self.port.driver.wait_for(WaitPlace::Write(self.id), self.flags(), self.write_timeout.value(), attempt)
    }

    /// Waits until the connection is established, or `attempt` gives up.
    pub(crate) fn wait_until_connected(&self, mut attempt: ConnectAttempt) -> Result<(), Error> {
        let id = self.id;
        let look = |core: &mut Core<_>, now| attempt.look(core, now, id);
        self.port.driver.wait_for(WaitPlace::Change(id), self.flags(), None, look)
    }

    /// Tells the peer that this side cannot store its data (UDT's error signal). libudt uses the code 4000, and its sender
    /// notes it once. A sender of this library gives its connection up unless the peer goes on reading soon.
    #[doc(hidden)] // For the interface of libudt. Streams do it in `recv_file`.
    pub fn signal_error(&self, code: u32) {
        self.command(|core, _| core.transport.signal_error(self.id, code));
    }

    /// Announces that no more data will be written, and returns at once.
    pub(crate) fn begin_to_finish(&self) -> Result<(), Error> {
        self.under_lock(|core, now| core.finish(now, self.id))
    }

    /// Tries `attempt` once. If it gives nothing, has the task woken when a retry may succeed.
    #[cfg(feature = "tokio")]
    pub(crate) fn poll<R>(
        &self,
        place: WaitPlace,
        cx: &Context<'_>,
        registration: &mut Registration,
        attempt: impl Attempt<R>,
    ) -> Poll<Result<R, Error>> {
        self.port.driver.poll_for(place, self.flags(), cx, registration, attempt)
    }

    /// Removes the waker of a task that [polled](Self::poll).
    #[cfg(feature = "tokio")]
    pub(crate) fn withdraw(&self, place: WaitPlace, registration: &mut Registration) {
        self.port.driver.withdraw(place, registration);
    }

    /// Has a task wait until `attempt` gives a result. Retries whenever `place` is woken.
    #[cfg(feature = "tokio")]
    pub(crate) fn wait<R>(&self, place: WaitPlace, attempt: impl Attempt<R>) -> impl Future<Output = Result<R, Error>> {
        TaskWait::new(&self.port.driver, place, self.flags(), attempt)
    }

    /// Whether each direction can end alone.
    pub(crate) fn has_half_close(&self) -> Result<bool, Error> {
        self.under_lock(|core, _| core.transport.has_half_close(self.id))
    }

    /// Ends this side's direction alone, and returns at once.
    pub(crate) fn finish_sending(&self) -> Result<(), Error> {
        Ok(self.under_lock(|core, now| core.transport.finish_sending(now, self.id))??)
    }

    /// Whether the peer acknowledged everything up to the end of this side's direction: an attempt for [`WaitPlace::Change`].
    #[cfg(feature = "tokio")]
    pub(crate) fn is_sent(&self) -> impl Attempt<()> {
        let (id, mut finished) = (self.id, self.is_finished());
        move |core: &mut Core<_>, now| match core.status(id) {
            Some(status) if status.sent => Ok(Some(())),
            _ => finished(core, now),
        }
    }

    /// Whether the peer acknowledged everything: an attempt for [`WaitPlace::Change`].
    pub(crate) fn is_finished(&self) -> impl Attempt<()> {
        let id = self.id;
        move |core: &mut Core<_>, _| {
            let status = core.status(id).ok_or(Error::Lost(ConnectionLost::ClosedLocally))?;
            match status.lost {
                _ if status.finished => Ok(Some(())),
                // The peer closed first, after it had received everything.
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
        self.command(|core, now| core.release(now, self.id));
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
