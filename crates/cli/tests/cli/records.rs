//! The records of `--json` are as the schema in the book says: every verb that the schema names, both ends, successes and
//! failures.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::process::{Run, Scratch, Server, Started, farhaul, farhaul_where, farhaul_with, records};
use crate::schema::Schema;

const SCHEMA: &str = include_str!("../../../../docs/book/records.schema.json");

/// Checks all of these records. Returns the kinds of events among them.
#[track_caller]
fn are_as_documented(all: &[Value]) -> BTreeSet<String> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    assert!(!all.is_empty());
    for record in all {
        Schema::of(&schema).check(record, "record").unwrap_or_else(|why| panic!("{record}\n  {why}"));
    }
    all.iter().map(|record| record["event"].as_str().unwrap().to_owned()).collect()
}

/// Checks the records of a run, which go to standard error if standard output is data.
#[track_caller]
fn run_is_as_documented(run: &Run) -> BTreeSet<String> {
    let out = run.records();
    are_as_documented(&if out.is_empty() { records(&run.stderr) } else { out })
}

#[track_caller]
fn has(events: &BTreeSet<String>, wanted: &[&str]) {
    assert!(wanted.iter().all(|event| events.contains(*event)), "{events:?}");
}

/// The records of a listener until its end by a signal.
fn rest_of(server: Server) -> Vec<Value> {
    server.signal(Signal::TERM);
    let (code, stdout) = server.end_with_records();
    assert_eq!(code, 143);
    records(&stdout)
}

#[test]
fn the_end_of_a_command_line_that_cannot_be_read_claims_no_protection_and_no_lack_of_it() {
    let run = farhaul(&["copy", "--json", "--nonsense", "a", "b"]);
    run_is_as_documented(&run);
    let end = run.end();
    assert_eq!((run.code, end["error"]["code"].as_str()), (2, Some("USAGE")), "{end}");
    assert!(end["security"].is_null(), "{end}");
}

#[test]
fn records_of_copy_and_serve_are_as_documented() {
    let scratch = Scratch::new();
    let (root, file) = (scratch.dir("root"), scratch.file("file", 3_000_000));
    scratch.dir("tree/inner");
    scratch.file("tree/inner/a", 5);
    let server = Server::begin(&["serve", "--interval", "50ms", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let copy = |arguments: &[&str]| farhaul(&[&["copy", "--plain", "--json"], arguments].concat());
    let pushed = copy(&["--interval", "50ms", "--rate", "100mbit", &file, &url]);
    has(&run_is_as_documented(&pushed), &["start", "interval", "file", "end"]);
    has(&run_is_as_documented(&copy(&["-r", &scratch.at("tree"), &url])), &["start", "file", "end"]);
    run_is_as_documented(&copy(&[&format!("{url}file"), &scratch.at("back")]));
    let standard = farhaul_with(b"input", &["copy", "--plain", "--json", "-", &format!("{url}from-stdin")]);
    run_is_as_documented(&standard);
    run_is_as_documented(&copy(&[&format!("{url}file"), "-"]));
    // Failures: of a file, of a place, and of the network.
    for arguments in [
        [format!("{url}none"), scratch.at("x")],
        [file.clone(), format!("{url}no/such/place")],
        [file.clone(), "udt://127.0.0.1:9/".into()],
    ] {
        let run = copy(&["--connect-timeout", "300ms", &arguments[0], &arguments[1]]);
        assert_ne!(run.code, 0);
        has(&run_is_as_documented(&run), &["end"]);
    }
    has(&are_as_documented(&rest_of(server)), &["interval", "file", "end"]);
}

#[test]
fn records_of_the_verbs_for_files_are_as_documented_at_both_ends() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    scratch.file("root/f", 5);
    std::os::unix::fs::symlink("f", scratch.at("root/link")).unwrap();
    let server = Server::begin(&["serve", "--root", &root]);
    let url = |path: &str| format!("udt://{}/{path}", server.address);
    let run = |arguments: &[&str]| farhaul(&[&[arguments[0], "--plain", "--json"], &arguments[1..]].concat());
    has(&run_is_as_documented(&run(&["ls", &url("")])), &["start", "entry", "end"]);
    let cat = run(&["cat", &url("f")]);
    assert_eq!(cat.stdout.len(), 5, "records are beside the data");
    has(&run_is_as_documented(&cat), &["start", "end"]);
    has(&run_is_as_documented(&run(&["mkdir", &url("d")])), &["start", "file", "end"]);
    has(&run_is_as_documented(&run(&["mv", &url("f"), &url("d/")])), &["start", "file", "end"]);
    has(&run_is_as_documented(&run(&["rm", "-r", &url("d"), &url("none")])), &["start", "file", "end"]);
    run_is_as_documented(&run(&["ls", "--connect-timeout", "300ms", "udt://127.0.0.1:9/"]));
    has(&are_as_documented(&rest_of(server)), &["file", "end"]);
}

#[test]
fn records_of_bench_are_as_documented_for_every_protocol() {
    let list: Value = serde_json::from_slice(&farhaul(&["protocols", "--json"]).stdout).unwrap();
    for row in list.as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        let server = Server::begin(&["bench", "--protocol", name, "--interval", "0.1"]);
        let bench = ["bench", "--plain", "--json", "--protocol", name, "--connect", &server.address];
        for more in [&["--bytes", "2MB"][..], &["--seconds", "0.3", "--reverse", "--interval", "0.1"]] {
            let run = farhaul(&[&bench[..], more].concat());
            run.succeeds();
            has(&run_is_as_documented(&run), &["start", "end"]);
        }
        has(&are_as_documented(&rest_of(server)), &["end"]);
    }
    let server = Server::begin(&["bench"]);
    let bench = ["bench", "--plain", "--json", "--connect", &server.address, "--bytes", "2MB", "--flows", "2"];
    let run = farhaul(&bench);
    assert_eq!(run.end()["flows"].as_array().map(Vec::len), Some(2));
    run_is_as_documented(&run);
}

#[test]
fn records_of_pipe_are_as_documented_at_both_ends() {
    for kind in [&[][..], &["--protocol", "fobs"], &["--protocol", "sabul"]] {
        let mut server = Server::begin(&[&["pipe"][..], kind].concat());
        let connect = [&["pipe", "--plain", "--json", "--connect", &server.address][..], kind].concat();
        let receiver = Started::begin(&connect, Stdio::null());
        server.feed(&[7; 100_000]);
        let run = receiver.end();
        run.succeeds();
        has(&run_is_as_documented(&run), &["start", "end"]);
        has(&are_as_documented(&[server.wait_for("end")]), &["end"]);
    }
}

#[test]
fn records_of_originals_are_as_documented_at_both_ends() {
    for original in ["tsunami", "rbudp"] {
        let scratch = Scratch::new();
        let (root, to) = (scratch.dir("root"), scratch.dir("to"));
        scratch.file("root/a", 1_000_000);
        let server = Server::begin(&["serve", "--protocol", original, "--root", &root]);
        let place = |name: &str| format!("{original}://{}/{name}", server.address);
        let copy = |more: &[&str]| farhaul(&[&["copy", "--plain", "--json"], more].concat());
        let run = copy(&["--interval", "10ms", &place("a"), &to]);
        run.succeeds();
        has(&run_is_as_documented(&run), &["start", "file", "end"]);
        let run = copy(&[&place("none"), &to]);
        assert_eq!(run.code, 3);
        has(&run_is_as_documented(&run), &["start", "file", "end"]);
        if original == "tsunami" {
            has(&run_is_as_documented(&copy(&["--list", &place("")])), &["start", "file", "end"]);
        }
        has(&are_as_documented(&rest_of(server)), &["file", "end"]);
    }
}

#[test]
fn records_of_stream_and_profile_are_as_documented() {
    let scratch = Scratch::new();
    let cache = scratch.dir("cache");
    let server = Server::begin(&["bench"]);
    let run = |verb: &str, more: &[&str]| {
        let arguments = [&[verb, "--plain", "--json", "--connect", &server.address], more].concat();
        farhaul_where(&[("XDG_CACHE_HOME", &cache)], &arguments)
    };
    let stream = run("stream", &["--rate", "1mbit", "--seconds", "1", "--interval", "0.3"]);
    stream.succeeds();
    has(&run_is_as_documented(&stream), &["start", "interval", "end"]);
    let point = ["--window", "10", "--sleep", "10ms", "--seconds", "0.3", "--repeat", "1"];
    let profile = run("profile", &point);
    profile.succeeds();
    has(&run_is_as_documented(&profile), &["start", "point", "end"]);
    let jitter = run("profile", &["--jitter", "--seconds", "1"]);
    jitter.succeeds();
    has(&run_is_as_documented(&jitter), &["start", "end"]);
}

#[test]
fn records_of_doctor_are_as_documented_for_every_kind_of_port() {
    let scratch = Scratch::new();
    let home = scratch.dir("home");
    let (plain, secure) = (Server::begin(&["bench"]), Server::begin_as(&home, &["bench", "--any-client"]));
    for target in
        [plain.address.as_str(), &secure.address, "127.0.0.1:9", "127.0.0.1", "nobody.invalid:9", "localhost:9"]
    {
        has(&run_is_as_documented(&farhaul(&["doctor", "--json", target])), &["start", "finding", "end"]);
    }
    has(&run_is_as_documented(&farhaul(&["doctor", "--json"])), &["start", "finding", "end"]);
}

/// SIGUSR1 during a pipe, and a signal that ends it.
#[test]
fn records_of_states_and_signals_are_as_documented() {
    let mut server = Server::begin(&["pipe"]);
    let mut input = server.input();
    let connect = ["pipe", "--plain", "--json", "--connect", &server.address];
    let mut receiver = Started::begin(&connect, Stdio::null());
    input.write_all(&[7; 1_000]).unwrap();
    receiver.output().read_exact(&mut [0; 1_000]).unwrap();
    server.signal(Signal::USR1);
    let state = server.wait_for("state");
    server.signal(Signal::INT);
    has(&are_as_documented(&[state, server.wait_for("end")]), &["state", "end"]);
    run_is_as_documented(&receiver.end());
}
