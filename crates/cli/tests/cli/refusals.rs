//! Refusals before anything happens: one line for people, `end` for programs, each with the name of the option.

use std::net::UdpSocket;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::process::{Run, Scratch, Server, Started, farhaul, farhaul_where, records};

#[test]
fn a_command_line_that_cannot_be_read_is_answered_in_one_line_with_the_next_step() {
    for (arguments, words) in [
        (&["pipe", "--plain"][..], &["--listen", "--connect"][..]),
        (&["relay"], &["--listen", "--to", "farhaul relay --help-all"]),
        (&["bench", "--intervall", "3"], &["--intervall", "'--interval'", "farhaul bench --help-all"]),
        (&["bench", "--plain", "--connect"], &["--connect", "farhaul bench --help-all"]),
        (&["nosuch"], &["nosuch", "farhaul --help"]),
        (&["copy", "--plain", "one"], &["DST", "farhaul copy --help"]),
        (&["man", "nosuch"], &["nosuch", "farhaul --help"]),
    ] {
        let run = farhaul(arguments);
        run.fails(2, words);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
    farhaul(&["help"]).succeeds();
    let help = String::from_utf8(farhaul(&["copy", "--help"]).stdout).unwrap();
    assert!(help.contains("Usage: farhaul copy [OPTIONS] SRC… DST"), "{help}");
}

#[test]
fn values_that_make_no_sense_are_refused_with_the_option() {
    let connect = ["bench", "--plain", "--connect", "127.0.0.1:9"];
    let serve = ["serve", "--plain", "--root", "/", "--listen", "127.0.0.1:0"];
    let relay = ["relay", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9"];
    for (verb, option, value) in [
        (&connect[..], "--rate", "0bit"),
        (&connect, "--timeout", "0s"),
        (&connect, "--connect-timeout", "0s"),
        (&connect, "--buffer", "1B"),
        (&serve, "--max-sessions", "0"),
        (&relay, "--rate", "0bit"),
    ] {
        farhaul(&[verb, &[option, value]].concat()).fails(2, &[option]);
    }
    farhaul(&[&relay[..], &["--loss", "0.1"]].concat()).fails(2, &["--loss", "0.1%", "10%"]);
    farhaul(&["demo", "--loss", "1"]).fails(2, &["--loss", "1%", "100%"]);
}

#[test]
fn options_that_a_copy_over_ssh_would_ignore_are_refused_and_those_of_ssh_elsewhere() {
    let fingerprint = format!("SHA256:{}", "A".repeat(43));
    for option in [&["--authorized-keys", "k"][..], &["--any-client"]] {
        farhaul(&[&["copy"], option, &["f", "udt://127.0.0.1:9/"]].concat()).fails(2, &[option[0], "unexpected"]);
    }
    let own = [&["--key", "k"][..], &["--host-key", &fingerprint], &["--host-key-policy", "strict"]];
    for option in own {
        for places in [["f", "far:"], ["far:f", "."], ["one:f", "two:"]] {
            farhaul(&[&["copy"], option, &places].concat()).fails(2, &[option[0], "over SSH", "-i FILE"]);
        }
    }
    for option in [&["-P", "22"][..], &["-i", "k"], &["--ssh", "s"], &["--install"], &["--no-fallback"], &["--detach"]]
    {
        farhaul(&[&["copy"], option, &["f", "udt://127.0.0.1:9/"]].concat()).fails(2, &[option[0], "host:path"]);
    }
    // Lasting settings are for other copies, too.
    farhaul_where(&[("FARHAUL_KEY", "/none")], &["copy", "--ssh", "/none", "f", "far:"]).fails(3, &["cannot read f"]);
}

#[test]
fn what_only_the_other_side_can_hold_is_refused_here() {
    let reverse = ["bench", "--plain", "--connect", "127.0.0.1:9", "--reverse"];
    let pull = ["copy", "--plain", "udt://127.0.0.1:9/file", "."];
    for option in [&["--rate", "5mbit"], &["--controller", "fixed:rate=5mbit"]] {
        farhaul(&[&reverse[..], option].concat()).fails(2, &[option[0], "bench --listen"]);
    }
    // A receiver asks its sender for a cap, and for nothing else by name.
    farhaul(&[&pull[..], &["--controller", "fixed:rate=5mbit"]].concat()).fails(2, &["--controller", "farhaul serve"]);
    let blast = ["--protocol", "rbudp", "--background"];
    farhaul(&[&pull[..], &blast].concat()).fails(2, &["--background", "rbudp"]);
    // A setting for everything that this side sends is no request.
    let quick = ["--connect-timeout", "100ms"];
    farhaul_where(&[("FARHAUL_RATE", "5mbit")], &[&reverse[..], &quick].concat()).fails(4, &["127.0.0.1:9"]);
}

/// One record that begins, if the settings are known, and one that ends with the error.
#[track_caller]
fn ends(records: &[Value], begins: bool, code: &str) {
    let events: Vec<&str> = records.iter().map(|record| record["event"].as_str().unwrap()).collect();
    assert_eq!(events, if begins { &["start", "end"][..] } else { &["end"] }, "{records:?}");
    let end = records.last().unwrap();
    assert_eq!(end["error"]["code"], code, "{end}");
    assert!(end["exit_code"].as_u64() > Some(0) && end["error"]["message"].is_string(), "{end}");
}

#[test]
fn every_failure_has_its_records() {
    let scratch = Scratch::new();
    let (root, file) = (scratch.dir("root"), scratch.file("file", 5));
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().to_string();
    for (arguments, code) in [
        (&["serve", "--plain", "--root", &root, "--listen", &port][..], "ADDRESS_IN_USE"),
        (&["serve", "--plain", "--root", "/nonexistent", "--listen", "127.0.0.1:0"], "LOCAL_IO"),
        (&["relay", "--listen", &port, "--to", "127.0.0.1:9"], "ADDRESS_IN_USE"),
        (&["bench", "--plain", "--connect", "127.0.0.1:9", "--trace", "/nonexistent/trace"], "LOCAL_IO"),
        (&["bench", "--connect", "127.0.0.1:9", "--mtu", "1200"], "USAGE"),
        (&["copy", "--plain", "/nonexistent", "udt://127.0.0.1:9/"], "FILES_FAILED"),
        (&["copy", &file, "udt://127.0.0.1:9/", "--mtu", "1200"], "USAGE"),
        (&["demo", "/nonexistent"], "FILES_FAILED"),
    ] {
        let run = farhaul(&[arguments, &["--json"]].concat());
        ends(&run.records(), true, code);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
    let run = farhaul(&["bench", "--json", "--nosuch"]);
    ends(&run.records(), false, "USAGE");
    // Where stdout is data, the records are on stderr, and nothing else is.
    for (arguments, begins) in [(&["pipe", "--json"][..], true), (&["pipe", "--json", "--nosuch"], false)] {
        let run = farhaul(arguments);
        only_records(&run);
        ends(&records(&run.stderr), begins, "USAGE");
    }
}

#[track_caller]
fn only_records(run: &Run) {
    assert!(run.stdout.is_empty() && run.stderr.lines().all(|line| line.starts_with('{')), "{}", run.stderr);
}

#[test]
fn the_state_is_a_record_where_stderr_is_for_records() {
    let mut far = Server::begin(&["pipe"]);
    far.feed(b"");
    let mut near = Started::begin(&["pipe", "--plain", "--json", "--connect", &far.address], Stdio::piped());
    let input = near.input();
    let start: Value = serde_json::from_str(&near.says("start")).unwrap();
    let process = rustix::process::Pid::from_raw(start["process_id"].as_i64().unwrap() as i32).unwrap();
    // The handler is there before the record, the stream some time after it: the first signals may find nothing.
    let state = std::thread::scope(|scope| {
        let (told, wait) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            while wait.recv_timeout(std::time::Duration::from_millis(20)).is_err() {
                let _ = rustix::process::kill_process(process, Signal::USR1);
            }
        });
        let line = near.says("state");
        told.send(()).unwrap();
        line
    });
    assert!(state.starts_with('{') && state.contains("acknowledged"), "{state}");
    // Its close is the end of what near receives.
    far.signal(Signal::INT);
    only_records(&near.end());
    drop(input);
}

#[test]
fn runs_can_be_repeated_from_their_first_record() {
    let scratch = Scratch::new();
    let file = scratch.file("file", 5);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("udt://{}/", silent.local_addr().unwrap());
    let options = ["--interval", "2s", "--connect-timeout", "150ms", "--trace", &scratch.at("trace")];
    let run = farhaul(&[&["copy", "--plain", "--json", &file, &url][..], &options].concat());
    let start = &run.records()[0];
    assert_eq!(start["settings"]["sources"], serde_json::json!([file]), "{start}");
    assert_eq!(start["settings"]["interval_seconds"], 2.0, "{start}");
    assert_eq!((&start["connect_timeout_seconds"], &start["trace"]), (&0.15.into(), &scratch.at("trace").into()));
    let path = ["--rate", "5mbit", "--delay", "3ms", "--loss", "0.5%", "--queue", "70", "--seed", "9"];
    let relay = ["relay", "--json", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9"];
    let relay = Started::begin(&[&relay[..], &path].concat(), Stdio::null()).after("start");
    let (record, up) = (relay.record.clone(), relay.record["settings"]["up"].clone());
    assert!(record["version"].is_string() && record["settings"]["seed"] == 9, "{record}");
    assert_eq!((&up["rate_bps"], &up["delay_seconds"], &up["loss"]), (&5_000_000.into(), &0.003.into(), &0.005.into()));
    assert_eq!(up["queue"]["packets"], 70);
    relay.signal(Signal::TERM);
    let cpu = relay.end().end()["cpu_seconds"].clone();
    assert!(cpu["user"].is_number() && cpu["system"].is_number(), "{cpu}");
}

#[test]
fn the_demo_is_the_same_in_every_environment() {
    let surroundings = [("FARHAUL_READ_ONLY", "1"), ("FARHAUL_RATE", "1kbit"), ("FARHAUL_MTU", "600")];
    let run = farhaul_where(&surroundings, &["demo", "--json", "--size", "3MB", "--rtt", "10ms"]);
    run.succeeds();
    let records = run.records();
    let (start, end) = (&records[0], records.last().unwrap());
    assert_eq!((&start["event"], &start["settings"]["bytes"]), (&"start".into(), &3_000_000.into()));
    assert_eq!((&end["event"], &end["verified"]), (&"end".into(), &true.into()));
    assert!(end["serve"]["cpu_seconds"]["user"].is_number(), "{end}");
}

#[test]
fn a_missing_ssh_is_named_as_the_user_named_it() {
    let scratch = Scratch::new();
    let run = farhaul(&["copy", "--ssh", "nosuchssh -v", &scratch.file("file", 5), "far.example:"]);
    run.fails(5, &["cannot start nosuchssh: No such file", "--ssh"]);
    assert!(!run.stderr.contains("os error"), "{}", run.stderr);
}
