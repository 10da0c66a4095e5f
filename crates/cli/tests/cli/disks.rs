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
fn what_a_full_disk_kept_away_is_named_beside_the_file_that_did_not_fit() {
    let Some(()) = can_mount() else { return };
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    let server = Server::begin_under(&["unshare", "-rm", "sh", "-c", SMALL_DISK, &root], &["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    scratch.dir("tree");
    scratch.file("tree/inside", 10);
    let sources = [("a-large", 4_000_000), ("s.txt", 5)].map(|(name, size)| scratch.file(name, size));
    let arguments = ["copy", "--plain", "-r", &scratch.at("tree"), &sources[0], &sources[1], &url];
    farhaul(&arguments).fails(7, &["a-large was not copied", "no space left", "2 more were not copied: s.txt, tree"]);
    let run = farhaul(&[&arguments[..], &["--json"]].concat());
    assert_eq!((&run.end()["files"], &run.end()["failed"]), (&0.into(), &3.into()), "{}", run.end());
    let failed = run.records().into_iter().filter(|record| record["status"] == "failed");
    let names: Vec<_> = failed.map(|record| record["path"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, ["a-large", "s.txt", "tree"]);
}

#[test]
fn a_full_disk_here_is_named_as_this_side() {
    let Some(()) = can_mount() else { return };
    let scratch = Scratch::new();
    let (root, here) = (scratch.dir("root"), scratch.dir("here"));
    scratch.file("root/large", 4_000_000);
    scratch.file("root/small", 4);
    let server = Server::begin(&["serve", "--root", &root]);
    let [large, small] = ["large", "small"].map(|name| format!("udt://{}/{name}", server.address));
    let run =
        farhaul_under(&["unshare", "-rm", "sh", "-c", SMALL_DISK, &here], &["copy", "--plain", &small, &large, &here]);
    run.fails(7, &["on this side", "no space left", "make room", "1 more was not copied: small"]);
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
    run.fails(3, &["tree/two", "permission denied", "2 files of 20 B were copied and verified"]);
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

// Waits for 2 s in each call that reads the directory. A listing needs two of them: the second one finds the end.
#[test]
fn a_server_that_lists_directories_slowly_only_makes_the_copy_slow() {
    let scratch = Scratch::new();
    let (root, target) = (scratch.dir("root"), scratch.dir("here"));
    scratch.file("root/file", 3);
    copy_beside("getdents64", &root, "SERVER/", &target);
    assert_eq!(scratch.names("here"), ["file"]);
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

/// Removes everything from the disk of a server, which nobody else sees.
fn make_room(server: &Server, root: &str) {
    let process = server.process().to_string();
    let enter = ["nsenter", "--preserve-credentials", "-U", "-m", "-t", &process, "sh", "-c", "rm \"$0\"/big*", root];
    assert!(std::process::Command::new(enter[0]).args(&enter[1..]).status().unwrap().success());
}

#[test]
fn a_copy_that_waits_for_space_goes_on_once_there_is_room() {
    let Some(()) = can_mount() else { return };
    for (sources, what) in [(vec![("large", 1_800_000)], "a file"), (vec![("part", 40_000); 40], "many files")] {
        let scratch = Scratch::new();
        let root = scratch.dir("root");
        let server =
            Server::begin_under(&["unshare", "-rm", "sh", "-c", SMALL_DISK, &root], &["serve", "--root", &root]);
        let url = format!("udt://{}/", server.address);
        farhaul(&["copy", "--plain", &scratch.file("big", 1_500_000), &url]).succeeds();
        let sources: Vec<String> =
            sources.iter().enumerate().map(|(at, (name, size))| scratch.file(&format!("{name}{at}"), *size)).collect();
        let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
        let copy = [&["copy", "--plain", "--json", "--wait-for-space"], &sources[..], &[&url]].concat();
        let mut copy = Started::begin(&copy, Stdio::null());
        if sources.len() == 1 {
            copy.says("the disk of the other side is full");
        }
        make_room(&server, &root);
        let run = copy.end();
        run.succeeds();
        assert_eq!(run.end()["files"], sources.len(), "{what}");
    }
}

#[test]
fn a_copy_that_waits_for_space_can_be_stopped() {
    let Some(()) = can_mount() else { return };
    let scratch = Scratch::new();
    let (root, here) = (scratch.dir("root"), scratch.dir("here"));
    scratch.file("root/large", 4_000_000);
    let server = Server::begin(&["serve", "--root", &root]);
    let large = format!("udt://{}/large", server.address);
    let small_disk = ["unshare", "-rm", "sh", "-c", SMALL_DISK, &here];
    let mut copy =
        Started::begin_under(&small_disk, &["copy", "--plain", "--wait-for-space", &large, &here], Stdio::null());
    copy.says("the disk is full");
    copy.signal(Signal::INT);
    assert_eq!(copy.end().code, 130);
}
