//! epoll of libudt: sockets of UDT and descriptors of the system in one wait.

use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::descriptor::borrow;
use crate::events::Events;
use crate::failure::{Code, Failure, Result};
use crate::socket::{Looking, Socket};
use crate::wait::Bell;
use crate::{clock, wait};

static POLLS: Mutex<Polls> = Mutex::new(Polls { last: 0, polls: BTreeMap::new() });

struct Polls {
    last: i32,
    polls: BTreeMap<i32, Arc<Poll>>,
}

/// A set of sockets that threads wait for.
#[derive(Debug)]
pub(crate) struct Poll {
    /// Calls all threads that wait.
    bell: Arc<Bell>,
    watched: Mutex<Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    sockets: BTreeMap<i32, Entry>,
    descriptors: BTreeMap<RawFd, Events>,
    /// Its id names nothing any more.
    is_released: bool,
}

#[derive(Debug)]
struct Entry {
    socket: Arc<Socket>,
    events: Events,
    looking: Looking,
}

/// What a wait found.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    pub(crate) read: Vec<i32>,
    pub(crate) write: Vec<i32>,
    pub(crate) system_read: Vec<RawFd>,
    pub(crate) system_write: Vec<RawFd>,
}

impl Ready {
    /// Sockets to read and to write, and descriptors to read and to write.
    pub(crate) fn lists(&self) -> [&[i32]; 4] {
        [&self.read, &self.write, &self.system_read, &self.system_write]
    }
}

fn polls() -> MutexGuard<'static, Polls> {
    POLLS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn create() -> i32 {
    let mut polls = polls();
    polls.last = polls.last.checked_add(1).unwrap_or(1);
    let id = polls.last;
    polls.polls.insert(id, Arc::new(Poll { bell: Arc::default(), watched: Mutex::default() }));
    id
}

/// # Errors
/// [`Code::InvalidPoll`]: there is none.
pub(crate) fn find(id: i32) -> Result<Arc<Poll>> {
    polls().polls.get(&id).cloned().ok_or(Code::InvalidPoll.into())
}

/// # Errors
/// [`Code::InvalidPoll`]: there is none.
pub(crate) fn release(id: i32) -> Result<()> {
    let poll = polls().polls.remove(&id).ok_or(Code::InvalidPoll)?;
    let released = Watched { is_released: true, ..Watched::default() };
    let before = std::mem::replace(&mut *poll.watched(), released);
    drop(before);
    poll.bell.ring();
    Ok(())
}

/// A socket is closed: nobody waits for it any more.
pub(crate) fn forget(socket: i32) {
    let all: Vec<Arc<Poll>> = polls().polls.values().cloned().collect();
    for poll in all {
        poll.remove(socket);
    }
}

impl Poll {
    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches a socket for these events. A second call replaces them.
    pub(crate) fn add(&self, socket: Arc<Socket>, events: Events) {
        socket.observers.add(&self.bell);
        let id = socket.id;
        let before = self.watched().sockets.insert(id, Entry { socket, events, looking: Looking::Nothing });
        drop(before);
        self.bell.ring();
    }

    pub(crate) fn remove(&self, socket: i32) {
        // Its drop takes the lock of a port, so not under this one.
        let before = self.watched().sockets.remove(&socket);
        let is_known = before.is_some();
        drop(before);
        if is_known {
            // There may be nothing left to wait for.
            self.bell.ring();
        }
    }

    /// Watches a descriptor of the system.
    ///
    /// # Errors
    /// There is no such descriptor.
    pub(crate) fn add_descriptor(&self, descriptor: RawFd, events: Events) -> Result<()> {
        let found = borrow(descriptor).ok_or(Errno::BADF).and_then(rustix::io::fcntl_getfd);
        found.map_err(|errno| Failure::of_system(Code::InvalidParameter, &errno.into()))?;
        self.watched().descriptors.insert(descriptor, events);
        self.bell.ring();
        Ok(())
    }

    pub(crate) fn remove_descriptor(&self, descriptor: RawFd) {
        self.watched().descriptors.remove(&descriptor);
        self.bell.ring();
    }

    /// Waits until something is ready. `take` tells whether a result is what the caller asked for.
    ///
    /// # Errors
    /// [`Code::TimedOut`] at the deadline. [`Code::InvalidParameter`] if nothing is watched and there is none.
    /// [`Code::InvalidPoll`] once it is released. The process has no descriptor left.
    pub(crate) fn wait(&self, deadline: Option<Instant>, take: impl Fn(&Ready) -> bool) -> Result<Ready> {
        let signal = wait::signal()?;
        let _called = self.bell.call(&signal);
        let waker = Waker::from(Arc::clone(&self.bell));
        loop {
            let (ready, descriptors) = self.look(&waker)?;
            if take(&ready) {
                return Ok(ready);
            }
            if deadline.is_some_and(|deadline| deadline <= clock::now()) {
                return Err(Code::TimedOut.into());
            }
            let is_empty = self.watched().sockets.is_empty() && descriptors.is_empty();
            if is_empty && deadline.is_none() {
                return Err(Code::InvalidParameter.into());
            }
            let borrowed = descriptors.iter().filter_map(|(fd, events)| Some((borrow(*fd)?, flags(*events))));
            signal.wait(&borrowed.collect::<Vec<_>>(), deadline);
        }
    }

    /// What is ready now, and the watched descriptors.
    fn look(&self, waker: &Waker) -> Result<(Ready, Vec<(RawFd, Events)>)> {
        let mut ready = Ready::default();
        let mut watched = self.watched();
        if watched.is_released {
            return Err(Code::InvalidPoll.into());
        }
        for (id, entry) in &mut watched.sockets {
            let now = entry.socket.look(&mut entry.looking, waker) & entry.events;
            // A connection that is over is ready for whatever it is watched for. One watched for errors alone is in both sets.
            let fails = now == Events::ERROR;
            let lists = [(Events::IN, &mut ready.read), (Events::OUT, &mut ready.write)];
            lists.into_iter().filter(|(event, _)| fails || now.has(*event)).for_each(|(_, list)| list.push(*id));
        }
        let descriptors: Vec<(RawFd, Events)> = watched.descriptors.iter().map(|(fd, events)| (*fd, *events)).collect();
        drop(watched);
        look_at_descriptors(&descriptors, &mut ready);
        Ok((ready, descriptors))
    }
}

fn look_at_descriptors(descriptors: &[(RawFd, Events)], ready: &mut Ready) {
    let known = descriptors.iter().filter_map(|(fd, events)| Some((*fd, borrow(*fd)?, flags(*events))));
    let known: Vec<(RawFd, BorrowedFd<'_>, PollFlags)> = known.collect();
    if known.is_empty() {
        return;
    }
    let mut fds: Vec<PollFd<'_>> = known.iter().map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
    if poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_err() {
        return;
    }
    for ((fd, ..), polled) in known.iter().zip(&fds) {
        let found = polled.revents();
        if found.intersects(PollFlags::IN) {
            ready.system_read.push(*fd);
        }
        if found.intersects(PollFlags::OUT) {
            ready.system_write.push(*fd);
        }
    }
}

fn flags(events: Events) -> PollFlags {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, events.has(Events::IN));
    flags.set(PollFlags::OUT, events.has(Events::OUT));
    flags
}
