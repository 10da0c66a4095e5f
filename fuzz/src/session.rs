//! Sessions of copies and measurements, each fed with bytes that a peer could send.

use std::sync::Arc;

use bolero::check;
use farhaul_session::{
    Acceptor, Bench, BenchSpec, CommandEvent, CommandExit, CommandFrame, CommandReader, CopyScope, Direction, Existing,
    FileClient, FileReceiver, FileRequest, FileSender, FileServer, ListTree, MemoryFile, MemoryFiles, MemorySource,
    MemoryStore, Open, Put, ReadFrom, ReadRange, ReceiveLimits, RelPath, Request, ServicePath, StandardStream, Stop,
    TreeCursor,
};
use farhaul_units::Instant;

/// Longest stream in bytes: a few frames of each kind.
const MAX_STREAM: usize = 4_000;
/// Most bytes pending for a peer that does not read: the limit of pending answers plus the answers to one frame.
const MAX_PENDING: usize = 80 << 10;
/// Bytes delivered at a time, so that frames arrive in pieces.
const PIECE: usize = 61;

fn limits() -> ReceiveLimits {
    ReceiveLimits { window: 1 << 20, file_size: 1 << 30, bytes: 1 << 30, entries: 500 }
}

fn pull() -> CopyScope {
    CopyScope { paths: vec![RelPath::root()], recursive: true, ..CopyScope::default() }
}

/// The first bytes that an accepting side receives.
#[test]
fn opening() {
    check!().with_max_len(MAX_STREAM).with_iterations(1_000).for_each(|stream: &[u8]| {
        let mut acceptor = Acceptor::new();
        let mut rest = stream;
        while !rest.is_empty() {
            match acceptor.handle_received(&rest[..rest.len().min(PIECE)]) {
                Ok((used, None)) => rest = &rest[used.max(1)..],
                Ok((used, Some(open))) => return go_on(&open, &rest[used..]),
                Err(_) => return,
            }
        }
    });
}

/// A sender's stream, received by the requester of a pull.
#[test]
fn sender_says() {
    check!().with_max_len(MAX_STREAM).with_iterations(1_000).for_each(|stream: &[u8]| {
        receive(FileReceiver::pull(pull(), limits()).expect("a request that can be made"), stream);
    });
}

/// A receiver's stream, received by a sender that serves a pull.
#[test]
fn receiver_says() {
    check!().with_max_len(MAX_STREAM).with_iterations(1_000).for_each(|stream: &[u8]| {
        // The second sender waits for a list of names.
        for names in [None, Some(Arc::default())] {
            let open = Open {
                version: farhaul_session::VERSION,
                oldest_version: farhaul_session::OLDEST_VERSION,
                capabilities: farhaul_session::Capabilities::NONE,
                credit: 1 << 20,
                request: Request::from(CopyScope { names, ..pull() }),
                bonding: None,
            };
            send(FileSender::answer(&open), stream);
        }
    });
}

/// Both sides of a measurement.
// Slow: a thousand streams, and for each of them two sessions that fill a frame of 1 MiB to send.
#[test]
fn measurement() {
    check!().with_max_len(MAX_STREAM).with_iterations(1_000).for_each(|stream: &[u8]| {
        for direction in [Direction::Forward, Direction::Reverse] {
            let spec = BenchSpec { direction, stop: Stop::Bytes(10) };
            measure(Bench::connect(spec), stream);
            measure(Bench::accept(spec), stream);
        }
    });
}

/// Both sides of a command.
#[test]
fn command() {
    check!().with_max_len(MAX_STREAM).with_iterations(1_000).for_each(|stream: &[u8]| {
        run(CommandReader::connecting(), stream);
        run(CommandReader::accepting(), stream);
    });
}

/// The stream of a client of the file service, received by a server.
#[test]
fn client_asks() {
    let (_, open) = Acceptor::new().handle_received(FileClient::connect().poll_write()).expect("ours");
    let open = open.expect("whole");
    check!().with_max_len(MAX_STREAM).with_iterations(1_000).for_each(|stream: &[u8]| serve(&open, stream));
}

/// The stream of a server of the file service, received by a client with a request of each kind of answer.
#[test]
fn server_answers() {
    check!().with_max_len(MAX_STREAM).with_iterations(1_000).for_each(|stream: &[u8]| {
        let mut client = FileClient::connect();
        let ids = requests().iter().filter_map(|request| client.request(request)).count();
        assert_eq!(ids, 6);
        for piece in stream.chunks(PIECE) {
            if client.handle_received(piece).is_err() {
                assert!(client.is_over() && client.error().is_some());
                break;
            }
            // It answers puts that fail, and grants.
            assert!(client.poll_write().len() < MAX_PENDING);
            while client.poll_event().is_some() {}
        }
        let ended = client.handle_end();
        assert!(ended.is_err() || client.is_over());
    });
}

/// Requests of which one has a long answer, and one a body.
fn requests() -> Vec<FileRequest> {
    let place = |path: &[u8]| ServicePath::new(path).expect("a path");
    let (size, mtime) = (Some(300), None);
    vec![
        FileRequest::Stat(place(b"d")),
        FileRequest::List { place: place(b"d"), cursor: Vec::new(), most: 5 },
        FileRequest::Read(ReadRange { place: place(b"d/f"), from: ReadFrom::End(200), length: 100 }),
        FileRequest::Digest(place(b"d/f")),
        FileRequest::ListTree(ListTree { place: place(b""), depth: 9, from: TreeCursor::default(), most: 4096 }),
        FileRequest::Put(Put {
            place: place(b"new"),
            size,
            existing: Existing::Keep,
            parents: true,
            mode: 0o644,
            mtime,
        }),
    ]
}

/// The files of a server.
fn served() -> MemoryFiles {
    let name = |text: &[u8]| RelPath::parse(text).expect("a path");
    MemoryFiles::new([(name(b"d"), MemoryFile::directory()), (name(b"d/f"), MemoryFile::file(vec![7; 300]))].into())
}

fn serve(open: &Open, stream: &[u8]) {
    let mut server = FileServer::answer(open, served());
    for piece in stream.chunks(PIECE) {
        if server.handle_received(piece).is_err() {
            assert!(server.is_over() && server.error().is_some());
            break;
        }
        // What is pending does not grow while nobody reads.
        assert!(server.poll_write().len() < MAX_PENDING);
        for _ in 0..3 {
            let pending = server.poll_write().len();
            server.handle_written(pending);
        }
    }
    let ended = server.handle_end();
    assert!(ended.is_err() || server.is_over());
}

fn go_on(open: &Open, stream: &[u8]) {
    match open.request {
        Request::Push(_) => receive(FileReceiver::answer(open, limits()), stream),
        Request::Pull(_) => send(FileSender::answer(open), stream),
        Request::Bench(spec) => measure(Bench::accept(spec), stream),
        Request::Command(_) => run(CommandReader::accepting(), stream),
        Request::Files => serve(open, stream),
        _ => {}
    }
}

/// Reads one side of a command. Each stream ends once, its bytes come before, and nothing comes behind the end of the command.
fn run(mut reader: CommandReader, stream: &[u8]) {
    let (mut ended, mut has_exited) = (Vec::new(), false);
    for mut piece in stream.chunks(PIECE) {
        loop {
            match reader.next(&mut piece) {
                Ok(None) => break,
                Ok(Some(event)) => {
                    assert!(!has_exited);
                    match event {
                        CommandEvent::Bytes(stream, bytes) => assert!(!bytes.is_empty() && !ended.contains(&stream)),
                        CommandEvent::Ended(stream) => {
                            assert!(!ended.contains(&stream));
                            ended.push(stream);
                        }
                        CommandEvent::Exited(_) => has_exited = true,
                        _ => {}
                    }
                }
                Err(_) => return,
            }
        }
        assert!(piece.is_empty());
    }
    assert_eq!(reader.handle_end().is_ok(), has_exited);
}

fn receive(mut session: FileReceiver, stream: &[u8]) {
    let mut store = MemoryStore::default();
    for piece in stream.chunks(PIECE) {
        let taken = session.handle_received(&mut store, piece);
        assert!(session.poll_write().len() < MAX_PENDING);
        while session.poll_event().is_some() {}
        if taken.is_err() {
            assert!(session.is_over() && session.error().is_some());
            break;
        }
    }
    let ended = session.handle_end(&mut store);
    assert!(ended.is_err() || session.is_over());
    assert!(store.is_idle(), "nothing stays open");
}

fn send(mut session: FileSender, stream: &[u8]) {
    let file = |text: &[u8]| RelPath::parse(text).expect("a path");
    let mut source = MemorySource::new([(file(b"a"), MemoryFile::file(b"abc".to_vec()))].into());
    for piece in stream.chunks(PIECE) {
        let pending = session.poll_write(&mut source).len();
        session.handle_written(pending);
        if session.handle_received(piece).is_err() {
            assert!(session.is_over() && session.error().is_some());
            break;
        }
        while session.poll_event().is_some() {}
    }
    let ended = session.handle_end();
    assert!(ended.is_err() || session.is_over());
    session.poll_write(&mut source);
    assert!(source.is_idle(), "nothing stays open");
}

fn measure(mut session: Bench, stream: &[u8]) {
    for piece in stream.chunks(PIECE) {
        let pending = session.poll_write(Instant::ZERO).len();
        session.handle_written(Instant::ZERO, pending);
        if session.handle_received(Instant::ZERO, piece).is_err() {
            assert!(session.is_over() && session.error().is_some());
            return;
        }
        while session.poll_event().is_some() {}
    }
}

/// What a client and a server of the file service say, without the opening.
fn dialogue() -> (Vec<u8>, Vec<u8>) {
    let mut client = FileClient::connect();
    let opening = client.poll_write().to_vec();
    client.handle_written(opening.len());
    let (_, open) = Acceptor::new().handle_received(&opening).expect("ours");
    let mut server = FileServer::answer(&open.expect("whole"), served());
    let ids: Vec<_> = requests().iter().filter_map(|request| client.request(request)).collect();
    let put = *ids.last().expect("a put");
    assert_eq!(client.write(put, &[9; 300]), 300);
    client.finish_put(put);
    client.finish();
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    while !(client.is_over() && server.is_over()) {
        let said = client.poll_write().to_vec();
        client.handle_written(said.len());
        server.handle_received(&said).expect("ours");
        let answer = server.poll_write().to_vec();
        server.handle_written(answer.len());
        client.handle_received(&answer).expect("ours");
        asked.extend(said);
        answered.extend(answer);
    }
    (asked, answered)
}

/// Writes valid and damaged streams into the corpora: `cargo test -p farhaul-fuzz -- --ignored record_session_corpora`.
#[test]
#[ignore = "writes into the source tree"]
fn record_session_corpora() {
    let name = |text: &[u8]| RelPath::parse(text).expect("a path");
    let tree = || [(name(b"d"), MemoryFile::directory()), (name(b"d/f"), MemoryFile::file(vec![7; 300]))].into();
    let mut source = MemorySource::new(tree());
    source.streamed.push(name(b"d/f"));
    let mut receiver = FileReceiver::pull(pull(), limits()).expect("a request that can be made");
    let request = receiver.poll_write().to_vec();
    receiver.handle_written(request.len());
    let (_, open) = Acceptor::new().handle_received(&request).expect("ours");
    let mut sender = FileSender::answer(&open.expect("whole"));
    let mut store = MemoryStore::default();
    let (mut forth, mut back) = (Vec::new(), Vec::new());
    while !(sender.is_over() && receiver.is_over()) {
        let said = sender.poll_write(&mut source).to_vec();
        sender.handle_written(said.len());
        receiver.handle_received(&mut store, &said).expect("ours");
        let answered = receiver.poll_write().to_vec();
        receiver.handle_written(answered.len());
        sender.handle_received(&answered).expect("ours");
        forth.extend(said);
        back.extend(answered);
    }
    let mut pushing = FileSender::push(farhaul_session::Push::default());
    let mut pushed = pushing.first_frame().to_vec();
    pushing.handle_written(pushed.len());
    pushed.extend_from_slice(pushing.poll_write(&mut MemorySource::new(tree())));
    let (mut said, mut input) = (CommandFrame::Accept.to_bytes(), Vec::new());
    for (stream, text) in [(StandardStream::Output, &b"listed"[..]), (StandardStream::Error, b"and warned")] {
        said.extend([&stream.header(text.len())[..], text].concat());
        said.extend(CommandFrame::Ended(stream).to_bytes());
    }
    said.extend(CommandFrame::Exited(CommandExit::Code(23)).to_bytes());
    input.extend([&StandardStream::Input.header(4)[..], b"read"].concat());
    input.extend(CommandFrame::Closed(StandardStream::Output).to_bytes());
    input.extend(CommandFrame::Ended(StandardStream::Input).to_bytes());
    let (asked, answered) = dialogue();
    let corpora = [
        ("opening", "command", [CommandFrame::Open.to_bytes(), input.clone()].concat()),
        ("command", "output", said),
        ("command", "input", input),
        ("client_asks", "requests", asked),
        ("server_answers", "requests", answered),
        ("opening", "pull", request),
        ("opening", "push", pushed),
        ("sender_says", "tree", forth),
        ("receiver_says", "tree", back),
    ];
    for (target, kind, bytes) in corpora {
        let folder = format!("{}/src/__fuzz__/session__{target}/corpus", env!("CARGO_MANIFEST_DIR"));
        std::fs::create_dir_all(&folder).expect("the source tree can be written");
        let mut damaged = bytes.clone();
        // The last frames hold the figures.
        let at = damaged.len().saturating_sub(40);
        damaged[at] ^= 0xff;
        let cut = bytes[..bytes.len() - 1].to_vec();
        for (how, bytes) in [("honest", bytes), ("damaged", damaged), ("cut", cut)] {
            std::fs::write(format!("{folder}/{kind}-{how}"), bytes).expect("the source tree can be written");
        }
    }
}
