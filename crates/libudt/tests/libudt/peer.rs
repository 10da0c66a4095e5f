//! `interop/libudt-peer`, unchanged, on both libraries in both roles.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::Stdio;

use crate::library::{Library, Running, peer, scratch, skip};

use Library::{Farhaul, Reference};

/// Time after which a peer ends itself.
const TIMEOUT: &str = "20";

/// Who serves and who calls: with itself, and with the reference library in both roles.
const ROLES: [[Library; 2]; 3] = [[Farhaul, Farhaul], [Farhaul, Reference], [Reference, Farhaul]];

/// The end of a run: exit status and output of one side.
type End = (Option<i32>, String);

struct Server {
    running: Running,
    output: BufReader<std::process::ChildStdout>,
    address: String,
}

fn start(library: Library, arguments: &str) -> Option<Running> {
    let mut command = library.command(peer()?)?;
    command.args(arguments.split_whitespace()).args(["--timeout", TIMEOUT]).stdout(Stdio::piped());
    Some(Running(command.spawn().unwrap()))
}

fn listen(library: Library, at: &str, arguments: &str) -> Option<Server> {
    let mut running = start(library, &format!("listen {at}:0 {arguments}"))?;
    let mut output = BufReader::new(running.0.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening ").unwrap_or_else(|| panic!("{line}")).to_owned();
    Some(Server { running, output, address })
}

fn end(mut running: Running, mut output: impl Read) -> End {
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    (running.0.wait().unwrap().code(), text)
}

/// Runs a server and a client on these libraries. Returns the ends of both.
fn pair([server, client]: [Library; 2], at: &str, serve: &str, call: &str) -> Option<[End; 2]> {
    let Server { running, output, address } = listen(server, at, serve)?;
    let mut caller = start(client, &format!("connect {address} {call}"))?;
    let from_caller = caller.0.stdout.take().unwrap();
    let called = end(caller, from_caller);
    Some([end(running, output), called])
}

/// The values of a field over all lines, sorted.
fn field(text: &str, name: &str) -> Vec<String> {
    let values = text.lines().filter_map(|line| {
        let value = line.split_once(&format!("\"{name}\":"))?.1;
        Some(value.split([',', '}']).next()?.to_owned())
    });
    let mut values: Vec<String> = values.collect();
    values.sort();
    values
}

/// Runs both sides in all roles. Fields of the server must equal those of the client.
fn check(at: &str, serve: &str, call: &str, equal: &[(&str, &str)]) {
    for roles in ROLES {
        let Some([served, called]) = pair(roles, at, serve, call) else { return };
        assert_eq!((served.0, called.0), (Some(0), Some(0)), "{roles:?}: {serve} / {call}\n{served:?}\n{called:?}");
        for (of_server, of_client) in equal {
            let (server, client) = (field(&served.1, of_server), field(&called.1, of_client));
            assert!(!server.is_empty() && server == client, "{roles:?}: {serve} / {call}\n{served:?}\n{called:?}");
        }
    }
}

const LOOPBACK: &str = "127.0.0.1";
/// A sender of messages that closes as soon as all are acknowledged.
const UNAWAITED: &str = "send --messages --count 100 --message-size 5000 --in-order 1";
const TO_SERVER: (&str, &str) = ("received_digest", "sent_digest");
const TO_CLIENT: (&str, &str) = ("sent_digest", "received_digest");

#[test]
fn streams_arrive_in_both_directions() {
    check(LOOPBACK, "recv", "send --bytes 5000000 --seed 5", &[TO_SERVER]);
    check(LOOPBACK, "send --bytes 5000000 --start-delay 50", "recv --expect 5000000", &[TO_CLIENT]);
    let both = "both --bytes 3000000 --start-delay 50";
    check(LOOPBACK, both, "both --bytes 3000000 --seed 6", &[TO_SERVER, TO_CLIENT]);
}

#[test]
fn messages_arrive_in_order_or_not() {
    // The reference library loses messages that were not taken out when the peer closes, so the sender closes last.
    let send = "send --messages --count 100 --message-size 5000 --close-delay 20000";
    let recv = "recv --messages --expect 100";
    check(LOOPBACK, recv, &format!("{send} --in-order 1"), &[TO_SERVER]);
    check(LOOPBACK, &format!("{send} --start-delay 50"), recv, &[TO_CLIENT]);
    // The drop-in library keeps them.
    for client in [Farhaul, Reference] {
        let Some([served, called]) = pair([Farhaul, client], LOOPBACK, "recv --messages", UNAWAITED) else { return };
        assert_eq!(field(&served.1, "received_digest"), field(&called.1, "sent_digest"), "{served:?}\n{called:?}");
    }
}

#[test]
fn sockets_share_a_port_and_have_options() {
    check(LOOPBACK, "recv --sockets 4", "send --sockets 4 --bytes 500000", &[TO_SERVER]);
    let options =
        "send --bytes 2000000 --mss 1400 --fc 512 --sndbuf 400000 --rcvbuf 400000 --maxbw 20000000 --linger 20";
    check(LOOPBACK, "recv --rcvbuf 300000 --udp-rcvbuf 1000000", options, &[TO_SERVER]);
}

#[test]
fn sockets_of_ipv6_meet() {
    match UdpSocket::bind("[::1]:0") {
        Ok(_) => check("[::1]", "recv --ipv6", "send --bytes 1000000 --ipv6 --mss 1400", &[TO_SERVER]),
        Err(error) => skip(&format!("no ::1: {error}")).unwrap_or(()),
    }
}

#[test]
fn files_arrive_and_a_full_disk_is_signalled() {
    let (file, copy) = (scratch().join("file"), scratch().join("copy"));
    let content: Vec<u8> = (0..2_000_001_u32).map(|number| (number % 251) as u8).collect();
    std::fs::write(&file, &content).unwrap();
    let serve = format!("recv --recvfile --out {} --expect {}", copy.display(), content.len());
    check(LOOPBACK, &serve, &format!("send --sendfile --file {}", file.display()), &[]);
    if let Ok(copied) = std::fs::read(&copy) {
        assert!(copied == content);
    }
    for roles in ROLES {
        let (serve, call) = ("recv --error-signal --expect 20000000", "send --bytes 20000000 --sndbuf 200000");
        let Some([served, called]) = pair(roles, LOOPBACK, serve, call) else { return };
        assert!(served.1.contains("\"code\":4004"), "{roles:?}: {served:?}");
        // The reference library forgets the signal if the end of the connection comes first.
        let is_told = called.1.contains("\"code\":7000");
        assert!(is_told || roles[1] == Reference && called.1.contains("\"code\":2001"), "{roles:?}: {called:?}");
    }
}

#[test]
fn both_sides_of_a_rendezvous_call() {
    for [one, two] in ROLES {
        // The ports that the system gave to sockets a moment ago are free.
        let ports = [(); 2].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        let [here, there] = ports.map(|socket| socket.local_addr().unwrap().to_string());
        let action = "both --bytes 1000000 --start-delay 500";
        let Some(mut first) = start(one, &format!("rendezvous --local {here} --peer {there} {action}")) else { return };
        let mut second = start(two, &format!("rendezvous --local {there} --peer {here} {action} --seed 2")).unwrap();
        let outputs = [first.0.stdout.take().unwrap(), second.0.stdout.take().unwrap()];
        let [of_first, of_second] = outputs;
        let ends = [end(first, of_first), end(second, of_second)];
        assert!(ends.iter().all(|(status, _)| *status == Some(0)), "{one:?} {two:?}: {ends:?}");
        assert_eq!(field(&ends[0].1, "received_digest"), field(&ends[1].1, "sent_digest"));
        assert_eq!(field(&ends[1].1, "received_digest"), field(&ends[0].1, "sent_digest"));
    }
}

#[test]
fn a_controller_of_the_program_answers_messages() {
    // Ours at both ends is in the test of controllers; here the peer's own class paces and echoes.
    check(LOOPBACK, "recv --echo-custom", "send --bytes 1000000 --echo-custom", &[TO_SERVER]);
}
