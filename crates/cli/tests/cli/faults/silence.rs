//! A peer that says nothing: waiting takes no time of the processor.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::scripted::{ask_rbudp, give_rbudp, give_tsunami, receive_sabul, send_sabul, tsunami_block};
use super::{BLASTS, pause, processor_seconds};
use crate::process::{Scratch, Server, Started};

/// Time of a look at the processor.
const LOOK: Duration = Duration::from_secs(1);
/// A quarter of a core. A busy loop takes all of it, or its share of a busy machine.
const MOST: f64 = 0.25;

/// Says nothing until the peer ends the channel.
pub(super) fn wait_for_the_end(mut channel: TcpStream) {
    // A reset is an end, too.
    let _ = channel.read_to_end(&mut Vec::new());
}

/// The process uses little of the processor, if it lives.
#[track_caller]
pub(super) fn is_at_rest(process: i32, case: &str) {
    are_at_rest([(process, case)]);
}

/// The same of several processes in the same time.
#[track_caller]
pub(super) fn are_at_rest<const N: usize>(processes: [(i32, &str); N]) {
    let before = processes.map(|(process, _)| processor_seconds(process));
    pause(LOOK);
    for ((process, case), before) in processes.into_iter().zip(before) {
        let used = processor_seconds(process) - before;
        assert!(used < MOST, "{case}: {used} s of the processor in {LOOK:?}");
    }
}

/// A copy from `place` that was begun. `said` waits until its peer is silent.
fn is_at_rest_as_client(place: &str, case: &str, said: impl FnOnce()) {
    let scratch = Scratch::new();
    let to = scratch.dir("to");
    let copy = Started::begin(&["copy", "--plain", "--json", place, &to], Stdio::null()).after("start");
    said();
    is_at_rest(copy.process(), case);
    copy.signal(Signal::INT);
    assert_eq!(copy.end().code, 130, "{case}: it was waiting still");
}

#[test]
fn a_copy_from_an_original_that_falls_silent_is_at_rest() {
    thread::scope(|scope| {
        scope.spawn(|| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let place = format!("tsunami://{}/a", listener.local_addr().unwrap());
            is_at_rest_as_client(&place, "tsunami, opening", || drop(listener.accept().map(std::mem::forget)));
        });
        scope.spawn(|| {
            let (told, silent) = channel();
            let tsunami = give_tsunami(10_000_000, move |channel, block, datagrams| {
                datagrams.send(&tsunami_block(3, block)).unwrap();
                told.send(()).unwrap();
                wait_for_the_end(channel);
            });
            is_at_rest_as_client(&format!("tsunami://{tsunami}/a"), "tsunami, blocks", || silent.recv().unwrap());
        });
        scope.spawn(|| {
            let (told, silent) = channel();
            let rbudp = give_rbudp(10_000_000, move |channel, datagrams| {
                datagrams.send(&[&[3, 0, 0, 0][..], &[7; 1_460]].concat()).unwrap();
                told.send(()).unwrap();
                wait_for_the_end(channel);
            });
            is_at_rest_as_client(&format!("rbudp://{rbudp}/a"), "rbudp", || silent.recv().unwrap());
        });
    });
}

#[test]
fn an_rbudp_sender_whose_receiver_falls_silent_is_at_rest() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    scratch.file("root/file", 100_000);
    let server = Server::begin(&["serve", "--protocol", "rbudp", "--root", &root]);
    let mut receiver = ask_rbudp(&server.address, "file");
    receiver.read_exact(&mut [0; 8]).unwrap();
    is_at_rest(server.process(), "it waits for a bitmap");
    drop(receiver);
    let _named = TcpStream::connect(&server.address).unwrap();
    is_at_rest(server.process(), "it waits for a name");
}

/// A client that is suspended in the middle: the server still sends, by a slow rate, and then repeats the last block.
#[test]
fn a_tsunami_server_whose_client_falls_silent_is_at_rest() {
    let getting = super::Getting::direct("tsunami");
    getting.copy.suspend();
    is_at_rest(getting.server.process(), "tsunami");
    getting.copy.signal(Signal::KILL);
}

#[test]
fn both_ends_of_a_sabul_stream_are_at_rest_while_the_other_is_silent() {
    let mut sender = Server::begin(&["pipe", "--protocol", "sabul"]);
    let mut input = sender.input();
    let (_channel, _datagrams) = receive_sabul(&sender.address);
    is_at_rest(sender.process(), "a sender without data");
    input.write_all(&[7; 50_000]).unwrap();
    is_at_rest(sender.process(), "a sender without acknowledgements");
    let (told, silent) = channel();
    let address = send_sabul(move |channel| {
        told.send(()).unwrap();
        wait_for_the_end(channel);
    });
    let connect = ["pipe", "--plain", "--json", "--protocol", "sabul", "--connect", &address];
    let mut receiver = Started::begin(&connect, Stdio::null());
    let start = receiver.says("\"event\":\"start\"");
    silent.recv().unwrap();
    let start: serde_json::Value = serde_json::from_str(&start).unwrap();
    is_at_rest(i32::try_from(start["process_id"].as_i64().unwrap()).unwrap(), "a receiver");
    receiver.signal(Signal::INT);
    assert_eq!(receiver.end().code, 130);
}

#[test]
fn a_blast_whose_receiver_is_suspended_is_at_rest() {
    let case = |protocol: &'static str| {
        let scratch = Scratch::new();
        let (file, root) = (scratch.file("file", super::LONG), scratch.dir("root"));
        let server = Server::begin(&["serve", "--protocol", protocol, "--root", &root]);
        let url = format!("udt://{}/", server.address);
        let push = ["copy", "--plain", "--json", "--interval", "50ms", "--protocol", protocol, &file, &url];
        let copy = Started::begin(&[&push[..], &super::SLOW].concat(), Stdio::null()).after("interval");
        server.suspend();
        is_at_rest(copy.process(), protocol);
        copy.signal(Signal::KILL);
    };
    thread::scope(|scope| {
        for protocol in BLASTS {
            scope.spawn(move || case(protocol));
        }
    });
}
