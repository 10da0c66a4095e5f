//! Permissions that an ordinary user lacks, from the start or from the middle of a copy. The error names the file and its
//! side, and the other files arrive.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::process::{Run, Scratch, Server, Started, farhaul_under, is_temporary};
use crate::requirement::runs;

/// Runs a program with the rights of an ordinary user: root may read and write everything, unless it gives that right away.
pub(crate) fn ordinary() -> Option<&'static [&'static str]> {
    if !rustix::process::geteuid().is_root() {
        return Some(&[]);
    }
    let wrapper = &["setpriv", "--bounding-set=-dac_override,-dac_read_search"];
    runs(&[&wrapper[..], &["true"]].concat(), "it takes root's rights away")?;
    Some(wrapper)
}

fn set_mode(path: &str, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A directory that gets its rights back, so that it can be removed.
struct Locked(String);

impl Locked {
    fn new(path: String) -> Self {
        set_mode(&path, 0o500);
        Self(path)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = fs::set_permissions(&self.0, Permissions::from_mode(0o700));
    }
}

/// One file failed for want of rights, and this many arrived.
#[track_caller]
fn one_failed(run: &Run, name: &str, side: &str, files: u64) {
    run.fails(3, &[name, "permission denied", side]);
    let end = run.end();
    assert_eq!((&end["files"], &end["failed"]), (&files.into(), &1.into()), "{end}");
    assert_eq!(end["error"]["code"], "FILES_FAILED", "{end}");
}

/// A tree whose files come in the order `a`, `locked/b`, `z`; `a` has this many bytes.
fn tree(scratch: &Scratch, at: &str, len: usize) -> String {
    scratch.dir(&format!("{at}tree/locked"));
    scratch.file(&format!("{at}tree/a"), len);
    scratch.file(&format!("{at}tree/locked/b"), 10);
    scratch.file(&format!("{at}tree/z"), 10);
    scratch.at(&format!("{at}tree"))
}

#[test]
fn a_directory_that_the_server_may_not_write_to_keeps_out_its_own_files_only() {
    let Some(ordinary) = ordinary() else { return };
    let scratch = Scratch::new();
    let (tree, root) = (tree(&scratch, "", 10), scratch.dir("root"));
    let _locked = Locked::new(scratch.dir("root/tree/locked"));
    let server = Server::begin_under(ordinary, &["serve", "--root", &root]);
    let run =
        farhaul_under(ordinary, &["copy", "--plain", "--json", "-r", &tree, &format!("udt://{}/", server.address)]);
    one_failed(&run, "tree/locked/b", "other side", 2);
    assert_eq!(scratch.names("root/tree"), ["a", "locked", "z"]);
}

#[test]
fn a_directory_here_that_may_not_be_written_to_keeps_out_its_own_files_only() {
    let Some(ordinary) = ordinary() else { return };
    let scratch = Scratch::new();
    let (root, here) = (scratch.dir("root"), scratch.dir("here"));
    tree(&scratch, "root/", 10);
    let _locked = Locked::new(scratch.dir("here/tree/locked"));
    let server = Server::begin_under(ordinary, &["serve", "--root", &root]);
    let url = format!("udt://{}/tree", server.address);
    let run = farhaul_under(ordinary, &["copy", "--plain", "--json", "-r", &url, &here]);
    one_failed(&run, "tree/locked/b", "", 2);
    assert!(!run.stderr.contains("other side"), "{}", run.stderr);
    assert_eq!(scratch.names("here/tree"), ["a", "locked", "z"]);
}

#[test]
fn a_file_that_the_server_may_not_read_fails_alone() {
    let Some(ordinary) = ordinary() else { return };
    let scratch = Scratch::new();
    let (root, here) = (scratch.dir("root"), scratch.dir("here"));
    tree(&scratch, "root/", 10);
    set_mode(&scratch.at("root/tree/locked/b"), 0);
    let server = Server::begin_under(ordinary, &["serve", "--root", &root]);
    let url = format!("udt://{}/tree", server.address);
    let run = farhaul_under(ordinary, &["copy", "--plain", "--json", "-r", &url, &here]);
    one_failed(&run, "tree/locked/b", "other side", 2);
    assert_eq!(scratch.names("here/tree"), ["a", "locked", "z"]);
}

/// Bytes of a file that is under way for long enough to take rights away meanwhile.
const LONG: usize = 3_000_000;
/// How fast it is sent.
const SLOWLY: [&str; 4] = ["--rate", "20mbit", "--interval", "50ms"];

#[test]
fn a_directory_of_the_server_that_is_locked_in_mid_copy_keeps_out_the_files_that_are_not_there_yet() {
    let Some(ordinary) = ordinary() else { return };
    let scratch = Scratch::new();
    let (tree, root) = (tree(&scratch, "", LONG), scratch.dir("root"));
    scratch.dir("root/tree/locked");
    let server = Server::begin_under(ordinary, &["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let line = [&["copy", "--plain", "--json", "-r"][..], &SLOWLY, &[&tree, &url]].concat();
    let copy = Started::begin_under(ordinary, &line, Stdio::null()).after("interval");
    let _locked = Locked::new(scratch.at("root/tree/locked"));
    one_failed(&copy.end(), "tree/locked/b", "other side", 2);
    assert_eq!(scratch.names("root/tree"), ["a", "locked", "z"]);
}

#[test]
fn a_file_whose_directory_is_locked_while_it_is_under_way_fails_with_its_name_at_the_end() {
    let Some(ordinary) = ordinary() else { return };
    let scratch = Scratch::new();
    let (tree, root) = (tree(&scratch, "", 10), scratch.dir("root"));
    scratch.file("tree/locked/b", LONG);
    scratch.dir("root/tree/locked");
    let server = Server::begin_under(ordinary, &["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let line = [&["copy", "--plain", "--json", "-r"][..], &SLOWLY, &[&tree, &url]].concat();
    let copy = Started::begin_under(ordinary, &line, Stdio::null()).after("interval");
    let _locked = Locked::new(scratch.at("root/tree/locked"));
    one_failed(&copy.end(), "tree/locked/b", "other side", 2);
    assert_eq!(scratch.names("root/tree"), ["a", "locked", "z"]);
    let left = scratch.names("root/tree/locked");
    assert!(left.iter().all(|name| is_temporary(name)), "nothing incomplete has its name: {left:?}");
}

#[test]
fn a_directory_here_that_is_locked_in_mid_copy_keeps_out_the_files_that_are_not_there_yet() {
    let Some(ordinary) = ordinary() else { return };
    let scratch = Scratch::new();
    let (root, here) = (scratch.dir("root"), scratch.dir("here"));
    tree(&scratch, "root/", LONG);
    scratch.dir("here/tree/locked");
    let server = Server::begin_under(ordinary, &["serve", "--rate", "20mbit", "--root", &root]);
    let url = format!("udt://{}/tree", server.address);
    let line = ["copy", "--plain", "--json", "-r", "--interval", "50ms", &url, &here];
    let copy = Started::begin_under(ordinary, &line, Stdio::null()).after("interval");
    let _locked = Locked::new(scratch.at("here/tree/locked"));
    let run = copy.end();
    one_failed(&run, "tree/locked/b", "", 2);
    assert!(!run.stderr.contains("other side"), "{}", run.stderr);
    assert_eq!(scratch.names("here/tree"), ["a", "locked", "z"]);
}

#[test]
fn a_file_that_the_server_may_not_read_any_more_in_mid_copy_fails_alone() {
    let Some(ordinary) = ordinary() else { return };
    let scratch = Scratch::new();
    let (root, here) = (scratch.dir("root"), scratch.dir("here"));
    tree(&scratch, "root/", LONG);
    let server = Server::begin_under(ordinary, &["serve", "--rate", "20mbit", "--root", &root]);
    let url = format!("udt://{}/tree", server.address);
    let line = ["copy", "--plain", "--json", "-r", "--interval", "50ms", &url, &here];
    let copy = Started::begin_under(ordinary, &line, Stdio::null()).after("interval");
    set_mode(&scratch.at("root/tree/locked/b"), 0);
    one_failed(&copy.end(), "tree/locked/b", "other side", 2);
    assert_eq!(scratch.names("here/tree"), ["a", "locked", "z"]);
}
