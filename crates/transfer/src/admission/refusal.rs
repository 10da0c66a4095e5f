//! Clients that are not admitted, and what would admit them.

use std::net::SocketAddr;
use std::path::Path;

use farhaul::security::{NotAdmitted, PublicKey};

/// A client that was not admitted.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) from: SocketAddr,
    pub(super) key: PublicKey,
    pub(super) cause: Cause,
}

/// Why a client was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The file does not admit it.
    File(NotAdmitted),
    /// Its line limits it to files, and this verb has none.
    FilesAlone(&'static str),
}

impl Refusal {
    /// The refusal in words, with the next step for the owner of `file`.
    pub(super) fn words(&self, file: Option<&Path>) -> String {
        let (from, key) = (self.from, self.key);
        let file = file.map_or_else(|| "the file of ‹authorized-keys›".to_owned(), |file| file.display().to_string());
        match self.cause {
            Cause::File(unknown @ NotAdmitted::Unknown) => {
                format!("refused {from}: {unknown}; to admit it, add this line to {file}: {key}")
            }
            Cause::File(expired @ NotAdmitted::Expired) => {
                format!(
                    "refused {from}: {expired}; to admit it again, give a later day in expires= of its line in {file}: {key}"
                )
            }
            Cause::File(elsewhere @ NotAdmitted::Address) => {
                format!(
                    "refused {from}: {elsewhere}; to admit it, add its network to from= of its line in {file}: {key}"
                )
            }
            Cause::FilesAlone(verb) => format!(
                "refused {from}: the line of its key in {file} has path=, and `farhaul {verb}` has no files; to admit it beside \
                 them, add allow={verb} to the line: {key}"
            ),
        }
    }
}
