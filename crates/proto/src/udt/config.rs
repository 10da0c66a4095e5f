//! Settings of UDT4 alone.

use farhaul_units::{AckNo, Duration, MsgNo, SeqNo};

/// Settings of UDT4 alone. [`Config`](crate::Config) has those that all protocols share.
#[derive(Clone, Debug)]
pub struct Config {
    /// Largest flow window of a peer, packets (`UDT_FC`). Default 262 144, which is 3 Gbit/s at an RTT of one second.
    /// Memory grows with arriving data, not with this value.
    pub max_flow_window: u32,
    /// Longest time for a rendezvous. Default 30 s, as in libudt.
    pub rendezvous_timeout: Duration,
    /// Packets that must arrive beyond a gap before it is reported as loss (2004 paper §4.6). The wait is at most one
    /// RTT. Default 0: a gap is reported at once, unless the path has reordered packets recently. Then the report waits
    /// as long as reordered packets were late.
    pub reorder_tolerance: u32,
    /// Withholds a packet of plain streams now and then until the peer reports its loss. A peer that acknowledges it before that
    /// claims what it cannot have, and loses the connection (attack B8). The controller hears nothing of it. Default false, as in
    /// the papers.
    pub withhold_packets: bool,
    /// Fixes the sequence number of the first packet of connections opened by this side. Default random. For tests.
    pub initial_seq: Option<SeqNo>,
    /// Number of the first acknowledgement of a connection. Default 1, as in libudt. For tests.
    pub initial_ack: AckNo,
    /// Number of the first message of a connection. Default 1, as in libudt. For tests.
    pub initial_message: MsgNo,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_flow_window: 262_144,
            rendezvous_timeout: Duration::from_secs(30),
            reorder_tolerance: 0,
            withhold_packets: false,
            initial_seq: None,
            initial_ack: AckNo::FIRST,
            initial_message: MsgNo::FIRST,
        }
    }
}
