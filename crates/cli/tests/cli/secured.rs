//! Encryption, the default of every verb: keys, known hosts and authorized keys.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::process::{Run, Scratch, Server, Started, farhaul, farhaul_on_terminal_with, farhaul_where};
use crate::requirement::runs;

const SIZE: usize = 300_000;

/// A user, whose settings and keys are in a folder of their own.
pub(crate) struct User(pub(crate) String);

impl User {
    pub(crate) fn new(scratch: &Scratch, name: &str) -> Self {
        Self(scratch.dir(name))
    }

    pub(crate) fn runs(&self, arguments: &[&str]) -> Run {
        farhaul_where(&[("XDG_CONFIG_HOME", &self.0)], arguments)
    }

    /// The fingerprint of the user's key, which is made if need be.
    pub(crate) fn key(&self, verb: &str) -> String {
        let file = self.file("key");
        if fs::metadata(&file).is_err() {
            self.runs(&["key", "new"]).succeeds();
        }
        String::from_utf8(self.runs(&["key", verb]).stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn file(&self, name: &str) -> String {
        format!("{}/farhaul/{name}", self.0)
    }

    /// Lets another key in, with these options.
    pub(crate) fn admits(&self, other: &Self, options: &str) {
        self.key("show");
        fs::write(self.file("authorized_keys"), format!("{} {options}\n", other.key("show"))).unwrap();
    }
}

#[test]
fn a_copy_between_two_programs_of_one_user_is_encrypted_without_any_setup() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let (file, root) = (scratch.file("file", SIZE), scratch.dir("root"));
    let server = Server::begin_as(&user.0, &["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let run = user.runs(&["copy", "--json", &file, &url]);
    run.succeeds();
    let end = run.end();
    assert_eq!((end["security"].as_str(), end["verified"].as_bool()), (Some("tls1.3"), Some(true)));
    assert!(end["suite"].as_str().unwrap().contains("X25519MLKEM768"), "{end}");
    assert_eq!(end["peer_key"].as_str().unwrap(), user.key("fingerprint"));
    assert_eq!(fs::read(format!("{root}/file")).unwrap(), fs::read(&file).unwrap());
    let back = user.runs(&["copy", &format!("{url}file"), &scratch.at("back")]);
    back.succeeds();
    assert!(back.stderr.contains("TLS1.3") && back.stderr.contains("SHA256:"), "{}", back.stderr);
    assert_eq!(fs::read(scratch.at("back")).unwrap(), fs::read(&file).unwrap());
}

// Slow: every protocol one after another, each with a server, two copies and a new key.
#[test]
fn a_file_is_pushed_and_pulled_encrypted_over_every_protocol() {
    let list: Value = serde_json::from_slice(&farhaul(&["protocols", "--json"]).stdout).unwrap();
    for row in list.as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        let scratch = Scratch::new();
        let user = User::new(&scratch, "user");
        let (file, root, back) = (scratch.file("file", 3_000_001), scratch.dir("root"), scratch.at("back"));
        let mut server = Server::begin_as(&user.0, &["serve", "--protocol", name, "--root", &root]);
        let url = format!("udt://{}/copy", server.address);
        for (from, to) in [(&file, &url), (&url, &back)] {
            let run = user.runs(&["copy", "--json", "--protocol", name, from, to]);
            run.succeeds();
            for end in [run.end(), server.wait_for("end")] {
                assert_eq!((end["protocol"].as_str(), end["security"].as_str()), (Some(name), Some("tls1.3")), "{end}");
                assert_eq!(end["peer_key"].as_str().unwrap(), user.key("fingerprint"), "{end}");
                assert_eq!((end["bytes"].as_u64(), end["verified"].as_bool()), (Some(3_000_001), Some(true)), "{end}");
            }
        }
        assert_eq!(fs::read(&back).unwrap(), fs::read(&file).unwrap(), "{name}");
        server.signal(Signal::TERM);
        assert_eq!(server.end().0, 143, "{name}");
    }
}

#[test]
fn flows_over_every_protocol_are_encrypted_in_either_direction() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    for name in ["udt-2004", "rbudp", "sabul"] {
        let server = Server::begin_as(&user.0, &["bench", "--protocol", name, "--interval", "0"]);
        for direction in [&[][..], &["--reverse"]] {
            let bench = ["bench", "--json", "--protocol", name, "--connect", &server.address];
            let run = user.runs(&[&bench, &["--flows", "2", "--bytes", "4MB"][..], direction].concat());
            run.succeeds();
            let end = run.end();
            assert_eq!((end["bytes"].as_u64(), end["security"].as_str()), (Some(8_000_000), Some("tls1.3")), "{end}");
        }
    }
}

#[test]
fn a_key_that_is_not_authorized_is_refused_whatever_the_protocol() {
    let scratch = Scratch::new();
    let (alice, bob) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"));
    alice.key("show");
    fs::write(alice.file("authorized_keys"), "# nobody\n").unwrap();
    for name in ["udt-2004", "tsunami"] {
        let mut server = Server::begin_as(&alice.0, &["bench", "--protocol", name]);
        let bench = ["bench", "--protocol", name, "--host-key-policy", "accept-new", "--bytes", "1kB", "--connect"];
        bob.runs(&[&bench[..], &[&server.address]].concat()).fails(5, &["does not admit the key", "key show"]);
        assert!(server.wait_for("warning")["message"].as_str().unwrap().contains(&bob.key("show")));
    }
}

#[test]
fn every_connecting_verb_encrypts_unless_it_is_told_otherwise() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let bench = Server::begin_as(&user.0, &["bench"]);
    let run = user.runs(&["bench", "--json", "--connect", &bench.address, "--bytes", "1MB", "--flows", "2"]);
    run.succeeds();
    assert_eq!(run.end()["security"], "tls1.3");
    let mut pipe = Server::begin_as(&user.0, &["pipe"]);
    pipe.feed(b"");
    let sent = scratch.file("sent", SIZE);
    let to = pipe.address.clone();
    let shell = format!("exec '{}' pipe --json --connect {to} < '{sent}'", env!("CARGO_BIN_EXE_farhaul"));
    let run = std::process::Command::new("sh").args(["-c", &shell]).env("XDG_CONFIG_HOME", &user.0).output().unwrap();
    assert!(run.status.success() && String::from_utf8_lossy(&run.stderr).contains("\"security\":\"tls1.3\""));
    assert_eq!(pipe.end(), (0, fs::read(&sent).unwrap()));
}

#[test]
fn a_plain_client_and_an_encrypting_server_never_meet() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let bench = Server::begin_as(&user.0, &["bench"]);
    let plain = ["bench", "--plain", "--connect-timeout", "1s", "--bytes", "1kB", "--connect"];
    user.runs(&[&plain[..], &[&bench.address]].concat()).fails(4, &["only one side has --plain"]);
    let server = Server::begin(&["bench"]);
    let secure = ["bench", "--connect-timeout", "1s", "--bytes", "1kB", "--connect"];
    user.runs(&[&secure[..], &[&server.address]].concat()).fails(4, &["only one side has --plain"]);
}

#[test]
fn a_key_that_is_not_authorized_is_refused_and_the_server_says_how_to_admit_it() {
    let scratch = Scratch::new();
    let (alice, bob) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"));
    let (file, root) = (scratch.file("file", SIZE), scratch.dir("root"));
    alice.key("show");
    fs::write(alice.file("authorized_keys"), "# nobody\n").unwrap();
    let mut server = Server::begin_as(&alice.0, &["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let copy = |file: &str| bob.runs(&["copy", "--host-key-policy", "accept-new", file, &url]);
    copy(&file).fails(5, &["does not admit the key", "key show"]);
    let warning = server.wait_for("warning");
    assert!(warning["message"].as_str().unwrap().contains(&bob.key("show")), "{warning}");
    assert!(scratch.names("root").is_empty());

    // Read only, after the keys were read again.
    alice.admits(&bob, "bob");
    server.signal(Signal::HUP);
    fs::write(format!("{root}/there"), "content").unwrap();
    let fetch = bob.runs(&["copy", &format!("{url}there"), &scratch.at("fetched")]);
    let fetch =
        if fetch.code == 5 { bob.runs(&["copy", &format!("{url}there"), &scratch.at("fetched")]) } else { fetch };
    fetch.succeeds();
    copy(&file).fails(5, &["may not write there", "path=DIR,write"]);
    assert_eq!(scratch.names("root"), ["there"]);
}

#[test]
fn a_key_writes_where_its_line_says_so_and_nowhere_else() {
    let scratch = Scratch::new();
    let (alice, bob) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"));
    let (file, root) = (scratch.file("file", SIZE), scratch.dir("root"));
    scratch.dir("root/in");
    alice.admits(&bob, &format!("bob path={root}/in,write"));
    let server = Server::begin_as(&alice.0, &["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let copy = |to: &str| bob.runs(&["copy", "--host-key-policy", "accept-new", &file, &format!("{url}{to}")]);
    copy("in/").succeeds();
    copy("").fails(5, &["may not write there"]);
    bob.runs(&["copy", "-r", &url, &scratch.at("all")]).fails(5, &["may not read there"]);
    assert_eq!((scratch.names("root"), scratch.names("root/in")), (vec!["in".into()], vec!["file".to_owned()]));
}

#[test]
fn an_expired_key_is_refused_and_a_misspelt_option_refuses_the_start() {
    let scratch = Scratch::new();
    let (alice, bob) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"));
    alice.admits(&bob, "bob expires=2020-01-31");
    let mut server = Server::begin_as(&alice.0, &["bench"]);
    let bench = ["bench", "--host-key-policy", "accept-new", "--bytes", "1kB", "--connect", &server.address];
    bob.runs(&bench).fails(5, &["does not admit"]);
    let warning = server.wait_for("warning")["message"].as_str().unwrap().to_owned();
    let advice = format!("expires= of its line in {}", alice.file("authorized_keys"));
    assert!(warning.contains("expired") && warning.contains(&advice), "{warning}");
    alice.admits(&bob, "bob pathh=/data");
    alice.runs(&["bench", "--listen", "127.0.0.1:0"]).fails(2, &["authorized_keys", "line 1", "pathh"]);
}

#[test]
fn a_server_is_unknown_then_known_and_a_changed_key_is_refused() {
    let scratch = Scratch::new();
    let (alice, bob) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"));
    let key = alice.key("fingerprint");
    let server = Server::begin_as(&alice.0, &["bench", "--any-client"]);
    let bench = ["bench", "--bytes", "1kB", "--connect", &server.address];
    let with = |options: &[&str]| bob.runs(&[&bench[..], options].concat());
    with(&[]).fails(5, &[&key, "not known here", "--host-key"]);
    with(&["--host-key-policy", "strict"]).fails(5, &[&key]);
    assert!(fs::read(bob.file("known_hosts")).is_err(), "a refused key is not remembered");
    with(&["--host-key", &key]).succeeds();
    with(&["--host-key", &bob.key("fingerprint")]).fails(5, &["somebody may be in between"]);
    with(&["--host-key-policy", "accept-new"]).succeeds();
    assert_eq!(
        fs::read_to_string(bob.file("known_hosts")).unwrap(),
        format!("{} {}\n", server.address, alice.key("show"))
    );
    with(&["--host-key-policy", "strict"]).succeeds();
    let mallory = User::new(&scratch, "mallory");
    fs::write(bob.file("known_hosts"), format!("{} {}\n", server.address, mallory.key("show"))).unwrap();
    let run = with(&["--host-key-policy", "accept-new", "--json"]);
    run.fails(5, &["another key", "line 1", "somebody may be in between"]);
    assert_eq!(run.end()["error"]["code"], "HOST_KEY_CHANGED");
}

#[test]
fn a_user_at_a_terminal_is_asked_about_a_new_server() {
    if runs(&["script", "-qec", "true", "/dev/null"], "it makes a terminal").is_none() {
        return;
    }
    let scratch = Scratch::new();
    let (alice, bob) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"));
    let server = Server::begin_as(&alice.0, &["bench", "--any-client"]);
    let bench = ["bench", "--bytes", "1kB", "--connect", &server.address];
    let home = [("XDG_CONFIG_HOME", bob.0.as_str())];
    let refused = farhaul_on_terminal_with(b"no\n", &home, &bench);
    let shown = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(refused.code == 5 && shown.contains(&alice.key("fingerprint")) && shown.contains("(yes/no)?"), "{shown}");
    // All flows go to one server.
    let flows = [&bench[..], &["--flows", "3"]].concat();
    let accepted = farhaul_on_terminal_with(b"yes\n", &home, &flows);
    let shown = String::from_utf8_lossy(&accepted.stdout).into_owned();
    assert!(accepted.code == 0 && shown.matches("(yes/no)?").count() == 1, "{shown}");
    assert_eq!(fs::read_to_string(bob.file("known_hosts")).unwrap().lines().count(), 1);
    bob.runs(&bench).succeeds();
}

#[test]
fn the_key_of_a_server_is_remembered_once_and_below_what_stands_there_already() {
    let scratch = Scratch::new();
    let (alice, bob) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"));
    let server = Server::begin_as(&alice.0, &["bench", "--any-client"]);
    let other = format!("far.example:9000 {}", bob.key("show"));
    fs::write(bob.file("known_hosts"), &other).unwrap();
    let to = ["bench", "--bytes", "1kB", "--flows", "4", "--host-key-policy", "accept-new", "--connect"];
    bob.runs(&[&to[..], &[&server.address]].concat()).succeeds();
    let known = fs::read_to_string(bob.file("known_hosts")).unwrap();
    assert_eq!(known, format!("{other}\n{} {}\n", server.address, alice.key("show")));
}

#[test]
fn the_line_of_each_session_of_a_server_says_how_it_was_protected() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let (file, root, fingerprint) = (scratch.file("file", 1_000), scratch.dir("root"), user.key("fingerprint"));
    let key = format!("key {fingerprint}");
    for (options, words) in [(&[][..], ["TLS1.3", key.as_str()]), (&["--plain"], ["not encrypted", "not encrypted"])] {
        let own = user.file("key");
        let keys = if options.is_empty() { vec!["--key", &own] } else { Vec::new() };
        let serve = ["serve", "--root", &root, "--listen", "127.0.0.1:0"];
        let mut server = Started::begin(&[&serve[..], options, &keys].concat(), Stdio::null());
        let line = server.says("serving");
        let (_, at) = line.split_once(" on ").unwrap();
        let url = format!("udt://{}/", at.split(' ').next().unwrap());
        user.runs(&[&["copy", &file, &url], options].concat()).succeeds();
        let line = server.says("received from");
        assert!(words.iter().all(|word| line.contains(word)), "{line}");
        server.signal(Signal::TERM);
        server.end();
    }
}
