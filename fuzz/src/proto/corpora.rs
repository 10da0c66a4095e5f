//! Generates the corpora of the 2004 protocol from the output of its encoders and endpoints.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use farhaul_proto::{Batch, Config, Entropy, Event, Streams, Transport};
use farhaul_units::{Duration, Instant, Rng};
use farhaul_wire::udt2004::{Ack, Control, Handshake, LossRange, Packet, Request, SeqNo30};

use super::pair::Pair;
use super::protocol::{FIRST, Protocol};
use super::script::Script;
use super::udt2004::{Udt2004, data, encoded, losses};

/// Longest recorded operation list in bytes: enough for every ending, short enough to read.
const LONGEST: u64 = 250;

fn write(target: &str, name: &str, bytes: &[u8]) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("src/__fuzz__/{target}/corpus"));
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(name), bytes).expect("a file");
}

/// `cargo test -p farhaul-fuzz -- --ignored record_2004_corpora`
#[test]
#[ignore = "writes into the source tree"]
fn record_2004_corpora() {
    for (direction, datagrams) in ["forth", "back"].into_iter().zip(transfer()) {
        record_packets(direction, &datagrams);
        let (begin, end) = (&datagrams[..datagrams.len().min(30)], &datagrams[datagrams.len().saturating_sub(30)..]);
        record_datagrams(&format!("transfer-{direction}"), begin);
        record_datagrams(&format!("transfer-{direction}-end"), end);
    }
    for (name, datagrams) in attacks() {
        record_datagrams(name, &datagrams);
    }
    record_operations();
}

/// Datagrams from the first caller, some with pauses between them.
fn record_datagrams(name: &str, datagrams: &[Vec<u8>]) {
    let mut input = vec![0];
    // The format has one byte for the length.
    for (index, datagram) in datagrams.iter().filter(|datagram| datagram.len() < 256).enumerate() {
        input.extend([u8::from(index % 4 == 3) << 5, datagram.len() as u8]);
        input.extend(datagram);
    }
    write("proto__datagrams_2004", name, &input);
}

/// Packets that no honest peer sends, in valid encoding.
fn attacks() -> [(&'static str, Vec<Vec<u8>>); 8] {
    let first = SeqNo30::from(FIRST);
    let ack = |seq, rtt, speed| {
        encoded(Control::Ack(Ack {
            id: 1,
            seq,
            rtt: Duration::from_micros(rtt),
            arrival_speed: speed,
            capacity: speed,
        }))
    };
    let range = |from: u32, to: u32| LossRange { first: first.plus(from), end: first.plus(to) };
    let close = |connection, end| encoded(Control::Close { connection, end, acked: first });
    let call = |request, connection| {
        encoded(Control::Handshake(Handshake {
            version: Handshake::VERSION,
            request,
            isn: first,
            mtu: 576,
            flow_window: u32::MAX,
            connection,
            cookie: 7,
        }))
    };
    [
        (
            "acks-ahead-of-a-slowed-sender",
            (0..40).flat_map(|step| [encoded(Control::DelayWarning), ack(first.plus(step), 1_000_000, 10)]).collect(),
        ),
        ("ack-beyond-what-was-sent", (1..6).map(|far| ack(first.plus(far << 27), 1_000, 8_000)).collect()),
        ("no-round-trip-time-and-all-speeds", (0..32).map(|bit| ack(first.plus(1), 0, 1 << bit)).collect()),
        ("nak-of-everything", vec![losses([range(0, 1 << 28)].into_iter()); 20]),
        ("nak-that-goes-back", vec![losses([range(3, 5), range(1, 2), range(0, 9), range(0, 9)].into_iter()); 3]),
        ("data-far-ahead", (0..29).map(|bit| data(first.plus(1 << bit), 20)).collect()),
        ("warnings-and-silence", vec![encoded(Control::DelayWarning); 60]),
        (
            "calls-and-closes",
            vec![
                call(Request::Cookie, 0),
                call(Request::Open, 1),
                close(9, first),
                close(1, first),
                call(Request::Open, 1),
            ],
        ),
    ]
}

/// Records one packet of each type, and its losses if it has any.
fn record_packets(direction: &str, datagrams: &[Vec<u8>]) {
    let mut kinds = BTreeMap::new();
    for datagram in datagrams {
        let kind = match Packet::decode(datagram).expect("an endpoint wrote it") {
            Packet::Data { .. } => "data".to_owned(),
            Packet::Control(control) => format!("{control:?}")
                .split(|letter: char| !letter.is_alphanumeric())
                .next()
                .unwrap_or("")
                .to_lowercase(),
        };
        // The longest loss report has ranges.
        let prefer = |known: &&Vec<u8>| kind == "nak" && datagram.len() > known.len();
        if kinds.get(&kind).is_none_or(prefer) {
            kinds.insert(kind, datagram);
        }
    }
    for (kind, datagram) in kinds {
        write("wire__packet_2004", &format!("{kind}-{direction}"), datagram);
        write("wire__packet_2004", &format!("{kind}-{direction}-cut-short"), &datagram[..datagram.len() - 1]);
        if kind == "nak" {
            write("wire__losses_2004", &format!("{kind}-{direction}"), &datagram[2..]);
            let mut miscounted = datagram[2..].to_vec();
            miscounted[1] += 1;
            write("wire__losses_2004", &format!("{kind}-{direction}-says-too-many"), &miscounted);
            miscounted[1] -= 2;
            write("wire__losses_2004", &format!("{kind}-{direction}-says-too-few"), &miscounted);
            write("wire__losses_2004", &format!("{kind}-{direction}-cut-short"), &datagram[2..datagram.len() - 4]);
        }
    }
}

/// The datagrams of two endpoints from call to close, with losses and a growing RTT.
fn transfer() -> [Vec<Vec<u8>>; 2] {
    let end = |seed: u8| {
        let config = Config { initial_seq: Some(FIRST), ..Udt2004::config() };
        let entropy = Entropy { cookie_key: [seed; 16], seed: seed.into() };
        Udt2004::listening(config, entropy, farhaul_proto::Mode::Stream)
    };
    let address = |host: usize| SocketAddr::from(([10, 0, 0, host as u8 + 1], 9000));
    let (mut ends, mut said) = ([end(1), end(2)], [Vec::new(), Vec::new()]);
    let mut flying: Vec<(Instant, usize, Vec<u8>)> = Vec::new();
    let (mut now, mut rng, mut out) = (Instant::from_nanos(1), Rng::new(1), [0; 4096]);
    let caller = ends[0].connect(now, address(1)).expect("there is room");
    let mut accepted = None;
    for milli in 0..8_000u64 {
        now += Duration::from_millis(1);
        if milli == 3_000 {
            ends[0].finish(now, caller);
        } else if milli < 3_000 && milli % 5 == 0 {
            let _ = ends[0].write(now, caller, &[milli as u8; 100]);
        }
        let (due, later) = flying.into_iter().partition(|(at, ..)| *at <= now);
        flying = later;
        for (_, to, mut bytes) in due {
            let stride = bytes.len();
            ends[to].handle_datagrams(now, now, address(1 - to), &mut bytes, stride);
        }
        for (host, end) in ends.iter_mut().enumerate() {
            end.handle_timeout(now);
            let (mut batch, mut sent) = (Batch::new(), Vec::new());
            while let Some(transmit) = end.poll_transmit(now, &mut batch) {
                sent.extend(transmit.datagrams().map(<[u8]>::to_vec));
            }
            for bytes in sent {
                // Some datagrams are lost, sometimes several in a row. The RTT grows from 20 ms to 220 ms.
                if milli < 100 || (rng.below(20) > 0 && milli % 500 > 40) {
                    flying.push((now + Duration::from_millis(10 + (milli / 20).min(100)), 1 - host, bytes.clone()));
                }
                said[host].push(bytes);
            }
            while let Some(event) = end.poll_event() {
                if let Event::Accepted(id) = event {
                    accepted = Some(id);
                }
            }
        }
        if let Some(id) = accepted {
            let _ = ends[1].read(now, id, &mut out);
        }
    }
    said
}

/// Records the shortest operation list for each ending.
fn record_operations() {
    let mut shortest: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut rng = Rng::new(2004);
    for _ in 0..20_000 {
        let input: Vec<u8> = (0..10 + rng.below(LONGEST)).map(|_| rng.next_u64() as u8).collect();
        let mut script = Script::new(&input);
        let mut pair = Pair::<Udt2004>::new(&mut script);
        while pair.step(&mut script) {}
        pair.conclude();
        for ending in pair.endings() {
            let known = shortest.entry(ending).or_insert_with(|| input.clone());
            if input.len() < known.len() {
                known.clone_from(&input);
            }
        }
    }
    for (name, input) in shortest {
        write("proto__operations_2004", &name, &input);
    }
}
