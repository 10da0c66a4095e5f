//! A TUN device: the network interface of a host. This program acts as its cable.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};

use crate::netlink;
use crate::packet::virtio::GsoTypes;
use crate::sys::{self, offload};

/// The interface name on every host.
pub(crate) const INTERFACE: &str = "tun0";
/// Length of a host's queue to the emulator, in packets: 20 ms of 5 Gbit/s in packets of 1500 bytes.
///
/// The emulator polls every 75 to 100 µs, in which an unpaced sender can queue some hundred packets.
const QUEUE: u32 = 10_000;
/// All addresses of a network share one subnet per family, so that hosts need no further routes.
const IPV4_PREFIX: u8 = 16;
const IPV6_PREFIX: u8 = 64;

/// An open TUN device. It exists as long as this value.
#[derive(Debug)]
pub(crate) struct Tun {
    device: OwnedFd,
    /// The types of large packets that the system accepts.
    gso_types: GsoTypes,
}

impl Tun {
    /// Makes a device in the calling thread's network and switches it on.
    pub(crate) fn new(ipv4: Ipv4Addr, ipv6: Ipv6Addr, mtu: u32) -> io::Result<Self> {
        let device = device()?;
        sys::become_tun(device.as_fd(), INTERFACE)?;
        // Older systems segment UDP themselves, and accept no large UDP packets either.
        let udp = sys::set_offloads(device.as_fd(), offload::CHECKSUMS | offload::TCP | offload::UDP).is_ok();
        if !udp {
            sys::set_offloads(device.as_fd(), offload::CHECKSUMS | offload::TCP)?;
        }
        netlink::set_sizes(INTERFACE, mtu, QUEUE)?;
        netlink::switch("lo", true)?;
        netlink::add_address(INTERFACE, ipv4.into(), IPV4_PREFIX)?;
        netlink::switch(INTERFACE, true)?;
        // On a system without IPv6 the hosts have none either.
        let _ = netlink::add_address(INTERFACE, ipv6.into(), IPV6_PREFIX);
        Ok(Self { device, gso_types: GsoTypes { udp, ..GsoTypes::ALL } })
    }

    /// The types of large packets that the host accepts.
    pub(crate) fn gso_types(&self) -> GsoTypes {
        self.gso_types
    }

    /// The next packet from the host, behind its virtio header.
    ///
    /// # Errors
    /// `WouldBlock` if there is none.
    pub(crate) fn read(&self, parts: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        Ok(rustix::io::readv(&self.device, parts)?)
    }

    /// Gives a packet to the host, behind its virtio header.
    pub(crate) fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        rustix::io::writev(&self.device, parts)?;
        Ok(())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Opens the file that becomes a device.
fn device() -> io::Result<OwnedFd> {
    Ok(open("/dev/net/tun", OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?)
}

/// Whether `error` comes from TUN devices and not from the namespace around them. They cannot be opened here either.
pub(crate) fn refused_with(error: &io::Error) -> bool {
    device().is_err_and(|refusal| refusal.raw_os_error() == error.raw_os_error())
}

/// Packets that overflowed the transmit queue of the interface in the calling thread's network, since it exists.
pub(crate) fn overflows() -> io::Result<u64> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    overflows_in(&table).ok_or_else(|| io::Error::other("/proc/thread-self/net/dev does not list the interface"))
}

/// The fourth of the numbers about sending, behind eight about receiving.
fn overflows_in(table: &str) -> Option<u64> {
    let numbers = table.lines().find_map(|line| line.trim_start().strip_prefix(INTERFACE)?.strip_prefix(':'))?;
    numbers.split_whitespace().nth(8 + 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflows_are_read_from_the_right_column() {
        let table = "Inter-|   Receive                      |  Transmit\n    \
             lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  \
             tun0:  100 1 0 0 0 0 0 0  200 2 0 37 0 0 0 0\n";
        assert_eq!(overflows_in(table), Some(37));
        assert_eq!(overflows_in("lo: 1 2 3"), None);
    }
}
