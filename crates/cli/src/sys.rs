//! What no safe library knows of this process: its processor time.

use std::ops::Sub;
use std::time::Duration;

use serde::Serialize;

/// Processor time in user mode and in the kernel, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct CpuSeconds {
    pub(crate) user: f64,
    pub(crate) system: f64,
}

impl CpuSeconds {
    /// What this process, with all its threads, has used so far; zero if the system does not tell.
    pub(crate) fn of_process() -> Self {
        usage()
            .map_or_else(Self::default, |usage| Self { user: seconds(usage.ru_utime), system: seconds(usage.ru_stime) })
    }

    pub(crate) fn total(self) -> f64 {
        self.user + self.system
    }

    pub(crate) fn user_time(self) -> Duration {
        Duration::try_from_secs_f64(self.user).unwrap_or_default()
    }

    pub(crate) fn system_time(self) -> Duration {
        Duration::try_from_secs_f64(self.system).unwrap_or_default()
    }
}

impl Sub for CpuSeconds {
    type Output = Self;

    /// What was used since `earlier`.
    fn sub(self, earlier: Self) -> Self {
        Self { user: (self.user - earlier.user).max(0.0), system: (self.system - earlier.system).max(0.0) }
    }
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}

#[expect(unsafe_code, reason = "getrusage has no safe wrapper among our dependencies")]
fn usage() -> Option<libc::rusage> {
    let mut usage = std::mem::MaybeUninit::uninit();
    // SAFETY: the pointer is to writable memory of the right type, which a successful call fills completely.
    unsafe { (libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) == 0).then(|| usage.assume_init()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_never_goes_back() {
        let before = CpuSeconds::of_process();
        let spent = CpuSeconds::of_process() - before;
        assert!(spent.user >= 0.0 && spent.system >= 0.0 && spent.total().is_finite());
    }
}
