//! Streams of SABUL: their settings.

use std::time::Duration;

use farhaul_proto::Config;
use farhaul_units::Rate;

/// Bytes of a block between a thread and the session.
pub(super) const BLOCK: usize = 256 << 10;
/// Blocks that wait between a thread and the session.
pub(super) const BLOCKS: usize = 8;

/// The settings of a stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamTerms {
    /// Longest time for the opening.
    pub connect_timeout: Duration,
    /// Longest silence of the peer.
    pub peer_timeout: Duration,
    /// Cap on the rate of this side, if it sends.
    pub rate: Option<Rate>,
    /// Cap on the buffer of a stream, bytes. The default of the transport if `None`.
    pub buffer: Option<u64>,
}

impl StreamTerms {
    pub(super) fn config(&self) -> Config {
        let default = Config::default();
        Config {
            connect_timeout: self.connect_timeout,
            peer_timeout: self.peer_timeout,
            max_rate: self.rate,
            send_buffer: self.buffer.unwrap_or(default.send_buffer),
            recv_buffer: self.buffer.unwrap_or(default.recv_buffer),
            ..default
        }
    }
}
