//! Why a session with an original program, or a server for them, ended.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::{rbudp, sabul, tsunami};
use farhaul_session::escape;

/// The end of a session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// [`Stop::stop`](super::Stop::stop) was called.
    #[error("stopped")]
    Stopped,
    /// The peer's host refused the TCP connection, or cannot be reached.
    #[error("{0} refused the TCP connection: nothing listens there")]
    Refused(SocketAddr),
    /// The TCP connection was not established in time.
    #[error("no answer from TCP port {peer} within {time:?}")]
    NoAnswer {
        /// The address.
        peer: SocketAddr,
        /// The time.
        time: Duration,
    },
    /// A TCP or UDP port could not be opened.
    #[error("cannot open {transport} port {address}: {source}")]
    Bind {
        /// TCP or UDP.
        transport: &'static str,
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The system refused something else.
    #[error("the system refused: {0}")]
    System(#[from] io::Error),
    /// The dialogue of Tsunami failed.
    #[error(transparent)]
    Tsunami(#[from] tsunami::Fault),
    /// The dialogue of RBUDP failed.
    #[error(transparent)]
    Rbudp(#[from] rbudp::Fault),
    /// The dialogue of SABUL failed.
    #[error(transparent)]
    Sabul(#[from] sabul::SabulError),
    /// The server, which may be this side, does not have this file, or does not give it.
    #[error("there is no file '{}', or it may not be given", escape(.0))]
    NoFile(Vec<u8>),
    /// No file of these protocols, or no file here, can have this name.
    #[error("the name '{}' is refused: {reason}", escape(.name))]
    Name {
        /// The name.
        name: Vec<u8>,
        /// The reason.
        reason: String,
    },
    /// All sessions together would hold more of their files in memory than the server permits.
    #[error(
        "its {0} bytes do not fit into the memory that is left for files; try again when other clients have theirs"
    )]
    NoMemory(u64),
    /// The server ended the connection before it was asked.
    #[error("the server ended the connection")]
    Ended,
    /// A client asked for no file for this long.
    #[error("the client asked for no file for {0:?}")]
    Idle(Duration),
    /// A file on this machine could not be read or written.
    #[error("{0}")]
    Disk(farhaul_session::Failure),
    /// The application's source or sink of a stream failed.
    #[error("{0}")]
    Stream(io::Error),
}

impl From<farhaul_session::Failure> for Failure {
    fn from(failure: farhaul_session::Failure) -> Self {
        Self::Disk(failure)
    }
}
