//! Options of the verbs that measure a path by streams of their own: `stream` and `profile`.

use std::net::SocketAddr;

use clap::Args;
use clap::builder::BoolishValueParser;

use super::transport::packet_size;
use crate::exit::Fault;
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
    /// Do not encrypt; required, because measured streams cannot be encrypted yet
    #[arg(long, env = "FARHAUL_PLAIN", value_parser = BoolishValueParser::new())]
    plain: bool,
    /// Size of the packets in bytes, IP and UDP headers included
    #[arg(long, env = "FARHAUL_MTU", value_name = "BYTES", default_value_t = 1500, value_parser = packet_size)]
    pub(crate) mtu: u32,
    /// Print one JSON record per line
    #[arg(long, env = "FARHAUL_JSON", value_parser = BoolishValueParser::new())]
    pub(crate) json: bool,
}

impl Probing {
    /// Requires `--plain`, so that the user knows that anybody on the path can take part.
    pub(crate) fn require_plain(&self) -> Result<(), Fault> {
        if self.plain {
            return Ok(());
        }
        Err(Fault::usage(
            "measured streams cannot be encrypted yet: repeat the command with --plain if everybody on the path may read \
             and change them",
        ))
    }

    /// The UDP payload of each packet to `peer`, in bytes.
    pub(crate) fn datagram(&self, peer: SocketAddr) -> u16 {
        let headers = if peer.is_ipv4() { IPV4_HEADERS } else { IPV6_HEADERS };
        u16::try_from((self.mtu - headers).min(LONGEST)).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_its_headers_and_the_longest_one_fits() {
        let of = |mtu, peer: &str| {
            let connect = "h:1".parse().unwrap();
            Probing { connect, plain: true, mtu, json: false }.datagram(peer.parse().unwrap())
        };
        assert_eq!((of(1_500, "1.2.3.4:5"), of(9_000, "[::1]:5"), of(65_535, "1.2.3.4:5")), (1_472, 8_952, 65_507));
    }
}
