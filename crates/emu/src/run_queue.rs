//! How long the emulator's thread waited for a processor.
//!
//! A packet that ends a wait makes the thread ready to run. On a busy machine, without real-time rights, it may run
//! tens of milliseconds later. The clock does not show this, because the wait itself still ends early.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::str;

use farhaul_units::Duration;

/// Three 64-bit numbers, two spaces and the end of the line.
const LINE: usize = 3 * 20 + 3;

/// The kernel's statistics of one thread; `None` if the kernel has none.
#[derive(Debug)]
pub(crate) struct RunQueue(Option<File>);

impl RunQueue {
    /// The statistics of the calling thread.
    pub(crate) fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// How long the thread has been ready without a processor, since its start. The call takes 1.4 µs.
    pub(crate) fn waited(&self) -> Duration {
        let mut line = [0; LINE];
        let length = self.0.as_ref().and_then(|file| file.read_at(&mut line, 0).ok());
        length.and_then(|length| waited_in(&line[..length])).unwrap_or_default()
    }
}

/// The second number, in nanoseconds (the kernel's Documentation/scheduler/sched-stats.rst).
fn waited_in(line: &[u8]) -> Option<Duration> {
    let number = str::from_utf8(line).ok()?.split_ascii_whitespace().nth(1)?;
    Some(Duration::from_nanos(number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_wait() {
        assert_eq!(waited_in(b"1065137 1319964 26\n"), Some(Duration::from_nanos(1_319_964)));
        assert_eq!((waited_in(b"12\n"), waited_in(b"")), (None, None));
        let most = format!("{0} {0} {0}\n", u64::MAX);
        assert_eq!((most.len(), waited_in(most.as_bytes())), (LINE, Some(Duration::from_nanos(u64::MAX))));
    }

    #[test]
    fn without_the_statistics_the_wait_is_zero() {
        assert_eq!(RunQueue(None).waited(), Duration::ZERO);
    }
}
