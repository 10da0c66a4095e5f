use std::fs;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::emulate::FORBIDDEN;
use crate::process::{Scratch, Server, Started, farhaul, farhaul_under, farhaul_where};
use crate::requirement::runs;

/// The fields of the `end` record that scripts rely on.
const REQUIRED: &[&str] = &[
    "bytes",
    "seconds",
    "goodput_bps",
    "packets_sent",
    "packets_retransmitted",
    "packets_received",
    "loss_ratio",
    "rtt_us",
    "cpu_seconds",
    "peer",
    "controller",
    "protocol",
    "limited_by",
];

#[test]
fn a_file_is_pushed_and_pulled_and_verified() {
    let scratch = Scratch::new();
    let (file, root, back) = (scratch.file("file", 3_000_001), scratch.dir("root"), scratch.at("back"));
    let mut server = Server::begin(&["serve", "--root", &root]);
    let url = format!("udt://{}/copy", server.address);

    let push = farhaul(&["copy", "--plain", "--json", &file, &url]);
    push.succeeds();
    let end = push.end();
    assert!(REQUIRED.iter().all(|field| end.get(field).is_some()), "{end}");
    assert_eq!((end["bytes"].as_u64(), end["verified"].as_bool()), (Some(3_000_001), Some(true)));
    assert_eq!(push.records()[1]["status"], "verified");
    let served = server.wait_for("end");
    assert_eq!((served["bytes"].as_u64(), served["direction"].as_str()), (Some(3_000_001), Some("received")));
    know_each_other(&end, &served);

    let pull = farhaul(&["copy", "--plain", "--json", &url, &back]);
    pull.succeeds();
    assert_eq!(fs::read(&back).unwrap(), fs::read(&file).unwrap());
    know_each_other(&server.wait_for("end"), &pull.end());
    server.signal(Signal::TERM);
    assert_eq!(server.end().0, 143);
}

/// Each side of a copy tells what the other saw.
#[track_caller]
fn know_each_other(sender: &Value, receiver: &Value) {
    assert_eq!(sender["peer"]["packets_received"], receiver["packets_received"], "{sender}");
    assert_eq!(sender["goodput_bps"], receiver["goodput_bps"], "{sender} {receiver}");
    for (end, peer) in [(sender, &sender["peer"]), (receiver, &receiver["peer"])] {
        assert_eq!(end["bytes"], peer["bytes"], "{end}");
        assert!(peer["rtt_us"]["min"].as_u64() > Some(0) && peer["rtt_us"]["mean"].as_u64() > Some(0), "{end}");
        assert!(peer["cpu_seconds"]["user"].is_number() && peer["disk_seconds"].is_number(), "{end}");
    }
}

#[test]
fn a_tree_arrives_under_its_name_and_only_with_r() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    scratch.dir("tree/deep");
    scratch.file("tree/deep/a", 10);
    scratch.file("tree/empty", 0);
    let server = Server::begin(&["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let tree = scratch.at("tree");
    farhaul(&["copy", "--plain", &tree, &url]).fails(3, &["tree", "directory", "-r"]);
    farhaul(&["copy", "--plain", "-r", &tree, &url]).succeeds();
    assert_eq!(fs::read(scratch.at("root/tree/deep/a")).unwrap().len(), 10);
    let back = scratch.dir("back");
    farhaul(&["copy", "--plain", "-r", &format!("{url}tree"), &back]).succeeds();
    assert!(fs::metadata(scratch.at("back/tree/empty")).unwrap().is_file());
}

#[test]
fn a_file_that_is_longer_than_the_system_says_arrives_whole_both_ways() {
    let (scratch, source) = (Scratch::new(), "/proc/version");
    let content = fs::read(source).unwrap();
    assert_eq!(fs::metadata(source).unwrap().len(), 0, "it would prove nothing");
    let (here, there) = (scratch.dir("here"), Server::begin(&["serve", "--root", &scratch.dir("root")]));
    let kernel = Server::begin(&["serve", "--read-only", "--root", "/proc"]);
    for run in [
        farhaul(&["copy", "--plain", "--json", source, &format!("udt://{}/", there.address)]),
        farhaul(&["copy", "--plain", "--json", &format!("udt://{}/version", kernel.address), &here]),
    ] {
        run.succeeds();
        assert_eq!((&run.end()["bytes"], &run.end()["verified"]), (&content.len().into(), &true.into()));
    }
    for copy in ["root/version", "here/version"] {
        assert_eq!(fs::read(scratch.at(copy)).unwrap(), content);
    }
}

#[test]
fn one_missing_file_on_the_server_is_named() {
    let scratch = Scratch::new();
    let server = Server::begin(&["serve", "--root", &scratch.dir("root")]);
    let back = scratch.dir("back");
    let run = farhaul(&["copy", "--plain", &format!("udt://{}/nothing", server.address), &back]);
    run.fails(3, &["nothing", "not found"]);
}

#[test]
fn a_missing_source_is_named_before_anything_is_sent() {
    farhaul(&["copy", "--plain", "/nonexistent/file", "udt://127.0.0.1:9/"])
        .fails(3, &["/nonexistent/file", "No such file"]);
}

#[test]
fn a_read_only_server_refuses_and_says_why() {
    let scratch = Scratch::new();
    let (file, root) = (scratch.file("file", 2_000_000), scratch.dir("root"));
    let server = Server::begin(&["serve", "--read-only", "--root", &root]);
    let run = farhaul(&["copy", "--plain", "--json", &file, &format!("udt://{}/", server.address)]);
    run.fails(5, &["read-only", &server.address]);
    assert_eq!(run.end()["error"]["code"], "ACCESS_DENIED");
    assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
}

#[test]
fn what_is_in_the_way_fails_alone() {
    let scratch = Scratch::new();
    let (one, two, root) = (scratch.file("one", 5), scratch.file("two", 5), scratch.dir("root"));
    scratch.dir("root/one");
    let server = Server::begin(&["serve", "--root", &root]);
    let run = farhaul(&["copy", "--plain", &one, &two, &format!("udt://{}/", server.address)]);
    run.fails(3, &["one", "in the way", "other side"]);
    assert_eq!(fs::read(scratch.at("root/two")).unwrap().len(), 5);
}

#[test]
fn sessions_beyond_the_maximum_are_told_to_come_back() {
    let scratch = Scratch::new();
    let (file, root) = (scratch.file("file", 20_000_000), scratch.dir("root"));
    let server = Server::begin(&["serve", "--max-sessions", "1", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let slow = ["copy", "--plain", "--json", "--interval", "50ms", "--rate", "5mbit", &file, &url];
    let first = Started::begin(&slow, Stdio::null()).after("interval");
    farhaul(&["copy", "--plain", &file, &url]).fails(1, &["try again later"]);
    first.signal(Signal::INT);
    assert_eq!(first.end().code, 130);
}

#[test]
fn a_measuring_station_is_no_file_server() {
    let scratch = Scratch::new();
    let file = scratch.file("file", 5);
    let server = Server::begin(&["bench"]);
    farhaul(&["copy", "--plain", &file, &format!("udt://{}/", server.address)]).fails(9, &["farhaul serve"]);
    let server = Server::begin(&["serve", "--root", &scratch.dir("root")]);
    farhaul(&["bench", "--plain", "--connect", &server.address, "--bytes", "1MB"])
        .fails(9, &["farhaul bench --listen"]);
}

#[test]
fn an_interrupted_copy_says_where_the_incomplete_file_lies_and_the_server_is_told() {
    let scratch = Scratch::new();
    let (root, here) = (scratch.dir("root"), scratch.at("here"));
    scratch.file("root/large", 20_000_000);
    let mut server = Server::begin(&["serve", "--rate", "20mbit", "--root", &root]);
    let url = format!("udt://{}/large", server.address);
    let copy = Started::begin(&["copy", "--plain", "--json", "--interval", "100ms", &url, &here], Stdio::null());
    let copy = copy.after("interval");
    copy.signal(Signal::INT);
    copy.end().fails(130, &["interrupted", "the incomplete file is", ".here.", ".fhpart"]);
    let end = server.wait_for("end");
    // The reason, or only the end of the connection: a program that was stopped waits for nothing.
    assert!(end["error"]["code"] == "FAILED" || end["error"]["code"] == "PEER_LOST", "{end}");
}

#[test]
fn the_demo_copies_over_an_emulated_link_and_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let file = scratch.file("file", 2_000_000);
    let temporary = scratch.dir("temporary");
    let demo = ["demo", "--json", "--rate", "200mbit", "--rtt", "10ms", &file];
    let run = farhaul_where(&[("TMPDIR", &temporary)], &demo);
    run.succeeds();
    assert!(scratch.names("temporary").is_empty(), "{:?}", scratch.names("temporary"));
    let end = run.end();
    assert_eq!((end["bytes"].as_u64(), end["verified"].as_bool()), (Some(2_000_000), Some(true)));
    assert!(end["copy"]["rtt_us"]["min"].as_u64().unwrap() >= 10_000, "{end}");
    assert!(std::path::Path::new(&file).exists());
    let path = run.records()[0]["settings"]["path"].clone();
    assert!(end[path.as_str().unwrap()]["up"]["packets_in"].as_u64() > Some(1_000), "{end}");
    if path == "emulator" {
        let tcp = &end["tcp"];
        assert_eq!((&tcp["bytes"], &tcp["complete"]), (&2_000_000.into(), &true.into()), "{tcp}");
        assert!(tcp["seconds"].as_f64() > Some(0.02) && tcp["congestion_control"].as_str() > Some(""), "{tcp}");
        assert!(tcp["segments_sent"].as_u64() > Some(tcp["segments_retransmitted"].as_u64().unwrap()), "{tcp}");
    }
}

#[test]
fn a_demo_that_is_too_fast_for_the_machine_says_so_before_it_copies() {
    let scratch = Scratch::new();
    let file = scratch.file("file", 200_000);
    let run = farhaul(&["demo", "--json", "--rate", "400gbit", "--rtt", "1ms", &file]);
    run.succeeds();
    let records = run.records();
    if records[0]["settings"]["path"] == "relay" {
        return;
    }
    assert_eq!(records[1]["event"], "warning", "{}", records[1]);
    let message = records[1]["message"].as_str().unwrap();
    assert!(message.contains("this machine carries about") && message.contains("not 400 Gbit/s"), "{message}");
}

#[test]
fn the_demo_does_without_networks_of_its_own_and_says_so() {
    if runs(&[FORBIDDEN, &["true"]].concat(), "a system that permits nothing").is_none() {
        return;
    }
    let demo = ["demo", "--size", "2MB", "--rate", "200mbit", "--rtt", "10ms"];
    let run = farhaul_under(FORBIDDEN, &demo);
    run.succeeds();
    assert!(run.stderr.contains("the path is a relay, for UDP only, so TCP is not run"), "{}", run.stderr);
    let run = farhaul_under(FORBIDDEN, &[&demo[..], &["--json"]].concat());
    let (start, end) = (run.records()[0].clone(), run.end());
    assert_eq!((&start["settings"]["path"], &end["tcp"]), (&"relay".into(), &Value::Null));
    assert_eq!(end["relay"]["clients"], 1);
    assert!(end["relay"]["cpu_seconds"]["user"].is_number(), "{end}");
}

#[test]
fn a_killed_demo_takes_its_programs_along_and_the_next_one_removes_its_directory() {
    let scratch = Scratch::new();
    let (small, temporary) = (scratch.file("small", 200_000), scratch.dir("temporary"));
    let variable = format!("TMPDIR={temporary}");
    let mut wrappers = vec![vec!["env", &variable]];
    if runs(&[FORBIDDEN, &["true"]].concat(), "a system that permits nothing").is_some() {
        wrappers.push([&["env", &variable], FORBIDDEN].concat());
    }
    for wrapper in wrappers {
        // It would take two minutes.
        let slow = ["demo", "--json", "--size", "30MB", "--rate", "2mbit", "--rtt", "10ms"];
        let demo = Started::begin_under(&wrapper, &slow, Stdio::null()).after("interval");
        assert_eq!(scratch.names("temporary").len(), 1);
        // One that runs has its directory for itself.
        farhaul_under(&wrapper, &["demo", "--rate", "200mbit", "--rtt", "10ms", &small]).succeeds();
        let left = scratch.names("temporary");
        assert_eq!(left.len(), 1);
        demo.signal(Signal::KILL);
        assert_ne!(demo.end().code, 0);
        assert_eq!(scratch.names("temporary"), left);
        // Ends are seen a moment later.
        let attempts = (0..1_000).take_while(|_| programs_that_name(&left[0]) > 0).count();
        assert!(attempts < 1_000, "somebody is still there");
        farhaul_under(&wrapper, &["demo", "--rate", "200mbit", "--rtt", "10ms", &small]).succeeds();
        assert!(scratch.names("temporary").is_empty(), "{:?}", scratch.names("temporary"));
    }
}

/// Processes of this machine with `word` in their command line.
fn programs_that_name(word: &str) -> usize {
    let names = |entry: fs::DirEntry| {
        fs::read(entry.path().join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(word))
    };
    fs::read_dir("/proc").unwrap().flatten().map(names).filter(|names| *names).count()
}
