//! Messages: ordered, unordered, with a time to live, in both directions.

use std::thread;
use std::time::Duration;

use farhaul::{ConnectOptions, MessageSocket, SendOptions};

use crate::content::{Messages, recv_messages, send_messages};
use crate::here::Here;
use crate::libudt::{Libudt, Report};

/// Number and bytes of messages: part of a packet, one packet and a byte, and many packets.
const SHAPES: [(u64, usize); 5] = [(50, 1), (300, 1_456), (300, 1_457), (200, 20_000), (50, 100_000)];

fn assert_received(report: &Report, count: u64, digest: u64) {
    assert_eq!((report.count("received_messages"), report.count("damaged")), (count, 0), "{report:?}");
    assert_eq!(report.digest("received_digest"), digest, "{report:?}");
}

/// When this side closes, libudt discards messages that its application has not read. So libudt must close first.
fn await_close(socket: &MessageSocket) {
    assert_eq!(socket.recv(&mut []).unwrap(), None);
}

fn assert_sent(report: &Report, messages: &Messages, count: u64) {
    assert_eq!((messages.order.len() as u64, messages.digest), (count, report.digest("sent_digest")), "{report:?}");
}

#[test]
fn libudt_listens_and_receives_messages() {
    let Some(libudt) = Libudt::find() else { return };
    for (count, len) in SHAPES {
        for options in [SendOptions::default().in_order(), SendOptions::default()] {
            let (peer, address) = libudt.listen(&format!("recv --messages --expect {count} --close-delay 0"));
            let here = Here::new();
            let to = here.connect_with(address, ConnectOptions::messages()).unwrap();
            let digest = send_messages(&to, 1, count, len, options).unwrap();
            await_close(&to);
            let report = peer.report();
            assert_received(&report, count, digest);
            assert!(!options.in_order || report.count("out_of_order") == 0, "{report:?}");
        }
    }
}

#[test]
fn libudt_connects_and_sends_messages() {
    let Some(libudt) = Libudt::find() else { return };
    for (count, len) in SHAPES {
        for in_order in [1, 0] {
            let here = Here::new();
            let listener = here.listen_for_messages().unwrap();
            let action = format!("send --messages --count {count} --message-size {len} --in-order {in_order} --seed 2");
            let peer = libudt.connect(here.local_addr(), &action);
            let messages = recv_messages(&Here::accept_messages(&listener), None).unwrap();
            assert_sent(&peer.report(), &messages, count);
            assert!(in_order == 0 || messages.order.is_sorted());
        }
    }
}

/// Sends 200 messages while libudt sends 300, until libudt closes.
fn exchange(with: &MessageSocket) -> (u64, Messages) {
    thread::scope(|scope| {
        let sending = scope.spawn(|| send_messages(with, 3, 200, 5_000, SendOptions::default()).unwrap());
        let received = recv_messages(with, None).unwrap();
        (sending.join().unwrap(), received)
    })
}

const BOTH: &str = "both --messages --count 300 --message-size 4000 --expect 200 --seed 4";

#[test]
fn libudt_listens_and_messages_go_both_ways() {
    let Some(libudt) = Libudt::find() else { return };
    let (peer, address) = libudt.listen(BOTH);
    let here = Here::new();
    let (sent, received) = exchange(&here.connect_with(address, ConnectOptions::messages()).unwrap());
    let report = peer.report();
    assert_received(&report, 200, sent);
    assert_sent(&report, &received, 300);
}

#[test]
fn libudt_connects_and_messages_go_both_ways() {
    let Some(libudt) = Libudt::find() else { return };
    let here = Here::new();
    let listener = here.listen_for_messages().unwrap();
    let peer = libudt.connect(here.local_addr(), BOTH);
    let (sent, received) = exchange(&Here::accept_messages(&listener));
    let report = peer.report();
    assert_received(&report, 200, sent);
    assert_sent(&report, &received, 300);
}

#[test]
fn messages_that_live_long_enough_all_arrive() {
    let Some(libudt) = Libudt::find() else { return };
    let (peer, address) = libudt.listen("recv --messages --expect 200 --close-delay 0");
    let here = Here::new();
    let to = here.connect_with(address, ConnectOptions::messages()).unwrap();
    let digest =
        send_messages(&to, 5, 200, 3_000, SendOptions::default().time_to_live(Duration::from_secs(30))).unwrap();
    await_close(&to);
    assert_received(&peer.report(), 200, digest);

    let listener = here.listen_for_messages().unwrap();
    let peer = libudt.connect(here.local_addr(), "send --messages --count 200 --message-size 3000 --ttl 30000");
    let messages = recv_messages(&Here::accept_messages(&listener), None).unwrap();
    assert_sent(&peer.report(), &messages, 200);
}
