//! Failures of single files, as drivers report them and as they are sent.

use crate::field::{Fields, Malformed};
use crate::path_rules::escape_text;
use crate::wire_codes::wire_codes;

/// Longest message of a failure in bytes: one line for users.
const MAX_MESSAGE: usize = 1024;

/// Why one file or directory failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}{}{message}", if message.is_empty() { "" } else { ": " })]
pub struct Failure {
    /// The reason as a code.
    pub code: FailCode,
    /// A message for users, for instance the operating system's text. Safe to print once it was received.
    pub message: String,
}

impl Failure {
    /// A failure with a message for users.
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

/// The longest prefix of `text` that fits in a message.
pub(crate) fn clipped(text: &str) -> &str {
    let mut end = text.len().min(MAX_MESSAGE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A message from the peer, escaped for printing.
pub(crate) fn received_text(bytes: &[u8]) -> Result<String, Malformed> {
    if bytes.len() > MAX_MESSAGE {
        return Err(Malformed::Value("message length"));
    }
    Ok(escape_text(bytes))
}

wire_codes! {
    /// The kind of failure.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum FailCode, "failure code";
    Io = 1, "input/output error", "The operating system failed to read or write this file.";
    PermissionDenied = 2, "permission denied", "Not allowed to read, create or replace it.";
    NotFound = 3, "not found", "There is no such file at the source, or the target directory is gone.";
    SourceChanged = 4, "source changed while it was copied", "Size or time changed during the copy, or the file ended early.";
    DigestMismatch = 5, "digest differs from the sender's", "The received bytes differ from the sent bytes. Exit code 6.";
    NoSpace = 6, "no space left", "The disk is full. Ends the session.";
    Quota = 7, "quota exceeded", "The user's quota is used up. Ends the session.";
    ReadOnly = 8, "read-only file system", "Nothing can be written there. Ends the session.";
    TooLarge = 9, "file too large", "Larger than the file system or the receiver's limits permit.";
    NameRefused = 10, "name refused", "The name or the depth of the path is not allowed, or the name is a duplicate.";
    Exists = 11, "something else is in the way", "The target is a directory, link, device, pipe or socket in place of a file. Or it is no directory in place of one.";
    SpecialFile = 12, "neither file nor directory", "Devices, pipes, sockets and symbolic links are not copied.";
    ParentFailed = 13, "its directory failed", "Its directory could not be created.";
    GivenUp = 14, "given up after the other side's failure", "The sender stopped because the receiver had refused the file.";
    IsDirectory = 15, "is a directory", "Directories are sent only for recursive requests.";
    NotSelected = 16, "not selected", "A pattern matches too much, more than the target can take, or names that collide.";
    NotEmpty = 17, "directory not empty", "A directory that is to be removed or replaced has entries.";
    NotDirectory = 18, "not a directory", "A directory was named or is on the way, and something else is there.";
    Refused = 19, "refused", "The server does not permit this to the client.";
    Unsupported = 20, "not supported", "The server or its file system cannot do this.";
    Cancelled = 21, "cancelled", "The client gave up the request.";
    Limit = 22, "limit exceeded", "The request exceeds a bound that the client or the server has set.";
    Differs = 23, "differs", "The target has other content. Only a dry run tells it this way.";
}

impl FailCode {
    /// Whether the disk has no room, so that every later file would fail too.
    pub const fn is_out_of_space(self) -> bool {
        matches!(self, Self::NoSpace | Self::Quota)
    }

    /// Whether a receiver must end the session because of it.
    pub const fn ends_session(self) -> bool {
        self.is_out_of_space() || matches!(self, Self::ReadOnly)
    }
}
