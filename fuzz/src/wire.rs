//! The decoders of UDT4.

use bolero::check;
use farhaul_wire::udt4::{self, Handshake, LossList, Packet, encode_losses};

/// A little more than a datagram on Ethernet carries.
const MAX_DATAGRAM: usize = 1_500;

#[test]
fn packet() {
    check!().with_max_len(MAX_DATAGRAM).with_iterations(1_000).for_each(|datagram: &[u8]| {
        let Ok(packet) = Packet::decode(datagram) else { return };
        let (control, destination) = match packet {
            Packet::Data { header, .. } => (false, header.destination),
            Packet::Control { destination, .. } => (true, destination),
        };
        assert_eq!(udt4::is_control(datagram), control);
        assert_eq!(udt4::destination(datagram), Some(destination));

        let mut encoded = Vec::new();
        packet.encode(&mut encoded);
        assert_eq!(Packet::decode(&encoded), Ok(packet));
        // An answer is never longer than what it repeats, but for the pad.
        assert!(encoded.len() <= datagram.len() + 4);
        assert!(!packet.to_string().contains('\n'));
    });
}

#[test]
fn loss_list() {
    check!().with_max_len(MAX_DATAGRAM).with_iterations(1_000).for_each(|body: &[u8]| {
        let Ok(list) = LossList::from_body(body) else { return };
        assert_eq!(list.as_body(), body);
        let words = body.len() / 4;
        let losses: Vec<_> = list.iter().collect();
        assert!((1..=words).contains(&losses.len()));
        assert!(losses.iter().all(|range| !range.is_empty()));

        let mut encoded = Vec::new();
        assert_eq!(encode_losses(losses.iter().copied(), words, &mut encoded), losses.len());
        assert!(LossList::from_body(&encoded).expect("losses were written").iter().eq(losses));
    });
}

#[test]
fn handshake() {
    check!().with_max_len(2 * Handshake::LEN).with_iterations(1_000).for_each(|body: &[u8]| {
        let Ok(handshake) = Handshake::decode_body(body) else { return };
        let mut encoded = Vec::new();
        handshake.encode_body(&mut encoded);
        assert_eq!(encoded, body);
    });
}
