//! What a socket is ready for, asked once or watched.

use std::sync::Arc;
use std::task::Waker;

use farhaul::{Readiness, Watch};

use super::{Link, Phase, Socket};
use crate::events::Events;

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
            self.set_up(link);
        }
        Events::of_connection(now)
    }
}
