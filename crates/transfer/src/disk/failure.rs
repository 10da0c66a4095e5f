//! Converts an error of the operating system into the failure of one file.

use farhaul_session::{FailCode, Failure};
use rustix::io::Errno;

/// Why a directory can be neither removed nor renamed.
const BUSY: &str = "a key of this server names it or a directory in it, or something is mounted there";

/// The failure of an attempt to `action`, with the system's message.
pub(super) fn failure(action: &str, errno: Errno) -> Failure {
    let code = code(errno);
    match code {
        FailCode::Refused => Failure::new(code, format!("cannot {action}: {BUSY}")),
        // These have one reason, which the code names.
        FailCode::NoSpace | FailCode::Quota | FailCode::ReadOnly | FailCode::PermissionDenied | FailCode::NotFound => {
            Failure::new(code, format!("cannot {action}"))
        }
        _ => Failure::new(code, format!("cannot {action}: {}", words(errno))),
    }
}

/// The same for an attempt to make a `file` or `directory`. If a new name is refused, its directory is the cause.
pub(super) fn cannot_make(what: &str, errno: Errno) -> Failure {
    match code(errno) {
        FailCode::PermissionDenied => Failure::new(FailCode::PermissionDenied, "its directory may not be written to"),
        _ => failure(&format!("make the {what}"), errno),
    }
}

/// The same for errors of the standard library.
pub(super) fn io_failure(action: &str, error: &std::io::Error) -> Failure {
    match Errno::from_io_error(error) {
        Some(errno) => failure(action, errno),
        None => Failure::new(FailCode::Io, format!("cannot {action}: {error}")),
    }
}

/// The system's message, without the number of the error.
fn words(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    text.trim_end_matches(&format!(" (os error {})", errno.raw_os_error())).to_owned()
}

fn code(errno: Errno) -> FailCode {
    match errno {
        Errno::NOSPC => FailCode::NoSpace,
        Errno::DQUOT => FailCode::Quota,
        Errno::ROFS => FailCode::ReadOnly,
        Errno::BUSY => FailCode::Refused,
        Errno::FBIG | Errno::OVERFLOW => FailCode::TooLarge,
        Errno::ACCESS | Errno::PERM => FailCode::PermissionDenied,
        Errno::NOENT => FailCode::NotFound,
        Errno::NAMETOOLONG | Errno::ILSEQ => FailCode::NameRefused,
        // A symbolic link has the name. It must not be followed.
        Errno::EXIST | Errno::ISDIR | Errno::NOTDIR | Errno::LOOP | Errno::NOTEMPTY => FailCode::Exists,
        _ => FailCode::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_its_reason_once() {
        assert_eq!(failure("open", Errno::ACCESS).to_string(), "permission denied: cannot open");
        assert_eq!(failure("read", Errno::IO).to_string(), "input/output error: cannot read: Input/output error");
    }

    #[test]
    fn a_refused_creation_blames_the_directory() {
        for errno in [Errno::ACCESS, Errno::PERM] {
            let failure = cannot_make("file", errno);
            assert_eq!(failure.to_string(), "permission denied: its directory may not be written to");
        }
        assert_eq!(cannot_make("file", Errno::NOSPC), failure("make the file", Errno::NOSPC));
    }

    #[test]
    fn errors_that_no_later_file_survives_end_the_session() {
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::ROFS] {
            assert!(failure("write", errno).code.ends_session(), "{errno}");
        }
        assert!(!failure("write", Errno::ACCESS).code.ends_session());
    }
}
