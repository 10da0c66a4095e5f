//! Copies whose connection is lost, and which go on by themselves.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;

use crate::process::{Reporting, Scratch, Server, Started, farhaul};

/// A file of more than a second at 50 Mbit/s.
const SIZE: usize = 10_000_000;

/// A copy that is under way.
fn begin(give_up: &str, from: &str, to: &str) -> Reporting {
    let options = ["--plain", "--json", "--timeout", "1s", "--connect-timeout", "1s", "--interval", "400ms"];
    let slow = ["--rate", "50mbit", "--give-up", give_up, "-r"];
    Started::begin(&[&["copy"][..], &options, &slow, &[from, to]].concat(), Stdio::null()).after("interval")
}

fn kill(server: Server) -> String {
    let address = server.address.clone();
    server.signal(Signal::KILL);
    server.end();
    address
}

#[test]
fn a_copy_goes_on_once_its_server_is_there_again() {
    for is_pull in [false, true] {
        let scratch = Scratch::new();
        let (root, tree) = (scratch.dir("root"), if is_pull { "root/tree" } else { "tree" });
        scratch.dir(tree);
        scratch.file(&format!("{tree}/a"), 1000);
        scratch.file(&format!("{tree}/b"), SIZE);
        scratch.file(&format!("{tree}/c"), 1000);
        let serve = ["serve", "--timeout", "1s", "--root", &root];
        let server = Server::begin(&serve);
        let (url, here) = (format!("udt://{}/tree", server.address), scratch.at("tree"));
        let mut copy = if is_pull { begin("1min", &url, &here) } else { begin("1min", &here, &url) };
        let address = kill(server);
        let warning = copy.next("warning")["message"].as_str().unwrap().to_owned();
        assert!(warning.contains("the next attempt follows in 2.00 s"), "{warning}");
        let server = Server::begin_at(&address, &serve);
        let run = copy.end();
        run.succeeds();
        let end = run.end();
        assert_eq!((end["files"].as_u64(), end["bytes"].as_u64()), (Some(3), Some(SIZE as u64 + 2000)), "{end}");
        let again = end["moved_bytes"].as_u64().unwrap() - SIZE as u64;
        assert!(again < 4 << 20, "{again} bytes twice: {end}");
        for name in ["a", "b", "c"] {
            assert!(fs::read(format!("{root}/tree/{name}")).unwrap() == fs::read(format!("{here}/{name}")).unwrap());
        }
        assert_eq!(scratch.names(if is_pull { "tree" } else { "root/tree" }), ["a", "b", "c"]);
        drop(server);
    }
}

#[test]
fn a_copy_gives_up_in_time_and_at_once_if_it_is_told_to() {
    let scratch = Scratch::new();
    let (file, root) = (scratch.file("file", SIZE), scratch.dir("root"));
    let server = Server::begin(&["serve", "--root", &root]);
    let copy = begin("3s", &file, &format!("udt://{}/", server.address));
    kill(server);
    let run = copy.end();
    run.fails(8, &["no progress for 3.00 s", "the same command goes on"]);
    let server = Server::begin(&["serve", "--root", &root]);
    let copy = begin("1h", &file, &format!("udt://{}/", server.address));
    kill(server);
    let mut waiting = copy;
    waiting.next("warning");
    waiting.signal(Signal::INT);
    assert_eq!(waiting.end().code, 130);
}

#[test]
fn what_never_began_and_what_is_a_stream_fails_at_once() {
    let scratch = Scratch::new();
    let (file, root) = (scratch.file("file", 10), scratch.dir("root"));
    let nobody = ["copy", "--plain", "--give-up", "1h", "--connect-timeout", "1s", &file, "udt://127.0.0.1:9/"];
    farhaul(&nobody).fails(4, &["127.0.0.1:9"]);
    let server = Server::begin(&["serve", "--root", &root]);
    let (file, url) = (scratch.file("long", SIZE), format!("udt://{}/long", server.address));
    let line = format!("exec \"$0\" \"$@\" < '{file}'");
    let arguments = ["copy", "--plain", "--json", "--timeout", "1s", "--rate", "50mbit", "--give-up", "1h", "-", &url];
    let copy =
        Started::begin_under(&["sh", "-c", &line], &[&arguments[..], &["--interval", "400ms"]].concat(), Stdio::null());
    let copy = copy.after("interval");
    kill(server);
    assert_eq!(copy.end().code, 8);
}
