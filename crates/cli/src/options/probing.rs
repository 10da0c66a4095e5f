//! Options of the verbs that measure a path by streams of their own: `stream` and `profile`.

use std::net::SocketAddr;

use clap::Args;
use clap::builder::BoolishValueParser;
use farhaul_transfer::internal::control::datagram_in;

use super::transport::packet_size;
use super::{SecurityOptions, ServerKeys};
use crate::values::HostPort;

/// Options of every verb that sends measured streams.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Probing {
    /// Address of the remote end: `farhaul bench --listen`
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
    #[command(flatten)]
    pub(crate) server_keys: ServerKeys,
}

impl Probing {
    /// The datagram of a stream in each packet to `peer`, in bytes.
    pub(crate) fn datagram(&self, peer: SocketAddr) -> u16 {
        datagram_in(self.mtu, peer, self.security.plain)
    }
}
