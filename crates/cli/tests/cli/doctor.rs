//! `doctor`: findings about this machine and about ports that are plain, encrypted, closed or silent.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::process::{Run, Scratch, Server, Started, farhaul, farhaul_under, farhaul_where};

/// Findings that every machine has.
const ALWAYS: [&str; 12] = [
    "receive_buffer",
    "send_buffer",
    "offload",
    "clock",
    "processors",
    "cipher_speed",
    "open_files",
    "ipv6",
    "firewall",
    "emulation",
    "settings",
    "key",
];

/// The finding of this name in the records of a run.
#[track_caller]
pub(crate) fn finding(run: &Run, id: &str) -> Value {
    let found = run.records().into_iter().find(|record| record["id"] == id);
    found.unwrap_or_else(|| panic!("no {id} in {}", String::from_utf8_lossy(&run.stdout)))
}

#[track_caller]
pub(crate) fn says(finding: &Value, state: &str, words: &[&str]) {
    let message = finding["message"].as_str().unwrap();
    assert!(finding["state"] == state && words.iter().all(|word| message.contains(word)), "{finding}");
}

/// Examines the path to a port as the user whose settings are in this folder.
fn doctor_of(home: &str, address: &str) -> Run {
    farhaul_where(&[("XDG_CONFIG_HOME", home)], &["doctor", "--json", address])
}

#[test]
fn a_machine_has_all_findings_and_every_one_that_is_not_ok_is_counted() {
    let run = farhaul(&["doctor", "--json"]);
    assert!(matches!(run.code, 0 | 1), "{}", run.stderr);
    let records = run.records();
    assert_eq!((&records[0]["event"], &records[0]["verb"]), (&"start".into(), &"doctor".into()));
    let ids: BTreeSet<&str> = records.iter().filter_map(|record| record["id"].as_str()).collect();
    assert!(ALWAYS.iter().all(|id| ids.contains(id)), "{ids:?}");
    let count = |state: &str| records.iter().filter(|record| record["state"] == state).count();
    let end = run.end();
    assert_eq!((&end["problems"], &end["advice"]), (&count("problem").into(), &count("advice").into()));
    assert_eq!(end["exit_code"], i32::from(count("problem") > 0));
    assert_eq!(run.code, i32::from(count("problem") > 0));
    assert!(finding(&run, "cipher_speed")["fastest_bps"].as_u64().unwrap() > 0);
    assert!(finding(&run, "receive_buffer")["granted_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn people_get_a_line_for_each_finding_and_a_summary_on_stdout() {
    let run = farhaul(&["doctor"]);
    let text = String::from_utf8(run.stdout.clone()).unwrap();
    assert!(ALWAYS.iter().all(|id| text.lines().any(|line| line.contains(id))), "{text}");
    assert!(text.lines().last().unwrap().contains("to fix") && !text.contains('\x1b'), "{text}");
    assert!(run.stderr.is_empty(), "{}", run.stderr);
}

#[test]
fn a_plain_port_is_named_with_its_round_trip_and_packet_size() {
    let server = Server::begin(&["bench"]);
    let run = farhaul(&["doctor", "--json", &server.address]);
    assert!(matches!(run.code, 0 | 1), "{}", run.stderr);
    let udp = finding(&run, "udp");
    says(&udp, "ok", &[&server.address, "plain, not encrypted", "--plain"]);
    assert_eq!(udp["security"], "none");
    assert!(finding(&run, "round_trip")["round_trip_us"].is_u64());
    assert_eq!(finding(&run, "path_mtu")["mtu_bytes"], 9_000, "the loopback interface carries more");
    says(&finding(&run, "route"), "ok", &["127.0.0.1", "through lo"]);
}

#[test]
fn an_encrypted_port_of_the_same_user_needs_nothing() {
    let scratch = Scratch::new();
    let home = scratch.dir("home");
    let server = Server::begin_as(&home, &["bench"]);
    let run = doctor_of(&home, &server.address);
    let key = farhaul_where(&[("XDG_CONFIG_HOME", &home)], &["key", "fingerprint"]).stdout;
    let key = String::from_utf8(key).unwrap().trim().to_owned();
    says(&finding(&run, "udp"), "ok", &["answers: encrypted"]);
    says(&finding(&run, "host_key"), "ok", &[&key, "own key"]);
    says(&finding(&run, "encryption"), "ok", &["TLS1.3", "admits this side"]);
    assert_eq!(finding(&run, "path_mtu")["mtu_bytes"], 9_000);
    assert!(matches!(run.code, 0 | 1), "{}", run.stderr);
}

/// A pipe takes one connection, and a look is none.
#[test]
fn a_pipe_that_is_looked_at_still_waits_for_its_peer() {
    let scratch = Scratch::new();
    let home = scratch.dir("home");
    let mut pipe = Server::begin_as(&home, &["pipe"]);
    pipe.feed(b"a line\n");
    let run = doctor_of(&home, &pipe.address);
    says(&finding(&run, "encryption"), "ok", &["TLS1.3", "admits this side"]);
    let peer = farhaul_where(&[("XDG_CONFIG_HOME", &home)], &["pipe", "--connect", &pipe.address]);
    assert_eq!((peer.code, &peer.stdout[..]), (0, &b"a line\n"[..]), "{}", peer.stderr);
    assert_eq!(pipe.end(), (0, Vec::new()));
}

#[test]
fn an_unlisted_client_learns_the_fingerprint_whether_it_is_known_and_that_the_server_refuses() {
    let scratch = Scratch::new();
    let (alice, bob) = (scratch.dir("alice"), scratch.dir("bob"));
    let server = Server::begin_as(&alice, &["bench"]);
    let of_bob = |arguments: &[&str]| farhaul_where(&[("XDG_CONFIG_HOME", &bob)], arguments);
    // Without a key of the user, and without making one.
    let run = doctor_of(&bob, &server.address);
    assert_eq!((run.code, fs::exists(format!("{bob}/farhaul/key")).unwrap()), (1, false));
    assert_eq!(finding(&run, "encryption")["fix"], "farhaul key new && farhaul key show");
    let unknown = finding(&run, "host_key");
    says(&unknown, "advice", &["unknown here", unknown["peer_key"].as_str().unwrap()]);
    // With one.
    of_bob(&["key", "new"]).succeeds();
    let key = String::from_utf8(of_bob(&["key", "show"]).stdout).unwrap().trim().to_owned();
    let refused = finding(&doctor_of(&bob, &server.address), "encryption");
    says(&refused, "problem", &["does not admit"]);
    assert!(refused["fix"].as_str().unwrap().contains(&key) && refused["fix_side"] == "there", "{refused}");
    // The command for a user's own server adds the key once, and leaves a line that has expired alone.
    let fix: Vec<&str> = refused["fix"].as_str().unwrap().lines().collect();
    assert!(fix.len() == 2 && fix[1].contains("/etc/farhaul/authorized_keys"), "{fix:?}");
    let file = format!("{}/.config/farhaul/authorized_keys", scratch.at(""));
    let fixed = |before: &str| {
        fs::create_dir_all(scratch.at(".config/farhaul")).unwrap();
        fs::write(&file, before).unwrap();
        assert!(Command::new("sh").args(["-c", fix[0]]).env("HOME", scratch.at("")).status().unwrap().success());
        fs::read_to_string(&file).unwrap()
    };
    assert_eq!(fixed(""), format!("{key}\n"));
    let expired = format!("# bob\n{key} bob expires=2020-01-01\n");
    assert_eq!(fixed(&expired), expired);
    // With the server's key among the known ones.
    let of_alice = farhaul_where(&[("XDG_CONFIG_HOME", &alice)], &["key", "show"]).stdout;
    let known = format!("{bob}/farhaul/known_hosts");
    fs::write(&known, format!("{} {}", server.address, String::from_utf8_lossy(&of_alice))).unwrap();
    says(&finding(&doctor_of(&bob, &server.address), "host_key"), "ok", &["known here"]);
}

#[test]
fn a_changed_key_of_a_server_is_a_problem_with_the_line_to_remove() {
    let scratch = Scratch::new();
    let homes = ["alice", "bob", "mallory"].map(|name| scratch.dir(name));
    let show = |home: &str| {
        farhaul_where(&[("XDG_CONFIG_HOME", home)], &["key", "new"]).succeeds();
        String::from_utf8(farhaul_where(&[("XDG_CONFIG_HOME", home)], &["key", "show"]).stdout).unwrap()
    };
    let server = Server::begin_as(&homes[0], &["bench", "--any-client"]);
    let other = show(&homes[2]);
    fs::create_dir_all(format!("{}/farhaul", homes[1])).unwrap();
    fs::write(format!("{}/farhaul/known_hosts", homes[1]), format!("# mine\n{} {other}", server.address)).unwrap();
    let run = doctor_of(&homes[1], &server.address);
    assert_eq!(run.code, 1);
    let changed = finding(&run, "host_key");
    says(&changed, "problem", &["line 2", "another key"]);
    assert!(changed["fix"].as_str().unwrap().starts_with("sed -i '2d' "), "{changed}");
    says(&finding(&run, "encryption"), "ok", &["admits this side"]);
}

#[test]
fn a_closed_port_is_told_from_a_silent_one() {
    let closed = UdpSocket::bind("127.0.0.93:0").unwrap();
    let address = closed.local_addr().unwrap().to_string();
    drop(closed);
    let run = farhaul(&["doctor", "--json", &address]);
    run.fails(4, &["nothing listens on UDP port"]);
    says(&finding(&run, "udp"), "problem", &["nothing listens on UDP port"]);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    // Longer than all its waits together.
    let run = farhaul_under(&["timeout", "8"], &["doctor", "--json", &format!("127.0.0.1:{port}")]);
    run.fails(4, &["no answer", "by UDP", "by TCP", "UDP is blocked"]);
    assert_eq!((&run.end()["exit_code"], &run.end()["error"]["code"]), (&4.into(), &"UDP_BLOCKED".into()));
    let fix = finding(&run, "udp")["fix"].as_str().unwrap().to_owned();
    assert!(fix.contains(&format!("sudo ufw allow {port}/udp")) && fix.contains("firewall-cmd"), "{fix}");
}

#[test]
fn a_host_without_a_port_or_an_address_says_what_to_do() {
    let run = farhaul(&["doctor", "--json", "localhost"]);
    let udp = finding(&run, "udp");
    says(&udp, "advice", &["TCP 22", "farhaul doctor localhost:PORT"]);
    farhaul(&["doctor", "--json", "nobody.invalid:9"]).fails(4, &["nobody.invalid"]);
    for wrong in ["localhost:0", "udt://localhost:9000/", ":9000"] {
        farhaul(&["doctor", wrong]).fails(2, &["host:port"]);
    }
}

#[test]
fn a_signal_ends_an_examination_with_its_record() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    // The first datagram arrives while the answer is awaited.
    let run = Started::begin(&["doctor", "--json", &address], Stdio::null()).after("finding");
    silent.recv(&mut [0; 2_000]).unwrap();
    run.signal(Signal::INT);
    let run = run.end();
    assert_eq!(
        (run.code, &run.end()["exit_code"], &run.end()["error"]["code"]),
        (130, &130.into(), &"INTERRUPTED".into())
    );
}

#[test]
fn unsafe_and_unreadable_files_are_problems_with_their_commands() {
    let scratch = Scratch::new();
    let home = scratch.dir("home");
    let of_home = |arguments: &[&str]| farhaul_where(&[("XDG_CONFIG_HOME", &home)], arguments);
    of_home(&["key", "new"]).succeeds();
    let file = |name: &str| format!("{home}/farhaul/{name}");
    fs::set_permissions(file("key"), Permissions::from_mode(0o644)).unwrap();
    fs::write(file("config.toml"), "rates = 3\n").unwrap();
    fs::write(file("known_hosts"), "far ssh-rsa AAAA\n").unwrap();
    fs::write(file("authorized_keys"), "# nobody\n").unwrap();
    fs::set_permissions(file("authorized_keys"), Permissions::from_mode(0o666)).unwrap();
    let run = of_home(&["doctor", "--json"]);
    assert_eq!(run.code, 1);
    for (id, command) in [
        ("key", format!("chmod 600 {}", file("key"))),
        ("settings", format!("${{EDITOR:-vi}} {}", file("config.toml"))),
        ("known_hosts", format!("${{EDITOR:-vi}} +1 {}", file("known_hosts"))),
        ("authorized_keys", format!("chmod go-w {}", file("authorized_keys"))),
    ] {
        let finding = finding(&run, id);
        assert_eq!((&finding["state"], &finding["fix"]), (&"problem".into(), &command.into()), "{finding}");
    }
    fs::set_permissions(file("key"), Permissions::from_mode(0o600)).unwrap();
    says(&finding(&of_home(&["doctor", "--json"]), "key"), "ok", &["SHA256:"]);
}
