//! The end of ssh in the middle of a copy: both ends stop, or both go on with `--detach`. Needs what the other tests over SSH need.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::thread;

use crate::over_ssh::{Far, fails, same};
use crate::process::{Run, farhaul, is_temporary};
use crate::udp_blocked::SOON;

/// Bytes that take about 24 s and 3 s at the rate of the copies.
const LONG: usize = 60_000_000;
const SHORT: usize = 8_000_000;

/// The traces of a run in which something was killed.
struct Killed {
    run: Run,
    /// From the kill to the end of the local program, in seconds.
    seconds: f64,
    /// Whether the remote program ended within 10 s after that.
    far_is_gone: bool,
}

/// Runs a copy at 20 Mbit/s, and kills `victim` in its middle: `ssh`, `near`, `far`.
fn killed(far: &Far, victim: &str, copy: &str) -> Killed {
    let at = |name: &str| far.scratch.at(name);
    let script = |name: &str, text: &str| {
        fs::write(at(name), format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(at(name), Permissions::from_mode(0o755)).unwrap();
        at(name)
    };
    for old in ["out", "ssh.pid", "far.pid", "measured"] {
        let _ = fs::remove_file(at(old));
    }
    // Ssh is also asked for its settings, which is not the connection.
    let note = format!("case \"$*\" in *-G*) ;; *) echo $$ > '{}';; esac", at("ssh.pid"));
    let ssh = script("ssh", &format!("{note}\nexec ssh -F '{}' \"$@\"", at("config")));
    let program = env!("CARGO_BIN_EXE_farhaul");
    let there = script("there.sh", &format!("echo $$ > '{}'\nexec '{program}' \"$@\"", at("far.pid")));
    let (out, ssh_pid, far_pid, measured) = (at("out"), at("ssh.pid"), at("far.pid"), at("measured"));
    let run = far.near(&format!(
        "$F copy --json --interval 50ms --rate 20mbit --ssh '{ssh}' --remote-path '{there}' {copy} > '{out}' & NEAR=$!\n\
         for i in $(seq 200); do grep -q '\"bytes_total\":[1-9]' '{out}' && break; sleep 0.05; done\n\
         case {victim} in near) kill -9 $NEAR;; far) kill -9 $(cat '{far_pid}');; *) kill -9 $(cat '{ssh_pid}');; esac\n\
         BEGUN=$(date +%s%N); wait $NEAR; CODE=$?; ENDED=$(date +%s%N)\n\
         for i in $(seq 200); do kill -0 $(cat '{far_pid}') 2> /dev/null || break; sleep 0.05; done\n\
         kill -0 $(cat '{far_pid}') 2> /dev/null; echo $((ENDED - BEGUN)) $? > '{measured}'; cat '{out}'; exit $CODE"
    ));
    let measured = fs::read_to_string(at("measured")).unwrap();
    let (nanos, alive) = measured.trim().split_once(' ').unwrap();
    Killed { run, seconds: nanos.parse::<f64>().unwrap() / 1e9, far_is_gone: alive != "0" }
}

// Waits for three copies to begin, with one or two logins each, and for both ends of each to notice the loss of ssh.
#[test]
fn the_end_of_ssh_ends_a_copy_on_both_hosts_and_leaves_nothing_under_a_final_name() {
    let Some(far) = Far::new("") else { return };
    let (file, there, here) = (far.scratch.file("file", LONG), far.scratch.dir("there"), far.scratch.dir("here"));
    for copy in [format!("'{file}' far:'{there}/'"), format!("far:'{file}' '{here}'")] {
        let killed = killed(&far, "ssh", &copy);
        fails(&killed.run, 5, &["ssh to far ended in the middle of the copy", "--detach", ".fhpart"]);
        assert_eq!(killed.run.end()["error"]["code"], "SSH_FAILED");
        assert!(killed.seconds < 5.0 && killed.far_is_gone, "{copy}: {} s, {}", killed.seconds, killed.far_is_gone);
    }
    // Between two other hosts, the one whose ssh was started last.
    let killed = killed(&far, "ssh", &format!("far:'{file}' other:'{there}/between'"));
    fails(&killed.run, 5, &["ssh to other ended in the middle of the copy"]);
    assert!(killed.seconds < 5.0 && killed.far_is_gone, "{} s, {}", killed.seconds, killed.far_is_gone);
    for folder in ["there", "here"] {
        let names = far.scratch.names(folder);
        assert!(!names.is_empty() && names.iter().all(|name| is_temporary(name)), "{names:?}");
    }
}

/// It sends no close packet, so ssh alone tells that it is gone.
#[test]
fn the_death_of_the_remote_program_ends_the_copy_here_in_time() {
    let Some(far) = Far::new("") else { return };
    let (file, here) = (far.scratch.file("file", LONG), far.scratch.dir("here"));
    let killed = killed(&far, "far", &format!("far:'{file}' '{here}'"));
    fails(&killed.run, 5, &["ssh to far ended in the middle of the copy", ".fhpart"]);
    assert!(killed.seconds < 5.0, "{} s", killed.seconds);
}

#[test]
fn a_detached_copy_survives_the_end_of_ssh_in_both_directions() {
    // Side by side, since the rate is low.
    thread::scope(|scope| {
        for is_push in [true, false] {
            let Some(far) = Far::new("") else { return };
            scope.spawn(move || {
                let (file, to) = (far.scratch.file("file", SHORT), far.scratch.dir("to"));
                let copy = if is_push { format!("'{file}' far:'{to}/'") } else { format!("far:'{file}' '{to}'") };
                let killed = killed(&far, "ssh", &format!("--detach {copy}"));
                killed.run.succeeds();
                assert!(killed.run.end()["verified"] == true && killed.far_is_gone, "{copy}: {}", killed.run.end());
                assert!(same(&file, &format!("{to}/file")));
            });
        }
    });
}

#[test]
fn the_remote_end_of_a_detached_copy_is_no_orphan() {
    let Some(far) = Far::new("") else { return };
    let (file, there) = (far.scratch.file("file", LONG), far.scratch.dir("there"));
    let killed = killed(&far, "near", &format!("--detach --timeout 2s '{file}' far:'{there}/'"));
    assert!(killed.far_is_gone);
    assert!(far.scratch.names("there").iter().all(|name| is_temporary(name)));
}

#[test]
fn a_detached_copy_needs_udp_and_this_machine() {
    farhaul(&["copy", "--detach", "one:f", "two:f"]).fails(2, &["--detach", "this machine"]);
    farhaul(&["copy", "--detach", "/etc/hostname", "udt://localhost:9/"]).fails(2, &["--detach", "over SSH"]);
    let Some(far) = Far::new("") else { return };
    let (file, there) = (far.scratch.file("file", 10), far.scratch.dir("there"));
    // UDP is as good as blocked to this host.
    let run = far.copies(&format!("{SOON} --detach '{file}' inside:'{there}/'"));
    fails(&run, 4, &["UDP does not reach", "--detach"]);
    assert!(far.scratch.names("there").is_empty());
}
