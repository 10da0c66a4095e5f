//! What can go wrong with keys, and with the files that have them.

use std::fmt;

use farhaul::Code;

/// A failure. It displays as one line: what failed, on which file, the reason, and what to do next.
///
/// Options stand between ‹ and ›, by the names that the command has for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Its code.
    pub code: Code,
    /// What failed, on which file, and why.
    pub message: String,
    /// What to do next, if something can be done.
    pub remedy: Option<String>,
}

impl Error {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), remedy: None }
    }

    /// A request that cannot be carried out as it is.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }

    /// The same failure with what to do about it.
    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.remedy.iter().try_for_each(|remedy| write!(f, "; {remedy}"))
    }
}

impl std::error::Error for Error {}
