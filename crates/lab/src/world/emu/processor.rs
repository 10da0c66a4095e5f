//! Processor time of the threads and programs of a flow, user and system together, and their waits for it.
//!
//! The kernel's work in the emulator's thread is missing. There packets arrive through IP, UDP and TCP, and TCP answers
//! them.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use farhaul_units::Duration;
use rustix::param::clock_ticks_per_second;
use rustix::thread::gettid;

/// The threads of this program.
const TASKS: &str = "/proc/self/task";

/// Fewer waits of a thread than this have no mean worth a verdict.
const FEWEST_WAITS: u64 = 100;

/// The threads of one side of a flow.
#[derive(Debug, Default)]
pub(super) struct Meter {
    threads: Mutex<Vec<Thread>>,
}

/// A thread, and the last statistics that it was seen with. They outlive the thread.
#[derive(Debug)]
struct Thread {
    id: i32,
    last: Option<Statistics>,
}

/// The kernel's statistics of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Statistics {
    /// The time on a processor.
    used: Duration,
    /// The time in which it was ready and had no processor.
    waited: Duration,
    /// How often it got a processor.
    turns: u64,
}

/// Takes the last reading of the calling thread when it is dropped, also by a panic.
struct Reading<'a>(&'a Meter);

impl Meter {
    /// `work`, for a thread that this meter counts.
    pub(super) fn counting<W: FnOnce() + Send>(self: &Arc<Self>, work: W) -> impl FnOnce() + Send + use<W> {
        let meter = Arc::clone(self);
        move || {
            meter.add([gettid().as_raw_nonzero().get()]);
            let _reading = Reading(&meter);
            work();
        }
    }

    /// Counts the threads that `work` leaves behind with the name `name`.
    pub(super) fn count_new<T>(&self, name: &str, work: impl FnOnce() -> T) -> T {
        let before = named(name);
        let done = work();
        self.add(named(name).difference(&before).copied());
        done
    }

    fn add(&self, ids: impl IntoIterator<Item = i32>) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.extend(ids.into_iter().map(|id| Thread { id, last: of_thread(id) }));
    }

    /// The processor time of all threads so far; `None` if there are none or the kernel does not say.
    pub(super) fn used(&self) -> Option<Duration> {
        let all = self.statistics();
        let used: Option<Duration> = all.iter().map(|last| Some((*last)?.used)).sum();
        used.filter(|_| !all.is_empty())
    }

    /// How long a thread waits for a processor each time that it needs one, in the mean: the longest of all threads.
    pub(super) fn mean_wait(&self) -> Option<Duration> {
        let all = self.statistics().into_iter().flatten();
        all.filter(|last| last.turns >= FEWEST_WAITS).map(|last| last.waited.div_f64(last.turns as f64)).max()
    }

    /// The latest statistics of each thread; `None` if the kernel has none.
    fn statistics(&self) -> Vec<Option<Statistics>> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.iter_mut() {
            // A thread that is over has no statistics. The kernel may give its number to a thread that has used less.
            thread.last = thread.last.max(of_thread(thread.id));
        }
        threads.iter().map(|thread| thread.last).collect()
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let _ = self.0.used();
    }
}

/// The ids of this program's threads with a name.
fn named(name: &str) -> BTreeSet<i32> {
    let tasks = fs::read_dir(TASKS).into_iter().flatten().flatten();
    let is_meant = |id: &i32| fs::read_to_string(format!("{TASKS}/{id}/comm")).is_ok_and(|found| found.trim() == name);
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).filter(is_meant).collect()
}

fn of_thread(id: i32) -> Option<Statistics> {
    of_schedstat(&fs::read_to_string(format!("{TASKS}/{id}/schedstat")).ok()?)
}

/// The three numbers of the kernel's Documentation/scheduler/sched-stats.rst. Times are in nanoseconds.
fn of_schedstat(line: &str) -> Option<Statistics> {
    let mut numbers = line.split_ascii_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some(Statistics { used: Duration::from_nanos(next()?), waited: Duration::from_nanos(next()?), turns: next()? })
}

/// The processor time of another program with all its threads.
pub(super) fn of_program(id: u32) -> Option<Duration> {
    of_stat(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?, clock_ticks_per_second())
}

/// Fields 14 and 15, `utime` and `stime`, in ticks (proc_pid_stat(5)). The name before them may have spaces and
/// brackets.
fn of_stat(line: &str, ticks_per_second: u64) -> Option<Duration> {
    let (_, rest) = line.rsplit_once(')')?;
    let ticks = rest.split_ascii_whitespace().skip(11).take(2).map(str::parse::<u64>);
    let ticks = ticks.sum::<Result<u64, _>>().ok()?;
    Some(Duration::from_secs_f64(ticks as f64 / ticks_per_second.max(1) as f64))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    /// Some work.
    fn work() {
        let mut sum = 0_u64;
        while farhaul_udp::thread_cpu_time() < Duration::from_millis(30) {
            sum = (0..10_000).fold(sum, |sum: u64, number| std::hint::black_box(sum ^ number));
        }
    }

    #[test]
    fn the_time_of_a_thread_stays_known_after_its_end() {
        let meter = Arc::new(Meter::default());
        assert_eq!(meter.used(), None);
        let thread = thread::spawn(meter.counting(work));
        thread.join().unwrap();
        let used = meter.used().unwrap();
        assert!(used >= Duration::from_millis(25), "{used:?}");
        assert!(meter.used().unwrap() >= used);
    }

    #[test]
    fn new_threads_are_found_by_their_name_and_others_are_not_counted() {
        let (until, wait) = channel::<()>();
        let meter = Meter::default();
        let begin = |wait: Option<std::sync::mpsc::Receiver<()>>| {
            let (ready, is_ready) = channel();
            let thread = thread::Builder::new().name("metered".into()).spawn(move || {
                ready.send(()).unwrap();
                let _ = wait.map(|wait| wait.recv());
            });
            is_ready.recv().unwrap();
            thread.unwrap()
        };
        let thread = meter.count_new("metered", || begin(Some(wait)));
        assert_eq!(meter.threads.lock().unwrap().len(), 1);
        meter.count_new("metered", || ());
        meter.count_new("another", || ());
        assert_eq!(meter.threads.lock().unwrap().len(), 1);
        drop(until);
        thread.join().unwrap();
        assert!(meter.used().is_some());
    }

    #[test]
    fn a_mean_wait_is_that_of_the_thread_that_waited_longest_and_needs_enough_waits() {
        let last = of_schedstat("7000000 300000000 200\n");
        let expected = Statistics { used: Duration::from_millis(7), waited: Duration::from_millis(300), turns: 200 };
        assert_eq!((last, of_schedstat("7 8")), (Some(expected), None));
        // No thread has these numbers.
        let threads = |all: &[Statistics]| Meter {
            threads: Mutex::new(all.iter().map(|last| Thread { id: -1, last: Some(*last) }).collect()),
        };
        let rare = Statistics { turns: FEWEST_WAITS - 1, waited: Duration::from_secs(9), ..expected };
        let short = Statistics { turns: 1_000, ..expected };
        assert_eq!(threads(&[short, expected, rare]).mean_wait(), Some(Duration::from_micros(1_500)));
        assert_eq!((threads(&[rare]).mean_wait(), threads(&[]).mean_wait()), (None, None));
    }

    #[test]
    fn a_programs_time_is_read_behind_its_name() {
        let line = "12 (a (b) c) S 1 1 1 0 -1 4194560 99 0 0 0 250 50 7 7 20 0 1 0 100 0 0";
        assert_eq!(of_stat(line, 100), Some(Duration::from_secs(3)));
        assert_eq!((of_stat("12 (a) S 1", 100).unwrap_or_default(), of_stat("", 100)), (Duration::ZERO, None));
        assert!(of_program(std::process::id()).is_some());
    }
}
