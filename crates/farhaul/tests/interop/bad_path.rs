//! All transfers over a path with an RTT of 20 ms that loses, duplicates and reorders packets.

use farhaul::{ConnectOptions, SendOptions};
use farhaul_emu::RelayReport;

use crate::content::{recv, recv_messages, send, send_messages};
use crate::here::Here;
use crate::libudt::Libudt;
use crate::long_path::LongPath;
use crate::rendezvous::free_address;
use crate::stream::exchange;
use crate::tap::Tap;

/// Delay in milliseconds before a libudt closes first, so that its last acknowledgement can be repeated.
const CLOSE: &str = "--close-delay 3000";
/// Bytes that a libudt sends. This side does not wait for its end: if its only shutdown is lost, only half a minute of
/// silence shows the end. Nor may this side end first, because its last acknowledgement may be lost.
const BYTES: u64 = 2_000_000;
const MESSAGES: usize = 100;

/// Checks that the relay lost, duplicated and reordered packets in each direction with much data.
fn assert_bad(report: &RelayReport) {
    for counters in [report.up.path, report.down.path] {
        let all = [counters.dropped_loss, counters.duplicated, counters.reordered].map(|tally| tally.packets);
        assert!(counters.pushed.packets < 1_000 || all.iter().all(|packets| *packets > 0), "{counters:?}");
    }
}

#[test]
fn a_stream_to_a_listening_libudt() {
    let Some(libudt) = Libudt::find() else { return };
    let (peer, address) = libudt.listen("recv");
    let path = LongPath::bad(address);
    let stream = Here::new().connect(path.address()).unwrap();
    let digest = send(&stream, 1, 5_000_000).unwrap();
    stream.finish().unwrap();
    assert_eq!(peer.report().digest("received_digest"), digest);
    assert_bad(&path.end());
}

#[test]
fn a_stream_from_a_listening_libudt() {
    let Some(libudt) = Libudt::find() else { return };
    let (peer, address) = libudt.listen(&format!("send --bytes {BYTES} --start-delay 50"));
    let path = LongPath::bad(address);
    let stream = Here::new().connect(path.address()).unwrap();
    let received = recv(&stream, Some(BYTES)).unwrap();
    assert_eq!(received, (BYTES, peer.report().digest("sent_digest")));
    assert_bad(&path.end());
}

#[test]
fn a_stream_to_a_libudt_that_called() {
    let Some(libudt) = Libudt::find() else { return };
    let here = Here::new();
    let listener = here.listen().unwrap();
    let path = LongPath::bad(here.local_addr());
    // libudt drops packets while it is connecting, so every transfer to it starts with losses.
    let peer = libudt.connect(path.address(), &format!("recv --expect 5000000 {CLOSE}"));
    let accepted = Here::accept(&listener);
    let digest = send(&accepted, 2, 5_000_000).unwrap();
    accepted.finish().unwrap();
    assert_eq!(peer.report().digest("received_digest"), digest);
    assert_bad(&path.end());
}

#[test]
fn a_stream_from_a_libudt_that_called() {
    let Some(libudt) = Libudt::find() else { return };
    let here = Here::new();
    let listener = here.listen().unwrap();
    let path = LongPath::bad(here.local_addr());
    let peer = libudt.connect(path.address(), &format!("send --bytes {BYTES}"));
    let stream = Here::accept(&listener);
    let received = recv(&stream, Some(BYTES)).unwrap();
    assert_eq!(received, (BYTES, peer.report().digest("sent_digest")));
    assert_bad(&path.end());
}

#[test]
fn streams_both_ways_at_once() {
    let Some(libudt) = Libudt::find() else { return };
    let here = Here::new();
    let listener = here.listen().unwrap();
    let path = LongPath::bad(here.local_addr());
    let peer = libudt.connect(path.address(), &format!("both --bytes 1000000 --expect 2000000 {CLOSE}"));
    let (sent, received) = exchange(&Here::accept(&listener), 3, 2_000_000);
    let report = peer.report();
    assert_eq!((report.digest("received_digest"), report.digest("sent_digest")), (sent, received.1));
    assert_bad(&path.end());
}

#[test]
fn messages_to_libudt_ordered_and_unordered() {
    let Some(libudt) = Libudt::find() else { return };
    for options in [SendOptions::default().in_order(), SendOptions::default()] {
        let (peer, address) = libudt.listen("recv --messages --expect 200");
        let path = LongPath::bad(address);
        let to = Here::new().connect_with(path.address(), ConnectOptions::messages()).unwrap();
        let digest = send_messages(&to, 4, 200, 10_000, options).unwrap();
        let report = peer.report();
        assert_eq!(report.digest("received_digest"), digest);
        assert!(!options.in_order || report.count("out_of_order") == 0, "{report:?}");
        assert_bad(&path.end());
    }
}

#[test]
fn messages_from_libudt_ordered_and_unordered() {
    let Some(libudt) = Libudt::find() else { return };
    for in_order in [1, 0] {
        let here = Here::new();
        let listener = here.listen_for_messages().unwrap();
        let path = LongPath::bad(here.local_addr());
        let action = format!("send --messages --count {MESSAGES} --message-size 10000 --in-order {in_order}");
        let peer = libudt.connect(path.address(), &action);
        let from = Here::accept_messages(&listener);
        let messages = recv_messages(&from, Some(MESSAGES)).unwrap();
        assert_eq!(peer.report().digest("sent_digest"), messages.digest);
        assert!(in_order == 0 || messages.order.is_sorted());
        assert_bad(&path.end());
    }
}

#[test]
fn a_rendezvous() {
    let Some(libudt) = Libudt::find() else { return };
    let here = Here::new();
    // The relay's port for libudt is unknown in advance. The tap behind it has one that this side can call.
    let tap = Tap::new(here.local_addr(), 0);
    let path = LongPath::bad(tap.address());
    let action = format!("both --bytes 500000 --expect 1000000 --start-delay 500 {CLOSE}");
    let peer = libudt.rendezvous(free_address(), path.address(), &action);
    let stream = here.connect_with(tap.back_address(), ConnectOptions::stream().rendezvous()).unwrap();
    let (sent, received) = exchange(&stream, 5, 1_000_000);
    let report = peer.report();
    assert_eq!((report.digest("received_digest"), report.digest("sent_digest")), (sent, received.1));
    assert_bad(&path.end());
}
