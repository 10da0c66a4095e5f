//! Callers whom a listener does not know, and callers who do nothing: they hold no place for ever, take none from others, fill no
//! log, and get no private keys.

use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

use farhaul::security::{AcceptAll, KeyPair, Security};
use farhaul::{Endpoint, Stream};
use farhaul_session::{CopyScope, FileReceiver, FileSender, MemorySource, Push, ReceiveLimits, RelPath};
use rustix::process::Signal;

use crate::process::{Run, Scratch, Server, Started, farhaul, farhaul_where};
use crate::secured::User;

/// A caller with a key that nobody knows.
fn unlisted() -> Endpoint {
    Endpoint::secure("127.0.0.1:0", Security::new(KeyPair::generate().unwrap(), AcceptAll)).unwrap()
}

/// Begins to push a file, and does nothing more.
fn idle_push(endpoint: &Endpoint, server: &Server) -> Stream {
    let stream = endpoint.connect(server.address.parse::<SocketAddr>().unwrap()).unwrap();
    stream.send(FileSender::push(Push::default()).poll_write(&mut MemorySource::default())).unwrap();
    stream
}

/// Pulls a file, and answers nothing. Returns once the server has begun to send.
fn idle_pull(endpoint: &Endpoint, server: &Server) -> Stream {
    let mut stream = endpoint.connect(server.address.parse::<SocketAddr>().unwrap()).unwrap();
    let pull = CopyScope { paths: vec![RelPath::parse(b"file").unwrap()], ..CopyScope::default() };
    stream.send(FileReceiver::pull(pull, ReceiveLimits::default()).unwrap().poll_write()).unwrap();
    stream.read_exact(&mut [0]).unwrap();
    stream
}

#[test]
fn b10_a_session_whose_peer_does_nothing_ends_and_frees_its_place() {
    let scratch = Scratch::new();
    let (file, root) = (scratch.file("file", 1_000), scratch.dir("root"));
    let mut server = Server::begin(&["serve", "--max-sessions", "1", "--idle-timeout", "1s", "--root", &root]);
    let endpoint = Endpoint::plain("127.0.0.1:0").unwrap();
    let mut held = idle_push(&endpoint, &server);
    let ended = server.wait_for("end");
    assert_eq!((&ended["session"], &ended["error"]["code"]), (&1.into(), &"PEER_LOST".into()), "{ended}");
    assert!(ended["error"]["message"].as_str().unwrap().contains("was idle"), "{ended}");
    farhaul(&["copy", "--plain", &file, &format!("udt://{}/", server.address)]).succeeds();
    assert_eq!(scratch.names("root"), ["file"]);
    // The peer is told why.
    held.set_read_timeout(Some(Duration::from_secs(10)));
    let mut told = Vec::new();
    let _ = held.read_to_end(&mut told);
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("this session was idle") && told.contains("--idle-timeout"), "{told}");
}

#[test]
fn unlisted_callers_that_hold_all_places_they_can_get_leave_one_to_a_key_that_is_known() {
    let scratch = Scratch::new();
    let (alice, bob) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"));
    let root = scratch.dir("root");
    scratch.file("root/file", 1_000);
    alice.key("show");
    let server = Server::begin_as(&alice.0, &["serve", "--any-client", "--max-sessions", "2", "--root", &root]);
    let endpoint = unlisted();
    let _held = idle_pull(&endpoint, &server);
    let url = format!("udt://{}/file", server.address);
    let copy = |user: &User| user.runs(&["copy", "--host-key-policy", "accept-new", &url, &scratch.dir("got")]);
    copy(&bob).fails(1, &["as many sessions as allowed"]);
    copy(&alice).succeeds();
}

#[test]
fn callers_that_are_not_admitted_write_a_few_lines_into_the_log_however_often_they_call() {
    let scratch = Scratch::new();
    let alice = User::new(&scratch, "alice");
    alice.key("show");
    let server = Server::begin_as(&alice.0, &["serve", "--root", &scratch.dir("root")]);
    let address: SocketAddr = server.address.parse().unwrap();
    for _ in 0..30 {
        // The refusal may come after the connection, as the client sees it.
        if let Ok(mut stream) = unlisted().connect(address) {
            assert!(!stream.read(&mut [0]).is_ok_and(|len| len > 0));
        }
    }
    server.signal(Signal::TERM);
    let (_, records) = server.end_with_records();
    let warnings = records.lines().filter(|line| line.contains("add this line")).count();
    assert!((1..=10).contains(&warnings), "{warnings} of 30: {records}");
}

/// Runs a server that ends at once, or is ended after it has said what it serves. Returns its warnings.
fn start(variables: &[(&str, &str)], options: &[&str]) -> Result<String, Run> {
    let listening = ["serve", "--listen", "127.0.0.1:0"];
    let arguments = [&listening[..], options].concat();
    let begun = Started::begin_where(variables, &arguments);
    begun.after_words("serving")
}

#[test]
fn a_root_with_private_keys_is_served_to_unlisted_callers_only_by_the_name_of_that_danger() {
    let scratch = Scratch::new();
    let alice = User::new(&scratch, "alice");
    alice.key("show");
    let (home, homes) = (scratch.dir("homes/bob"), scratch.at("homes"));
    scratch.dir("homes/bob/.ssh");
    let variables = [("XDG_CONFIG_HOME", &*alice.0)];
    for root in [&home, &homes] {
        for clients in ["--any-client", "--plain"] {
            let options = ["--root", root, clients];
            let refused = start(&variables, &options).unwrap_err();
            refused.fails(2, &[".ssh", "lies below --root", "--expose-private-keys"]);
            let said = start(&variables, &[&options[..], &["--expose-private-keys"]].concat()).ok().unwrap();
            assert!(said.contains("everybody who calls may read it"), "{said}");
        }
        let said = start(&variables, &["--root", root]).ok().unwrap();
        assert!(said.contains(".ssh lies below --root"), "{said}");
    }
    // Nor the key of the server itself, and no file of settings may say otherwise.
    start(&variables, &["--root", &alice.0, "--any-client"]).unwrap_err().fails(2, &["farhaul/key", "--expose"]);
    fs::write(alice.file("config.toml"), "[serve]\nexpose-private-keys = true\n").unwrap();
    let run = farhaul_where(&variables, &["serve", "--root", &home, "--plain", "--listen", "127.0.0.1:0"]);
    run.fails(2, &["expose-private-keys", "cannot be set in a file"]);
}
