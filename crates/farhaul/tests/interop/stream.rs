//! Streams: either side listens, either side sends, or both at once.

use std::thread;

use farhaul::{Endpoint, Stream};
use farhaul_units::Rate;

use crate::content::{digest_of, recv, send, stream};
use crate::here::Here;
use crate::libudt::{Libudt, Report};

/// One byte, around the payload of one packet, many packets, and more than any default buffer.
const SIZES: [usize; 5] = [1, 1_456, 1_457, 1_000_003, 64 << 20];

/// Sends all bytes and checks that they arrived.
fn send_and_finish(to: &Stream, seed: u64, len: usize) -> u64 {
    let digest = send(to, seed, len).unwrap();
    to.finish().unwrap();
    digest
}

fn assert_received(report: &Report, len: usize, digest: u64) {
    assert_eq!((report.count("received_bytes"), report.digest("received_digest")), (len as u64, digest), "{report:?}");
}

// Slow: five libudt processes one after another, of which the last receives 64 MiB.
#[test]
fn libudt_listens_and_receives() {
    let Some(libudt) = Libudt::find() else { return };
    for len in SIZES {
        let (peer, address) = libudt.listen("recv");
        let digest = send_and_finish(&Here::new().connect(address).unwrap(), 3, len);
        assert_received(&peer.report(), len, digest);
    }
}

/// A sender withholds a packet after at most 2^18 of them (attack B8), unless windows are narrow. So the rate is capped. Each
/// packet costs libudt the same, so they are the smallest: those of full size would need 400 MiB.
// Slow: 147 MiB at 300 Mbit/s take more than 4 s.
#[test]
fn libudt_asks_for_a_packet_that_was_withheld_and_gets_it() {
    let Some(libudt) = Libudt::find() else { return };
    let len = 147 << 20;
    let (peer, address) = libudt.listen("recv");
    let here = Here::with(Endpoint::builder().plain().mss(576).max_rate(Rate::from_megabits_per_second(300)));
    let stream = here.connect(address).unwrap();
    let digest = send_and_finish(&stream, 8, len);
    let totals = stream.stats().unwrap().totals;
    assert!(totals.naks_received > 0, "{totals:?}");
    assert_received(&peer.report(), len, digest);
}

#[test]
fn libudt_listens_and_sends() {
    let Some(libudt) = Libudt::find() else { return };
    for len in SIZES {
        let (peer, address) = libudt.listen(&format!("send --bytes {len} --seed 4"));
        let here = Here::new();
        let received = recv(&here.connect(address).unwrap(), None).unwrap();
        assert_eq!(received, (len as u64, peer.report().digest("sent_digest")));
    }
}

// Slow: five libudt processes one after another, of which the last receives 64 MiB.
#[test]
fn libudt_connects_and_receives() {
    let Some(libudt) = Libudt::find() else { return };
    for len in SIZES {
        let here = Here::new();
        let listener = here.listen().unwrap();
        let peer = libudt.connect(here.local_addr(), &format!("recv --expect {len} --close-delay 10000"));
        let digest = send_and_finish(&Here::accept(&listener), 5, len);
        assert_received(&peer.report(), len, digest);
    }
}

#[test]
fn libudt_connects_and_sends() {
    let Some(libudt) = Libudt::find() else { return };
    for len in SIZES {
        let here = Here::new();
        let listener = here.listen().unwrap();
        let peer = libudt.connect(here.local_addr(), &format!("send --bytes {len} --seed 6"));
        let received = recv(&Here::accept(&listener), None).unwrap();
        assert_eq!(received, (len as u64, peer.report().digest("sent_digest")));
    }
}

/// Sends `len` bytes and receives libudt's data until libudt closes. Returns both digests.
pub(crate) fn exchange(with: &Stream, seed: u64, len: usize) -> (u64, (u64, u64)) {
    thread::scope(|scope| {
        let sending = scope.spawn(|| send(with, seed, len).unwrap());
        let received = recv(with, None).unwrap();
        (sending.join().unwrap(), received)
    })
}

fn assert_exchanged(report: &Report, sent: u64, (_, received): (u64, u64)) {
    assert_eq!(report.digest("received_digest"), sent, "{report:?}");
    assert_eq!(report.digest("sent_digest"), received, "{report:?}");
}

#[test]
fn libudt_listens_and_both_send_at_once() {
    let Some(libudt) = Libudt::find() else { return };
    let (peer, address) = libudt.listen("both --bytes 20000000 --expect 15000000 --seed 7");
    let here = Here::new();
    let (sent, received) = exchange(&here.connect(address).unwrap(), 8, 15_000_000);
    assert_exchanged(&peer.report(), sent, received);
}

#[test]
fn libudt_connects_and_both_send_at_once() {
    let Some(libudt) = Libudt::find() else { return };
    let here = Here::new();
    let listener = here.listen().unwrap();
    let peer = libudt.connect(here.local_addr(), "both --bytes 20000000 --expect 15000000 --seed 7");
    let (sent, received) = exchange(&Here::accept(&listener), 8, 15_000_000);
    assert_exchanged(&peer.report(), sent, received);
}

#[test]
fn libudt_echoes_what_it_gets() {
    let Some(libudt) = Libudt::find() else { return };
    let (peer, address) = libudt.listen("echo");
    let here = Here::new();
    let stream_there = here.connect(address).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| send(&stream_there, 9, 3_000_000).unwrap());
        let back = recv(&stream_there, Some(3_000_000)).unwrap();
        assert_eq!(back, (3_000_000, digest_of(&stream(9, 3_000_000))));
    });
    stream_there.finish().unwrap();
    peer.report();
}
