//! What a socket is ready for, as select and epoll see it.

use std::ops::{BitAnd, BitOr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Waker;

use farhaul::{Readiness, Watch};

use crate::socket::{Link, Phase, Socket};
use crate::wait::Bell;

/// Events of a socket, in the bits of libudt, which are those of Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Events(i32);

impl Events {
    pub(crate) const NONE: Self = Self(0);
    /// Data, a connection to accept, or the end.
    pub(crate) const IN: Self = Self(1);
    /// Room, or the end.
    pub(crate) const OUT: Self = Self(4);
    /// The connection is over.
    pub(crate) const ERROR: Self = Self(8);
    pub(crate) const ALL: Self = Self(13);

    /// Unknown bits are ignored.
    pub(crate) const fn from_bits(bits: i32) -> Self {
        Self(bits & Self::ALL.0)
    }

    pub(crate) const fn bits(self) -> i32 {
        self.0
    }

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn of_connection(now: Readiness) -> Self {
        let bit = |holds: bool, event: Self| if holds { event } else { Self::NONE };
        if !now.connected && !now.ended {
            return Self::NONE;
        }
        bit(now.readable, Self::IN) | bit(now.writable, Self::OUT) | bit(now.ended, Self::ALL)
    }

    fn of_listener(now: Readiness) -> Self {
        match now {
            Readiness { ended: true, .. } => Self::ALL,
            Readiness { readable: true, .. } => Self::IN,
            _ => Self::NONE,
        }
    }
}

impl BitOr for Events {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Events {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// The bells of those that wait for a socket among others. They hear of each change of its phase.
#[derive(Debug, Default)]
pub(crate) struct Observers(Mutex<Vec<Weak<Bell>>>);

impl Observers {
    pub(crate) fn add(&self, bell: &Arc<Bell>) {
        let mut bells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bells.retain(|one| one.strong_count() > 0);
        if !bells.iter().any(|one| std::ptr::eq(one.as_ptr(), Arc::as_ptr(bell))) {
            bells.push(Arc::downgrade(bell));
        }
    }

    pub(crate) fn notify(&self) {
        let bells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bells.iter().filter_map(Weak::upgrade).for_each(|bell| bell.ring());
    }
}

/// What a waiter keeps of a socket between two looks.
#[derive(Debug)]
pub(crate) enum Looking {
    Nothing,
    Listener(Watch),
    Connection(Arc<Link>, Watch),
}

impl Socket {
    /// What it is ready for now.
    pub(crate) fn events(&self) -> Events {
        match self.phase() {
            Phase::Init | Phase::Bound(_) => Events::NONE,
            Phase::Listening(listening) => listening.readiness().map_or(Events::ALL, Events::of_listener),
            Phase::Linked(link) => match link.connection().readiness() {
                Ok(now) => self.noted(&link, now),
                Err(_) => Events::ALL,
            },
            Phase::Closed => Events::ALL,
        }
    }

    /// The same, and `waker` is called when it may have changed. An observer hears of changes of the phase as well.
    pub(crate) fn look(&self, looking: &mut Looking, waker: &Waker) -> Events {
        match (self.phase(), &mut *looking) {
            (Phase::Listening(_), Looking::Listener(watch)) => {
                watch.check(waker).map_or(Events::ALL, Events::of_listener)
            }
            (Phase::Linked(link), Looking::Connection(known, watch)) if Arc::ptr_eq(&link, known) => {
                watch.check(waker).map_or(Events::ALL, |now| self.noted(&link, now))
            }
            (Phase::Listening(listening), _) => {
                *looking = Looking::Listener(listening.watch());
                self.look(looking, waker)
            }
            (Phase::Linked(link), _) => {
                let watch = link.connection().watch();
                *looking = Looking::Connection(link, watch);
                self.look(looking, waker)
            }
            (Phase::Init | Phase::Bound(_), _) => Events::NONE,
            (Phase::Closed, _) => Events::ALL,
        }
    }

    fn noted(&self, link: &Link, now: Readiness) -> Events {
        if now.connected && !now.ended {
            self.settle(link);
        }
        Events::of_connection(now)
    }
}
