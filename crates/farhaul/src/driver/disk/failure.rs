//! The failure of one file that an error of the operating system means.

use farhaul_session::{FailCode, Failure};
use rustix::io::Errno;

/// A failure with the system's words, for somebody who tried to `action`.
pub(super) fn failure(action: &str, errno: Errno) -> Failure {
    let code = code(errno);
    match code {
        // There is one reason for these, which the code says.
        FailCode::NoSpace | FailCode::Quota | FailCode::ReadOnly | FailCode::PermissionDenied | FailCode::NotFound => {
            Failure::new(code, format!("cannot {action}"))
        }
        _ => Failure::new(code, format!("cannot {action}: {}", words(errno))),
    }
}

/// The same for somebody who tried to make a `file` or `directory`. Of a new name, a refusal is about where it goes.
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

/// The system's words, without the number of the error.
fn words(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    text.trim_end_matches(&format!(" (os error {})", errno.raw_os_error())).to_owned()
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
    fn failures_say_once_what_happened() {
        assert_eq!(failure("open", Errno::ACCESS).to_string(), "permission denied: cannot open");
        assert_eq!(failure("read", Errno::IO).to_string(), "input/output error: cannot read: Input/output error");
    }

    #[test]
    fn what_may_not_be_made_is_the_fault_of_its_directory() {
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
