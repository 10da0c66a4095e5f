//! Where things arrive: names that a copy gives, names that it leaves out, and what it says where there is no place.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use rustix::fs::{CWD, FileType, Mode, makedev, mkfifoat, mknodat};
use rustix::process::Signal;

use crate::process::{Scratch, Server, Started, farhaul};
use crate::requirement::runs;

#[test]
fn the_content_of_a_whole_root_arrives_in_a_new_directory() {
    let scratch = Scratch::new();
    scratch.dir("root/d");
    for name in ["root/a", "root/b", "root/d/c"] {
        scratch.file(name, 10);
    }
    let server = Server::begin(&["serve", "--root", &scratch.at("root")]);
    let url = format!("udt://{}/", server.address);
    farhaul(&["copy", "--plain", "-r", &url, &scratch.at("fresh")]).succeeds();
    assert_eq!(
        (scratch.names("fresh"), scratch.names("fresh/d")),
        (vec!["a".into(), "b".into(), "d".into()], vec!["c".into()])
    );
    let run = farhaul(&["copy", "--plain", &url, &scratch.at("flat")]);
    run.fails(3, &[". was not copied: is a directory", "-r copies directories"]);
    assert!(!Path::new(&scratch.at("flat")).exists());
    // And in the other direction: the content of a directory without a name of its own.
    farhaul(&["copy", "--plain", "-r", &scratch.at("fresh/d/.."), &format!("{url}there")]).succeeds();
    assert_eq!(scratch.names("root/there"), ["a", "b", "d"]);
}

#[test]
fn names_of_any_bytes_are_copied_both_ways() {
    let scratch = Scratch::new();
    let (root, back) = (scratch.dir("root"), scratch.dir("back"));
    let name = OsStr::from_bytes(b"100%bad\xff");
    let file = Path::new(&scratch.at("")).join(name);
    fs::write(&file, b"content").unwrap();
    let server = Server::begin(&["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    farhaul(&[OsStr::new("copy"), OsStr::new("--plain"), file.as_os_str(), OsStr::new(&url)]).succeeds();
    assert_eq!(fs::read(Path::new(&root).join(name)).unwrap(), b"content");
    farhaul(&["copy", "--plain", &format!("{url}100%25bad%FF"), &back]).succeeds();
    assert_eq!(fs::read(Path::new(&back).join(name)).unwrap(), b"content");
    farhaul(&["copy", "--plain", &format!("{url}100%zz"), &back]).fails(2, &["--help-all"]);
}

#[test]
fn incomplete_files_are_no_part_of_a_tree() {
    let scratch = Scratch::new();
    let partial = ".file.0123456789abcdef.fhpart";
    scratch.dir("root/deep");
    for name in [partial, "file", "deep/mine.fhpart"] {
        scratch.file(&format!("root/{name}"), 10);
    }
    scratch.file(&format!("root/deep/{partial}"), 10);
    let server = Server::begin(&["serve", "--root", &scratch.at("root")]);
    let url = format!("udt://{}/", server.address);
    farhaul(&["copy", "--plain", "-r", &url, &scratch.at("back")]).succeeds();
    assert_eq!(
        (scratch.names("back"), scratch.names("back/deep")),
        (vec!["deep".into(), "file".into()], vec!["mine.fhpart".into()])
    );
    farhaul(&["copy", "--plain", "-r", &scratch.at("root/deep"), &format!("{url}there")]).succeeds();
    assert_eq!(scratch.names("root/there"), ["mine.fhpart"]);
    // A partial file can be copied by its name, and gets another one: nobody makes names that clean-up jobs and later copies take.
    let (copied, planted) = (format!("{url}{partial}"), scratch.file(partial, 10));
    farhaul(&["copy", "--plain", &copied, &scratch.at("back/saved")]).succeeds();
    farhaul(&["copy", "--plain", &copied, &scratch.at("back")]).fails(3, &["names of incomplete files"]);
    for to in ["", &format!("there/{partial}"), &format!("{partial}/")] {
        assert_ne!(farhaul(&["copy", "--plain", &planted, &format!("{url}{to}")]).code, 0, "{to}");
    }
    let directory = scratch.dir(&format!("tree/{partial}"));
    farhaul(&["copy", "--plain", "-r", &directory, &url]).fails(3, &["names of incomplete files"]);
    assert_eq!(
        (scratch.names("back").len(), scratch.names("root")),
        (3, vec![partial.into(), "deep".into(), "file".into(), "there".into()])
    );
    assert_eq!(scratch.names("root/there"), ["mine.fhpart"]);
}

#[test]
fn a_missing_directory_is_reported_with_the_next_step() {
    let scratch = Scratch::new();
    let (root, file) = (scratch.dir("root"), scratch.file("file", 10));
    scratch.file("root/taken", 1);
    let mut server = Server::begin(&["serve", "--root", &root]);
    let url = format!("udt://{}", server.address);
    for (place, words) in
        [("no/such/x", ["no/such/x", "does not exist; create it"]), ("taken/x", ["taken/x", "not a directory; choose"])]
    {
        let run = farhaul(&["copy", "--plain", "--json", &file, &format!("{url}/{place}")]);
        run.fails(7, &[&server.address, "on the other side", words[0], words[1]]);
        assert_eq!(run.end()["error"]["code"], "LOCAL_IO");
        assert!(!run.stderr.contains("os error") && !run.stderr.contains("incomplete"), "{}", run.stderr);
    }
    let here = scratch.at("no/such/x");
    farhaul(&["copy", "--plain", &format!("{url}/taken"), &here]).fails(7, &[&here, "does not exist; create it"]);
    // A file of the server that is refused is one failure, and its operator is not told what the peer may do.
    let run = farhaul(&["copy", "--plain", &scratch.dir("tree"), &url]);
    run.fails(3, &["tree was not copied: is a directory; -r copies directories"]);
    assert_eq!(run.stderr.lines().count(), 1, "told once: {}", run.stderr);
    let told = server.wait_for("end")["error"]["message"].as_str().unwrap().to_owned();
    assert!(!told.contains("-r"), "{told}");
}

#[test]
fn a_directory_of_the_server_that_may_not_be_written_to_is_told_as_that() {
    let scratch = Scratch::new();
    let (root, file) = (scratch.dir("root"), scratch.file("file", 10));
    fs::set_permissions(scratch.dir("root/closed"), Permissions::from_mode(0o555)).unwrap();
    let without_rights = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"];
    let wrapper = if rustix::process::geteuid().is_root() { &without_rights[..] } else { &[] };
    if !wrapper.is_empty() && runs(&[wrapper, &["true"]].concat(), "it takes root's rights away").is_none() {
        return;
    }
    let server = Server::begin_under(wrapper, &["serve", "--root", &root]);
    // A tree whose directory is not writable arrives once, and then lies in the way of the second copy.
    let (tree, url) = (scratch.dir("tree"), format!("udt://{}/", server.address));
    scratch.file("tree/inside", 10);
    fs::set_permissions(&tree, Permissions::from_mode(0o555)).unwrap();
    farhaul(&["copy", "--plain", "-r", &tree, &url]).succeeds();
    let again = farhaul(&["copy", "--plain", "--skip", "never", "-r", &tree, &url]);
    again.fails(3, &["tree/inside was not copied: permission denied: its directory", "change the permissions there"]);
    let inner = scratch.dir("inner/tree/deep");
    farhaul(&["copy", "--plain", "-r", inner.strip_suffix("/deep").unwrap(), &url])
        .fails(3, &["tree/deep was not copied: permission denied: its directory", "(on the other side)"]);
    for directory in [&tree, &scratch.at("root/tree")] {
        fs::set_permissions(directory, Permissions::from_mode(0o755)).unwrap();
    }
    let url = format!("udt://{}/closed/", server.address);
    let run = farhaul(&["copy", "--plain", &file, &url]);
    run.fails(
        3,
        &[
            "file was not copied: permission denied: its directory may not be written to (on the other side)",
            "change the permissions",
        ],
    );
    farhaul(&["copy", "--plain", &file, &format!("{url}new/")]).fails(7, &["closed/new", "may not be written to"]);
}

/// Makes what a file must not replace, as far as this user may; root may make devices.
fn make_specials(scratch: &Scratch, directory: &str) -> Vec<&'static str> {
    let at = |name: &str| scratch.at(&format!("{directory}/{name}"));
    symlink("somewhere", at("link")).unwrap();
    mkfifoat(CWD, at("pipe"), Mode::RWXU).unwrap();
    let null = mknodat(CWD, at("device"), FileType::CharacterDevice, Mode::RWXU, makedev(1, 3));
    let mut all = vec!["link", "pipe", "device"];
    all.truncate(if null.is_ok() { 3 } else { 2 });
    all
}

#[test]
fn a_target_that_is_no_regular_file_is_refused_by_name_on_either_side_and_stays() {
    let scratch = Scratch::new();
    let (root, here, file) = (scratch.dir("root"), scratch.dir("here"), scratch.file("file", 10));
    scratch.file("root/source", 10);
    let specials = make_specials(&scratch, "root");
    make_specials(&scratch, "here");
    let server = Server::begin(&["serve", "--root", &root]);
    let url = format!("udt://{}", server.address);
    let words = ["a symbolic link", "a pipe", "a device"];
    for (name, words) in specials.iter().zip(words) {
        let kind =
            |directory: &str| fs::symlink_metadata(scratch.at(&format!("{directory}/{name}"))).unwrap().file_type();
        let (there_before, here_before) = (kind("root"), kind("here"));
        let run = farhaul(&["copy", "--plain", &file, &format!("{url}/{name}")]);
        run.fails(3, &["file was not copied", &format!("{name} is {words}"), "other side", "choose another target"]);
        let run = farhaul(&["copy", "--plain", &format!("{url}/source"), &format!("{here}/{name}")]);
        run.fails(3, &["source was not copied", &format!("{name} is {words}"), "choose another target"]);
        assert_eq!((kind("root"), kind("here")), (there_before, here_before));
    }
    // In a tree, the others arrive.
    scratch.dir("tree");
    for name in ["link", "other"] {
        scratch.file(&format!("tree/{name}"), 10);
    }
    scratch.dir("root/tree");
    symlink("elsewhere", scratch.at("root/tree/link")).unwrap();
    let run = farhaul(&["copy", "--plain", "--json", "-r", &scratch.at("tree"), &format!("{url}/")]);
    run.fails(3, &["tree/link was not copied", "link is a symbolic link"]);
    assert_eq!((&run.end()["files"], &run.end()["failed"]), (&1.into(), &1.into()), "{}", run.end());
    assert_eq!(scratch.names("root/tree"), ["link", "other"]);
}

#[test]
fn a_port_alone_is_every_address_of_this_machine() {
    let scratch = Scratch::new();
    let (root, file) = (scratch.dir("root"), scratch.file("file", 10));
    let arguments = ["serve", "--plain", "--json", "--root", &root, "--listen", ":0"];
    let mut serve = Started::begin(&arguments, Stdio::null()).after("start");
    let port = serve.record["local"].as_str().unwrap().rsplit_once(':').unwrap().1.to_owned();
    for host in ["127.0.0.1", "[::1]"] {
        if host == "[::1]" && std::net::UdpSocket::bind("[::1]:0").is_err() {
            continue; // no IPv6 here
        }
        farhaul(&["copy", "--plain", &file, &format!("udt://{host}:{port}/")]).succeeds();
        let end = serve.next("end");
        assert!(end["address"].as_str().unwrap().starts_with(&format!("{host}:")), "{end}");
    }
    serve.signal(Signal::TERM);
    assert_eq!(serve.end().code, 143);
}

#[test]
fn a_tree_that_holds_its_own_target_is_copied_once() {
    let scratch = Scratch::new();
    scratch.dir("top/x/root");
    let file = scratch.file("top/a", 8_000_000);
    if fs::metadata(scratch.at("top")).unwrap().created().is_err() {
        eprintln!("skipped: this file system does not tell when a directory was made");
        return;
    }
    let server = Server::begin(&["serve", "--buffer", "1MiB", "--root", &scratch.at("top/x/root")]);
    let url = format!("udt://{}/", server.address);
    let run = farhaul(&["copy", "--plain", "--buffer", "1MiB", "-r", &scratch.at("top"), &url]);
    // The walk runs ahead of the content, and comes to the target before or after the copy has made something there.
    if run.code != 0 {
        run.fails(3, &["x/root/top", "made after the copy began", "target lie in the source"]);
    }
    assert!(!fs::exists(scratch.at("top/x/root/top/x/root/top")).unwrap(), "the copy met its own output");
    assert!(fs::read(scratch.at("top/x/root/top/a")).unwrap() == fs::read(file).unwrap());
}

/// As with cp, scp and rsync.
#[test]
fn a_dot_behind_a_directory_brings_its_content_and_needs_r_as_the_directory_does() {
    let scratch = Scratch::new();
    let (root, here) = (scratch.dir("root"), scratch.dir("here"));
    let tree = scratch.dir("tree");
    for name in ["root/file", "root/.profile", "tree/file", "tree/.hidden"] {
        scratch.file(name, 10);
    }
    let server = Server::begin(&["serve", "--root", &root]);
    let url = format!("udt://{}", server.address);
    // A copy that is refused leaves no folder behind.
    for words in [
        &["copy", "--plain", ".", &format!("{url}/new")][..],
        &["copy", "--plain", "./.", &format!("{url}/new/")],
        &["copy", "--plain", &tree, &format!("{url}/new/")],
        &["copy", "--plain", &format!("{url}/"), &format!("{here}/new")],
        &["copy", "--plain", &format!("{url}/missing"), &format!("{here}/new/")],
    ] {
        let run = Started::begin_in(&tree, words).end();
        let reason = if words[2].ends_with("missing") { "not found" } else { "is a directory" };
        run.fails(3, &[reason]);
        assert!(reason == "not found" || run.stderr.contains("-r copies directories"), "{}", run.stderr);
        assert_eq!((scratch.names("root"), scratch.names("here").len()), (vec![".profile".into(), "file".into()], 0));
    }
    for (source, target, arrives) in [
        (format!("{tree}/."), "new", "root/new"),
        (format!("{tree}/."), "into/", "root/into"),
        (format!("{tree}/"), "renamed", "root/renamed"),
        (format!("{tree}/"), "in/", "root/in/tree"),
    ] {
        farhaul(&["copy", "--plain", "-r", &source, &format!("{url}/{target}")]).succeeds();
        assert_eq!(scratch.names(arrives), [".hidden", "file"], "{source} to {target}");
    }
    let empty = scratch.dir("empty");
    farhaul(&["copy", "--plain", "-r", &format!("{empty}/."), &format!("{url}/nothing")]).succeeds();
    assert!(scratch.names("root/nothing").is_empty(), "it arrived");
}
