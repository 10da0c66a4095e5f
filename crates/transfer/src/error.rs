//! What can go wrong: a code, whose fault it is, and what to do about it.

mod connection;
mod trouble;

use std::fmt;
use std::io;

pub use self::trouble::Trouble;
pub(crate) use connection::no_place;
pub use farhaul::{Code, Owner};
use farhaul_session::FailCode;

use crate::report::Report;

/// A failure. It displays as one line: the operation, the file or address, the reason, and what to do next.
///
/// Options stand between ‹ and ›, by the names that the command has for them: ‹connect-timeout›. A program in another language
/// [words](crate::text::worded) them as its users write them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Error {
    /// Its code.
    pub code: Code,
    /// What failed, on which file or address, and why.
    pub message: String,
    /// What to do next, if something can be done.
    pub remedy: Option<String>,
    /// The congestion controller that failed, with its options, for [`Code::ControllerFailed`].
    pub controller: Option<String>,
    /// Whoever would read the line caused the failure, and needs none.
    pub is_quiet: bool,
    /// What was done before, for a copy that had begun.
    pub report: Option<Box<Report>>,
}

impl Error {
    /// A failure without a remedy.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), remedy: None, controller: None, is_quiet: false, report: None }
    }

    /// A request that cannot be carried out as it is.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }

    /// The same failure with what to do about it.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// The same failure without a line for people. Exit code and records still report it.
    #[must_use]
    pub const fn quietly(mut self) -> Self {
        self.is_quiet = true;
        self
    }

    /// The same failure with one more sentence about it.
    #[must_use]
    pub fn and(mut self, sentence: &str) -> Self {
        self.message.push_str("; ");
        self.message.push_str(sentence);
        self
    }
}

/// The code of an entry, or of a request, that failed for this reason.
pub const fn code_of(code: FailCode) -> Code {
    match code {
        FailCode::NotFound => Code::NotFound,
        FailCode::Exists => Code::AlreadyExists,
        FailCode::IsDirectory => Code::IsDirectory,
        FailCode::NotDirectory => Code::NotDirectory,
        FailCode::NotEmpty => Code::DirectoryNotEmpty,
        FailCode::PermissionDenied => Code::PermissionDenied,
        FailCode::Refused => Code::AccessDenied,
        FailCode::SourceChanged => Code::SourceChanged,
        FailCode::NoSpace | FailCode::Quota => Code::DiskFull,
        FailCode::DigestMismatch => Code::Integrity,
        FailCode::Unsupported => Code::Unsupported,
        _ => Code::FilesFailed,
    }
}

impl Error {
    /// Whether it concerns the place of one request, so that others may succeed.
    pub fn is_of_one_place(&self) -> bool {
        self.code.exit() == Code::FilesFailed.exit()
            || matches!(self.code, Code::AccessDenied | Code::Integrity | Code::Unsupported | Code::DiskFull)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl From<farhaul_keys::Error> for Error {
    fn from(farhaul_keys::Error { code, message, remedy }: farhaul_keys::Error) -> Self {
        Self { remedy, ..Self::new(code, message) }
    }
}

impl From<io::Error> for Error {
    /// For basic resources that the system refuses: threads, local sockets, temporary files.
    fn from(error: io::Error) -> Self {
        Self::new(Code::Failed, format!("the system refused: {error}"))
    }
}
