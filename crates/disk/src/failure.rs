//! Converts an error of the operating system into the failure of one file.

use farhaul_session::{Component, FailCode, Failure};
use rustix::io::Errno;

use super::directory::Directory;

/// Why a directory can be neither removed nor renamed.
const BUSY: &str = "a key of this server names it or a directory in it, or something is mounted there";

/// The failure of an attempt to `action`, with the system's message.
pub(super) fn failure(action: &str, errno: Errno) -> Failure {
    let code = code(errno);
    let limit = match errno {
        Errno::MFILE => Some("this process has as many open files as it may; raise its limit (ulimit -n)"),
        Errno::NFILE => Some("this host has as many open files as it may; raise its limit (fs.file-max)"),
        // That is what a long attribute becomes (properties.rs).
        Errno::TOOBIG => Some("its extended attributes are longer than the file system can hold; -r leaves them out"),
        _ => None,
    };
    if let Some(limit) = limit {
        return Failure::new(code, format!("cannot {action}: {limit}"));
    }
    match code {
        FailCode::Refused => Failure::new(code, format!("cannot {action}: {BUSY}")),
        // These have one reason, which the code names.
        FailCode::NoSpace | FailCode::Quota | FailCode::ReadOnly | FailCode::PermissionDenied | FailCode::NotFound => {
            Failure::new(code, format!("cannot {action}"))
        }
        _ => Failure::new(code, format!("cannot {action}: {}", words(errno))),
    }
}

/// The same for an attempt to make a `file` or `directory` in this one. If a new name is refused, the directory or its file system is
/// the cause.
pub(super) fn cannot_make(what: &str, directory: &Directory, errno: Errno) -> Failure {
    match errno {
        Errno::PERM if directory.is_fixed(None) => Failure::new(
            FailCode::PermissionDenied,
            "its directory is immutable or append-only; chattr -i -a permits changes",
        ),
        Errno::ACCESS | Errno::PERM => Failure::new(FailCode::PermissionDenied, "its directory may not be written to"),
        Errno::INVAL => name_refused(),
        Errno::NOSPC if directory.has_no_inodes() => Failure::new(
            FailCode::NoSpace,
            format!("cannot make the {what}: the file system has no inode left, which each entry needs (df -i)"),
        ),
        _ => failure(&format!("make the {what}"), errno),
    }
}

/// The same for an attempt to change the entry `name` of a directory.
pub(super) fn cannot_change(action: &str, directory: &Directory, name: &Component, errno: Errno) -> Failure {
    match errno {
        Errno::PERM if directory.is_fixed(Some(name)) => Failure::new(
            FailCode::PermissionDenied,
            format!("cannot {action}: {name} is immutable or append-only there; chattr -i -a permits changes"),
        ),
        Errno::INVAL => name_refused(),
        _ => failure(action, errno),
    }
}

fn name_refused() -> Failure {
    Failure::new(FailCode::NameRefused, "the file system takes no such name")
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
        Errno::TOOBIG => FailCode::Unsupported,
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
        let here = Directory::open(&std::env::temp_dir()).unwrap();
        for errno in [Errno::ACCESS, Errno::PERM] {
            let failure = cannot_make("file", &here, errno);
            assert_eq!(failure.to_string(), "permission denied: its directory may not be written to");
        }
        assert_eq!(cannot_make("file", &here, Errno::NOSPC), failure("make the file", Errno::NOSPC));
    }

    #[test]
    fn a_limit_of_this_host_is_named_with_what_raises_it() {
        for (errno, words) in [(Errno::MFILE, "ulimit -n"), (Errno::NFILE, "fs.file-max")] {
            let failure = failure("open", errno);
            assert!(failure.message.contains(words) && !failure.code.ends_session(), "{failure}");
        }
    }

    #[test]
    fn errors_that_no_later_file_survives_end_the_session() {
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::ROFS] {
            assert!(failure("write", errno).code.ends_session(), "{errno}");
        }
        assert!(!failure("write", Errno::ACCESS).code.ends_session());
    }
}
