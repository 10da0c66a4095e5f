//! The connection of a stream, and what is left of it.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use farhaul::security::PublicKey;
use farhaul::{AsyncStream, ConnectionLost, Error, Stats, Stream as Connection};
use tokio::io::{AsyncRead, ReadBuf};

/// Most bytes of one read of what is left.
const BLOCK: usize = 256 << 10;

/// A connection until this side ends it: then its port, descriptors and thread are free, although the object lives on.
pub(super) struct Held {
    state: Mutex<HeldState>,
    /// Bytes that were read, and given to nobody. They stand before all that arrives.
    returned: Mutex<VecDeque<u8>>,
}

enum HeldState {
    Open(Connection),
    Ended(Box<Ended>),
}

/// What is known of a connection that this side has ended.
struct Ended {
    stats: Stats,
    peer_key: Option<PublicKey>,
    /// The peer has acknowledged everything.
    is_finished: bool,
}

/// Reads of one call.
pub(super) struct Reading {
    held: Arc<Held>,
    /// `None` once the connection was finished.
    stream: Option<AsyncStream>,
}

impl Held {
    pub(super) const fn new(connection: Connection) -> Self {
        Self { state: Mutex::new(HeldState::Open(connection)), returned: Mutex::new(VecDeque::new()) }
    }

    fn state(&self) -> MutexGuard<'_, HeldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn returned(&self) -> MutexGuard<'_, VecDeque<u8>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle of the connection.
    ///
    /// # Errors
    /// This side has ended it.
    pub(super) fn connection(&self) -> Result<Connection, Error> {
        match &*self.state() {
            HeldState::Open(connection) => Ok(connection.clone()),
            HeldState::Ended(ended) if ended.is_finished => Err(Error::Finished),
            HeldState::Ended(_) => Err(Error::Lost(ConnectionLost::ClosedLocally)),
        }
    }

    /// Changes the connection, unless this side has ended it.
    pub(super) fn while_open(&self, change: impl FnOnce(&Connection) -> Result<(), Error>) -> Result<(), Error> {
        self.connection().map_or(Ok(()), |connection| change(&connection))
    }

    /// Whether this side has not ended the connection.
    pub(super) fn is_open(&self) -> bool {
        matches!(&*self.state(), HeldState::Open(_))
    }

    /// Whether the connection was finished.
    pub(super) fn is_finished(&self) -> bool {
        matches!(&*self.state(), HeldState::Ended(ended) if ended.is_finished)
    }

    /// Counters and estimates, the last ones of a connection that this side has ended.
    pub(super) fn stats(&self) -> Result<Stats, Error> {
        let ended = match &*self.state() {
            HeldState::Open(connection) => Err(connection.clone()),
            HeldState::Ended(ended) => Ok(ended.stats),
        };
        ended.or_else(|connection| connection.stats())
    }

    /// The key of the peer, if it has one.
    pub(super) fn peer_key(&self) -> Result<Option<PublicKey>, Error> {
        let ended = match &*self.state() {
            HeldState::Open(connection) => Err(connection.clone()),
            HeldState::Ended(ended) => Ok(ended.peer_key),
        };
        ended.or_else(|connection| key_of(&connection))
    }

    /// Lets the connection go, which this side has ended. What had arrived can still be read, if it was finished.
    pub(super) fn let_go(&self, is_finished: bool) {
        let Ok(connection) = self.connection() else { return };
        let mut block = vec![0; if is_finished { BLOCK } else { 0 }];
        while let Ok(Some(len @ 1..)) = connection.try_read(&mut block) {
            self.returned().extend(&block[..len]);
        }
        let (stats, peer_key) = (connection.stats().unwrap_or_default(), key_of(&connection).ok().flatten());
        let ended = Ended { stats, peer_key, is_finished };
        let open = std::mem::replace(&mut *self.state(), HeldState::Ended(Box::new(ended)));
        // Behind the lock, because it takes that of the port.
        drop(open);
    }

    /// Ends the connection at once.
    pub(super) fn abort(&self) {
        if let Ok(connection) = self.connection() {
            connection.abort();
            self.let_go(false);
        }
    }

    /// Puts back what a read took, and could not return.
    pub(super) fn put_back(&self, read: Vec<u8>) {
        let mut bytes = self.returned();
        let behind = std::mem::replace(&mut *bytes, read.into());
        bytes.extend(behind);
    }
}

impl Reading {
    /// Reads of this connection.
    ///
    /// # Errors
    /// This side has aborted it.
    pub(super) fn of(held: &Arc<Held>) -> Result<Self, Error> {
        let stream = match held.connection() {
            Err(Error::Finished) => None,
            connection => Some(connection?.into()),
        };
        Ok(Self { held: Arc::clone(held), stream })
    }

    /// Reads what was put back, or otherwise what has arrived.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>> {
        let len = self.held.returned().read(out)?;
        match &mut self.stream {
            Some(stream) if len == 0 => {
                let mut read = ReadBuf::new(out);
                ready!(Pin::new(stream).poll_read(cx, &mut read))?;
                match read.filled().len() {
                    // Another thread may have finished it meanwhile, and put the rest there.
                    0 => Poll::Ready(self.held.returned().read(out)),
                    len => Poll::Ready(Ok(len)),
                }
            }
            _ => Poll::Ready(Ok(len)),
        }
    }
}

fn key_of(connection: &Connection) -> Result<Option<PublicKey>, Error> {
    Ok(connection.protection()?.and_then(|protection| protection.peer_key))
}
