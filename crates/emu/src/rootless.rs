//! The rights to make networks, for programs without root.
//!
//! A program may make network and process namespaces in its own user namespace, whoever started it. It keeps its user
//! and group, so that its files stay unchanged. Programs that it starts inherit only the rights over networks.

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

/// The capabilities needed to make networks.
const NEEDED: CapabilitySet = CapabilitySet::SYS_ADMIN.union(CapabilitySet::NET_ADMIN);

/// The capabilities that programs inside need: configure interfaces, open raw sockets (`ping`, `tcpdump`), listen on
/// any port.
const PASSED_ON: [CapabilitySet; 3] =
    [CapabilitySet::NET_ADMIN, CapabilitySet::NET_RAW, CapabilitySet::NET_BIND_SERVICE];

/// Acquires the rights to make networks.
///
/// A program that has them, as root does, stays as it is. Others move into their own user namespace if the system
/// permits it. A child process tries this first and exits at once. If it fails, this program is unchanged.
///
/// Call this while the program has a single thread.
///
/// # Errors
/// The system does not permit it or has no TUN devices, or there are several threads.
pub fn acquire_rights() -> Result<(), EmulateError> {
    check_rights()?;
    acquire().map_err(explained)
}

/// Checks in a child process whether [`acquire_rights`] would succeed. This program stays as it is.
///
/// Call this while the program has a single thread.
///
/// # Errors
/// As [`acquire_rights`].
pub fn check_rights() -> Result<(), EmulateError> {
    sys::try_in_a_child(|| acquire().and_then(|()| furnish_a_host())).map_err(explained)
}

fn acquire() -> io::Result<()> {
    if capabilities(None)?.effective.contains(NEEDED) {
        return Ok(());
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    sys::leave_users()?;
    // The kernel accepts the group map only after this (user_namespaces(7)).
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    pass_rights_on()
}

/// Grants programs started from now on the rights over their networks, although they do not run as root.
fn pass_rights_on() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    PASSED_ON.into_iter().for_each(|right| sets.inheritable |= right);
    set_capabilities(None, sets)?;
    PASSED_ON.into_iter().try_for_each(|right| Ok(configure_capability_in_ambient_set(right, true)?))
}

/// Makes one host to test every step.
fn furnish_a_host() -> io::Result<()> {
    let addresses = (Ipv4Addr::new(10, 77, 0, 1), Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1));
    NetworkNamespace::new(|| Tun::new(addresses.0, addresses.1, DEFAULT_MTU))?;
    ProcessNamespace::new().map(drop)
}

/// The meaning of an error of the system.
fn explained(error: io::Error) -> EmulateError {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        _ if tun::refused_with(&error) => EmulateError::NoTun(error),
        // Namespaces are forbidden, limited to zero (reported by these two codes), or not built in.
        Some(Errno::PERM | Errno::ACCESS | Errno::NOSPC | Errno::USERS | Errno::NOSYS | Errno::INVAL) => {
            EmulateError::NoPermission(error)
        }
        _ => EmulateError::System { what: "testing whether a network can be made", source: error },
    }
}
