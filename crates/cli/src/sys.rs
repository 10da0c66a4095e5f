//! Facts about this process that no safe library offers, and control over its terminal and children.

mod signal_queue;

use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
pub(crate) use signal_queue::SignalQueue;

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
pub(crate) fn end_with_thread(command: &mut Command) {
    signalled_with_thread(command, Signal::KILL);
}

/// Makes `command` get SIGHUP at the end of the calling thread.
pub(crate) fn hang_up_with_thread(command: &mut Command) {
    signalled_with_thread(command, Signal::HUP);
}

#[expect(unsafe_code, reason = "the child itself must request it, before exec")]
fn signalled_with_thread(command: &mut Command, signal: Signal) {
    let parent = Some(getpid());
    // SAFETY: only calls of the system that are allowed after a fork.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(signal))?;
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

/// The priority that this process takes from the processor, on top of what it has: half of the distance to the lowest (nice(2)).
const NICE: i32 = 10;
/// The class of disk accesses that wait for all others (ioprio_set(2)).
const IDLE_CLASS: libc::c_int = 3 << 13;
/// Selects one thread, and those that it starts from now on.
const OF_THREAD: libc::c_int = 1;

/// Lets other programs go first at the processor and the disk, from now on and in the threads that this one starts. A system that
/// refuses has its reasons.
#[expect(unsafe_code, reason = "ioprio_set has no wrapper")]
pub(crate) fn lower_priority() {
    let _ = rustix::process::nice(NICE);
    // SAFETY: the arguments are numbers.
    unsafe { libc::syscall(libc::SYS_ioprio_set, OF_THREAD, 0, IDLE_CLASS) };
}

/// Room for an entry of the database of users: first, and at most.
const ENTRY: usize = 1 << 10;
const LARGEST_ENTRY: usize = 1 << 20;
/// The shell of a user whose entry names none (passwd(5)).
const USUAL_SHELL: &str = "/bin/sh";

/// The home directory of the user with this name, as the system's databases have it. `None` if there is no such user.
#[expect(unsafe_code, reason = "getpwnam_r has no safe wrapper among our dependencies")]
pub(crate) fn home_of(user: &OsStr) -> io::Result<Option<PathBuf>> {
    let Ok(name) = CString::new(user.as_bytes()) else { return Ok(None) };
    // SAFETY: the name ends with NUL, and the other arguments are those of the function.
    let find = |entry, room: &mut [_], found| unsafe {
        libc::getpwnam_r(name.as_ptr(), entry, room.as_mut_ptr(), room.len(), found)
    };
    // SAFETY: all texts of an entry end with NUL.
    entry(find, |entry| unsafe { CStr::from_ptr(entry.pw_dir) })
}

/// The login shell of the user of this process.
///
/// # Errors
/// The system's databases have no such user, or do not answer.
#[expect(unsafe_code, reason = "getpwuid_r has no safe wrapper among our dependencies")]
pub(crate) fn login_shell() -> io::Result<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    // SAFETY: the arguments are those of the function.
    let find =
        |entry, room: &mut [_], found| unsafe { libc::getpwuid_r(user, entry, room.as_mut_ptr(), room.len(), found) };
    // SAFETY: all texts of an entry end with NUL.
    let shell = entry(find, |entry| unsafe { CStr::from_ptr(entry.pw_shell) })?;
    let shell = shell.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("there is no user {user}")))?;
    Ok(if shell.as_os_str().is_empty() { USUAL_SHELL.into() } else { shell })
}

/// A path of an entry in the database of users, which `find` finds. `None` if there is no such user.
#[expect(unsafe_code, reason = "the entry points into memory of this function")]
fn entry(
    find: impl Fn(*mut libc::passwd, &mut [libc::c_char], *mut *mut libc::passwd) -> libc::c_int,
    path: impl Fn(&libc::passwd) -> &CStr,
) -> io::Result<Option<PathBuf>> {
    let mut room: Vec<libc::c_char> = vec![0; ENTRY];
    loop {
        let mut entry = std::mem::MaybeUninit::uninit();
        let mut found = std::ptr::null_mut();
        match find(entry.as_mut_ptr(), &mut room, &raw mut found) {
            libc::ERANGE if room.len() < LARGEST_ENTRY => room.resize(room.len() * 4, 0),
            libc::EINTR => {}
            // SAFETY: the entry was found, so the pointer is to `entry`, whose texts lie in `room`.
            0 if !found.is_null() => unsafe {
                return Ok(Some(OsStr::from_bytes(path(&*found).to_bytes()).into()));
            },
            // Databases that have no entry say so in these ways (getpwnam(3)).
            0 | libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM => return Ok(None),
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}
