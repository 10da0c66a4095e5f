//! The error of a request that failed.

use farhaul_session::{FailCode, Failure};

use crate::error::{Code, Error, code_of};

/// The error for the place with this name.
pub(super) fn error(named: &str, failure: &Failure) -> Error {
    let code = code_of(failure.code);
    let error = Error::new(code, format!("{named}: {}", words(failure)));
    match code {
        Code::DiskFull => error.remedy("make room there and start again"),
        _ => error,
    }
}

/// The reason in words. A code that has one reason needs no other words.
fn words(failure: &Failure) -> String {
    match failure.code {
        FailCode::Exists if !failure.message.is_empty() => failure.message.clone(),
        FailCode::Exists => "something has this name already".to_owned(),
        FailCode::Refused => failure.message.clone(),
        FailCode::SourceChanged if failure.message.is_empty() => "it changed while it was read".to_owned(),
        FailCode::DigestMismatch => "the bytes that arrived are not those that were sent".to_owned(),
        _ => failure.to_string(),
    }
}
