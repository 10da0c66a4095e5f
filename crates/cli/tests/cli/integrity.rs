//! Corrupted bytes: no wrong file is created, and the exit code says so.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::process::Stdio;
use std::thread;

use farhaul::{Listener, Stream};
use farhaul_session::{
    Acceptor, FileReceiver, FileSender, MemoryFile, MemorySource, MemoryStore, Open, ReceiveLimits, RelPath,
};

use crate::process::{Scratch, Server, Started, farhaul};

/// Where the peers below damage the stream: behind the first frames, within the content of the only file.
const DAMAGED: usize = 100_000;
/// Size of that file.
pub(crate) const SIZE: usize = 200_000;

/// Reads what the program asks for.
fn accept(listener: &Listener) -> (Stream, Open, Vec<u8>) {
    let (stream, _) = listener.accept().unwrap();
    let (mut acceptor, mut block) = (Acceptor::new(), vec![0; 64 << 10]);
    loop {
        let len = stream.recv(&mut block).unwrap();
        if let (used, Some(open)) = acceptor.handle_received(&block[..len]).unwrap() {
            return (stream, open, block[used..len].to_vec());
        }
    }
}

/// A sender whose bytes change after it has hashed them.
pub(crate) fn send_damaged(listener: &Listener) {
    let (stream, open, _) = accept(listener);
    let name = RelPath::parse(b"file").unwrap();
    let mut source = MemorySource::new([(name, MemoryFile::file(vec![7; SIZE]))].into());
    let mut session = FileSender::answer(&open);
    let (mut sent, mut block) = (0, [0; 4096]);
    while !session.is_over() {
        let mut pending = session.poll_write(&mut source).to_vec();
        if let Some(byte) = DAMAGED.checked_sub(sent).and_then(|offset| pending.get_mut(offset)) {
            *byte ^= 1;
        }
        stream.send_all(&pending).unwrap();
        session.handle_written(pending.len());
        sent += pending.len();
        if pending.is_empty() {
            let len = stream.recv(&mut block).unwrap();
            session.handle_received(&block[..len]).unwrap();
        }
        while session.poll_event().is_some() {}
    }
}

/// A receiver that gets other bytes than were sent.
fn receive_damaged(listener: &Listener) -> MemoryStore {
    let (stream, open, early) = accept(listener);
    let mut store = MemoryStore::default();
    let mut session = FileReceiver::answer(&open, ReceiveLimits::default());
    let (mut received, mut block) = (0, early);
    loop {
        if let Some(byte) = DAMAGED.checked_sub(received).and_then(|offset| block.get_mut(offset)) {
            *byte ^= 1;
        }
        received += block.len();
        session.handle_received(&mut store, &block).unwrap();
        while session.poll_event().is_some() {}
        let answer = session.poll_write().to_vec();
        stream.send_all(&answer).unwrap();
        session.handle_written(answer.len());
        if session.is_over() {
            while stream.recv(&mut [0; 64]).is_ok_and(|len| len > 0) {}
            return store;
        }
        block.resize(64 << 10, 0);
        let len = stream.recv(&mut block).unwrap();
        block.truncate(len);
    }
}

#[test]
fn a_file_that_arrives_damaged_is_refused_and_nothing_of_it_stays() {
    let scratch = Scratch::new();
    let (here, listener) = (scratch.dir("here"), Listener::plain("127.0.0.1:0").unwrap());
    scratch.file("here/file", 5);
    thread::scope(|scope| {
        scope.spawn(|| send_damaged(&listener));
        let url = format!("udt://{}/file", listener.local_addr());
        let run = farhaul(&["copy", "--plain", "--json", &url, &here]);
        run.fails(6, &["file", "digest differs", "no wrong file was created"]);
        assert_eq!(run.end()["error"]["code"], "INTEGRITY");
        assert_eq!(run.end()["verified"], false);
    });
    assert_eq!(scratch.names("here"), ["file"]);
    assert_eq!(fs::read(scratch.at("here/file")).unwrap().len(), 5, "what stood there before still stands");
}

#[test]
fn a_file_that_the_receiver_found_damaged_fails_at_the_sender_too() {
    let scratch = Scratch::new();
    let (file, listener) = (scratch.file("file", SIZE), Listener::plain("127.0.0.1:0").unwrap());
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receive_damaged(&listener));
        let run = farhaul(&["copy", "--plain", &file, &format!("udt://{}/", listener.local_addr())]);
        run.fails(6, &["file", "digest differs", "other side"]);
        assert!(receiver.join().unwrap().tree.is_empty());
    });
}

#[test]
fn a_source_that_changes_while_it_is_sent_is_not_put_in_place() {
    let scratch = Scratch::new();
    let (file, root) = (scratch.file("file", 5_000_000), scratch.dir("root"));
    scratch.file("root/file", 5);
    let server = Server::begin(&["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    // Slow, and not read ahead by more than the buffer holds.
    let slow = ["copy", "--plain", "--json", "--interval", "50ms", "--rate", "20mbit", "--buffer", "256kB"];
    let copy = Started::begin(&[&slow[..], &[&file, &url]].concat(), Stdio::null()).after("interval");
    OpenOptions::new().append(true).open(&file).unwrap().write_all(b"more").unwrap();
    copy.end().fails(3, &["file", "source changed"]);
    assert_eq!(scratch.names("root"), ["file"]);
    assert_eq!(fs::read(scratch.at("root/file")).unwrap().len(), 5, "what stood there before still stands");
}
