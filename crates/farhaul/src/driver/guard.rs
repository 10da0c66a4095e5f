//! Exclusive access to the transport, and the waits of threads and tasks.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
#[cfg(any(test, feature = "tokio"))]
use std::task::{Context, Poll};
use std::time::Duration;

use farhaul_proto::{Channels, Streams, Transmit, earliest};
use farhaul_udp::{BufferReport, Clock, SendStatus, UdpSocket, Waker, Wall, WeakWaker};
use farhaul_units::Instant;

use super::channels::{ChannelPort, ChannelSockets, RequestQueue};
use super::closing::Closing;
use super::core::{Core, DriverThread, WaitPlace};
use super::driver_role::DriverRole;
use super::transmit_queue::QueueState;
use super::wait_queue::Wakeups;
use super::wakers::Registration;
use crate::canceller::CancelFlag;
use crate::error::Error;

/// Shortest time between two attempts at a blocked socket by the transport's deadlines. Without it, a full send buffer
/// of the system would cause a busy loop.
const BLOCKED_CHECK: Duration = Duration::from_millis(1);

/// Shortest time between two timer wake-ups of the driver thread. Pacing asks for a train more often above 100 Mbit/s, but
/// a wake-up costs more than a train. The pacer lets packets of this time leave at once, one train at 1 Gbit/s. Linux
/// sends paced TCP in trains of 1 ms and 64 KiB at most, so queues along the path cope with them.
const GATHER: Duration = Duration::from_micros(500);

/// The state that application threads and the driver thread share.
pub(crate) struct Shared<T> {
    core: Mutex<Core<T>>,
    /// Queue for the lock, which makes it fair. Without it, a thread in a write loop would take the lock again before
    /// the driver thread wakes up. Acknowledgements would then wait.
    queue: Mutex<()>,
    /// Sessions with original programs send from it as well.
    pub(crate) socket: Arc<UdpSocket>,
    pub(super) waker: Waker,
    /// Who drives: the driver thread, or a caller that waits.
    pub(super) role: DriverRole,
    pub(super) clock: Clock,
    /// Set by cancellers. The driver thread then wakes all waiters.
    cancelled: Arc<AtomicBool>,
    /// Set once the last handle is gone. The drop of the last share closes the port, and then this close ends.
    /// Fields are dropped in this order.
    closing: OnceLock<Closing>,
}

/// The flags that end a caller's wait: its own and that of its endpoint.
pub(crate) type CancelFlags<'a> = [&'a CancelFlag; 2];

/// Exclusive access to the transport. Its drop sends the ready datagrams and wakes the waiters of the resulting events.
pub(crate) struct EndpointGuard<'a, T: Streams + Channels> {
    pub(super) shared: &'a Shared<T>,
    /// `None` only after the end of the access.
    core: Option<MutexGuard<'a, Core<T>>>,
    now: Instant,
}

/// The driver thread's rest until its next access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rest {
    /// Time until the transport's next deadline. `None` if it has none.
    pub(super) time: Option<Duration>,
    /// The socket accepted no more datagrams. The rest ends when it does.
    pub(super) blocked: bool,
    /// The last handle is gone, and every peer knows. The thread ends.
    pub(super) over: bool,
    /// Readers wait for more data, and the thread must return to wake them.
    pub(super) holds_readers: bool,
}

impl Rest {
    /// Ends the rest no later than the channels' sockets need.
    pub(super) fn shorten(&mut self, now: Instant, channels: &ChannelSockets) {
        let due = channels.deadline().map(|due| due.saturating_since(now));
        let at_once = channels.has_work().then_some(Duration::ZERO);
        self.time = self.time.into_iter().chain(due).chain(at_once).min();
    }
}

impl<T: Streams + Channels> Shared<T> {
    pub(super) fn new(
        transport: T,
        socket: UdpSocket,
        channels: Option<ChannelPort>,
        (waker, role): (Waker, DriverRole),
    ) -> Self {
        let mut core = Core::new(transport);
        core.channel_requests = channels.map(RequestQueue::new);
        Self {
            core: Mutex::new(core),
            queue: Mutex::new(()),
            socket: Arc::new(socket),
            waker,
            role,
            clock: Clock::start(),
            cancelled: Arc::new(AtomicBool::new(false)),
            closing: OnceLock::new(),
        }
    }

    /// Notes that the last handle is gone. From now on, [`wait_idle`](super::wait_idle) waits until
    /// the port closes.
    pub(super) fn begin_to_close(&self) {
        self.closing.get_or_init(|| Closing::of_port(self.local_addr().port()));
    }

    /// The address of the UDP port.
    pub(crate) fn local_addr(&self) -> std::net::SocketAddr {
        self.socket.local_addr()
    }

    /// Whether the port can send to addresses of the family of `peer`.
    pub(crate) fn is_of_family(&self, peer: std::net::SocketAddr) -> bool {
        self.socket.is_of_family(peer)
    }

    /// Has datagrams tell the address of this host that they come to, for answers from there. A port with callers alone needs it
    /// not: the system chooses their address by its routes.
    pub(crate) fn learn_destinations(&self) -> Result<(), Error> {
        let refused = |source| Error::System { what: "the address that a datagram comes to", source };
        self.socket.tell_destinations(true).map_err(refused)
    }

    /// Warnings about the socket's buffers.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.socket.buffers().iter().filter_map(BufferReport::warning).collect()
    }

    /// Datagrams dropped because the socket's receive buffer was full.
    pub(crate) fn recv_drops(&self) -> Option<u32> {
        self.socket.recv_drops().ok()
    }

    /// The endpoint-wide notice and the thread to wake, for a canceller.
    pub(crate) fn cancellation(&self) -> (Arc<AtomicBool>, WeakWaker) {
        (Arc::clone(&self.cancelled), self.waker.downgrade())
    }

    /// The instant that is `timeout` from now.
    pub(crate) fn deadline(&self, timeout: Duration) -> Instant {
        self.clock.now() + timeout
    }

    /// Locks the transport. That takes microseconds.
    ///
    /// # Errors
    /// The driver thread is gone.
    pub(crate) fn lock(&self) -> Result<EndpointGuard<'_, T>, Error> {
        let place = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut core = self.core.lock().map_err(|_| Error::DriverStopped)?;
        drop(place);
        let due = match core.thread {
            DriverThread::Gone => return Err(Error::DriverStopped),
            DriverThread::Asleep(due) => due,
            DriverThread::Replaced(due) => Some(due),
            DriverThread::Awake => None,
        };
        let now = core.timeline.at(self.clock.now(), due);
        Ok(EndpointGuard { shared: self, core: Some(core), now })
    }

    /// Repeats `attempt` whenever `place` is woken, until it gives a result.
    ///
    /// # Errors
    /// Those of `attempt`. The deadline passed, a flag was raised, or the driver thread is gone.
    pub(crate) fn wait_for<R>(
        &self,
        place: WaitPlace,
        flags: CancelFlags<'_>,
        timeout: Option<Duration>,
        mut attempt: impl FnMut(&mut Core<T>, Instant) -> Result<Option<R>, Error>,
    ) -> Result<R, Error> {
        let deadline = timeout.map(|timeout| (self.deadline(timeout), timeout));
        let seen = flags.map(CancelFlag::seen);
        loop {
            let mut guard = self.lock()?;
            let now = guard.now;
            if let Some(result) = attempt(&mut guard, now)? {
                return Ok(result);
            }
            if flags.iter().zip(seen).any(|(flag, seen)| flag.ends(seen)) {
                return Err(Error::Cancelled);
            }
            let left = match deadline {
                Some((deadline, timeout)) => match deadline.saturating_since(self.clock.now()) {
                    Duration::ZERO => return Err(Error::TimedOut(timeout)),
                    left => Some(left),
                },
                None => None,
            };
            guard.sleep(place, left)?;
        }
    }

    /// Tries `attempt` once. If it gives nothing, has the task woken when `place` is woken. After a result or an error,
    /// no waker of the task is left there.
    #[cfg(any(test, feature = "tokio"))]
    pub(crate) fn poll_for<R>(
        &self,
        place: WaitPlace,
        flags: CancelFlags<'_>,
        cx: &Context<'_>,
        registration: &mut Registration,
        attempt: impl FnOnce(&mut Core<T>, Instant) -> Result<Option<R>, Error>,
    ) -> Poll<Result<R, Error>> {
        // Declared first and so dropped last. A waker is foreign code, which must not run under the lock.
        let mut _replaced = None;
        let mut guard = self.lock()?;
        let now = guard.now;
        let result = match attempt(&mut guard, now).transpose() {
            None if flags.iter().any(|flag| flag.ends(flag.seen())) => Some(Err(Error::Cancelled)),
            result => result,
        };
        let queue = guard.wait_queue(place);
        match (result, queue) {
            (None, None) => Poll::Ready(Err(Error::Finished)),
            (None, Some(queue)) => {
                _replaced = queue.register(registration, cx.waker());
                Poll::Pending
            }
            (Some(result), queue) => {
                _replaced = queue.and_then(|queue| queue.withdraw(registration));
                Poll::Ready(result)
            }
        }
    }

    /// Removes the waker of a task that waits for `place`.
    pub(crate) fn withdraw(&self, place: WaitPlace, registration: &mut Registration) {
        if !registration.is_set() {
            return;
        }
        let mut core = self.core_even_if_poisoned();
        let waker = core.wait_queue(place).and_then(|queue| queue.withdraw(registration));
        drop(core);
        drop(waker);
    }

    /// Wakes the waiters.
    pub(super) fn deliver(&self, wakeups: Wakeups) {
        if wakeups.driving_caller {
            self.role.waker.wake();
        }
        wakeups.deliver();
    }

    /// Wakes who drives.
    fn wake_driver(&self, caller_drives: bool) {
        let waker = if caller_drives { &self.role.waker } else { &self.waker };
        waker.wake();
    }

    /// The core even if its lock is poisoned, for the driver thread's end.
    pub(super) fn core_even_if_poisoned(&self) -> MutexGuard<'_, Core<T>> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, train: &Transmit<'_>) -> std::io::Result<usize> {
        if train.whole {
            return self.socket.send_whole(train.source, train.to, train.bytes).map(|()| train.bytes.len());
        }
        let sent = self.socket.send_from(train.source, train.to, train.segment_size, train.bytes)?;
        Ok(match sent.status {
            // Too large for the path, as are the datagrams behind it. They count as lost, as on a router.
            SendStatus::TooLarge => train.bytes.len(),
            _ => sent.taken,
        })
    }
}

impl<'a, T: Streams + Channels> EndpointGuard<'a, T> {
    /// The transport's time during this access.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// Both clocks now, to convert the kernel's time stamps.
    pub(super) fn wall(&self) -> Wall {
        self.shared.clock.wall()
    }

    /// Starts the driver thread's access: wakes the waiters of due alarms and serves cancellers. `is_streaming` says
    /// whether the thread returned by itself, at once or after a sleep.
    pub(super) fn begin_as_driver(&mut self, is_streaming: bool) {
        self.thread = DriverThread::Awake;
        self.caller_drives = false;
        self.wake_coalescing.set_streaming(is_streaming);
        let now = self.now;
        self.wake_alarms(now);
        self.wake_cancelled();
    }

    /// Wakes all waiters if one of them was cancelled.
    pub(super) fn wake_cancelled(&mut self) {
        if self.shared.cancelled.swap(false, Ordering::AcqRel) {
            self.wake_all();
        }
    }

    /// The driver thread is about to sleep until something happens. Wakes the readers that wait for more data.
    pub(super) fn end_streaming(&mut self) {
        let now = self.now;
        self.wake_coalescing.set_streaming(false);
        self.wake_readers(now);
    }

    /// Passes the channels' news to the transport.
    pub(super) fn hand_in_channels(&mut self, channels: &mut ChannelSockets) {
        let now = self.now;
        let core = &mut **self;
        if let Some(queue) = &mut core.channel_requests {
            channels.hand_in(now, &mut core.transport, queue);
        }
    }

    /// Ends the driver thread's access. Returns its rest until the next one, and whom to wake. `channels` take the requests for them.
    pub(super) fn end_as_thread(mut self, channels: Option<&mut ChannelSockets>) -> (Rest, Wakeups) {
        let (state, next) = self.advance();
        let now = self.now;
        self.wake_readers(now);
        if let (Some(channels), Some(queue)) = (channels, &mut self.channel_requests) {
            channels.take(queue);
        }
        self.end_before_rest(state, next)
    }

    /// Ends an access of who drives, before a rest until `next`. Returns the rest, and whom to wake.
    pub(super) fn end_before_rest(mut self, state: QueueState, next: Option<Instant>) -> (Rest, Wakeups) {
        let holds_readers = self.wake_coalescing.is_holding();
        self.thread = DriverThread::Asleep(next);
        // Later datagrams wait a little, so that they leave together.
        let next = if state == QueueState::Drained { next.map(|next| next.max(self.now + GATHER)) } else { next };
        // The access itself took time, so the rest until the deadline counts from its end.
        let end = self.shared.clock.now();
        let end = self.timeline.at(end, None);
        let over = self.closing && self.all_left();
        let wakeups = std::mem::take(&mut self.wakeups);
        self.unlock();
        let time = next.map(|next| next.saturating_since(end));
        (Rest { time, blocked: state == QueueState::Blocked, over, holds_readers }, wakeups)
    }

    /// Unlocks, then wakes the waiters.
    pub(super) fn end(&mut self) {
        let wakeups = std::mem::take(&mut self.wakeups);
        self.core = None;
        self.shared.deliver(wakeups);
    }

    /// Follows the contract of a transport after any input or command: send, take events, read the deadline.
    pub(super) fn advance(&mut self) -> (QueueState, Option<Instant>) {
        let (shared, now) = (self.shared, self.now);
        let core = &mut **self;
        let state = core.transmit_queue.transmit(now, &mut core.transport, |train| shared.send(train));
        if let Some(answering) = &mut core.answering {
            let inside = core.transport.datagrams();
            answering.answer(now, state == QueueState::Blocked, inside, |train| shared.send(train));
        }
        core.take_events(now);
        core.take_channel_requests(now);
        core.note_closed();
        let due = earliest(core.transport.poll_timeout(), core.next_alarm());
        let next = match state {
            QueueState::Drained => due,
            QueueState::More => Some(now),
            QueueState::Blocked => due.map(|due| due.max(now + BLOCKED_CHECK)),
        };
        (state, next)
    }

    /// [`advance`](Self::advance) for other threads than the driver thread. Returns whether to wake that one.
    fn advance_for_thread(&mut self) -> bool {
        let (state, next) = self.advance();
        let DriverThread::Asleep(until) = self.thread else { return false };
        // Only the driver thread watches a blocked socket, and only it has the channels.
        let must_wake = earliest(until, next) != until
            || state == QueueState::Blocked
            || self.channel_requests.as_ref().is_some_and(RequestQueue::is_waiting);
        if must_wake {
            self.thread = DriverThread::Awake;
        }
        must_wake
    }

    /// Unlocks without anything that the end of an access does.
    pub(super) fn unlock(mut self) {
        self.core = None;
    }

    /// Ends the access and waits until `place` is woken or `timeout` has passed.
    fn sleep(mut self, place: WaitPlace, timeout: Option<Duration>) -> Result<(), Error> {
        let begin = self.shared.clock.now();
        let was_replaced = matches!(self.thread, DriverThread::Replaced(_));
        let queue = self.wait_queue(place).ok_or(Error::Finished)?;
        queue.times.begin(begin);
        let ticket = queue.join();
        let mut wakes_thread = self.advance_for_thread();
        self.wakeups.deliver_to_threads();
        if self.wakeups.has_tasks() {
            // Foreign code must not run under the lock, so who drives wakes the tasks.
            self.thread = DriverThread::Awake;
            wakes_thread = true;
        }
        if std::mem::take(&mut self.wakeups.driving_caller) {
            self.shared.role.waker.wake();
        }
        if wakes_thread {
            self.shared.wake_driver(self.caller_drives);
        }
        // Advancing may have caused the event that the caller waits for.
        if self.wait_queue(place).is_some_and(|queue| queue.woken_since(&ticket)) {
            self.unlock();
            return Ok(());
        }
        let mut guard = match self.try_to_drive((place, &ticket), timeout) {
            Ok(driven) => return driven,
            Err(guard) => guard,
        };
        if was_replaced {
            // The caller that was away waits for the driver thread now.
            guard.thread = DriverThread::Awake;
            guard.shared.role.end_lease();
            guard.shared.waker.wake();
        }
        let Some(mut core) = guard.core.take() else { return Ok(()) };
        core = match timeout {
            None => ticket.condvar.wait(core).map_err(|_| Error::DriverStopped)?,
            Some(timeout) => {
                let waited = ticket.condvar.wait_timeout(core, timeout);
                waited.map_err(|_| Error::DriverStopped)?.0
            }
        };
        let end = guard.shared.clock.now();
        if let Some(queue) = core.wait_queue(place) {
            let was_woken = queue.woken_since(&ticket);
            queue.leave(&ticket);
            queue.times.end(end, end - begin, was_woken);
        }
        Ok(())
    }
}

impl<T: Streams + Channels> Deref for EndpointGuard<'_, T> {
    type Target = Core<T>;

    fn deref(&self) -> &Core<T> {
        self.core.as_ref().expect("a guard holds the core until it ends")
    }
}

impl<T: Streams + Channels> DerefMut for EndpointGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut Core<T> {
        self.core.as_mut().expect("a guard holds the core until it ends")
    }
}

impl<T: Streams + Channels> Drop for EndpointGuard<'_, T> {
    fn drop(&mut self) {
        if self.core.is_none() {
            return;
        }
        if std::thread::panicking() {
            // The lock is poisoned now. The driver thread notices it and wakes all waiters.
            self.core = None;
            self.shared.waker.wake();
            return;
        }
        if self.advance_for_thread() {
            self.shared.wake_driver(self.caller_drives);
        }
        self.end();
    }
}
