//! Readiness for event loops: a descriptor that poll and epoll wait for.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use farhaul::{Readiness, Watch};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};

use crate::argument::need;
use crate::border::{border_of, tell};
use crate::error::FarhaulError;
use crate::fault::Fault;
use crate::fork::leave;
use crate::result::FarhaulResult;

/// The handshake has succeeded; of a listener: it is open.
pub const FARHAUL_READY_CONNECTED: u32 = 1;
/// A read gives bytes, a message, the end or an error at once; of a listener: an accept does.
pub const FARHAUL_READY_READABLE: u32 = 2;
/// A write takes bytes or gives an error at once.
pub const FARHAUL_READY_WRITABLE: u32 = 4;
/// The connection or the listener has ended. What has arrived may still be readable.
pub const FARHAUL_READY_ENDED: u32 = 8;

/// The readiness of one connection or listener, as a descriptor for poll and epoll.
///
/// ```text
/// farhaul_watch_check ─▶ what is ready now, and the descriptor is armed for the rest
///        ▲                       │ nothing to do
///        └── the descriptor is readable ◀── poll, epoll
/// ```
pub struct FarhaulWatch {
    signal: Arc<Signal>,
    waker: Waker,
    /// Checks come one at a time.
    watch: Mutex<Watch>,
}

/// An eventfd, which becomes readable when something may be ready.
struct Signal(OwnedFd);

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // It cannot fail: only a counter near 2^64 refuses one more.
        let _ = write(self.0.as_fd(), &1u64.to_ne_bytes());
    }
}

impl FarhaulWatch {
    pub(crate) fn of(watch: Watch) -> Result<Self, Fault> {
        let signal = Arc::new(Signal(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?));
        let waker = Waker::from(Arc::clone(&signal));
        // The first wait returns at once, so that no program can forget the first check.
        signal.wake_by_ref();
        Ok(Self { signal, waker, watch: Mutex::new(watch) })
    }

    fn check(&self) -> Result<u32, Fault> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        // Cleared before the check: what becomes ready behind it signals again.
        match read(self.signal.0.as_fd(), &mut [0u8; 8]) {
            Ok(_) | Err(Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(flags(watch.check(&self.waker)?))
    }
}

fn flags(readiness: Readiness) -> u32 {
    [
        (FARHAUL_READY_CONNECTED, readiness.connected),
        (FARHAUL_READY_READABLE, readiness.readable),
        (FARHAUL_READY_WRITABLE, readiness.writable),
        (FARHAUL_READY_ENDED, readiness.ended),
    ]
    .iter()
    .filter(|(_, is)| *is)
    .fold(0, |all, (flag, _)| all | flag)
}

/// The descriptor of a watch, an eventfd. Wait until it is readable (`POLLIN`), then call `farhaul_watch_check`. It belongs to the
/// watch: do not read, write or close it. -1 for no watch.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_watch_descriptor(watch: Option<&FarhaulWatch>) -> i32 {
    border_of(-1, || watch.map_or(-1, |watch| watch.signal.0.as_raw_fd()))
}

/// Tells what is ready now, as `FARHAUL_READY_…` together, and makes the descriptor unreadable until more may be ready. After a
/// call that would block, check again before you wait.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_watch_check(
    watch: Option<&FarhaulWatch>,
    ready: Option<&mut MaybeUninit<u32>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    tell(ready, error, || need(watch, "watch")?.check())
}

/// Frees a watch and closes its descriptor. Remove it from an epoll set before.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_watch_free(watch: Option<Box<FarhaulWatch>>) {
    leave(watch);
}
