//! One thread's turn at the transport, and how a thread or task waits for what it needs.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
#[cfg(any(test, feature = "tokio"))]
use std::task::{Context, Poll};
use std::time::Duration;

use farhaul_proto::{Streams, Transmit, earliest};
use farhaul_udp::{BufferReport, SendStatus, UdpSocket, Waker};
use farhaul_units::Instant;

use super::core::{Core, DriverThread, Place};
use super::departure::Departure;
use super::outbox::OutboxState;
#[cfg(any(test, feature = "tokio"))]
use super::wakers::Registration;
use crate::canceller::CancelFlag;
use crate::clock::{Clock, Wall};
use crate::error::Error;

/// How often a blocked socket and the transport's own idea of "now" are looked at together, so that a full send buffer
/// of the system does not become a busy loop.
const BLOCKED_CHECK: Duration = Duration::from_millis(1);

/// Shortest time between two turns that only the clock asks for. Pacing above 2 Gbit/s wants a train more often than
/// this; a wake-up costs more than the train. A quarter of a millisecond is what the pacer lets a burst stand for anyway.
const GATHER: Duration = Duration::from_micros(250);

/// What application threads and the driver thread share.
pub(crate) struct Shared<T> {
    core: Mutex<Core<T>>,
    /// Queue for the lock: whoever just had a turn stands behind whoever waits for one. Without it a thread in a write
    /// loop would take the lock again before the driver thread wakes up, and acknowledgements would wait.
    queue: Mutex<()>,
    pub(super) socket: UdpSocket,
    pub(super) driver: Waker,
    pub(super) clock: Clock,
    /// A canceller was used: the driver thread has everybody look again.
    cancelled: Arc<AtomicBool>,
    /// There once the last handle is gone. Whoever holds the last share closes the port and then, since fields are dropped
    /// in this order, tells those who wait for that.
    departure: OnceLock<Departure>,
}

/// The flags that end a caller's wait: one of its own and one of its endpoint.
pub(crate) type CancelFlags<'a> = [&'a CancelFlag; 2];

/// Exclusive use of the transport. Its end sends what may be sent, and wakes whoever waits for what happened.
pub(crate) struct Turn<'a, T: Streams> {
    shared: &'a Shared<T>,
    /// Taken only at the end of the turn.
    core: Option<MutexGuard<'a, Core<T>>>,
    now: Instant,
}

/// How long the driver thread may rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rest {
    /// Until the transport wants a turn; for ever, if there is none.
    pub(super) time: Option<Duration>,
    /// The socket took no more: rest until it does.
    pub(super) blocked: bool,
    /// The last handle is gone, and every peer knows: there will be no next turn.
    pub(super) over: bool,
}

impl<T: Streams> Shared<T> {
    pub(super) fn new(transport: T, socket: UdpSocket, driver: Waker) -> Self {
        Self {
            core: Mutex::new(Core::new(transport)),
            queue: Mutex::new(()),
            socket,
            driver,
            clock: Clock::start(),
            cancelled: Arc::new(AtomicBool::new(false)),
            departure: OnceLock::new(),
        }
    }

    /// The last handle is gone: from now on somebody may wait for the port to close.
    pub(super) fn depart(&self) {
        self.departure.get_or_init(Departure::begin);
    }

    /// The address of the UDP port.
    pub(crate) fn local_addr(&self) -> std::net::SocketAddr {
        self.socket.local_addr()
    }

    /// Whether the port can send to addresses of the family of `peer`.
    pub(crate) fn is_of_family(&self, peer: std::net::SocketAddr) -> bool {
        self.socket.is_of_family(peer)
    }

    /// What is wrong with the socket's buffers.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.socket.buffers().iter().filter_map(BufferReport::warning).collect()
    }

    /// Datagrams that found the socket's receive buffer full.
    pub(crate) fn recv_drops(&self) -> Option<u32> {
        self.socket.recv_drops().ok()
    }

    /// What a canceller needs: the endpoint-wide notice, and the thread to wake.
    pub(crate) fn cancellation(&self) -> (Arc<AtomicBool>, Waker) {
        (Arc::clone(&self.cancelled), self.driver.clone())
    }

    /// The instant that is `timeout` from now.
    pub(crate) fn deadline(&self, timeout: Duration) -> Instant {
        self.clock.now() + timeout
    }

    /// Waits for a turn, which is a matter of microseconds.
    ///
    /// # Errors
    /// The driver thread is gone.
    pub(crate) fn turn(&self) -> Result<Turn<'_, T>, Error> {
        let place = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut core = self.core.lock().map_err(|_| Error::DriverStopped)?;
        drop(place);
        let due = match core.driver {
            DriverThread::Gone => return Err(Error::DriverStopped),
            DriverThread::Asleep(due) => due,
            DriverThread::Awake => None,
        };
        let now = core.timeline.at(self.clock.now(), due);
        Ok(Turn { shared: self, core: Some(core), now })
    }

    /// Repeats `attempt` whenever the bell of `place` rings, until it gives something.
    ///
    /// # Errors
    /// Those of `attempt`; the deadline passed; a flag was raised; the driver thread is gone.
    pub(crate) fn wait_for<R>(
        &self,
        place: Place,
        flags: CancelFlags<'_>,
        timeout: Option<Duration>,
        mut attempt: impl FnMut(&mut Core<T>, Instant) -> Result<Option<R>, Error>,
    ) -> Result<R, Error> {
        let deadline = timeout.map(|timeout| (self.deadline(timeout), timeout));
        let seen = flags.map(CancelFlag::seen);
        loop {
            let mut turn = self.turn()?;
            let now = turn.now;
            if let Some(result) = attempt(&mut turn, now)? {
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
            turn.sleep(place, left)?;
        }
    }

    /// Tries `attempt` once; if it gives nothing, has the task woken when the bell of `place` rings. Once it has given
    /// something, or failed, nothing of the task is left there.
    #[cfg(any(test, feature = "tokio"))]
    pub(crate) fn poll_for<R>(
        &self,
        place: Place,
        flags: CancelFlags<'_>,
        cx: &Context<'_>,
        registration: &mut Registration,
        attempt: impl FnOnce(&mut Core<T>, Instant) -> Result<Option<R>, Error>,
    ) -> Poll<Result<R, Error>> {
        // Declared first, dropped last: a waker is foreign code, which must not run under the lock.
        let mut _replaced = None;
        let mut turn = self.turn()?;
        let now = turn.now;
        let result = match attempt(&mut turn, now).transpose() {
            None if flags.iter().any(|flag| flag.ends(flag.seen())) => Some(Err(Error::Cancelled)),
            result => result,
        };
        let bell = turn.bell(place);
        match (result, bell) {
            (None, None) => Poll::Ready(Err(Error::Finished)),
            (None, Some(bell)) => {
                _replaced = bell.register(registration, cx.waker());
                Poll::Pending
            }
            (Some(result), bell) => {
                _replaced = bell.and_then(|bell| bell.withdraw(registration));
                Poll::Ready(result)
            }
        }
    }

    /// A task waits no longer for `place`: nothing of it is left there.
    #[cfg(any(test, feature = "tokio"))]
    pub(crate) fn withdraw(&self, place: Place, registration: &mut Registration) {
        if !registration.is_set() {
            return;
        }
        let mut core = self.core_even_if_poisoned();
        let waker = core.bell(place).and_then(|bell| bell.withdraw(registration));
        drop(core);
        drop(waker);
    }

    /// The core whatever happened to its lock: for the driver thread's last act.
    pub(super) fn core_even_if_poisoned(&self) -> MutexGuard<'_, Core<T>> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, train: &Transmit<'_>) -> std::io::Result<usize> {
        let sent = self.socket.send(train.to, train.segment_size, train.bytes)?;
        Ok(match sent.status {
            // Too large for the path, and so are those behind it: lost, as a router would have lost them.
            SendStatus::TooLarge => train.bytes.len(),
            _ => sent.taken,
        })
    }
}

impl<'a, T: Streams> Turn<'a, T> {
    /// The transport's time during this turn.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// Both clocks as they stand, for what the kernel stamped.
    pub(super) fn wall(&self) -> Wall {
        self.shared.clock.wall()
    }

    /// Begins the driver thread's turn.
    pub(super) fn begin_as_driver(&mut self) {
        self.driver = DriverThread::Awake;
        let now = self.now;
        self.ring_alarms(now);
        if self.shared.cancelled.swap(false, Ordering::AcqRel) {
            self.ring_all();
        }
    }

    /// Ends the driver thread's turn, and says when it wants the next one.
    pub(super) fn end_and_sleep(mut self) -> Rest {
        let (state, next) = self.settle();
        self.driver = DriverThread::Asleep(next);
        // What may leave soon leaves together, a little later.
        let next = if state == OutboxState::Drained { next.map(|next| next.max(self.now + GATHER)) } else { next };
        // A turn takes its time; what is left until the deadline counts from its end.
        let end = self.shared.clock.now();
        let end = self.timeline.at(end, None);
        let over = self.departing && self.all_left();
        self.end();
        Rest { time: next.map(|next| next.saturating_since(end)), blocked: state == OutboxState::Blocked, over }
    }

    /// Unlocks, then wakes whoever has to look.
    fn end(&mut self) {
        let wakeups = std::mem::take(&mut self.wakeups);
        self.core = None;
        wakeups.deliver();
    }

    /// The contract of a transport after any input or command: send, take events, look at the deadline.
    fn settle(&mut self) -> (OutboxState, Option<Instant>) {
        let (shared, now) = (self.shared, self.now);
        let core = &mut **self;
        let state = core.outbox.transmit(now, &mut core.transport, |train| shared.send(train));
        core.take_events(now);
        core.note_farewells();
        let due = earliest(core.transport.poll_timeout(), core.next_alarm());
        let next = match state {
            OutboxState::Drained => due,
            OutboxState::More => Some(now),
            OutboxState::Blocked => due.map(|due| due.max(now + BLOCKED_CHECK)),
        };
        (state, next)
    }

    /// [`settle`](Self::settle) for a thread that is not the driver thread; says whether that one has to be woken.
    fn settle_for_driver(&mut self) -> bool {
        let (state, next) = self.settle();
        let DriverThread::Asleep(until) = self.driver else { return false };
        // A blocked socket has to be watched, and only the driver thread does that.
        let must_wake = earliest(until, next) != until || state == OutboxState::Blocked;
        if must_wake {
            self.driver = DriverThread::Awake;
        }
        must_wake
    }

    /// Gives the turn up until the bell of `place` rings or `timeout` has passed.
    fn sleep(mut self, place: Place, timeout: Option<Duration>) -> Result<(), Error> {
        let ticket = self.bell(place).ok_or(Error::Finished)?.join();
        let mut wake_driver = self.settle_for_driver();
        self.wakeups.deliver_to_threads();
        if self.wakeups.has_tasks() {
            // Foreign code must not run under the lock: the driver thread wakes the tasks.
            self.driver = DriverThread::Awake;
            wake_driver = true;
        }
        let Some(mut core) = self.core.take() else { return Ok(()) };
        if wake_driver {
            self.shared.driver.wake();
        }
        // What happened while settling may have been what the caller waits for.
        if !core.bell(place).is_some_and(|bell| bell.rang_since(&ticket)) {
            core = match timeout {
                None => ticket.condvar.wait(core).map_err(|_| Error::DriverStopped)?,
                Some(timeout) => {
                    let waited = ticket.condvar.wait_timeout(core, timeout);
                    waited.map_err(|_| Error::DriverStopped)?.0
                }
            };
        }
        if let Some(bell) = core.bell(place) {
            bell.leave(&ticket);
        }
        Ok(())
    }
}

impl<T: Streams> Deref for Turn<'_, T> {
    type Target = Core<T>;

    fn deref(&self) -> &Core<T> {
        self.core.as_ref().expect("a turn holds the core until it ends")
    }
}

impl<T: Streams> DerefMut for Turn<'_, T> {
    fn deref_mut(&mut self) -> &mut Core<T> {
        self.core.as_mut().expect("a turn holds the core until it ends")
    }
}

impl<T: Streams> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        if self.core.is_none() {
            return;
        }
        if std::thread::panicking() {
            // The lock is poisoned now; the driver thread finds out and tells everybody.
            self.core = None;
            self.shared.driver.wake();
            return;
        }
        if self.settle_for_driver() {
            self.shared.driver.wake();
        }
        self.end();
    }
}
