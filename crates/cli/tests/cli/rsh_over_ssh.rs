//! Commands over a real sshd on the far host of an emulated path: the loss of ssh, blocked UDP. Needs what the other tests over SSH need.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::over_ssh::{Far, fails, lines};
use crate::requirement::runs;
use crate::udp_blocked::SOON;

/// Commands there.
const RSH: &str = "$F rsh --ssh \"$S\" --remote-path $F";

#[test]
fn commands_go_over_udp_and_through_ssh_where_it_is_blocked() {
    let Some(far) = Far::new("") else { return };
    let file = far.scratch.file("file", 300_000);
    let run = far.near(&format!(
        "set -e; {RSH} far 'cat; echo $XDG_CACHE_HOME >&2' < '{file}' | cmp - '{file}'\n\
         {{ {RSH} inside 'cat; exit 9' < '{file}' || echo $? >&2; }} | cmp - '{file}'"
    ));
    run.succeeds();
    let [variable, code] = lines(&run)[..] else { panic!("{}", run.stderr) };
    assert_eq!((variable, code), (&*far.scratch.at("cache"), "9"), "what sshd has set, and the exit code");
    let run = far.near(&format!("exec {RSH} {SOON} --no-fallback inside 'echo never'"));
    fails(&run, 255, &["UDP does not reach", "--port-range"]);
    assert!(run.stdout.is_empty());
}

#[test]
fn a_key_for_one_command_runs_no_other() {
    let Some(far) = Far::new("ForceCommand F bootstrap") else { return };
    // The settings name the program by its path.
    let settings = fs::read_to_string(far.scratch.at("sshd_config")).unwrap();
    let settings = settings.replace("ForceCommand F", &format!("ForceCommand {}", env!("CARGO_BIN_EXE_farhaul")));
    fs::write(far.scratch.at("sshd_config"), settings).unwrap();
    let (file, there) = (far.scratch.file("file", 10), far.scratch.dir("there"));
    let run = far.near(&format!("exec {RSH} far 'touch {there}/made'"));
    fails(&run, 255, &["may only copy files"]);
    far.copies(&format!("'{file}' far:'{there}/'")).succeeds();
    assert_eq!(far.scratch.names("there"), ["file"]);
}

/// The loss of each of the three programs ends the command on both hosts.
#[test]
fn the_loss_of_ssh_or_of_one_end_ends_the_command() {
    let Some(far) = Far::new("") else { return };
    let at = |name: &str| far.scratch.at(name);
    let ssh = at("noting");
    let note = format!("case \"$*\" in *-G*) ;; *) echo $$ > '{}';; esac", at("ssh.pid"));
    fs::write(&ssh, format!("#!/bin/sh\n{note}\nexec ssh -F '{}' \"$@\"\n", at("config"))).unwrap();
    fs::set_permissions(&ssh, Permissions::from_mode(0o755)).unwrap();
    let command = format!("echo $$ $PPID > {0}.new; mv {0}.new {0}; sleep 1000 & wait", at("there.pid"));
    let line = format!(
        "for VICTIM in ssh near far; do rm -f '{there}'; $F rsh --ssh '{ssh}' --remote-path $F far '{command}' 2> '{said}' & NEAR=$!\n\
         for i in $(seq 200); do test -e '{there}' && break; sleep 0.05; done; read SHELL PROGRAM < '{there}'\n\
         case $VICTIM in ssh) kill -9 $(cat '{pid}');; near) kill -9 $NEAR;; far) kill -9 $PROGRAM;; esac\n\
         BEGUN=$(date +%s%N); wait $NEAR; CODE=$?; LASTED=$((($(date +%s%N) - BEGUN) / 1000000000))\n\
         for i in $(seq 100); do test -e /proc/$SHELL/exe || test -e /proc/$PROGRAM/exe || break; sleep 0.05; done\n\
         test -e /proc/$SHELL/exe || test -e /proc/$PROGRAM/exe; echo $VICTIM $CODE $? $((LASTED < 5)) $(tail -1 '{said}'); done",
        there = at("there.pid"),
        said = at("said"),
        pid = at("ssh.pid"),
    );
    let run = far.near(&line);
    let said = String::from_utf8(run.stdout).unwrap();
    let lines: Vec<_> = said.lines().collect();
    let lost = "farhaul: ssh to far ended before the command did";
    assert!(lines[0].starts_with(&format!("ssh 255 1 1 {lost}")), "{said}");
    assert!(lines[1].starts_with("near 137 1 1"), "{said}");
    assert!(lines[2].starts_with(&format!("far 255 1 1 {lost}")), "{said}");
}

#[test]
fn rsync_crosses_a_path_that_loses_packets() {
    let (Some(()), Some(far)) = (runs(&["rsync", "--version"], "rsh below rsync"), Far::new("")) else { return };
    let (source, there) = (far.scratch.dir("source"), far.scratch.dir("there"));
    for number in 0..20 {
        far.scratch.file(&format!("source/{number}"), 100_000);
    }
    let line = format!(
        "rsync -a -e \"$F rsh --ssh '$S' --remote-path $F\" '{source}/' far:'{there}/' && diff -r '{source}' '{there}'"
    );
    far.near_with(&["--loss", "1%"], &line).succeeds();
}
