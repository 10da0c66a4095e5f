//! Messages with libudt over a path that loses one packet in twenty, in either direction.
//!
//! libudt's messages with a time to live are not among them. When one expires in the middle of its packets, libudt 4.11
//! misnumbers the next ones. Its connection then breaks, even against a libudt.

use std::thread;
use std::time::Duration;

use farhaul::{ConnectOptions, MessageSocket, SendOptions};

use crate::content::{Messages, digest_of, message, recv_messages, send_messages};
use crate::here::Here;
use crate::libudt::Libudt;
use crate::long_path::LongPath;
use crate::rendezvous::free_address;
use crate::tap::Tap;

/// Delay in milliseconds before a libudt closes first, so that its last acknowledgement can be repeated.
const CLOSE: &str = "--close-delay 3000";
/// Bytes of a message of many packets. Two in three of them lose at least one packet.
const LONG: usize = 30_000;

/// The sum of the digests of messages `indices` of `seed`.
fn sum_of(seed: u64, len: usize, indices: impl Iterator<Item = u64>) -> u64 {
    indices.map(|index| digest_of(&message(seed, index, len))).fold(0, u64::wrapping_add)
}

/// Sends 150 messages while libudt sends 200.
fn exchange(with: &MessageSocket) -> (u64, Messages) {
    thread::scope(|scope| {
        let sending = scope.spawn(|| send_messages(with, 3, 150, LONG, SendOptions::default()).unwrap());
        let received = recv_messages(with, Some(200)).unwrap();
        (sending.join().unwrap(), received)
    })
}

const BOTH: &str = "both --messages --count 200 --message-size 20000 --expect 150 --seed 4";

// Waits for 150 messages of 30 kB and 200 of 20 kB over the lossy path, and for the 3 s until libudt closes.
#[test]
fn messages_go_both_ways_at_once() {
    let Some(libudt) = Libudt::find() else { return };
    let here = Here::new();
    let listener = here.listen_for_messages().unwrap();
    let path = LongPath::lossy(here.local_addr());
    let peer = libudt.connect(path.address(), &format!("{BOTH} {CLOSE}"));
    let socket = Here::accept_messages(&listener);
    let (sent, received) = exchange(&socket);
    let report = peer.report();
    assert_eq!((report.digest("received_digest"), report.digest("sent_digest")), (sent, received.digest));
}

// Waits for 150 messages of 30 kB and 200 of 20 kB over the lossy path, and for the 3 s until libudt closes.
#[test]
fn messages_go_both_ways_in_a_rendezvous() {
    let Some(libudt) = Libudt::find() else { return };
    let here = Here::new();
    // The relay's port for libudt is unknown in advance. The tap behind it has one that this side can call.
    let tap = Tap::new(here.local_addr(), 0);
    let path = LongPath::lossy(tap.address());
    let action = format!("{BOTH} --start-delay 500 {CLOSE}");
    let peer = libudt.rendezvous(free_address(), path.address(), &action);
    let socket = here.connect_with(tap.back_address(), ConnectOptions::messages().rendezvous()).unwrap();
    let (sent, received) = exchange(&socket);
    let report = peer.report();
    assert_eq!((report.digest("received_digest"), report.digest("sent_digest")), (sent, received.digest));
}

// Waits twice for 100 messages over the lossy path, and for the 3 s until libudt closes.
#[test]
fn libudt_skips_messages_that_expired_unsent() {
    let Some(libudt) = Libudt::find() else { return };
    for len in [100, LONG] {
        let (peer, address) = libudt.listen(&format!("recv --messages --expect 100 {CLOSE}"));
        let path = LongPath::lossy(address);
        let to = Here::new().connect_with(path.address(), ConnectOptions::messages()).unwrap();
        for index in 0..200 {
            let expired = SendOptions::default().in_order().time_to_live(Duration::ZERO);
            let options = if index % 2 == 0 { SendOptions::default().in_order() } else { expired };
            to.send_with(&message(6, index, len), options).unwrap();
        }
        // libudt's only shutdown may be lost, so its report shows that it is done.
        let report = peer.report();
        assert_eq!(report.digest("received_digest"), sum_of(6, len, (0..200).step_by(2)), "{report:?}");
        assert_eq!(report.count("out_of_order"), 0, "{report:?}");
    }
}

// Slow: twice 200 messages of 30 kB over the lossy path, of which at least 100 come back.
#[test]
fn messages_that_expire_in_transit_to_libudt_do_not_affect_the_others() {
    let Some(libudt) = Libudt::find() else { return };
    for in_order in [false, true] {
        let (_peer, address) = libudt.listen("echo --messages");
        let path = LongPath::lossy(address);
        let socket = Here::new().connect_with(path.address(), ConnectOptions::messages()).unwrap();
        let lasting = if in_order { SendOptions::default().in_order() } else { SendOptions::default() };
        thread::scope(|scope| {
            scope.spawn(|| {
                for index in 0..200 {
                    // About the queueing time of a message with a retransmission or two. So some messages expire in the
                    // middle of their packets.
                    let short = lasting.time_to_live(Duration::from_millis(60));
                    let options = if index % 2 == 0 { lasting } else { short };
                    socket.send_with(&message(7, index, LONG), options).unwrap();
                }
            });
            let mut room = vec![0; LONG];
            let mut lasting: Vec<u64> = Vec::new();
            while lasting.len() < 100 {
                let received = socket.recv(&mut room).unwrap().expect("libudt closes last");
                let index = u64::from_le_bytes(*room[8..].first_chunk().unwrap());
                assert!(received.len == LONG && room == message(7, index, LONG), "message {index} is damaged");
                lasting.extend((index % 2 == 0).then_some(index));
            }
            lasting.sort_unstable();
            assert!(lasting.into_iter().eq((0..200).step_by(2)));
        });
        assert!(socket.stats().unwrap().totals.messages_dropped > 0, "some expired");
    }
}
