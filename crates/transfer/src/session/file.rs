//! One side of a copy: the session, the timed disk, the log of files, and what it cannot send or left incomplete.

mod log;
mod missing;
pub(crate) mod outcome;
mod partial;
mod timed;
mod waits;

use delegate::delegate;
use farhaul_session::{Abort, FileReceiver, FileSender, SessionError, Source, Store};

use std::rc::Rc;

use super::watch::RoundTrips;
use super::{Session, WaitTimes};
pub(crate) use log::FileLog;
pub(crate) use missing::{Missing, select, too_many_for_one};
pub(crate) use partial::Target;
pub(crate) use timed::{Holding, Timed, Working};
pub(crate) use waits::{ends, lock_wait, patience};

/// The sending side.
pub(crate) struct Sending<S> {
    pub(crate) session: FileSender,
    pub(crate) source: Timed<S>,
    pub(crate) log: FileLog,
}

/// The receiving side.
pub(crate) struct Receiving<S> {
    pub(crate) session: FileReceiver,
    pub(crate) store: Timed<S>,
    pub(crate) log: FileLog,
}

impl<S: Source> Session for Sending<S> {
    delegate! {
        to self.session {
            fn handle_end(&mut self) -> Result<(), SessionError>;
            fn is_over(&self) -> bool;
            fn error(&self) -> Option<&SessionError>;
            fn handle_received(&mut self, bytes: &[u8]) -> Result<usize, SessionError>;
            fn cancel(&mut self, why: Abort);
        }
        to self.source {
            fn begin(&mut self, wait_times: &Rc<WaitTimes>);
            fn set_round_trips(&mut self, round_trips: RoundTrips);
        }
    }

    fn sends(&self) -> bool {
        true
    }

    fn poll_write(&mut self) -> &[u8] {
        self.session.poll_write(&mut self.source)
    }

    fn handle_written(&mut self, count: usize) {
        self.session.handle_written(count);
        self.log.on_moved(self.session.progress());
    }

    fn awaits_disk(&self) -> bool {
        false
    }

    fn handle_events(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.session.poll_event() {
            self.log.on_event(&event);
            any = true;
        }
        any
    }
}

impl<S: Store> Session for Receiving<S> {
    delegate! {
        to self.store {
            fn set_round_trips(&mut self, round_trips: RoundTrips);
        }
        to self.session {
            fn poll_write(&mut self) -> &[u8];
            fn handle_written(&mut self, count: usize);
            fn is_over(&self) -> bool;
            fn error(&self) -> Option<&SessionError>;
        }
    }

    fn sends(&self) -> bool {
        false
    }

    fn handle_received(&mut self, bytes: &[u8]) -> Result<usize, SessionError> {
        let used = self.session.handle_received(&mut self.store, bytes);
        self.log.on_moved(self.session.progress());
        used
    }

    fn awaits_disk(&self) -> bool {
        self.store.has_unknown() || self.session.is_busy()
    }

    fn handle_disk(&mut self) -> Result<(), SessionError> {
        self.session.handle_store(&mut self.store)
    }

    fn handle_end(&mut self) -> Result<(), SessionError> {
        self.session.handle_end(&mut self.store)
    }

    fn handle_events(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.session.poll_event() {
            self.log.on_event(&event);
            any = true;
        }
        any
    }

    fn cancel(&mut self, why: Abort) {
        self.session.cancel(&mut self.store, why);
    }
}
