//! Why one file could not be copied, as hosts report it and as it travels.

use crate::error::Malformed;
use crate::field::Fields;
use crate::path_rules::escape_text;

/// Longest message of a failure in bytes: a line for people, not a log.
const MAX_MESSAGE: usize = 1024;

/// Why one file or directory failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}{}{message}", if message.is_empty() { "" } else { ": " })]
pub struct Failure {
    /// For programs.
    pub code: FailCode,
    /// For people, for instance the operating system's words; safe to print once it has travelled.
    pub message: String,
}

impl Failure {
    /// A failure with a message for people.
    pub fn new(code: FailCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.code.to_wire().to_be_bytes());
        out.extend_from_slice(clipped(&self.message).as_bytes());
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let code = FailCode::from_wire(fields.u16()?);
        Ok(Self { code, message: received_text(fields.rest())? })
    }
}

impl From<FailCode> for Failure {
    fn from(code: FailCode) -> Self {
        Self { code, message: String::new() }
    }
}

/// The longest beginning of `text` that fits a message.
pub(crate) fn clipped(text: &str) -> &str {
    let mut end = text.len().min(MAX_MESSAGE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A message from the peer, made safe to print.
pub(crate) fn received_text(bytes: &[u8]) -> Result<String, Malformed> {
    if bytes.len() > MAX_MESSAGE {
        return Err(Malformed::Value("message length"));
    }
    Ok(escape_text(bytes))
}

macro_rules! fail_codes {
    ($($name:ident = $number:literal, $text:literal, $doc:literal;)*) => {
        /// What kind of failure it was.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum FailCode {
            $(#[doc = $doc] $name,)*
            /// A code of a later version.
            Other(u16),
        }

        impl FailCode {
            /// The number on the wire.
            pub const fn to_wire(self) -> u16 {
                match self { $(Self::$name => $number,)* Self::Other(code) => code }
            }

            /// The code with this number.
            pub const fn from_wire(code: u16) -> Self {
                match code { $($number => Self::$name,)* other => Self::Other(other) }
            }
        }

        impl std::fmt::Display for FailCode {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self { $(Self::$name => f.write_str($text),)* Self::Other(code) => write!(f, "failure code {code}") }
            }
        }
    };
}

fail_codes! {
    Io = 1, "input/output error", "The operating system failed to read or write this file.";
    PermissionDenied = 2, "permission denied", "Not allowed to read, create or replace it.";
    NotFound = 3, "not found", "There is no such file at the source, or the target directory is gone.";
    SourceChanged = 4, "source changed while it was copied", "Size or time differ before and after, or the file ended early.";
    DigestMismatch = 5, "digest differs from the sender's", "The bytes that arrived are not those that were sent; exit code 6.";
    NoSpace = 6, "no space left", "Disk full; ends the session.";
    Quota = 7, "quota exceeded", "The user's quota is used up; ends the session.";
    ReadOnly = 8, "read-only file system", "Nothing can be written there; ends the session.";
    TooLarge = 9, "file too large", "Larger than the file system or the receiver's limits allow.";
    NameRefused = 10, "name refused", "The name or the depth of the path is not allowed, or the name comes twice.";
    Exists = 11, "something else is in the way", "The target is no regular file: a directory, link, device, pipe or socket. Or it is no directory where one should go.";
    SpecialFile = 12, "neither file nor directory", "Devices, pipes, sockets and symbolic links are not copied.";
    ParentFailed = 13, "its directory failed", "The directory that it belongs into could not be made.";
    GivenUp = 14, "given up after the other side's failure", "The sender stopped sending because the receiver had refused the file.";
    IsDirectory = 15, "is a directory", "Directories are sent only where the request is recursive.";
}

impl FailCode {
    /// Whether the disk has no room: every later file would fail as well.
    pub const fn is_out_of_space(self) -> bool {
        matches!(self, Self::NoSpace | Self::Quota)
    }

    /// Whether a receiver that meets it must end the whole session.
    pub const fn ends_session(self) -> bool {
        self.is_out_of_space() || matches!(self, Self::ReadOnly)
    }
}
