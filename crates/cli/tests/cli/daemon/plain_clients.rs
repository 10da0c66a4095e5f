//! Clients in plain, from the networks that the settings name.

use std::fs;

use rustix::process::Signal;

use super::{admit_writer, begin, copy, settings, url};
use crate::process::Scratch;

/// The whole of 127.0.0.0/8 is this host, and its clients call from 127.0.0.1.
const HERE: &str = "[plain]\nallow = [\"127.0.0.0/8\", \"2001:db8::/32\"]";

#[test]
fn a_plain_client_of_an_allowed_network_reads_and_does_not_write() {
    let scratch = Scratch::new();
    let file = settings(&scratch, HERE);
    let (home, sent) = (scratch.dir("home"), scratch.file("sent", 300_000));
    admit_writer(&scratch, &home);
    fs::copy(&sent, scratch.at("root/kept")).unwrap();
    let mut daemon = begin(&file);
    let shown = &daemon.record["settings"]["plain"];
    assert_eq!(shown["allow"], serde_json::json!(["127.0.0.0/8", "2001:db8::/32"]));
    assert_eq!((&shown["write"], &shown["rate_bps"]), (&false.into(), &1_000_000_000_u64.into()));
    assert_eq!(daemon.record["security"], "tls1.3");
    let url = url(&daemon);
    let from = format!("{url}kept");
    let read = copy(&home, true, &[&from, &scratch.at("got")]);
    read.succeeds();
    assert_eq!(read.end()["security"], "none");
    assert_eq!(fs::read(scratch.at("got")).unwrap(), fs::read(&sent).unwrap());
    let warning = daemon.next("warning");
    let words = warning["message"].as_str().unwrap();
    assert!(words.contains("127.0.0.1") && words.contains("in plain"), "{words}");
    assert_eq!(daemon.next("end")["security"], "none");
    let written = copy(&home, true, &[&sent, &url]);
    assert_ne!(written.code, 0);
    assert!(written.stderr.contains("may only read"), "{}", written.stderr);
    assert_eq!(scratch.names("root"), ["kept"]);
    // Clients with a key have all that they had.
    copy(&home, false, &[&sent, &url]).succeeds();
    assert_eq!(scratch.names("root"), ["kept", "sent"]);
    let ended = (0..5).map(|_| daemon.next("end")).find(|end| end["direction"] == "received").unwrap();
    assert_eq!(ended["security"], "tls1.3");
    daemon.signal(Signal::TERM);
    daemon.end();
}

#[test]
fn a_plain_client_writes_within_the_rate_if_the_file_says_so() {
    let scratch = Scratch::new();
    let file = settings(&scratch, &format!("{HERE}\nwrite = true\nrate = \"8mbit\""));
    let (home, sent) = (scratch.dir("home"), scratch.file("sent", 500_000));
    let daemon = begin(&file);
    let run = copy(&home, true, &[&sent, &url(&daemon)]);
    run.succeeds();
    assert_eq!(scratch.names("root"), ["sent"]);
    let seconds = run.end()["seconds"].as_f64().unwrap();
    assert!(seconds > 0.45, "500 kB at 8 Mbit/s take half a second: {seconds}");
    daemon.signal(Signal::TERM);
    daemon.end();
}

#[test]
fn networks_of_plain_clients_are_read_again_by_sighup() {
    let scratch = Scratch::new();
    let elsewhere = "any-client = true\n[plain]\nallow = [\"192.0.2.0/24\"]";
    let file = settings(&scratch, elsewhere);
    let home = scratch.dir("home");
    fs::copy(scratch.file("sent", 1_000), scratch.at("root/kept")).unwrap();
    let mut daemon = begin(&file);
    let from = format!("{}kept", url(&daemon));
    let read = |plain| copy(&home, plain, &[&from, &scratch.at("got")]);
    read(true).fails(4, &["no answer"]);
    read(false).succeeds();
    let write = |more: &str| {
        let root = scratch.at("root");
        fs::write(&file, format!("root = \"{root}\"\nlisten = \"127.0.0.1:0\"\n{more}\n")).unwrap();
        daemon.signal(Signal::HUP);
    };
    write(&format!("any-client = true\n{HERE}"));
    let admitted = (0..50).map(|_| read(true)).find(|run| run.code == 0);
    admitted.expect("the signal needs a moment").succeeds();
    // A mistake keeps the networks of before.
    write("any-client = true\n[plain]\nallow = [\"everybody\"]");
    read(true).succeeds();
    write(elsewhere);
    let refused = (0..50).map(|_| read(true)).find(|run| run.code != 0);
    refused.expect("the signal needs a moment").fails(4, &["no answer"]);
    read(false).succeeds();
    while !daemon.next("warning")["message"].as_str().unwrap().contains("plain clients of before") {}
    daemon.signal(Signal::TERM);
    daemon.end();
}
