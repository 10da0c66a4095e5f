//! stdout and stderr as targets of data: a reader may leave or be slow, and a disk behind them may be full.
//!
//! If a reader leaves, the verb continues and its own result decides the exit code. Any other failure to write makes an
//! otherwise successful run fail. A verb that serves others [does not wait](StandardStream::do_not_wait) for a slow reader.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use super::waiting_lines::{Line, WaitingLines};
use crate::exit::{Code, Fault};
use crate::output::human::reason;

/// Longest wait of a program that ends for a reader that takes nothing.
const LAST_WAIT: Duration = Duration::from_millis(500);

/// One of the two streams, for the whole program.
pub(crate) struct StandardStream {
    name: &'static str,
    open: fn() -> Box<dyn Write>,
    /// The reader has left.
    closed: AtomicBool,
    failed: OnceLock<Fault>,
    /// Lines for a thread that writes them.
    waiting: OnceLock<Arc<WaitingLines>>,
}

pub(crate) static STDOUT: StandardStream = StandardStream::new("stdout", || Box::new(io::stdout()));
pub(crate) static STDERR: StandardStream = StandardStream::new("stderr", || Box::new(io::stderr()));

impl StandardStream {
    const fn new(name: &'static str, open: fn() -> Box<dyn Write>) -> Self {
        Self { name, open, closed: AtomicBool::new(false), failed: OnceLock::new(), waiting: OnceLock::new() }
    }

    /// Writes a line, unless the reader has left.
    pub(crate) fn write(&self, text: String) {
        self.put(Line { text, is_needed: true });
    }

    /// Writes a line whose loss is no failure of the program.
    pub(crate) fn try_write(&self, text: String) {
        self.put(Line { text, is_needed: false });
    }

    fn put(&self, line: Line) {
        match self.waiting.get() {
            Some(waiting) => waiting.put(line),
            None => self.write_now(&line),
        }
    }

    fn write_now(&self, line: &Line) {
        if self.closed.load(Ordering::Acquire) {
            return;
        }
        let mut stream = (self.open)();
        let written = stream.write_all(line.text.as_bytes()).and_then(|()| stream.flush());
        if line.is_needed {
            self.note(written);
        }
    }

    /// Has a thread write from now on, so that no caller waits for the reader. Lines that find too many others waiting are left
    /// out, and `left_out` makes the line that tells their number. If the system gives no thread, callers go on to wait.
    pub(crate) fn do_not_wait(&'static self, left_out: fn(u64) -> String) {
        static BEGINNING: Mutex<()> = Mutex::new(());
        let _beginning = BEGINNING.lock().unwrap_or_else(PoisonError::into_inner);
        if self.waiting.get().is_some() {
            return;
        }
        let (lines, thread) = (Arc::new(WaitingLines::default()), thread::Builder::new().name(self.name.into()));
        let waiting = Arc::clone(&lines);
        if thread.spawn(move || lines.write_each(left_out, |line| self.write_now(line))).is_ok() {
            let _ = self.waiting.set(waiting);
        }
    }

    /// Gives the reader the lines that wait, if it takes them soon.
    pub(crate) fn drain(&self) {
        if let Some(waiting) = self.waiting.get() {
            waiting.wait_until_written(LAST_WAIT);
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
        static WRITTEN: Mutex<String> = Mutex::new(String::new());
        let stream = StandardStream::new("here", || Box::new(Sink(&WRITTEN)));
        stream.note(Err(io::ErrorKind::BrokenPipe.into()));
        assert_eq!(stream.outcome(), Ok(()));
        stream.write("more".into());
        assert!(WRITTEN.lock().unwrap().is_empty(), "nobody reads it");
        let stream = StandardStream::new("here", || Box::new(Sink(&WRITTEN)));
        stream.note(Err(io::ErrorKind::StorageFull.into()));
        stream.note(Err(io::ErrorKind::Other.into()));
        let fault = stream.outcome().unwrap_err();
        assert!(fault.code == Code::DiskFull && fault.message.contains("cannot write to here"), "{fault}");
        stream.write("more".into());
        assert_eq!(*WRITTEN.lock().unwrap(), "more", "there may be room again");
    }

    /// The reader takes nothing while the test has its text.
    struct Sink(&'static Mutex<String>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().push_str(std::str::from_utf8(bytes).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_a_slow_reader_who_learns_what_was_left_out() {
        static WRITTEN: Mutex<String> = Mutex::new(String::new());
        static STREAM: StandardStream = StandardStream::new("here", || Box::new(Sink(&WRITTEN)));
        STREAM.do_not_wait(|count| format!("{count} left out\n"));
        STREAM.write("first\n".into());
        STREAM.drain();
        let reading = WRITTEN.lock().unwrap();
        assert_eq!(*reading, "first\n");
        let line = format!("{}\n", "x".repeat(99_999));
        (0..100).for_each(|_| STREAM.write(line.clone()));
        drop(reading);
        STREAM.drain();
        STREAM.write("last\n".into());
        STREAM.drain();
        let written = WRITTEN.lock().unwrap();
        let kept = written.matches('x').count() / 99_999;
        assert!((10..100).contains(&kept), "{kept}");
        assert!(written.ends_with(&format!("{} left out\nlast\n", 100 - kept)), "{kept}");
    }
}
