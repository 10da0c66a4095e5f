//! How the directions of a pipe end, and whether a part of them may be missing.

use std::net::SocketAddr;

use farhaul::ConnectionLost;
use farhaul_transfer::internal::bond::BondedStream;
use farhaul_units::ByteSize;

use crate::exit::{Code, Fault};

/// The next step after a peer closed too early.
const WAIT_THERE: &str = "--wait there keeps the connection open until this side has sent everything";

/// What the end of this side's input ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// Its direction. The connection can end each direction alone.
    Apart,
    /// Both directions, if the input was not empty.
    Together,
    /// Nothing: the peer's close ends both.
    WithPeer,
}

impl Ends {
    /// Those of a connection. `waits` is the option of a side that leaves the end to its peer.
    pub(super) fn of(stream: &BondedStream, waits: bool) -> Self {
        match (stream.has_half_close(), waits) {
            (Ok(true), _) => Self::Apart,
            (_, true) => Self::WithPeer,
            (_, false) => Self::Together,
        }
    }

    /// Judges a connection that is over, and has received `arrived` bytes. `read` came from stdin, which the close cut off or
    /// not.
    ///
    /// # Errors
    /// A part of either direction may be missing.
    pub(super) fn judge(
        self,
        (stream, peer): (&BondedStream, SocketAddr),
        (is_cut_off, read): (bool, u64),
        arrived: u64,
    ) -> Result<(), Fault> {
        let acknowledged = stream.stats().map_or(0, |stats| stats.totals.bytes_acked);
        let missing = read.saturating_sub(acknowledged);
        if missing > 0 {
            return Err(undelivered(missing, peer));
        }
        if is_cut_off {
            return Err(cut_off(peer, read));
        }
        // A peer may close before it has read this side's offer of flows. That counts as an abort, and nothing is missing.
        let by_peer = |lost| matches!(lost, ConnectionLost::ClosedByPeer | ConnectionLost::Aborted);
        let closed_here = !stream.ending().ok().flatten().is_some_and(by_peer);
        if self == Self::Together && closed_here && arrived > 0 {
            return Err(rest_unknown(peer));
        }
        Ok(())
    }
}

/// The fault of a peer that closed before it had everything that was read from stdin.
fn undelivered(missing: u64, peer: SocketAddr) -> Fault {
    let missing = ByteSize(missing);
    let what = format!("{peer} closed before {missing} of the input had reached it: {WAIT_THERE}");
    Fault::new(Code::PeerLost, what)
}

/// The fault of an input that went on when the peer closed, after `read` bytes.
fn cut_off(peer: SocketAddr, read: u64) -> Fault {
    let next = match read {
        0 => format!("redirect the input of a side that only receives, < /dev/null; otherwise {WAIT_THERE}"),
        _ => WAIT_THERE.to_owned(),
    };
    let message = format!("{peer} closed before the end of the input, and the rest was not sent: {next}");
    Fault::new(Code::PeerLost, message)
}

/// The fault of a side that closed both directions although its peer was sending.
fn rest_unknown(peer: SocketAddr) -> Fault {
    let message = format!(
        "this side closed at the end of its input, and {peer} may have had more to send: one direction of this connection \
         cannot end alone. An encrypted pipe with the protocol udt can, and --wait here leaves the close to {peer}"
    );
    Fault::new(Code::PeerLost, message)
}
