//! A caller that waits for data or room drives the port in place of the driver thread.
//!
//! Otherwise two threads take turns for every few packets: each turn costs a context switch, on a busy machine a time slice,
//! and the data moves from the cache of one processor to that of another.
//!
//! ```text
//!   driver thread           caller
//!   ─────────────           ──────
//!   drives                  waits (condition variable)   first wait, or the last one was not brief
//!   is replaced             drives until it is woken     brief waits
//!   is replaced             is away with its data        for a lease; then the alarm rings for the driver thread
//! ```
//!
//! Only a connection that is alone on its port relieves the thread, because the others would wait while the caller is away.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;
use std::{io, thread};

use farhaul_proto::{Channels, Streams};
use farhaul_udp::{Alarm, Clock, Interest, Ready, UdpSocket, Waiter, Waker};
use farhaul_units::Instant;

use super::channels::ALARM;
use super::core::{DriverThread, WaitPlace};
use super::guard::{EndpointGuard, Rest, Shared};
use super::receive_state::{ReceiveState, pause};
use super::wait_queue::Ticket;
use super::wait_times::{BRIEF, WaitTimes};
use crate::error::Error;

/// How long a caller may be away before the driver thread drives again. Deadlines and arrivals may wait for so long, twice the
/// thread's own sleeps that gather datagrams.
pub(super) const LEASE: Duration = Duration::from_millis(1);
/// With so many processors, the kernel's work for the network keeps the other one busy. A second thread gains nothing then.
const FEW_PROCESSORS: usize = 2;

/// The role of the driver, which the driver thread and callers of a port pass on.
#[derive(Debug)]
pub(super) struct DriverRole {
    /// Whoever takes it drives.
    receiving: Mutex<ReceiveState>,
    /// A caller drives, or will once the driver thread has ended its turn.
    has_caller: AtomicBool,
    /// Ends the wait of a caller that drives.
    pub(super) waker: Waker,
    /// Rings for the driver thread when a lease is over.
    alarm: Alarm,
    /// The end of the lease of a caller that is away, in nanoseconds of the clock.
    lease: AtomicU64,
    has_few_processors: bool,
}

impl DriverRole {
    pub(super) fn new(socket: &UdpSocket) -> io::Result<Self> {
        Ok(Self {
            receiving: Mutex::new(ReceiveState::new(socket)),
            has_caller: AtomicBool::new(false),
            waker: Waker::new()?,
            alarm: Alarm::new()?,
            lease: AtomicU64::new(0),
            has_few_processors: thread::available_parallelism()
                .is_ok_and(|processors| processors.get() <= FEW_PROCESSORS),
        })
    }

    /// What the driver thread needs to drive. `None` while a caller drives or is away with a lease. The alarm rings once the lease is
    /// over.
    pub(super) fn for_thread(&self, now: Instant) -> Option<MutexGuard<'_, ReceiveState>> {
        if self.has_caller.load(Ordering::Acquire) || self.lease.load(Ordering::Acquire) > now.as_nanos() {
            return None;
        }
        match self.receiving.try_lock() {
            Ok(receiving) => Some(receiving),
            // What a panicking caller left there is only a batch.
            Err(TryLockError::Poisoned(receiving)) => Some(receiving.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether this caller is to drive. Then no other does.
    fn claim(&self) -> bool {
        self.has_caller.compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// What a caller needs to drive that has claimed it. Waits for a turn of the driver thread at most.
    fn for_caller(&self) -> MutexGuard<'_, ReceiveState> {
        self.receiving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the alarm end the waits of the driver thread.
    pub(super) fn watch(&self, waiter: &Waiter) -> io::Result<()> {
        waiter.watch(&self.alarm, ALARM, Interest::Readable)
    }

    /// Notes that the alarm rang, if it is among the sources that the waiter reports.
    pub(super) fn note(&self, ready: &[Ready]) {
        if ready.iter().any(|source| source.token == ALARM) {
            self.alarm.stop();
        }
    }

    /// Ends the lease of a caller that is away.
    pub(super) fn end_lease(&self) {
        self.lease.store(0, Ordering::Release);
    }
}

/// A caller that drives. Its drop gives the role back.
struct Caller<'a> {
    role: &'a DriverRole,
    clock: &'a Clock,
    /// Wakes the driver thread.
    thread: &'a Waker,
    /// `None` only during the drop.
    receiving: Option<MutexGuard<'a, ReceiveState>>,
    /// It was woken, so that it will be back soon. Otherwise the driver thread drives at once.
    was_woken: bool,
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        let lease = if self.was_woken { (self.clock.now() + LEASE).as_nanos() } else { 0 };
        self.role.lease.store(lease, Ordering::Release);
        self.role.has_caller.store(false, Ordering::Release);
        // The thread can take it, whenever it looks from now on.
        self.receiving = None;
        if self.was_woken {
            self.role.alarm.set(LEASE);
        } else {
            self.thread.wake();
        }
    }
}

/// The wait of a caller that drives.
struct Waiting<'a> {
    place: WaitPlace,
    ticket: &'a Ticket,
    begin: Instant,
    most: Duration,
}

/// What a caller that drives does next.
enum Next {
    Drive(Rest),
    /// Its place was woken.
    Look,
    /// The wait is not brief.
    Resign,
}

impl<T: Streams + Channels> Shared<T> {
    /// What the driver thread does for others while it is replaced.
    ///
    /// # Errors
    /// The transport is broken.
    pub(super) fn serve_cancellers(&self) -> Result<(), Error> {
        let mut guard = self.lock()?;
        guard.wake_cancelled();
        Ok(())
    }

    /// Drives the port, which this caller has claimed, while it waits at `place`: until that is woken, or for a brief time.
    fn drive(&self, (place, ticket): (WaitPlace, &Ticket), timeout: Option<Duration>) -> Result<(), Error> {
        let Self { role, clock, waker: thread, socket, .. } = self;
        let mut caller = Caller { role, clock, thread, receiving: Some(role.for_caller()), was_woken: false };
        let most = timeout.map_or(BRIEF, |timeout| timeout.min(BRIEF));
        let waiting = Waiting { place, ticket, begin: clock.now(), most };
        let (mut is_readable, mut is_alarm_set) = (true, true);
        loop {
            let Some(receiving) = &mut caller.receiving else { return Ok(()) };
            receiving.receive(socket, std::mem::replace(&mut is_readable, true));
            let mut guard = self.lock()?;
            guard.begin_as_driver(receiving.is_streaming);
            let now = guard.now();
            receiving.hand_in(&mut guard, socket);
            let mut next = guard.end_as_caller(&waiting);
            let mut sleep = Duration::ZERO;
            if let Next::Drive(rest) = &next {
                sleep = receiving.sleep(now, rest);
                if rest.holds_readers && !receiving.is_streaming {
                    let mut guard = self.lock()?;
                    guard.end_streaming();
                    next = guard.end_as_caller(&waiting);
                }
            }
            let rest = match next {
                Next::Drive(rest) => rest,
                Next::Look => {
                    caller.was_woken = true;
                    return Ok(());
                }
                Next::Resign => return Ok(()),
            };
            if !sleep.is_zero() {
                pause(sleep);
            }
            if receiving.is_streaming {
                continue;
            }
            if std::mem::take(&mut is_alarm_set) {
                role.alarm.stop();
            }
            let interest = if rest.blocked { Interest::Both } else { Interest::Readable };
            let left = waiting.most.saturating_sub(clock.now() - waiting.begin);
            let time = rest.time.map_or(left, |time| time.min(left));
            let waited = role.waker.wait_beside(&**socket, interest, Some(time));
            is_readable = waited.map_err(|source| Error::System { what: "a wait for the socket", source })?;
        }
    }
}

impl<'a, T: Streams + Channels> EndpointGuard<'a, T> {
    /// Drives while it waits at `place`, if that is for this caller to do. Returns the guard if not.
    pub(super) fn try_to_drive(
        mut self,
        (place, ticket): (WaitPlace, &Ticket),
        timeout: Option<Duration>,
    ) -> Result<Result<(), Error>, Self> {
        let role = &self.shared.role;
        let is_alone = self.channel_requests.is_none() && self.has_one_connection();
        let hears_stream = self.answering.as_ref().is_some_and(|answering| answering.hears_stream(self.now()));
        if !matches!(place, WaitPlace::Read(_) | WaitPlace::Write(_)) || !is_alone || hears_stream {
            return Err(self);
        }
        let suits = |times: &WaitTimes| times.is_brief() && (role.has_few_processors || times.is_light());
        let Some(queue) = self.wait_queue(place).filter(|queue| suits(&queue.times)) else { return Err(self) };
        if !role.claim() {
            return Err(self);
        }
        queue.drive(ticket);
        let shared = self.shared;
        self.give_up();
        Ok(shared.drive((place, ticket), timeout))
    }

    /// Ends an access of a caller that drives.
    fn end_as_caller(mut self, waiting: &Waiting<'_>) -> Next {
        let place = waiting.place;
        let (state, next) = self.advance();
        let now = self.now();
        self.wake_readers(now);
        // It sees by itself whether it was woken.
        self.wakeups.driving_caller = false;
        let end = self.shared.clock.now();
        let time = end - waiting.begin;
        let was_woken = self.wait_queue(place).is_none_or(|queue| queue.woken_since(waiting.ticket));
        self.caller_drives = !was_woken && time < waiting.most;
        if self.caller_drives {
            return Next::Drive(self.end_asleep(state, next));
        }
        if let Some(queue) = self.wait_queue(place) {
            queue.leave_driving();
            queue.times.end(end, time);
        }
        self.thread = if was_woken { DriverThread::Replaced(now + LEASE) } else { DriverThread::Awake };
        self.end();
        if was_woken { Next::Look } else { Next::Resign }
    }
}
