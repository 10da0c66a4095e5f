//! What uploads leave on the disk of a server: modes, space, and the files beyond its limits.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use rustix::process::Signal;

use crate::process::{Scratch, Server, farhaul, farhaul_with};
use crate::requirement::runs;
use crate::secured::User;

fn mode(path: &str) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &str, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_confined_server_keeps_to_its_umask_and_to_the_modes_of_what_stands_there() {
    let scratch = Scratch::new();
    let (tree, root) = (scratch.dir("tree"), scratch.dir("root"));
    scratch.dir("root/tree");
    for name in ["tree/new", "tree/old", "root/tree/old"] {
        scratch.file(name, 10);
    }
    scratch.dir("tree/deep");
    set_mode(&tree, 0o777);
    set_mode(&scratch.at("tree/old"), 0o777);
    set_mode(&scratch.at("root/tree"), 0o1770);
    set_mode(&scratch.at("root/tree/old"), 0o640);
    let server = Server::begin_under(&["sh", "-c", "umask 077; exec \"$@\"", "sh"], &["serve", "--root", &root]);
    farhaul(&["copy", "--plain", "-r", &tree, &format!("udt://{}/", server.address)]).succeeds();
    let modes = ["", "/old", "/new", "/deep"].map(|name| mode(&scratch.at(&format!("root/tree{name}"))));
    assert_eq!(modes, [0o1770, 0o640, 0o600, 0o700]);
}

#[test]
fn b19_a_file_that_claims_more_than_its_key_may_move_takes_no_space_at_all() {
    let scratch = Scratch::new();
    let (alice, bob) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"));
    let root = scratch.dir("root");
    alice.admits(&bob, &format!("bob path={root},write bytes=1MB"));
    let server = Server::begin_as(&alice.0, &["serve", "--root", &root]);
    // Sparse: only its size is large.
    let large = scratch.file("large", 10);
    File::options().write(true).open(&large).unwrap().set_len(1 << 30).unwrap();
    let url = format!("udt://{}/", server.address);
    let copy = |file: &str| bob.runs(&["copy", "--host-key-policy", "accept-new", file, &url]);
    copy(&large).fails(3, &["bytes=SIZE"]);
    assert!(scratch.names("root").is_empty());
    // It has used none of them.
    copy(&scratch.file("whole", 1_000_000)).succeeds();
}

#[test]
fn a_file_beyond_the_limit_of_a_server_fails_alone_and_no_signal_of_a_limit_ends_the_server() {
    let wrapper = ["prlimit", "--fsize=1000000"];
    if runs(&[&wrapper[..], &["true"]].concat(), "it limits the size of files").is_none() {
        return;
    }
    let scratch = Scratch::new();
    let (tree, root) = (scratch.dir("tree"), scratch.dir("root"));
    for (name, len) in [("tree/a", 10), ("tree/large", 1_000_001), ("tree/whole", 1_000_000)] {
        scratch.file(name, len);
    }
    let server = Server::begin_under(&wrapper, &["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let run = farhaul(&["copy", "--plain", "-r", &tree, &url]);
    run.fails(3, &["tree/large was not copied: file too large", "1000000 bytes (ulimit -f)", "other side"]);
    assert_eq!(scratch.names("root/tree"), ["a", "whole"]);
    // The size of stdin is not known before its end.
    let run = farhaul_with(&[7; 1_000_001], &["copy", "--plain", "-", &format!("{url}stdin")]);
    run.fails(3, &["file too large", "ulimit -f"]);
    server.signal(Signal::XFSZ);
    farhaul(&["copy", "--plain", &scratch.at("tree/a"), &url]).succeeds();
}

#[test]
fn a_server_whose_log_reaches_the_limit_of_files_goes_on_serving() {
    let wrapper = ["prlimit", "--fsize=4000"];
    if runs(&[&wrapper[..], &["true"]].concat(), "it limits the size of files").is_none() {
        return;
    }
    let scratch = Scratch::new();
    let (file, root, log) = (scratch.file("file", 10), scratch.dir("root"), scratch.at("log"));
    let words = ["sh", "-c", "f=$1; shift; exec \"$@\" 2>>\"$f\"", "sh", &log];
    let mut server = Server::begin_under(&[&wrapper[..], &words].concat(), &["serve", "--root", &root]);
    fs::write(&log, [b'x'; 4_000]).unwrap();
    for _ in 0..3 {
        // Something that the server warns of.
        let endpoint = farhaul::Endpoint::plain("127.0.0.1:0").unwrap();
        let stream = endpoint.connect(server.address.parse::<std::net::SocketAddr>().unwrap()).unwrap();
        stream.send(&[0; 64]).unwrap();
        server.wait_for("warning");
    }
    farhaul(&["copy", "--plain", &file, &format!("udt://{}/", server.address)]).succeeds();
}

#[test]
fn a_plain_server_ends_in_order_when_its_terminal_or_its_processor_time_ends() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    for (signal, code) in [(Signal::XCPU, 143), (Signal::HUP, 129)] {
        let server = Server::begin(&["serve", "--root", &root]);
        server.signal(signal);
        assert_eq!(server.end_with_records().0, code);
    }
    let (mut server, file) = (Server::begin_under(&["nohup"], &["serve", "--root", &root]), scratch.file("file", 10));
    server.signal(Signal::HUP);
    farhaul(&["copy", "--plain", &file, &format!("udt://{}/", server.address)]).succeeds();
    server.wait_for("end");
}
