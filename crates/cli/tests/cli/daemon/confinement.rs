//! What a daemon gives up: paths outside its root, capabilities, and its own keys.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Stdio;

use rustix::process::Signal;

use super::{begin, settings, url};
use crate::process::{Scratch, Started, farhaul};

#[test]
fn the_kernel_itself_keeps_a_daemon_within_its_root() {
    let scratch = Scratch::new();
    let file = settings(&scratch, "");
    let daemon = begin(&file);
    let landlock = daemon.record["settings"]["landlock"].as_str().unwrap().to_owned();
    // The thread that serves is one of those that were started after the confinement.
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.process())).unwrap();
    assert!(landlock == "none" || status.contains("NoNewPrivs:\t1"), "{landlock}: {status}");
    daemon.signal(Signal::TERM);
    daemon.end();
    // Links out of the root are refused with and without the kernel's help.
    let root = scratch.at("root");
    symlink("/etc", format!("{root}/link")).unwrap();
    for options in [&[][..], &["--unconfined"]] {
        let all = [&["serve", "--json", "--plain", "--listen", "127.0.0.1:0", "--root", &root], options].concat();
        let server = Started::begin(&all, Stdio::null()).after("start");
        let from = format!("{}link/hostname", url(&server));
        assert_eq!(farhaul(&["copy", "--plain", &from, &scratch.at("stolen")]).code, 3);
        assert!(fs::metadata(scratch.at("stolen")).is_err());
        server.signal(Signal::TERM);
        server.end();
    }
}

/// The value of a field in the status of a process or thread.
fn status(folder: &str, field: &str) -> String {
    let text = fs::read_to_string(format!("{folder}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap().trim().to_owned()
}

#[test]
fn a_daemon_gives_up_its_capabilities_and_hides_its_memory() {
    let scratch = Scratch::new();
    let file = settings(&scratch, "");
    let by_hand = ["--root", &scratch.at("root"), "--listen", "127.0.0.1:0", "--key", &scratch.at("key")];
    let own = status("/proc/self", "CapEff");
    let own_word = if own == "0000000000000000" { "none" } else { "kept" };
    for (options, kept, hidden) in [
        (&["--config", &file][..], false, true),
        (&["--config", &file, "--unconfined"], true, false),
        (&by_hand, true, true),
        (&[&by_hand[..], &["--unconfined"]].concat(), true, false),
    ] {
        let server = Started::begin(&[&["serve", "--json"], options].concat(), Stdio::null()).after("start");
        let settings = &server.record["settings"];
        assert_eq!(settings["capabilities"], if kept { own_word } else { "none" }, "{options:?}");
        assert_eq!(settings["dumpable"], !hidden, "{options:?}");
        let process = format!("/proc/{}", server.process());
        let threads: Vec<_> = fs::read_dir(format!("{process}/task")).unwrap().map(|one| one.unwrap().path()).collect();
        assert!(threads.len() > 3);
        for thread in threads {
            let folder = thread.to_str().unwrap();
            for set in ["CapEff", "CapPrm", "CapInh"] {
                let value = status(folder, set);
                let is_kept = kept && value == status("/proc/self", set);
                assert!(
                    is_kept || value == "0000000000000000",
                    "{options:?} {}: {set} {value}",
                    status(folder, "Name")
                );
            }
        }
        // proc(5): the files of a process that may not be dumped belong to root, and its own user may not read them.
        let user = status(&process, "Uid").split_whitespace().next().unwrap().to_owned();
        let owner = fs::metadata(format!("{process}/environ")).unwrap().uid().to_string();
        assert_eq!(owner, if hidden { "0" } else { &user }, "{options:?}");
        server.signal(Signal::TERM);
        server.end();
    }
}

#[test]
fn a_daemon_does_not_serve_its_own_keys() {
    let scratch = Scratch::new();
    let (root, file) = (scratch.dir("root"), format!("{}/serve.toml", scratch.dir("root/etc")));
    fs::write(&file, format!("root = \"{root}\"\nlisten = \"127.0.0.1:0\"\n")).unwrap();
    farhaul(&["serve", "--config", &file]).fails(2, &["serve.toml", "below --root", "elsewhere"]);
    let apart = format!("{}/serve.toml", scratch.dir("etc"));
    fs::write(&apart, format!("root = \"{root}\"\nlisten = \"127.0.0.1:0\"\nkey = \"{root}/etc/key\"\n")).unwrap();
    farhaul(&["serve", "--config", &apart]).fails(2, &["root/etc/key", "below --root"]);
    let by_hand = ["serve", "--json", "--root", &root, "--listen", "127.0.0.1:0", "--key", &scratch.at("root/etc/key")];
    let mut server = Started::begin(&by_hand, Stdio::null());
    let words = server.says("below --root");
    assert!(words.contains("root/etc/key"), "{words}");
    let server = server.after("start");
    server.signal(Signal::TERM);
    server.end();
}
