//! What the kernel offers to this process: offloads, open files, IPv6, networks of its own.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket as StdSocket};

use farhaul_emu::EmulateError;
use farhaul_udp::{Options, UdpSocket};
use rustix::process::{Resource, getrlimit};

use super::finding::Finding;
use crate::cmd::kernel_file::number_in;
use crate::output::human::count;

/// Datagrams of the test train, and bytes of each.
const TRAIN: usize = 20;
const SEGMENT: usize = 300;
/// Open files for the sessions of a daemon and the files of a tree.
const FILES: u64 = 1_024;
/// An address of the documentation prefix (RFC 3849), so that its route is the default one. Nothing is sent there.
const SOMEWHERE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

/// Segmentation and receive offload, tried on the loopback interface.
pub(super) fn offload() -> Finding {
    let socket = UdpSocket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Options::default());
    let Ok(socket) = socket else { return judge_offload(false, false) };
    // The far end of a train does not matter here: this socket itself.
    let sent = socket.send(socket.local_addr(), SEGMENT, &[0; TRAIN * SEGMENT]);
    let counters = socket.send_counters();
    judge_offload(sent.is_ok() && counters.segmentation && counters.fallbacks == 0, socket.receives_trains())
}

pub(super) fn judge_offload(sends: bool, receives: bool) -> Finding {
    let missing = "one system call per packet takes several times the processor time; a newer kernel helps";
    let finding = match (sends, receives) {
        (true, true) => Finding::ok("offload", "the kernel sends and receives trains of packets (UDP GSO and GRO)"),
        (true, false) => {
            Finding::advice("offload", format!("no receive offload (UDP GRO, from Linux 5.0 on): {missing}"))
        }
        (false, true) => {
            Finding::advice("offload", format!("no send offload (UDP GSO, from Linux 4.18 on): {missing}"))
        }
        (false, false) => {
            Finding::advice("offload", format!("no UDP offloads (GSO, GRO; from Linux 5.0 on): {missing}"))
        }
    };
    finding.with("gso", sends).with("gro", receives)
}

pub(super) fn open_files() -> Finding {
    let limit = getrlimit(Resource::Nofile);
    judge_open_files(limit.current, limit.maximum)
}

/// `now` and `most`: the soft and the hard limit; `None` for none.
pub(super) fn judge_open_files(now: Option<u64>, most: Option<u64>) -> Finding {
    let Some(limit) = now else { return Finding::ok("open_files", "no limit of open files") };
    let message = format!("{} open files at a time", count(limit));
    let finding = match most {
        _ if limit >= FILES => Finding::ok("open_files", message),
        Some(most) if most < FILES => {
            Finding::advice("open_files", message + " are few for a server; the limit is an administrator's")
                .fix(format!("sudo prlimit --nofile={FILES}:{FILES} --pid $$"))
        }
        _ => Finding::advice("open_files", message + " are few for a server").fix(format!("ulimit -n {FILES}")),
    };
    finding.with("open_files", limit)
}

pub(super) fn ipv6() -> Finding {
    let here = StdSocket::bind((Ipv6Addr::LOCALHOST, 0));
    let routed = StdSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).and_then(|socket| socket.connect((SOMEWHERE, 9)));
    judge_ipv6(here.is_ok(), routed.is_ok(), number_in("/proc/sys/net/ipv6/conf/all/disable_ipv6"))
}

/// `disabled`: the value of the system's switch; `None` without one.
pub(super) fn judge_ipv6(works: bool, has_route: bool, disabled: Option<u32>) -> Finding {
    match (works, has_route) {
        (true, true) => Finding::ok("ipv6", "works, with a route to other networks"),
        (true, false) => {
            Finding::ok("ipv6", "works on this machine, without a route to other networks: IPv4 alone leads there")
        }
        _ if disabled == Some(1) => {
            Finding::advice("ipv6", "switched off, so hosts with IPv6 addresses alone are out of reach")
                .fix("sudo sysctl -w net.ipv6.conf.all.disable_ipv6=0")
        }
        _ => Finding::ok("ipv6", "not in this system: IPv4 alone"),
    }
}

/// Whether `emulate`, `demo` and the lab may make networks.
pub(super) fn networks(rights: &Result<(), EmulateError>) -> Finding {
    let switches = Switches {
        most: number_in("/proc/sys/user/max_user_namespaces"),
        permitted: number_in("/proc/sys/kernel/unprivileged_userns_clone"),
        restricted: number_in("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
    };
    judge_networks(rights, switches)
}

/// Switches of the system that forbid namespaces; `None` for those that it does not have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Switches {
    most: Option<u64>,
    permitted: Option<u64>,
    restricted: Option<u64>,
}

pub(super) fn judge_networks(rights: &Result<(), EmulateError>, switches: Switches) -> Finding {
    const WITHOUT: &str = "`farhaul relay` emulates paths for UDP without any right";
    let advice = |why: &str| Finding::advice("emulation", format!("{why}; {WITHOUT}"));
    match rights {
        Ok(()) => Finding::ok("emulation", "this user may make networks for `farhaul emulate`"),
        Err(EmulateError::NoTun(source)) if source.kind() == ErrorKind::PermissionDenied => {
            advice("this user may not open /dev/net/tun for `farhaul emulate`").fix("sudo chmod 666 /dev/net/tun")
        }
        Err(EmulateError::NoTun(_)) => advice("no TUN devices for `farhaul emulate`").fix("sudo modprobe tun"),
        Err(EmulateError::NoPermission(_)) => {
            let denied = advice("this user may not make networks for `farhaul emulate`");
            match switches {
                Switches { most: Some(0), .. } => denied.fix("sudo sysctl -w user.max_user_namespaces=15000"),
                Switches { permitted: Some(0), .. } => denied.fix("sudo sysctl -w kernel.unprivileged_userns_clone=1"),
                Switches { restricted: Some(1), .. } => {
                    denied.fix("sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")
                }
                _ => denied.fix("sudo farhaul emulate"),
            }
        }
        Err(error) => advice(&format!("`farhaul emulate` does not work here: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingState;
    use super::*;

    #[test]
    fn each_missing_offload_is_named() {
        assert_eq!(judge_offload(true, true).state, FindingState::Ok);
        for (sends, receives, word) in [(true, false, "GRO"), (false, true, "GSO"), (false, false, "GSO, GRO")] {
            let finding = judge_offload(sends, receives);
            assert!(finding.state == FindingState::Advice && finding.message.contains(word), "{}", finding.message);
        }
    }

    #[test]
    fn few_open_files_are_raised_as_far_as_this_user_may() {
        assert_eq!(judge_open_files(Some(1_024), Some(4_096)).state, FindingState::Ok);
        assert_eq!(judge_open_files(None, None).state, FindingState::Ok);
        assert_eq!(judge_open_files(Some(256), Some(4_096)).fix.as_deref(), Some("ulimit -n 1024"));
        assert!(judge_open_files(Some(256), Some(256)).fix.unwrap().starts_with("sudo prlimit"));
    }

    #[test]
    fn ipv6_is_worth_a_word_only_if_it_can_be_switched_on() {
        assert_eq!(judge_ipv6(true, true, Some(0)).state, FindingState::Ok);
        assert!(judge_ipv6(true, false, Some(0)).message.contains("without a route"));
        assert_eq!(judge_ipv6(false, false, None).state, FindingState::Ok);
        let off = judge_ipv6(false, false, Some(1));
        assert!(off.state == FindingState::Advice && off.fix.unwrap().contains("disable_ipv6=0"));
    }

    #[test]
    fn the_switch_that_forbids_networks_is_the_one_to_turn() {
        let denied = Err(EmulateError::NoPermission(ErrorKind::PermissionDenied.into()));
        let none = Switches::default();
        for (switches, word) in [
            (Switches { most: Some(0), ..none }, "max_user_namespaces"),
            (Switches { most: Some(9), permitted: Some(0), ..none }, "unprivileged_userns_clone=1"),
            (Switches { restricted: Some(1), ..none }, "apparmor"),
            (none, "sudo farhaul"),
        ] {
            assert!(judge_networks(&denied, switches).fix.unwrap().contains(word), "{word}");
        }
        let no_tun = Err(EmulateError::NoTun(ErrorKind::NotFound.into()));
        assert_eq!(judge_networks(&no_tun, none).fix.as_deref(), Some("sudo modprobe tun"));
        let closed = Err(EmulateError::NoTun(ErrorKind::PermissionDenied.into()));
        assert_eq!(judge_networks(&closed, none).fix.as_deref(), Some("sudo chmod 666 /dev/net/tun"));
        assert_eq!(judge_networks(&Ok(()), none).state, FindingState::Ok);
    }
}
