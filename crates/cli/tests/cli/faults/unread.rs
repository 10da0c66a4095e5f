//! A receiver that stops reading: the sender waits with bounded memory and at rest, and goes on when it is read again.

use std::fs::File;
use std::io::{Read, copy, sink};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::silence::are_at_rest;
use super::{BLASTS, pause, resident_bytes};
use crate::process::{Scratch, Server, Started, records};

/// Much more than the memory of both ends.
const STREAM: u64 = 200_000_000;
/// A cap of each buffer, and the most that a process may have in memory with it.
const BUFFER: [&str; 2] = ["--buffer", "8MiB"];
const MOST_MEMORY: u64 = 80_000_000;
/// Time in which a transport that waits moves nothing.
const LOOK: Duration = Duration::from_millis(500);

/// Bytes that a process has read so far.
fn bytes_read(process: i32) -> u64 {
    let io = std::fs::read_to_string(format!("/proc/{process}/io")).unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

/// A stream whose remote end is not read until the test has looked at it.
fn waits_for_its_reader(kind: &[&str], most_memory: u64) {
    let scratch = Scratch::new();
    let path = scratch.file("input", 0);
    File::options().write(true).open(&path).unwrap().set_len(STREAM).unwrap();
    // In the dialogue of SABUL the listening side sends.
    let mut sender = Server::begin_with(&[&["pipe"][..], kind].concat(), File::open(&path).unwrap().into());
    let connect = [&["pipe", "--plain", "--json", "--connect", &sender.address][..], kind].concat();
    let mut receiver = Started::begin(&connect, Stdio::null());
    let mut output = receiver.output();
    let start: serde_json::Value = serde_json::from_str(&receiver.says("\"event\":\"start\"")).unwrap();
    let receiving = i32::try_from(start["process_id"].as_i64().unwrap()).unwrap();
    output.read_exact(&mut [0; 1_000]).unwrap();
    let mut before = 0;
    loop {
        pause(LOOK);
        let now = bytes_read(sender.process());
        if now == before {
            break;
        }
        before = now;
    }
    assert!(before < STREAM, "{kind:?}: it read on to {before}");
    let names = ["sender", "receiver"].map(|end| format!("{kind:?}, {end}"));
    are_at_rest([(sender.process(), &*names[0]), (receiving, &*names[1])]);
    let memory = [sender.process(), receiving].map(resident_bytes);
    assert!(memory.iter().all(|&bytes| bytes < most_memory), "{kind:?}: {memory:?} bytes");
    let rest = copy(&mut output, &mut sink()).unwrap();
    assert_eq!(rest + 1_000, STREAM, "{kind:?}");
    let run = receiver.end();
    assert_eq!(run.code, 0, "{kind:?}: {}", run.stderr);
    let end = sender.wait_for("end");
    assert_eq!((&end["exit_code"], &end["bytes"]), (&0.into(), &STREAM.into()), "{kind:?}: {end}");
    let received = records(&run.stderr).pop().unwrap();
    assert_eq!(received["bytes"], STREAM, "{kind:?}: {received}");
}

#[test]
fn a_reader_that_stops_holds_back_every_blast_and_is_served_again() {
    // A pipe over SABUL is the original's dialogue. Two at a time, since most of the time goes into looks at ends that wait.
    let others: Vec<_> = BLASTS.into_iter().filter(|protocol| *protocol != "sabul").collect();
    for two in others.chunks(2) {
        thread::scope(|scope| {
            for protocol in two {
                scope.spawn(|| waits_for_its_reader(&[&["--protocol", protocol][..], &BUFFER].concat(), MOST_MEMORY));
            }
        });
    }
}

#[test]
fn a_reader_that_stops_holds_back_an_original_sabul_sender_and_is_served_again() {
    waits_for_its_reader(&["--protocol", "sabul", "--buffer", "48MiB"], 2 * MOST_MEMORY);
}
