//! How a pipe ends: in order when its input has ended, and with an error on both sides otherwise.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::thread;
use std::time::Duration;

use farhaul::{ConnectOptions, ConnectionLost, Endpoint, Error, Stream};
use rustix::process::Signal;
use serde_json::Value;

use crate::process::{Run, Scratch, Server, Started, farhaul_with, records};
use crate::streams::port_of_our_own;

/// More than a packet, less than any buffer.
const SOME: usize = 50_000;

/// A time-out that no test waits for.
const LONG: [&str; 2] = ["--timeout", "20s"];

/// The side that receives: it calls.
struct Receiving {
    run: Started,
    output: ChildStdout,
}

impl Receiving {
    fn from(sender: &Server) -> Self {
        let arguments = [&["pipe", "--plain", "--json", "--connect", &sender.address][..], &LONG].concat();
        let mut run = Started::begin(&arguments, Stdio::null());
        let output = run.output();
        Self { run, output }
    }

    fn has_received(&mut self, len: usize) {
        self.output.read_exact(&mut vec![0; len]).unwrap();
    }

    /// It was told that its sender broke off.
    #[track_caller]
    fn breaks_off(self) {
        let run = self.run.end();
        let end = last(&run);
        assert_eq!((run.code, &end["error"]["code"]), (8, &"PEER_LOST".into()), "{}", run.stderr);
        assert!(end["error"]["message"].as_str().unwrap().contains("before everything was transferred"), "{end}");
    }
}

/// A sender whose first bytes have arrived, and that goes on reading its input.
fn sending() -> (Server, ChildStdin, Receiving) {
    let mut sender = Server::begin(&[&["pipe"][..], &LONG].concat());
    let mut receiving = Receiving::from(&sender);
    let mut input = sender.input();
    input.write_all(&[7; SOME]).unwrap();
    receiving.has_received(SOME);
    (sender, input, receiving)
}

/// The last record of a pipe. They are on stderr, where nothing else is.
#[track_caller]
fn last(run: &Run) -> Value {
    let end = records(&run.stderr).pop().unwrap();
    assert_eq!(end["event"], "end", "{}", run.stderr);
    end
}

#[test]
fn a_sender_that_a_signal_stops_is_no_end_of_its_stream() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let (mut sender, input, receiving) = sending();
        sender.signal(signal);
        let end = sender.wait_for("end");
        assert_eq!((&end["exit_code"], &end["bytes"]), (&code.into(), &SOME.into()), "{end}");
        assert_eq!(sender.end().0, code);
        receiving.breaks_off();
        drop(input);
    }
}

/// As Ctrl-C does to all programs of a shell's pipeline: the one before ends at once, and so does what it writes.
#[test]
fn an_input_that_ends_because_of_the_same_signal_is_no_end_of_its_stream() {
    for _ in 0..5 {
        let (mut sender, input, receiving) = sending();
        sender.suspend();
        sender.signal(Signal::INT);
        drop(input);
        // Now both are there at once.
        sender.signal(Signal::CONT);
        assert_eq!(sender.wait_for("end")["exit_code"], 130);
        assert_eq!(sender.end().0, 130);
        receiving.breaks_off();
    }
}

#[test]
fn an_input_that_cannot_be_read_is_no_end_of_its_stream() {
    // A directory can be opened, and never read.
    let scratch = Scratch::new();
    let mut sender = Server::begin_with(&["pipe"], File::open(scratch.dir("directory")).unwrap().into());
    let receiving = Receiving::from(&sender);
    let error = sender.wait_for("end")["error"].clone();
    assert!(error["code"] == "LOCAL_IO" && error["message"].as_str().unwrap().contains("cannot read stdin"), "{error}");
    assert_eq!(sender.end().0, 7);
    receiving.breaks_off();
}

#[test]
fn an_input_that_breaks_off_in_the_middle_is_no_end_of_its_stream() {
    let (near, mut far) = UnixStream::pair().unwrap();
    let echo = near.try_clone().unwrap();
    let mut sender = Server::begin_with(&["pipe"], OwnedFd::from(near).into());
    let mut receiving = Receiving::from(&sender);
    far.write_all(&[7; SOME]).unwrap();
    receiving.has_received(SOME);
    // Closing a socket with unread data resets the connection.
    (&echo).write_all(b"never read").unwrap();
    drop(far);
    assert_eq!(sender.wait_for("end")["error"]["code"], "LOCAL_IO");
    assert_eq!(sender.end().0, 7);
    receiving.breaks_off();
}

#[test]
fn a_sender_that_a_signal_stops_before_its_first_byte_is_no_empty_stream() {
    let mut sender = Server::begin(&[&["pipe"][..], &LONG].concat());
    let arguments = [&["pipe", "--plain", "--json", "--connect", &sender.address][..], &LONG].concat();
    let mut run = Started::begin(&arguments, Stdio::piped());
    let output = run.output();
    // Data at the sender proves the connection.
    let mut input = run.input();
    input.write_all(b"x").unwrap();
    sender.output().read_exact(&mut [0]).unwrap();
    sender.signal(Signal::TERM);
    assert_eq!(sender.end().0, 143);
    Receiving { run, output }.breaks_off();
    drop(input);
}

/// A receiver that cannot write to `stdout` fails, and so does a sender of more data than it takes.
#[track_caller]
fn receiver_cannot_write_to(stdout: Stdio, code: &str) {
    let mut sender = Server::begin_with(&[&["pipe"][..], &LONG].concat(), File::open("/dev/zero").unwrap().into());
    let arguments = ["pipe", "--plain", "--json", "--connect", &sender.address];
    let run = Started::begin_to(&arguments, Stdio::null(), stdout).end();
    let end = last(&run);
    assert_eq!((run.code, &end["exit_code"], &end["error"]["code"]), (7, &7.into(), &code.into()), "{end}");
    assert!(end["error"]["message"].as_str().unwrap().contains("stdout"), "{end}");
    let there = sender.wait_for("end");
    assert_eq!((&there["exit_code"], &there["error"]["code"]), (&8.into(), &"PEER_LOST".into()), "{there}");
    assert_eq!(sender.end().0, 8);
}

#[test]
fn a_receiver_whose_disk_is_full_ends_both_sides() {
    receiver_cannot_write_to(File::options().write(true).open("/dev/full").unwrap().into(), "DISK_FULL");
}

#[test]
fn a_receiver_whose_reader_has_seen_enough_ends_both_sides_and_has_its_end_record() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let head = thread::spawn(move || reader.read_exact(&mut [0; 10]));
    receiver_cannot_write_to(writer.into(), "LOCAL_IO");
    head.join().unwrap().unwrap();
}

#[test]
fn a_reader_that_has_seen_enough_ends_a_pipe_without_a_line() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut sender = Server::begin(&["pipe"]);
    sender.feed(b"some bytes");
    let arguments = ["pipe", "--plain", "--connect", &sender.address];
    let run = Started::begin_to(&arguments, Stdio::null(), writer.into()).end();
    assert_eq!((run.code, &run.stderr[..]), (7, ""), "it was not written, and whoever reads knows");
}

/// An end that lives, so that its silence is not that of a peer that is gone.
fn lively(address: &str) -> Endpoint {
    Endpoint::builder().plain().keep_alive(Duration::from_millis(50)).bind(address.parse().unwrap()).unwrap()
}

/// `pipe` runs with `input` against `peer`, which takes that, says something, waits for more and closes nothing.
fn ends_idle(run: impl FnOnce() -> Run, peer: impl FnOnce() -> Stream + Send, input: &[u8]) {
    let run = thread::scope(|scope| {
        let peer = scope.spawn(|| {
            let stream = peer();
            (&stream).read_exact(&mut vec![0; input.len()]).unwrap();
            stream.send_all(b"an answer").unwrap();
            stream.recv(&mut [0])
        });
        let run = run();
        let seen = peer.join().unwrap();
        assert!(matches!(seen, Err(Error::Lost(ConnectionLost::Aborted))), "{seen:?}");
        run
    });
    assert_eq!(run.stdout, b"an answer");
    let end = last(&run);
    assert_eq!((run.code, &end["error"]["code"]), (8, &"IDLE_TIMEOUT".into()), "{end}");
    assert!(end["error"]["message"].as_str().unwrap().contains("--wait"), "{end}");
}

#[test]
fn a_side_that_waits_for_another_that_waits_ends_with_the_idle_time_out() {
    let waiting = ["pipe", "--plain", "--json", "--wait", "--timeout", "300ms"];
    let there = lively("127.0.0.1:0");
    let listener = there.listen().unwrap();
    let address = there.local_addr().to_string();
    for input in [&b"a question"[..], b""] {
        let run = || farhaul_with(input, &[&waiting[..], &["--connect", &address]].concat());
        ends_idle(run, || listener.accept().unwrap().0, input);
    }
}

#[test]
fn a_rendezvous_of_two_sides_that_wait_ends_with_the_idle_time_out() {
    let here = format!("127.0.0.1:{}", port_of_our_own());
    let there = lively(&format!("127.0.0.1:{}", port_of_our_own()));
    let address = there.local_addr().to_string();
    let meet = ["pipe", "--plain", "--json", "--wait", "--timeout", "300ms", "--rendezvous", "--listen", &here];
    let run = || farhaul_with(b"a question", &[&meet[..], &["--connect", &address]].concat());
    ends_idle(run, || there.connect_with(&*here, ConnectOptions::stream().rendezvous()).unwrap(), b"a question");
}

#[test]
fn a_pipe_into_a_daemon_of_another_service_is_a_protocol_mismatch_on_both_sides() {
    let scratch = Scratch::new();
    for (verb, arguments) in [("serve", &["--root", &scratch.dir("root")][..]), ("bench", &[])] {
        let mut daemon = Server::begin(&[&[verb][..], arguments].concat());
        // More than is ever on its way, so that the answer comes before everything is acknowledged.
        let endless = File::open("/dev/zero").unwrap().into();
        let run = Started::begin(&["pipe", "--plain", "--json", "--connect", &daemon.address], endless).end();
        let end = last(&run);
        assert_eq!((run.code, &end["error"]["code"]), (9, &"PROTOCOL".into()), "{end}");
        assert!(end["error"]["message"].as_str().unwrap().contains("farhaul pipe --listen"), "{end}");
        let warning = daemon.wait_for("warning")["message"].as_str().unwrap().to_owned();
        assert!(warning.starts_with("127.0.0.1:"), "{warning}");
    }
}

#[test]
fn a_daemon_tells_of_every_caller_that_spoke_and_said_nothing_that_it_knows() {
    let scratch = Scratch::new();
    let mut daemon = Server::begin(&["serve", "--root", &scratch.dir("root")]);
    // Too short for a frame, the header of one, and no header. All are acknowledged before anybody reads them.
    for input in [&b"hi\n"[..], b"\x01\0\0\0\x20begin", b"GET / HTTP/1.1\r\n\r\n"] {
        farhaul_with(input, &["pipe", "--plain", "--connect", &daemon.address]);
        let warning = daemon.wait_for("warning")["message"].as_str().unwrap().to_owned();
        assert!(warning.starts_with("127.0.0.1:"), "{warning}");
    }
}

/// Half of the bytes that a pipe holds. How many fit depends on the sizes of writes, since pages may be filled in part.
const HALF_A_PIPE: u64 = 32 << 10;

/// A run that waits for its reader: its output is full, and there is more.
fn stuck(arguments: &[&str]) -> (Started, ChildStdout) {
    let mut run = Started::begin(arguments, Stdio::null());
    let output = run.output();
    let mut before = 0;
    let is_full = (0..200).any(|_| {
        thread::park_timeout(Duration::from_millis(100));
        let last = std::mem::replace(&mut before, rustix::io::ioctl_fionread(&output).unwrap());
        before == last && before > HALF_A_PIPE
    });
    assert!(is_full, "{before} bytes");
    (run, output)
}

#[test]
fn a_receiver_whose_reader_does_not_go_on_is_stopped_by_the_first_signal() {
    let mut sender = Server::begin_with(&[&["pipe"][..], &LONG].concat(), File::open("/dev/zero").unwrap().into());
    let (run, output) = stuck(&["pipe", "--plain", "--connect", &sender.address]);
    run.signal(Signal::TERM);
    run.end().fails(143, &["SIGTERM"]);
    assert_eq!(sender.wait_for("end")["exit_code"], 8);
    drop(output);
}

#[test]
fn a_second_signal_ends_a_program_at_once_that_cannot_stop_cleanly() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    scratch.file("root/file", 2_000_000);
    let server = Server::begin(&["serve", "--root", &root]);
    let (run, output) = stuck(&["copy", "--plain", &format!("udt://{}/file", server.address), "-"]);
    run.signal(Signal::TERM);
    // Sooner it counts as the same request.
    std::thread::park_timeout(Duration::from_millis(600));
    run.signal(Signal::INT);
    let run = run.end();
    assert!(run.code == 130 || run.code == 143, "{}: {}", run.code, run.stderr);
    drop(output);
}

#[test]
fn two_signals_at_once_stop_a_program_as_cleanly_as_one() {
    // `timeout` signals its child, and then its whole group.
    for _ in 0..5 {
        let mut sender = Server::begin_with(&[&["pipe"][..], &LONG].concat(), File::open("/dev/zero").unwrap().into());
        let (run, output) = stuck(&["pipe", "--plain", "--connect", &sender.address]);
        run.signal(Signal::TERM);
        run.signal(Signal::INT);
        let run = run.end();
        assert!(run.stderr.contains("stopped by SIGTERM") || run.stderr.contains("interrupted"), "{}", run.stderr);
        assert_eq!(sender.wait_for("end")["exit_code"], 8, "the peer was told");
        drop(output);
    }
}
