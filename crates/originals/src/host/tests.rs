//! Both roles of each dialogue against each other on the loopback interface, and faults by scripted peers.

mod scripted;

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use farhaul::{Endpoint, Listener, OtherClients};
use farhaul_session::Component;

use super::*;
use crate::rbudp::{Fault as RbudpFault, Terms};
use crate::sabul::StreamEnd;
use crate::tsunami::{ClientOptions, Fault as TsunamiFault, ServerOptions};
use farhaul_disk::{Directory, IncomingPlace};

const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
/// Longest time to connect.
const TIME: Duration = Duration::from_secs(5);

/// A directory that is removed with everything in it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("farhaul-original-{}-{number}", std::process::id()));
        fs::create_dir_all(path.join("root")).unwrap();
        fs::create_dir_all(path.join("in")).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, size: usize) -> Vec<u8> {
        let content: Vec<u8> = (0..size).map(|at| (at / 251) as u8 ^ (at % 241) as u8).collect();
        fs::write(self.0.join("root").join(name), &content).unwrap();
        content
    }

    fn root(&self) -> Directory {
        Directory::open(&self.0.join("root")).unwrap()
    }

    fn place(&self) -> Arc<IncomingPlace> {
        Arc::new(IncomingPlace::at(&self.0.join("in"), true).unwrap())
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join("in").join(name)).unwrap()
    }

    /// The names of everything that arrived.
    fn arrived(&self) -> Vec<String> {
        let names = fs::read_dir(self.0.join("in")).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Heard {
    /// Whether a session is running.
    fn has_sessions(&self) -> bool {
        let heard = self.0.lock().unwrap();
        let count = |ends: &[&str]| heard.iter().filter(|words| ends.iter().any(|end| words.contains(end))).count();
        count(&["begun"]) > count(&["over", "failed"])
    }
}

impl Watch for Heard {
    fn hear(&self, session: u64, _peer: SocketAddr, news: News<'_>) {
        let words = match news {
            News::Begun => "begun".to_owned(),
            News::Busy => "busy".to_owned(),
            News::Refused { name, .. } => format!("refused {}", name.escape_ascii()),
            News::Given(given) => format!("given {} {}", given.name.escape_ascii(), given.size),
            News::Over(Ok(())) => "over".to_owned(),
            News::Over(Err(failure)) => format!("failed: {failure}"),
        };
        self.0.lock().unwrap().push(format!("{session} {words}"));
    }
}

fn name(text: &str) -> Component {
    Component::new(text.as_bytes()).unwrap()
}

/// An endpoint with this protocol that listens for its clients, and for those of the original programs.
fn listening(protocol: &str) -> (Listener, OtherClients) {
    let protocol = protocol.parse().unwrap();
    let endpoint = Endpoint::builder().plain().protocol(protocol).bind(LOCAL).unwrap();
    let clients = endpoint.other_clients().unwrap();
    (endpoint.listen().unwrap(), clients)
}

/// A server with its endpoint, which ends with it, even if the test fails.
struct Served {
    server: OriginalServer,
    /// `None` once it has ended.
    listener: Mutex<Option<Listener>>,
    address: SocketAddr,
    stop: Stop,
    heard: Heard,
}

impl Served {
    fn new((listener, server): (Listener, OriginalServer)) -> Self {
        let (address, listener) = (listener.local_addr(), Mutex::new(Some(listener)));
        Self { server, listener, address, stop: Stop::default(), heard: Heard::default() }
    }

    fn tsunami(scratch: &Scratch, options: ServerOptions) -> Self {
        let (listener, clients) = listening("tsunami");
        Self::new((listener, OriginalServer::tsunami(clients, scratch.root(), options)))
    }

    fn run(&self, most: usize) -> Result<(), Failure> {
        self.server.run(most, &self.stop, &self.heard)
    }

    /// Serves at most `most` clients at a time while `client` runs.
    fn with(&self, most: usize, client: impl FnOnce()) {
        thread::scope(|scope| {
            let running = scope.spawn(|| self.run(most));
            let ends = EndAtEnd(self);
            client();
            drop(ends);
            assert!(matches!(running.join().unwrap(), Err(Failure::Stopped)));
        });
    }
}

/// Ends the server even if the test fails.
struct EndAtEnd<'a>(&'a Served);

impl Drop for EndAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop.stop();
        drop(self.0.listener.lock().unwrap().take());
    }
}

/// Runs `client` against a Tsunami server of the scratch root. Returns what the server heard.
fn with_tsunami(
    scratch: &Scratch,
    options: ServerOptions,
    client: impl FnOnce(SocketAddr, &SessionHandle),
) -> Vec<String> {
    let served = Served::tsunami(scratch, options);
    served.with(2, || {
        client(served.address, &SessionHandle::default());
        // Sessions end by themselves once their clients are gone; the stop only ends the accepting.
        while served.heard.has_sessions() {
            thread::yield_now();
        }
    });
    served.heard.0.into_inner().unwrap()
}

fn connect(address: SocketAddr, secret: &[u8], handle: &SessionHandle) -> Result<TsunamiClient, Failure> {
    let options = ClientOptions { secret: secret.to_vec(), ..ClientOptions::default() };
    TsunamiClient::connect(address, options, TIME, handle)
}

#[test]
fn a_tsunami_client_lists_and_copies_the_files_of_a_server() {
    let scratch = Scratch::new();
    let (big, small, empty) = (scratch.file("big", 3_000_001), scratch.file("small", 5), scratch.file("empty", 0));
    let options = ServerOptions { secret: b"kitten".to_vec(), ..ServerOptions::default() };
    let heard = with_tsunami(&scratch, options, |address, handle| {
        let mut client = connect(address, b"kitten", handle).unwrap();
        let sizes: Vec<_> = client.list().unwrap().unwrap().into_iter().map(|file| (file.name, file.size)).collect();
        let expected = [(b"big".to_vec(), 3_000_001), (b"empty".to_vec(), 0), (b"small".to_vec(), 5)];
        assert_eq!(sizes, expected);
        for file in client.names().unwrap() {
            let local = Component::new(&file).unwrap();
            client.get(&file, &local, &scratch.place()).unwrap();
        }
        assert!(matches!(client.get(b"nothing", &name("n"), &scratch.place()), Err(Failure::NoFile(_))));
        client.finish();
    });
    assert!(scratch.read("big") == big && scratch.read("small") == small && scratch.read("empty") == empty);
    assert_eq!(scratch.arrived(), ["big", "empty", "small"]);
    assert_eq!(
        heard,
        ["1 begun", "1 given big 3000001", "1 given empty 0", "1 given small 5", "1 refused nothing", "1 over"]
    );
}

#[test]
fn a_wrong_secret_is_named_on_both_sides() {
    let scratch = Scratch::new();
    let options = ServerOptions { secret: b"kitten".to_vec(), ..ServerOptions::default() };
    let heard = with_tsunami(&scratch, options, |address, handle| {
        assert!(matches!(connect(address, b"cat", handle), Err(Failure::Tsunami(TsunamiFault::WrongSecret))));
    });
    assert!(heard.iter().any(|words| words.contains("1 failed: the secrets differ")), "{heard:?}");
}

/// Attack C1: no name leads out of the served directory, not even through a link.
#[test]
fn no_name_leads_out_of_the_served_directory() {
    let scratch = Scratch::new();
    fs::write(scratch.0.join("secret"), b"x").unwrap();
    std::os::unix::fs::symlink("../secret", scratch.0.join("root/link")).unwrap();
    std::os::unix::fs::symlink("..", scratch.0.join("root/up")).unwrap();
    let heard = with_tsunami(&scratch, ServerOptions::default(), |address, handle| {
        let mut client = connect(address, b"", handle).unwrap();
        for asked in ["../secret", "/etc/passwd", "link", "up/secret"] {
            let got = client.get(asked.as_bytes(), &name("n"), &scratch.place());
            assert!(matches!(got, Err(Failure::NoFile(_))), "{asked}: {got:?}");
        }
        client.finish();
    });
    assert_eq!(heard.iter().filter(|words| words.contains("refused")).count(), 4, "{heard:?}");
    assert!(scratch.arrived().is_empty());
}

#[test]
fn a_stop_ends_a_client_that_waits_for_its_server() {
    let listener = TcpListener::bind(LOCAL).unwrap();
    let handle = SessionHandle::default();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| connect(listener.local_addr().unwrap(), b"", &handle).map(|_| ()));
        let (_silent, _) = listener.accept().unwrap();
        handle.stop.stop();
        assert!(matches!(waiting.join().unwrap(), Err(Failure::Stopped)));
    });
}

#[test]
fn a_port_without_a_listener_refuses() {
    let address = TcpListener::bind(LOCAL).unwrap().local_addr().unwrap();
    assert!(matches!(connect(address, b"", &SessionHandle::default()), Err(Failure::Refused(_))));
}

#[test]
fn a_server_of_one_place_refuses_the_second_client() {
    let scratch = Scratch::new();
    let served = Served::tsunami(&scratch, ServerOptions::default());
    served.with(1, || {
        let _first = connect(served.address, b"", &SessionHandle::default()).unwrap();
        assert!(connect(served.address, b"", &SessionHandle::default()).is_err());
    });
    assert!(served.heard.0.lock().unwrap().contains(&"0 busy".to_owned()));
}

/// A server of RBUDP clients that holds at most this many bytes in memory.
fn rbudp_served(scratch: &Scratch, most: u64) -> Served {
    loop {
        let (listener, clients) = listening("rbudp");
        // The receiver needs the next port.
        let next = SocketAddr::new(LOCAL.ip(), listener.local_addr().port() + 1);
        if std::net::UdpSocket::bind(next).is_ok() {
            let server = OriginalServer::rbudp(clients, scratch.root(), Terms::default()).unwrap();
            return Served::new((listener, server.hold_at_most(most)));
        }
    }
}

#[test]
fn an_rbudp_receiver_copies_a_file_and_a_refusal_is_named() {
    let scratch = Scratch::new();
    let (big, _) = (scratch.file("big", 3_000_001), scratch.file("empty", 0));
    let served = rbudp_served(&scratch, u64::MAX);
    let get = |file: &str| {
        let receiver = RbudpReceiver::connect(served.address, TIME, &SessionHandle::default()).unwrap();
        receiver.get(file.as_bytes(), Terms::default(), &name("got"), &scratch.place())
    };
    served.with(2, || {
        assert_eq!(get("big").unwrap(), 3_000_001);
        assert!(scratch.read("got") == big);
        assert_eq!(get("empty").unwrap(), 0);
        assert!(scratch.read("got").is_empty());
        assert!(matches!(get("../big"), Err(Failure::Rbudp(RbudpFault::NoAnswer))));
    });
    assert_eq!(scratch.arrived(), ["got"]);
}

/// Attack C3: clients cannot make a server hold as much as they like.
#[test]
fn c3_all_files_of_an_rbudp_server_together_have_a_bound_in_memory() {
    let scratch = Scratch::new();
    scratch.file("large", 100_001);
    scratch.file("small", 100_000);
    let served = rbudp_served(&scratch, 100_000);
    let get = |file: &str| {
        let receiver = RbudpReceiver::connect(served.address, TIME, &SessionHandle::default()).unwrap();
        receiver.get(file.as_bytes(), Terms::default(), &name("got"), &scratch.place())
    };
    served.with(2, || {
        assert!(get("large").is_err());
        // A share that stayed behind would refuse the second copy.
        assert_eq!(get("small").unwrap(), 100_000);
        assert_eq!(get("small").unwrap(), 100_000);
    });
    let heard = served.heard.0.lock().unwrap();
    assert!(heard.iter().any(|words| words.ends_with("refused large")), "{heard:?}");
}

/// Attack C3: a peer that connects and leaves, or speaks something else, ends its own session alone.
#[test]
fn a_stranger_ends_its_own_session_alone() {
    use std::io::{Read, Write};
    let scratch = Scratch::new();
    scratch.file("small", 5);
    let heard = with_tsunami(&scratch, ServerOptions::default(), |address, handle| {
        let mut stranger = TcpStream::connect(address).unwrap();
        stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        // It is ended: an end or a reset.
        let _ = stranger.read_to_end(&mut Vec::new());
        let mut client = connect(address, b"", handle).unwrap();
        assert_eq!(client.get(b"small", &name("small"), &scratch.place()).unwrap(), 5);
        client.finish();
    });
    assert!(heard.iter().any(|words| words.contains("1 failed: protocol violation")), "{heard:?}");
    assert!(heard.contains(&"2 over".to_owned()), "{heard:?}");
}

/// A reader whose content goes on for as long as it is asked for.
struct Pieces(Vec<u8>);

impl std::io::Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let length = out.len().min(self.0.len()).min(7_777);
        out[..length].copy_from_slice(&self.0[..length]);
        self.0.drain(..length);
        Ok(length)
    }
}

/// A sink whose content the test reads afterwards.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_sabul_receiver_gets_the_whole_stream_of_a_sender() {
    let content: Vec<u8> = (0..1_000_003_u32).map(|at| (at / 251) as u8 ^ (at % 241) as u8).collect();
    let terms = StreamTerms { connect_timeout: TIME, peer_timeout: TIME, rate: None, buffer: None };
    let (handle, kept) = (SessionHandle::default(), Kept::default());
    let sender = SabulSender::bind(LOCAL).unwrap();
    let address = sender.local_addr();
    thread::scope(|scope| {
        let sending = scope.spawn(|| sender.send(Pieces(content.clone()), terms, &handle, |_| {}));
        let receiver = SabulReceiver::connect(address, TIME, &SessionHandle::default()).unwrap();
        let end = receiver.receive(kept.clone(), terms).unwrap();
        assert_eq!(end, StreamEnd::Closed);
        sending.join().unwrap().unwrap();
    });
    assert!(*kept.0.lock().unwrap() == content);
}
