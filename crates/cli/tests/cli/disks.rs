//! Disks that are full and files that cannot be read: which side, what was copied all the same, and the exit code.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use crate::limits::slow;
use crate::permissions::ordinary;
use crate::process::{Scratch, Server, Started, farhaul, farhaul_under};
use crate::requirement::runs;

/// Mounts a disk of 2 MiB at the path given next, seen by nobody else, and runs the rest.
const SMALL_DISK: &str = "mount -t tmpfs -o size=2m none \"$0\" && exec \"$@\"";

fn can_mount() -> Option<()> {
    runs(&["unshare", "-rm", "sh", "-c", "mount -t tmpfs none /mnt"], "it gives a test a disk of its own")
}

#[test]
fn a_full_disk_at_the_server_is_told_to_the_sender_with_its_side() {
    let Some(()) = can_mount() else { return };
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    let mut server =
        Server::begin_under(&["unshare", "-rm", "sh", "-c", SMALL_DISK, &root], &["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    // One file whose room is reserved first, and many small ones that fill the disk by and by.
    let large = scratch.file("large", 4_000_000);
    let many: Vec<String> = (0..8).map(|number| scratch.file(&format!("part{number}"), 400_000)).collect();
    for sources in [vec![large.as_str()], many.iter().map(String::as_str).collect()] {
        let run = farhaul(&[&["copy", "--plain", "--json"], &sources[..], &[&url]].concat());
        run.fails(7, &[&server.address, "other side", "no space left"]);
        assert_eq!(run.end()["error"]["code"], "DISK_FULL");
        let there = server.wait_for("end");
        assert_eq!(there["error"]["code"], "DISK_FULL", "{there}");
    }
    // It goes on as soon as something fits.
    farhaul(&["copy", "--plain", &scratch.file("small", 10), &url]).succeeds();
}

#[test]
fn a_full_disk_here_is_named_as_this_side() {
    let Some(()) = can_mount() else { return };
    let scratch = Scratch::new();
    let (root, here) = (scratch.dir("root"), scratch.dir("here"));
    scratch.file("root/large", 4_000_000);
    let server = Server::begin(&["serve", "--root", &root]);
    let run = farhaul_under(
        &["unshare", "-rm", "sh", "-c", SMALL_DISK, &here],
        &["copy", "--plain", &format!("udt://{}/large", server.address), &here],
    );
    run.fails(7, &["on this side", "no space left", "make room"]);
}

#[test]
fn a_file_that_may_not_be_read_fails_alone() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    for name in ["one", "two", "three"] {
        scratch.dir("tree");
        scratch.file(&format!("tree/{name}"), 10);
    }
    fs::set_permissions(scratch.at("tree/two"), Permissions::from_mode(0o0)).unwrap();
    let Some(ordinary) = ordinary() else { return };
    let server = Server::begin(&["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let run = farhaul_under(ordinary, &["copy", "--plain", "--json", "-r", &scratch.at("tree"), &url]);
    run.fails(3, &["tree/two", "permission denied"]);
    assert_eq!((&run.end()["files"], &run.end()["failed"]), (&2.into(), &1.into()), "{}", run.end());
    assert_eq!(scratch.names("root/tree"), ["one", "three"]);
}

/// A call of the server's disk takes twice as long as its callers wait for an answer, or put up with silence.
const VERY_SLOW: Duration = Duration::from_secs(2);

/// A copy with `arguments` from or to a server whose `call` is very slow.
fn copy_beside(call: &str, root: &str, source: &str, target: &str) {
    let Some(slow) = slow(call, VERY_SLOW) else { return };
    let slow: Vec<&str> = slow.iter().map(String::as_str).collect();
    let server = Server::begin_under(&slow, &["serve", "--root", root]);
    let place = |place: &str| place.replace("SERVER", &format!("udt://{}", server.address));
    let impatient = ["copy", "--plain", "--json", "-r", "--connect-timeout", "1s", "--timeout", "1s"];
    let run = farhaul(&[&impatient[..], &[&place(source), &place(target)]].concat());
    run.succeeds();
    let end = run.end();
    assert_eq!((&end["files"], &end["verified"]), (&1.into(), &true.into()), "{end}");
    assert!(end["seconds"].as_f64() >= Some(VERY_SLOW.as_secs_f64()), "{call} was not slow: {end}");
}

#[test]
fn a_server_that_synchronises_slowly_only_makes_the_copy_slow() {
    let scratch = Scratch::new();
    copy_beside("fsync", &scratch.dir("root"), &scratch.file("file", 3), "SERVER/");
    assert_eq!(scratch.names("root"), ["file"]);
}

#[test]
fn a_server_that_makes_directories_slowly_only_makes_the_copy_slow() {
    let scratch = Scratch::new();
    copy_beside("mkdirat", &scratch.dir("root"), &scratch.file("file", 3), "SERVER/directory/");
    assert_eq!(scratch.names("root/directory"), ["file"]);
}

#[test]
fn a_server_that_lists_directories_slowly_only_makes_the_copy_slow() {
    let scratch = Scratch::new();
    let (root, target) = (scratch.dir("root"), scratch.dir("here"));
    scratch.file("root/file", 3);
    copy_beside("getdents64", &root, "SERVER/", &target);
    assert_eq!(scratch.names("here"), ["file"]);
}

/// Lets the program open a hundred files and no more.
const FEW_DESCRIPTORS: [&str; 4] = ["sh", "-c", "ulimit -n 100 && exec \"$0\" \"$@\"", "env"];

#[test]
fn trees_deeper_than_the_descriptors_are_copied_for_several_clients_at_once() {
    const DEPTH: usize = 120;
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    let mut server = Server::begin_under(&FEW_DESCRIPTORS, &["serve", "--root", &root]);
    server.forget_records();
    let (url, below) = (format!("udt://{}", server.address), "/d".repeat(DEPTH - 1));
    let clients = ["one", "two", "three", "four"];
    for client in clients {
        let mut path = format!("from/{client}");
        for _ in 0..DEPTH {
            scratch.dir(&path);
            scratch.file(&format!("{path}/z"), 10);
            path.push_str("/d");
        }
    }
    let run_all = |copies: [[String; 2]; 4]| {
        let begin = |[from, to]: [String; 2]| {
            let arguments = ["copy", "--plain", "-r", &from, &to];
            Started::begin_under(&FEW_DESCRIPTORS, &arguments, Stdio::null())
        };
        for run in copies.map(begin).map(Started::end) {
            run.succeeds();
        }
    };
    run_all(clients.map(|client| [scratch.at(&format!("from/{client}")), format!("{url}/")]));
    let back = scratch.dir("back");
    run_all(clients.map(|client| [format!("{url}/{client}"), format!("{back}/")]));
    for client in clients {
        assert_eq!(scratch.names(&format!("back/{client}{below}")), ["z"]);
    }
}

#[test]
fn a_server_takes_no_more_sessions_than_it_has_descriptors_for_and_says_so() {
    let scratch = Scratch::new();
    let arguments = ["serve", "--plain", "--json", "--root", &scratch.dir("root"), "--listen", "127.0.0.1:0"];
    let mut serve = Started::begin_under(&FEW_DESCRIPTORS, &arguments, Stdio::null()).after("start");
    let allowed = serve.record["settings"]["max_sessions"].as_u64().unwrap();
    assert!((4..20).contains(&allowed), "{}", serve.record);
    let warning = serve.next("warning");
    let words = format!("open files allows {allowed} sessions at a time, not 64");
    assert!(warning["message"].as_str().unwrap().contains(&words), "{warning}");
    serve.signal(Signal::TERM);
    assert_eq!(serve.end().code, 143);
}

#[test]
fn a_server_that_is_stopped_while_it_synchronises_tells_the_sender_that_the_file_is_safe() {
    let Some(slow) = slow("fsync", VERY_SLOW) else { return };
    let slow: Vec<&str> = slow.iter().map(String::as_str).collect();
    let scratch = Scratch::new();
    let (file, root) = (scratch.file("file", 3), scratch.dir("root"));
    let mut server = Server::begin_under(&slow, &["serve", "--interval", "50ms", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let copy = Started::begin(&["copy", "--plain", &file, &url], Stdio::null());
    while server.wait_for("interval")["bytes_total"] == 0 {}
    server.signal(Signal::TERM);
    copy.end().succeeds();
    assert_eq!(scratch.names("root"), ["file"]);
    assert_eq!(server.end().0, 143);
}
