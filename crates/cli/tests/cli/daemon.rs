//! The daemon: its settings file, its keys, and whom it admits.

mod caps_of_keys;
mod confinement;
mod plain_clients;
mod service_manager;

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use farhaul_udp::Clock;
use rustix::process::Signal;

use crate::process::{Reporting, Run, Scratch, Started, farhaul, farhaul_where};

/// A daemon on a port of its own, with this file of settings.
pub(crate) fn begin(file: &str) -> Reporting {
    Started::begin(&["serve", "--json", "--config", file], Stdio::null()).after("start")
}

pub(crate) fn settings(scratch: &Scratch, more: &str) -> String {
    let (root, file) = (scratch.dir("root"), format!("{}/serve.toml", scratch.dir("etc")));
    fs::write(&file, format!("root = \"{root}\"\nlisten = \"127.0.0.1:0\"\n{more}\n")).unwrap();
    file
}

/// The address of a daemon as a URL.
pub(crate) fn url(daemon: &Reporting) -> String {
    format!("udt://{}/", daemon.record["local"].as_str().unwrap())
}

#[test]
fn a_daemon_makes_its_key_on_the_first_start_and_keeps_it() {
    let scratch = Scratch::new();
    let file = settings(&scratch, "");
    let first = begin(&file);
    let key = first.record["key"].clone();
    assert_eq!(fs::metadata(scratch.at("etc/host_key")).unwrap().mode() & 0o777, 0o600);
    let shown = farhaul(&["key", "fingerprint", &scratch.at("etc/host_key")]).stdout;
    assert_eq!(String::from_utf8(shown).unwrap().trim(), key.as_str().unwrap());
    first.signal(Signal::TERM);
    assert_eq!(first.end().code, 143);
    let second = begin(&file);
    assert_eq!(second.record["key"], key);
    second.signal(Signal::TERM);
    second.end();
}

#[test]
fn a_daemon_with_a_setting_that_it_does_not_know_does_not_start() {
    let scratch = Scratch::new();
    for (line, words) in [
        ("rooot = \"/\"", &["serve.toml", "rooot"][..]),
        ("max-sessions = \"many\"", &["max-sessions"]),
        ("plain = true", &["never plain", "[plain]"]),
        ("[plain]", &["serve.toml [plain]", "allow"]),
        ("[plain]\nallow = [\"10.0.0.1/8\"]", &["10.0.0.1/8", "prefix"]),
        ("[plain]\nallow = [\"10.0.0.0/8\"]\nwrites = true", &["[plain]", "writes"]),
        ("[plain]\nallow = [\"10.0.0.0/8\"]\nrate = \"fast\"", &["[plain]", "rate"]),
        ("protocol = \"tsunami\"\n[plain]\nallow = []", &["[plain]", "udt"]),
        ("[host]", &["serve.toml", "host"]),
    ] {
        farhaul(&["serve", "--config", &settings(&scratch, line)]).fails(2, words);
    }
    farhaul(&["serve", "--config", &scratch.at("nothing")]).fails(7, &["there is no file"]);
    let file = settings(&scratch, "");
    fs::write(scratch.at("etc/authorized_keys"), "ssh-ed25519 AAAA alice\n").unwrap();
    farhaul(&["serve", "--config", &file]).fails(2, &["authorized_keys", "line 1"]);
}

#[test]
fn clients_are_admitted_by_a_file_that_is_read_again_and_keep_to_their_limits() {
    let scratch = Scratch::new();
    let file = settings(&scratch, "");
    let (home, sent) = (scratch.dir("home"), scratch.file("sent", 500_000));
    let client = |arguments: &[&str]| farhaul_where(&[("XDG_CONFIG_HOME", &home)], arguments);
    let mut daemon = begin(&file);
    let url = url(&daemon);
    let copy = || client(&["copy", "--json", "--skip", "never", "--host-key-policy", "accept-new", &sent, &url]);
    copy().fails(5, &["does not admit"]);
    let key = String::from_utf8(client(&["key", "show"]).stdout).unwrap();
    let grant = |options: &str| {
        let line = format!("{} me path={},write {options}\n", key.trim(), scratch.at("root"));
        fs::write(scratch.at("etc/authorized_keys"), line).unwrap();
    };
    grant("rate=8mbit");
    daemon.signal(Signal::HUP);
    // The signal needs a moment.
    let admitted = (0..50).map(|_| copy()).find(|run| run.code != 5).unwrap();
    admitted.succeeds();
    let seconds = admitted.end()["seconds"].as_f64().unwrap();
    assert!(seconds > 0.45, "500 kB at 8 Mbit/s take half a second: {seconds}");
    grant("bytes=100kB");
    daemon.signal(Signal::HUP);
    let refused = (0..50).map(|_| copy()).find(|run| run.code != 0).unwrap();
    refused.fails(3, &["bytes=SIZE"]);
    // A mistake keeps the keys of before.
    fs::write(scratch.at("etc/authorized_keys"), "nonsense\n").unwrap();
    daemon.signal(Signal::HUP);
    while !daemon.next("warning")["message"].as_str().unwrap().contains("keys of before") {}
    copy().fails(3, &["bytes=SIZE"]);
    daemon.signal(Signal::TERM);
    daemon.end();
}

/// Lets the user of this home write to the root of the daemon of [`settings`].
pub(crate) fn admit_writer(scratch: &Scratch, home: &str) {
    admit(scratch, home, "");
}

/// The same with further options.
fn admit(scratch: &Scratch, home: &str, options: &str) {
    let client = |verb| farhaul_where(&[("XDG_CONFIG_HOME", home)], &["key", verb]);
    client("new").succeeds();
    let key = String::from_utf8(client("show").stdout).unwrap();
    let line = format!("{} me path={},write {options}\n", key.trim(), scratch.at("root"));
    fs::write(scratch.at("etc/authorized_keys"), line).unwrap();
}

#[test]
fn an_unknown_key_reads_and_does_not_write_where_any_client_is_admitted() {
    let scratch = Scratch::new();
    let (home, sent, root) = (scratch.dir("home"), scratch.file("sent", 1_000_000), scratch.dir("root"));
    fs::copy(&sent, scratch.at("root/kept")).unwrap();
    let key = scratch.at("key");
    let by_hand = ["--root", &root, "--listen", "127.0.0.1:0", "--any-client", "--rate", "8mbit", "--key", &key];
    let file = settings(&scratch, "any-client = true");
    for (options, share) in [(&by_hand[..], "8.00 Mbit/s"), (&["--config", &file], "1.00 Gbit/s")] {
        let mut server = Started::begin(&[&["serve"], options].concat(), Stdio::null());
        let words = server.says("serving");
        assert!(words.contains(&format!("unknown keys only read, with {share}")), "{words}");
        let (_, at) = words.split_once(" on ").unwrap();
        let url = format!("udt://{}/", at.split(' ').next().unwrap());
        let read = copy(&home, false, &[&format!("{url}kept"), &scratch.at("got")]);
        read.succeeds();
        let seconds = read.end()["seconds"].as_f64().unwrap();
        assert!(share == "1.00 Gbit/s" || seconds > 0.9, "1 MB at 8 Mbit/s takes a second: {seconds}");
        copy(&home, false, &[&sent, &url]).fails(5, &["may not write there", "path=DIR,write"]);
        server.signal(Signal::TERM);
        server.end();
    }
    assert_eq!(
        (scratch.names("root"), fs::read(scratch.at("got")).unwrap().len()),
        (vec!["kept".to_owned()], 1_000_000)
    );
}

/// Lets a client that trusts any server copy to and from a daemon.
pub(crate) fn copy(home: &str, plain: bool, arguments: &[&str]) -> Run {
    let security: &[&str] = if plain { &["--plain"] } else { &["--host-key-policy", "accept-new"] };
    let all = [&["copy", "--json", "--connect-timeout", "1s"], security, arguments].concat();
    farhaul_where(&[("XDG_CONFIG_HOME", home)], &all)
}

#[test]
fn a_flood_of_forged_datagrams_is_one_warning() {
    let scratch = Scratch::new();
    let mut daemon = begin(&settings(&scratch, ""));
    let to = daemon.record["local"].as_str().unwrap().to_owned();
    let (socket, is_heard) = (UdpSocket::bind("127.0.0.1:0").unwrap(), AtomicBool::new(false));
    let (forged, clock) = ([0x90; 100], Clock::start());
    let until = clock.now() + Duration::from_secs(30);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_heard.load(Ordering::Acquire) && clock.now() < until {
                // A full queue drops them, which is all the same.
                let _ = socket.send_to(&forged, &to);
            }
        });
        let warning = daemon.next("warning")["message"].as_str().unwrap().to_owned();
        // Another second of it is no second warning.
        thread::park_timeout(Duration::from_millis(2_500));
        is_heard.store(true, Ordering::Release);
        assert!(warning.contains("datagrams a second are forged"), "{warning}");
    });
    daemon.signal(Signal::TERM);
    let rest = daemon.end();
    assert!(rest.records().iter().all(|record| record["event"] != "warning"), "{}", rest.stderr);
}
