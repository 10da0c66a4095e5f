//! Keys of this side.

use std::io::ErrorKind;
use std::path::PathBuf;

use farhaul_transfer::internal::keys::identity;
use farhaul_transfer::{Code, Error};
use pyo3::prelude::*;

use crate::error::raised;
use crate::gate::detach;

/// Makes a key pair: `path` has the private key, which its owner alone may read. Returns the public key, as OpenSSH writes it.
#[pyfunction]
pub(crate) fn make_key(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let made = detach(py, || identity::make(&path));
    let pair = made.map_err(|error| {
        let code = match error.kind() {
            ErrorKind::AlreadyExists => Code::AlreadyExists,
            _ => Code::LocalIo,
        };
        raised(Error::new(code, format!("cannot write the key {}: {error}", path.display())))
    })?;
    Ok(pair.public().to_string())
}
