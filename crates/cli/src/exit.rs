//! The end of the program: the exit code of a fault.

use std::process::ExitCode;

pub(crate) use farhaul_transfer::{Code, Error as Fault};

/// The exit code of a program that fails with this fault.
pub(crate) fn exit_code(fault: &Fault) -> ExitCode {
    ExitCode::from(fault.code.exit())
}
