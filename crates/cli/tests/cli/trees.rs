//! Trees: deep ones, ones that break off, and copies of them where a system lacks the newer calls.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use rustix::process::Signal;

use crate::process::{Reporting, Scratch, Server, Started, farhaul_under};
use crate::requirement::runs;

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
fn a_tree_that_breaks_off_leaves_its_directories_with_their_modes_on_either_side() {
    let scratch = Scratch::new();
    let (root, here) = (scratch.dir("root"), scratch.dir("here"));
    for name in ["from/tree", "root/source"] {
        fs::set_permissions(scratch.dir(&format!("{name}/inner")), Permissions::from_mode(0o750)).unwrap();
        scratch.file(&format!("{name}/inner/large"), 20_000_000);
    }
    let slow = ["--plain", "--json", "--rate", "5mbit", "--buffer", "256kB", "--interval", "50ms"];
    let serve = ["serve", "--root", &root, "--listen", "127.0.0.1:0"];
    let mut server = Started::begin(&[&serve, &slow[..]].concat(), Stdio::null()).after("start");
    let url = format!("udt://{}", server.record["local"].as_str().unwrap());
    // Bytes of the file have arrived, so its directories stand.
    let under_way =
        |receiver: &mut Reporting| while receiver.next("interval")["bytes_total"].as_u64() < Some(100_000) {};
    let interrupt = |copy: Reporting| {
        copy.signal(Signal::INT);
        assert_eq!(copy.end().code, 130);
    };
    let push = ["copy", "-r", &scratch.at("from/tree"), &format!("{url}/")];
    let copy = Started::begin(&[&push, &slow[..]].concat(), Stdio::null()).after("start");
    under_way(&mut server);
    interrupt(copy);
    let pull = ["copy", "--plain", "--json", "--interval", "50ms", "-r", &format!("{url}/source"), &format!("{here}/")];
    let mut copy = Started::begin(&pull, Stdio::null()).after("start");
    under_way(&mut copy);
    interrupt(copy);
    // It ends after its sessions.
    server.signal(Signal::TERM);
    assert_eq!(server.end().code, 143);
    for (directory, mode) in
        [("root/tree", 0o755), ("root/tree/inner", 0o750), ("here/source", 0o755), ("here/source/inner", 0o750)]
    {
        let metadata = fs::metadata(scratch.at(directory)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{directory}");
    }
    assert!(scratch.names("root/tree/inner")[0].ends_with(".fhpart"));
}

/// A kernel without the calls since Linux 4.18, which distributions maintain for long, and a file system without the flags of
/// renameat2.
const OLDER_SYSTEM: [&str; 8] = [
    "strace",
    "-f",
    "-qq",
    "-o",
    "/dev/null",
    "-einject=openat2,epoll_pwait2,faccessat2,close_range,clone3,pidfd_open,landlock_create_ruleset:error=ENOSYS",
    "-einject=renameat2:error=EINVAL",
    "--seccomp-bpf",
];

#[test]
fn a_system_without_the_newer_calls_gets_the_same_tree() {
    let Some(()) = runs(&["strace", "-f", "-o", "/dev/null", "true"], "it makes system calls fail") else { return };
    let scratch = Scratch::new();
    let (root, tree) = (scratch.dir("root"), scratch.dir("tree"));
    scratch.dir("tree/a/b/c");
    for name in ["a/b/c/file", "a/b/z", "a/z", "z"] {
        scratch.file(&format!("tree/{name}"), 10);
    }
    let server = Server::begin_under(&OLDER_SYSTEM, &["serve", "--root", &root]);
    // The second time, every file replaces one.
    for _ in 0..2 {
        farhaul_under(&OLDER_SYSTEM, &["copy", "--plain", "-r", &tree, &format!("udt://{}/", server.address)])
            .succeeds();
        assert_eq!(scratch.names("root/tree"), ["a", "z"]);
        assert_eq!(scratch.names("root/tree/a/b"), ["c", "z"]);
        assert_eq!(scratch.names("root/tree/a/b/c"), ["file"]);
    }
}
