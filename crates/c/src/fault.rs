//! A failure before it crosses the border: its code and its message.

use std::borrow::Cow;

use farhaul::{ConnectionLost, Error as ConnectionError, security};
use farhaul_transfer::Error as TransferError;
use farhaul_transfer::internal::text::worded;

use crate::result::FarhaulResult;

/// Why a call failed.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) result: FarhaulResult,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(result: FarhaulResult, message: impl Into<String>) -> Self {
        Self { result, message: message.into() }
    }

    /// An argument that has no meaning.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(FarhaulResult::InvalidArgument, message)
    }

    /// A null pointer for the argument of this name.
    pub(crate) fn null(argument: &str) -> Self {
        Self::new(FarhaulResult::NullArgument, format!("`{argument}` is a null pointer"))
    }
}

impl From<ConnectionError> for Fault {
    fn from(error: ConnectionError) -> Self {
        Self::new(of_connection(&error), error.to_string())
    }
}

impl From<TransferError> for Fault {
    fn from(error: TransferError) -> Self {
        Self::new(FarhaulResult::of_code(error.code), in_c(&error.to_string()))
    }
}

impl From<rustix::io::Errno> for Fault {
    fn from(error: rustix::io::Errno) -> Self {
        Self::new(FarhaulResult::System, format!("the system refused: {error}"))
    }
}

impl From<security::IdentityError> for Fault {
    fn from(error: security::IdentityError) -> Self {
        Self::invalid(error.to_string())
    }
}

/// A sentence of the library with its options as fields and functions have them here.
pub(crate) fn in_c(words: &str) -> Cow<'_, str> {
    worded(words, |name| name.replace('-', "_"))
}

/// The result for the kind of failure. Of a connection that is over, it tells how the peer left.
fn of_connection(error: &ConnectionError) -> FarhaulResult {
    match error {
        ConnectionError::Lost(ConnectionLost::ClosedByPeer) => FarhaulResult::ClosedByPeer,
        ConnectionError::Lost(ConnectionLost::Aborted | ConnectionLost::PeerError(_)) => FarhaulResult::Aborted,
        error => FarhaulResult::of_code(error.code()),
    }
}
