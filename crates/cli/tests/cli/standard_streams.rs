//! Output to a closed pipe or a full disk, and the exit code of such a run.

use std::fs::{self, File};
use std::process::Stdio;

use rustix::process::Signal;

use crate::process::{Run, Scratch, Server, Started, farhaul};

/// A pipe whose reader has left.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

fn run_to(arguments: &[&str], stdout: Stdio) -> Run {
    Started::begin_to(arguments, Stdio::null(), stdout).end()
}

const PRINTING: &[&[&str]] = &[
    &["version"],
    &["version", "--json"],
    &["controllers"],
    &["man"],
    &["completions", "bash"],
    &["bench", "--show-config"],
    &["--help"],
    &["copy", "--help"],
    &["--version"],
];

#[test]
fn what_was_asked_for_and_does_not_fit_is_a_failure() {
    for arguments in PRINTING {
        let run = run_to(arguments, File::options().write(true).open("/dev/full").unwrap().into());
        run.fails(7, &["cannot write to stdout", "No space left"]);
        assert_eq!(run.stderr.lines().count(), 1, "{arguments:?}: {}", run.stderr);
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_none() {
    for arguments in PRINTING {
        let run = run_to(arguments, closed());
        assert_eq!((run.code, &run.stderr[..]), (0, ""), "{arguments:?}");
    }
}

#[test]
fn a_copy_whose_records_nobody_reads_is_done_all_the_same() {
    let scratch = Scratch::new();
    let (file, root) = (scratch.file("file", 1_000_000), scratch.dir("root"));
    let mut server = Server::begin(&["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let run = run_to(&["copy", "--plain", "--json", &file, &url], closed());
    assert_eq!((run.code, &run.stderr[..]), (0, ""));
    assert_eq!(fs::read(scratch.at("root/file")).unwrap(), fs::read(&file).unwrap());
    assert_eq!(server.wait_for("end")["verified"], true);
    // The result of the copy and not that of its readers.
    run_to(&["copy", "--plain", "--json", "-r", &file, "udt://127.0.0.1:9/"], closed()).fails(4, &["127.0.0.1:9"]);
}

#[test]
fn records_that_do_not_fit_are_a_failure_of_a_copy_that_is_done() {
    let scratch = Scratch::new();
    let (file, root) = (scratch.file("file", 1_000_000), scratch.dir("root"));
    let server = Server::begin(&["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let full = || File::options().write(true).open("/dev/full").unwrap().into();
    run_to(&["copy", "--plain", "--json", &file, &url], full()).fails(7, &["cannot write to stdout"]);
    assert_eq!(fs::read(scratch.at("root/file")).unwrap(), fs::read(&file).unwrap());
    let station = Server::begin(&["bench"]);
    let arguments = ["bench", "--plain", "--json", "--bytes", "1MB", "--connect", &station.address];
    run_to(&arguments, full()).fails(7, &["cannot write to stdout"]);
}

#[test]
fn sessions_do_not_wait_for_the_reader_of_their_records() {
    let scratch = Scratch::new();
    // Their records are more than a pipe takes.
    let (from, root) = (scratch.dir("from"), scratch.dir("root"));
    (0..500).for_each(|number| fs::write(format!("{from}/{number}"), "x").unwrap());
    let copies = |server: &Server| {
        for _ in 0..2 {
            farhaul(&["copy", "--plain", "-r", &from, &format!("udt://{}/", server.address)]).succeeds();
        }
    };
    let server = Server::begin(&["serve", "--root", &root]);
    copies(&server);
    server.signal(Signal::TERM);
    let (code, records) = server.end_with_records();
    assert_eq!((code, records.matches("\"event\":\"file\"").count()), (143, 2 * 501), "a late reader misses nothing");
    let server = Server::begin(&["serve", "--root", &root]);
    copies(&server);
    server.signal(Signal::TERM);
    assert_eq!(server.end().0, 143, "without any reader");
}

#[test]
fn a_server_whose_records_nobody_reads_goes_on() {
    let scratch = Scratch::new();
    let (file, root) = (scratch.file("file", 10), scratch.dir("root"));
    let mut server = Server::begin(&["serve", "--root", &root]);
    server.forget_records();
    let url = format!("udt://{}/", server.address);
    for name in ["one", "two"] {
        farhaul(&["copy", "--plain", &file, &format!("{url}{name}")]).succeeds();
    }
    server.signal(Signal::TERM);
    assert_eq!(server.end().0, 143);
}
