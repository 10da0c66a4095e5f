//! Pipes with data in both directions: no side takes a part of its input for the whole.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;
use std::thread;

use crate::process::{Run, Scratch, Server, Started};

const BYTES: usize = 8_000_000;

/// Checks that what a side sent arrived as a whole, or that this side says otherwise.
#[track_caller]
fn honest(code: i32, arrived: usize, said: &str) {
    match code {
        0 => assert_eq!(arrived, BYTES, "success for a part"),
        8 => {}
        _ => panic!("exit code {code}: {said}"),
    }
}

/// Both ends, with the output of each.
fn ends(one: Server, mut other: Started) -> ((i32, Vec<u8>), (Run, Vec<u8>)) {
    let ending = thread::spawn(move || {
        let mut stdout = Vec::new();
        other.output().read_to_end(&mut stdout).unwrap();
        (other.end(), stdout)
    });
    (one.end(), ending.join().unwrap())
}

#[test]
fn of_two_sides_that_send_each_knows_whether_all_of_it_arrived() {
    let scratch = Scratch::new();
    let file = scratch.file("file", BYTES);
    for round in 0..6 {
        // Files, and pipes that end a little later than their last byte.
        let input = || match round % 2 {
            0 => Stdio::from(File::open(&file).unwrap()),
            _ => Stdio::piped(),
        };
        let mut one = Server::begin_with(&["pipe"], input());
        let mut other = Started::begin(&["pipe", "--plain", "--json", "--connect", &one.address], input());
        if round % 2 == 1 {
            for mut stdin in [one.input(), other.input()] {
                let bytes = std::fs::read(&file).unwrap();
                // The program may end before it has read all of it.
                thread::spawn(move || stdin.write_all(&bytes));
            }
        }
        let ((code, stdout), (run, arrived)) = ends(one, other);
        assert!(code == 0 || run.code == 0, "the side that is done first has sent everything");
        honest(code, arrived.len(), "the listener");
        honest(run.code, stdout.len(), &run.stderr);
    }
}

#[test]
fn a_side_that_waits_gets_all_and_then_both_end_well() {
    let scratch = Scratch::new();
    let long = scratch.file("file", BYTES);
    let one = Server::begin_with(&["pipe", "--wait"], File::open(scratch.file("short", 10)).unwrap().into());
    let other =
        Started::begin(&["pipe", "--plain", "--json", "--connect", &one.address], File::open(&long).unwrap().into());
    let ((code, stdout), (run, arrived)) = ends(one, other);
    assert_eq!((code, stdout.len(), run.code, arrived.len()), (0, BYTES, 0, 10), "{}", run.stderr);
}

#[test]
fn an_input_that_goes_on_when_the_peer_closes_was_not_sent_as_a_whole() {
    let mut one = Server::begin(&["pipe"]);
    let mut other = Started::begin(&["pipe", "--plain", "--json", "--connect", &one.address], Stdio::piped());
    let (mut going_on, mut heard) = (other.input(), [0; 5]);
    going_on.write_all(b"begin").unwrap();
    one.output().read_exact(&mut heard).unwrap();
    one.feed(b"enough");
    let run = other.end();
    run.fails(8, &["closed before the end of the input", "--wait"]);
    assert_eq!((one.end().0, run.stdout.as_slice()), (0, &b"enough"[..]));
}

#[test]
fn a_side_that_sent_nothing_and_whose_input_stays_open_ends_well() {
    let mut one = Server::begin(&["pipe"]);
    let mut other = Started::begin(&["pipe", "--plain", "--json", "--connect", &one.address], Stdio::piped());
    let silent = other.input();
    one.feed(b"all of it");
    let run = other.end();
    drop(silent);
    assert_eq!((run.code, run.stdout.as_slice(), one.end().0), (0, &b"all of it"[..], 0), "{}", run.stderr);
}
