//! SIGHUP to a daemon: what its running sessions lose, and which files it reads again.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::daemon::{admit_writer, begin, copy, settings, url};
use crate::process::Scratch;

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
            command.args([&security[..], &[&sent, &to]].concat()).env("XDG_CONFIG_HOME", &home);
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
        let began = Instant::now();
        fs::write(&keys, fewer).unwrap();
        daemon.signal(Signal::HUP);
        let output = running.unwrap().wait_with_output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(began.elapsed() < Duration::from_secs(5) && !output.status.success(), "{fewer}: {words}");
        let end = daemon.next("end");
        assert!(began.elapsed() < Duration::from_secs(5) && end["exit_code"] != 0, "{end}");
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
