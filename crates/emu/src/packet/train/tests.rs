use std::rc::Rc;

use proptest::prelude::*;

use super::super::cut::cut;
use super::super::headers::{Checksum, PROTOCOL_UDP};
use super::super::virtio;
use super::*;
use crate::network::HostId;
use crate::pool::Pool;

/// A large packet of a host: TCP or UDP over IPv4 or IPv6. Each of its `payload` bytes is its own offset.
fn large(ipv6: bool, protocol: u8, payload: usize) -> Vec<u8> {
    let ip = if ipv6 { 40 } else { 20 };
    let transport = if protocol == PROTOCOL_TCP { 32 } else { 8 };
    let mut bytes = vec![0; ip + transport];
    if ipv6 {
        bytes[0] = 0x60;
        bytes[6] = protocol;
        (8..40).for_each(|at| bytes[at] = at as u8);
    } else {
        bytes[0] = 0x45;
        bytes[4..6].copy_from_slice(&65_530_u16.to_be_bytes());
        bytes[6] = 0x40;
        bytes[9] = protocol;
        bytes[12..20].copy_from_slice(&[10, 77, 0, 1, 10, 77, 0, 2]);
    }
    if protocol == PROTOCOL_TCP {
        bytes[ip + 4..ip + 8].copy_from_slice(&0xffff_fc00_u32.to_be_bytes());
        bytes[ip + 12] = 8 << 4;
        bytes[ip + TCP_FLAGS] = ACK | PSH;
        bytes[ip + 20..ip + 32].fill(1);
    }
    bytes.extend((0..payload).map(|at| at as u8));
    bytes
}

/// The large packet as a host writes it, with lengths and the sum of the pseudo-header.
fn finished(mut bytes: Vec<u8>) -> Vec<u8> {
    let layout = Layout::of(&bytes).unwrap();
    let length = bytes.len();
    layout.set_length(&mut bytes, length);
    bytes
}

fn parts(bytes: &[u8], gso: GsoType, size: u16) -> Vec<Packet> {
    let mut packets = Vec::new();
    let counts = cut(bytes, (gso, size), HostId(1), &Rc::new(Pool::default()), |packet| packets.push(packet));
    assert_eq!((counts.exhausted, counts.malformed), (0, 0));
    packets
}

/// The trains of `packets` as written.
fn written(packets: Vec<Packet>) -> Vec<(Header, Vec<u8>)> {
    let (mut train, mut out) = (PacketTrain::new(GsoTypes::ALL), Vec::new());
    let refused = send(&mut train, packets, |header, packet| {
        out.push((header, packet.to_vec()));
        Ok(())
    });
    assert_eq!(refused, 0);
    out
}

/// Writes `packets` in trains to `device`. Returns how many were refused.
fn send(train: &mut PacketTrain, packets: Vec<Packet>, mut device: impl FnMut(Header, &[u8]) -> io::Result<()>) -> u64 {
    let mut flush = |train: &mut PacketTrain| {
        train.write(|parts| {
            let all: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
            let (header, packet) = all.split_first_chunk::<{ virtio::LENGTH }>().unwrap();
            device(Header::read(header).unwrap(), packet)
        })
    };
    let mut refused = 0;
    for packet in packets {
        if let Err(packet) = train.add(packet) {
            refused += flush(train);
            train.add(packet).unwrap();
        }
    }
    refused + flush(train)
}

/// Whether the TCP or UDP checksum is correct once filled in.
fn is_sound(packet: &Packet) -> bool {
    let mut bytes = packet.bytes().to_vec();
    let layout = Layout::of(&bytes).unwrap();
    layout.checksum().fill_in(&mut bytes);
    // The pseudo-header computed a second time: addresses, protocol, length, then the rest.
    let addresses = if layout.ipv6 { 8..40 } else { 12..20 };
    let mut words = bytes[addresses].to_vec();
    words.extend([0, layout.protocol]);
    words.extend(((bytes.len() - layout.transport) as u16).to_be_bytes());
    words.extend(&bytes[layout.transport..]);
    words.push(0);
    let sum = words.chunks_exact(2).fold(0_u32, |sum, pair| {
        let sum = sum + u32::from(u16::from_be_bytes([pair[0], pair[1]]));
        (sum & 0xffff) + (sum >> 16)
    });
    sum == 0xffff
}

#[test]
fn segments_have_consecutive_numbers_and_only_the_last_has_psh() {
    let packets = parts(&finished(large(false, PROTOCOL_TCP, 2_500)), GsoType::Tcp, 1_000);
    let layout = Layout::of(packets[0].bytes()).unwrap();
    let of = |index: usize| packets[index].bytes();
    assert_eq!([of(0).len(), of(1).len(), of(2).len()], [1_052, 1_052, 552]);
    assert_eq!([layout.sequence(of(0)), layout.sequence(of(1))], [0xffff_fc00, 0xffff_ffe8]);
    assert_eq!(layout.sequence(of(2)), 0x3d0, "numbers wrap");
    assert_eq!([of(0)[33], of(1)[33], of(2)[33]], [ACK, ACK, ACK | PSH]);
    assert_eq!([&of(0)[4..6], &of(2)[4..6]], [&[0xff, 0xfa], &[0xff, 0xfc]], "identification");
}

#[test]
fn a_gap_a_flag_another_length_or_another_flow_begins_a_new_train() {
    let whole = finished(large(false, PROTOCOL_TCP, 4_000));
    let lengths = |change: fn(&mut Vec<Packet>)| {
        let mut packets = parts(&whole, GsoType::Tcp, 1_000);
        change(&mut packets);
        written(packets).iter().map(|(_, packet)| packet.len()).collect::<Vec<_>>()
    };
    assert_eq!(lengths(|_| ()), [4_052]);
    assert_eq!(lengths(|packets| drop(packets.remove(1))), [1_052, 2_052]);
    assert_eq!(lengths(|packets| packets.swap(1, 2)), [1_052, 1_052, 1_052, 1_052]);
    let others = finished(large(true, PROTOCOL_UDP, 3_000));
    let mut mixed = parts(&whole, GsoType::Tcp, 1_000);
    mixed.extend(parts(&others, GsoType::Udp, 1_000));
    assert_eq!(written(mixed).len(), 2);
}

#[test]
fn packets_with_a_complete_checksum_or_no_payload_travel_alone() {
    let pool = Rc::new(Pool::default());
    let bytes = finished(large(false, PROTOCOL_UDP, 100));
    let whole = || Packet::new(pool.copy(&bytes).unwrap(), None, HostId(1));
    assert_eq!(written(vec![whole(), whole()]).len(), 2);
    let bare = finished(large(false, PROTOCOL_TCP, 0));
    let checksum = Layout::of(&bare).unwrap().checksum();
    let ack = || Packet::new(pool.copy(&bare).unwrap(), Some(checksum), HostId(1));
    let acks = written(vec![ack(), ack()]);
    assert_eq!(acks, vec![(Header { checksum: Some(checksum), ..Header::default() }, bare.clone()); 2]);
}

#[test]
fn packets_whose_checksum_is_of_a_header_inside_travel_alone() {
    let pool = Rc::new(Pool::default());
    // A tunnel in UDP has computed its own checksum, and left that of the packet inside.
    let bytes = finished(large(false, PROTOCOL_UDP, 100));
    let inside = Checksum { start: 64, offset: 6 };
    let tunnelled = || Packet::new(pool.copy(&bytes).unwrap(), Some(inside), HostId(1));
    let alone = (Header { checksum: Some(inside), ..Header::default() }, bytes.clone());
    assert_eq!(written(vec![tunnelled(), tunnelled()]), vec![alone; 2]);
    let own = Layout::of(&bytes).unwrap().checksum();
    let plain = || Packet::new(pool.copy(&bytes).unwrap(), Some(own), HostId(1));
    assert_eq!(written(vec![plain(), tunnelled(), plain(), plain()]).len(), 3);
}

#[test]
fn a_rejected_gso_type_is_sent_one_by_one_and_not_tried_again() {
    let udp = || parts(&finished(large(false, PROTOCOL_UDP, 3_000)), GsoType::Udp, 1_000);
    let tcp = || parts(&finished(large(false, PROTOCOL_TCP, 3_000)), GsoType::Tcp, 1_000);
    let mut train = PacketTrain::new(GsoTypes::ALL);
    let mut tries = |packets: Vec<Packet>| {
        let mut tried = Vec::new();
        let refused = send(&mut train, packets, |header, packet| {
            tried.push(packet.len());
            // Kernels before 6.2 reject large UDP packets like this.
            let is_known = header.gso.is_none_or(|(gso, _)| gso == GsoType::Tcp);
            if is_known { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EINVAL)) }
        });
        (refused, tried)
    };
    assert_eq!(tries(udp()), (0, vec![3_028, 1_028, 1_028, 1_028]));
    assert_eq!(tries(udp()), (0, vec![1_028, 1_028, 1_028]));
    assert_eq!(tries(tcp()), (0, vec![3_052]));
}

#[test]
fn a_device_without_udp_gso_gets_single_datagrams() {
    let packets = parts(&finished(large(true, PROTOCOL_UDP, 3_000)), GsoType::Udp, 1_000);
    let (mut train, mut gso_types) = (PacketTrain::new(GsoTypes { tcp: true, udp: false }), 0);
    let count = |header: Header, _: &[u8]| {
        gso_types += u32::from(header.gso.is_some());
        Ok(())
    };
    assert_eq!((send(&mut train, packets, count), gso_types), (0, 0));
}

#[test]
fn packets_refused_for_another_reason_are_counted_and_not_retried() {
    let packets = parts(&finished(large(false, PROTOCOL_UDP, 3_000)), GsoType::Udp, 1_000);
    let (mut train, mut tries) = (PacketTrain::new(GsoTypes::ALL), 0);
    let refused = send(&mut train, packets, |_, _| {
        tries += 1;
        Err(io::ErrorKind::BrokenPipe.into())
    });
    assert_eq!((refused, tries), (3, 1));
}

#[test]
fn an_invalid_large_packet_is_refused() {
    for bytes in [&finished(large(false, PROTOCOL_UDP, 3_000))[..], &[0x45; 30], &[]] {
        let counts = cut(bytes, (GsoType::Tcp, 1_000), HostId(1), &Rc::new(Pool::default()), |_| panic!("a packet"));
        assert_eq!(counts.malformed, 1);
    }
}

proptest! {
    /// Segmentation and coalescing restore the packet, and each part is valid by itself.
    #[test]
    fn segmentation_and_coalescing_restore_the_packet(
        ipv6: bool, tcp: bool, payload in 1_usize..60_000, size in 1_000_u16..9_000,
    ) {
        let (protocol, gso) = if tcp { (PROTOCOL_TCP, GsoType::Tcp) } else { (PROTOCOL_UDP, GsoType::Udp) };
        let bytes = finished(large(ipv6, protocol, payload));
        let packets = parts(&bytes, gso, size);
        prop_assert!(packets.iter().all(is_sound));
        prop_assert!(packets.iter().all(|packet| packet.to() == HostId(1)));
        let checksum = Layout::of(&bytes).unwrap().checksum();
        let out = written(packets);
        prop_assert_eq!(out.len(), 1);
        let (header, packet) = &out[0];
        prop_assert_eq!(packet, &bytes);
        prop_assert_eq!(header.checksum, Some(checksum));
        let is_one = payload <= usize::from(size);
        prop_assert_eq!(header.gso, (!is_one).then_some((gso, size)));
    }
}
