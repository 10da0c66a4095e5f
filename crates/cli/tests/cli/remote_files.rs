//! `ls`, `cat`, `rm`, `mv`, `mkdir`: on a daemon with keys, on a plain server, and over SSH by a script in its place.

use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;

use crate::permissions::ordinary;
use crate::process::{Run, Scratch, Server, Started, farhaul, farhaul_where};
use crate::secured::User;

/// The name of the user who runs the tests.
fn own_name() -> String {
    let name = Command::new("id").arg("-un").output().unwrap().stdout;
    String::from_utf8(name).unwrap().trim().to_owned()
}

/// A plain server of the directory `root`.
struct Plain {
    scratch: Scratch,
    server: Server,
}

impl Plain {
    fn new(options: &[&str]) -> Self {
        let scratch = Scratch::new();
        let root = scratch.dir("root");
        let server = Server::begin(&[&["serve", "--root", &root], options].concat());
        Self { scratch, server }
    }

    fn url(&self, path: &str) -> String {
        format!("udt://{}/{path}", self.server.address)
    }

    fn at(&self, path: &str) -> String {
        self.scratch.at(&format!("root/{path}"))
    }

    fn runs(&self, verb: &str, options: &[&str], paths: &[&str]) -> Run {
        let urls: Vec<String> = paths.iter().map(|path| self.url(path)).collect();
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        farhaul(&[&[verb, "--plain"], options, &urls].concat())
    }
}

fn text(run: &Run) -> &str {
    std::str::from_utf8(&run.stdout).unwrap()
}

#[test]
fn the_verbs_work_on_the_files_of_a_server() {
    let here = Plain::new(&[]);
    let content = fs::read(here.scratch.file("root/f", 3_300_000)).unwrap();
    let cat = here.runs("cat", &[], &["f"]);
    cat.succeeds();
    assert!(cat.stdout == content);
    assert_eq!(
        here.runs("cat", &["--offset", "3000000", "--length", "1kB"], &["f"]).stdout,
        content[3_000_000..3_001_000]
    );
    assert_eq!(here.runs("cat", &["--offset=-7"], &["f"]).stdout, content[3_299_993..]);
    here.runs("mkdir", &["-p"], &["d/deep", "e"]).succeeds();
    here.runs("mv", &[], &["f", "d/"]).succeeds();
    here.runs("mv", &[], &["d/f", "d/deep"]).succeeds();
    here.runs("mv", &[], &["d/deep/f", "new/name"]).succeeds();
    assert_eq!(text(&here.runs("ls", &[], &[""])), "d\ne\nnew\n");
    let long = here.runs("ls", &["-l"], &["new"]);
    assert!(text(&long).starts_with("-rw-") && text(&long).contains("       3300000 2"), "{}", text(&long));
    // A server that is confined to its root does not read the names of users.
    let (long, users) = (text(&long), [own_name(), rustix::process::geteuid().as_raw().to_string()]);
    assert!(long.split_ascii_whitespace().nth(1).is_some_and(|user| users.contains(&user.to_owned())), "{long}");
    let all = here.runs("ls", &["-R"], &[""]);
    let expected = ["d", "e", "new", "", "udt:d:", "deep", "", "udt:d/deep:", "", "udt:e:", "", "udt:new:", "name"]
        .map(|line| line.strip_prefix("udt:").map_or_else(|| line.to_owned(), |path| here.url(path)));
    assert_eq!(text(&all).lines().skip(1).collect::<Vec<_>>(), expected);
    here.runs("rm", &[], &["new"]).fails(3, &["is a directory", "-r removes"]);
    here.runs("rm", &["-d"], &["new"]).fails(3, &["not empty"]);
    here.runs("rm", &["-d"], &["e"]).succeeds();
    here.runs("rm", &["-r", "--max-delete", "1"], &["new"])
        .fails(3, &["more than 1 entries", "--max-delete permits more"]);
    here.runs("rm", &["-r"], &["new", "d"]).succeeds();
    assert!(here.scratch.names("root").is_empty());
}

#[test]
fn some_places_that_fail_are_named_and_the_others_are_done() {
    let here = Plain::new(&[]);
    here.scratch.file("root/a", 5);
    here.scratch.file("root/b", 5);
    let run = here.runs("rm", &[], &["a", "none", "b", "also/none"]);
    run.fails(3, &["2 of 4 failed"]);
    assert!(run.stderr.contains("/none: not found") && run.stderr.contains("also/none: not found"), "{}", run.stderr);
    assert!(here.scratch.names("root").is_empty());
    here.runs("cat", &[], &["none"]).fails(3, &["/none: not found"]);
    here.runs("mkdir", &[], &["x/y"]).fails(3, &["x/y: not found"]);
    here.scratch.file("root/a", 5);
    here.scratch.file("root/b", 6);
    here.runs("mv", &["-n"], &["a", "b"]).fails(3, &["b is a file"]);
    here.runs("mv", &[], &["a", "b"]).succeeds();
    assert_eq!(fs::metadata(here.at("b")).unwrap().len(), 5);
    let json = here.runs("rm", &["--json"], &["none"]);
    assert_eq!((json.code, json.end()["error"]["code"].as_str()), (3, Some("NOT_FOUND")));
}

#[test]
fn a_directory_below_that_cannot_be_listed_is_a_failure_and_the_others_are_listed() {
    let Some(ordinary) = ordinary() else { return };
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    let (locked, other) = (scratch.dir("root/a"), scratch.file("root/b/f", 5));
    fs::set_permissions(&locked, Permissions::from_mode(0o000)).unwrap();
    let server = Server::begin_under(ordinary, &["serve", "--root", &root]);
    let run = farhaul(&["ls", "--plain", "-R", &format!("udt://{}/", server.address)]);
    fs::set_permissions(&locked, Permissions::from_mode(0o700)).unwrap();
    run.fails(3, &["/a: permission denied"]);
    assert!(text(&run).ends_with("/b:\nf\n") && fs::metadata(other).is_ok(), "{}", text(&run));
}

#[test]
fn a_file_that_is_rewritten_all_the_time_is_printed_as_one_version_or_not_at_all() {
    let here = Plain::new(&[]);
    let path = here.at("f");
    fs::write(&path, vec![0; 1 << 20]).unwrap();
    let is_over = AtomicBool::new(false);
    let run = thread::scope(|scope| {
        scope.spawn(|| {
            let file = fs::File::options().write(true).open(&path).unwrap();
            for byte in (0..=u8::MAX).cycle().take_while(|_| !is_over.load(Ordering::Relaxed)) {
                file.write_all_at(&vec![byte; 1 << 20], 0).unwrap();
            }
        });
        let run = here.runs("cat", &[], &["f"]);
        here.runs("cat", &["--allow-changing"], &["f"]).succeeds();
        is_over.store(true, Ordering::Relaxed);
        run
    });
    if run.code != 0 {
        run.fails(3, &["/f: it changed while it was read", "--allow-changing"]);
    }
    assert!(run.stdout.iter().all(|byte| *byte == run.stdout[0]), "a mixture");
    assert!([0, 1 << 20].contains(&run.stdout.len()), "{}", run.stdout.len());
    here.runs("cat", &[], &["f"]).succeeds();
}

#[test]
fn a_place_on_this_machine_or_on_two_hosts_is_refused_with_the_next_step() {
    for verb in ["ls", "cat", "rm", "mkdir"] {
        farhaul(&[verb, "/tmp"]).fails(2, &["/tmp is on this machine", "host:path", "udt://host:port/path"]);
        farhaul(&[verb, "-"]).fails(2, &["-"]);
    }
    farhaul(&["mv", "a:x", "b:x"]).fails(2, &["different hosts", "farhaul copy"]);
    farhaul(&["mv", "a:x"]).fails(2, &["mv"]);
    farhaul(&["ls", "--plain", "a:x"]).fails(2, &["over SSH are always encrypted"]);
    farhaul(&["rm", "tsunami://h/x"]).fails(2, &["original program"]);
}

#[test]
fn hostile_names_control_no_terminal_and_incomplete_files_are_hidden() {
    let here = Plain::new(&[]);
    let hostile = std::ffi::OsStr::from_bytes(b"a\x1b[2J\nb\xff");
    fs::write(std::path::Path::new(&here.at("")).join(hostile), "x").unwrap();
    fs::write(here.at(".f.0123456789abcdef.fhpart"), "part").unwrap();
    symlink("/etc/\x1b[31mpasswd", here.at("link")).unwrap();
    let run = here.runs("ls", &["-l"], &[""]);
    assert!(
        text(&run).contains(" a\\x1b[2J\\nb\\xff\n") && text(&run).contains("link -> /etc/\\x1b[31mpasswd"),
        "{}",
        text(&run)
    );
    assert_eq!(text(&run).lines().count(), 2, "{}", text(&run));
    let records = here.runs("ls", &["--json"], &[""]).records();
    assert_eq!((&records[1]["path_hex"], &records[1]["kind"]), (&"611b5b324a0a62ff".into(), &"file".into()));
    assert_eq!((&records[2]["kind"], &records[2]["mode"]), (&"link".into(), &"0777".into()));
    let stat = fs::symlink_metadata(here.at("link")).unwrap();
    assert_eq!((&records[2]["uid"], &records[2]["gid"]), (&stat.uid().into(), &stat.gid().into()));
    here.runs("cat", &[], &["link"]).fails(3, &["a symbolic link"]);
    here.runs("rm", &["-r"], &["link", "a%1b[2J%0ab%ff"]).succeeds();
    assert_eq!(here.scratch.names("root"), [".f.0123456789abcdef.fhpart"]);
}

#[test]
fn a_read_only_server_answers_and_changes_nothing() {
    let here = Plain::new(&["--read-only"]);
    here.scratch.file("root/f", 5);
    assert_eq!(text(&here.runs("ls", &[], &[""])), "f\n");
    assert_eq!(here.runs("cat", &[], &["f"]).stdout.len(), 5);
    here.runs("rm", &[], &["f"]).fails(5, &["/f: this server is read-only"]);
    here.runs("mv", &[], &["f", "g"]).fails(5, &["read-only"]);
    here.runs("mkdir", &[], &["d"]).fails(5, &["read-only"]);
    assert_eq!(here.scratch.names("root"), ["f"]);
}

#[test]
fn a_key_does_what_its_line_permits_within_its_caps() {
    let scratch = Scratch::new();
    let (alice, bob) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"));
    let root = scratch.dir("root");
    for folder in ["read", "write", "all", "other"] {
        scratch.dir(&format!("root/{folder}"));
        scratch.file(&format!("root/{folder}/f"), 5);
    }
    let options = format!("bob path={root}/read path={root}/write,write path={root}/all,write,delete bytes=20B");
    alice.admits(&bob, &options);
    let mut server = Server::begin_as(&alice.0, &["serve", "--root", &root]);
    let runs = |verb: &str, options: &[&str], paths: &[&str]| {
        let urls: Vec<String> = paths.iter().map(|path| format!("udt://{}/{path}", server.address)).collect();
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        bob.runs(&[&[verb, "--host-key-policy", "accept-new"], options, &urls].concat())
    };
    assert_eq!(text(&runs("ls", &[], &["read"])), "f\n");
    for (verb, paths, why) in [
        ("ls", &["other"][..], "may not read there"),
        ("ls", &[""], "may not read there"),
        ("cat", &["other/f"], "may not read there"),
        ("mkdir", &["read/d"], "path=DIR,write"),
        ("rm", &["write/f"], "path=DIR,delete"),
        ("mv", &["write/f", "all/g"], "path=DIR,delete"),
        ("mv", &["all/f", "read/g"], "path=DIR,write"),
        ("rm", &["other/f"], "path=DIR,delete"),
    ] {
        runs(verb, &[], paths).fails(5, &[why]);
    }
    runs("mkdir", &[], &["write/d"]).succeeds();
    runs("mv", &[], &["all/f", "write/g"]).succeeds();
    runs("rm", &["-r"], &["all"]).fails(3, &["the directory of a key"]);
    runs("mkdir", &[], &["all/d"]).succeeds();
    runs("rm", &["-r"], &["all/d"]).succeeds();
    // The bytes of all sessions: 20 B are four files.
    for _ in 0..4 {
        assert_eq!(runs("cat", &[], &["read/f"]).stdout.len(), 5);
    }
    runs("cat", &[], &["read/f"]).fails(5, &["may move no more bytes"]);
    let changes: Vec<Value> = (0..4).map(|_| server.wait_for("file")).collect();
    let shown =
        |record: &Value| (record["status"].as_str().unwrap().to_owned(), record["path"].as_str().unwrap().to_owned());
    let expected = [("made", "write/d"), ("renamed", "write/g"), ("made", "all/d"), ("removed", "all/d")]
        .map(|(s, p)| (s.to_owned(), p.to_owned()));
    assert_eq!(changes.iter().map(shown).collect::<Vec<_>>(), expected);
}

#[test]
fn a_copy_deletes_on_a_server_where_the_key_may() {
    let scratch = Scratch::new();
    let (alice, bob) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"));
    let root = scratch.dir("root");
    scratch.dir("tree");
    scratch.file("tree/new", 5);
    for folder in ["write", "all"] {
        scratch.dir(&format!("root/{folder}"));
        scratch.file(&format!("root/{folder}/old"), 5);
    }
    alice.admits(&bob, &format!("bob path={root}/write,write path={root}/all,write,delete"));
    let server = Server::begin_as(&alice.0, &["serve", "--root", &root]);
    let copies = |folder: &str| {
        let (from, to) = (format!("{}/.", scratch.at("tree")), format!("udt://{}/{folder}/", server.address));
        bob.runs(&["copy", "--host-key-policy", "accept-new", "-r", "--delete", &from, &to])
    };
    copies("write").fails(5, &["path=DIR,delete"]);
    copies("all").succeeds();
    assert_eq!(
        (scratch.names("root/write"), scratch.names("root/all")),
        (vec!["old".to_owned()], vec!["new".to_owned()])
    );
}

#[test]
fn the_verbs_work_over_ssh_as_the_user_there() {
    let scratch = Scratch::new();
    let (ssh, home) = (scratch.at("ssh"), scratch.dir("home"));
    let lines = "#!/bin/sh\ncase \"$*\" in *-G*) exit 0;; esac\nfor C; do :; done\n\
                 export SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'\n";
    fs::write(&ssh, format!("{lines}cd {home}\nexport HOME={home}\nexec sh -c \"$C\"\n")).unwrap();
    fs::set_permissions(&ssh, Permissions::from_mode(0o755)).unwrap();
    let content = fs::read(scratch.file("home/f", 2_500_000)).unwrap();
    symlink("f", scratch.at("home/link")).unwrap();
    let runs = |verb: &str, options: &[&str], paths: &[&str]| {
        let places: Vec<String> = paths.iter().map(|path| format!("far:{path}")).collect();
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        let ssh_options = ["--ssh", &ssh, "--remote-path", env!("CARGO_BIN_EXE_farhaul")];
        farhaul_where(&[], &[&[verb], &ssh_options[..], options, &places].concat())
    };
    assert_eq!(text(&runs("ls", &[], &[""])), "f\nlink\n");
    assert!(runs("cat", &[], &["~/link"]).stdout == content, "the user follows links");
    runs("mkdir", &["-p"], &["~/d/e"]).succeeds();
    runs("mv", &[], &["f", &format!("{home}/d/e")]).succeeds();
    assert_eq!(text(&runs("ls", &[], &["d/../d/e/"])), "f\n");
    let long = runs("ls", &["-l"], &["d/e"]);
    assert_eq!(text(&long).split_ascii_whitespace().nth(1), Some(own_name().as_str()), "{}", text(&long));
    runs("rm", &["-r"], &["d", "link"]).succeeds();
    assert!(scratch.names("home").is_empty());
    runs("ls", &[], &["none"]).fails(3, &["far:none: not found"]);
    runs("ls", &[], &["~nobody-of-this-name/x"]).fails(3, &["there is no user"]);
}

#[test]
fn a_reader_that_leaves_ends_cat_without_a_word() {
    let here = Plain::new(&[]);
    here.scratch.file("root/f", 9_000_000);
    let mut cat = Started::begin(&["cat", "--plain", &here.url("f")], Stdio::null());
    drop(cat.output());
    let run = cat.end();
    assert_eq!((run.code, run.stderr.as_str()), (7, ""));
}

#[test]
fn nobody_listens_and_what_listens_is_no_file_server() {
    farhaul(&["ls", "--plain", "--connect-timeout", "300ms", "udt://127.0.0.1:9/"]).fails(4, &["127.0.0.1:9"]);
    let server = Server::begin(&["bench"]);
    farhaul(&["ls", "--plain", &format!("udt://{}/", server.address)])
        .fails(9, &["this server measures", "farhaul serve"]);
}
