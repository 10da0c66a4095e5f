//! The failure of a session, before it has its words.

use std::fmt::Display;
use std::time::Duration;

use farhaul::Error as ConnectionError;
use farhaul_bond::BondedStream;
use farhaul_session::SessionError;

use super::Error;

/// The failure of a session.
#[derive(Debug)]
pub enum Trouble {
    /// The connection failed.
    Connection(ConnectionError),
    /// The session failed.
    Session(SessionError),
    /// The peer lives, and has not answered the opening in this time.
    Unanswered {
        /// The time.
        after: Duration,
        /// Whether it has proven to be a program of this kind: nobody else completes a handshake of its encryption.
        is_ours: bool,
    },
}

impl Trouble {
    /// A live peer of this connection did not answer in this time.
    pub(crate) fn unanswered(after: Duration, stream: &BondedStream) -> Self {
        let is_plain = stream.connection().is_some_and(|stream| stream.is_plain().unwrap_or(true));
        Self::Unanswered { after, is_ours: !is_plain }
    }

    /// The error of a transfer with `peer` that failed.
    pub fn error(&self, peer: &dyn Display) -> Error {
        match self {
            Self::Connection(error) => Error::of_connection(error, peer),
            Self::Session(error) => Error::of_session(error, peer),
            Self::Unanswered { after, is_ours } => Error::of_silence(*after, *is_ours, peer),
        }
    }
}

impl From<ConnectionError> for Trouble {
    fn from(error: ConnectionError) -> Self {
        Self::Connection(error)
    }
}

impl From<SessionError> for Trouble {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}
