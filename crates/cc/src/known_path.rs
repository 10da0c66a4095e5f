//! What a connection has learned of a path, for the next connection over it (paper:rfc9959, careful resume).

use farhaul_units::{Duration, Rate};

/// A path as a connection has found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownPath {
    /// The largest rate that arrived in its last 10 to 20 seconds, bytes of all headers included.
    pub rate: Rate,
    /// Its minimum RTT.
    pub rtt: Duration,
}
