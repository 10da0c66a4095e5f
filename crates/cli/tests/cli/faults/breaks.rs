//! A control channel that breaks by a reset in the middle of a transfer.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use super::breakable_relay::{BreakableRelay, resets};
use super::scripted::{ask_rbudp, give_rbudp};
use super::{BLASTS, Getting, LONG, SLOW, failure, nothing_is_final};
use crate::process::{Scratch, Server, Started, records};

// Slow: ten copies one after another, each with a file of 60 MB, a server and a relay.
#[test]
fn a_blast_whose_channel_breaks_is_lost_at_both_ends_in_both_directions() {
    for protocol in BLASTS {
        for pulls in [false, true] {
            let scratch = Scratch::new();
            let (root, here) = (scratch.dir("root"), scratch.dir("here"));
            let file = scratch.file(if pulls { "root/file" } else { "file" }, LONG);
            let serve = ["serve", "--protocol", protocol, "--root", &root];
            // The sender keeps the rate.
            let (there, near) = if pulls { (&SLOW[..], &[][..]) } else { (&[][..], &SLOW[..]) };
            let mut server = Server::begin(&[&serve[..], there].concat());
            let relay = BreakableRelay::of_both(&server);
            let url = format!("udt://{}/", relay.address);
            let (from, to) = if pulls { (format!("{url}file"), here) } else { (file, url) };
            let copy = ["copy", "--plain", "--json", "--interval", "50ms", "--protocol", protocol, &from, &to];
            let mut copy = Started::begin(&[&copy[..], near].concat(), Stdio::null()).after("interval");
            while copy.record["bytes_total"] == 0 {
                copy.record = copy.next("interval");
            }
            relay.breaks();
            let run = copy.end();
            let case = format!("{protocol}, pulls: {pulls}");
            assert_eq!(failure(&run.end()), (Some(8), Some("PEER_LOST")), "{case}: {}", run.stderr);
            let there = server.wait_for("end");
            assert_eq!(failure(&there), (Some(8), Some("PEER_LOST")), "{case}: {there}");
            nothing_is_final(&scratch, if pulls { "here" } else { "root" });
        }
    }
}

#[test]
fn a_tsunami_copy_whose_channel_breaks_is_lost_at_both_ends() {
    let mut relay = None;
    let mut getting = Getting::begin("tsunami", &[], |server| {
        let made = BreakableRelay::of_tcp(server);
        let address = made.address.clone();
        relay = Some(made);
        address
    });
    relay.unwrap().breaks();
    let run = getting.copy.end();
    assert_eq!(failure(&run.end()), (Some(8), Some("PEER_LOST")), "{}", run.stderr);
    assert!(getting.scratch.names("to").is_empty());
    let there = getting.server.wait_for("end");
    assert_eq!(failure(&there), (Some(8), Some("PEER_LOST")), "{there}");
}

#[test]
fn an_rbudp_receiver_whose_channel_breaks_is_lost_to_its_sender() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    scratch.file("root/file", LONG);
    let mut server = Server::begin(&[&["serve", "--protocol", "rbudp", "--root", &root][..], &SLOW].concat());
    let receiver = ask_rbudp(&server.address, "file");
    resets(receiver);
    let there = server.wait_for("end");
    assert_eq!(failure(&there), (Some(8), Some("PEER_LOST")), "{there}");
}

#[test]
fn an_rbudp_sender_whose_channel_breaks_is_lost_to_its_receiver() {
    let scratch = Scratch::new();
    let to = scratch.dir("to");
    let address = give_rbudp(1_000_000, |channel, datagrams| {
        for index in 0..10_u32 {
            datagrams.send(&[&index.to_le_bytes()[..], &[7; 1_460]].concat()).unwrap();
        }
        resets(channel);
    });
    let place = format!("rbudp://{address}/file");
    let run = Started::begin(&["copy", "--plain", "--json", &place, &to], Stdio::null()).end();
    assert_eq!(failure(&run.end()), (Some(8), Some("PEER_LOST")), "{}", run.stderr);
    assert!(scratch.names("to").is_empty());
}

#[test]
fn a_sabul_stream_whose_channel_breaks_is_doubtful_at_both_ends() {
    let mut sender = Server::begin(&["pipe", "--protocol", "sabul"]);
    let relay = BreakableRelay::of_tcp(&sender);
    let connect = ["pipe", "--plain", "--json", "--protocol", "sabul", "--connect", &relay.address];
    let mut receiver = Started::begin(&connect, Stdio::null());
    let (mut input, mut output) = (sender.input(), receiver.output());
    input.write_all(&[7; 50_000]).unwrap();
    output.read_exact(&mut [0; 50_000]).unwrap();
    relay.breaks();
    // The sender still has an input that is open.
    let there = sender.wait_for("end");
    assert_eq!(failure(&there), (Some(8), Some("PEER_LOST")), "{there}");
    let run = receiver.end();
    let all = records(&run.stderr);
    let warned = all.iter().any(|record| record["event"] == "warning");
    assert!(run.code == 8 || warned, "no end in order: {}", run.stderr);
}

/// A server of Farhaul that is called and reset in the opening lives.
#[test]
fn a_channel_that_breaks_in_the_opening_harms_no_other() {
    for protocol in BLASTS {
        let scratch = Scratch::new();
        let (file, root) = (scratch.file("file", 50_000), scratch.dir("root"));
        let server = Server::begin(&["serve", "--protocol", protocol, "--root", &root]);
        for said in [&b""[..], b"FARHAUL", b"GET / HTTP/1.1\r\n\r\n"] {
            let mut stranger = TcpStream::connect(&server.address).unwrap();
            stranger.write_all(said).unwrap();
            resets(stranger);
        }
        let url = format!("udt://{}/", server.address);
        let copy = ["copy", "--plain", "--protocol", protocol, &file, &url];
        Started::begin(&copy, Stdio::null()).end().succeeds();
    }
}
