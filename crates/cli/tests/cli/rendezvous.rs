//! `pipe --rendezvous`: encrypted, with the right key and with a wrong one, and plain.

use std::fs::{self, File};
use std::net::UdpSocket;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::process::{Run, Scratch, Started, farhaul_where, records};
use crate::streams::port_of_our_own;

/// A user with a key, on a port.
struct Side {
    home: String,
    key: String,
    address: String,
}

impl Side {
    fn new(scratch: &Scratch, name: &str) -> Self {
        let home = scratch.dir(name);
        let runs = |verb| farhaul_where(&[("XDG_CONFIG_HOME", &home)], &["key", verb]);
        runs("new").succeeds();
        let key = String::from_utf8(runs("fingerprint").stdout).unwrap().trim().to_owned();
        Self { home, key, address: format!("127.0.0.1:{}", port_of_our_own()) }
    }

    /// Calls `other`, with a file as its input.
    fn begin(&self, other: &str, input: &str, options: &[&str]) -> Started {
        let home = format!("XDG_CONFIG_HOME={}", self.home);
        let all = ["pipe", "--json", "--rendezvous", "--listen", &self.address, "--connect", other];
        let input = if input.is_empty() { Stdio::null() } else { File::open(input).unwrap().into() };
        Started::begin_under(&["env", &home], &[&all[..], options].concat(), input)
    }
}

fn end_of(run: &Run) -> serde_json::Value {
    records(&run.stderr).pop().unwrap()
}

#[test]
fn two_users_meet_encrypted_and_each_names_the_key_of_the_other() {
    let scratch = Scratch::new();
    let [alice, bob] = ["alice", "bob"].map(|name| Side::new(&scratch, name));
    let sent = scratch.file("sent", 300_000);
    // Whoever is late, and whichever of them becomes the server of TLS.
    for round in 0..4 {
        let knows = |other: &Side| ["--host-key".to_owned(), other.key.clone()];
        let begin = |side: &Side, other: &Side, input: &str| {
            let options = knows(other);
            side.begin(&other.address, input, &options.each_ref().map(String::as_str))
        };
        let (receiver, sender) = if round % 2 == 0 {
            let receiver = begin(&alice, &bob, "");
            thread::park_timeout(Duration::from_millis(150));
            (receiver, begin(&bob, &alice, &sent))
        } else {
            let sender = begin(&bob, &alice, &sent);
            (begin(&alice, &bob, ""), sender)
        };
        let (got, gave) = (receiver.end(), sender.end());
        for (run, other) in [(&got, &bob), (&gave, &alice)] {
            run.succeeds();
            let end = end_of(run);
            assert_eq!(
                (end["security"].as_str(), end["peer_key"].as_str()),
                (Some("tls1.3"), Some(&*other.key)),
                "{end}"
            );
        }
        assert!(got.stdout == fs::read(&sent).unwrap(), "round {round}");
    }
}

// Waits for the 5 s of silence after which the relay ends.
#[test]
fn two_programs_of_one_user_call_each_other_without_any_setup_and_no_run_of_the_data_is_on_the_wire() {
    let scratch = Scratch::new();
    let here = Side::new(&scratch, "user");
    let there = Side { home: here.home.clone(), key: here.key.clone(), address: String::new() };
    // A relay between both, which keeps what it sees.
    let relay = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    let at = relay.local_addr().unwrap().to_string();
    let there = Side { address: format!("127.0.0.1:{}", port_of_our_own()), ..there };
    let [left, right]: [std::net::SocketAddr; 2] = [&here, &there].map(|side| side.address.parse().unwrap());
    relay.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let watch = thread::spawn(move || {
        let (mut seen, mut datagram) = (Vec::new(), [0; 2_000]);
        while let Ok((len, from)) = relay.recv_from(&mut datagram) {
            seen.extend_from_slice(&datagram[..len]);
            let _ = relay.send_to(&datagram[..len], if from == left { right } else { left });
        }
        seen
    });
    let sent = scratch.at("sent");
    fs::write(&sent, "a secret of many words ".repeat(500)).unwrap();
    let receiver = here.begin(&at, "", &[]);
    let sender = there.begin(&at, &sent, &[]);
    sender.end().succeeds();
    let got = receiver.end();
    got.succeeds();
    assert!(got.stdout == fs::read(&sent).unwrap());
    let seen = watch.join().unwrap();
    assert!(seen.len() > 10_000 && !seen.windows(8).any(|bytes| bytes == b"a secret"));
}

#[test]
fn both_directions_of_an_encrypted_rendezvous_arrive_whole() {
    let scratch = Scratch::new();
    let here = Side::new(&scratch, "user");
    let there =
        Side { home: here.home.clone(), key: here.key.clone(), address: format!("127.0.0.1:{}", port_of_our_own()) };
    let (long, short) = (scratch.file("long", 2_000_000), scratch.file("short", 1_000));
    let (asks, answers) = (here.begin(&there.address, &short, &[]), there.begin(&here.address, &long, &[]));
    let (asked, answered) = (asks.end(), answers.end());
    asked.succeeds();
    answered.succeeds();
    assert!(asked.stdout == fs::read(&long).unwrap() && answered.stdout == fs::read(&short).unwrap());
}

#[test]
fn a_wrong_key_ends_both_sides_with_the_reason() {
    let scratch = Scratch::new();
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(|name| Side::new(&scratch, name));
    for _ in 0..3 {
        // Alice expects Carol, and Bob is there.
        let one = alice.begin(&bob.address, "", &["--host-key", &carol.key]);
        let other = bob.begin(&alice.address, "", &["--host-key", &alice.key]);
        let (one, other) = (one.end(), other.end());
        one.fails(5, &["does not have the key", &carol.key]);
        assert_eq!(end_of(&one)["error"]["code"], "HOST_KEY_CHANGED");
        other.fails(5, &["does not know the key", "--host-key"]);
        assert_eq!(end_of(&other)["error"]["code"], "NOT_ADMITTED");
    }
}

#[test]
fn a_key_that_nobody_knows_is_refused_unless_the_policy_accepts_it_and_known_from_then_on() {
    let scratch = Scratch::new();
    let [alice, bob] = ["alice", "bob"].map(|name| Side::new(&scratch, name));
    let meet = |options: &[&str]| {
        let one = alice.begin(&bob.address, "", options);
        let sent = scratch.file("sent", 1_000);
        let other = bob.begin(&alice.address, &sent, &["--host-key", &alice.key]);
        (one.end(), other.end())
    };
    let (one, other) = meet(&[]);
    one.fails(5, &["not known here", &bob.key]);
    assert_eq!(other.code, 5);
    for options in [&["--host-key-policy", "accept-new"][..], &["--host-key-policy", "strict"]] {
        let (one, other) = meet(options);
        one.succeeds();
        other.succeeds();
        assert_eq!(one.stdout.len(), 1_000);
    }
}
