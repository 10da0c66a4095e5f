//! Faults of emulations.

use std::io;

use farhaul_emu::EmulateError;

use crate::exit::{Code, Fault};

/// The fault of an emulation that failed, with `farhaul relay` as the remedy.
pub(crate) fn of_emulation(error: &EmulateError) -> Fault {
    of_emulation_or(error, "`farhaul relay` needs neither and has the same path options, for UDP")
}

/// The fault of an emulation that failed, with `instead` as the remedy.
pub(crate) fn of_emulation_or(error: &EmulateError, instead: &str) -> Fault {
    match error {
        EmulateError::NoPermission(_) => Fault::new(Code::NotPermitted, error.to_string()).and(instead),
        EmulateError::NoTun(source) if source.kind() == io::ErrorKind::PermissionDenied => {
            Fault::new(Code::NotPermitted, error.to_string()).and(instead)
        }
        EmulateError::NoTun(_) => Fault::new(Code::Unsupported, error.to_string()).and(instead),
        _ => Fault::new(Code::Failed, error.to_string()),
    }
}
