//! The end of the program: the exit code of a fault.

use std::process::ExitCode;

use crate::cmd::rsh;

pub(crate) use farhaul_transfer::{Code, Error as Fault};

/// The exit code of a program that fails with this fault. `verb` is the one on the command line.
pub(crate) fn exit_code(verb: Option<&str>, fault: &Fault) -> ExitCode {
    ExitCode::from(match (verb, exit_code_at_signal(fault)) {
        // Its callers know the codes of ssh.
        (Some("rsh"), None) => rsh::FAILED,
        _ => fault.code.exit(),
    })
}

/// The exit code of a program that a signal stopped. `None` if it failed for another reason.
pub(crate) fn exit_code_at_signal(fault: &Fault) -> Option<u8> {
    matches!(fault.code, Code::Interrupted | Code::Terminated).then(|| fault.code.exit())
}
