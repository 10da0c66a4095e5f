//! Measured streams with encryption: `stream`, `profile` and `--control-stream`, their keys, and what the wire shows.

use std::fs;
use std::thread;

use serde_json::Value;

use crate::captures::Wire;
use crate::process::{Run, Scratch, Server, farhaul_where};
use crate::secured::User;

/// UDP payload of a packet of 1500 bytes.
const PACKET: u64 = 1_472;
const STREAM: [&str; 8] = ["stream", "--json", "--rate", "2mbit", "--seconds", "1", "--interval", "0.4"];
const POINT: [&str; 8] = ["profile", "--json", "--window", "8", "--sleep", "2ms", "--seconds", "0.3"];

/// Fails in one line, without a record in it.
#[track_caller]
fn fails_in_one_line(run: &Run, code: i32, words: &[&str]) {
    run.fails(code, words);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
}

/// Whether a record names the protection, by the key of this user.
#[track_caller]
fn is_protected(end: &Value, user: &User) {
    assert_eq!((end["security"].as_str(), end["exit_code"].as_u64()), (Some("tls1.3"), Some(0)), "{end}");
    assert!(end["suite"].as_str().unwrap().starts_with("TLS1.3 X25519MLKEM768"), "{end}");
    assert_eq!(end["peer_key"].as_str().unwrap(), user.key("fingerprint"), "{end}");
}

// Slow: two protocols, each with a listener, a stream of 1 s and a point of 0.3 s.
#[test]
fn a_stream_and_a_profile_are_encrypted_without_any_setup_whatever_the_protocol_of_the_listener() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let cache = scratch.dir("cache");
    let home = [("XDG_CONFIG_HOME", user.0.as_str()), ("XDG_CACHE_HOME", &cache)];
    for protocol in ["udt", "tsunami"] {
        let listener = Server::begin_as(&user.0, &["bench", "--protocol", protocol]);
        let to = ["--connect", &listener.address];
        let stream = farhaul_where(&home, &[&STREAM[..], &to].concat());
        stream.succeeds();
        let end = stream.end();
        is_protected(&end, &user);
        assert_eq!(stream.records()[0]["security"], "tls1.3");
        let datagram = end["datagram_bytes"].as_u64().unwrap();
        assert!(datagram < PACKET && datagram > PACKET - 40, "packet protection is not payload: {end}");
        assert_eq!(end["bytes"].as_u64().unwrap(), end["datagrams_acknowledged"].as_u64().unwrap() * datagram);
        assert!(end["datagrams_acknowledged"].as_u64().unwrap() > 20, "{end}");

        let profile = farhaul_where(&home, &[&POINT[..], &to].concat());
        profile.succeeds();
        let end = profile.end();
        is_protected(&end, &user);
        let stored: toml::Table = fs::read_to_string(scratch.at("cache/farhaul/paths.toml")).unwrap().parse().unwrap();
        let stored = &stored[&listener.address];
        assert_eq!(
            stored["datagram_bytes"].as_integer(),
            Some(PACKET as i64),
            "UDP payload, packet protection included"
        );
        let surplus = stored["rate_bps"].as_integer().unwrap() as f64 / end["advice"]["rate_bps"].as_f64().unwrap();
        assert!((surplus - PACKET as f64 / datagram as f64).abs() < 1e-4, "{surplus}");
    }
}

#[test]
fn summaries_of_streams_name_the_protection() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let listener = Server::begin_as(&user.0, &["bench"]);
    let to = ["--connect", &listener.address, "--seconds", "0.3"];
    for verb in [&["stream", "--rate", "1mbit"][..], &["profile", "--jitter", "--sleep", "10ms"]] {
        let run = user.runs(&[verb, &to].concat());
        run.succeeds();
        let last = run.stderr.lines().last().unwrap();
        assert!(last.contains("TLS1.3") && last.contains(&user.key("fingerprint")), "{}", run.stderr);
    }
    let listener = Server::begin(&["bench"]);
    let to = ["--plain", "--connect", &listener.address, "--seconds", "0.3"];
    for verb in [&["stream", "--rate", "1mbit"][..], &["profile", "--jitter", "--sleep", "10ms"]] {
        let run = user.runs(&[verb, &to].concat());
        run.succeeds();
        assert_eq!(run.stderr.lines().last().unwrap().trim(), "not encrypted");
    }
}

// Slow: two protocols, each with a measurement of 1 s and a copy of 20 MB at 200 Mbit/s, which takes 0.8 s.
#[test]
fn a_control_stream_goes_inside_the_connection_of_a_measurement_and_of_a_copy() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let acknowledged = |run: &Run| {
        run.succeeds();
        let end = run.end();
        assert_eq!(end["security"], "tls1.3");
        end["control_stream"]["datagrams_acknowledged"].as_u64().unwrap()
    };
    for protocol in ["udt", "rbudp"] {
        let with = ["--json", "--protocol", protocol, "--control-stream", "1mbit"];
        let listener = Server::begin_as(&user.0, &["bench", "--protocol", protocol]);
        let bench = ["bench", "--seconds", "1", "--connect", &listener.address];
        assert!(acknowledged(&user.runs(&[&bench[..], &with].concat())) > 10, "{protocol}");

        let (file, root) = (scratch.file("file", 4_000_000), scratch.dir(protocol));
        let server = Server::begin_as(&user.0, &["serve", "--protocol", protocol, "--root", &root]);
        let copy = ["copy", "--rate", "40mbit", &file, &format!("udt://{}/copy", server.address)];
        assert!(acknowledged(&user.runs(&[&copy[..], &with].concat())) > 5, "{protocol}");
        assert!(fs::read(format!("{root}/copy")).unwrap() == fs::read(&file).unwrap(), "{protocol}");
    }
}

#[test]
fn a_wrong_key_at_either_side_ends_a_stream_before_it_begins() {
    let scratch = Scratch::new();
    let (alice, bob) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"));
    alice.key("show");
    fs::write(alice.file("authorized_keys"), "# nobody\n").unwrap();
    bob.key("show");
    let mut listener = Server::begin_as(&alice.0, &["bench"]);
    let (right, wrong) = (alice.key("fingerprint"), bob.key("fingerprint"));
    let with =
        |key: &str, verb: &[&str]| bob.runs(&[verb, &["--connect", &listener.address, "--host-key", key]].concat());
    for verb in [&["stream", "--rate", "1mbit"][..], &["profile"]] {
        fails_in_one_line(&with(&right, verb), 5, &["does not admit the key", "key show"]);
        fails_in_one_line(&with(&wrong, verb), 5, &["somebody may be in between"]);
        fails_in_one_line(
            &bob.runs(&[verb, &["--connect", &listener.address]].concat()),
            5,
            &[&right, "not known here"],
        );
    }
    let run = with(&right, &["stream", "--rate", "1mbit", "--json"]);
    run.fails(5, &[]);
    assert_eq!(run.end()["error"]["code"], "NOT_ADMITTED");
    assert!(listener.wait_for("warning")["message"].as_str().unwrap().contains(&bob.key("show")));
    alice.admits(&bob, "bob");
    let listener = Server::begin_as(&alice.0, &["bench"]);
    let admitted = ["--connect", &listener.address, "--host-key", &right];
    bob.runs(&[&STREAM[..], &admitted].concat()).succeeds();
    fs::remove_file(alice.file("authorized_keys")).unwrap();
    let anybody = Server::begin_as(&alice.0, &["bench", "--any-client"]);
    bob.runs(&[&STREAM[..], &["--connect", &anybody.address, "--host-key-policy", "accept-new"]].concat()).succeeds();
}

// Waits for the 5 s of an attempt to connect, and beside it for the 3 s of a stream without an answer.
#[test]
fn plain_and_encrypted_streams_never_meet() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let [secure, plain] = [Server::begin_as(&user.0, &["bench"]), Server::begin(&["bench"])];
    let stream = |words: &[&str]| user.runs(&[&["stream", "--rate", "1mbit"], words].concat());
    thread::scope(|scope| {
        scope.spawn(|| {
            let run = stream(&["--plain", "--connect", &secure.address]);
            fails_in_one_line(&run, 4, &["nothing there answers measured streams"]);
        });
        let run = stream(&["--connect", &plain.address]);
        fails_in_one_line(&run, 4, &["only one side has --plain"]);
    });
}

#[test]
fn a_listener_that_answers_no_streams_says_so_and_waits_on() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let mut pipe = Server::begin_as(&user.0, &["pipe"]);
    let stream = ["stream", "--rate", "1mbit", "--connect", &pipe.address];
    fails_in_one_line(&user.runs(&stream), 9, &["answers no measured streams", "farhaul bench --listen"]);
    pipe.feed(b"still here");
    let run = user.runs(&["pipe", "--connect", &pipe.address]);
    run.succeeds();
    assert_eq!(run.stdout, b"still here");
    assert_eq!(pipe.end().0, 0);
}

#[test]
fn a_packet_too_small_for_a_handshake_is_refused_by_its_option() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let stream = ["stream", "--rate", "1mbit", "--mtu", "1000", "--connect", "127.0.0.1:9"];
    fails_in_one_line(&user.runs(&stream), 2, &["--mtu", "1280"]);
}

// Slow: two rounds, each with a stream of 1 s, a point of 0.3 s, a measurement and the search of all that the wire saw.
#[test]
fn nothing_of_a_stream_can_be_seen_on_the_wire() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    user.key("show");
    let cache = scratch.dir("cache");
    for reveals in [true, false] {
        let listener = match reveals {
            true => Server::begin(&["bench"]),
            false => Server::begin_as(&user.0, &["bench"]),
        };
        let wire = Wire::before(&listener.address);
        let home = [("XDG_CONFIG_HOME", user.0.as_str()), ("XDG_CACHE_HOME", &cache)];
        let options: &[&str] = if reveals { &["--plain"] } else { &[] };
        let bench = ["bench", "--bytes", "100kB", "--control-stream", "1mbit"];
        for verb in [&STREAM[..], &POINT, &bench] {
            farhaul_where(&home, &[verb, options, &["--connect", &wire.address]].concat()).succeeds();
        }
        let seen = wire.seen.lock().unwrap();
        assert!(seen.len() > 500_000, "the wire saw all of them: {}", seen.len());
        // The head of a data datagram, and its padding.
        let (word, zeros) = ([0xFA, 0x51, 0x46, 0x52, 1], [0; 64]);
        for run in [&word[..], &zeros] {
            assert_eq!(seen.windows(run.len()).any(|window| window == run), reveals, "{run:?}");
        }
    }
}
