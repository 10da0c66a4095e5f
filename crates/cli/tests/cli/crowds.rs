//! More callers than a server can serve: their number is bounded in threads and places, and nobody else suffers.

use std::fs::{self, Permissions};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use farhaul::{Endpoint, Stream};
use farhaul_session::{FileSender, MemorySource, Push};

use crate::process::{Scratch, Server, Started, farhaul};
use crate::requirement::runs;

/// A relay to a server that only handshakes pass: callers connect and are never heard again.
struct HandshakeRelay {
    near: Arc<UdpSocket>,
    far: Arc<UdpSocket>,
    callers: Endpoint,
}

/// Begins with the two bytes of a handshake packet.
const HANDSHAKE: [u8; 2] = [0x80, 0x00];

impl HandshakeRelay {
    /// To `server` from this network of the machine's own.
    fn begin(server: &Server, network: u8) -> Self {
        let server: SocketAddr = server.address.parse().unwrap();
        let near = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
        let far = Arc::new(UdpSocket::bind(SocketAddr::from(([127, 0, network, 1], 0))).unwrap());
        let callers = Endpoint::plain("127.0.0.1:0").unwrap();
        pass_on(&near, &far, server, |datagram| datagram.starts_with(&HANDSHAKE));
        pass_on(&far, &near, callers.local_addr(), |_| true);
        Self { near, far, callers }
    }

    fn connect(&self) -> Stream {
        self.callers.connect(self.near.local_addr().unwrap()).unwrap()
    }
}

/// Passes datagrams from one socket to `to` through the other, until an empty one comes.
fn pass_on(
    from: &Arc<UdpSocket>,
    by: &Arc<UdpSocket>,
    to: SocketAddr,
    passes: impl Fn(&[u8]) -> bool + Send + 'static,
) {
    let (from, by) = (Arc::clone(from), Arc::clone(by));
    thread::spawn(move || {
        let mut datagram = [0; 2048];
        while let Ok(len @ 1..) = from.recv(&mut datagram) {
            if passes(&datagram[..len]) {
                by.send_to(&datagram[..len], to).unwrap();
            }
        }
    });
}

impl Drop for HandshakeRelay {
    fn drop(&mut self) {
        for socket in [&self.near, &self.far] {
            let _ = socket.send_to(&[], socket.local_addr().unwrap());
        }
    }
}

/// Threads of the server's process.
fn threads(server: &Server) -> usize {
    fs::read_dir(format!("/proc/{}/task", server.process())).unwrap().count()
}

#[test]
fn callers_that_are_never_heard_again_take_a_bounded_number_of_threads() {
    let scratch = Scratch::new();
    for arguments in [&["serve", "--max-sessions", "1", "--root", &scratch.dir("root")][..], &["bench"]] {
        let server = Server::begin(arguments);
        // One network may have 256 callers that were not heard.
        let relays = [1, 2, 3].map(|network| HandshakeRelay::begin(&server, network));
        let callers: Vec<Stream> = relays.iter().flat_map(|relay| (0..200).map(|_| relay.connect())).collect();
        // The last in the queue: everybody before it has been dealt with. They have left it a place, since it is of another network.
        let last = Stream::connect_plain(&server.address).unwrap();
        last.send(FileSender::push(Push::default()).poll_write(&mut MemorySource::default())).unwrap();
        assert!(last.recv(&mut [0; 100]).unwrap() > 0, "it is answered");
        let threads = threads(&server);
        assert!(threads < callers.len() - 30, "{threads} threads for {} callers", callers.len());
    }
}

/// Runs a server as a user of its own, if tests run as root: root has as many threads as it likes.
fn as_a_user(root: &str) -> Option<Vec<&'static str>> {
    if !rustix::process::geteuid().is_root() {
        return Some(Vec::new());
    }
    let user = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"];
    runs(&[&user[..], &["test", "-w", root]].concat(), "limits of threads do not hold for root")?;
    runs(&[&user[..], &["test", "-x", env!("CARGO_BIN_EXE_farhaul")]].concat(), "limits do not hold for root")?;
    Some(user.into())
}

/// Lets the user of a server have this many threads and processes.
fn limit_threads(user: &[&str], server: &Server, limit: &str) {
    let (process, limit) = (server.process().to_string(), format!("--nproc={limit}:"));
    let line = [user, &["prlimit", "--pid", &process, &limit]].concat();
    assert!(Command::new(line[0]).args(&line[1..]).status().unwrap().success());
}

/// Waits until the server has started its own threads: their number has not changed for half a second.
fn wait_for_threads(server: &Server) {
    let count = || fs::read_dir(format!("/proc/{}/task", server.process())).unwrap().count();
    let (mut last, mut looks) = (0, 0);
    for _ in 0..200 {
        let now = count();
        looks = if now == last { looks + 1 } else { 0 };
        if looks == 10 {
            return;
        }
        last = now;
        thread::park_timeout(Duration::from_millis(50));
    }
    panic!("the server still starts threads after 10 s");
}

#[test]
fn a_server_without_a_thread_for_a_caller_refuses_that_caller_and_lives() {
    let scratch = Scratch::new();
    let (file, root) = (scratch.file("file", 100), scratch.dir("root"));
    fs::set_permissions(&root, Permissions::from_mode(0o777)).unwrap();
    let Some(user) = as_a_user(&root) else { return };
    let Some(()) = runs(&["prlimit", "--nproc"], "it limits threads") else { return };
    let server = Server::begin_under(&user, &["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.process())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max processes")).unwrap();
    wait_for_threads(&server);
    limit_threads(&user, &server, "1");
    for _ in 0..3 {
        let run = farhaul(&["copy", "--plain", "--json", &file, &url]);
        run.fails(1, &[&server.address, "try again later"]);
        assert_eq!(run.end()["error"]["code"], "BUSY");
    }
    limit_threads(&user, &server, line.split_whitespace().nth(2).unwrap());
    farhaul(&["copy", "--plain", &file, &url]).succeeds();
}

#[test]
fn a_refused_caller_takes_no_place() {
    let scratch = Scratch::new();
    let (file, root) = (scratch.file("file", 100), scratch.dir("root"));
    let mut server = Server::begin(&["serve", "--max-sessions", "1", "--interval", "20ms", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let mut first = Started::begin(&["copy", "--plain", "-", &format!("{url}first")], Stdio::piped());
    let input = first.input();
    server.wait_for("interval");
    let relay = HandshakeRelay::begin(&server, 1);
    let refused = relay.connect();
    assert!(refused.recv(&mut [0; 100]).unwrap() > 0, "it is told so, and never confirms that it heard it");
    drop(input);
    first.end().succeeds();
    server.wait_for("end");
    farhaul(&["copy", "--plain", &file, &url]).succeeds();
}
