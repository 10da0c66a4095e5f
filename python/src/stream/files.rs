//! Files that streams send and receive.

use std::fs::File;
use std::io::Write;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use farhaul_transfer::{Code, Error};
use pyo3::prelude::*;

use super::Inner;
use crate::error::raised;
use crate::gate::detach;

/// Bytes that are in memory at a time.
const BLOCK: usize = 1 << 20;

/// Sends bytes of `file` from an offset on: so many, or all up to its end.
pub(super) fn send(
    inner: &Inner,
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    (mut offset, count): (u64, Option<u64>),
) -> PyResult<u64> {
    let file = opened(file)?;
    let mut block = vec![0; BLOCK];
    let mut sent = 0;
    while count.is_none_or(|count| sent < count) {
        let want = count.map_or(BLOCK, |count| usize::try_from(count - sent).unwrap_or(BLOCK).min(BLOCK));
        let len = detach(py, || file.read_at(&mut block[..want], offset))?;
        if len == 0 {
            let Some(count) = count else { break };
            let missing = count - sent;
            return Err(raised(Error::new(Code::LocalIo, format!("the file ended {missing} bytes early"))));
        }
        inner.write_all(py, &block[..len], sent)?;
        (offset, sent) = (offset + len as u64, sent + len as u64);
    }
    Ok(sent)
}

/// Receives bytes into `file` from its position on: so many, or all up to the end of the stream.
pub(super) fn receive(inner: &Inner, py: Python<'_>, file: &Bound<'_, PyAny>, count: Option<u64>) -> PyResult<u64> {
    // What Python has buffered stands before what arrives.
    if file.hasattr("flush")? {
        file.call_method0("flush")?;
    }
    let mut file = opened(file)?;
    let mut block = vec![0; BLOCK];
    let mut received = 0;
    while count.is_none_or(|count| received < count) {
        let want = count.map_or(BLOCK, |count| usize::try_from(count - received).unwrap_or(BLOCK).min(BLOCK));
        let len = inner.read_into(py, &mut block[..want])?;
        if len == 0 {
            let Some(count) = count else { break };
            let message = format!("the stream ended after {received} of {count} bytes");
            return Err(raised(Error::new(Code::PeerLost, message)));
        }
        if let Err(error) = detach(py, || file.write_all(&block[..len])) {
            // What the peer sends goes nowhere, and it must not take it for stored.
            detach(py, || inner.held.abort());
            return Err(error.into());
        }
        received += len as u64;
    }
    Ok(received)
}

/// A second handle of an open file, which the object may close meanwhile.
fn opened(file: &Bound<'_, PyAny>) -> PyResult<File> {
    let py = file.py();
    let number = if file.hasattr("fileno")? { file.call_method0("fileno")? } else { file.clone() };
    let copy = py.import("os")?.call_method1("dup", (number,))?.extract()?;
    #[expect(unsafe_code, reason = "the border to Python")]
    // SAFETY: `os.dup` has just made the descriptor, and nobody else knows it.
    let owned = unsafe { OwnedFd::from_raw_fd(copy) };
    Ok(owned.into())
}
