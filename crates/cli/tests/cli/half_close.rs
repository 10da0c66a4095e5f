//! Encrypted pipes, whose directions end one by one.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{ChildStdin, Stdio};
use std::thread;

use crate::process::{Scratch, Server, Started, farhaul_with_as, records};
use crate::secured::User;
use crate::streams::port_of_our_own;

const BYTES: usize = 3_000_000;

/// Two programs of one user, each with an input: the listener, and the caller.
struct Both {
    listener: Server,
    caller: Started,
}

impl Both {
    fn begin(user: &User, options: &[&str], [listening, calling]: [&str; 2]) -> Self {
        let mut listener = Server::begin_as(&user.0, &[&["pipe"][..], options].concat());
        pass_on(listening, listener.input());
        let home = format!("XDG_CONFIG_HOME={}", user.0);
        let connect = [&["pipe", "--json", "--connect", &listener.address][..], options].concat();
        let caller = Started::begin_under(&["env", &home], &connect, File::open(calling).unwrap().into());
        Self { listener, caller }
    }

    /// Exit code, output and records of each.
    fn end(mut self) -> [(i32, Vec<u8>, String); 2] {
        let outputs = [self.listener.take_output(), Some(self.caller.output())];
        let [listened, called] = outputs.map(|output| {
            thread::spawn(move || {
                let mut all = Vec::new();
                if let Some(mut output) = output {
                    output.read_to_end(&mut all).unwrap();
                }
                all
            })
        });
        let (code, records) = self.listener.end_with_records();
        let run = self.caller.end();
        [(code, listened.join().unwrap(), records), (run.code, called.join().unwrap(), run.stderr)]
    }
}

/// Writes a file to an input that ends a little later than its last byte.
fn pass_on(file: &str, mut input: ChildStdin) {
    let bytes = std::fs::read(file).unwrap();
    // The program may end before it has read all of it.
    thread::spawn(move || input.write_all(&bytes));
}

#[test]
fn both_directions_of_an_encrypted_pipe_arrive_whole() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let (long, short) = (scratch.file("long", BYTES), scratch.file("short", 1_000));
    let nothing = scratch.file("nothing", 0);
    for [listening, calling] in
        [[&long, &long], [&long, &short], [&short, &long], [&nothing, &long], [&long, &nothing], [&nothing, &nothing]]
    {
        let [listener, caller] = Both::begin(&user, &[], [listening, calling]).end();
        assert_eq!([listener.0, caller.0], [0, 0], "{} {}", listener.2, caller.2);
        assert!(listener.1 == std::fs::read(calling).unwrap(), "{} bytes of {calling}", listener.1.len());
        assert!(caller.1 == std::fs::read(listening).unwrap(), "{} bytes of {listening}", caller.1.len());
        assert_eq!(records(&caller.2).pop().unwrap()["exit_code"], 0);
    }
}

/// The program at the remote side answers once its own input has ended, so its output must end then.
#[test]
fn an_answer_follows_a_question_whose_input_has_ended() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let answer = scratch.file("answer", BYTES);
    let [asked, answers] = ["asked", "answers"].map(|name| scratch.at(name));
    rustix::fs::mkfifoat(rustix::fs::CWD, &answers, rustix::fs::Mode::RWXU).unwrap();
    let address = format!("127.0.0.1:{}", port_of_our_own());
    let script = format!("\"$@\" < {answers} | {{ cat > {asked}; cat {answer}; }} > {answers}");
    let home = format!("XDG_CONFIG_HOME={}", user.0);
    let listener = Started::begin_under(
        &["env", &home, "sh", "-c", &script, "sh"],
        &["pipe", "--json", "--listen", &address],
        Stdio::null(),
    );
    let call = ["pipe", "--connect-timeout", "20s", "--connect", &address];
    let run = farhaul_with_as(&user.0, b"a question", &call);
    run.succeeds();
    assert!(run.stdout == std::fs::read(&answer).unwrap(), "{} bytes", run.stdout.len());
    let run = listener.end();
    assert_eq!(std::fs::read_to_string(asked).unwrap(), "a question");
    assert_eq!(records(&run.stderr).pop().unwrap()["exit_code"], 0, "{}", run.stderr);
}

#[test]
fn a_reader_that_goes_away_ends_both_directions() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let (long, short) = (scratch.file("long", 20 << 20), scratch.file("short", 1_000));
    let mut both = Both::begin(&user, &[], [&short, &long]);
    both.listener.output().read_exact(&mut [0; 10]).unwrap();
    let [listener, caller] = both.end();
    assert_eq!([listener.0, caller.0], [7, 8], "{} {}", listener.2, caller.2);
    assert_eq!(records(&caller.2).pop().unwrap()["error"]["code"], "PEER_LOST");
}

/// A part never passes for the whole, and one of the sides says why.
#[test]
fn a_protocol_that_cannot_end_one_direction_says_that_a_part_may_be_missing() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let (long, short) = (scratch.file("long", BYTES), scratch.file("short", 1_000));
    for protocol in ["udt-2004", "rbudp", "fobs"] {
        let ends = Both::begin(&user, &["--protocol", protocol], [&long, &short]).end();
        let [listener, caller] = &ends;
        assert_eq!(listener.0, 8, "{protocol}: its input was not sent as a whole, {}", listener.2);
        assert!(caller.0 == 8 || caller.1.is_empty(), "{protocol}: {} bytes, {}", caller.1.len(), caller.2);
        if caller.0 == 8 {
            assert!(caller.2.contains("cannot end alone"), "{protocol}: {}", caller.2);
        }
    }
}

#[test]
fn one_direction_of_any_protocol_still_ends_well() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let (long, nothing) = (scratch.file("long", BYTES), scratch.file("nothing", 0));
    for protocol in ["udt-2004", "rbudp"] {
        let [listener, caller] = Both::begin(&user, &["--protocol", protocol], [&nothing, &long]).end();
        assert_eq!([listener.0, caller.0], [0, 0], "{protocol}: {} {}", listener.2, caller.2);
        assert!(listener.1 == std::fs::read(&long).unwrap(), "{protocol}");
    }
}

/// A wait for the other direction has somebody who ends it.
#[test]
fn a_side_that_is_stopped_while_it_waits_for_the_other_direction_ends_both() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let mut listener = Server::begin_as(&user.0, &["pipe"]);
    let (mut heard, open) = ([0; 8], listener.input());
    let home = format!("XDG_CONFIG_HOME={}", user.0);
    let call = ["pipe", "--json", "--connect", &listener.address];
    let mut caller = Started::begin_under(&["env", &home], &call, Stdio::piped());
    caller.input().write_all(b"question").unwrap();
    let mut output = listener.output();
    output.read_exact(&mut heard).unwrap();
    listener.signal(rustix::process::Signal::TERM);
    assert_eq!(listener.wait_for("end")["exit_code"], 143);
    let run = caller.end();
    assert_eq!((run.code, &records(&run.stderr).pop().unwrap()["error"]["code"]), (8, &"PEER_LOST".into()));
    drop(open);
}
