//! A signal in the middle of a transfer.

use std::io::{Read, Write};
use std::process::Stdio;

use rustix::process::Signal;

use super::{BLASTS, Getting, LONG, SENDERS, SLOW, failure, nothing_is_final};
use crate::process::{Reporting, Scratch, Server, Started, farhaul, records};

/// A push of one file over `protocol` that is in its middle for a long time.
fn pushing(protocol: &str) -> (Scratch, Server, Reporting) {
    let scratch = Scratch::new();
    let (file, root) = (scratch.file("file", LONG), scratch.dir("root"));
    let server = Server::begin(&["serve", "--protocol", protocol, "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let push = ["copy", "--plain", "--json", "--interval", "50ms", "--protocol", protocol, &file, &url];
    let copy = Started::begin(&[&push[..], &SLOW].concat(), Stdio::null()).after("interval");
    (scratch, server, copy)
}

// Slow: five protocols one after another, each with a file of 60 MB that is under way when the signal comes.
#[test]
fn an_interrupted_blast_keeps_its_part_and_says_where_it_lies() {
    for protocol in BLASTS {
        let (scratch, mut server, copy) = pushing(protocol);
        copy.signal(Signal::INT);
        let run = copy.end();
        run.fails(130, &["interrupted"]);
        let there = server.wait_for("end");
        assert_eq!(failure(&there), (Some(8), Some("PEER_LOST")), "{protocol}: {there}");
        nothing_is_final(&scratch, "root");
    }
}

// Slow: five protocols one after another, each with a file of 60 MB that is under way when the signal comes.
#[test]
fn a_server_that_a_signal_stops_in_a_blast_is_lost_to_its_client() {
    for protocol in BLASTS {
        let (scratch, server, copy) = pushing(protocol);
        server.signal(Signal::TERM);
        let run = copy.end();
        assert_eq!(failure(&run.end()), (Some(8), Some("PEER_LOST")), "{protocol}: {}", run.stderr);
        assert_eq!(server.end().0, 143, "{protocol}");
        nothing_is_final(&scratch, "root");
    }
}

#[test]
fn an_interrupted_copy_from_an_original_leaves_no_part_and_its_server_goes_on() {
    for original in SENDERS {
        let mut getting = Getting::direct(original);
        getting.copy.signal(Signal::INT);
        let run = getting.copy.end();
        run.fails(130, &["interrupted"]);
        assert_eq!(failure(&run.end()), (Some(130), Some("INTERRUPTED")), "{original}: {}", run.end());
        assert!(getting.scratch.names("to").is_empty(), "{original}: {:?}", getting.scratch.names("to"));
        let there = getting.server.wait_for("end");
        assert_eq!(failure(&there), (Some(8), Some("PEER_LOST")), "{original}: {there}");
        getting.scratch.file("root/small", 5);
        let place = format!("{original}://{}/small", getting.server.address);
        farhaul(&["copy", "--plain", &place, &getting.scratch.at("to")]).succeeds();
    }
}

#[test]
fn a_server_for_originals_that_a_signal_stops_is_lost_to_its_client() {
    for original in SENDERS {
        let getting = Getting::direct(original);
        getting.server.signal(Signal::INT);
        let run = getting.copy.end();
        assert_eq!(failure(&run.end()), (Some(8), Some("PEER_LOST")), "{original}: {}", run.stderr);
        assert!(getting.scratch.names("to").is_empty(), "{original}");
        assert_eq!(getting.server.end().0, 130, "{original}");
    }
}

/// More than the buffers of a pipe, and less than a stream's.
const SOME: usize = 300_000;

/// A stream of an original SABUL whose first bytes have arrived, and that goes on.
fn streaming() -> (Server, std::process::ChildStdin, Started) {
    let mut sender = Server::begin(&["pipe", "--protocol", "sabul"]);
    let connect = ["pipe", "--plain", "--json", "--protocol", "sabul", "--connect", &sender.address];
    let mut receiver = Started::begin(&connect, Stdio::null());
    let (mut input, mut output) = (sender.input(), receiver.output());
    input.write_all(&vec![7; SOME]).unwrap();
    output.read_exact(&mut vec![0; SOME]).unwrap();
    (sender, input, receiver)
}

#[test]
fn a_signal_at_the_receiver_of_a_sabul_stream_ends_both_sides() {
    let (mut sender, _input, receiver) = streaming();
    receiver.signal(Signal::INT);
    let run = receiver.end();
    assert_eq!(failure(&records(&run.stderr).pop().unwrap()), (Some(130), Some("INTERRUPTED")), "{}", run.stderr);
    let there = sender.wait_for("end");
    assert_eq!(failure(&there), (Some(8), Some("PEER_LOST")), "{there}");
}

/// Everything that was sent has arrived, so only the reset tells the receiver that more was to come.
#[test]
fn a_signal_at_the_sender_of_a_sabul_stream_is_no_end_of_its_stream() {
    let (mut sender, _input, receiver) = streaming();
    sender.signal(Signal::INT);
    let there = sender.wait_for("end");
    assert_eq!(failure(&there), (Some(130), Some("INTERRUPTED")), "{there}");
    let run = receiver.end();
    let end = records(&run.stderr).pop().unwrap();
    let warned = records(&run.stderr).iter().any(|record| record["event"] == "warning");
    assert!(end["exit_code"] == 8 || warned, "{}", run.stderr);
}
