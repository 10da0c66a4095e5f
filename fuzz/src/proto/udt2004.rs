//! The protocol of 2004: packets of its peers and of attackers.

use farhaul_proto::{Config, ConnectOptions, Endpoint, Entropy, Mode};
use farhaul_protocols::udt2004::{self, default_config};
use farhaul_units::Rng;
use farhaul_wire::udt2004::{
    Ack, Control, Handshake, LossList, LossRange, Packet, Request, SeqNo30, encode_data_header, encode_losses,
};

use super::protocol::{FIRST, Near, Protocol, some_number};
use super::script::Script;

/// The protocol.
pub(super) struct Udt2004;

impl Protocol for Udt2004 {
    const MODES: &'static [Mode] = &[Mode::Stream];
    const MAX_SEQ: u32 = SeqNo30::MAX.value();

    fn config() -> Config {
        default_config()
    }

    fn endpoint(config: Config, entropy: Entropy) -> Endpoint {
        udt2004::endpoint(udt2004::Options::default(), config, entropy)
    }

    fn options(_mode: Mode, _rendezvous: bool) -> ConnectOptions {
        ConnectOptions::default()
    }

    fn id_in(datagram: &[u8]) -> Option<[u8; 4]> {
        match Control::decode(datagram) {
            Ok(Control::Handshake(Handshake { connection, .. }) | Control::Close { connection, .. }) => {
                Some(connection.to_be_bytes())
            }
            _ => None,
        }
    }

    fn claim_id(datagram: &mut [u8], id: [u8; 4]) {
        let at = match datagram.first().map(|byte| byte >> 4) {
            Some(0b1000) => 24..28,
            Some(0b1101) => 4..8,
            _ => return,
        };
        if let Some(word) = datagram.get_mut(at) {
            word.copy_from_slice(&id);
        }
    }

    /// Packets have no connection id; the address identifies the connection.
    fn is_unaddressed(_datagram: &[u8]) -> bool {
        true
    }

    fn introduction(host: u8, _mode: Mode, answer: Option<&[u8]>) -> Vec<u8> {
        let mut call = Handshake {
            version: Handshake::VERSION,
            request: Request::Cookie,
            isn: FIRST.into(),
            mtu: 1500,
            flow_window: 8192,
            connection: host.into(),
            cookie: 0,
        };
        if let Some(Ok(Control::Handshake(answer))) = answer.map(Control::decode) {
            call.request = Request::Open;
            call.cookie = answer.cookie;
        }
        encoded(Control::Handshake(call))
    }

    fn forge(kind: u8, id: [u8; 4], near: &Near<'_>, script: &mut Script<'_>) -> Vec<u8> {
        let seq = SeqNo30::new(near(script));
        if kind & 1 != 0 {
            return data(seq, usize::from(script.byte()));
        }
        match kind >> 1 & 0b111 {
            0 => handshake(id, seq, script),
            2 => {
                let (id, speed) = (u16::from(script.byte()), script.word());
                let rtt = core::time::Duration::from_micros(script.word().into());
                encoded(Control::Ack(Ack { id, seq, rtt, arrival_speed: speed, capacity: script.word() }))
            }
            3 => {
                let count = usize::from(script.byte() % 8);
                let lens = script.bytes(count);
                losses(lens.iter().scan(seq, |next, &len| {
                    let first = next.plus(u32::from(len >> 4));
                    *next = first.plus(u32::from(len & 0xF));
                    Some(LossRange { first, end: *next })
                }))
            }
            5 => {
                let acked = SeqNo30::new(near(script));
                encoded(Control::Close { connection: u32::from_be_bytes(id), end: seq, acked })
            }
            6 => encoded(Control::Ack2(script.byte().into())),
            // A keep-alive, a warning, or an undefined type, occasionally with extra bytes.
            other => {
                let mut bytes = vec![0x80 | other << 4, 0, 0, 0];
                let excess = usize::from(script.byte().saturating_sub(240));
                bytes.extend(script.bytes(excess));
                bytes
            }
        }
    }

    fn plausible(rng: &mut Rng) -> Vec<u8> {
        let kind = rng.below(9) as u8;
        let seq = SeqNo30::new(some_number(rng));
        match kind {
            2 => {
                let (id, rtt) = (rng.below(6) as u16, core::time::Duration::from_micros(rng.next_u32().into()));
                let (arrival_speed, capacity) = (rng.next_u32() >> rng.below(32), rng.next_u32() >> rng.below(32));
                encoded(Control::Ack(Ack { id, seq, rtt, arrival_speed, capacity }))
            }
            3 => losses((0..1 + rng.below(6)).map(|_| {
                let first = SeqNo30::new(some_number(rng));
                LossRange { first, end: first.plus(1 + rng.below(20) as u32) }
            })),
            8 => data(seq, rng.below(100) as usize),
            _ => {
                let words = match kind {
                    0 => 7,
                    5 => 3,
                    _ => rng.below(9) / 8,
                };
                let mut bytes = vec![0x80 | kind << 4, 0, 0, rng.below(6) as u8];
                bytes.extend((0..words).flat_map(|_| some_number(rng).to_be_bytes()));
                if kind == 0 {
                    bytes[4..12].copy_from_slice(&[0, 0, 0, 1, 0, 0, 0, rng.below(5) as u8]);
                }
                bytes
            }
        }
    }
}

pub(super) fn encoded(control: Control<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Packet::Control(control).encode(&mut bytes);
    bytes
}

pub(super) fn data(seq: SeqNo30, payload: usize) -> Vec<u8> {
    let mut bytes = encode_data_header(seq).to_vec();
    bytes.extend(std::iter::repeat_n(1, payload));
    bytes
}

pub(super) fn losses(ranges: impl Iterator<Item = LossRange>) -> Vec<u8> {
    let mut body = Vec::new();
    let (_, count) = encode_losses(ranges, 16, &mut body);
    LossList::from_body(count, &body).map_or_else(|_| Vec::new(), |list| encoded(Control::Nak(list)))
}

fn handshake(id: [u8; 4], isn: SeqNo30, script: &mut Script<'_>) -> Vec<u8> {
    let flags = script.byte();
    encoded(Control::Handshake(Handshake {
        version: Handshake::VERSION + u32::from(flags & 8 != 0),
        request: [Request::Cookie, Request::Open, Request::Refused, Request::Open][usize::from(flags & 3)],
        isn,
        mtu: if flags & 4 == 0 { 1500 } else { script.word() },
        flow_window: if flags & 16 == 0 { 8192 } else { script.word() },
        connection: u32::from_be_bytes(id) ^ u32::from(flags & 32 != 0),
        cookie: script.word(),
    }))
}
