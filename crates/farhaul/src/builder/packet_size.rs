//! The packet size of a port whose connections find it by probes.

use std::net::IpAddr;

use farhaul_proto::Config;

/// The first size: that of almost all paths, so nothing is lost until probes are answered.
const FIRST: u32 = 1_500;
/// The smallest first size. Every link of IPv6 carries it (RFC 8200, section 5), and so does almost every one of IPv4.
const LEAST: u32 = 1_280;
/// The largest size that is tried. Larger Ethernet frames are rare.
const LARGEST: u32 = 9_000;

/// Sets the first and the largest size by the interface towards `peer`, or by all interfaces if no peer is known. A port whose
/// interface leads to this host keeps the first size. If only the interface is unknown, its path may still become narrow.
pub(super) fn by_interface(config: &mut Config, peer: Option<IpAddr>) {
    let is_here = peer.is_some_and(|peer| peer.to_canonical().is_loopback());
    apply(config, farhaul_udp::interface_mtu(peer).or((!is_here).then_some(FIRST)));
}

fn apply(config: &mut Config, interface: Option<u32>) {
    config.mss = interface.map_or(FIRST, |mtu| mtu.clamp(LEAST, FIRST));
    config.largest_mss = interface.map(|mtu| mtu.clamp(config.mss, LARGEST));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_bounds_the_sizes() {
        let sizes = |interface| {
            let mut config = Config::default();
            apply(&mut config, interface);
            (config.mss, config.largest_mss)
        };
        assert_eq!(sizes(None), (1_500, None));
        assert_eq!(sizes(Some(1_500)), (1_500, Some(1_500)));
        assert_eq!(sizes(Some(1_420)), (1_420, Some(1_420)));
        assert_eq!(sizes(Some(9_000)), (1_500, Some(9_000)));
        assert_eq!(sizes(Some(65_536)), (1_500, Some(9_000)));
        assert_eq!(sizes(Some(576)), (1_280, Some(1_280)));
    }
}
