//! What happens during a copy, for whoever shows it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use farhaul::{Rate, Stats};
use farhaul_keys::Notices;
use farhaul_session::{Change, Digest, Entry, Failure, ShownPath, Side};

use crate::error::Error;
use crate::report::Report;
pub use farhaul_disk::FileChange;

/// An event of a copy or of a server.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The copy waits for something that may take long.
    Waiting(Waiting<'a>),
    /// A connection to `peer` begins.
    Connecting {
        /// The address of this side's UDP port, if it has one.
        local: Option<SocketAddr>,
        /// The address of the peer, as far as it is known.
        peer: Option<SocketAddr>,
        /// The rate with which a search for the rate begins, if an earlier profile of the path told one: with the headers of IP and
        /// UDP, and when it was measured, since 1970.
        first_rate: Option<(Rate, Duration)>,
        /// What carries the data, if it is not UDP. It may move to UDP when that answers.
        carrier: Option<&'static str>,
    },
    /// What the copy has to move, once the sender has listed everything. It is missing if a file has an unknown size, and from older
    /// senders.
    Expected {
        /// Files.
        files: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// A file begins to move.
    Begun(&'a Entry),
    /// Time passes, and bytes may have moved. Every 20 ms or so.
    Moved(&'a Moved<'a>),
    /// A file has its final name. Both sides have compared its digest.
    Placed(&'a Entry, &'a Digest, Change),
    /// The target has this file already. Its other properties are as the copy keeps them. With a digest, both sides have compared the
    /// content.
    Kept(&'a Entry, Option<&'a Digest>, Change),
    /// A directory is complete, or a link was made.
    Made(&'a Entry, Change),
    /// An entry that the source lacks was removed from the target.
    Deleted(&'a ShownPath),
    /// So many chunks of a file arrived damaged, and come again.
    Repaired(&'a Entry, u64),
    /// An item of the source that no copy can have is left out.
    LeftOut(&'a ShownPath, &'a Failure),
    /// A request of the file service has changed this entry at a server.
    Changed(&'a ShownPath, FileChange<'a>),
    /// A file was not copied, for this reason, which one of the sides found.
    Failed(&'a ShownPath, &'a Failure, Side),
    /// A source was not reached, because the copy broke off before it.
    Skipped(&'a ShownPath),
    /// A connection that carries requests about files was lost. The next request makes another one.
    Lost(&'a Error),
    /// The connection was lost. Another attempt follows after this pause, and finds what has arrived: what is there counts anew.
    Retrying(Duration),
    /// A session of a server has ended, with this error if it failed.
    Ended(&'a Report, Option<&'a Error>),
    /// A record of the program on this host, which sends in a copy between two other hosts, as it writes with `--json`.
    Remote(&'a str, &'a serde_json::Value),
    /// Something that limits the copy, or that somebody should look at.
    Warning(&'a str),
    /// Something that people may want to know.
    Note(&'a str),
}

/// What a copy waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waiting<'a> {
    /// Ssh logs in to this host, and the program there starts.
    Login(&'a str),
    /// A server answers.
    Answer(SocketAddr),
}

/// The state of the connections of a session, which has a number at a server.
#[derive(Debug)]
pub struct Moved<'a> {
    /// Time since the watch began.
    pub elapsed: Duration,
    /// The figures of each connection.
    pub connections: &'a [Stats],
    /// This side sends. Its progress is acknowledged bytes, a receiver's is received bytes.
    pub sends: bool,
    /// The last one of the session.
    pub is_last: bool,
}

impl Moved<'_> {
    /// Bytes of payload so far: acknowledged ones of a sender, those that arrived at a receiver.
    pub fn bytes(&self) -> u64 {
        let of = |stats: &Stats| if self.sends { stats.totals.bytes_acked } else { stats.totals.bytes_read };
        self.connections.iter().map(of).sum()
    }
}

/// Hears what happens, on any thread of a copy. It must not wait long.
pub trait Observer: Send + Sync {
    /// An event of a copy. A server numbers its sessions from 1.
    fn on_event(&self, session: Option<u64>, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Send + Sync> Observer for F {
    fn on_event(&self, _session: Option<u64>, event: &Event<'_>) {
        self(event);
    }
}

/// Sends events to an observer. Clones send to the same one.
#[derive(Clone)]
pub struct Events {
    observer: Arc<dyn Observer>,
    session: Option<u64>,
}

impl Events {
    /// Events for this observer.
    pub fn to(observer: impl Observer + 'static) -> Self {
        Self { observer: Arc::new(observer), session: None }
    }

    /// Events that nobody hears.
    pub fn unheard() -> Self {
        Self::to(|_: &Event<'_>| {})
    }

    /// The events of a session of a server.
    pub(crate) fn of_session(&self, session: u64) -> Self {
        Self { session: Some(session), ..self.clone() }
    }

    /// The number of the session; `None` for a copy.
    pub(crate) const fn session(&self) -> Option<u64> {
        self.session
    }

    /// Tells the observer.
    pub fn send(&self, event: &Event<'_>) {
        self.observer.on_event(self.session, event);
    }

    /// Tells it of something that limits the copy, or that somebody should look at.
    pub fn warn(&self, message: &str) {
        self.send(&Event::Warning(message));
    }

    /// Tells it of something that people may want to know.
    pub fn note(&self, message: &str) {
        self.send(&Event::Note(message));
    }
}

impl Notices for Events {
    fn note(&self, message: &str) {
        Self::note(self, message);
    }

    fn warn(&self, message: &str) {
        Self::warn(self, message);
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("session", &self.session).finish_non_exhaustive()
    }
}
