//! Signals that a thread takes from a queue, in place of handlers.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

/// Bytes of one record (signalfd(2)). The first four are the signal.
const RECORD: usize = size_of::<libc::signalfd_siginfo>();

/// The pending signals of this process. A signal leaves the queue when it is taken, and no handler runs.
#[derive(Debug)]
pub(crate) struct SignalQueue(File);

impl SignalQueue {
    /// Opens the queue of `signals`, and blocks them for this thread and all threads that it starts later. Child processes
    /// inherit that, so a program that starts some must not use this.
    #[expect(unsafe_code, reason = "masks and queues of signals have no safe wrapper among our dependencies")]
    pub(crate) fn open(signals: &[i32]) -> io::Result<Self> {
        // SAFETY: the set is local and initialised by sigemptyset. The new descriptor belongs to nobody else.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for &signal in signals {
                libc::sigaddset(&raw mut set, signal);
            }
            match libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) {
                0 => {}
                error => return Err(io::Error::from_raw_os_error(error)),
            }
            match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
                -1 => Err(io::Error::last_os_error()),
                descriptor => Ok(Self(File::from_raw_fd(descriptor))),
            }
        }
    }

    /// Waits for a signal and leaves it in the queue.
    pub(crate) fn wait(&self) {
        self.poll(-1);
    }

    /// Whether a signal is in the queue.
    pub(crate) fn is_pending(&self) -> bool {
        self.poll(0)
    }

    /// Takes a signal; `None` if there is none.
    pub(crate) fn take(&self) -> Option<i32> {
        let mut record = [0; RECORD];
        (&self.0).read_exact(&mut record).ok()?;
        let (signal, _) = record.split_first_chunk()?;
        i32::try_from(u32::from_ne_bytes(*signal)).ok()
    }

    /// Waits for `timeout` milliseconds, or without end if it is negative.
    #[expect(unsafe_code, reason = "poll has no safe wrapper among our dependencies")]
    fn poll(&self, timeout: libc::c_int) -> bool {
        let mut entry = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the pointer is to one local entry, and the descriptor is open while `self` lives.
        unsafe { libc::poll(&raw mut entry, 1, timeout) > 0 }
    }
}
