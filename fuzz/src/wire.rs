//! The decoders of all protocols.

use bolero::check;
use farhaul_wire::probe::{self, ANSWER_LEN, Kind, Probe};
use farhaul_wire::rbudp;
use farhaul_wire::udt4::{self, Handshake, LossList, Packet, encode_losses};
use farhaul_wire::udt2004;

/// A little more than the payload of a datagram on Ethernet.
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
        // An encoded packet is no longer than the decoded one, except for the pad.
        assert!(encoded.len() <= datagram.len() + 4);
        assert!(!packet.to_string().contains('\n'));
    });
}

#[test]
fn measured_streams() {
    check!().with_max_len(MAX_DATAGRAM).with_iterations(1_000).for_each(|input: &[u8]| {
        // Random bytes hardly ever begin with the word.
        let datagram = [&probe::WORD.to_be_bytes(), input].concat();
        let Ok(decoded) = Probe::decode(&datagram) else { return };
        assert!(probe::is_probe(&datagram) && datagram.len() >= ANSWER_LEN);
        let mut encoded = Vec::new();
        decoded.encode(&mut encoded);
        encoded.resize(encoded.len().max(ANSWER_LEN), 0);
        if !matches!(decoded.kind, Kind::Data { .. }) {
            assert_eq!((encoded.len(), Probe::decode(&encoded)), (ANSWER_LEN, Ok(decoded)));
        }
        assert_eq!(probe::payload(&datagram).len(), datagram.len() - probe::HEADER_LEN);
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

#[test]
fn packet_2004() {
    check!().with_max_len(MAX_DATAGRAM).with_iterations(1_000).for_each(|datagram: &[u8]| {
        let Ok(packet) = udt2004::Packet::decode(datagram) else { return };
        let control = matches!(packet, udt2004::Packet::Control(_));
        assert_eq!(udt2004::is_control(datagram), control);
        assert_eq!(udt2004::split_data(datagram).is_ok(), !control);

        let mut encoded = Vec::new();
        packet.encode(&mut encoded);
        assert_eq!(udt2004::Packet::decode(&encoded), Ok(packet));
        // Reserved bits are ignored and written as zero. All other content is preserved.
        assert_eq!(encoded.len(), datagram.len());
        assert_eq!(encoded.get(4..), datagram.get(4..));
    });
}

/// The number of losses in two bytes, as in the header, and the body.
#[test]
fn losses_2004() {
    check!().with_max_len(MAX_DATAGRAM).with_iterations(1_000).for_each(|input: &[u8]| {
        let Some((count, body)) = input.split_first_chunk() else { return };
        let count = u16::from_be_bytes(*count);
        let Ok(list) = udt2004::LossList::from_body(count, body) else { return };
        assert_eq!((list.as_body(), list.count()), (body, count));
        let words = body.len() / 4;
        let losses: Vec<_> = list.iter().collect();
        assert!((1..=words).contains(&losses.len()));
        let sum: u64 = losses.iter().map(|range| u64::from(range.len())).sum();
        assert!(losses.iter().all(|range| !range.is_empty()) && sum.min(u64::from(u16::MAX)) == u64::from(count));

        let mut encoded = Vec::new();
        let written = udt2004::encode_losses(losses.iter().copied(), words, &mut encoded);
        assert_eq!(written, (losses.len(), count));
        let again = udt2004::LossList::from_body(count, &encoded).expect("losses were written");
        assert!(again.iter().eq(losses));
    });
}

/// The number of packets in two bytes, the length of the pieces in one, and the bitmap.
#[test]
fn rbudp_bitmap() {
    check!().with_max_len(MAX_DATAGRAM).with_iterations(1_000).for_each(|input: &[u8]| {
        let Some((&[high, low, piece], bytes)) = input.split_first_chunk() else { return };
        let packets = u32::from(u16::from_be_bytes([high, low]));
        let mut reader = rbudp::BitmapReader::new(packets);
        let (mut missing, mut used) = (Vec::new(), 0);
        for piece in bytes.chunks(usize::from(piece).max(1)) {
            match reader.read(piece, |range| missing.push(range)) {
                Ok(count) => used += count,
                Err(_) => return,
            }
        }
        assert_eq!(used, bytes.len().min(rbudp::bitmap_len(packets)));
        assert_eq!(missing.iter().map(|range| range.end - range.start).sum::<u32>(), reader.missing());
        assert!(missing.is_sorted_by_key(|range| range.start) && missing.iter().all(|range| range.end <= packets));
        if !reader.is_done() {
            return;
        }
        // Bits without a packet are ignored and written as one. All other content is preserved.
        let mut encoded = Vec::new();
        rbudp::encode_bitmap(packets, missing.into_iter(), &mut encoded);
        assert_eq!(encoded[0], bytes[0]);
        let bit = |bytes: &[u8], packet: u32| bytes[1 + packet as usize / 8] >> (packet % 8) & 1;
        assert!((0..packets).all(|packet| bit(&encoded, packet) == bit(bytes, packet)));
    });
}

/// A name block, a record of eight bytes, or a datagram.
#[test]
fn rbudp_records() {
    check!().with_max_len(300).with_iterations(1_000).for_each(|input: &[u8]| {
        if let Some((block, _)) = input.split_first_chunk()
            && let Ok(name) = rbudp::decode_name(block)
        {
            assert_eq!(rbudp::decode_name(&rbudp::encode_name(name).expect("it was read")), Ok(name));
        }
        if let Some((&record, _)) = input.split_first_chunk() {
            if let Ok(length) = rbudp::decode_length(record) {
                assert_eq!(rbudp::encode_length(length), record);
            }
            if let Ok(end) = rbudp::EndOfBlast::decode(record, rbudp::ByteOrder::Little) {
                assert_eq!(end.encode()[..7], record[..7]);
            }
        }
        if let Ok((index, payload)) = rbudp::split_data(input) {
            assert_eq!((payload.len() + rbudp::HEADER_LEN, payload.is_empty()), (input.len(), false));
            let mut order = rbudp::ByteOrder::default();
            let number = order.index(index, 1_000);
            assert!(number.is_none_or(|number| number < 1_000 && order.read(index) == number));
        }
    });
}
