//! A file that becomes shorter while it is sent.

use std::fs::{self, OpenOptions};
use std::process::Stdio;
use std::time::Duration;

use super::{BLASTS, Getting, LONG, SLOW, failure};
use crate::limits::slow;
use crate::process::{Scratch, Server, Started};

/// So much is in memory ahead of the network.
const BUFFER: [&str; 2] = ["--buffer", "2MiB"];
/// The rest of the file.
const REST: u64 = 1_000;

fn shrink(path: &str) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(REST).unwrap();
}

// Slow: five protocols one after another, each with a file of 60 MB, of which up to 2 MiB in memory still go at 20 Mbit/s.
#[test]
fn a_file_that_shrinks_in_a_blast_arrives_as_it_is_then() {
    for protocol in BLASTS {
        let scratch = Scratch::new();
        let (file, root) = (scratch.file("file", LONG), scratch.dir("root"));
        let mut server = Server::begin(&["serve", "--protocol", protocol, "--root", &root]);
        let url = format!("udt://{}/", server.address);
        let push = ["copy", "--plain", "--json", "--interval", "50ms", "--protocol", protocol, &file, &url];
        let copy = Started::begin(&[&push[..], &SLOW, &BUFFER].concat(), Stdio::null()).after("interval");
        shrink(&file);
        let run = copy.end();
        run.succeeds();
        let there = server.wait_for("end");
        assert_eq!(failure(&there), (Some(0), None), "{protocol}: {there}");
        assert!(fs::read(scratch.at("root/file")).unwrap() == fs::read(&file).unwrap(), "{protocol}");
    }
}

// Slow: five protocols one after another, each with a file of 60 MB, of which up to 2 MiB in memory still go at 20 Mbit/s.
#[test]
fn a_file_of_the_server_that_shrinks_while_it_is_fetched_arrives_as_it_is_then() {
    for protocol in BLASTS {
        let scratch = Scratch::new();
        let (root, to) = (scratch.dir("root"), scratch.dir("to"));
        scratch.file("root/file", LONG);
        let serve = ["serve", "--protocol", protocol, "--root", &root];
        let mut server = Server::begin(&[&serve[..], &SLOW, &BUFFER].concat());
        let url = format!("udt://{}/file", server.address);
        let pull = ["copy", "--plain", "--json", "--interval", "50ms", "--protocol", protocol, &url, &to];
        let copy = Started::begin(&pull, Stdio::null()).after("interval");
        shrink(&scratch.at("root/file"));
        let run = copy.end();
        assert_eq!(failure(&run.end()), (Some(0), None), "{protocol}: {}", run.end());
        let there = server.wait_for("end");
        assert_eq!(failure(&there), (Some(0), None), "{protocol}: {there}");
        let (file, copied) = (scratch.at("root/file"), scratch.at("to/file"));
        assert!(fs::read(file).unwrap() == fs::read(copied).unwrap(), "{protocol}");
    }
}

#[test]
fn a_file_that_shrinks_while_a_tsunami_client_gets_it_ends_the_session_by_name() {
    let mut getting = Getting::direct("tsunami");
    shrink(&getting.scratch.at("root/file"));
    let run = getting.copy.end();
    run.fails(8, &["ended the control connection"]);
    assert!(getting.scratch.names("to").is_empty());
    let there = getting.server.wait_for("end");
    assert_eq!(failure(&there), (Some(3), Some("FILES_FAILED")), "{there}");
    assert!(there["error"]["message"].as_str().unwrap().contains("it became shorter while it was sent"), "{there}");
}

/// The sender holds the file in memory soon, so its disk is slow here.
#[test]
fn a_file_that_shrinks_while_an_rbudp_sender_reads_it_ends_the_session_by_name() {
    let Some(slow) = slow("pread64", Duration::from_millis(100)) else { return };
    let slow: Vec<&str> = slow.iter().map(String::as_str).collect();
    let scratch = Scratch::new();
    let (root, to) = (scratch.dir("root"), scratch.dir("to"));
    scratch.file("root/file", LONG);
    let mut server =
        Server::begin_under(&slow, &[&["serve", "--protocol", "rbudp", "--root", &root][..], &SLOW].concat());
    let place = format!("rbudp://{}/file", server.address);
    let get = ["copy", "--plain", "--json", "--interval", "50ms", &place, &to];
    let copy = Started::begin(&get, Stdio::null()).after("interval");
    shrink(&scratch.at("root/file"));
    copy.end().fails(8, &["broke before everything was transferred"]);
    assert!(scratch.names("to").is_empty());
    let there = server.wait_for("end");
    assert_eq!(failure(&there), (Some(3), Some("FILES_FAILED")), "{there}");
}
