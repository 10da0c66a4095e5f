//! Options of the verbs that measure a path by streams of their own: `stream` and `profile`.

use std::net::SocketAddr;

use clap::Args;
use clap::builder::BoolishValueParser;
use farhaul::probe::ENVELOPE;

use super::SecurityOptions;
use super::transport::packet_size;
use crate::values::HostPort;

/// IP and UDP headers of a datagram.
const IPV4_HEADERS: u32 = 28;
const IPV6_HEADERS: u32 = 48;
/// Longest payload of a UDP datagram over IPv4.
const LONGEST: u32 = 65_507;

/// Options of every verb that sends measured streams.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Probing {
    /// Address of the far end: `farhaul bench --listen`
    #[arg(long, value_name = "ADDR")]
    pub(crate) connect: HostPort,
    /// Size of the packets in bytes, IP and UDP headers included
    #[arg(long, env = "FARHAUL_MTU", value_name = "BYTES", default_value_t = 1500, value_parser = packet_size)]
    pub(crate) mtu: u32,
    /// Print one JSON record per line
    #[arg(long, env = "FARHAUL_JSON", value_parser = BoolishValueParser::new())]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) security: SecurityOptions,
}

impl Probing {
    /// The datagram of a stream in each packet to `peer`, in bytes.
    pub(crate) fn datagram(&self, peer: SocketAddr) -> u16 {
        datagram_in(self.mtu, peer, self.security.plain)
    }
}

/// The datagram of a measured stream in a packet of `mtu` bytes to `peer`: its UDP payload, and with encryption what the
/// envelope leaves of that.
pub(crate) fn datagram_in(mtu: u32, peer: SocketAddr, is_plain: bool) -> u16 {
    let headers = if peer.is_ipv4() { IPV4_HEADERS } else { IPV6_HEADERS };
    let envelope = if is_plain { 0 } else { ENVELOPE as u32 };
    u16::try_from(mtu.saturating_sub(headers).min(LONGEST).saturating_sub(envelope)).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_its_headers_and_the_longest_one_fits() {
        let of = |mtu, peer: &str| datagram_in(mtu, peer.parse().unwrap(), true);
        assert_eq!((of(1_500, "1.2.3.4:5"), of(9_000, "[::1]:5"), of(65_535, "1.2.3.4:5")), (1_472, 8_952, 65_507));
        let enclosed = |mtu, peer: &str| datagram_in(mtu, peer.parse().unwrap(), false);
        assert_eq!(enclosed(1_500, "1.2.3.4:5"), 1_472 - ENVELOPE as u16);
        assert_eq!(enclosed(65_535, "1.2.3.4:5"), 65_507 - ENVELOPE as u16, "the envelope fits as well");
    }
}
