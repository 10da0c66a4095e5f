//! Work that blocks, on a thread of its own, as a future.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

use farhaul_transfer::{Cancellation, Code, Error};
use tokio::sync::oneshot;

/// Work on another thread. Its drop cancels the work, and does not wait for it.
pub(crate) struct OffThread<T> {
    result: oneshot::Receiver<T>,
    cancellation: Option<Cancellation>,
}

impl<T: Send + 'static> OffThread<T> {
    /// Begins `work` on a thread of this name. `cancellation` ends it early.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub(crate) fn begin(
        name: &str,
        cancellation: Cancellation,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Self, Error> {
        let (done, result) = oneshot::channel();
        // Nobody may wait for the result any more.
        thread::Builder::new().name(name.to_owned()).spawn(move || drop(done.send(work())))?;
        Ok(Self { result, cancellation: Some(cancellation) })
    }
}

impl<T> Future for OffThread<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = Pin::new(&mut self.result).poll(cx);
        polled.map(|result| {
            self.cancellation = None;
            result.map_err(|_| Error::new(Code::Failed, "a thread ended by a defect of this program"))
        })
    }
}

impl<T> Drop for OffThread<T> {
    fn drop(&mut self) {
        if let Some(cancellation) = &self.cancellation {
            cancellation.cancel();
        }
    }
}
