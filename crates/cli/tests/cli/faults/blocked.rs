//! UDP that is blocked while TCP works: named within three seconds, on both sides where both can know.
//!
//! Virtual time tests the three seconds in `farhaul-proto`. These runs take the time that the program reports, with room
//! for a busy machine.

use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::breakable_relay::BreakableRelay;
use super::scripted::{ask_rbudp, give_rbudp, give_tsunami, receive_sabul};
use super::silence::wait_for_the_end;
use super::{BLASTS, failure, pause};
use crate::process::{Scratch, Server, farhaul};

/// The limit, and what the opening and a busy machine add at most.
const NAMED_WITHIN: f64 = 3.0 + 2.0;

#[track_caller]
fn is_named_in_time(end: &Value, case: &str) {
    let seconds = end["seconds"].as_f64().unwrap();
    assert!(seconds < NAMED_WITHIN, "{case}: {seconds} s");
}

#[test]
fn blocked_udp_is_named_by_every_protocol_in_both_directions() {
    thread::scope(|scope| {
        for protocol in BLASTS {
            for direction in [&[][..], &["--reverse"]] {
                scope.spawn(move || {
                    let server = Server::begin(&["bench", "--protocol", protocol, "--interval", "0"]);
                    let relay = BreakableRelay::of_tcp(&server);
                    let bench = ["bench", "--plain", "--json", "--protocol", protocol, "--connect", &relay.address];
                    let run = farhaul(&[&bench[..], &["--bytes", "9MB"], direction].concat());
                    run.fails(4, &["UDP", &relay.address]);
                    let end = run.end();
                    assert_eq!(failure(&end), (Some(4), Some("UDP_BLOCKED")), "{protocol}: {end}");
                    is_named_in_time(&end, protocol);
                });
            }
        }
    });
}

#[test]
fn blocked_udp_of_a_copy_is_named_and_nothing_has_a_name() {
    thread::scope(|scope| {
        for protocol in BLASTS {
            scope.spawn(move || {
                let scratch = Scratch::new();
                let (file, root) = (scratch.file("file", 3_000_000), scratch.dir("root"));
                let server = Server::begin(&["serve", "--protocol", protocol, "--root", &root]);
                let relay = BreakableRelay::of_tcp(&server);
                let url = format!("udt://{}/", relay.address);
                let run = farhaul(&["copy", "--plain", "--json", "--protocol", protocol, &file, &url]);
                assert_eq!(failure(&run.end()), (Some(4), Some("UDP_BLOCKED")), "{protocol}: {}", run.stderr);
                is_named_in_time(&run.end(), protocol);
                super::nothing_is_final(&scratch, "root");
            });
        }
    });
}

// Side by side, since each waits for the 3 s until UDP counts as blocked.
#[test]
fn blocked_udp_of_an_original_is_named_by_its_client() {
    let tsunami = give_tsunami(10_000, |channel, _, _datagrams| wait_for_the_end(channel));
    let rbudp = give_rbudp(10_000, |channel, _datagrams| wait_for_the_end(channel));
    thread::scope(|scope| {
        for place in [format!("tsunami://{tsunami}/a"), format!("rbudp://{rbudp}/a")] {
            scope.spawn(move || {
                let scratch = Scratch::new();
                let run = farhaul(&["copy", "--plain", "--json", &place, &scratch.dir("to")]);
                run.fails(4, &["a firewall blocks UDP"]);
                is_named_in_time(&run.end(), &place);
                assert!(scratch.names("to").is_empty());
            });
        }
    });
}

#[test]
fn blocked_udp_is_named_by_an_rbudp_sender_after_the_first_bitmap() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    scratch.file("root/file", 1_460 * 32);
    let mut server = Server::begin(&["serve", "--protocol", "rbudp", "--root", &root]);
    let mut receiver = ask_rbudp(&server.address, "file");
    receiver.read_exact(&mut [0; 8]).unwrap();
    // 32 packets are missing, and a byte of ones follows (QUANTA).
    receiver.write_all(&[0, 0, 0, 0, 0, 0xFF]).unwrap();
    let there = server.wait_for("end");
    assert_eq!(there["exit_code"], 4, "{there}");
    assert!(there["error"]["message"].as_str().unwrap().contains("firewall blocks UDP"), "{there}");
    is_named_in_time(&there, "rbudp");
}

#[test]
fn blocked_udp_is_named_by_a_sabul_sender() {
    let mut sender = Server::begin(&["pipe", "--protocol", "sabul"]);
    sender.feed(&[7; 50_000]);
    let (mut channel, _datagrams) = receive_sabul(&sender.address);
    thread::spawn(move || {
        // SYN: no packet has arrived since the last one.
        while channel.write_all(&[0, 0, 0, 4, 0, 0, 0, 0]).is_ok() {
            pause(Duration::from_millis(10));
        }
    });
    let there = sender.wait_for("end");
    assert_eq!(there["exit_code"], 4, "{there}");
    assert!(there["error"]["message"].as_str().unwrap().contains("firewall blocks UDP"), "{there}");
    is_named_in_time(&there, "sabul");
}
