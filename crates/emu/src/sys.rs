//! System calls that no safe library offers. All `unsafe` code of this crate is in this file.
#![expect(unsafe_code, reason = "TUN devices, namespaces and TCP_INFO, which rustix does not know")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::io::retry_on_intr;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{Pid, WaitOptions, waitpid};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Work that the kernel may leave to the reader of a TUN device.
pub(crate) mod offload {
    /// Checksums.
    pub(crate) const CHECKSUMS: u32 = libc::TUN_F_CSUM;
    /// Segmentation of TCP over IPv4 and IPv6, also with ECN.
    pub(crate) const TCP: u32 = libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    /// Segmentation of UDP over IPv4 and IPv6; Linux 6.2 and later.
    pub(crate) const UDP: u32 = libc::TUN_F_USO4 | libc::TUN_F_USO6;
}

/// Moves the calling thread and the processes it starts into a new network namespace, which has only an inactive
/// loopback interface.
pub(crate) fn leave_network() -> io::Result<()> {
    // SAFETY: a network namespace shares no memory and no descriptors. Only later calls of this thread see another
    // network.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?)
}

/// Gives processes that the calling thread starts from now on their own process namespace. The first one is its init.
pub(crate) fn leave_processes() -> io::Result<()> {
    // SAFETY: concerns only processes that are started later.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWPID) }?)
}

/// Gives a program that will be started, and what it starts, a `/proc` of its own process namespace. It keeps that of the machine where the
/// system refuses another, as inside containers that hide parts of `/proc`.
pub(crate) fn renew_proc(command: &mut Command) {
    let renew = || -> rustix::io::Result<()> {
        // SAFETY: a mount namespace shares no memory and no descriptors.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
        // What is mounted here is for this program alone.
        mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount(c"proc", c"/proc", c"proc", flags, None)
    };
    // SAFETY: between fork and exec, system calls only: nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(move || renew().or(Ok(()))) };
}

/// Moves this program into its own user namespace.
///
/// # Errors
/// The program has several threads, or the system refuses.
pub(crate) fn leave_users() -> io::Result<()> {
    // SAFETY: a user namespace shares no memory and no descriptors; only what this program may do changes.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }?)
}

/// Runs `work` in a child of this program, which must have a single thread, and returns the result.
///
/// # Errors
/// The system's error in the child, or `EIO` for an error without a number.
pub(crate) fn try_in_a_child(work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("this needs a program with a single thread"));
    }
    // SAFETY: there is no other thread whose locks the child could inherit, so the child may call anything.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            let number = match done {
                Ok(Ok(())) => 0,
                Ok(Err(error)) => error.raw_os_error().unwrap_or(libc::EIO),
                Err(_) => libc::EIO,
            };
            // SAFETY: ends the child without running this program's exit handlers.
            unsafe { libc::_exit(number) }
        }
        child => {
            let child = Pid::from_raw(child);
            let status = retry_on_intr(|| waitpid(child, WaitOptions::empty()))?;
            match status.and_then(|(_, status)| status.exit_status()) {
                Some(0) => Ok(()),
                Some(number) => Err(io::Error::from_raw_os_error(number)),
                None => Err(io::Error::other("the child was killed")),
            }
        }
    }
}

/// Starts a process that ends when the last write end of the pipe of `until` is closed. `alive` is this program's write
/// end, which the process closes.
///
/// As the init of its process namespace it reaps orphans, and all processes in the namespace end with it.
pub(crate) fn spawn_init(until: BorrowedFd<'_>, alive: BorrowedFd<'_>) -> io::Result<Pid> {
    let (pipe, alive) = (until.as_raw_fd(), alive.as_raw_fd());
    // SAFETY: this program has threads, so the child of a fork may call only async-signal-safe functions until it ends.
    // `init` calls no others and never returns.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: as above.
        0 => unsafe { init(pipe, alive) },
        child => Pid::from_raw(child).ok_or_else(|| io::Error::other("fork gave no process id")),
    }
}

/// The body of the process of [`spawn_init`].
///
/// # Safety
/// Call this only in a child process without other threads. It calls only async-signal-safe functions.
unsafe fn init(pipe: RawFd, alive: RawFd) -> ! {
    /// The pipe becomes descriptor 0, so that all others can be closed.
    const PIPE: RawFd = 0;
    // SAFETY: the arguments are plain numbers and one local buffer. Every function is on the list of signal-safety(7),
    // except `syscall`, which makes one bare call, and `_exit`, which ends the process.
    unsafe {
        // The system reaps children.
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        // Kernels before 5.9 lack the call that closes all others. With this one open the process would never end.
        libc::close(alive);
        libc::dup2(pipe, PIPE);
        libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0);
        let mut byte = 0_u8;
        while libc::read(PIPE, (&raw mut byte).cast(), 1) < 0 && *libc::__errno_location() == libc::EINTR {}
        libc::_exit(0)
    }
}

/// Turns `device`, an open `/dev/net/tun`, into the device `name` of the calling thread's network. It carries IP
/// packets, each behind a virtio header.
pub(crate) fn become_tun(device: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let mut request = interface(name)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    // SAFETY: this request takes the structure, which lives through the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets the work that the reader of a TUN device takes over.
pub(crate) fn set_offloads(device: BorrowedFd<'_>, offloads: u32) -> io::Result<()> {
    // SAFETY: this request takes a plain number.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Room for Linux' `struct tcp_info` as of 6.18, and for later fields.
pub(crate) const TCP_INFO: usize = 384;

/// The kernel's statistics of a TCP connection. Unknown fields are zero.
pub(crate) fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<[u8; TCP_INFO]> {
    let mut info = [0_u8; TCP_INFO];
    let mut length = TCP_INFO as libc::socklen_t;
    // SAFETY: the kernel writes `length` bytes at most, which is what the buffer has.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(info) }
}

/// Limits the window that a TCP socket advertises.
pub(crate) fn limit_tcp_window(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    // SAFETY: the option takes a C int, and `bytes` is one that outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_WINDOW_CLAMP,
            (&raw const bytes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A request about the interface `name`.
fn interface(name: &str) -> io::Result<libc::ifreq> {
    let text = CString::new(name)?;
    let bytes = text.as_bytes_with_nul();
    // SAFETY: all zero is a valid value of this structure of numbers and arrays.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if bytes.len() > request.ifr_name.len() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(bytes) {
        *place = *byte as libc::c_char;
    }
    Ok(request)
}
