//! Plain pipes with data in both directions, none of which can end alone: no side takes a part for the whole.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;
use std::thread;

use crate::process::{Run, Scratch, Server, Started};

const BYTES: usize = 8_000_000;

/// Checks that everything that a side has to do with is whole, or that this side says otherwise.
#[track_caller]
fn honest(code: i32, [sent, received]: [usize; 2], said: &str) {
    match code {
        0 => assert_eq!([sent, received], [BYTES; 2], "success for a part"),
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
fn of_two_sides_that_send_none_takes_a_part_for_the_whole() {
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
        honest(code, [arrived.len(), stdout.len()], "the listener");
        honest(run.code, [stdout.len(), arrived.len()], &run.stderr);
        assert!([code, run.code].contains(&8), "the side that closes cannot know whether the other one was done");
    }
}

#[test]
fn a_side_that_waits_gets_all_and_the_one_that_closes_cannot_know() {
    let scratch = Scratch::new();
    let long = scratch.file("file", BYTES);
    let one = Server::begin_with(&["pipe", "--wait"], File::open(scratch.file("short", 10)).unwrap().into());
    let other =
        Started::begin(&["pipe", "--plain", "--json", "--connect", &one.address], File::open(&long).unwrap().into());
    let ((code, stdout), (run, arrived)) = ends(one, other);
    assert_eq!((code, stdout.len(), run.code, arrived.len()), (0, BYTES, 8, 10), "{}", run.stderr);
    run.fails(8, &["may have had more to send", "cannot end alone", "--wait"]);
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
    assert_eq!((one.end().0, run.stdout.as_slice()), (8, &b"enough"[..]), "it has received something, and closed");
}

/// It may be about to answer.
#[test]
fn a_silent_input_that_is_open_when_the_peer_closes_was_not_sent_as_a_whole() {
    let mut one = Server::begin(&["pipe"]);
    let mut other = Started::begin(&["pipe", "--plain", "--json", "--connect", &one.address], Stdio::piped());
    let silent = other.input();
    one.feed(b"all of it");
    let run = other.end();
    drop(silent);
    run.fails(8, &["closed before the end of the input", "< /dev/null"]);
    assert_eq!((run.stdout.as_slice(), one.end().0), (&b"all of it"[..], 0));
}
