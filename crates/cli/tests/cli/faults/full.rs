//! A disk that fills up while it is written to.

use std::process::Stdio;

use super::{BLASTS, SENDERS, failure, nothing_is_final};
use crate::process::{Scratch, Server, Started, farhaul, farhaul_under, records};
use crate::requirement::runs;

/// Writes to the disk that succeed before it is full.
const WRITES: u32 = 5;
/// Several writes of any protocol.
const SIZE: usize = 8_000_000;

/// Runs a program whose disk is full after a few writes, whatever room was promised before.
fn filling_up() -> Option<Vec<String>> {
    runs(&["strace", "-f", "-o", "/dev/null", "true"], "it makes system calls fail")?;
    let inject = format!("inject=pwrite64:error=ENOSPC:when={}+", WRITES + 1);
    Some(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64", "-e", &inject].map(str::to_owned).into())
}

#[test]
fn a_disk_of_a_server_that_fills_up_in_a_blast_is_named_at_both_ends() {
    let Some(wrapper) = filling_up() else { return };
    let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).collect();
    for protocol in BLASTS {
        let scratch = Scratch::new();
        let (file, root) = (scratch.file("file", SIZE), scratch.dir("root"));
        let mut server = Server::begin_under(&wrapper, &["serve", "--protocol", protocol, "--root", &root]);
        let url = format!("udt://{}/", server.address);
        let run = farhaul(&["copy", "--plain", "--json", "--protocol", protocol, &file, &url]);
        run.fails(7, &[&server.address, "other side", "no space left"]);
        assert_eq!(failure(&run.end()), (Some(7), Some("DISK_FULL")), "{protocol}: {}", run.end());
        let there = server.wait_for("end");
        assert_eq!(failure(&there), (Some(7), Some("DISK_FULL")), "{protocol}: {there}");
        nothing_is_final(&scratch, "root");
    }
}

#[test]
fn a_disk_here_that_fills_up_in_a_blast_is_named_as_this_side() {
    let Some(wrapper) = filling_up() else { return };
    let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).collect();
    for protocol in BLASTS {
        let scratch = Scratch::new();
        let (root, here) = (scratch.dir("root"), scratch.dir("here"));
        scratch.file("root/file", SIZE);
        let server = Server::begin(&["serve", "--protocol", protocol, "--root", &root]);
        let url = format!("udt://{}/file", server.address);
        let run = farhaul_under(&wrapper, &["copy", "--plain", "--json", "--protocol", protocol, &url, &here]);
        run.fails(7, &["on this side", "no space left", "make room"]);
        assert_eq!(failure(&run.end()), (Some(7), Some("DISK_FULL")), "{protocol}");
        nothing_is_final(&scratch, "here");
    }
}

#[test]
fn a_disk_that_fills_up_while_an_original_gives_a_file_is_named_and_nothing_remains() {
    let Some(wrapper) = filling_up() else { return };
    let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).collect();
    for original in SENDERS {
        let scratch = Scratch::new();
        let (root, here) = (scratch.dir("root"), scratch.dir("here"));
        scratch.file("root/file", SIZE);
        let mut server = Server::begin(&["serve", "--protocol", original, "--root", &root]);
        let place = format!("{original}://{}/file", server.address);
        let run = farhaul_under(&wrapper, &["copy", "--plain", "--json", &place, &here]);
        run.fails(7, &["on this side", "no space left", "make room"]);
        assert!(!run.stderr.contains(".fhpart"), "the incomplete file is gone: {}", run.stderr);
        assert_eq!(failure(&run.end()), (Some(7), Some("DISK_FULL")), "{original}");
        assert!(scratch.names("here").is_empty(), "{original}");
        let there = server.wait_for("end");
        assert_eq!(failure(&there), (Some(8), Some("PEER_LOST")), "{original}: {there}");
    }
}

#[test]
fn a_full_disk_behind_a_pipe_over_any_blast_is_named() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let kinds = BLASTS.map(|protocol| ["--protocol", protocol]);
    for kind in &kinds {
        let mut server = Server::begin(&[&["pipe"][..], kind].concat());
        let connect = [&["pipe", "--plain", "--json", "--connect", &server.address][..], kind].concat();
        let receiver = Started::begin_to(&connect, Stdio::null(), full().into());
        server.feed(&vec![7; 50_000]);
        let run = receiver.end();
        let end = records(&run.stderr).pop().unwrap();
        assert_eq!((run.code, &end["error"]["code"]), (7, &"DISK_FULL".into()), "{kind:?}: {end}");
        assert!(end["error"]["message"].as_str().unwrap().contains("stdout"), "{kind:?}: {end}");
    }
}
