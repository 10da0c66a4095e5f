//! Processor time of this process and of its threads.

use std::ops::Sub;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Processor time in user mode and in the kernel, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(not(feature = "internal"), non_exhaustive)]
pub struct CpuSeconds {
    /// In user mode.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
}

impl CpuSeconds {
    /// Processor time of this process with all its threads; zero if the system does not report it.
    pub fn of_process() -> Self {
        Self::of(farhaul_udp::processor_time_of_process())
    }

    /// Processor time of the calling thread; zero if the system does not report it.
    pub fn of_thread() -> Self {
        Self::of(farhaul_udp::processor_time_of_thread())
    }

    const fn of((user, system): (Duration, Duration)) -> Self {
        Self { user: user.as_secs_f64(), system: system.as_secs_f64() }
    }

    /// Both together.
    pub fn total(self) -> f64 {
        self.user + self.system
    }

    /// The time in user mode.
    pub fn user_time(self) -> Duration {
        Duration::try_from_secs_f64(self.user).unwrap_or_default()
    }

    /// The time in the kernel.
    pub fn system_time(self) -> Duration {
        Duration::try_from_secs_f64(self.system).unwrap_or_default()
    }
}

impl Sub for CpuSeconds {
    type Output = Self;

    /// Processor time since `earlier`.
    fn sub(self, earlier: Self) -> Self {
        Self { user: (self.user - earlier.user).max(0.0), system: (self.system - earlier.system).max(0.0) }
    }
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
