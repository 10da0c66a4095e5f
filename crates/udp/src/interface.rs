//! The name, speed and largest packet of the interface towards a host, as Linux tells them.

use std::cmp::Reverse;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::Path;

use farhaul_units::Rate;

use crate::sys;

/// Bytes that Ethernet adds to a packet: preamble 8, header 14, check sequence 4, gap 12 (IEEE 802.3).
const FRAME: f64 = 38.0;
/// The flag of a route that leads nowhere (`RTF_REJECT` in linux/route.h).
const REJECT: u32 = 0x0200;
/// The interface of a host towards itself.
const LOOPBACK: &str = "lo";

/// The rate at which packets of `packet` bytes, headers of IP included, leave towards `peer`. `None` if the system does
/// not tell, if the peer is this host, or if the interface is a virtual one. TUN devices tell a speed that they do not
/// have.
pub fn interface_rate(peer: IpAddr, packet: u32) -> Option<Rate> {
    let folder = Path::new("/sys/class/net").join(interface_name(peer)?);
    folder.join("device").exists().then_some(())?;
    of_ethernet(&fs::read_to_string(folder.join("speed")).ok()?, packet)
}

/// The largest packet of the interface towards `peer` in bytes, headers of IP included. Without a peer, that of the interface that
/// carries the largest. `None` if the system does not tell, or for this host itself: there packets have no size that matters.
pub fn interface_mtu(peer: Option<IpAddr>) -> Option<u32> {
    let any = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).or_else(|_| UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)));
    let socket = any.ok()?;
    let mtu = |name: &str| sys::interface_mtu(&socket, name).ok();
    match peer {
        Some(peer) => mtu(&interface_name(peer)?),
        // A confined program reads no files below /proc.
        None => sys::interfaces().iter().filter(|name| *name != LOOPBACK).filter_map(|name| mtu(name)).max(),
    }
}

/// The name of the interface through which packets leave towards `peer`, by the main routing table. `None` if the system
/// does not tell, has no route, or if `peer` is this host.
pub fn interface_name(peer: IpAddr) -> Option<String> {
    let peer = peer.to_canonical();
    if peer.is_loopback() {
        return None;
    }
    let table = match peer {
        IpAddr::V4(_) => "/proc/thread-self/net/route",
        IpAddr::V6(_) => "/proc/thread-self/net/ipv6_route",
    };
    let table = fs::read_to_string(table).ok()?;
    let name = match peer {
        IpAddr::V4(peer) => device_v4(&table, peer),
        IpAddr::V6(peer) => device_v6(&table, peer),
    }?;
    (name != LOOPBACK).then(|| name.to_owned())
}

/// The rate of packets on an Ethernet whose file `speed` has this text: Mbit/s, or -1.
fn of_ethernet(speed: &str, packet: u32) -> Option<Rate> {
    let megabits = speed.trim().parse::<u32>().ok().filter(|megabits| *megabits > 0)?;
    let share = f64::from(packet) / (f64::from(packet) + FRAME);
    Some(Rate::from_bits_per_second((f64::from(megabits) * 1e6 * share) as u64))
}

/// The device of the most specific route in `/proc/net/route`, and of the preferred one among those: a line of name,
/// destination, gateway, flags, two counters, metric and mask. Addresses are 32-bit words of this machine in hexadecimal.
fn device_v4(table: &str, peer: Ipv4Addr) -> Option<&str> {
    let peer = u32::from_ne_bytes(peer.octets());
    let route = |line| {
        let fields: Vec<&str> = str::split_ascii_whitespace(line).collect();
        let [name, destination, _, flags, _, _, metric, mask, ..] = fields[..] else { return None };
        let [destination, flags, mask] = [hexadecimal(destination)?, hexadecimal(flags)?, hexadecimal(mask)?];
        let metric = metric.parse::<u32>().ok()?;
        (peer & mask == destination && flags & REJECT == 0).then_some(((mask.count_ones(), Reverse(metric)), name))
    };
    table.lines().filter_map(route).max_by_key(|(rank, _)| *rank).map(|(_, name)| name)
}

/// The same in `/proc/net/ipv6_route`: destination, prefix length, three more fields, metric, two counters, flags, name.
fn device_v6(table: &str, peer: Ipv6Addr) -> Option<&str> {
    let route = |line| {
        let fields: Vec<&str> = str::split_ascii_whitespace(line).collect();
        let [destination, prefix, _, _, _, metric, _, _, flags, name] = fields[..] else { return None };
        let destination = u128::from_str_radix(destination, 16).ok()?;
        let [prefix, metric, flags] = [hexadecimal(prefix)?, hexadecimal(metric)?, hexadecimal(flags)?];
        let mask = u128::MAX.checked_shl(128_u32.checked_sub(prefix)?).unwrap_or(0);
        let fits = u128::from(peer) & mask == destination && flags & REJECT == 0;
        fits.then_some(((prefix, Reverse(metric)), name))
    };
    table.lines().filter_map(route).max_by_key(|(rank, _)| *rank).map(|(_, name)| name)
}

fn hexadecimal(field: &str) -> Option<u32> {
    u32::from_str_radix(field, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of a little-endian machine: a default route, and a network of 24 bits.
    const V4: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
        eth1\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
    const V6: &str = "20010db8000000000000000000000000 20 00000000000000000000000000000000 00 \
        00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth1\n\
        00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
        fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0\n";

    #[test]
    #[cfg(target_endian = "little")]
    fn the_most_specific_route_decides() {
        assert_eq!(device_v4(V4, Ipv4Addr::new(10, 0, 0, 9)), Some("eth1"));
        assert_eq!(device_v4(V4, Ipv4Addr::new(10, 0, 1, 9)), Some("eth0"));
        assert_eq!(device_v6(V6, "2001:db8::1".parse().unwrap()), Some("eth1"));
        assert_eq!(device_v6(V6, "2001:db9::1".parse().unwrap()), Some("eth0"));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn among_equal_routes_the_preferred_one_decides_and_those_that_lead_nowhere_do_not_count() {
        let v4 = "eth0 00000000 010011AC 0003 0 0 600 00000000 0 0 0\neth1 00000000 010011AC 0003 0 0 100 00000000 0 0 0\n\
            lo 00000000 00000000 0201 0 0 0 00000000 0 0 0\n";
        assert_eq!(device_v4(v4, Ipv4Addr::new(10, 0, 0, 9)), Some("eth1"));
        let nowhere = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
            00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n";
        assert_eq!(device_v6(&format!("{V6}{nowhere}"), "2001:db9::1".parse().unwrap()), Some("eth0"));
        assert_eq!(device_v6(nowhere, "2001:db9::1".parse().unwrap()), None);
    }

    #[test]
    fn a_table_without_a_route_or_without_sense_names_no_device() {
        assert_eq!(device_v4("Iface\tDestination\n", Ipv4Addr::LOCALHOST), None);
        assert_eq!(device_v4("", Ipv4Addr::LOCALHOST), None);
        assert_eq!(device_v6("0 81 a\nx y z\n", Ipv6Addr::LOCALHOST), None);
    }

    #[test]
    fn packets_leave_room_for_frames() {
        let gigabit = |packet| of_ethernet("1000\n", packet).map(Rate::bits_per_second);
        assert_eq!((gigabit(1_500), gigabit(9_000)), (Some(975_292_587), Some(995_795_529)));
    }

    #[test]
    fn an_unknown_speed_is_none() {
        for text in ["-1\n", "0\n", "", "fast"] {
            assert_eq!(of_ethernet(text, 1_500), None, "{text:?}");
        }
    }

    #[test]
    fn this_host_has_no_interface_towards_itself() {
        assert_eq!(interface_rate(IpAddr::V4(Ipv4Addr::LOCALHOST), 1_500), None);
        assert_eq!(interface_rate("::ffff:127.0.0.1".parse().unwrap(), 1_500), None);
        assert_eq!(interface_mtu(Some(IpAddr::V4(Ipv4Addr::LOCALHOST))), None);
        assert_eq!(interface_mtu(Some(IpAddr::V6(Ipv6Addr::LOCALHOST))), None);
    }
}
