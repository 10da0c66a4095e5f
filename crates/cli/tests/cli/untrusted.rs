//! Sides that must not be trusted, and paths that interfere: each ends with an error that has a name, and nothing leaks.

use std::collections::VecDeque;
use std::fs;
use std::io::Read;
use std::net::{SocketAddr, UdpSocket};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use farhaul::Endpoint;
use farhaul::security::{AcceptAll, KeyPair, Security};
use farhaul_session::{FileSender, MemorySource, Push, SessionError, refusal_of};

use crate::captures::{Wire, shows_content, shows_name};
use crate::process::{Scratch, Server, Started};
use crate::secured::User;

const SIZE: usize = 100_000;
const NAME: &str = "a-telling-name";

/// Alice's server is called by bob, who takes it for something else, or whom it does not admit.
struct Case {
    /// Options of the server, and of the client.
    server: &'static [&'static str],
    client: Vec<String>,
    /// Bob's line in alice's `authorized_keys`; he has none without it.
    grant: Option<&'static str>,
    /// Whether the server is known to bob under a key of somebody else.
    is_changed: bool,
    exit: i32,
    symbol: &'static str,
}

impl Case {
    fn new(exit: i32, symbol: &'static str) -> Self {
        let client = vec!["--host-key-policy".into(), "accept-new".into()];
        Self { server: &[], client, grant: Some("bob"), is_changed: false, exit, symbol }
    }
}

#[test]
fn each_side_that_is_not_trusted_gets_a_named_error_and_nothing_leaks() {
    let other = KeyPair::generate().unwrap().public();
    for case in [
        Case { grant: None, ..Case::new(5, "NOT_ADMITTED") },
        Case { grant: Some("bob expires=2020-01-31"), ..Case::new(5, "NOT_ADMITTED") },
        Case { grant: Some("bob from=192.0.2.0/24"), ..Case::new(5, "NOT_ADMITTED") },
        Case { client: vec!["--host-key-policy".into(), "strict".into()], ..Case::new(5, "HOST_KEY_UNKNOWN") },
        Case { client: vec!["--host-key".into(), other.fingerprint()], ..Case::new(5, "HOST_KEY_CHANGED") },
        Case { is_changed: true, ..Case::new(5, "HOST_KEY_CHANGED") },
        Case {
            server: &["--cipher", "aes256"],
            client: ["--host-key-policy", "accept-new", "--cipher", "chacha20"].map(Into::into).into(),
            ..Case::new(9, "HANDSHAKE_FAILED")
        },
    ] {
        let scratch = Scratch::new();
        let (alice, bob) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"));
        let (file, root) = (scratch.file(NAME, SIZE), scratch.dir("root"));
        alice.key("show");
        match case.grant {
            Some(grant) => alice.admits(&bob, grant),
            None => fs::write(alice.file("authorized_keys"), "# nobody\n").unwrap(),
        }
        let server = Server::begin_as(&alice.0, &[&["serve", "--root", &root], case.server].concat());
        let wire = Wire::before(&server.address);
        bob.key("show");
        if case.is_changed {
            fs::write(bob.file("known_hosts"), format!("{} {other}\n", wire.address)).unwrap();
        }
        let client: Vec<&str> = case.client.iter().map(String::as_str).collect();
        let url = format!("udt://{}/{NAME}", wire.address);
        for places in [[&file, &url], [&url, &scratch.at("back")]] {
            let run = bob.runs(&[&["copy", "--json"][..], &client, &places.map(String::as_str)].concat());
            assert_eq!(
                (run.code, run.end()["error"]["code"].as_str()),
                (case.exit, Some(case.symbol)),
                "{}",
                run.stderr
            );
            assert!(run.stderr.contains(&wire.address), "{}", run.stderr);
        }
        assert!(scratch.names("root").is_empty() && fs::metadata(scratch.at("back")).is_err(), "{}", case.symbol);
        let (seen, content) = (wire.seen.lock().unwrap(), fs::read(&file).unwrap());
        assert!(!seen.is_empty() && !shows_content(&seen, &content) && !shows_name(&seen, NAME), "{}", case.symbol);
        // A server that is not known gets no data at all, not even encrypted.
        assert!(case.symbol == "NOT_ADMITTED" || seen.len() < SIZE / 2, "{}: {} bytes", case.symbol, seen.len());
    }
}

// Waits for 50 connections, 16 at a time, each of which takes a second or more over this path.
#[test]
fn of_fifty_connections_over_loss_and_damage_of_thirty_percent_49_are_made() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    user.key("show");
    let server = Server::begin_as(&user.0, &["bench", "--interval", "0"]);
    let path = ["--loss", "15%", "--corrupt", "18%", "--delay", "1ms"];
    let relay = [&["relay", "--json", "--listen", "127.0.0.1:0", "--to", &server.address][..], &path].concat();
    let relay = Started::begin(&relay, Stdio::null()).after("start");
    let address = relay.record["local"].as_str().unwrap();
    let bench = ["bench", "--json", "--connect-timeout", "10s", "--bytes", "1kB", "--connect", address];
    // No fixed number for each thread, since a connection takes between a second and ten of them.
    let (begun, made) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while begun.fetch_add(1, Ordering::Relaxed) < 50 {
                    let run = user.runs(&bench);
                    assert!([0, 4].contains(&run.code), "{}", run.stderr);
                    made.fetch_add(u32::from(run.code == 0), Ordering::Relaxed);
                }
            });
        }
    });
    relay.signal(rustix::process::Signal::TERM);
    let made = made.into_inner();
    assert!(made >= 49, "{made} of 50");
}

/// A relay that delivers each datagram of both sides three times, and each of the caller's once more later.
struct Repeater {
    address: SocketAddr,
    server: String,
    called: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Repeater {
    fn before(server: &str) -> Self {
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        far.connect(server).unwrap();
        let address = near.local_addr().unwrap();
        let (called, caller) = (Arc::<Mutex<Vec<Vec<u8>>>>::default(), Arc::new(Mutex::new(None)));
        let (kept, its) = (Arc::clone(&called), Arc::clone(&caller));
        let (there, out) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        thread::spawn(move || {
            let mut block = [0; 65_536];
            let mut late = VecDeque::new();
            while let Ok((len, from)) = there.recv_from(&mut block) {
                *its.lock().unwrap() = Some(from);
                let datagram = block[..len].to_vec();
                (0..3).for_each(|_| drop(out.send(&datagram)));
                late.push_back(datagram.clone());
                kept.lock().unwrap().push(datagram);
                if late.len() > 20 {
                    let _ = late.pop_front().map(|old| out.send(&old));
                }
            }
        });
        thread::spawn(move || {
            let mut block = [0; 65_536];
            while let Ok(len) = far.recv(&mut block) {
                let to = *caller.lock().unwrap();
                (0..3).for_each(|_| drop(to.map(|to| near.send_to(&block[..len], to))));
            }
        });
        Self { address, server: server.to_owned(), called }
    }

    /// Sends everything that the caller has sent to the server again, from elsewhere.
    fn repeat_from_elsewhere(&self) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for datagram in &*self.called.lock().unwrap() {
            socket.send_to(datagram, &self.server).unwrap();
        }
    }
}

#[test]
fn repeated_packets_make_no_session_and_change_no_file() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let (file, root) = (scratch.file("file", SIZE), scratch.dir("root"));
    let mut server = Server::begin_as(&user.0, &["serve", "--root", &root]);
    let repeater = Repeater::before(&server.address);
    user.runs(&["copy", &file, &format!("udt://{}/first", repeater.address)]).succeeds();
    let first = server.wait_for("end");
    assert_eq!((first["session"].as_u64(), first["verified"].as_bool()), (Some(1), Some(true)), "{first}");
    fs::remove_file(scratch.at("root/first")).unwrap();
    for _ in 0..2 {
        repeater.repeat_from_elsewhere();
        user.runs(&["copy", &file, &format!("udt://{}/next", server.address)]).succeeds();
    }
    assert_eq!([2, 3].map(|_| server.wait_for("end")["session"].as_u64().unwrap()), [2, 3], "nothing was in between");
    assert_eq!(scratch.names("root"), ["next"]);
}

#[test]
fn sides_of_different_versions_name_them_and_a_daemon_lives_on() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let (file, root) = (scratch.file("file", SIZE), scratch.dir("root"));
    // A server of a later version.
    let identity = KeyPair::generate().unwrap();
    let fingerprint = identity.public().fingerprint();
    let listener = Endpoint::secure("127.0.0.1:0", Security::new(identity, AcceptAll)).unwrap().listen().unwrap();
    let address = listener.local_addr();
    let later = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 5]).unwrap();
        let words = refusal_of(&SessionError::Version { wanted: 1, oldest: 9, newest: 9 });
        stream.send(&words).unwrap();
        let _ = stream.finish();
    });
    let run = user.runs(&["copy", "--json", "--host-key", &fingerprint, &file, &format!("udt://{address}/")]);
    run.fails(9, &[&address.to_string(), "session protocol 1", "update the older side"]);
    assert_eq!(run.end()["error"]["code"], "PROTOCOL");
    later.join().unwrap();

    // A client of a later version.
    let mut server = Server::begin_as(&user.0, &["serve", "--any-client", "--root", &root]);
    let endpoint = Endpoint::secure("127.0.0.1:0", Security::new(KeyPair::generate().unwrap(), AcceptAll)).unwrap();
    let mut stream = endpoint.connect(server.address.parse::<SocketAddr>().unwrap()).unwrap();
    let mut opening = FileSender::push(Push::default()).poll_write(&mut MemorySource::default()).to_vec();
    // Behind the header of the frame and the mark: the version, and the oldest one.
    opening[13..17].copy_from_slice(&[0, 9, 0, 9]);
    stream.send(&opening).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10)));
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(String::from_utf8_lossy(&answer).contains("supports 2 to 2"), "{answer:?}");
    assert!(server.wait_for("warning")["message"].as_str().unwrap().contains('9'));
    user.runs(&["copy", &file, &format!("udt://{}/", server.address)]).succeeds();
    assert_eq!(scratch.names("root"), ["file"]);
}
