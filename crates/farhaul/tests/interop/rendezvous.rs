//! Both sides call, and neither listens.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

use farhaul::{ConnectOptions, Stream};

use crate::content::{recv, send};
use crate::here::Here;
use crate::libudt::{Libudt, Report, Running};
use crate::stream::exchange;

/// A free address, because libudt needs one in advance. Its port is below those that the kernel assigns (from 32768).
/// So no parallel test gets it meanwhile.
pub(crate) fn free_address() -> SocketAddr {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let next = || 10_000 + (std::process::id() * 16 + TAKEN.fetch_add(1, Ordering::Relaxed)) % 10_000;
    let mut addresses = std::iter::repeat_with(|| SocketAddr::from(([127, 0, 0, 1], next() as u16)));
    addresses.find(|address| UdpSocket::bind(address).is_ok()).unwrap()
}

/// A stream to a libudt that performs `action`.
fn meet(libudt: Libudt, here: &Here, action: &str) -> (Running, Stream) {
    let there = free_address();
    let peer = libudt.rendezvous(there, here.local_addr(), action);
    (peer, here.connect_with(there, ConnectOptions::stream().rendezvous()).unwrap())
}

#[test]
fn libudt_receives_in_a_rendezvous() {
    let Some(libudt) = Libudt::find() else { return };
    for len in [1, 3_000_000] {
        let here = Here::new();
        let (peer, stream) = meet(libudt, &here, "recv");
        let digest = send(&stream, 1, len).unwrap();
        stream.finish().unwrap();
        assert_eq!(peer.report().digest("received_digest"), digest);
    }
}

#[test]
fn libudt_sends_in_a_rendezvous() {
    let Some(libudt) = Libudt::find() else { return };
    for len in [1, 3_000_000] {
        let here = Here::new();
        let (peer, stream) = meet(libudt, &here, &format!("send --bytes {len}"));
        assert_eq!(recv(&stream, None).unwrap(), (len, peer.report().digest("sent_digest")));
    }
}

#[test]
fn both_send_at_once_in_a_rendezvous() {
    let Some(libudt) = Libudt::find() else { return };
    let here = Here::new();
    let (peer, stream) = meet(libudt, &here, "both --bytes 3000000 --expect 2000000 --seed 2");
    let (sent, received) = exchange(&stream, 3, 2_000_000);
    let report: Report = peer.report();
    assert_eq!(report.digest("received_digest"), sent);
    assert_eq!(report.digest("sent_digest"), received.1);
}
