//! SIGHUP to a daemon: what its running sessions lose, and which files it reads again.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use farhaul_udp::Clock;
use rustix::process::Signal;

use crate::daemon::{admit_writer, begin, copy, settings, url};
use crate::process::{Scratch, Started};

#[test]
fn a_key_that_may_do_less_after_sighup_loses_its_running_session_at_once() {
    let scratch = Scratch::new();
    let (home, sent) = (scratch.dir("home"), scratch.file("sent", 20_000_000));
    let file = settings(&scratch, "");
    admit_writer(&scratch, &home);
    let keys = scratch.at("etc/authorized_keys");
    let line = fs::read_to_string(&keys).unwrap().trim().to_owned();
    fs::write(&keys, format!("{line} rate=8mbit\n")).unwrap();
    let mut daemon = begin(&file);
    let url = url(&daemon);
    let nobody = "# nobody\n".to_owned();
    let fewer = [nobody, format!("{line} rate=1mbit\n"), format!("{line} rate=8mbit from=192.0.2.0/24\n")];
    for (number, fewer) in fewer.iter().enumerate() {
        fs::write(&keys, format!("{line} rate=8mbit\n")).unwrap();
        daemon.signal(Signal::HUP);
        let to = format!("{url}copy{number}");
        let begun = || {
            let security = ["copy", "--json", "--host-key-policy", "accept-new"];
            let mut command = Command::new(env!("CARGO_BIN_EXE_farhaul"));
            command.args([&security[..], &["--give-up", "0s", &sent, &to]].concat()).env("XDG_CONFIG_HOME", &home);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        // The signal needs a moment. An admitted copy takes 20 s.
        let has_begun = || scratch.names("root").iter().any(|name| name.starts_with(&format!(".copy{number}.")));
        let running = (0..50).map(|_| begun()).find_map(|mut copy| {
            while copy.try_wait().unwrap().is_none() {
                if has_begun() {
                    return Some(copy);
                }
                thread::park_timeout(Duration::from_millis(10));
            }
            None
        });
        let clock = Clock::start();
        let began = clock.now();
        fs::write(&keys, fewer).unwrap();
        daemon.signal(Signal::HUP);
        let output = running.unwrap().wait_with_output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(clock.now() - began < Duration::from_secs(5) && !output.status.success(), "{fewer}: {words}");
        let end = daemon.next("end");
        assert!(clock.now() - began < Duration::from_secs(5) && end["exit_code"] != 0, "{end}");
    }
    daemon.signal(Signal::TERM);
    daemon.end();
}

#[test]
fn a_key_that_may_do_more_after_sighup_keeps_its_running_session() {
    let scratch = Scratch::new();
    let (home, sent) = (scratch.dir("home"), scratch.file("sent", 1_000_000));
    let file = settings(&scratch, "");
    admit_writer(&scratch, &home);
    let keys = scratch.at("etc/authorized_keys");
    let line = fs::read_to_string(&keys).unwrap().trim().to_owned();
    fs::write(&keys, format!("{line} rate=8mbit\n")).unwrap();
    let daemon = begin(&file);
    let url = url(&daemon);
    let run = thread::scope(|scope| {
        let copy = scope.spawn(|| copy(&home, false, &[&sent, &url]));
        thread::park_timeout(Duration::from_millis(400));
        fs::write(&keys, format!("{line} rate=16mbit\n")).unwrap();
        daemon.signal(Signal::HUP);
        copy.join().unwrap()
    });
    run.succeeds();
    daemon.signal(Signal::TERM);
    daemon.end();
}

/// Puts a file with this content in the place of another one, as editors do.
fn replace(path: &str, content: &str) {
    let new = format!("{path}.new");
    fs::write(&new, content).unwrap();
    fs::rename(&new, path).unwrap();
}

#[test]
fn keys_are_read_again_wherever_the_file_lies_and_however_it_is_replaced() {
    for (name, real) in [("keys.txt", "etc/keys.txt"), ("../etc/keys.txt", "etc/keys.txt"), ("link", "else/where/keys")]
    {
        let scratch = Scratch::new();
        let (home, sent) = (scratch.dir("home"), scratch.file("sent", 1_000));
        let (etc, root) = (scratch.dir("etc"), scratch.dir("root"));
        scratch.dir("else/where");
        let real = scratch.at(real);
        fs::write(&real, "# nobody\n").unwrap();
        symlink(scratch.at("else/where/keys"), scratch.at("etc/link")).unwrap();
        admit_writer(&scratch, &home);
        let line = fs::read_to_string(scratch.at("etc/authorized_keys")).unwrap();
        let options = ["--root", &root, "--listen", "127.0.0.1:0", "--key", "host_key", "--authorized-keys", name];
        let server = Started::begin_in(&etc, &[&["serve", "--json"], &options[..]].concat());
        let server = server.after("start");
        let url = url(&server);
        copy(&home, false, &[&sent, &url]).fails(5, &["does not admit"]);
        // A second time the file is another one than at the start.
        for _ in 0..2 {
            replace(&real, &line);
            server.signal(Signal::HUP);
            let admitted = (0..50).map(|_| copy(&home, false, &[&sent, &url])).find(|run| run.code != 5);
            admitted.unwrap_or_else(|| panic!("{name}")).succeeds();
            replace(&real, "# nobody\n");
            server.signal(Signal::HUP);
            let refused = (0..50).map(|_| copy(&home, false, &[&sent, &url])).find(|run| run.code == 5);
            refused.unwrap_or_else(|| panic!("{name}")).fails(5, &["does not admit"]);
        }
        server.signal(Signal::TERM);
        server.end();
    }
}
