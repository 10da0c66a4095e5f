//! `-` as one end of a copy: stdin gets a name at the server, a file of the server goes to stdout.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::thread;

use farhaul::Listener;
use rustix::process::Signal;

use crate::integrity::{SIZE, send_damaged};
use crate::process::{
    Scratch, Server, Started, farhaul, farhaul_on_terminal, farhaul_under, farhaul_with, is_temporary, records,
};
use crate::requirement::runs;

#[test]
fn stdin_arrives_under_the_name_of_the_target_and_is_verified() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    scratch.dir("root/deep");
    let server = Server::begin(&["serve", "--root", &root]);
    let content = fs::read(scratch.file("content", 3_000_001)).unwrap();
    for (name, content) in [("name", &content[..]), ("deep/name", &content[..70_000]), ("empty", &[])] {
        let url = format!("udt://{}/{name}", server.address);
        let run = farhaul_with(content, &["copy", "--plain", "--json", "-", &url]);
        run.succeeds();
        let end = run.end();
        assert_eq!((&end["bytes"], &end["verified"]), (&content.len().into(), &true.into()), "{end}");
        assert_eq!(run.records()[1]["bytes"], content.len());
        assert!(fs::read(scratch.at(&format!("root/{name}"))).unwrap() == content, "{name}");
    }
    farhaul(&["copy", "--plain", "-", &format!("udt://{}/deep", server.address)]).fails(3, &["deep", "in the way"]);
}

/// As Ctrl-C does to all programs of a shell's pipeline: the one before ends at once, and so does what it writes.
#[test]
fn an_input_that_ends_because_of_the_same_signal_gives_no_file() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    let mut server = Server::begin(&["serve", "--interval", "50ms", "--root", &root]);
    for round in 0..5 {
        let (name, url) = (format!("name{round}"), format!("udt://{}/name{round}", server.address));
        let mut copy = Started::begin(&["copy", "--plain", "--json", "-", &url], Stdio::piped());
        let mut input = copy.input();
        input.write_all(&[7; 300_000]).unwrap();
        let copy = copy.after("start");
        while server.wait_for("interval")["bytes_total"] == 0 {}
        copy.suspend();
        copy.signal(Signal::INT);
        drop(input);
        // Now both are there at once.
        copy.signal(Signal::CONT);
        assert_eq!(copy.end().code, 130);
        server.wait_for("end");
        assert!(!scratch.names("root").contains(&name), "a part looks like the whole");
    }
}

#[test]
fn stdin_has_to_get_a_name() {
    farhaul(&["copy", "--plain", "-", "udt://127.0.0.1:9/"]).fails(2, &["name", "udt://127.0.0.1:9/"]);
    farhaul(&["copy", "--plain", "-", "file", "udt://127.0.0.1:9/x"]).fails(2, &["copy - udt://"]);
}

#[test]
fn a_closed_stdin_is_no_empty_file_and_a_closed_stdout_loses_none() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    scratch.file("root/file", 10);
    let server = Server::begin(&["serve", "--root", &root]);
    let url = format!("udt://{}", server.address);
    let closed = |stream: &str| ["sh".to_owned(), "-c".to_owned(), format!("exec \"$0\" \"$@\" {stream}")];
    let run = |stream: &str, words: &[&str]| {
        let wrapper = closed(stream);
        farhaul_under(&wrapper.each_ref().map(String::as_str), words)
    };
    let (to, from) = (format!("{url}/new"), format!("{url}/file"));
    run("<&-", &["copy", "--plain", "-", &to]).fails(2, &["stdin is closed", "< /dev/null"]);
    assert_eq!(scratch.names("root"), ["file"]);
    run(">&-", &["copy", "--plain", &from, "-"]).fails(2, &["stdout is closed", "> /dev/null"]);
    // What somebody opened is meant.
    run("< /dev/null", &["copy", "--plain", "-", &to]).succeeds();
    run("> /dev/null", &["copy", "--plain", &from, "-"]).succeeds();
    assert_eq!(scratch.names("root"), ["file", "new"]);
}

#[test]
fn a_file_goes_to_stdout_byte_for_byte_and_its_records_to_stderr() {
    let scratch = Scratch::new();
    let (root, file) = (scratch.dir("root"), scratch.file("root/file", 2_000_003));
    let server = Server::begin(&["serve", "--root", &root]);
    let url = format!("udt://{}/file", server.address);
    let run = farhaul(&["copy", "--plain", "--json", &url, "-"]);
    run.succeeds();
    assert!(run.stdout == fs::read(&file).unwrap());
    let end = records(&run.stderr).pop().unwrap();
    assert_eq!((&end["event"], &end["verified"]), (&"end".into(), &true.into()), "{end}");
    scratch.dir("root/tree");
    let run = farhaul(&["copy", "--plain", "-r", &format!("udt://{}/tree", server.address), "-"]);
    run.fails(3, &["is a directory", "stdout takes one file"]);
    assert!(!run.stderr.contains("-r copies"), "{}", run.stderr);
    farhaul(&["copy", "--plain", &format!("udt://{}/nothing", server.address), "-"])
        .fails(3, &["nothing", "not found"]);
}

#[test]
fn a_terminal_is_no_place_for_a_file() {
    if runs(&["script", "-qec", "true", "/dev/null"], "it makes a terminal").is_some() {
        let run = farhaul_on_terminal(&[], &["copy", "--plain", "udt://127.0.0.1:9/file", "-"]);
        assert_eq!(run.code, 2);
        assert!(String::from_utf8_lossy(&run.stdout).contains("stdout is a terminal"));
    }
}

#[test]
fn damaged_bytes_on_stdout_are_told_by_the_exit_code() {
    let listener = Listener::plain("127.0.0.1:0").unwrap();
    thread::scope(|scope| {
        scope.spawn(|| send_damaged(&listener, 3));
        let run = farhaul(&["copy", "--plain", &format!("udt://{}/file", listener.local_addr()), "-"]);
        run.fails(6, &["file", "digest differs", "the output on stdout is wrong"]);
        assert_eq!(run.stdout.len(), SIZE);
    });
}

#[test]
fn a_reader_that_has_seen_enough_ends_a_copy_quietly() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    scratch.file("root/file", 2_000_000);
    let mut server = Server::begin(&["serve", "--root", &root]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let url = format!("udt://{}/file", server.address);
    let run = Started::begin_to(&["copy", "--plain", &url, "-"], Stdio::null(), writer.into()).end();
    assert_eq!((run.code, &run.stderr[..]), (7, ""), "it was not copied, and whoever reads knows");
    assert_eq!(server.wait_for("end")["error"]["code"], "FILES_FAILED");
}

#[test]
fn stdin_that_gives_nothing_can_be_interrupted() {
    let scratch = Scratch::new();
    let mut server = Server::begin(&["serve", "--root", &scratch.dir("root")]);
    let url = format!("udt://{}/file", server.address);
    let arguments = ["copy", "--plain", "--json", "--interval", "50ms", "-", &url];
    let mut copy = Started::begin(&arguments, Stdio::piped());
    let _input = copy.input();
    let copy = copy.after("interval");
    copy.signal(Signal::INT);
    copy.end().fails(130, &["interrupted"]);
    assert!(server.wait_for("end")["error"].is_object());
    assert!(scratch.names("root").iter().all(|name| is_temporary(name)));
}
