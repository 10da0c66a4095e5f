//! stdout and stderr as targets of data: a reader may leave, and a disk behind them may be full.
//!
//! If a reader leaves, the verb continues and its own result decides the exit code. Any other failure to write makes an
//! otherwise successful run fail.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::{Code, Fault};
use crate::output::human::reason;

/// One of the two streams, for the whole program.
pub(crate) struct StandardStream {
    name: &'static str,
    /// The reader has left.
    closed: AtomicBool,
    failed: OnceLock<Fault>,
}

pub(crate) static STDOUT: StandardStream = StandardStream::new("stdout");
pub(crate) static STDERR: StandardStream = StandardStream::new("stderr");

impl StandardStream {
    const fn new(name: &'static str) -> Self {
        Self { name, closed: AtomicBool::new(false), failed: OnceLock::new() }
    }

    /// Writes `text` to `stream`, the open handle of this stream, unless the reader has left.
    pub(crate) fn write(&self, mut stream: impl Write, text: &str) {
        if !self.closed.load(Ordering::Acquire) {
            self.note(stream.write_all(text.as_bytes()).and_then(|()| stream.flush()));
        }
    }

    /// Records the result of a write.
    pub(crate) fn note(&self, written: io::Result<()>) {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed.store(true, Ordering::Release),
            Err(error) => {
                // Keep the first failure: later ones follow from it.
                let _ = self.failed.set(self.cannot_write(&error));
            }
            Ok(()) => {}
        }
    }

    /// The first failure to write.
    pub(crate) fn outcome(&self) -> Result<(), Fault> {
        self.failed.get().map_or(Ok(()), |fault| Err(fault.clone()))
    }

    fn cannot_write(&self, error: &io::Error) -> Fault {
        let code = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::DiskFull,
            _ => Code::LocalIo,
        };
        let words = reason(error);
        Fault::new(code, format!("cannot write to {}: {words}; its output is incomplete", self.name))
    }
}

/// The fault of a stdout whose data is what the verb is for, and which takes no more.
pub(crate) fn unwritable(error: &io::Error) -> Fault {
    let (code, what) = match error.kind() {
        // The reader left on purpose and needs no message.
        io::ErrorKind::BrokenPipe => {
            let message = "the reader of stdout closed it early";
            return Fault::new(Code::LocalIo, message).quietly();
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (Code::DiskFull, "make room"),
        _ => (Code::LocalIo, "redirect it to another place"),
    };
    let words = reason(error);
    Fault::new(code, format!("cannot write to stdout: {words}; what was written is incomplete: {what} and start again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_left_is_no_failure_and_a_full_disk_is_one() {
        let stream = StandardStream::new("here");
        stream.note(Err(io::ErrorKind::BrokenPipe.into()));
        assert_eq!(stream.outcome(), Ok(()));
        let mut written = Vec::new();
        stream.write(&mut written, "more");
        assert!(written.is_empty(), "nobody reads it");
        let stream = StandardStream::new("here");
        stream.note(Err(io::ErrorKind::StorageFull.into()));
        stream.note(Err(io::ErrorKind::Other.into()));
        let fault = stream.outcome().unwrap_err();
        assert!(fault.code == Code::DiskFull && fault.message.contains("cannot write to here"), "{fault}");
        stream.write(&mut written, "more");
        assert_eq!(written, b"more", "there may be room again");
    }
}
