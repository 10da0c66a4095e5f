//! The handshake between a caller and a listener, for UDT4 and the protocol of 2004. One small state machine per side.
//!
//! ```text
//! caller                          listener
//!   Induction  ── req 1 ─────────▶  (no state)
//!      ◀────────── req 1, cookie ──
//!   Conclusion ── req −1, cookie ▶  connection
//!      ◀────────── req −1 ─────────  (or req 1 with another cookie, under attack A1)
//! ```
//!
//! The state machines speak in UDT4's packets. The other protocol has the same fields and translates.

pub mod admission;
mod answer;
mod caller;
mod cookie;
mod listener;
mod prefix;
mod reception;

use core::net::{IpAddr, SocketAddr};

use farhaul_units::{Duration, SeqNo};
use farhaul_wire::udt4::{Handshake, Largest, Request, SocketId, SocketType};

pub use answer::Answer;
pub use caller::Caller;
pub use listener::Room;
pub(crate) use prefix::{Network, PrefixBudget};
pub use reception::Reception;

use self::listener::{Listener, Response};

use crate::config::Mode;
use crate::endpoint::connection::Name;
use crate::error::PeerIncompatible;

/// Time between two attempts of the same step. Source: UDT4 wire, §5.1.
pub(crate) const RETRY: Duration = Duration::from_millis(250);
/// Smallest accepted packet size in bytes, headers included. A handshake that offers less is refused.
///
/// Every IPv4 host accepts 576 bytes (RFC 791). Below that, the share of headers makes an attack on the processor (A5).
pub const MIN_MSS: u32 = 576;
/// An IPv6 header is this many bytes longer than the IPv4 header that UDT's packet size counts.
const IPV6_EXTRA: u32 = 20;
/// Smallest flow window: libudt never advertises less than two packets.
const MIN_WINDOW: u32 = 2;

/// This side's contribution to a handshake.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Stream or messages.
    pub mode: Mode,
    /// The number of its first packet.
    pub isn: SeqNo,
    /// Largest packet in bytes, headers of IP and UDP included.
    pub mss: u32,
    /// The largest packet that probes may find; `None` if the size is fixed.
    pub largest: Option<u32>,
    /// Whether this side wants receipts.
    pub wants_receipts: bool,
    /// Whether this side knows what Farhaul adds to UDT4.
    pub is_ours: bool,
    /// Flow window of this side, packets.
    pub flow_window: u32,
    /// Upper bound of packets in flight, whatever the peer's flow window.
    pub max_flow_window: u32,
    /// Its id in the packets of the peer.
    pub socket_id: SocketId,
    /// The address of the peer.
    pub peer: SocketAddr,
}

/// The parameters that both sides agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The peer's id in the packets of this side.
    pub peer_id: SocketId,
    /// Largest packet in bytes, headers of IP and UDP included.
    pub mss: u32,
    /// The largest packet that probes may find; `None` if one of the sides has a fixed size.
    pub largest: Option<u32>,
    /// The packet size that the peer requested.
    pub peer_mss: u32,
    /// Initial flow window of the peer, packets.
    pub flow_window: u32,
    /// Sequence number of this side's first packet.
    pub send_isn: SeqNo,
    /// Sequence number of the peer's first packet.
    pub recv_isn: SeqNo,
    /// RTT, if a request had exactly one answer.
    pub round_trip: Option<Duration>,
    /// What protection adds to packets.
    pub protection: ProtectionOverhead,
    /// Whether each direction of a stream can end alone.
    pub half_close: bool,
    /// Whether the peer wants receipts, and whether it sends them.
    pub wants_receipts: bool,
    /// Whether this side sends receipts.
    pub sends_receipts: bool,
    /// Whether the peer is known to be of Farhaul.
    pub is_ours: bool,
}

/// Bytes that packet protection adds to packets. Without protection they are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtectionOverhead {
    /// To each data packet. Packet sizes leave them out.
    pub data: u32,
    /// To each control packet, beyond those of a data packet of the same size.
    pub control_surplus: u32,
}

impl Offer {
    /// The name of the connection at this side.
    pub(crate) fn name(&self) -> Name {
        Name { key: self.socket_id.value().into(), peer: self.peer, mode: self.mode }
    }

    /// The handshake packet that carries this offer.
    pub(crate) fn packet(&self, request: Request, cookie: u32) -> Handshake {
        Handshake {
            version: Handshake::VERSION,
            socket_type: socket_type(self.mode),
            isn: self.isn,
            mss: self.mss,
            flow_window: self.flow_window,
            request,
            socket_id: self.socket_id,
            cookie,
            peer_ip: self.peer.ip(),
            largest: self.largest_to_say(),
            wants_receipts: self.wants_receipts,
        }
    }

    /// Only a side that has something to say shows that it is of Farhaul.
    fn largest_to_say(&self) -> Largest {
        match self.largest {
            Some(largest) => Largest::Offered(short(largest)),
            None if self.wants_receipts => Largest::Offered(0),
            None => Largest::Unsaid,
        }
    }

    /// The largest packet that probes may find with a peer that said `theirs`, beside its first size.
    pub(crate) fn largest_with(&self, theirs: Option<u32>, their_mss: u32) -> Option<u32> {
        let [ours, theirs] = [self.largest?, theirs?];
        Some(ours.min(theirs).max(self.mss.min(their_mss)))
    }

    /// The agreement with the peer's packet. Sizes are the smaller of both, within sane bounds (attacks A4, A5).
    pub fn agree(&self, packet: &Handshake, round_trip: Option<Duration>) -> Result<Agreed, PeerIncompatible> {
        if packet.mss < min_mss(self.peer.ip()) {
            return Err(PeerIncompatible::PacketSize(packet.mss));
        }
        Ok(Agreed {
            peer_id: packet.socket_id,
            mss: packet.mss.min(self.mss),
            largest: self.largest_with(packet.largest.said().map(u32::from), packet.mss),
            peer_mss: packet.mss,
            flow_window: packet.flow_window.clamp(MIN_WINDOW, self.max_flow_window.max(MIN_WINDOW)),
            send_isn: self.isn,
            recv_isn: packet.isn,
            round_trip,
            protection: ProtectionOverhead::default(),
            half_close: false,
            wants_receipts: packet.wants_receipts && self.is_ours,
            sends_receipts: self.wants_receipts && packet.largest.is_ours(),
            is_ours: packet.largest.is_ours() && self.is_ours,
        })
    }
}

/// A packet size for two bytes.
fn short(size: u32) -> u16 {
    u16::try_from(size).unwrap_or(u16::MAX)
}

/// The smallest packet size that a peer at `ip` may request. UDT counts 28 bytes of headers for both address families.
/// So a peer with the longer IPv6 header requests that much less.
pub(crate) fn min_mss(ip: IpAddr) -> u32 {
    if is_ipv6(ip) { MIN_MSS - IPV6_EXTRA } else { MIN_MSS }
}

/// The largest packet size to offer a peer at `ip` on a path with packets of `mss` bytes. The real headers must fit.
pub fn mss_towards(ip: IpAddr, mss: u32) -> u32 {
    if is_ipv6(ip) { mss.saturating_sub(IPV6_EXTRA) } else { mss }
}

/// Whether packets to `ip` carry an IPv6 header.
fn is_ipv6(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(_) => false,
        IpAddr::V6(ip) => ip.to_ipv4_mapped().is_none(),
    }
}

/// UDT's socket type for a mode.
pub(crate) const fn socket_type(mode: Mode) -> SocketType {
    match mode {
        Mode::Stream => SocketType::Stream,
        Mode::Message => SocketType::Dgram,
    }
}
