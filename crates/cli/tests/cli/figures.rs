//! Consistency of the figures in records. Unmeasured figures are absent.

use std::process::Stdio;
use std::thread;

use rustix::process::Signal;
use serde_json::Value;

use crate::limits::{is_limited_by, measure, one_is_limited_by, relay};
use crate::process::{Scratch, Server, Started, farhaul, records};

fn copied(from: &str, to: &str) -> Value {
    let run = farhaul(&["copy", "--plain", "--json", from, to]);
    run.succeeds();
    run.end()
}

#[test]
fn a_transfer_of_a_few_round_trips_has_no_verdict_and_no_goodput() {
    let scratch = Scratch::new();
    let (file, root) = (scratch.file("file", 3), scratch.dir("root"));
    let mut server = Server::begin(&["serve", "--root", &root]);
    // The round trip is long beside what a busy machine adds to a transfer of four of them.
    let (_relay, address) = relay(&server, &["--delay", "100ms"]);
    let sent = copied(&file, &format!("udt://{address}/"));
    for end in [sent, server.wait_for("end")] {
        assert_eq!(end["bytes"], 3, "{end}");
        assert!(end["limited_by"].is_null() && end["limited_by_share"].is_null(), "{end}");
        assert!(end["goodput_bps"].is_null(), "three bytes come at one moment: {end}");
    }
    let listener = Server::begin(&["bench", "--interval", "0"]);
    let (_relay, address) = relay(&listener, &["--delay", "100ms"]);
    let run = farhaul(&["bench", "--plain", "--connect", &address, "--bytes", "0B"]);
    run.succeeds();
    assert!(run.stderr.contains("too short for a limit"), "{}", run.stderr);
}

#[test]
fn a_receiver_tells_what_held_its_sender() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    scratch.file("root/file", 3_000_000);
    let listener = Server::begin(&["bench", "--interval", "0", "--rate", "20mbit"]);
    one_is_limited_by("rate_cap", |_| measure(&listener.address, &["--reverse", "--bytes", "3MB"]));
    let server = Server::begin(&["serve", "--root", &root, "--rate", "20mbit"]);
    let source = format!("udt://{}/file", server.address);
    one_is_limited_by("rate_cap", |number| copied(&source, &scratch.at(&format!("copy{number}"))));
}

#[test]
fn a_program_that_reads_slowly_is_no_disk() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    scratch.file("root/file", 4_000_000);
    let server = Server::begin(&["serve", "--root", &root]);
    let last = Server::begin(&["pipe"]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let url = format!("udt://{}/file", server.address);
    // Reads on only when the next pipe has passed the last piece on, at the speed of its cap.
    let pass_on = ["pipe", "--plain", "--rate", "20mbit", "--buffer", "64kB", "--connect", &last.address];
    let (passed, pass) = std::io::pipe().unwrap();
    let slow = Started::begin(&pass_on, passed.into());
    let copying = Started::begin_to(&["copy", "--plain", "--json", &url, "-"], Stdio::null(), writer.into());
    thread::scope(|scope| {
        let mut last = last;
        last.feed(b"");
        let mut drain = last.output();
        scope.spawn(move || std::io::copy(&mut drain, &mut std::io::sink()));
        scope.spawn(move || {
            let mut pass = pass;
            std::io::copy(&mut reader, &mut pass)
        });
        let run = copying.end();
        run.succeeds();
        is_limited_by(records(&run.stderr).last().unwrap(), "application");
        slow.end().succeeds();
        drop(last);
    });
}

/// The packet that tells the sender's figures comes after them.
const REPORT: u64 = 1;

#[test]
fn a_sender_has_sent_no_less_than_its_receiver_got() {
    let server = Server::begin(&["bench", "--interval", "0"]);
    let (_relay, address) = relay(&server, &["--delay", "10ms"]);
    for reverse in [&[][..], &["--reverse"]] {
        let arguments = ["bench", "--plain", "--json", "--interval", "0", "--connect", &address, "--bytes", "3MB"];
        let run = farhaul(&[&arguments, reverse].concat());
        run.succeeds();
        let end = run.end();
        let (here, there) = (&end, &end["peer"]);
        let (sender, receiver) = if reverse.is_empty() { (here, there) } else { (there, here) };
        let (sent, got) = (sender["packets_sent"].as_u64().unwrap(), receiver["packets_received"].as_u64().unwrap());
        assert!(sent + REPORT >= got, "{end}");
    }
}

#[test]
fn a_failed_pull_has_no_goodput() {
    let scratch = Scratch::new();
    let server = Server::begin(&["serve", "--root", &scratch.dir("root")]);
    let url = format!("udt://{}/nothing", server.address);
    let run = farhaul(&["copy", "--plain", "--json", &url, &scratch.at("copy")]);
    run.fails(3, &["nothing"]);
    assert_eq!((&run.end()["bytes"], &run.end()["goodput_bps"]), (&0.into(), &Value::Null), "{}", run.end());
}

#[test]
fn a_measurement_that_is_stopped_tells_what_was_measured_until_then() {
    let server = Server::begin(&["bench", "--interval", "0"]);
    for json in [true, false] {
        let arguments = ["bench", "--plain", "--connect", &server.address, "--seconds", "30", "--rate", "20mbit"];
        let arguments = [&arguments[..], &["--interval", "0.1"]].concat();
        let run = if json {
            let client = Started::begin(&[&arguments[..], &["--json"]].concat(), Stdio::null()).after("interval");
            client.signal(Signal::INT);
            client.end()
        } else {
            let mut client = Started::begin(&arguments, Stdio::null());
            client.says("packets retransmitted");
            client.signal(Signal::INT);
            client.end()
        };
        run.fails(130, &["interrupted"]);
        if json {
            let end = run.end();
            assert!(end["bytes"].as_u64() > Some(0) && end["goodput_bps"].as_u64() > Some(0), "{end}");
            assert!(end["seconds"].as_f64() < Some(20.0) && end["error"]["code"] == "INTERRUPTED", "{end}");
        } else {
            assert!(run.stderr.contains("measured:"), "{}", run.stderr);
        }
    }
}

#[test]
fn a_measurement_by_time_ends_near_it_at_any_rate() {
    let server = Server::begin(&["bench", "--interval", "0"]);
    let arguments = ["bench", "--plain", "--json", "--interval", "0", "--connect", &server.address];
    let run = farhaul(&[&arguments[..], &["--seconds", "1", "--rate", "200kbit"]].concat());
    run.succeeds();
    // A second, and what the transport and a frame hold beyond it: at a frame of full length it would be forty.
    assert!(run.end()["seconds"].as_f64() < Some(10.0), "{}", run.end());
}

/// A peer that lives and takes everything, and does not know what is wanted.
#[test]
fn a_peer_that_never_answers_is_busy_or_no_farhaul_of_this_kind() {
    let scratch = Scratch::new();
    let file = scratch.file("file", 5);
    let peer = || {
        let mut peer = Server::begin_to(&["pipe"], Stdio::null());
        peer.feed(b"");
        peer
    };
    // Side by side, since each waits for an answer and then for the end of the connection.
    thread::scope(|scope| {
        for reverse in [&[][..], &["--reverse"]] {
            scope.spawn(move || {
                let peer = peer();
                let arguments =
                    ["bench", "--plain", "--connect", &peer.address, "--seconds", "0.2", "--connect-timeout", "1s"];
                farhaul(&[&arguments, reverse].concat()).fails(8, &[&peer.address, "very busy", "farhaul bench"]);
            });
        }
        let peer = peer();
        let url = format!("udt://{}/", peer.address);
        farhaul(&["copy", "--plain", "--connect-timeout", "1s", &file, &url]).fails(8, &["very busy", "farhaul serve"]);
    });
}
