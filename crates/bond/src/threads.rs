//! Processor use of the threads behind a stream: the one that drives it, and those that serve UDP ports and flows.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Processor use of the threads behind a transfer: the calling one, and those that serve UDP ports.
#[derive(Debug, Default)]
pub struct Threads {
    began: BTreeMap<String, Spent>,
}

impl Threads {
    /// Starts counting.
    pub fn begin() -> Self {
        Self { began: threads() }
    }

    /// Time for which the transfer needed a processor: its busiest thread ran, or any of its threads queued for one. The
    /// threads wait for each other, so one queueing thread delays all.
    pub fn busy(&self) -> Duration {
        let (mut running, mut queueing) = (Duration::ZERO, Duration::ZERO);
        for (thread, now) in threads() {
            let before = self.began.get(&thread).copied().unwrap_or_default();
            running = running.max(now.running.saturating_sub(before.running));
            queueing += now.queueing.saturating_sub(before.queueing);
        }
        running + queueing
    }
}

/// Time of a runnable thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spent {
    running: Duration,
    /// Time in the run queue of a busy processor.
    queueing: Duration,
}

/// Watches the busiest thread of a transfer: the one that drives it, those of UDP ports, and those of flows.
#[derive(Debug)]
pub(crate) struct BusiestThread {
    driving: PathBuf,
    before: BTreeMap<String, Spent>,
}

impl BusiestThread {
    /// Of a transfer that the calling thread drives. `None` if the system does not tell.
    pub(crate) fn of_this() -> Option<Self> {
        let driving = fs::canonicalize("/proc/thread-self").ok()?;
        let before = Self::all(&driving);
        Some(Self { driving, before })
    }

    /// Time for which it ran since the last look.
    pub(crate) fn look(&mut self) -> Duration {
        let now = Self::all(&self.driving);
        let ran = now.iter().map(|(thread, now)| {
            now.running.saturating_sub(self.before.get(thread).copied().unwrap_or_default().running)
        });
        let busiest = ran.max().unwrap_or_default();
        self.before = now;
        busiest
    }

    fn all(driving: &Path) -> BTreeMap<String, Spent> {
        let mut all = serving();
        all.extend(spent(driving).map(|spent| (driving.to_string_lossy().into_owned(), spent)));
        all
    }
}

/// Prefixes of the names of threads that serve UDP ports, and of those that write and read the flows of a stream.
const SERVING: [&str; 2] = ["farhaul:", "flow:"];

/// Times of each thread, by its folder. Without schedstat, only the processor time of the calling thread.
fn threads() -> BTreeMap<String, Spent> {
    let without = || Spent { running: farhaul_udp::thread_cpu_time(), queueing: Duration::ZERO };
    let own = spent(Path::new("/proc/thread-self")).unwrap_or_else(without);
    let mut all = serving();
    all.insert(String::new(), own);
    all
}

/// Times of the threads that serve ports and flows.
fn serving() -> BTreeMap<String, Spent> {
    let mut all = BTreeMap::new();
    for folder in fs::read_dir("/proc/self/task").into_iter().flatten().flatten().map(|entry| entry.path()) {
        let serves = |name: String| SERVING.iter().any(|prefix| name.starts_with(prefix));
        if fs::read_to_string(folder.join("comm")).is_ok_and(serves) {
            all.extend(spent(&folder).map(|spent| (folder.to_string_lossy().into_owned(), spent)));
        }
    }
    all
}

fn spent(folder: &Path) -> Option<Spent> {
    fs::read_to_string(folder.join("schedstat")).ok().as_deref().and_then(schedstat)
}

/// Parses nanoseconds of running and of queueing (the kernel's Documentation/scheduler/sched-stats.rst).
fn schedstat(line: &str) -> Option<Spent> {
    let mut numbers = line.split_ascii_whitespace().map_while(|number| number.parse().ok().map(Duration::from_nanos));
    Some(Spent { running: numbers.next()?, queueing: numbers.next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_and_queueing_are_told_apart() {
        let spent = |running, queueing| Spent {
            running: Duration::from_nanos(running),
            queueing: Duration::from_nanos(queueing),
        };
        assert_eq!(schedstat("12 30 7\n"), Some(spent(12, 30)));
        assert_eq!(schedstat("12\n"), None);
        assert_eq!(schedstat(""), None);
    }

    #[test]
    fn a_thread_that_computes_is_busy() {
        let (threads, began) = (Threads::begin(), farhaul_udp::thread_cpu_time());
        let mut spent = Duration::ZERO;
        while spent < Duration::from_millis(20) {
            spent = farhaul_udp::thread_cpu_time() - began;
        }
        // The kernel updates these times at its ticks.
        assert!(threads.busy() >= spent / 2, "{:?} of {spent:?}", threads.busy());
    }
}
