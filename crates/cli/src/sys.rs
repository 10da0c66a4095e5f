//! Facts about this process that no safe library offers, and control over its terminal and children.

mod signal_queue;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::io;
use std::ops::Sub;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use serde::Serialize;

pub(crate) use signal_queue::SignalQueue;

/// Processor time in user mode and in the kernel, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct CpuSeconds {
    pub(crate) user: f64,
    pub(crate) system: f64,
}

impl CpuSeconds {
    /// Processor time of this process with all its threads; zero if the system does not report it.
    pub(crate) fn of_process() -> Self {
        usage(libc::RUSAGE_SELF)
            .map_or_else(Self::default, |usage| Self { user: seconds(usage.ru_utime), system: seconds(usage.ru_stime) })
    }

    /// Processor time of the calling thread; zero if the system does not report it.
    pub(crate) fn of_thread() -> Self {
        usage(libc::RUSAGE_THREAD)
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

    /// Processor time since `earlier`.
    fn sub(self, earlier: Self) -> Self {
        Self { user: (self.user - earlier.user).max(0.0), system: (self.system - earlier.system).max(0.0) }
    }
}

/// Processor use of the threads behind a transfer: the calling one, and those that serve UDP ports.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    began: BTreeMap<String, Spent>,
}

impl Threads {
    /// Starts counting.
    pub(crate) fn begin() -> Self {
        Self { began: threads() }
    }

    /// Time for which the transfer needed a processor: its busiest thread ran, or any of its threads queued for one. The
    /// threads wait for each other, so one queueing thread delays all.
    pub(crate) fn busy(&self) -> Duration {
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

/// Prefix of the names of threads that serve UDP ports.
const PORT_THREAD: &str = "farhaul:";

/// Times of each thread, by its folder. Without schedstat, only the processor time of the calling thread.
fn threads() -> BTreeMap<String, Spent> {
    let of = |folder: &Path| fs::read_to_string(folder.join("schedstat")).ok().as_deref().and_then(schedstat);
    let without = || Spent { running: farhaul_udp::thread_cpu_time(), queueing: Duration::ZERO };
    let own = of(Path::new("/proc/thread-self")).unwrap_or_else(without);
    let mut all = BTreeMap::from([(String::new(), own)]);
    for folder in fs::read_dir("/proc/self/task").into_iter().flatten().flatten().map(|entry| entry.path()) {
        if fs::read_to_string(folder.join("comm")).is_ok_and(|name| name.starts_with(PORT_THREAD)) {
            all.extend(of(&folder).map(|spent| (folder.to_string_lossy().into_owned(), spent)));
        }
    }
    all
}

/// Parses nanoseconds of running and of queueing (the kernel's Documentation/scheduler/sched-stats.rst).
fn schedstat(line: &str) -> Option<Spent> {
    let mut numbers = line.split_ascii_whitespace().map_while(|number| number.parse().ok().map(Duration::from_nanos));
    Some(Spent { running: numbers.next()?, queueing: numbers.next()? })
}

/// Whether this program is in the foreground of its terminal, and gets its input and signals.
pub(crate) fn has_terminal() -> bool {
    fs::File::open("/dev/tty").is_ok_and(|terminal| {
        rustix::termios::tcgetpgrp(terminal).is_ok_and(|foreground| foreground == rustix::process::getpgrp())
    })
}

/// Makes `command` start in its own process group, in the foreground of the terminal on stdin. A shell can then control
/// jobs at once.
#[expect(unsafe_code, reason = "the program must own the terminal before it checks")]
pub(crate) fn give_terminal(command: &mut Command) {
    command.process_group(0);
    // SAFETY: only calls of the system that are allowed after a fork.
    unsafe { command.pre_exec(|| set_foreground(libc::getpid())) };
}

/// Moves a process group to the foreground of the terminal on stdin.
pub(crate) fn set_terminal(group: rustix::process::Pid) {
    // A terminal that is gone has no foreground.
    let _ = set_foreground(group.as_raw_nonzero().get());
}

/// Makes `command` die with the calling thread.
#[expect(unsafe_code, reason = "the child itself must request it, before exec")]
pub(crate) fn end_with_thread(command: &mut Command) {
    let parent = Some(getpid());
    // SAFETY: only calls of the system that are allowed after a fork.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // A parent that ended earlier sends no signal.
            if getppid() == parent { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
        })
    };
}

#[expect(unsafe_code, reason = "masks of signals have no safe wrapper among our dependencies")]
fn set_foreground(group: libc::pid_t) -> io::Result<()> {
    // SAFETY: the arguments are numbers and local signal sets. All functions may be called after a fork.
    unsafe {
        let mut before = std::mem::zeroed();
        let mut blocked = std::mem::zeroed();
        libc::sigemptyset(&raw mut blocked);
        // Otherwise this signal stops a process in the background.
        libc::sigaddset(&raw mut blocked, libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, &raw mut before);
        let done = libc::tcsetpgrp(libc::STDIN_FILENO, group);
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        if done == 0 { Ok(()) } else { Err(error) }
    }
}

/// Room for an entry of the database of users: first, and at most.
const ENTRY: usize = 1 << 10;
const LARGEST_ENTRY: usize = 1 << 20;

/// The home directory of the user with this name, as the system's databases have it. `None` if there is no such user.
#[expect(unsafe_code, reason = "getpwnam_r has no safe wrapper among our dependencies")]
pub(crate) fn home_of(user: &OsStr) -> io::Result<Option<PathBuf>> {
    let Ok(name) = CString::new(user.as_bytes()) else { return Ok(None) };
    let mut room: Vec<libc::c_char> = vec![0; ENTRY];
    loop {
        let mut entry = std::mem::MaybeUninit::uninit();
        let mut found = std::ptr::null_mut();
        // SAFETY: all pointers are to local memory of the right types, and the length is that of `room`.
        let error = unsafe {
            libc::getpwnam_r(name.as_ptr(), entry.as_mut_ptr(), room.as_mut_ptr(), room.len(), &raw mut found)
        };
        match error {
            libc::ERANGE if room.len() < LARGEST_ENTRY => room.resize(room.len() * 4, 0),
            libc::EINTR => {}
            // SAFETY: the entry was found, so the pointer is to `entry`, whose texts lie in `room` and end with NUL.
            0 if !found.is_null() => unsafe {
                let home = CStr::from_ptr((*found).pw_dir);
                return Ok(Some(OsStr::from_bytes(home.to_bytes()).into()));
            },
            // Databases that have no entry say so in these ways (getpwnam(3)).
            0 | libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM => return Ok(None),
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}

#[expect(unsafe_code, reason = "getrusage has no safe wrapper among our dependencies")]
fn usage(of: libc::c_int) -> Option<libc::rusage> {
    let mut usage = std::mem::MaybeUninit::uninit();
    // SAFETY: the pointer is to writable memory of the right type. A successful call fills it completely.
    unsafe { (libc::getrusage(of, usage.as_mut_ptr()) == 0).then(|| usage.assume_init()) }
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

    #[test]
    fn processor_time_never_goes_back() {
        let before = CpuSeconds::of_process();
        let spent = CpuSeconds::of_process() - before;
        assert!(spent.user >= 0.0 && spent.system >= 0.0 && spent.total().is_finite());
    }
}
