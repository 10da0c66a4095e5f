//! The protocols other than UDT4 on real sockets.

use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::{fs, io, thread};

use rustix::process::Signal;
use serde_json::Value;

use crate::process::{Scratch, Server, farhaul, farhaul_where, farhaul_with, records};

const PROTOCOL: [&str; 2] = ["--protocol", "udt-2004"];

#[test]
fn a_pipe_over_the_2004_protocol_carries_all_bytes() {
    let mut input = vec![0u8; 3_000_003];
    input.iter_mut().enumerate().for_each(|(index, byte)| *byte = (index / 7) as u8);
    let server = Server::begin_with(&["pipe", PROTOCOL[0], PROTOCOL[1]], Stdio::null());
    let run =
        farhaul_with(&input, &["pipe", "--plain", "--json", PROTOCOL[0], PROTOCOL[1], "--connect", &server.address]);
    run.succeeds();
    let end = records(&run.stderr).pop().unwrap();
    assert_eq!((end["bytes"].as_u64(), end["protocol"].as_str()), (Some(3_000_003), Some("udt-2004")), "{end}");
    assert_eq!(end["controller"], "udt-2004", "its controller is the default with it");
    let (code, received) = server.end();
    assert_eq!(code, 0);
    assert!(received == input, "{} bytes arrived", received.len());
}

#[test]
fn several_flows_over_the_2004_protocol_have_a_port_each() {
    let server = Server::begin(&["bench", PROTOCOL[0], PROTOCOL[1], "--interval", "0"]);
    for reverse in [&[][..], &["--reverse"]] {
        let arguments = ["bench", "--plain", "--json", PROTOCOL[0], PROTOCOL[1], "--connect", &server.address];
        let run = farhaul(&[&arguments, &["--flows", "2", "--bytes", "4MB"][..], reverse].concat());
        run.succeeds();
        let end = run.end();
        assert_eq!((end["bytes"].as_u64(), end["flows"].as_array().map(Vec::len)), (Some(8_000_000), Some(2)), "{end}");
    }
}

#[test]
fn the_controller_of_2004_also_runs_on_udt4() {
    let server = Server::begin(&["bench", "--interval", "0"]);
    let arguments =
        ["bench", "--plain", "--json", "--controller", "udt-2004:warnings=off", "--connect", &server.address];
    let run = farhaul(&[&arguments[..], &["--bytes", "4MB"]].concat());
    run.succeeds();
    let end = run.end();
    assert_eq!((end["protocol"].as_str(), end["controller"].as_str()), (Some("udt"), Some("udt-2004:warnings=off")));
}

#[test]
fn a_file_is_pushed_and_pulled_over_every_protocol_and_verified() {
    let list: Value = serde_json::from_slice(&farhaul(&["protocols", "--json"]).stdout).unwrap();
    for row in list.as_array().unwrap() {
        let (name, controller) = (row["name"].as_str().unwrap(), row["controller"].as_str().unwrap_or("none"));
        let scratch = Scratch::new();
        let (file, root, back) = (scratch.file("file", 3_000_001), scratch.dir("root"), scratch.at("back"));
        let mut server = Server::begin(&["serve", "--protocol", name, "--root", &root]);
        let url = format!("udt://{}/copy", server.address);
        for (from, to) in [(&file, &url), (&url, &back)] {
            let run = farhaul(&["copy", "--plain", "--json", "--protocol", name, from, to]);
            run.succeeds();
            for end in [run.end(), server.wait_for("end")] {
                assert_eq!(
                    (end["protocol"].as_str(), end["controller"].as_str()),
                    (Some(name), Some(controller)),
                    "{end}"
                );
                assert_eq!((end["bytes"].as_u64(), end["verified"].as_bool()), (Some(3_000_001), Some(true)), "{end}");
            }
        }
        assert_eq!(fs::read(&back).unwrap(), fs::read(&file).unwrap(), "{name}");
        server.signal(Signal::TERM);
        assert_eq!(server.end().0, 143);
    }
}

#[test]
fn a_controller_does_not_go_with_a_protocol_that_governs_its_rate() {
    let arguments = ["bench", "--plain", "--protocol", "tsunami", "--connect", "127.0.0.1:9"];
    farhaul(&[&arguments[..], &["--controller", "udt"]].concat()).fails(2, &["--controller", "tsunami"]);
    // A lasting setting is meant for other protocols.
    let run = farhaul_where(
        &[("FARHAUL_CONTROLLER", "udt")],
        &[&arguments[..], &["--json", "--connect-timeout", "150ms"]].concat(),
    );
    assert_eq!((run.code, run.end()["controller"].as_str().map(str::to_owned)), (4, Some("none".to_owned())));
}

#[test]
fn udp_that_is_blocked_beside_tcp_is_named() {
    let server = Server::begin(&["bench", "--protocol", "tsunami", "--interval", "0"]);
    // A relay to the server for TCP alone.
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, behind) = (relay.local_addr().unwrap().to_string(), server.address.clone());
    thread::spawn(move || {
        for near in relay.incoming().map_while(Result::ok) {
            let far = TcpStream::connect(&behind).unwrap();
            for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                thread::spawn(move || io::copy(&mut from, &mut to));
            }
        }
    });
    let run =
        farhaul(&["bench", "--plain", "--json", "--protocol", "tsunami", "--connect", &address, "--bytes", "9MB"]);
    run.fails(4, &["UDP", &address]);
    assert_eq!(run.end()["error"]["code"], "UDP_BLOCKED");
}

/// RBUDP buffers two blasts, each of up to ten seconds.
#[test]
fn a_measurement_ends_near_its_time_whatever_the_protocol_buffers() {
    for direction in [&["--rate", "100mbit"][..], &["--reverse"]] {
        let server = Server::begin(&["bench", "--protocol", "rbudp", "--rate", "100mbit", "--interval", "0"]);
        let timed = ["bench", "--plain", "--json", "--protocol", "rbudp", "--seconds", "2"];
        let run = farhaul(&[&timed[..], &["--connect", &server.address], direction].concat());
        run.succeeds();
        let seconds = run.end()["seconds"].as_f64().unwrap();
        assert!((2.0..6.0).contains(&seconds), "{seconds} s");
    }
}

#[test]
fn options_of_the_protocol_stand_in_the_records_of_both_sides() {
    let protocol = "udt-2004:delay-warnings=off";
    let mut server = Server::begin(&["bench", "--protocol", protocol, "--interval", "0"]);
    let run = farhaul(&[
        "bench",
        "--plain",
        "--json",
        "--protocol",
        protocol,
        "--connect",
        &server.address,
        "--bytes",
        "1MB",
    ]);
    run.succeeds();
    for end in [run.end(), server.wait_for("end")] {
        assert_eq!((end["protocol"].as_str(), end["controller"].as_str()), (Some(protocol), Some("udt-2004")), "{end}");
    }
}

#[test]
fn an_unknown_protocol_and_an_unknown_option_are_refused_with_the_known_ones() {
    for (protocol, words) in [
        ("udt-2005", &["unknown protocol 'udt-2005'", "udt, udt-2004, "][..]),
        ("udt:blast=rtt", &["'udt' has no option 'blast'", "none"]),
        ("udt-2004:blast=rtt", &["'udt-2004' has no option 'blast'", "delay-warnings=on"]),
    ] {
        farhaul(&["bench", "--plain", "--protocol", protocol, "--connect", "127.0.0.1:9"]).fails(2, words);
    }
}

#[test]
fn ends_that_speak_different_protocols_do_not_meet() {
    let server = Server::begin(&["bench", "--interval", "0"]);
    let arguments = ["bench", "--plain", PROTOCOL[0], PROTOCOL[1], "--connect", &server.address];
    let run = farhaul(&[&arguments[..], &["--connect-timeout", "600ms", "--bytes", "1MB"]].concat());
    run.fails(4, &["no answer"]);
}

#[test]
fn a_rendezvous_is_refused_with_the_reason() {
    let run = farhaul_with(
        b"",
        &[
            "pipe",
            "--plain",
            PROTOCOL[0],
            PROTOCOL[1],
            "--rendezvous",
            "--listen",
            "127.0.0.1:0",
            "--connect",
            "127.0.0.1:9",
        ],
    );
    run.fails(2, &["rendezvous"]);
}
