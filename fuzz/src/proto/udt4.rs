//! UDT4: packets of its peers and of attackers.

use farhaul_proto::{Config, ConnectOptions, Endpoint, Entropy, Mode, udt};
use farhaul_units::Rng;
use farhaul_wire::udt4::{Control, Handshake, Largest, Request, SocketId, SocketType, Timestamp, destination};

use super::protocol::{FIRST, Near, Protocol, some_number};
use super::script::Script;

/// A number outside the control packet types that stands for data.
const DATA: u8 = 9;

/// The protocol.
pub(super) struct Udt4;

impl Protocol for Udt4 {
    const MODES: &'static [Mode] = &[Mode::Stream, Mode::Message];
    const MAX_SEQ: u32 = 0x7FFF_FFFF;

    fn config() -> Config {
        Config::default()
    }

    fn endpoint(config: Config, entropy: Entropy) -> Endpoint {
        udt::endpoint(config, entropy)
    }

    fn options(mode: Mode, rendezvous: bool) -> ConnectOptions {
        ConnectOptions { mode, rendezvous }
    }

    fn id_in(datagram: &[u8]) -> Option<[u8; 4]> {
        destination(datagram).filter(|id| !id.is_none()).map(|id| id.value().to_be_bytes())
    }

    fn id_announced(answer: &[u8]) -> Option<[u8; 4]> {
        match Control::decode(answer) {
            Ok((_, _, Control::Handshake(answer))) if answer.request == Request::Conclusion => {
                Some(answer.socket_id.value().to_be_bytes())
            }
            _ => None,
        }
    }

    fn claim_id(datagram: &mut [u8], id: [u8; 4]) {
        if let Some(word) = datagram.get_mut(12..16) {
            word.copy_from_slice(&id);
        }
    }

    fn is_unaddressed(datagram: &[u8]) -> bool {
        destination(datagram).is_none_or(SocketId::is_none)
    }

    fn introduction(host: u8, mode: Mode, answer: Option<&[u8]>) -> Vec<u8> {
        let mut call = Handshake {
            version: Handshake::VERSION,
            socket_type: if mode == Mode::Stream { SocketType::Stream } else { SocketType::Dgram },
            isn: FIRST,
            mss: 1500,
            flow_window: 8192,
            request: Request::Induction,
            socket_id: SocketId::new(host.into()),
            cookie: 0,
            peer_ip: [10, 0, 0, 9].into(),
            largest: Largest::Unsaid,
            wants_receipts: false,
        };
        if let Some(Ok((_, _, Control::Handshake(answer)))) = answer.map(Control::decode) {
            call.request = Request::Conclusion;
            call.cookie = answer.cookie;
        }
        let mut bytes = Vec::new();
        Control::Handshake(call).encode(Timestamp::ZERO, SocketId::NONE, &mut bytes);
        bytes
    }

    fn forge(kind: u8, id: [u8; 4], near: &Near<'_>, script: &mut Script<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        if kind & 1 == 0 {
            bytes.extend((0x8000_0000 | u32::from(kind >> 1 & 0xF) << 16).to_be_bytes());
        } else {
            bytes.extend(near(script).to_be_bytes());
        }
        bytes.extend(script.word().to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(id);
        let words = script.byte();
        for _ in 0..words % 13 {
            let word = if words & 0x10 == 0 { near(script) } else { script.word() };
            let marked = u32::from(words & 0x20 != 0 && bytes.len().is_multiple_of(8)) << 31;
            bytes.extend((word | marked).to_be_bytes());
        }
        bytes
    }

    fn plausible(rng: &mut Rng) -> Vec<u8> {
        let mut bytes = Vec::new();
        let kind = rng.below(10) as u8;
        let words = match kind {
            0 => 12,
            2 => [1, 4, 6][rng.below(3) as usize],
            7 => 2,
            3 | 4 => 1 + rng.below(7),
            _ => rng.below(2),
        };
        let payload = if kind == DATA { rng.below(100) as usize } else { 0 };
        if kind == DATA {
            bytes.extend(FIRST.plus(rng.below(40) as u32).value().to_be_bytes());
            bytes.extend([[0xC0, 0x80, 0x00, 0x40][rng.below(4) as usize], 0, 0, rng.below(6) as u8]);
        } else {
            bytes.extend([0x80, kind, 0, 0, 0, 0, 0, rng.below(6) as u8]);
        }
        bytes.extend([0; 8]);
        for at in 0..words {
            let begins_range = u32::from(kind == 3 && at % 2 == 0 && rng.below(2) == 0) << 31;
            bytes.extend((some_number(rng) | begins_range).to_be_bytes());
        }
        bytes.extend(std::iter::repeat_n(1, payload));
        bytes
    }
}
