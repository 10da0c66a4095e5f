//! System calls that no safe library offers. All `unsafe` code of this crate is in this file.
#![expect(unsafe_code, reason = "socket options and calls that rustix and socket2 do not know")]

use std::ffi::CStr;
use std::io;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, size_of_val};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use rustix::event::epoll::{Event, EventData, EventFlags};
use rustix::io::Errno;

/// Number of values in `SO_MEMINFO` (Linux, `linux/sock_diag.h`: `SK_MEMINFO_VARS`).
const MEMINFO_VALUES: usize = 9;
/// Index of the datagrams dropped because the receive buffer was full (`SK_MEMINFO_DROPS`).
const MEMINFO_DROPS: usize = 8;

/// Datagrams that the kernel dropped at this socket since it exists, modulo 2^32.
pub(crate) fn socket_drops(socket: impl AsFd) -> io::Result<u32> {
    let values: [u32; MEMINFO_VALUES] = values(socket, libc::SOL_SOCKET, libc::SO_MEMINFO)?;
    Ok(values[MEMINFO_DROPS])
}

/// Most ready sources that [`take_ready`] takes at once.
const READY: usize = 64;

/// Takes what is ready from `epoll`, without a wait, up to what `events` has room for. rustix calls epoll_pwait2(2), which kernels
/// before 5.11 lack.
pub(crate) fn take_ready(epoll: impl AsFd, events: &mut Vec<Event>) -> Result<(), Errno> {
    let mut ready = [libc::epoll_event { events: 0, u64: 0 }; READY];
    let most = READY.min(events.capacity() - events.len()) as libc::c_int;
    // SAFETY: `ready` is at least `most` writable events, for which any bit pattern is valid, and outlives the call.
    let taken = unsafe { libc::epoll_wait(epoll.as_fd().as_raw_fd(), ready.as_mut_ptr(), most, 0) };
    let Ok(taken) = usize::try_from(taken) else { return Err(last_error()) };
    events.extend(
        ready.iter().take(taken).map(|event| Event {
            flags: EventFlags::from_bits_retain(event.events),
            data: EventData::new_u64(event.u64),
        }),
    );
    Ok(())
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Whether the kernel may coalesce received datagrams of one flow (GRO).
pub(crate) fn set_receive_offload(socket: impl AsFd, on: bool) -> io::Result<()> {
    set_flag(socket, libc::SOL_UDP, libc::UDP_GRO, on)
}

/// Whether received datagrams carry the wall-clock time at which the kernel received them.
pub(crate) fn set_timestamps(socket: impl AsFd, on: bool) -> io::Result<()> {
    set_flag(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, on)
}

/// Whether received datagrams carry the address that they were sent to.
pub(crate) fn set_destinations(socket: impl AsFd, ipv6: bool, on: bool) -> io::Result<()> {
    if ipv6 {
        set_flag(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, on)
    } else {
        set_flag(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, on)
    }
}

/// Received datagrams do not carry the class of their packet, which nobody reads. quinn-udp asks for it, to see congestion marks.
pub(crate) fn leave_out_traffic_class(socket: impl AsFd, ipv6: bool) -> io::Result<()> {
    if ipv6 {
        set_flag(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, false)
    } else {
        set_flag(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, false)
    }
}

/// Makes the kernel refuse segmentation offload on this socket from now on (Linux: segments need checksums).
#[cfg(test)]
pub(crate) fn refuse_segmentation(socket: impl AsFd) -> io::Result<()> {
    set_flag(socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, true)
}

/// Lets datagrams larger than the path MTU travel in fragments, as those of libudt do.
///
/// A path narrower than the interface is then slow. Without fragments a transfer with a peer that has a fixed packet size would stop
/// for good, because UDT cannot change the size of a packet already sent.
pub(crate) fn allow_fragments(socket: impl AsFd, ipv6: bool) -> io::Result<()> {
    set_fragments(socket, ipv6, [libc::IP_PMTUDISC_DONT, libc::IPV6_PMTUDISC_DONT])
}

/// Forbids fragments. Datagrams may be as large as the interface permits, whatever ICMP messages say of the path.
pub(crate) fn forbid_fragments(socket: impl AsFd, ipv6: bool) -> io::Result<()> {
    set_fragments(socket, ipv6, [libc::IP_PMTUDISC_PROBE, libc::IPV6_PMTUDISC_PROBE])
}

fn set_fragments(socket: impl AsFd, ipv6: bool, [v4, v6]: [libc::c_int; 2]) -> io::Result<()> {
    if ipv6 {
        // With this switch, which quinn-udp sets as well, no rule permits fragments.
        let forbids = libc::c_int::from(v6 != libc::IPV6_PMTUDISC_DONT);
        set_value(&socket, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, forbids)?;
        set_value(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, v6)
    } else {
        set_value(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, v4)
    }
}

/// The largest packet that the system expects to pass to the peer of a connected socket, in bytes.
pub(crate) fn path_mtu(socket: impl AsFd, ipv6: bool) -> io::Result<u32> {
    let (level, option) = if ipv6 { (libc::IPPROTO_IPV6, libc::IPV6_MTU) } else { (libc::IPPROTO_IP, libc::IP_MTU) };
    let [mtu] = values(socket, level, option)?;
    Ok(u32::try_from(mtu.cast_signed()).unwrap_or(0))
}

/// The words of a socket option.
fn values<const N: usize>(socket: impl AsFd, level: libc::c_int, option: libc::c_int) -> io::Result<[u32; N]> {
    let mut values = [0_u32; N];
    let mut length = size_of_val(&values) as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `values` is `length` writable bytes, for which any bit pattern is valid, and both outlive the call.
    let result = unsafe { libc::getsockopt(fd, level, option, values.as_mut_ptr().cast(), &raw mut length) };
    if result == 0 { Ok(values) } else { Err(io::Error::last_os_error()) }
}

/// The value of a socket option.
#[cfg(test)]
pub(crate) fn value(socket: impl AsFd, (level, option): (libc::c_int, libc::c_int)) -> io::Result<libc::c_int> {
    let [value] = values(socket, level, option)?;
    Ok(value.cast_signed())
}

/// The MTU of the interface with this name, in the network namespace of the socket.
pub(crate) fn interface_mtu(socket: impl AsFd, name: &str) -> io::Result<u32> {
    // SAFETY: the structure is plain numbers, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    if name.len() > room {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the name ends with a zero, and `request` is a valid structure that outlives the call.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCGIFMTU as libc::Ioctl, &raw mut request) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has filled in this member.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    u32::try_from(mtu).map_err(io::Error::other)
}

/// The names of all interfaces in the network namespace of this thread. None if the system does not tell.
pub(crate) fn interfaces() -> Vec<String> {
    let mut names = Vec::new();
    // SAFETY: the call takes nothing, and returns null or an array that ends with a null name.
    let first = unsafe { libc::if_nameindex() };
    let mut next = first;
    // SAFETY: `next` is within the array, at its end at most. Each name before that ends with a zero.
    while let Some(entry) = unsafe { next.as_ref() }.filter(|entry| !entry.if_name.is_null()) {
        let name = unsafe { CStr::from_ptr(entry.if_name) };
        names.extend(name.to_str().ok().map(str::to_owned));
        next = unsafe { next.add(1) };
    }
    if !first.is_null() {
        // SAFETY: the array is of the call, and nobody uses it any more.
        unsafe { libc::if_freenameindex(first) };
    }
    names
}

/// Raises the calling thread above all ordinary threads while this value lives, if permitted, as for root.
#[derive(Debug)]
pub struct RealTime {
    /// Whether dropping the value must restore the class.
    entered: bool,
    /// The value belongs to its thread.
    _here: PhantomData<*const ()>,
}

impl RealTime {
    /// Tries to enter the real-time class at its lowest priority. A thread already in it is left unchanged.
    pub fn enter() -> Self {
        // SAFETY: takes and returns plain numbers; zero is the calling thread.
        let ordinary = unsafe { libc::sched_getscheduler(0) } == libc::SCHED_OTHER;
        let entered = ordinary && set_scheduler(libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1);
        Self { entered, _here: PhantomData }
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        if self.entered {
            // Leaving is always permitted.
            set_scheduler(libc::SCHED_OTHER, 0);
        }
    }
}

/// Sets the scheduling of the calling thread. Returns whether that succeeded.
fn set_scheduler(policy: libc::c_int, priority: libc::c_int) -> bool {
    // SAFETY: a structure of integers, for which zero is valid. Other C libraries have more of them.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: `parameters` is a valid structure that outlives the call; zero is the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) == 0 }
}

fn set_flag(socket: impl AsFd, level: libc::c_int, option: libc::c_int, on: bool) -> io::Result<()> {
    set_value(socket, level, option, libc::c_int::from(on))
}

fn set_value(socket: impl AsFd, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the option takes a C int, and `value` is one that outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Processor time of this process with all its threads, in user mode and in the kernel. Zero if the system does not report it.
pub fn processor_time_of_process() -> (Duration, Duration) {
    processor_time(libc::RUSAGE_SELF)
}

/// Processor time of the calling thread, in user mode and in the kernel. Zero if the system does not report it.
pub fn processor_time_of_thread() -> (Duration, Duration) {
    processor_time(libc::RUSAGE_THREAD)
}

fn processor_time(of: libc::c_int) -> (Duration, Duration) {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the pointer is to writable memory of the right type.
    if unsafe { libc::getrusage(of, usage.as_mut_ptr()) } != 0 {
        return (Duration::ZERO, Duration::ZERO);
    }
    // SAFETY: a successful call fills it completely.
    let usage = unsafe { usage.assume_init() };
    let time = |time: libc::timeval| {
        Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0))
            + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
    };
    (time(usage.ru_utime), time(usage.ru_stime))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_real_time() -> bool {
        // SAFETY: takes and returns plain numbers; zero is the calling thread.
        unsafe { libc::sched_getscheduler(0) != libc::SCHED_OTHER }
    }

    #[test]
    fn the_loopback_interface_has_an_mtu_and_others_may_not_exist() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(interface_mtu(&socket, "lo").unwrap() >= 1_280);
        assert!(interface_mtu(&socket, "none-such").is_err());
        assert!(interface_mtu(&socket, "a-name-that-is-too-long").is_err());
        assert!(interfaces().iter().any(|name| name == "lo"));
    }

    #[test]
    fn a_thread_is_real_time_only_while_the_value_lives() {
        assert!(!is_real_time());
        let real_time = RealTime::enter();
        assert_eq!(is_real_time(), real_time.entered, "as root; others stay as they are");
        assert!(!RealTime::enter().entered || !real_time.entered, "entering twice changes nothing");
        drop(real_time);
        assert!(!is_real_time());
    }
}
