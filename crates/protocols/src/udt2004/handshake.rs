//! Translation between this protocol's handshake and UDT4's, whose exchange it uses: cookie, then opening.
//!
//! Both carry the same fields: version, sequence number, packet size, window, request, the caller's id, cookie. So
//! UDT4's caller and listener serve with their defences (attacks A1 to A7), and only the encoding differs.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use farhaul_proto::config::{Config, Mode};
use farhaul_proto::endpoint::handshake::{Offer, mss_towards};
use farhaul_units::SeqNo;
use farhaul_wire::{udt4, udt2004};

/// The handshake in UDT4's terms. The 30 bits of the sequence number stand for themselves, because both directions
/// start with that number.
pub(super) fn to_udt4(packet: &udt2004::Handshake) -> udt4::Handshake {
    let is_ours = packet.version == udt2004::Handshake::VERSION;
    udt4::Handshake {
        version: if is_ours { udt4::Handshake::VERSION } else { 0 },
        socket_type: udt4::SocketType::Stream,
        isn: SeqNo::new(packet.isn.value()),
        mss: packet.mtu,
        flow_window: packet.flow_window,
        request: match packet.request {
            udt2004::Request::Cookie => udt4::Request::Induction,
            udt2004::Request::Open => udt4::Request::Conclusion,
            udt2004::Request::Refused => udt4::Request::Refused,
        },
        socket_id: udt4::SocketId::new(packet.connection),
        cookie: packet.cookie,
        peer_ip: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        largest: udt4::Largest::Unsaid,
        wants_receipts: false,
    }
}

/// The handshake in this protocol's terms. A refusal of another version names the version of this side.
pub(super) fn from_udt4(packet: &udt4::Handshake) -> udt2004::Handshake {
    udt2004::Handshake {
        version: udt2004::Handshake::VERSION,
        request: match packet.request {
            udt4::Request::Induction => udt2004::Request::Cookie,
            udt4::Request::Conclusion => udt2004::Request::Open,
            _ => udt2004::Request::Refused,
        },
        isn: packet.isn.into(),
        mtu: packet.mss,
        flow_window: packet.flow_window,
        connection: packet.socket_id.value(),
        cookie: packet.cookie,
    }
}

/// The handshake packet in this datagram, if any, in UDT4's terms.
pub(super) fn read_handshake(datagram: &[u8]) -> Option<udt4::Handshake> {
    // Checked first, because data packets come here as well.
    match udt2004::is_handshake(datagram).then(|| udt2004::Control::decode(datagram)) {
        Some(Ok(udt2004::Control::Handshake(packet))) => Some(to_udt4(&packet)),
        _ => None,
    }
}

/// This side's contribution to a handshake. The window is half of the buffer. The other half is for data that the
/// application has not read.
pub(super) fn offer((config, mss): (&Config, u32), peer: SocketAddr, isn: SeqNo, connection: udt4::SocketId) -> Offer {
    Offer {
        mode: Mode::Stream,
        isn,
        mss: mss_towards(peer.ip(), mss),
        largest: None,
        wants_receipts: false,
        is_ours: true,
        flow_window: (config.recv_window() / 2).max(2),
        max_flow_window: config.max_flow_window,
        socket_id: connection,
        peer,
    }
}
