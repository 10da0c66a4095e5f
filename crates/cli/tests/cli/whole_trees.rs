//! Copies of whole trees: everything that they keep, skip and remove.

use std::fs::{self, FileTimes, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use rustix::fs::{XattrFlags, setxattr};
use serde_json::Value;

use crate::process::{Run, Scratch, Server, farhaul, farhaul_where};
use crate::requirement::runs;

/// Most bytes of content that a sender sends before it hears that the target has them.
const EAGER: u64 = 1 << 20;

/// A remote host on this machine, which a script in the place of ssh reaches.
pub(crate) struct Far {
    pub(crate) scratch: Scratch,
}

impl Far {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::new();
        let script = "#!/bin/sh\ncase \"$*\" in *-G*) exit 0;; esac\nfor C; do :; done\n\
                      export SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'\nexec sh -c \"$C\"\n";
        fs::write(scratch.at("ssh"), script).unwrap();
        fs::set_permissions(scratch.at("ssh"), Permissions::from_mode(0o755)).unwrap();
        Self { scratch }
    }

    pub(crate) fn copies(&self, options: &[&str], from: &str, to: &str) -> Run {
        let ssh = self.scratch.at("ssh");
        let copy = ["copy", "--ssh", &ssh, "--remote-path", env!("CARGO_BIN_EXE_farhaul")];
        farhaul_where(&[], &[&copy[..], options, &[from, to]].concat())
    }
}

fn set_time(path: &str, seconds: u64, nanos: u32) {
    let time = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos);
    fs::File::open(path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
}

/// A tree with every kind of entry that a copy keeps.
fn make_tree(scratch: &Scratch) {
    scratch.file("src/big", 3_000_000);
    scratch.file("src/d/small", 10);
    scratch.dir("src/empty");
    scratch.dir("src/d/e");
    fs::write(Path::new(&scratch.at("src")).join(std::ffi::OsStr::from_bytes(b"odd\xff\nname")), b"odd").unwrap();
    let sparse = fs::File::create(scratch.at("src/sparse")).unwrap();
    sparse.write_all_at(b"middle", 7_000_001).unwrap();
    sparse.set_len(30_000_000).unwrap();
    symlink("../big", scratch.at("src/d/link")).unwrap();
    symlink("/nowhere/at all", scratch.at("src/dangling")).unwrap();
    fs::hard_link(scratch.at("src/big"), scratch.at("src/d/other-name")).unwrap();
    for path in ["src/d/small", "src/d/e", "src/big"] {
        // Not every file system has them.
        let _ = setxattr(scratch.at(path), "user.note", b"kept \0 bytes", XattrFlags::empty());
    }
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(scratch.at("src/d/small"), Some(1), Some(2)).unwrap();
        std::os::unix::fs::lchown(scratch.at("src/dangling"), Some(3), Some(4)).unwrap();
    }
    for (path, mode) in [("src/d/small", 0o4750), ("src/d/e", 0o2711), ("src/empty", 0o700)] {
        fs::set_permissions(scratch.at(path), Permissions::from_mode(mode)).unwrap();
    }
    for (path, seconds) in [("src/d/small", 981_173_106), ("src/d/e", 1), ("src/empty", 1_700_000_000), ("src/d", 77)] {
        set_time(&scratch.at(path), seconds, 123_456_789);
    }
}

/// What rsync would change to make `to` like `from`. `None` without rsync.
fn differences(from: &str, to: &str) -> Option<String> {
    runs(&["rsync", "--version"], "it compares trees")?;
    let words = ["-aHAXn", "--delete", "-i", "--no-devices", "--no-specials", from, to];
    let run = Command::new("rsync").args(words).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    Some(String::from_utf8_lossy(&run.stdout).into_owned())
}

#[test]
fn a_tree_with_every_kind_of_entry_arrives_so_that_rsync_finds_nothing_to_do() {
    let far = Far::new();
    let scratch = &far.scratch;
    make_tree(scratch);
    scratch.dir("pushed");
    scratch.dir("pulled");
    let there = |path: &str| format!("far:{}", scratch.at(path));
    far.copies(&["-a"], &scratch.at("src"), &there("pushed/")).succeeds();
    far.copies(&["-a"], &there("src"), &scratch.at("pulled")).succeeds();
    for target in ["pushed", "pulled"] {
        let (from, to) = (scratch.at("src/"), scratch.at(&format!("{target}/src/")));
        let Some(differences) = differences(&from, &to) else { return };
        assert_eq!(differences, "", "{target}");
        let blocks = |path: &str| fs::metadata(path).unwrap().blocks();
        assert!(blocks(&format!("{to}sparse")) < 3000, "{target}: holes are no zeros");
        let entries = |path: &str| fs::read_dir(path).unwrap().count();
        assert_eq!(entries(&to), entries(&from), "nothing is left over");
    }
    // Once more, nothing happens.
    for (from, to) in [(scratch.at("src"), there("pushed/")), (there("src"), scratch.at("pulled"))] {
        let run = far.copies(&["-a", "--json"], &from, &to);
        run.succeeds();
        let end = run.end();
        assert_eq!((&end["files"], &end["kept"]), (&0.into(), &4.into()), "{end}");
        assert!(end["moved_bytes"].as_u64().unwrap() <= EAGER, "{end}");
        let dry = far.copies(&["-a", "-n"], &from, &to);
        dry.succeeds();
        assert_eq!(dry.stderr, "");
    }
}

#[test]
fn properties_that_changed_are_set_and_the_content_is_not_sent_again() {
    let far = Far::new();
    let scratch = &far.scratch;
    make_tree(scratch);
    let target = format!("far:{}/", scratch.dir("to"));
    far.copies(&["-a"], &scratch.at("src"), &target).succeeds();
    fs::set_permissions(scratch.at("src/d/small"), Permissions::from_mode(0o640)).unwrap();
    let _ = setxattr(scratch.at("src/big"), "user.note", b"other", XattrFlags::empty());
    fs::remove_file(scratch.at("src/d/link")).unwrap();
    symlink("elsewhere", scratch.at("src/d/link")).unwrap();
    let dry = far.copies(&["-a", "-n"], &scratch.at("src"), &target);
    dry.succeeds();
    assert!(dry.stderr.contains("properties src/d/small"), "{}", dry.stderr);
    assert!(dry.stderr.contains("content    src/d/link -> elsewhere"), "{}", dry.stderr);
    let run = far.copies(&["-a", "--json"], &scratch.at("src"), &target);
    run.succeeds();
    assert!(run.end()["moved_bytes"].as_u64().unwrap() <= EAGER, "{}", run.end());
    if let Some(differences) = differences(&scratch.at("src/"), &scratch.at("to/src/")) {
        assert_eq!(differences, "");
    }
}

#[test]
fn a_special_file_is_named_and_left_out_and_the_rest_arrives() {
    let far = Far::new();
    let scratch = &far.scratch;
    scratch.file("src/file", 10);
    rustix::fs::mknodat(rustix::fs::CWD, scratch.at("src/pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let run = far.copies(&["-a"], &scratch.at("src"), &format!("far:{}/", scratch.dir("to")));
    run.succeeds();
    assert!(run.stderr.contains("left out: src/pipe: a pipe"), "{}", run.stderr);
    assert_eq!(scratch.names("to/src"), ["file"]);
    // A simple copy does not promise everything, and tells what it lacks.
    far.copies(&["-r"], &scratch.at("src"), &format!("far:{}/", scratch.dir("other")))
        .fails(3, &["src/pipe", "a pipe"]);
}

fn server_and_trees() -> (Scratch, Server) {
    let scratch = Scratch::new();
    for (name, len) in [("src/a", 10), ("src/d/b", 3_000_000), ("src/d/c", 5)] {
        scratch.file(name, len);
    }
    let server = Server::begin(&["serve", "--root", &scratch.dir("root")]);
    (scratch, server)
}

fn copy(scratch: &Scratch, server: &Server, options: &[&str]) -> Run {
    let url = format!("udt://{}/", server.address);
    farhaul(&[&["copy", "--plain", "--json", "-r"], options, &[&scratch.at("src"), &url]].concat())
}

fn counts(run: &Run) -> (Value, Value, Value) {
    run.succeeds();
    let end = run.end();
    (end["files"].clone(), end["kept"].clone(), end["moved_bytes"].clone())
}

#[test]
fn each_rule_of_skipping_skips_what_it_says() {
    let (scratch, server) = server_and_trees();
    let is = |files: u64, kept: u64, moved: u64| (files.into(), kept.into(), moved.into());
    assert_eq!(counts(&copy(&scratch, &server, &[])), is(3, 0, 3_000_015));
    let (files, kept, moved) = counts(&copy(&scratch, &server, &[]));
    assert_eq!((files, kept), (0.into(), 3.into()));
    assert!(moved.as_u64().unwrap() <= EAGER, "{moved}");
    assert_eq!(counts(&copy(&scratch, &server, &["--skip", "never"])), is(3, 0, 3_000_015));
    // Of another time and the same bytes: both sides read them, and nothing is written but the time.
    set_time(&scratch.at("src/d/b"), 5, 0);
    let inode = || fs::metadata(scratch.at("root/src/d/b")).map(|file| (file.ino(), file.mtime())).unwrap();
    let before = inode();
    let planned = copy(&scratch, &server, &["--skip", "digest", "--dry-run"]);
    assert_eq!(counts(&planned), is(0, 3, 0));
    let changes = planned.records().into_iter().filter(|record| record["event"] == "file").collect::<Vec<_>>();
    let of = |name: &str| changes.iter().find(|record| record["path"] == name).map(|record| record["change"].clone());
    assert_eq!((of("src/d/b"), of("src/a")), (Some("properties".into()), Some("none".into())), "{changes:?}");
    assert_eq!(inode(), before);
    assert_eq!(counts(&copy(&scratch, &server, &["--skip", "digest"])), is(0, 3, 0));
    assert_eq!(inode(), (before.0, 5));
    fs::write(scratch.at("src/a"), b"something else").unwrap();
    let (files, kept, _) = counts(&copy(&scratch, &server, &["--skip", "exists"]));
    assert_eq!((files, kept), (0.into(), 3.into()));
    let (files, kept, _) = counts(&copy(&scratch, &server, &[]));
    assert_eq!((files, kept), (1.into(), 2.into()));
    assert_eq!(fs::read(scratch.at("root/src/a")).unwrap(), b"something else");
}

#[test]
fn filters_leave_out_what_matches() {
    let (scratch, server) = server_and_trees();
    for name in ["src/x.o", "src/d/keep.o", "src/cache/big", "src/d/cache/small"] {
        scratch.file(name, 10);
    }
    fs::write(scratch.at("patterns"), "# rules\n*.o\n").unwrap();
    let patterns = scratch.at("patterns");
    let options = ["--exclude-from", &patterns, "--exclude", "/src/cache/", "--include", "keep.o"];
    copy(&scratch, &server, &options).succeeds();
    assert_eq!(scratch.names("root/src"), ["a", "d"]);
    assert_eq!(scratch.names("root/src/d"), ["b", "c", "cache", "keep.o"]);
    farhaul(&["copy", "--plain", "-r", "--exclude", "[z-a]", &scratch.at("src"), "udt://127.0.0.1:9/"])
        .fails(2, &["[z-a]"]);
}

#[test]
fn patterns_hold_whichever_editor_wrote_them() {
    let (scratch, server) = server_and_trees();
    scratch.file("src/x.o", 10);
    let patterns = scratch.at("patterns");
    for text in ["*.o\r\nd\r\n", "\u{feff}*.o\nd", "\u{feff}*.o\r\n\r\nd"] {
        fs::write(&patterns, text).unwrap();
        copy(&scratch, &server, &["--delete", "--exclude-from", &patterns]).succeeds();
        assert_eq!(scratch.names("root/src"), ["a"], "{text:?}");
        fs::remove_dir_all(scratch.at("root/src")).unwrap();
    }
    let wide: Vec<u8> = "\u{feff}*.o\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (text, words) in [(&wide[..], "it is UTF-16"), (b"*.o\rd\r", "CR alone"), (b"*.o\nd\0", "line 2 has a NUL")] {
        fs::write(&patterns, text).unwrap();
        copy(&scratch, &server, &["--exclude-from", &patterns]).fails(2, &["patterns", words]);
    }
}

/// The session makes a further name of a file once the file has its first one, and so behind entries that follow.
#[test]
fn delete_keeps_what_stands_behind_further_names_of_files() {
    let far = Far::new();
    let scratch = &far.scratch;
    for name in ["src/a", "src/c", "src/z/f", "to/src/old"] {
        scratch.file(name, 10);
    }
    for name in ["src/b", "src/z/g"] {
        fs::hard_link(scratch.at("src/a"), scratch.at(name)).unwrap();
    }
    far.copies(&["-a", "--delete"], &scratch.at("src"), &format!("far:{}/", scratch.at("to"))).succeeds();
    assert_eq!((scratch.names("to/src"), scratch.names("to/src/z")), (scratch.names("src"), scratch.names("src/z")));
}

#[test]
fn delete_removes_what_the_source_lacks_within_its_limit_and_spares_what_is_left_out() {
    let far = Far::new();
    let scratch = &far.scratch;
    for name in ["src/a", "src/d/b", "to/src/old", "to/src/d/old/deep", "to/src/d/x.o", "to/beside"] {
        scratch.file(name, 10);
    }
    symlink(scratch.at("src"), scratch.at("to/src/link")).unwrap();
    let target = format!("far:{}/", scratch.at("to"));
    let options = ["-a", "--delete", "--exclude", "*.o"];
    let run = |more: &[&str]| far.copies(&[&options[..], more].concat(), &scratch.at("src"), &target);
    run(&["--max-delete", "2"]).fails(3, &["more than 2 entries would be removed", "--max-delete"]);
    assert!(Path::new(&scratch.at("to/src/old")).exists());
    let dry = run(&["-n"]);
    dry.succeeds();
    for path in ["src/old", "src/d/old/deep", "src/d/old", "src/link"] {
        assert!(dry.stderr.contains(&format!("delete     {path}\n")), "{path}: {}", dry.stderr);
    }
    assert!(Path::new(&scratch.at("to/src/old")).exists());
    let removed = run(&["--json"]);
    removed.succeeds();
    assert_eq!(removed.end()["deleted"], 4);
    assert_eq!(
        (scratch.names("to"), scratch.names("to/src")),
        (vec!["beside".into(), "src".into()], vec!["a".into(), "d".into()])
    );
    assert_eq!(scratch.names("to/src/d"), ["b", "x.o"]);
    assert_eq!(scratch.names("src").len(), 2, "nothing behind a link is removed");
    // The content of a directory: the target itself is made equal.
    far.copies(&options, &format!("{}/.", scratch.at("src")), &target).succeeds();
    // A directory with something that is spared stays.
    assert_eq!(scratch.names("to"), ["a", "d", "src"]);
    assert_eq!((scratch.names("to/src"), scratch.names("to/src/d")), (vec!["d".into()], vec!["x.o".into()]));
    // A source that could not be read as a whole removes nothing.
    if !rustix::process::geteuid().is_root() {
        fs::remove_file(scratch.at("src/a")).unwrap();
        fs::set_permissions(scratch.at("src/d"), Permissions::from_mode(0o000)).unwrap();
        let run = far.copies(&options, &format!("{}/.", scratch.at("src")), &target);
        fs::set_permissions(scratch.at("src/d"), Permissions::from_mode(0o700)).unwrap();
        run.fails(3, &["d"]);
        assert_eq!(scratch.names("to"), ["a", "d", "src"]);
    }
}

/// The lines of stdout in ascending order. Files end in the order of the disk.
fn lines(run: &Run) -> Vec<String> {
    let mut lines: Vec<String> = String::from_utf8_lossy(&run.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn a_manifest_proves_a_tree_and_verify_finds_what_changed() {
    let (scratch, server) = server_and_trees();
    let manifest = scratch.at("m.b3");
    copy(&scratch, &server, &[]).succeeds();
    // Also of files that are there already.
    copy(&scratch, &server, &["--manifest", &manifest, "--verify", "disk"]).succeeds();
    let root = scratch.at("root");
    let verify = |words: &[&str]| farhaul(&[&["verify", "--root", &root], words, &[&manifest]].concat());
    let run = verify(&[]);
    run.succeeds();
    assert_eq!(lines(&run), ["src/a: verified", "src/d/b: verified", "src/d/c: verified"]);
    if runs(&["b3sum", "--version"], "it reads the manifest").is_some() {
        let check = Command::new("b3sum").args(["--check", &manifest]).current_dir(&root).output().unwrap();
        assert!(check.status.success(), "{check:?}");
    }
    fs::remove_file(scratch.at("root/src/a")).unwrap();
    verify(&["-q"]).fails(3, &["1 file of 3 missing"]);
    fs::write(scratch.at("root/src/d/c"), b"other").unwrap();
    let run = verify(&["-q"]);
    run.fails(6, &["1 file of 3 other than"]);
    assert_eq!(lines(&run), ["src/a: missing", "src/d/c: different"]);
}
