//! Listeners at all addresses of a host that has several: they answer from the one that was asked. 127.0.0.2 is one beside
//! 127.0.0.1, which the system prefers. Other addresses, and links, need network namespaces. Without them, a test says so and passes.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::limits::Relay;
use crate::over_ssh::same;
use crate::process::{Scratch, Server, Started, farhaul, farhaul_where};
use crate::requirement::runs;
use crate::secured::User;

const SECOND: &str = "127.0.0.2";
const SIZE: usize = 300_000;

/// The second address of a listener at all of them.
fn second(address: &str) -> String {
    format!("{SECOND}:{}", address.rsplit_once(':').unwrap().1)
}

fn protocols() -> Vec<String> {
    let list: Value = serde_json::from_slice(&farhaul(&["protocols", "--json"]).stdout).unwrap();
    list.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_protocol_measures_both_ways_at_a_second_address() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let settings = [("XDG_CONFIG_HOME", user.0.as_str())];
    for protocol in protocols() {
        let verb = ["bench", "--protocol", &protocol];
        let listeners = [
            (Server::begin_at("0.0.0.0:0", &verb), &["--plain"][..]),
            (Server::begin_as_at(&user.0, "[::]:0", &verb), &[]),
        ];
        for (listener, mode) in listeners {
            for direction in [&[][..], &["--reverse"]] {
                let address = second(&listener.address);
                let connect = ["--connect", &address, "--bytes", "200kB", "--interval", "0"];
                let run = farhaul_where(&settings, &[&verb[..], &connect, mode, direction].concat());
                assert_eq!(run.code, 0, "{protocol} {mode:?} {direction:?} {}: {}", listener.address, run.stderr);
            }
        }
    }
}

#[test]
fn measured_streams_are_answered_at_a_second_address() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let listeners = [
        (Server::begin_at("0.0.0.0:0", &["bench"]), &["--plain"][..]),
        (Server::begin_as_at(&user.0, "0.0.0.0:0", &["bench"]), &[]),
    ];
    for (listener, mode) in listeners {
        let address = second(&listener.address);
        let stream = ["stream", "--json", "--connect", &address, "--rate", "1mbit", "--seconds", "0.3"];
        let run = farhaul_where(&[("XDG_CONFIG_HOME", &user.0)], &[&stream[..], mode].concat());
        run.succeeds();
        assert!(run.end()["datagrams_acknowledged"].as_u64().unwrap() > 0, "{}", run.end());
    }
}

#[test]
fn a_file_of_an_original_server_comes_from_a_second_address() {
    for protocol in ["rbudp", "tsunami"] {
        let scratch = Scratch::new();
        let (root, to) = (scratch.dir("root"), scratch.dir("to"));
        scratch.file("root/big", SIZE);
        let server = Server::begin_at("0.0.0.0:0", &["serve", "--protocol", protocol, "--root", &root]);
        let url = format!("{protocol}://{}/big", second(&server.address));
        farhaul(&["copy", "--plain", &url, &to]).succeeds();
        assert!(same(&scratch.at("root/big"), &scratch.at("to/big")), "{protocol}");
    }
}

#[test]
fn a_relay_answers_from_a_second_address() {
    let server = Server::begin(&["bench"]);
    let arguments = ["relay", "--json", "--listen", "0.0.0.0:0", "--to", &server.address];
    let relay = Started::begin(&arguments, Stdio::null()).after("start");
    let address = second(relay.record["local"].as_str().unwrap());
    let _relay = Relay(relay);
    farhaul(&["bench", "--plain", "--connect", &address, "--bytes", "200kB"]).succeeds();
}

#[test]
fn a_copy_over_ssh_goes_both_ways_through_a_second_address() {
    let scratch = Scratch::new();
    let (ssh, program) = (scratch.at("ssh"), env!("CARGO_BIN_EXE_farhaul"));
    // The host that ssh reached is the second address of this one.
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *-G*) exit 0;; esac\nfor C; do :; done\nexport SSH_CONNECTION='127.0.0.1 1 {SECOND} 22'\n\
         exec sh -c \"$C\"\n"
    );
    fs::write(&ssh, script).unwrap();
    fs::set_permissions(&ssh, Permissions::from_mode(0o755)).unwrap();
    let (file, there, back) = (scratch.file("file", SIZE), scratch.at("there"), scratch.at("back"));
    let there = format!("far:{there}");
    for (from, to) in [(&file, &there), (&there, &back)] {
        farhaul(&["copy", "--ssh", &ssh, "--remote-path", program, "--no-fallback", from, to]).succeeds();
    }
    assert!(same(&file, &back));
}

/// Listeners of both families on a host with two addresses on one link and one on another, and their callers on another host.
#[test]
fn both_addresses_of_a_link_and_that_of_another_link_answer() {
    let pair = ["unshare", "-n", "ip", "link", "add", "va", "type", "veth", "peer", "name", "vb"];
    if runs(&pair, "pairs of interfaces").is_none() {
        return;
    }
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    user.key("show");
    // The host of the callers is `$P`. The first link has an address of the server that its routes lead to by the second.
    let script = "set -e
        unshare -n sleep 600 & P=$!
        trap 'kill $P $SERVERS' EXIT
        until [ \"$(readlink /proc/$P/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]; do sleep 0.01; done
        N=\"nsenter -n -t $P\"
        ip link set lo up
        for link in 1 2; do
            ip link add near$link type veth peer name far$link
            ip link set far$link netns $P
            ip link set near$link up
            $N ip link set far$link up
            ip addr add 10.99.$link.2/24 dev near$link
            $N ip addr add 10.99.$link.1/24 dev far$link
            ip addr add fd99:$link::2/64 dev near$link nodad
            $N ip addr add fd99:$link::1/64 dev far$link nodad
        done
        ip addr add 10.99.1.3/24 dev near1
        ip addr add fd99:1::3/64 dev near1 nodad
        ip addr add 10.99.1.4/32 dev near1
        $N ip route add 10.99.1.4 via 10.99.2.2
        for listener in plain/0.0.0.0:5001 secure/0.0.0.0:5002 plain/[::]:5003 secure/[::]:5004; do
            mode=${listener%%/*} address=${listener#*/}
            [ $mode = plain ] && option=--plain || option=
            $F bench $option --listen $address > $LOG 2>&1 & SERVERS=\"$SERVERS $!\"
            until ss -Hlun \"sport = :${address##*:}\" | grep -q .; do sleep 0.01; done
            case $address in \\[*) both='[fd99:1::2] [fd99:1::3] [fd99:2::2]';; *) both=;; esac
            for to in 10.99.1.2 10.99.1.3 10.99.1.4 10.99.2.2 $both; do
                echo $mode $address $to
                $N $F bench $option --connect $to:${address##*:} --bytes 100kB --interval 0
            done
        done";
    let run = Command::new("unshare")
        .args(["-n", "sh", "-c", script])
        .env("F", env!("CARGO_BIN_EXE_farhaul"))
        .env("LOG", scratch.at("log"))
        .env("XDG_CONFIG_HOME", &user.0)
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{out}\n{err}");
    assert_eq!(err.matches("measured:").count(), 4 * 4 + 2 * 3, "{out}\n{err}");
}
