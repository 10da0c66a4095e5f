//! Conversations with original programs: both roles of ours against each other, and scripted peers for the faults.
//!
//! The scripted peers send bytes of the original formats.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Stdio;

use rustix::process::Signal;

use crate::process::{Scratch, Server, Started, farhaul, farhaul_where};

/// The first words of both sides of Tsunami (tsunami-udp 1.1).
const REVISION: [u8; 4] = 0x2006_1025_u32.to_be_bytes();

/// An original Tsunami server that says `script` once a client has spoken, and then `after`s the connection.
fn scripted(script: Vec<u8>, after: impl FnOnce(std::net::TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        stream.write_all(&script).unwrap();
        after(stream);
    });
    address
}

#[test]
fn files_of_a_tsunami_server_are_listed_and_copied_and_not_verified() {
    let scratch = Scratch::new();
    let (root, to) = (scratch.dir("root"), scratch.dir("to"));
    scratch.file("root/big", 2_000_001);
    scratch.file("root/small", 5);
    let kitten = ["--protocol", "tsunami:secret=kitten"];
    let mut server = Server::begin(&[&["serve", "--root", &root][..], &kitten].concat());
    let place = |name: &str| format!("tsunami://{}/{name}", server.address);
    let run = farhaul(&[&["copy", "--plain", "--list", &place("")][..], &kitten].concat());
    run.succeeds();
    let listed = String::from_utf8(run.stdout).unwrap();
    assert!(listed.contains("2000001 big\n") && listed.contains("5 small\n"), "{listed}");
    let run = farhaul(&[&["copy", "--plain", "--json", &place("*"), &to][..], &kitten].concat());
    run.succeeds();
    let end = run.end();
    assert_eq!(
        (end["verified"].as_bool(), end["files"].as_u64(), end["bytes"].as_u64()),
        (Some(false), Some(2), Some(2_000_006))
    );
    assert_eq!(end["protocol"], "tsunami");
    assert_eq!(scratch.names("to"), ["big", "small"]);
    assert!(fs::read(scratch.at("to/big")).unwrap() == fs::read(scratch.at("root/big")).unwrap());
    let secret = [("FARHAUL_TSUNAMI_SECRET", "dog")];
    let run = farhaul_where(&secret, &["copy", "--plain", &place("big"), &to]);
    run.fails(5, &["secrets differ", "--protocol tsunami:secret=kitten"]);
    let secret = [("FARHAUL_TSUNAMI_SECRET", "kitten")];
    farhaul_where(&secret, &["copy", "--plain", &place("small"), &scratch.at("again")]).succeeds();
    let run = farhaul(&[&["copy", "--plain", &place("none"), &to][..], &kitten].concat());
    run.fails(3, &["no file 'none'"]);
    assert_eq!(server.wait_for("file")["status"], "given");
    server.signal(Signal::INT);
    assert_eq!(server.end().0, 130);
}

#[test]
fn a_file_of_an_rbudp_server_is_copied_and_not_verified() {
    let scratch = Scratch::new();
    let (root, to) = (scratch.dir("root"), scratch.dir("to"));
    scratch.file("root/big", 2_000_001);
    let server = Server::begin(&["serve", "--protocol", "rbudp", "--root", &root]);
    let run = farhaul(&["copy", "--plain", "--json", &format!("rbudp://{}/big", server.address), &to]);
    run.succeeds();
    assert_eq!(run.end()["verified"], false);
    assert!(fs::read(scratch.at("to/big")).unwrap() == fs::read(scratch.at("root/big")).unwrap());
    let run = farhaul(&["copy", "--plain", &format!("rbudp://{}/none", server.address), &to]);
    run.fails(3, &["may have no such file"]);
    assert_eq!(scratch.names("to"), ["big"]);
}

#[test]
fn a_sabul_stream_reaches_stdout_as_a_whole() {
    let mut server = Server::begin(&["pipe", "--protocol", "sabul"]);
    let connected = ["pipe", "--plain", "--protocol", "sabul", "--connect", &server.address];
    let receiver = Started::begin(&connected, Stdio::null());
    let content: Vec<u8> = (0..1_000_003_u32).map(|at| (at / 251) as u8).collect();
    server.feed(&content);
    let run = receiver.end();
    run.succeeds();
    assert!(run.stdout == content);
    assert_eq!(server.end().0, 0);
}

/// Original receivers write wrong bytes and end with success.
#[test]
fn a_sabul_sender_says_that_nothing_is_verified() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut sender = Started::begin(&["pipe", "--plain", "--protocol", "sabul", "--listen", &address], Stdio::piped());
    sender.input().write_all(b"a stream").unwrap();
    let receive = || farhaul(&["pipe", "--plain", "--json", "--protocol", "sabul", "--connect", &address]);
    // Until the sender listens, nobody answers.
    let run = std::iter::repeat_with(receive).take(50).find(|run| run.code == 0).unwrap();
    assert_eq!(run.stdout, b"a stream");
    let run = sender.end();
    run.succeeds();
    assert!(run.stderr.contains("not verified") && run.stderr.contains("compare a digest"), "{}", run.stderr);
    let mut server = Server::begin(&["pipe", "--protocol", "sabul"]);
    let receiver =
        Started::begin(&["pipe", "--plain", "--protocol", "sabul", "--connect", &server.address], Stdio::null());
    server.feed(b"a stream");
    receiver.end().succeeds();
    assert_eq!(server.wait_for("end")["verified"], false);
    assert_eq!(server.end().0, 0);
}

#[test]
fn a_server_of_a_protocol_serves_farhaul_and_original_clients_at_once() {
    for (protocol, scheme) in [("tsunami", "tsunami"), ("rbudp", "rbudp")] {
        let scratch = Scratch::new();
        let (root, to) = (scratch.dir("root"), scratch.dir("to"));
        scratch.file("root/big", 2_000_001);
        let mut server = Server::begin(&["serve", "--protocol", protocol, "--root", &root]);
        let ours = format!("udt://{}/big", server.address);
        let run = farhaul(&["copy", "--plain", "--json", "--protocol", protocol, &ours, &scratch.at("to/ours")]);
        run.succeeds();
        assert_eq!(run.end()["verified"], true);
        let original = format!("{scheme}://{}/big", server.address);
        let run = farhaul(&["copy", "--plain", "--json", &original, &to]);
        run.succeeds();
        assert_eq!(run.end()["verified"], false);
        for name in ["to/ours", "to/big"] {
            assert!(fs::read(scratch.at(name)).unwrap() == fs::read(scratch.at("root/big")).unwrap(), "{name}");
        }
        let sessions = [server.wait_for("end"), server.wait_for("end")].map(|end| end["session"].as_u64());
        assert_eq!(sessions, [Some(1), Some(2)]);
        server.signal(Signal::INT);
        assert_eq!(server.end().0, 130);
    }
}

#[test]
fn a_caller_that_says_nothing_or_something_else_holds_no_place_of_a_server() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    scratch.file("root/a", 5);
    let server = Server::begin(&["serve", "--protocol", "tsunami", "--root", &root, "--max-sessions", "1"]);
    let silent: Vec<_> = (0..20).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    let mut foreign = TcpStream::connect(&server.address).unwrap();
    foreign.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    // The server closes on it: its revision is another.
    let _ = foreign.read_to_end(&mut Vec::new());
    farhaul(&["copy", "--plain", &format!("tsunami://{}/a", server.address), &scratch.dir("to")]).succeeds();
    drop(silent);
}

/// A short block without the end of a line, which a buffer of lines would hold back.
#[test]
fn the_first_bytes_of_a_sabul_stream_reach_a_reader_while_the_stream_goes_on() {
    let mut sender = Server::begin(&["pipe", "--protocol", "sabul"]);
    let connect = ["pipe", "--plain", "--protocol", "sabul", "--connect", &sender.address];
    let mut receiver = Started::begin(&connect, Stdio::null());
    let (mut input, mut output) = (sender.input(), receiver.output());
    input.write_all(b"some").unwrap();
    let mut first = [0; 4];
    output.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"some");
    drop(input);
    // A run that waits for more is ended by its limit, and then the sender fails.
    assert_eq!(sender.end().0, 0);
    receiver.end().succeeds();
}

#[test]
fn pipe_with_sabul_speaks_the_format_of_the_original() {
    let mut server = Server::begin(&["pipe", "--protocol", "sabul"]);
    let connected = ["pipe", "--plain", "--protocol", "sabul", "--connect", &server.address];
    let receiver = Started::begin(&connected, Stdio::null());
    server.feed(b"a stream");
    let run = receiver.end();
    run.succeeds();
    assert_eq!(run.stdout, b"a stream");
    assert_eq!(server.end().0, 0);
    let refused = farhaul(&["pipe", "--plain", "--protocol", "sabul:start=original", "--listen", "127.0.0.1:0"]);
    refused.fails(2, &["takes no options"]);
}

#[test]
fn another_protocol_is_named() {
    let address = scripted(b"HTTP/1.1 400 Bad Request\r\n".to_vec(), drop);
    let scratch = Scratch::new();
    let run = farhaul(&["copy", "--plain", &format!("tsunami://{address}/a"), &scratch.dir("to")]);
    run.fails(9, &[&address, "protocol violation"]);
}

#[test]
fn a_server_that_breaks_off_in_the_opening_is_lost_and_was_in_no_transfer() {
    let address = scripted(REVISION.to_vec(), drop);
    let scratch = Scratch::new();
    let run = farhaul(&["copy", "--plain", &format!("tsunami://{address}/a"), &scratch.dir("to")]);
    run.fails(8, &[&address, "ended the control connection in the opening", "may have been stopped"]);
    assert!(!run.stderr.contains("transfer"), "{}", run.stderr);
}

#[test]
fn the_help_and_its_examples_name_the_secret_of_the_original_programs() {
    for verb in ["copy", "serve"] {
        let run = farhaul(&[verb, "--help-all"]);
        run.succeeds();
        let help = String::from_utf8_lossy(&run.stdout);
        assert!(help.contains("--protocol tsunami:secret=kitten"), "{help}");
    }
    let run = farhaul(&["protocols"]);
    assert!(String::from_utf8_lossy(&run.stdout).contains("kitten for those that were given none"));
}

/// Attack C2: datagrams of a stranger change nothing.
#[test]
fn strangers_cannot_fill_a_file() {
    let scratch = Scratch::new();
    let (root, to) = (scratch.dir("root"), scratch.dir("to"));
    scratch.file("root/a", 5);
    let server = Server::begin(&["serve", "--protocol", "rbudp", "--root", &root]);
    let (host, port) = server.address.rsplit_once(':').unwrap();
    let next = port.parse::<u16>().unwrap() + 1;
    let stranger = UdpSocket::bind((host, 0)).unwrap();
    for _ in 0..10 {
        let _ = stranger.send_to(b"\0\0\0\0wrong", (host, next));
    }
    farhaul(&["copy", "--plain", &format!("rbudp://{}/a", server.address), &to]).succeeds();
    assert!(fs::read(scratch.at("to/a")).unwrap() == fs::read(scratch.at("root/a")).unwrap());
}

#[test]
fn an_interrupted_copy_leaves_nothing_behind() {
    let address = scripted(Vec::new(), |mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let scratch = Scratch::new();
    let to = scratch.dir("to");
    let copy = Started::begin(&["copy", "--plain", "--json", &format!("tsunami://{address}/a"), &to], Stdio::null());
    let copy = copy.after("start");
    copy.signal(Signal::INT);
    assert_eq!(copy.end().code, 130);
    assert!(scratch.names("to").is_empty());
}

#[test]
fn an_original_place_cannot_be_a_target() {
    let run = farhaul(&["copy", "--plain", "a", "tsunami://127.0.0.1/a"]);
    run.fails(2, &["only gives files"]);
    farhaul(&["copy", "--plain", "--list", "rbudp://127.0.0.1/"]).fails(2, &["--list takes one server"]);
    farhaul(&["copy", "--plain", "tsunami://127.0.0.1/", "."]).fails(2, &["which file?"]);
}
