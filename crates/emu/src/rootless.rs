//! The rights to make networks, for programs that root did not start.
//!
//! In a user namespace of its own a program may make networks and processes namespaces, whoever started it. It keeps the user and
//! the group that it has, so that its files stay what they are, and passes on to what it starts only the rights over networks.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities};

use crate::error::EmulateError;
use crate::namespace::{NetworkNamespace, ProcessNamespace};
use crate::network::DEFAULT_MTU;
use crate::sys;
use crate::tun::{self, Tun};

/// What making networks takes.
const NEEDED: CapabilitySet = CapabilitySet::SYS_ADMIN.union(CapabilitySet::NET_ADMIN);

/// What programs may do to the networks that they run in: configure them, open raw sockets (`ping`, `tcpdump`), listen on any port.
const PASSED_ON: [CapabilitySet; 3] =
    [CapabilitySet::NET_ADMIN, CapabilitySet::NET_RAW, CapabilitySet::NET_BIND_SERVICE];

/// Sees to it that this program may make networks. Whoever may already, as root, stays as it is; others go into a user namespace of
/// their own, if the system lets them. First it is tried in a child that ends at once: where this fails, nothing has changed.
///
/// To be called while the program has a single thread.
///
/// # Errors
/// The system does not permit it or has no TUN devices, or there are several threads.
pub fn acquire_rights() -> Result<(), EmulateError> {
    sys::try_in_a_child(|| acquire().and_then(|()| furnish_a_host())).map_err(explained)?;
    acquire().map_err(explained)
}

fn acquire() -> io::Result<()> {
    if capabilities(None)?.effective.contains(NEEDED) {
        return Ok(());
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    sys::leave_users()?;
    // Without this nobody may choose groups (user_namespaces(7)).
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    pass_rights_on()
}

/// Programs that are started from now on have the rights over their networks, although no root starts them.
fn pass_rights_on() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    PASSED_ON.into_iter().for_each(|right| sets.inheritable |= right);
    set_capabilities(None, sets)?;
    PASSED_ON.into_iter().try_for_each(|right| Ok(configure_capability_in_ambient_set(right, true)?))
}

/// All that a network takes, once.
fn furnish_a_host() -> io::Result<()> {
    let addresses = (Ipv4Addr::new(10, 77, 0, 1), Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1));
    NetworkNamespace::new(|| Tun::new(addresses.0, addresses.1, DEFAULT_MTU))?;
    ProcessNamespace::new().map(drop)
}

/// What the system meant.
fn explained(error: io::Error) -> EmulateError {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        _ if tun::refused_with(&error) => EmulateError::NoTun(error),
        // Namespaces are not allowed, limited to none (the limits answer with these two), or not built in.
        Some(Errno::PERM | Errno::ACCESS | Errno::NOSPC | Errno::USERS | Errno::NOSYS | Errno::INVAL) => {
            EmulateError::NoPermission(error)
        }
        _ => EmulateError::System { what: "trying whether a network can be made", source: error },
    }
}
