//! What the operating system's errors mean for one file.

use farhaul_session::{FailCode, Failure};
use rustix::io::Errno;

/// A failure with the system's words, for somebody who tried to `action`.
pub(super) fn failure(action: &str, errno: Errno) -> Failure {
    Failure::new(code(errno), format!("cannot {action}: {}", std::io::Error::from(errno)))
}

/// The same for errors of the standard library.
pub(super) fn io_failure(action: &str, error: &std::io::Error) -> Failure {
    match Errno::from_io_error(error) {
        Some(errno) => failure(action, errno),
        None => Failure::new(FailCode::Io, format!("cannot {action}: {error}")),
    }
}

fn code(errno: Errno) -> FailCode {
    match errno {
        Errno::NOSPC => FailCode::NoSpace,
        Errno::DQUOT => FailCode::Quota,
        Errno::ROFS => FailCode::ReadOnly,
        Errno::FBIG | Errno::OVERFLOW => FailCode::TooLarge,
        Errno::ACCESS | Errno::PERM => FailCode::PermissionDenied,
        Errno::NOENT => FailCode::NotFound,
        Errno::NAMETOOLONG | Errno::ILSEQ => FailCode::NameRefused,
        // A symbolic link is in the way of a name that must not be followed.
        Errno::EXIST | Errno::ISDIR | Errno::NOTDIR | Errno::LOOP | Errno::NOTEMPTY => FailCode::Exists,
        _ => FailCode::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_no_later_file_survives_end_the_session() {
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::ROFS] {
            assert!(failure("write", errno).code.ends_session(), "{errno}");
        }
        assert!(!failure("write", Errno::ACCESS).code.ends_session());
    }
}
