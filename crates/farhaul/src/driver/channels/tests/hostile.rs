//! Peers that read nothing, or never stop sending.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::phone::{Manner, Phone};
use super::{ANY, accept, call_peer, connect, driver, finish, listening, pattern, read, read_to_end, write_all};

/// Round trips of datagrams beside a hostile peer.
const ROUNDS: u32 = 200;

/// Datagrams without a pause. Thirty round trips of a channel take a hundredth of their time.
const FLOOD: u32 = 200_000;

/// Sends datagrams to an echoing driver, and waits for each.
fn exchange_datagrams(with: std::net::SocketAddr) {
    let socket = UdpSocket::bind(ANY).unwrap();
    for round in 0..ROUNDS {
        socket.send_to(&round.to_be_bytes(), with).unwrap();
        let mut out = [0; 4];
        socket.recv(&mut out).unwrap();
        assert_eq!(out, round.to_be_bytes());
    }
}

#[test]
fn a_peer_that_never_reads_holds_up_neither_datagrams_nor_other_channels() {
    let a = driver(Phone::new(Manner::Echoes));
    let (deaf, _peer) = call_peer(&a);
    {
        let mut guard = a.lock().unwrap();
        let now = guard.now();
        guard.transport.write_any(now, deaf, &pattern(32 << 20));
    }
    exchange_datagrams(a.local_addr());
    let b = listening(Phone::default());
    let id = connect(&a, b.local_addr());
    let there = accept(&b);
    let data = pattern(1 << 20);
    thread::scope(|scope| {
        let reader = scope.spawn(|| read_to_end(&b, there).0);
        write_all(&a, id, &data).unwrap();
        finish(&a, id);
        assert!(reader.join().unwrap() == data);
    });
}

#[test]
fn peers_that_never_stop_sending_hold_up_neither_datagrams_nor_other_channels() {
    let a = listening(Phone::new(Manner::Discards));
    let floods: Vec<_> = (0..4).map(|_| TcpStream::connect(a.local_addr()).unwrap()).collect();
    thread::scope(|scope| {
        for mut flood in &floods {
            scope.spawn(move || while flood.write_all(&[7; 1 << 16]).is_ok() {});
        }
        for _ in &floods {
            let id = accept(&a);
            read(&a, id).unwrap();
        }
        exchange_datagrams(a.local_addr());
        let (quiet, mut peer) = call_peer(&a);
        for _ in 0..100 {
            peer.write_all(b"x").unwrap();
            read(&a, quiet).unwrap();
        }
        drop(a);
    });
}

#[test]
fn datagrams_without_a_pause_hold_up_no_channel() {
    let a = listening(Phone::new(Manner::Echoes));
    let address = a.local_addr();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let flood = scope.spawn(|| {
            let socket = UdpSocket::bind(ANY).unwrap();
            (0..FLOOD).all(|_| {
                let _ = socket.send_to(&[7; 1_000], address);
                !is_over.load(Ordering::Relaxed)
            })
        });
        let mut peer = TcpStream::connect(address).unwrap();
        for _ in 0..30 {
            peer.write_all(b"x").unwrap();
            peer.read_exact(&mut [0]).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(!flood.join().unwrap(), "the channel had to wait for the end of the datagrams");
    });
}
