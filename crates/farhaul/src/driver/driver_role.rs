//! A caller that waits for data or room drives the port in place of the driver thread.
//!
//! Otherwise two threads take turns for every few packets. Each turn costs a context switch, and on a busy machine a time slice. The
//! data moves from the cache of one processor to that of another.
//!
//! | the caller | the driver thread |
//! | --- | --- |
//! | waits for the first time, or its last wait was not brief | drives |
//! | waits, and its waits are brief: it drives | sleeps |
//! | is away with its data | sleeps for a lease, then drives |
//!
//! Only a caller whose connection is alone on the port drives, because others would wait while it is away.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;
use std::{io, thread};

use farhaul_proto::{Channels, Streams};
use farhaul_udp::{Alarm, Interest, Ready, UdpSocket, Waiter, Waker};
use farhaul_units::Instant;

use super::channels::ALARM;
use super::core::{DriverThread, WaitPlace};
use super::guard::{EndpointGuard, Rest, Shared};
use super::receive_state::{ReceiveState, pause};
use super::transmit_queue::QueueState;
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

    /// What the driver thread needs to drive. If a caller is away, the rest of its lease: the alarm rings then, but the thread may have
    /// stopped it just before. Nothing while a caller drives, which sets the alarm or wakes the thread after this look.
    pub(super) fn for_thread(&self, now: Instant) -> Result<MutexGuard<'_, ReceiveState>, Option<Duration>> {
        if self.has_caller.load(Ordering::Acquire) {
            return Err(None);
        }
        match self.lease.load(Ordering::Acquire).saturating_sub(now.as_nanos()) {
            0 => {}
            left => return Err(Some(Duration::from_nanos(left))),
        }
        match self.receiving.try_lock() {
            Ok(receiving) => Ok(receiving),
            // What a panicking caller left there is only a batch.
            Err(TryLockError::Poisoned(receiving)) => Ok(receiving.into_inner()),
            Err(TryLockError::WouldBlock) => Err(None),
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

    /// Lets a caller be away for `time` from now on. The alarm is to follow.
    fn begin_lease(&self, now: Instant, time: Duration) {
        self.lease.store((now + time).as_nanos(), Ordering::Release);
    }

    /// Ends the lease of a caller that is away.
    pub(super) fn end_lease(&self) {
        self.lease.store(0, Ordering::Release);
    }
}

/// A caller that drives. Its drop gives the role back.
struct Caller<'a> {
    role: &'a DriverRole,
    /// Wakes the driver thread.
    thread: &'a Waker,
    /// `None` only during the drop.
    receiving: Option<MutexGuard<'a, ReceiveState>>,
    /// How long it may be away. Without a lease, the driver thread drives at once.
    lease: Option<Duration>,
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        if self.lease.is_none() {
            self.role.end_lease();
        }
        self.role.has_caller.store(false, Ordering::Release);
        // The thread can take it, whenever it looks from now on.
        self.receiving = None;
        match self.lease {
            Some(time) => self.role.alarm.set(time),
            None => self.thread.wake(),
        }
    }
}

/// The wait of a caller that drives.
struct Waiting<'a> {
    place: WaitPlace,
    ticket: &'a Ticket,
    begin: Instant,
    most: Duration,
    /// How long it may be away once it is woken.
    lease: Option<Duration>,
}

/// What a caller that drives does next.
enum Next {
    Drive(Rest),
    /// Its place was woken, or the wait is not brief. It may be away for so long.
    Leave(Option<Duration>),
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
        let mut caller = Caller { role, thread, receiving: Some(role.for_caller()), lease: None };
        let most = timeout.map_or(BRIEF, |timeout| timeout.min(BRIEF));
        let mut waiting = Waiting { place, ticket, begin: clock.now(), most, lease: None };
        let (mut is_readable, mut is_alarm_set) = (true, true);
        loop {
            let Some(receiving) = &mut caller.receiving else { return Ok(()) };
            receiving.receive(socket, std::mem::replace(&mut is_readable, true));
            let mut guard = self.lock()?;
            guard.begin_as_driver(receiving.is_streaming);
            let now = guard.now();
            receiving.hand_in(&mut guard, socket);
            waiting.lease = receiving.lease();
            let mut next = guard.end_as_caller(&waiting);
            let mut sleep = Duration::ZERO;
            if let Next::Drive(rest) = &next {
                sleep = receiving.sleep(now, rest);
                if is_alarm_set && sleep.is_zero() && !rest.blocked {
                    sleep = receiving.sleep_after_return(now);
                }
                if rest.holds_readers && !receiving.is_streaming {
                    let mut guard = self.lock()?;
                    guard.end_streaming();
                    next = guard.end_as_caller(&waiting);
                }
            }
            let rest = match next {
                Next::Drive(rest) => rest,
                Next::Leave(lease) => {
                    receiving.note_arrival(now);
                    caller.lease = lease;
                    return Ok(());
                }
            };
            let left = || waiting.most.saturating_sub(clock.now() - waiting.begin);
            if !sleep.is_zero() {
                pause(sleep.min(left()));
            }
            if receiving.is_streaming {
                continue;
            }
            if std::mem::take(&mut is_alarm_set) {
                role.alarm.stop();
            }
            let interest = if rest.blocked { Interest::Both } else { Interest::Readable };
            let time = rest.time.map_or_else(left, |time| time.min(left()));
            // Where the system refuses to wait, as it may with few descriptors, the driver thread can.
            let Ok(waited) = role.waker.wait_beside(&**socket, interest, Some(time)) else {
                return self.lock().map(|mut guard| guard.end_wait(&waiting, false));
            };
            is_readable = waited;
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
        let is_alone = self.channel_requests.is_none() && self.connections == 1;
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
        self.unlock();
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
        let was_woken = self.wait_queue(place).is_none_or(|queue| queue.woken_since(waiting.ticket));
        let shared = self.shared;
        self.caller_drives = !was_woken && shared.clock.now() - waiting.begin < waiting.most;
        if self.caller_drives {
            let (rest, wakeups) = self.end_before_rest(state, next);
            shared.deliver(wakeups);
            return Next::Drive(rest);
        }
        self.end_wait(waiting, was_woken);
        // Nobody wakes them, or sends the rest, while it is away.
        self.end_streaming();
        let lease =
            waiting.lease.filter(|_| was_woken && state == QueueState::Drained && !self.has_other_waiters(place));
        if let Some(time) = lease {
            shared.role.begin_lease(shared.clock.now(), time);
        }
        self.thread = lease.map_or(DriverThread::Awake, |time| DriverThread::Replaced(now + time));
        self.end();
        Next::Leave(lease)
    }

    /// Notes that a caller that drove waits no more.
    fn end_wait(&mut self, waiting: &Waiting<'_>, was_woken: bool) {
        let end = self.shared.clock.now();
        if let Some(queue) = self.wait_queue(waiting.place) {
            queue.leave_driving();
            queue.times.end(end, end - waiting.begin, was_woken);
        }
    }
}

#[cfg(test)]
mod tests {
    use farhaul_udp::{Clock, Options};

    use super::*;

    #[test]
    fn a_thread_that_stopped_the_alarm_of_a_later_lease_wakes_at_its_end_all_the_same() {
        let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), Options::default()).unwrap();
        let (role, mut waiter, clock) = (DriverRole::new(&socket).unwrap(), Waiter::new().unwrap(), Clock::start());
        role.watch(&waiter).unwrap();
        role.alarm.set(Duration::ZERO);
        let ready = waiter.wait(Some(Duration::from_secs(10))).unwrap();
        let now = clock.now();
        role.begin_lease(now, LEASE);
        role.alarm.set(LEASE);
        role.note(ready);
        assert_eq!(role.for_thread(now).err(), Some(Some(LEASE)));
        assert!(role.for_thread(now + LEASE).is_ok());
        assert!(role.claim() && !role.claim());
        assert_eq!(role.for_thread(now + LEASE).err(), Some(None), "the caller's end wakes it");
    }
}
