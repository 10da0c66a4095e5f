//! Waiting for a ready socket, a call by another thread, or a deadline, with nanosecond precision.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};

use farhaul_units::Duration;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::sys::take_ready;

/// Most ready sources reported by one wait, unless requested otherwise. The next wait reports the others.
const EVENTS: usize = 64;

/// The token of the eventfd of a [`Waker`].
const WAKE: Token = Token(u64::MAX);

/// Practically never: 68 years.
const FOREVER: Timespec = Timespec { tv_sec: i32::MAX as i64, tv_nsec: 0 };

thread_local! {
    /// Whether this thread has already asked the kernel not to round up its sleeps (by default 50 µs).
    static PRECISE: Cell<bool> = const { Cell::new(false) };
}

/// The caller's id for a source; any number but `u64::MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// The events for which a source is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Readable: data to receive.
    Readable,
    /// Writable: room to send.
    Writable,
    /// Either.
    Both,
}

/// A ready source. Errors and hang-ups set both flags, and the next call on the source returns the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The source.
    pub token: Token,
    /// There is data to receive.
    pub readable: bool,
    /// There is room to send.
    pub writable: bool,
}

/// Waits for any number of sources at once, in one thread at a time.
pub struct Waiter {
    epoll: OwnedFd,
    wake: Arc<OwnedFd>,
    events: Vec<Event>,
    ready: Vec<Ready>,
    /// Whether the kernel lacks a wait with a limit in nanoseconds.
    is_old_kernel: bool,
}

impl Waiter {
    /// A waiter without sources that can be woken.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn new() -> io::Result<Self> {
        Self::reporting(EVENTS)
    }

    /// A waiter for `sources` sources. One wait reports every ready source.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn for_sources(sources: usize) -> io::Result<Self> {
        // One more for the waker.
        Self::reporting(EVENTS.max(sources.saturating_add(1)))
    }

    fn reporting(events: usize) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE.0), EventFlags::IN)?;
        let (events, ready) = (Vec::with_capacity(events), Vec::with_capacity(events));
        Ok(Self { epoll, wake, events, ready, is_old_kernel: false })
    }

    /// Watches `source` as `token` from now on, until it is closed.
    ///
    /// # Errors
    /// It is watched already, or the system refuses.
    pub fn watch(&self, source: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, EventData::new_u64(token.0), interest.flags())?)
    }

    /// Changes the events for which `source` is watched.
    ///
    /// # Errors
    /// It is not watched.
    pub fn rewatch(&self, source: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, source, EventData::new_u64(token.0), interest.flags())?)
    }

    /// Watches `source` no longer. A source that reports an end for ever would otherwise end every wait.
    ///
    /// # Errors
    /// It is not watched.
    pub fn unwatch(&self, source: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, source)?)
    }

    /// The handle with which other threads wake this one.
    pub fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.wake))
    }

    /// Sleeps until a source is ready, a [`Waker`] was called, or `timeout` has passed. `None` waits without a limit. A
    /// call before the wait counts, too. Returns the ready sources, without the waker.
    ///
    /// # Errors
    /// Only after a mistake in this crate.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<&[Ready]> {
        make_sleeps_precise();
        let timeout = timeout.map(|timeout| Timespec::try_from(timeout).unwrap_or(FOREVER));
        self.events.clear();
        match self.epoll_wait(timeout.as_ref()) {
            Ok(()) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.ready.clear();
        let mut woken = false;
        for event in &self.events {
            let (token, flags) = (Token(event.data.u64()), event.flags);
            if token == WAKE {
                woken = true;
                continue;
            }
            let failed = flags.intersects(EventFlags::ERR | EventFlags::HUP);
            self.ready.push(Ready {
                token,
                readable: failed || flags.intersects(EventFlags::IN | EventFlags::RDHUP),
                writable: failed || flags.contains(EventFlags::OUT),
            });
        }
        if woken {
            // One read takes all calls together. It fails only if there was none.
            let _ = rustix::io::read(&self.wake, &mut [0_u8; 8]);
        }
        Ok(&self.ready)
    }

    /// Fills `events`.
    fn epoll_wait(&mut self, timeout: Option<&Timespec>) -> Result<(), Errno> {
        if !self.is_old_kernel {
            match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout) {
                Err(Errno::NOSYS) => self.is_old_kernel = true,
                result => return result.map(drop),
            }
        }
        // Kernels before 5.11 lack that call. There, `poll` on one descriptor gives the precision.
        poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], timeout)?;
        take_ready(&self.epoll, &mut self.events)
    }
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter").field("epoll", &self.epoll).field("ready", &self.ready).finish_non_exhaustive()
    }
}

/// Wakes the waiting thread from any other thread. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

/// A [`Waker`] that does not keep its file descriptor open. To use it is permitted in a signal handler: no memory is freed while it
/// exists.
#[derive(Clone, Debug)]
pub struct WeakWaker(Weak<OwnedFd>);

impl WeakWaker {
    /// The same as [`Waker::wake`], if there is still somebody to wake.
    pub fn wake(&self) {
        if let Some(fd) = self.0.upgrade() {
            Waker(fd).wake();
        }
    }

    /// Whether there is still somebody to wake.
    pub fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl Waker {
    /// A waker for waits [beside one source](Self::wait_beside).
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Sleeps until `source` is ready, this waker was called, or `timeout` has passed. A call before the wait counts, too.
    /// Unlike a [`Waiter`], this needs no preparation and works in any thread, for one source. Returns whether the source is
    /// ready.
    ///
    /// # Errors
    /// Only after a mistake in this crate.
    pub fn wait_beside(&self, source: impl AsFd, interest: Interest, timeout: Option<Duration>) -> io::Result<bool> {
        make_sleeps_precise();
        let timeout = timeout.map(|timeout| Timespec::try_from(timeout).unwrap_or(FOREVER));
        // The kernel's flags of both calls are the same.
        let flags = PollFlags::from_bits_truncate(interest.flags().bits() as _);
        let mut sources = [PollFd::new(&source, flags), PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut sources, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        if !sources[1].revents().is_empty() {
            self.clear();
        }
        Ok(!sources[0].revents().is_empty())
    }

    /// Forgets the calls so far.
    fn clear(&self) {
        // One read takes all calls together. It fails only if there was none.
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }

    /// A waker that does not keep the file descriptor open.
    pub fn downgrade(&self) -> WeakWaker {
        WeakWaker(Arc::downgrade(&self.0))
    }

    /// Ends the current wait, or the next one if there is none.
    pub fn wake(&self) {
        // It fails only if 2^64 - 2 calls are pending, and then the thread is already being woken.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

impl Interest {
    fn flags(self) -> EventFlags {
        match self {
            Self::Readable => EventFlags::IN,
            Self::Writable => EventFlags::OUT,
            Self::Both => EventFlags::IN | EventFlags::OUT,
        }
    }
}

/// Makes sleeps of the calling thread end on time. By default the kernel delays them by up to 50 µs to save wake-ups.
pub(crate) fn make_sleeps_precise() {
    PRECISE.with(|precise| {
        if !precise.replace(true) {
            // If the system refuses, sleeps end a little later.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        }
    });
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::{Clock, Options, UdpSocket};

    /// A limit on waits, so that a failing test ends.
    const LIMIT: Option<Duration> = Some(Duration::from_secs(10));

    fn socket() -> UdpSocket {
        UdpSocket::bind("127.0.0.1:0".parse().unwrap(), Options::default()).unwrap()
    }

    #[test]
    fn a_datagram_ends_the_wait() {
        let (mut waiter, socket) = (Waiter::new().unwrap(), socket());
        waiter.watch(&socket, Token(7), Interest::Readable).unwrap();
        assert!(waiter.wait(Some(Duration::ZERO)).unwrap().is_empty());
        socket.send_one(None, socket.local_addr(), b"x").unwrap();
        let ready = [Ready { token: Token(7), readable: true, writable: false }];
        assert_eq!(waiter.wait(LIMIT).unwrap(), ready);
        waiter.rewatch(&socket, Token(8), Interest::Both).unwrap();
        assert_eq!(waiter.wait(LIMIT).unwrap(), [Ready { token: Token(8), readable: true, writable: true }]);
        drop(socket);
        assert!(waiter.wait(Some(Duration::ZERO)).unwrap().is_empty());
    }

    #[test]
    fn a_kernel_before_5_11_reports_the_same() {
        let (mut waiter, socket) = (Waiter::new().unwrap(), socket());
        waiter.is_old_kernel = true;
        waiter.watch(&socket, Token(7), Interest::Readable).unwrap();
        let clock = Clock::start();
        let before = clock.now();
        assert!(waiter.wait(Some(Duration::from_micros(300))).unwrap().is_empty());
        assert!(clock.now().saturating_since(before) >= Duration::from_micros(300));
        socket.send_one(None, socket.local_addr(), b"x").unwrap();
        assert_eq!(waiter.wait(LIMIT).unwrap(), [Ready { token: Token(7), readable: true, writable: false }]);
        waiter.waker().wake();
        waiter.rewatch(&socket, Token(8), Interest::Writable).unwrap();
        assert_eq!(waiter.wait(LIMIT).unwrap(), [Ready { token: Token(8), readable: false, writable: true }]);
        assert_eq!(waiter.wait(LIMIT).unwrap().len(), 1);
    }

    #[test]
    fn a_waker_waits_beside_one_source() {
        let (waker, socket) = (Waker::new().unwrap(), socket());
        let wait = |time| waker.wait_beside(&socket, Interest::Readable, time).unwrap();
        assert!(!wait(Some(Duration::ZERO)));
        waker.wake();
        assert!(!wait(LIMIT), "the call came before");
        assert!(!wait(Some(Duration::ZERO)), "and counts once");
        socket.send_one(None, socket.local_addr(), b"x").unwrap();
        assert!(wait(LIMIT));
        assert!(waker.wait_beside(&socket, Interest::Both, LIMIT).unwrap());
    }

    #[test]
    fn a_source_that_is_watched_no_longer_ends_no_wait() {
        let (mut waiter, socket) = (Waiter::new().unwrap(), socket());
        waiter.watch(&socket, Token(7), Interest::Writable).unwrap();
        assert_eq!(waiter.wait(LIMIT).unwrap().len(), 1);
        waiter.unwatch(&socket).unwrap();
        assert!(waiter.wait(Some(Duration::ZERO)).unwrap().is_empty());
        assert!(waiter.unwatch(&socket).is_err());
        waiter.watch(&socket, Token(8), Interest::Writable).unwrap();
        assert_eq!(waiter.wait(LIMIT).unwrap().len(), 1);
    }

    #[test]
    fn another_thread_ends_the_wait_and_calls_do_not_pile_up() {
        let mut waiter = Waiter::new().unwrap();
        let waker = waiter.waker();
        let clock = Clock::start();
        thread::scope(|scope| {
            scope.spawn(|| (0..3).for_each(|_| waker.wake()));
            assert!(waiter.wait(LIMIT).unwrap().is_empty());
        });
        assert!(clock.now().as_nanos() < 10_000_000_000, "the wait was ended, not sat out");
        let _ = waiter.wait(Some(Duration::ZERO)).unwrap();
        assert!(waiter.wait(Some(Duration::from_nanos(1))).unwrap().is_empty());
    }

    #[test]
    fn one_wait_reports_all_sources_that_it_was_made_for() {
        let sockets: Vec<_> = (0..EVENTS + 6).map(|_| socket()).collect();
        sockets.iter().for_each(|socket| socket.send_one(None, socket.local_addr(), b"x").unwrap());
        let reported = |mut waiter: Waiter| {
            for (token, socket) in (0..).map(Token).zip(&sockets) {
                waiter.watch(socket, token, Interest::Readable).unwrap();
            }
            waiter.waker().wake();
            waiter.wait(LIMIT).unwrap().len()
        };
        assert_eq!(reported(Waiter::for_sources(sockets.len()).unwrap()), sockets.len());
        assert!(reported(Waiter::new().unwrap()) <= EVENTS);
    }

    #[test]
    fn a_wait_never_ends_before_its_time() {
        let mut waiter = Waiter::new().unwrap();
        let clock = Clock::start();
        for micros in [1, 30, 500, 1_000] {
            let (before, timeout) = (clock.now(), Duration::from_micros(micros));
            assert!(waiter.wait(Some(timeout)).unwrap().is_empty());
            assert!(clock.now() - before >= timeout);
        }
    }
}
