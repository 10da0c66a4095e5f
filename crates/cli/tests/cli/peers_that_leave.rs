//! A peer that leaves in the middle of a transfer. Both ends fail with an error that names the peer, and the incomplete
//! file keeps its temporary name.

use std::process::Stdio;

use rustix::process::Signal;

use crate::process::{Reporting, Scratch, Server, Started, is_temporary};

/// Files of the tree that breaks off, and the bytes of each.
const FILES: u64 = 60;
const SIZE: u64 = 200_000;

/// A copy of many files that ends after `many` of them are in place counts those, and no others.
#[track_caller]
fn counts_what_was_done(many: usize, ends: impl FnOnce(&Server, &Reporting)) {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    scratch.dir("tree");
    for number in 0..FILES {
        scratch.file(&format!("tree/{number:02}"), SIZE as usize);
    }
    let mut server = Server::begin(&["serve", "--timeout", "1s", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let slow = ["copy", "--plain", "--json", "--timeout", "1s", "--rate", "20mbit", "-r", &scratch.at("tree"), &url];
    let mut copy = Started::begin(&slow, Stdio::null()).after("file");
    for _ in 1..many {
        copy.next("file");
    }
    ends(&server, &copy);
    let run = copy.end();
    let end = run.end();
    assert!(end["error"].is_object(), "{end}");
    let told = many as u64 + run.records().iter().filter(|record| record["status"] == "verified").count() as u64;
    assert!(told < FILES, "it broke off: {end}");
    assert_eq!((end["files"].as_u64(), end["bytes"].as_u64()), (Some(told), Some(told * SIZE)), "{end}");
    assert_eq!((&end["failed"], &end["verified"]), (&0.into(), &false.into()), "{end}");
    // A server that lives has counted the same files, or one whose confirmation was in flight.
    if run.code != 8 {
        let there = server.wait_for("end");
        let files = there["files"].as_u64().unwrap();
        assert!(files >= told && there["bytes"].as_u64() == Some(files * SIZE), "{there}");
    }
}

#[test]
fn a_copy_whose_server_is_killed_counts_the_files_that_were_in_place() {
    counts_what_was_done(5, |server, _| server.signal(Signal::KILL));
}

#[test]
fn a_copy_that_is_interrupted_counts_the_files_that_were_in_place_on_both_sides() {
    counts_what_was_done(5, |_, copy| copy.signal(Signal::INT));
}

/// A server and a copy to it that is under way, slow enough to be in its middle for a long time.
struct Copying {
    scratch: Scratch,
    server: Server,
    copy: Reporting,
}

impl Copying {
    /// Through `through`, if that is not the server itself.
    fn begin(through: impl FnOnce(&Server) -> String) -> Self {
        let scratch = Scratch::new();
        let (file, root) = (scratch.file("file", 60_000_000), scratch.dir("root"));
        let server = Server::begin(&["serve", "--timeout", "1s", "--root", &root]);
        let url = format!("udt://{}/", through(&server));
        let slow = ["copy", "--plain", "--json", "--timeout", "1s", "--interval", "50ms", "--rate", "20mbit"];
        let copy = Started::begin(&[&slow[..], &[&file, &url]].concat(), Stdio::null()).after("interval");
        Self { scratch, server, copy }
    }

    fn direct() -> Self {
        Self::begin(|server| server.address.clone())
    }

    /// The sender ended because its peer is lost.
    #[track_caller]
    fn sender_ends(self) {
        let run = self.copy.end();
        run.fails(8, &["127.0.0.1:", "nothing heard", "incomplete file", ".fhpart"]);
        assert_eq!(run.end()["error"]["code"], "PEER_LOST");
    }

    /// The server's session ended because its peer is lost.
    #[track_caller]
    fn server_ends(&mut self) {
        let end = self.server.wait_for("end");
        assert_eq!((&end["exit_code"], &end["error"]["code"]), (&8.into(), &"PEER_LOST".into()), "{end}");
    }

    #[track_caller]
    fn incomplete_file_keeps_its_temporary_name(&self) {
        let names = self.scratch.names("root");
        assert!(
            !names.is_empty() && names.iter().all(|name| is_temporary(name) && name.starts_with(".file.")),
            "{names:?}"
        );
    }
}

#[test]
fn a_server_that_is_killed_in_the_middle_is_lost_to_the_sender() {
    let copying = Copying::direct();
    copying.server.signal(Signal::KILL);
    copying.incomplete_file_keeps_its_temporary_name();
    copying.sender_ends();
}

#[test]
fn a_server_that_is_stopped_in_the_middle_is_lost_to_the_sender() {
    let mut copying = Copying::direct();
    copying.server.signal(Signal::INT);
    let end = copying.server.wait_for("end");
    let message = end["error"]["message"].as_str().unwrap();
    assert!(message.contains("incomplete file is") && message.contains("/.file."), "{end}");
    copying.incomplete_file_keeps_its_temporary_name();
    let run = copying.copy.end();
    run.fails(8, &["127.0.0.1:", "incomplete file", ".fhpart"]);
    assert_eq!(run.end()["error"]["code"], "PEER_LOST");
}

#[test]
fn a_sender_that_is_killed_in_the_middle_is_lost_to_the_server() {
    let mut copying = Copying::direct();
    copying.copy.signal(Signal::KILL);
    copying.server_ends();
    copying.incomplete_file_keeps_its_temporary_name();
}

#[test]
fn a_server_that_is_suspended_is_given_up_and_knows_it_when_it_wakes() {
    let mut copying = Copying::direct();
    copying.server.signal(Signal::STOP);
    let copy = copying.copy.end();
    copy.fails(8, &["nothing heard", "incomplete file"]);
    copying.server.signal(Signal::CONT);
    let end = copying.server.wait_for("end");
    assert_eq!(end["error"]["code"], "PEER_LOST", "{end}");
    let names = copying.scratch.names("root");
    assert!(!names.is_empty() && names.iter().all(|name| is_temporary(name)), "{names:?}");
}

#[test]
fn a_sender_that_is_suspended_is_given_up_and_knows_it_when_it_wakes() {
    let mut copying = Copying::direct();
    copying.copy.signal(Signal::STOP);
    copying.server_ends();
    copying.incomplete_file_keeps_its_temporary_name();
    copying.copy.signal(Signal::CONT);
    let run = copying.copy.end();
    assert_eq!((run.code, &run.end()["error"]["code"]), (8, &"PEER_LOST".into()), "{}", run.stderr);
}

#[test]
fn ends_that_are_cut_off_from_each_other_both_give_up() {
    let mut relay = None;
    let mut copying = Copying::begin(|server| {
        let arguments = ["relay", "--json", "--listen", "127.0.0.1:0", "--to", &server.address];
        let begun = Started::begin(&arguments, Stdio::null()).after("start");
        let address = begun.record["local"].as_str().unwrap().to_owned();
        relay = Some(begun);
        address
    });
    relay.as_ref().unwrap().signal(Signal::STOP);
    copying.server_ends();
    copying.incomplete_file_keeps_its_temporary_name();
    copying.sender_ends();
    relay.unwrap().signal(Signal::KILL);
}
