//! Settings of the 2004 paper's protocol alone.

use farhaul_units::SeqNo;

/// Settings of the 2004 paper's protocol alone. [`Config`](crate::Config) has those that all protocols share.
#[derive(Clone, Debug)]
pub struct Config {
    /// Largest flow window of a peer, packets. Default 262 144, which is 3 Gbit/s at an RTT of one second. Memory grows
    /// with arriving data, not with this value.
    pub max_flow_window: u32,
    /// Packets that must arrive beyond a gap before it is reported as loss (2004 paper §4.6). The wait is at most one
    /// RTT. Default 0: a gap is reported at once.
    pub reorder_tolerance: u32,
    /// Whether this side warns a sender of a growing RTT (type 4). Default true.
    pub delay_warnings: bool,
    /// Fixes the sequence number of the first packet of connections opened by this side. Default random. For tests.
    pub initial_seq: Option<SeqNo>,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_flow_window: 262_144, reorder_tolerance: 0, delay_warnings: true, initial_seq: None }
    }
}
