use std::net::UdpSocket;
use std::process::Stdio;

use rustix::process::Signal;

use crate::process::{Scratch, Server, Started, farhaul, farhaul_under};
use crate::requirement::{runs, skip};

#[test]
fn a_port_that_is_taken_is_named_with_what_to_do() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    farhaul(&["bench", "--plain", "--listen", &address]).fails(4, &[&address, "another program", "ss -ulpn"]);
    farhaul(&["relay", "--listen", &address, "--to", "127.0.0.1:9"]).fails(4, &[&address, "another program"]);
}

#[test]
fn an_address_of_another_machine_cannot_be_listened_on() {
    farhaul(&["bench", "--plain", "--listen", "192.0.2.1:0"]).fails(4, &["192.0.2.1", "no interface"]);
}

#[test]
fn silence_is_a_connect_time_out_and_mentions_firewalls() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let run = farhaul(&["bench", "--plain", "--json", "--connect", &address, "--connect-timeout", "200ms"]);
    run.fails(4, &[&address, "200 ms", "UDP is blocked"]);
    assert_eq!(run.end()["error"]["code"], "CONNECT_TIMEOUT");
    assert_eq!(run.end()["exit_code"], 4);
}

#[test]
fn no_route_to_the_address_is_known_at_once() {
    // Class E is not routed by Linux.
    farhaul(&["bench", "--plain", "--connect", "255.255.255.255:9"]).fails(4, &["no route to 255.255.255.255:9"]);
}

#[test]
fn a_name_without_address_is_named() {
    farhaul(&["bench", "--plain", "--connect", "nobody.invalid:9"]).fails(4, &["nobody.invalid"]);
}

#[test]
fn a_root_that_is_no_directory_is_named() {
    farhaul(&["serve", "--plain", "--listen", "127.0.0.1:0", "--root", "/nonexistent"])
        .fails(7, &["/nonexistent", "--root"]);
}

#[test]
fn a_full_disk_ends_a_pipe_with_its_own_code() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut server = Server::begin(&["pipe"]);
    let receiver = Started::begin_to(&["pipe", "--plain", "--connect", &server.address], Stdio::null(), full.into());
    server.feed(b"some bytes");
    receiver.end().fails(7, &["stdout", "space"]);
}

#[test]
fn socket_buffers_that_the_kernel_cuts_are_warned_about_with_the_command_that_helps() {
    // As root the limit is passed over, unless that right is given away.
    let without_rights = ["setpriv", "--bounding-set=-net_admin"];
    let wrapper = if rustix::process::geteuid().is_root() { &without_rights[..] } else { &[] };
    if !wrapper.is_empty() && runs(&[wrapper, &["true"]].concat(), "it takes root's rights away").is_none() {
        return;
    }
    let limit = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap_or_default();
    if limit.trim().parse::<u64>().map_or(true, |limit| limit >= 8 << 20) {
        return skip("net.core.rmem_max is as large as anything that is asked for").unwrap_or_default();
    }
    let mut server = Server::begin_under(wrapper, &["bench"]);
    let warning = server.wait_for("warning");
    assert!(warning["message"].as_str().unwrap().contains("sysctl -w net.core.rmem_max="), "{warning}");
    let client = ["bench", "--plain", "--json", "--connect", &server.address, "--bytes", "1MB"];
    let warns = |more: &[&str]| {
        let run = farhaul_under(wrapper, &[&client[..], more].concat());
        run.succeeds();
        run.records().iter().any(|record| record["message"].to_string().contains("rmem_max"))
    };
    assert!(warns(&["--reverse"]) && !warns(&[]), "who only sends receives small answers");
}

#[test]
fn a_peer_that_speaks_something_else_is_a_protocol_mismatch() {
    let scratch = Scratch::new();
    let file = scratch.file("file", 5);
    let mut server = Server::begin(&["pipe"]);
    server.feed(b"HTTP/1.1 400 Bad Request\r\n\r\nthis is long enough to be no frame");
    farhaul(&["copy", "--plain", &file, &format!("udt://{}/", server.address)]).fails(9, &["farhaul serve"]);
}

#[test]
fn a_peer_that_is_killed_is_lost() {
    let server = Server::begin(&["bench", "--interval", "0"]);
    let arguments =
        ["bench", "--plain", "--json", "--connect", &server.address, "--timeout", "1s", "--interval", "0.1"];
    let client = Started::begin(&[&arguments[..], &["--seconds", "30"]].concat(), Stdio::null()).after("interval");
    server.signal(Signal::KILL);
    let run = client.end();
    run.fails(8, &[&server.address]);
}

#[test]
fn an_interrupt_stops_a_measurement_with_its_own_code() {
    let server = Server::begin(&["bench", "--interval", "0"]);
    let arguments =
        ["bench", "--plain", "--json", "--connect", &server.address, "--seconds", "30", "--interval", "0.1"];
    let client = Started::begin(&arguments, Stdio::null()).after("interval");
    client.signal(Signal::INT);
    client.end().fails(130, &["interrupted"]);
}
