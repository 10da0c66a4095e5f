//! What a socket is ready for, as select and epoll see it.

use std::ops::{BitAnd, BitOr};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use farhaul::Readiness;

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

    pub(crate) fn of_connection(now: Readiness) -> Self {
        let bit = |holds: bool, event: Self| if holds { event } else { Self::NONE };
        if !now.connected && !now.ended {
            return Self::NONE;
        }
        bit(now.readable, Self::IN) | bit(now.writable, Self::OUT) | bit(now.ended, Self::ALL)
    }

    pub(crate) fn of_listener(now: Readiness) -> Self {
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
