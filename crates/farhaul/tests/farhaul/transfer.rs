//! Arrival of bytes: in both directions, on many connections of one port, from files, in bulk.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::net::UdpSocket;
use std::thread;

use farhaul::{ConnectOptions, ConnectionLost, Endpoint, Error, Listener, Stream};

/// Bytes that differ everywhere, so that a misplaced block shows.
fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&(state >> 11).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// A connected pair: the caller's stream and the accepted one.
fn pair() -> (Stream, Stream) {
    let listener = Listener::plain("127.0.0.1:0").unwrap();
    let caller = Stream::connect_plain(listener.local_addr()).unwrap();
    let (accepted, peer) = listener.accept().unwrap();
    assert_eq!(peer.port(), caller.local_addr().port());
    assert_eq!(accepted.peer_addr(), peer);
    (caller, accepted)
}

#[test]
fn bytes_travel_both_ways_at_once() {
    let (mut caller, mut accepted) = pair();
    let (there, back) = (pattern(3_000_000, 1), pattern(2_000_000, 2));
    thread::scope(|scope| {
        scope.spawn(|| (&caller).write_all(&there).unwrap());
        scope.spawn(|| (&accepted).write_all(&back).unwrap());
        let read = scope.spawn(|| {
            let mut all = vec![0; there.len()];
            (&accepted).read_exact(&mut all).unwrap();
            all
        });
        let mut all = vec![0; back.len()];
        (&caller).read_exact(&mut all).unwrap();
        assert!(all == back && read.join().unwrap() == there);
    });
    caller.write_all(b"end").unwrap();
    thread::scope(|scope| {
        scope.spawn(|| caller.finish().unwrap());
        let mut rest = Vec::new();
        accepted.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"end");
    });
}

#[test]
fn a_large_transfer_arrives_byte_for_byte() {
    let (sender, mut receiver) = pair();
    let data = pattern(64 << 20, 3);
    let digest = blake3::hash(&data);
    let sending = thread::spawn(move || {
        sender.send_all(&data)?;
        sender.finish()?;
        sender.stats()
    });
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut receiver, &mut hasher).unwrap();
    assert_eq!(hasher.finalize(), digest);
    let stats = sending.join().unwrap().unwrap();
    assert_eq!(stats.totals.bytes_acked, 64 << 20);
    assert!(stats.totals.packets_sent >= (64 << 20) / u64::from(stats.payload_size));
}

#[test]
fn one_port_carries_many_connections_in_both_directions() {
    const EACH: usize = 40;
    let hub = Endpoint::plain("127.0.0.1:0").unwrap();
    let listener = hub.listen().unwrap();
    let other = Endpoint::plain("127.0.0.1:0").unwrap();
    let other_listener = other.listen().unwrap();
    thread::scope(|scope| {
        for (listener, from, to) in [(&listener, &other, &hub), (&other_listener, &hub, &other)] {
            scope.spawn(move || {
                for mut stream in listener.incoming().take(EACH) {
                    scope.spawn(move || {
                        let mut all = Vec::new();
                        stream.read_to_end(&mut all).unwrap();
                        assert!(all == pattern(all.len(), all.len() as u64));
                    });
                }
            });
            for number in 0..EACH {
                scope.spawn(move || {
                    let stream = from.connect(to.local_addr()).unwrap();
                    let len = 1_000 * (number + 1);
                    stream.send_all(&pattern(len, len as u64)).unwrap();
                    stream.finish().unwrap();
                });
            }
        }
    });
}

#[test]
fn a_part_of_a_file_arrives_in_a_file() {
    let (sender, receiver) = pair();
    let directory = std::env::temp_dir();
    let name = |what: &str| directory.join(format!("farhaul-{what}-{}", std::process::id()));
    let (from, to) = (name("from"), name("to"));
    let content = pattern(5_000_000, 4);
    std::fs::write(&from, &content).unwrap();
    let source = File::open(&from).unwrap();
    let mut target = File::options().create(true).truncate(true).read(true).write(true).open(&to).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| sender.send_file(&source, 1_000, 4_000_000).unwrap());
        receiver.recv_file(&target, 4_000_000).unwrap();
        let missing = sender.send_file(&source, 4_999_999, 2).unwrap_err();
        assert!(matches!(missing, Error::FileTooShort { missing: 1 }), "{missing}");
        scope.spawn(|| sender.finish().unwrap());
        let early = receiver.recv_file(&target, 2).unwrap_err();
        assert!(matches!(early, Error::EndedEarly { received: 1, expected: 2 }), "{early}");
    });
    let mut arrived = Vec::new();
    target.rewind().unwrap();
    target.read_to_end(&mut arrived).unwrap();
    assert!(arrived[..4_000_000] == content[1_000..4_001_000]);
    std::fs::remove_file(from).unwrap();
    std::fs::remove_file(to).unwrap();
}

// Waits for the 5 s without progress after which the sender accepts the error signal, which anyone can forge.
#[test]
fn a_sender_learns_that_the_receiver_cannot_write_its_file() {
    let (sender, receiver) = pair();
    let read_only = File::open("/dev/null").unwrap();
    thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let block = vec![0; 1 << 20];
            loop {
                if let Err(error) = sender.send_all(&block) {
                    return error;
                }
            }
        });
        let here = receiver.recv_file(&read_only, 1 << 30).unwrap_err();
        assert!(matches!(here, Error::File { action: "write", .. }), "{here}");
        let there = sending.join().unwrap();
        assert!(matches!(there, Error::Lost(ConnectionLost::PeerError(4000))), "{there}");
    });
}

#[test]
fn two_endpoints_that_both_call_connect() {
    let (left, right) = (Endpoint::plain("127.0.0.1:0").unwrap(), Endpoint::plain("127.0.0.1:0").unwrap());
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let stream = right.connect_with(left.local_addr(), ConnectOptions::stream().rendezvous()).unwrap();
            stream.send_all(b"from the right").unwrap();
            stream.finish().unwrap();
        });
        let mut stream = left.connect_with(right.local_addr(), ConnectOptions::stream().rendezvous()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!(text, "from the right");
        other.join().unwrap();
    });
}

#[test]
fn two_endpoints_that_both_call_for_messages_connect() {
    let (left, right) = (Endpoint::plain("127.0.0.1:0").unwrap(), Endpoint::plain("127.0.0.1:0").unwrap());
    thread::scope(|scope| {
        scope.spawn(|| {
            let socket = right.connect_with(left.local_addr(), ConnectOptions::messages().rendezvous()).unwrap();
            socket.send(b"one").unwrap();
            socket.send(b"two").unwrap();
            socket.finish().unwrap();
        });
        let socket = left.connect_with(right.local_addr(), ConnectOptions::messages().rendezvous()).unwrap();
        let mut lengths = Vec::new();
        while let Some(received) = socket.recv(&mut [0; 10]).unwrap() {
            lengths.push(received.len);
        }
        assert_eq!(lengths, [3, 3]);
    });
}

#[test]
fn an_ipv6_port_works_like_any_other() {
    if let Err(error) = UdpSocket::bind("[::1]:0") {
        eprintln!("SKIPPED: this machine has no IPv6: {error}");
        return;
    }
    let listener = Listener::plain("[::1]:0").unwrap();
    let caller = Stream::connect_plain(listener.local_addr()).unwrap();
    let (mut accepted, _) = listener.accept().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            caller.send_all(b"six").unwrap();
            caller.finish().unwrap();
        });
        let mut text = String::new();
        accepted.read_to_string(&mut text).unwrap();
        assert_eq!(text, "six");
    });
}
