//! Bytes that a read took, and could not return.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use farhaul::AsyncStream;
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes that were put back. They stand before all that arrives. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Returned(Arc<Mutex<VecDeque<u8>>>);

impl Returned {
    /// Puts back what a read took.
    pub(super) fn put_back(&self, read: Vec<u8>) {
        let mut bytes = self.bytes();
        let behind = std::mem::replace(&mut *bytes, read.into());
        bytes.extend(behind);
    }

    /// Reads what was put back, or otherwise what has arrived.
    pub(super) fn poll_read(
        &self,
        stream: &mut AsyncStream,
        cx: &mut Context<'_>,
        out: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let len = self.bytes().read(out)?;
        if len > 0 {
            return Poll::Ready(Ok(len));
        }
        let mut out = ReadBuf::new(out);
        Pin::new(stream).poll_read(cx, &mut out).map_ok(|()| out.filled().len())
    }

    fn bytes(&self) -> MutexGuard<'_, VecDeque<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
