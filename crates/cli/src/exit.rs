//! The end of the program: the exit code of a fault, and its words.

use std::borrow::Cow;
use std::process::ExitCode;

use farhaul_transfer::internal::text::worded;

pub(crate) use farhaul_transfer::{Code, Error as Fault};

/// The exit code of every failure of `rsh` itself, as of ssh (ssh(1), exit status).
pub(crate) const RSH_FAILED: u8 = 255;

/// The exit code of a program that fails with this fault. `verb` is the one on the command line.
pub(crate) fn exit_code(verb: Option<&str>, fault: &Fault) -> ExitCode {
    ExitCode::from(match (verb, exit_code_at_signal(fault)) {
        (Some("rsh"), None) => RSH_FAILED,
        _ => fault.code.exit(),
    })
}

/// A sentence of the library as the user of a command reads it.
pub(crate) fn words(sentence: &str) -> Cow<'_, str> {
    worded(sentence, |option| format!("--{option}"))
}

/// The exit code of a program that a signal stopped. `None` if it failed for another reason.
pub(crate) fn exit_code_at_signal(fault: &Fault) -> Option<u8> {
    matches!(fault.code, Code::Interrupted | Code::HungUp | Code::Terminated).then(|| fault.code.exit())
}
