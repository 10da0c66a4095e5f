//! Stderr of the command on this side. Its reader may be late, and must not hold back stdout: a parent that reads stdout to its end
//! before it reads stderr would wait for ever.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Bytes that wait for the reader before stdout waits, too: as many as one channel of OpenSSH takes (64 packets of 32 KiB).
const WAITING: usize = 2 << 20;

/// The stream with the thread that writes it.
#[derive(Debug)]
pub(super) struct Diagnostics {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    bytes: Vec<u8>,
    has_ended: bool,
    /// Nobody reads it.
    is_unread: bool,
}

/// Nobody reads the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unread;

impl Diagnostics {
    /// Starts the thread.
    pub(super) fn to(stream: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let its = Arc::clone(&shared);
        let thread = thread::Builder::new().name("stderr".into()).spawn(move || its.write(stream))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Queues bytes. Waits only for a reader that is far behind.
    pub(super) fn put(&self, bytes: &[u8]) -> Result<(), Unread> {
        let queue = self.shared.wait_while(|queue| queue.bytes.len() >= WAITING && !queue.is_unread);
        let mut queue = queue;
        if queue.is_unread {
            return Err(Unread);
        }
        queue.bytes.extend_from_slice(bytes);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Waits until everything is written, or nobody reads it.
    pub(super) fn finish(mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            // A panic was reported.
            let _ = thread.join();
        }
    }

    fn end(&self) {
        self.shared.queue().has_ended = true;
        self.shared.changed.notify_all();
    }
}

impl Drop for Diagnostics {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn write(&self, mut stream: impl Write) {
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let mut queue = self.wait_while(|queue| queue.bytes.is_empty() && !queue.has_ended);
            if queue.bytes.is_empty() {
                return;
            }
            std::mem::swap(&mut queue.bytes, &mut bytes);
            drop(queue);
            self.changed.notify_all();
            if stream.write_all(&bytes).and_then(|()| stream.flush()).is_err() {
                self.queue().is_unread = true;
                self.changed.notify_all();
                return;
            }
        }
    }

    fn wait_while(&self, waits: impl Fn(&Queue) -> bool) -> MutexGuard<'_, Queue> {
        self.changed.wait_while(self.queue(), |queue| waits(queue)).unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_late_reader_gets_everything_and_holds_nobody_back_before() {
        let (mut reader, writer) = io::pipe().unwrap();
        let diagnostics = Diagnostics::to(writer).unwrap();
        let line = [b'x'; 1_000];
        for _ in 0..WAITING / line.len() {
            diagnostics.put(&line).unwrap();
        }
        let late = thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).map(|_| all.len())
        });
        for _ in 0..1_000 {
            diagnostics.put(&line).unwrap();
        }
        diagnostics.finish();
        assert_eq!(late.join().unwrap().unwrap(), (WAITING / line.len() + 1_000) * line.len());
    }

    #[test]
    fn a_reader_that_has_left_ends_the_stream() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let diagnostics = Diagnostics::to(writer).unwrap();
        while diagnostics.put(&[0; 100_000]).is_ok() {}
        diagnostics.finish();
    }
}
