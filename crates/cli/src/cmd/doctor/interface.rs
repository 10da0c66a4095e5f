//! Network interfaces: packet size and speed.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::finding::Finding;
use crate::cmd::kernel_file::number_in;

/// Addresses of documentation prefixes (RFC 5737, RFC 3849), so that their routes are the default ones.
const SOMEWHERE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];
/// The packet size of Ethernet, and the default of `--mtu`, bytes.
pub(super) const ETHERNET: u32 = 1_500;
/// Large packets of Ethernet, bytes.
pub(super) const JUMBO: u32 = 9_000;
/// From this speed on, packets of 1500 bytes keep a processor busy, Mbit/s.
const FAST: u32 = 10_000;

/// An interface, as the system describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    /// Largest packet in bytes; `None` if the system does not tell.
    pub(super) mtu: Option<u32>,
    /// Mbit/s; `None` for virtual interfaces, and if the link is down.
    pub(super) speed: Option<u32>,
}

impl Interface {
    /// The interface of this name.
    pub(super) fn named(name: &str) -> Self {
        let folder = format!("/sys/class/net/{name}");
        // TUN and other virtual devices tell a speed that they do not have.
        let is_real = fs::exists(format!("{folder}/device")).unwrap_or(false);
        let speed = number_in::<i64>(&format!("{folder}/speed")).filter(|_| is_real);
        let speed = speed.and_then(|speed| u32::try_from(speed).ok()).filter(|speed| *speed > 0);
        Self { name: name.to_owned(), mtu: number_in(&format!("{folder}/mtu")), speed }
    }

    /// The interface in a few words.
    pub(super) fn words(&self) -> String {
        let mtu =
            self.mtu.map_or_else(|| "packet size unknown".to_owned(), |mtu| format!("packets of up to {mtu} bytes"));
        match self.speed {
            Some(speed) if speed >= 1_000 => format!("{}, {mtu}, {} Gbit/s", self.name, f64::from(speed) / 1e3),
            Some(speed) => format!("{}, {mtu}, {speed} Mbit/s", self.name),
            None => format!("{}, {mtu}", self.name),
        }
    }
}

/// The interface of the default route. `packet`: the size of this user's packets, bytes. `None` on a machine without one.
pub(super) fn examine(packet: u32) -> Option<Finding> {
    let name = SOMEWHERE.into_iter().find_map(farhaul_udp::interface_name)?;
    Some(judge_interface(&Interface::named(&name), packet))
}

/// Small packets cost processor time, and those that do not fit are fragmented. `packet`: the size of this user's packets.
pub(super) fn judge_interface(interface: &Interface, packet: u32) -> Finding {
    let Interface { name, mtu, speed } = interface;
    let words = format!("default route: {}", interface.words());
    let finding = match mtu {
        Some(mtu) if *mtu < packet => {
            Finding::advice("interface", format!("{words}: Farhaul's packets of {packet} bytes are fragmented"))
                .fix(format!("export FARHAUL_MTU={mtu}"))
        }
        Some(mtu) if *mtu < JUMBO && speed.is_some_and(|speed| speed >= FAST) => Finding::advice(
            "interface",
            format!("{words}: if all devices on a path carry {JUMBO} bytes, those take less processor time"),
        )
        .fix(format!("sudo ip link set dev {name} mtu {JUMBO}")),
        Some(mtu) if *mtu >= JUMBO => {
            Finding::ok("interface", format!("{words}; --mtu {JUMBO} uses them where the whole path carries them"))
        }
        _ => Finding::ok("interface", words),
    };
    finding.with("interface", name.clone()).with("mtu_bytes", *mtu).with("speed_mbps", *speed)
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingState;
    use super::*;

    fn judged(mtu: Option<u32>, speed: Option<u32>) -> Finding {
        judge_interface(&Interface { name: "eth0".into(), mtu, speed }, ETHERNET)
    }

    #[test]
    fn ethernet_is_right_and_a_tunnel_needs_smaller_packets() {
        assert_eq!(judged(Some(1_500), Some(1_000)).state, FindingState::Ok);
        assert!(judged(Some(1_500), Some(2_500)).message.contains("2.5 Gbit/s"));
        let tunnel = judged(Some(1_420), None);
        assert_eq!((tunnel.state, tunnel.fix.as_deref()), (FindingState::Advice, Some("export FARHAUL_MTU=1420")));
        assert_eq!(judged(None, None).state, FindingState::Ok);
        let smaller = judge_interface(&Interface { name: "wg0".into(), mtu: Some(1_420), speed: None }, 1_420);
        assert_eq!(smaller.state, FindingState::Ok, "once the user has followed the advice");
    }

    #[test]
    fn a_fast_interface_may_have_larger_packets() {
        let fast = judged(Some(1_500), Some(10_000));
        assert_eq!(fast.fix.as_deref(), Some("sudo ip link set dev eth0 mtu 9000"));
        let jumbo = judged(Some(9_000), Some(10_000));
        assert!(jumbo.state == FindingState::Ok && jumbo.message.contains("--mtu 9000"), "{}", jumbo.message);
    }

    #[test]
    fn an_interface_that_does_not_exist_is_unknown() {
        let none = Interface::named("no such interface");
        assert_eq!((none.mtu, none.speed), (None, None));
    }
}
