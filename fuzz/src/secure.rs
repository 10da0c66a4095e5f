//! Packet protection: its decoders, and endpoints that receive damaged and forged handshakes.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use bolero::check;
use farhaul_proto::secure::{self, CryptoStream, Null, Provider, Replay, Side};
use farhaul_proto::{Batch, Config, Endpoint, Entropy, Mode, Streams, Transport};
use farhaul_secure::{AuthorizedKeys, KnownHosts};
use farhaul_units::{Duration, Instant};
use farhaul_wire::secure::{
    ConnectionName, DataForm, Epoch, Frame, HEADER_LEN, Header, InitialHeader, MIN_INITIAL, TAG_LEN,
    TransportParameters, VERSION, destination, inner,
};

const MAX_DATAGRAM: usize = 1_500;
/// Packets that may come late, and the bytes of a full window.
const WINDOW: u64 = 65_536;
const MOST_WINDOW: usize = 16 << 10;
/// Most bytes of a handshake in one direction and epoch.
const MOST_SAID: usize = 16 << 10;
const CLIENT: [u8; 16] = [5; 16];

#[test]
fn packet_protection() {
    check!().with_max_len(MAX_DATAGRAM).with_iterations(1_000).for_each(|datagram: &[u8]| {
        if let Ok(header) = Header::decode(datagram) {
            assert_eq!(header.bytes(), datagram[..HEADER_LEN]);
            assert_eq!(destination(datagram), Some(header.to));
        }
        if let Ok((initial, length)) = InitialHeader::decode(datagram) {
            let mut encoded = datagram[..HEADER_LEN].to_vec();
            initial.encode(&mut encoded);
            assert_eq!(encoded, datagram[..length]);
        }
        let mut restored = datagram.to_vec();
        if let Some(packet) = inner::restore(&mut restored) {
            let header = Header { epoch: Epoch(3), number: 0, to: ConnectionName::new(1) };
            let (packet, mut enclosed) = (packet.to_vec(), Vec::new());
            for form in [DataForm::Stream, DataForm::Messages] {
                enclosed.clear();
                let pieces = packet.split_first_chunk().expect("a packet of UDT4 has a header");
                inner::enclose(&header, pieces, form, &mut enclosed);
                assert_eq!(enclosed.len(), packet.len() + form.overhead_of(&packet));
                let mut in_place = packet.clone();
                inner::enclose_in_place(&header, &mut in_place, form);
                assert_eq!(in_place, enclosed);
            }
        }
        if let Some((seq, payload)) = inner::stream_data(datagram) {
            assert_eq!([&seq.value().to_be_bytes()[..], payload].concat(), datagram);
        }
    });
}

#[test]
fn frames() {
    check!().with_max_len(MAX_DATAGRAM).with_iterations(1_000).for_each(|body: &[u8]| {
        let mut rest = body;
        while let Ok(Some((frame, behind))) = Frame::decode(rest) {
            let mut encoded = Vec::new();
            frame.encode(&mut encoded);
            assert_eq!(encoded, rest[..rest.len() - behind.len()]);
            rest = behind;
        }
        if let Some(message) = inner::Message::decode(body) {
            let mut encoded = Vec::new();
            message.encode(&mut encoded);
            assert_eq!(inner::Message::decode(&encoded), Some(message));
        }
    });
}

#[test]
fn parameters() {
    check!().with_max_len(300).with_iterations(1_000).for_each(|bytes: &[u8]| {
        let Ok(parameters) = TransportParameters::decode(bytes) else { return };
        let mut encoded = Vec::new();
        parameters.encode(&mut encoded);
        assert_eq!(TransportParameters::decode(&encoded), Ok(parameters));
    });
}

/// No text makes a reader panic, and no grant has a path that is not absolute.
#[test]
fn files_of_keys() {
    check!().with_max_len(600).with_iterations(1_000).for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(keys) = AuthorizedKeys::parse(&text) {
            for grant in keys.grants() {
                assert!(grant.paths.iter().all(|grant| grant.path.is_absolute()));
                let _ = keys.admit(grant.key, std::net::Ipv4Addr::LOCALHOST.into(), 20_000);
            }
        }
        let _ = KnownHosts::parse(&text);
    });
}

/// Numbers of packets, three bytes each, against a set of all numbers.
#[test]
fn replay_window() {
    check!().with_max_len(300).with_iterations(1_000).for_each(|bytes: &[u8]| {
        let (mut replay, mut seen, mut end) = (Replay::default(), BTreeSet::new(), 0);
        for [high, middle, low] in bytes.as_chunks().0 {
            let number = u64::from(u32::from_be_bytes([0, *high, *middle, *low]));
            let is_new = (number >= end || end - number <= WINDOW) && seen.insert(number);
            assert_eq!((replay.is_new(number), replay.note(number)), (is_new, is_new), "{number} of {end}");
            end = end.max(number + 1);
            assert!(replay.memory() <= MOST_WINDOW);
        }
    });
}

/// Pieces of a stream that a peer sends in any order, each an offset and a length of two bytes. Whatever it sends, what is
/// read is the beginning of the stream.
#[test]
fn crypto_reassembly() {
    let stream: Vec<u8> = (0..u16::MAX).map(|index| (index / 7) as u8).collect();
    check!().with_max_len(400).with_iterations(1_000).for_each(|bytes: &[u8]| {
        let (mut receiving, mut heard) = (CryptoStream::default(), Vec::new());
        for [a, b, c, d] in bytes.as_chunks().0 {
            let (offset, len) = (u16::from_be_bytes([*a, *b]), usize::from(u16::from_be_bytes([*c, *d]) % 2_000));
            let from = usize::from(offset);
            let piece = &stream[from..stream.len().min(from + len)];
            let fits = from + piece.len() <= MOST_SAID;
            assert_eq!(receiving.receive(u32::from(offset), piece, &mut heard).is_ok(), fits);
            assert_eq!(receiving.received() as usize, heard.len());
            assert_eq!(heard, stream[..heard.len()]);
        }
    });
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 9000))
}

fn endpoint(seed: u8) -> Endpoint {
    let config = Config { recv_buffer: 1 << 20, send_buffer: 1 << 20, ..Config::default() };
    secure::endpoint(config, Entropy { cookie_key: [seed; 16], seed: seed.into() }, Box::new(Null::new(seed.into())))
}

fn output(end: &mut Endpoint, now: Instant) -> Vec<Vec<u8>> {
    let (mut batch, mut all) = (Batch::new(), Vec::new());
    while let Some(transmit) = end.poll_transmit(now, &mut batch) {
        all.extend(transmit.datagrams().map(<[u8]>::to_vec));
    }
    while end.poll_event().is_some() {}
    all
}

/// A client that seals whatever it likes: frames reach the parser and the reassembly of a listener.
#[test]
fn frames_of_a_caller() {
    check!().with_max_len(4_000).with_iterations(1_000).for_each(|input: &[u8]| {
        let mut server = endpoint(2);
        server.listen(Mode::Stream).expect("an endpoint of UDT listens");
        let keys = Null::new(0).initial(&CLIENT, Side::Client);
        let (mut now, mut came, mut left) = (Instant::from_nanos(1), 0, 0);
        for (number, frames) in input.chunks(1_000).enumerate() {
            let header = Header { epoch: Epoch::INITIAL, number: number as u64, to: ConnectionName::NONE };
            let mut datagram = header.bytes().to_vec();
            let from = ConnectionName::new(7);
            InitialHeader { version: VERSION, from, client_id: &CLIENT, token: &[] }.encode(&mut datagram);
            let head = datagram.len();
            datagram.extend_from_slice(frames);
            datagram.resize(datagram.len().max(MIN_INITIAL - TAG_LEN), 0);
            let (head, body) = datagram.split_at_mut(head);
            let tag = keys.local.seal(header.number, head, body);
            datagram.extend_from_slice(&tag);
            let length = datagram.len();
            came += length;
            server.handle_datagrams(now, now, address(1), &mut datagram, length);
            left += output(&mut server, now).iter().map(Vec::len).sum::<usize>();
            now += Duration::from_millis(50);
            server.handle_timeout(now);
        }
        assert!(left <= 3 * came, "{left} bytes for {came}");
        // In steps, since a long gap is a suspended computer.
        for _ in 0..40 {
            now += Duration::from_millis(250);
            server.handle_timeout(now);
            output(&mut server, now);
        }
        assert_eq!(server.connections(), 0, "nothing stays of a caller without a proof");
    });
}

/// Two sides, and a network that changes, repeats and drops datagrams as the input says, and lets packets of an
/// established connection come from other addresses. Bytes of the input: fate, position, bits.
#[test]
fn handshakes_on_a_hostile_network() {
    check!().with_max_len(800).with_iterations(300).for_each(|input: &[u8]| {
        let mut ends = [endpoint(1), endpoint(2)];
        ends[1].listen(Mode::Stream).expect("an endpoint of UDT listens");
        let mut now = Instant::from_nanos(1);
        let caller = ends[0].connect(now, address(1)).expect("there is room");
        let mut script = input.chunks_exact(4);
        for _ in 0..200 {
            for end in 0..2 {
                for mut datagram in output(&mut ends[end], now) {
                    let fate = script.next().unwrap_or(&[0; 4]);
                    let at = usize::from(u16::from_be_bytes([fate[1], fate[2]])) % datagram.len();
                    match fate[0] & 3 {
                        1 => continue,
                        2 => datagram[at] ^= fate[3],
                        3 => datagram.truncate(at),
                        _ => {}
                    }
                    let established = Header::decode(&datagram).is_ok_and(|header| header.epoch.is_application());
                    let elsewhere = if established { (fate[0] >> 2 & 7) * 16 } else { 0 };
                    for _ in 0..=(fate[0] >> 7) {
                        let (mut copy, length) = (datagram.clone(), datagram.len().max(1));
                        ends[1 - end].handle_datagrams(now, now, address(end as u8 + elsewhere), &mut copy, length);
                    }
                }
            }
            now += Duration::from_millis(50);
            ends.iter_mut().for_each(|end| end.handle_timeout(now));
            let _ = ends[0].write(now, caller, b"data");
        }
        assert!(ends[1].connections() <= 1, "one caller, one connection");
    });
}
