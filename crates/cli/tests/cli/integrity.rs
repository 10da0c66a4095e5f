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

/// A sender whose bytes change after it has hashed them, in its first `attempts`.
pub(crate) fn send_damaged(listener: &Listener, attempts: usize) {
    let (stream, open, _) = accept(listener);
    let name = RelPath::parse(b"file").unwrap();
    let mut source = MemorySource::new([(name, MemoryFile::file(vec![7; SIZE]))].into());
    let mut session = FileSender::answer(&open);
    let (mut sent, mut block) = (0, [0; 4096]);
    while !session.is_over() {
        let mut pending = session.poll_write(&mut source).to_vec();
        damage(&mut pending, sent, attempts);
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

/// Changes a bit of the content in each of the first attempts. An attempt is as long as the file and some small frames.
fn damage(block: &mut [u8], before: usize, attempts: usize) {
    for attempt in 0..attempts {
        let at = DAMAGED + attempt * SIZE;
        if let Some(byte) = at.checked_sub(before).and_then(|offset| block.get_mut(offset)) {
            *byte ^= 1;
        }
    }
}

/// A receiver that gets other bytes than were sent, in its first `attempts`.
fn receive_damaged(listener: &Listener, attempts: usize) -> MemoryStore {
    let (stream, open, early) = accept(listener);
    let mut store = MemoryStore::default();
    let mut session = FileReceiver::answer(&open, ReceiveLimits::default());
    let (mut received, mut block) = (0, early);
    loop {
        damage(&mut block, received, attempts);
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
        scope.spawn(|| send_damaged(&listener, 3));
        let url = format!("udt://{}/file", listener.local_addr());
        let run = farhaul(&["copy", "--plain", "--json", &url, &here]);
        run.fails(6, &["file", "digest differs", "offset 0 arrived damaged 3 times", "no wrong file was created"]);
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
        let receiver = scope.spawn(|| receive_damaged(&listener, 3));
        let run = farhaul(&["copy", "--plain", &file, &format!("udt://{}/", listener.local_addr())]);
        run.fails(6, &["file", "digest differs", "other side"]);
        assert!(receiver.join().unwrap().tree.is_empty());
    });
}

#[test]
fn a_file_that_is_damaged_once_in_flight_arrives_all_the_same() {
    let scratch = Scratch::new();
    let (here, listener) = (scratch.dir("here"), Listener::plain("127.0.0.1:0").unwrap());
    thread::scope(|scope| {
        scope.spawn(|| send_damaged(&listener, 1));
        let run = farhaul(&["copy", "--plain", "--json", &format!("udt://{}/file", listener.local_addr()), &here]);
        run.succeeds();
        assert!(run.records().iter().any(|record| record["message"].to_string().contains("arrived damaged")));
        assert_eq!((&run.end()["repaired_chunks"], &run.end()["verified"]), (&1.into(), &true.into()));
    });
    assert_eq!(fs::read(scratch.at("here/file")).unwrap(), [7; SIZE]);
}

#[test]
fn a_source_that_changes_while_it_is_sent_is_read_again_and_arrives_as_it_is_then() {
    let scratch = Scratch::new();
    let (file, root) = (scratch.file("file", 5_000_000), scratch.dir("root"));
    scratch.file("root/file", 5);
    let server = Server::begin(&["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    // Slow, and not read ahead by more than the buffer holds.
    let slow = ["copy", "--plain", "--json", "--interval", "50ms", "--rate", "20mbit", "--buffer", "256kB"];
    let copy = Started::begin(&[&slow[..], &[&file, &url]].concat(), Stdio::null()).after("interval");
    OpenOptions::new().append(true).open(&file).unwrap().write_all(b"more").unwrap();
    let run = copy.end();
    run.succeeds();
    assert_eq!(scratch.names("root"), ["file"]);
    assert!(fs::read(scratch.at("root/file")).unwrap() == fs::read(&file).unwrap());
    // Chunks that are the same as before are not sent again.
    let moved = run.end()["moved_bytes"].as_u64().unwrap();
    assert!((5_000_004..7_200_000).contains(&moved), "{moved}");
}
