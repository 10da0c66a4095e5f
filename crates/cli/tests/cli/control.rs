//! What a user sees of running programs and changes in them: `ctl`, SIGUSR1, metrics, `--background`.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::thread;
use std::time::Duration;

use farhaul_udp::Clock;
use farhaul_units::Instant;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::process::{Run, Scratch, Server, Started, farhaul_where};

/// Looks for something that another process does soon.
fn soon<T>(look: impl Fn() -> Option<T>) -> T {
    for _ in 0..1_000 {
        if let Some(found) = look() {
            return found;
        }
        thread::park_timeout(Duration::from_millis(20));
    }
    panic!("it never came");
}

/// A user with a folder for sockets, and a server with a file that the user has as well.
struct Here {
    scratch: Scratch,
    run: String,
    server: Server,
}

impl Here {
    fn with(size: usize) -> Self {
        let scratch = Scratch::new();
        let (run, root) = (scratch.dir("run"), scratch.dir("root"));
        fs::set_permissions(&run, Permissions::from_mode(0o700)).unwrap();
        fs::copy(scratch.file("file", size), scratch.at("root/there")).unwrap();
        Self { run, server: Server::begin(&["serve", "--root", &root]), scratch }
    }

    fn ctl(&self, arguments: &[&str]) -> Run {
        farhaul_where(&[("XDG_RUNTIME_DIR", &self.run)], &[&["ctl"], arguments].concat())
    }

    /// The states of all that runs.
    fn listed(&self) -> Vec<Value> {
        let run = self.ctl(&["--json"]);
        run.succeeds();
        run.records()
    }

    /// The state of the one that runs, as soon as it is as `wanted`.
    fn state(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        soon(|| self.listed().pop().filter(|state| wanted(state)))
    }

    fn copy(&self, options: &[&str], places: [&str; 2]) -> Started {
        let words = [&["copy", "--plain", "--json", "--interval", "100ms"], options, &places].concat();
        Started::begin_where(&[("XDG_RUNTIME_DIR", &self.run)], &words)
    }

    fn push(&self, options: &[&str]) -> Started {
        self.copy(options, [&self.scratch.at("file"), &format!("udt://{}/copy", self.server.address)])
    }

    fn pull(&self, options: &[&str]) -> Started {
        self.copy(options, [&format!("udt://{}/there", self.server.address), &self.scratch.at("copy")])
    }
}

const SIZE: usize = 4_000_000;
/// A copy of that size would take a minute and a half.
const SLOW: &str = "--rate=350kbit";

#[test]
fn a_running_copy_is_listed_paused_and_faster_once_its_cap_is_taken_away() {
    let here = Here::with(SIZE);
    for pulls in [false, true] {
        let copy = if pulls { here.pull(&[SLOW]) } else { here.push(&[SLOW]) };
        let state = here.state(|state| state["bytes"].as_u64() > Some(0));
        assert_eq!((&state["verb"], &state["bytes_total"]), (&"copy".into(), &SIZE.into()), "{state}");
        assert_eq!((&state["rate_cap_bps"], &state["paused"]), (&350_000.into(), &false.into()), "{state}");
        let pid = state["pid"].to_string();
        let paused = here.ctl(&[&pid, "pause", "--json"]).records().pop().unwrap();
        assert_eq!(paused["paused"], true, "{paused}");
        here.ctl(&["resume"]).succeeds();
        let words = String::from_utf8(here.ctl(&[&pid, "rate", "off"]).stdout).unwrap();
        assert!(words.contains("copy") && words.contains(" of 4.00 MB") && !words.contains("capped"), "{words}");
        let run = copy.end();
        run.succeeds();
        assert!(run.end()["seconds"].as_f64() < Some(30.0), "{}", run.end());
        assert_eq!(here.listed(), [""; 0]);
        here.ctl(&[&pid]).fails(1, &["no running copy", "`farhaul ctl` lists them"]);
    }
}

#[test]
fn a_copy_of_a_tree_has_a_total_whichever_side_sends_it_and_whatever_it_leaves_out() {
    let here = Here::with(SIZE);
    for at in ["tree", "root/tree"] {
        here.scratch.file(&format!("{at}/big"), SIZE);
        here.scratch.file(&format!("{at}/d/small"), 1_000);
        here.scratch.file(&format!("{at}/d/left.out"), 500);
    }
    let address = &here.server.address;
    let (pulled, pushed) = (format!("udt://{address}/tree"), format!("udt://{address}/pushed"));
    let places = [[&*pulled, &here.scratch.at("pulled")], [&here.scratch.at("tree"), &pushed]];
    for (options, total) in [(&[][..], (SIZE + 1_500, 3)), (&["--exclude", "*.out"], (SIZE + 1_000, 2))] {
        for places in places {
            let copy = here.copy(&[&["-r", "--skip=never", SLOW], options].concat(), places);
            let state = here.state(|state| !state["bytes_total"].is_null());
            assert_eq!((&state["bytes_total"], &state["files_total"]), (&total.0.into(), &total.1.into()), "{state}");
            here.ctl(&["stop"]).succeeds();
            copy.end().fails(143, &[]);
        }
    }
}

#[test]
fn a_copy_is_stopped_and_a_cap_that_is_none_is_refused() {
    let here = Here::with(SIZE);
    here.ctl(&["pause"]).fails(1, &["no copy, pipe or server of this user is running"]);
    let copy = here.push(&[SLOW]);
    here.state(|_| true);
    here.ctl(&["rate", "5"]).fails(2, &[]);
    here.ctl(&["stop"]).succeeds();
    copy.end().fails(143, &["stopped by `farhaul ctl`"]);
}

#[test]
fn sockets_of_programs_that_are_gone_are_removed_and_a_folder_that_others_may_enter_is_refused() {
    let here = Here::with(1_000);
    assert_eq!(here.listed(), [""; 0]);
    let stale = here.scratch.at("run/farhaul/4000000.sock");
    drop(UnixListener::bind(&stale).unwrap());
    assert_eq!(here.listed(), [""; 0]);
    assert!(fs::symlink_metadata(&stale).is_err());
    fs::set_permissions(here.scratch.at("run/farhaul"), Permissions::from_mode(0o755)).unwrap();
    here.ctl(&[]).fails(5, &["nobody else may enter", "XDG_RUNTIME_DIR"]);
    // A copy does without.
    here.push(&[]).end().succeeds();
}

#[test]
fn a_server_is_controlled_and_its_sessions_are_shown() {
    let here = Here::with(SIZE);
    let root = here.scratch.dir("root");
    let serve = ["serve", "--plain", "--json", "--root", &root, "--listen", "127.0.0.1:0", "--metrics", ":0"];
    let mut server = Started::begin_where(&[("XDG_RUNTIME_DIR", &here.run)], &serve).after("start");
    let address = server.record["local"].as_str().unwrap().to_owned();
    let figures = server.record["settings"]["metrics"].as_str().unwrap().to_owned();
    assert!(figures.starts_with("127.0.0.1:"), "{figures}");
    let pid = here.state(|state| state["verb"] == "serve")["pid"].to_string();
    here.ctl(&[&pid, "rate", "350kbit"]).succeeds();
    // The server sends, and receives: its cap reaches the client, which sends then.
    let url = |name: &str| format!("udt://{address}/{name}");
    let pull = here.copy(&[], [&url("there"), &here.scratch.at("pulled")]);
    let push = here.copy(&[], [&here.scratch.at("file"), &url("pushed")]);
    let server_state = || here.listed().into_iter().find(|state| state["verb"] == "serve").unwrap();
    let state = soon(|| {
        let moves = |session: &Value| session["bytes"].as_u64() > Some(0);
        let moving = |state: &Value| state["sessions"].as_array().unwrap().iter().filter(|one| moves(one)).count();
        Some(server_state()).filter(|state| moving(state) == 2)
    });
    assert_eq!(state["sessions_running"], 2, "{state}");
    server.signal(Signal::USR1);
    assert!(server.says("state:").contains("2 sessions running"));
    assert!(server.says("state:").contains("session "));
    let text = scraped(&figures);
    assert!(text.contains("farhaul_sessions_running 2\n"), "{text}");
    here.ctl(&[&pid, "rate", "off"]).succeeds();
    for copy in [pull, push] {
        let run = copy.end();
        run.succeeds();
        assert!(run.end()["seconds"].as_f64() < Some(30.0), "{}", run.end());
    }
    let text =
        soon(|| Some(scraped(&figures)).filter(|text| text.contains("farhaul_sessions_total{result=\"done\"} 2\n")));
    for line in
        ["farhaul_files_total{dir=\"sent\"} 1", "farhaul_files_total{dir=\"received\"} 1", "farhaul_failures_total 0"]
    {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    here.ctl(&[&pid, "stop"]).succeeds();
    assert_eq!(server.end().code, 143);
}

fn scraped(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    answer
}

#[test]
fn the_state_of_a_copy_says_how_far_it_is_in_either_direction() {
    let here = Here::with(SIZE);
    for copy in [here.push(&[SLOW]), here.pull(&[SLOW])] {
        let mut copy = copy.after("interval");
        copy.signal(Signal::USR1);
        let amounts = copy.says("state:");
        assert!(amounts.contains(" of 4.00 MB (") && amounts.contains("0 of 1 file"), "{amounts}");
        let connection = copy.says("state:");
        assert!(connection.contains("acknowledged") && connection.contains("RTT"), "{connection}");
        copy.signal(Signal::INT);
        copy.end();
    }
}

#[test]
fn a_server_gives_way_as_it_is_asked_or_says_that_it_cannot() {
    let here = Here::with(1_000_000);
    let warned = |run: &Run| run.stderr.contains("cannot give way to other traffic");
    for (protocol, law, can) in [("udt", "union", true), ("udt", "udt", true), ("udt-2004", "udt-2004", false)] {
        let settings = ["serve", "--protocol", protocol, "--controller", law];
        let server = Server::begin(&[&settings[..], &["--root", &here.scratch.at("root")]].concat());
        let places = [&*format!("udt://{}/there", server.address), &here.scratch.at(law)];
        let run = here.copy(&["--protocol", protocol, "--background"], places).end();
        run.succeeds();
        assert_eq!(warned(&run), !can, "{law}: {}", run.stderr);
        let warnings = run.records().iter().filter(|record| record["event"] == "warning").count();
        assert_eq!(warnings, usize::from(!can), "{law}");
        assert!(!warned(&here.copy(&["--protocol", protocol, "--skip=never"], places).end()), "nobody asked");
    }
}

/// A script in the place of ssh, for which every host is this machine.
fn ssh_script(here: &Here) -> String {
    let (ssh, far) = (here.scratch.at("ssh"), here.scratch.dir("far-run"));
    let lines = "#!/bin/sh\ncase \"$*\" in *-G*) exit 0;; esac\nfor C; do :; done\n";
    let settings = format!("export SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22' XDG_RUNTIME_DIR='{far}'\n");
    fs::write(&ssh, format!("{lines}{settings}exec sh -c \"$C\"\n")).unwrap();
    fs::set_permissions(&ssh, Permissions::from_mode(0o755)).unwrap();
    ssh
}

/// A copy between two hosts that are both this machine.
fn between(here: &Here, options: &[&str]) -> Started {
    let ssh = ssh_script(here);
    let places = [format!("one:{}", here.scratch.at("file")), format!("two:{}", here.scratch.at("copied"))];
    let ssh_options = ["--ssh", &ssh, "--remote-path", env!("CARGO_BIN_EXE_farhaul"), "--json", "--interval", "100ms"];
    let words = [&["copy"], &ssh_options[..], options, &[&places[0], &places[1]]].concat();
    Started::begin_where(&[("XDG_RUNTIME_DIR", &here.run)], &words)
}

#[test]
fn a_copy_between_two_hosts_is_paused_and_faster_once_its_cap_is_taken_away() {
    let here = Here::with(SIZE);
    let mut copy = between(&here, &[SLOW]).after("interval");
    let state = here.state(|state| state["bytes"].as_u64() > Some(0));
    assert_eq!((&state["rate_cap_bps"], &state["paused"]), (&350_000.into(), &false.into()), "{state}");
    // The first record is that of the sending program, and so is the number in it.
    let near = i32::try_from(state["pid"].as_u64().unwrap()).unwrap();
    kill_process(Pid::from_raw(near).unwrap(), Signal::USR1).unwrap();
    let amounts = copy.says("state:");
    assert!(amounts.contains("kB") && amounts.contains("bit/s"), "{amounts}");
    let paused = here.ctl(&["pause", "--json"]).records().pop().unwrap();
    assert_eq!(paused["paused"], true, "{paused}");
    here.ctl(&["resume"]).succeeds();
    here.ctl(&["rate", "off"]).succeeds();
    let run = copy.end();
    run.succeeds();
    assert!(run.end()["seconds"].as_f64() < Some(30.0), "{}", run.end());
}

#[test]
fn a_command_is_listed_paused_and_capped_in_both_directions() {
    let here = Here::with(SIZE);
    let ssh = ssh_script(&here);
    let command = format!("cat - '{}'", here.scratch.at("file"));
    let words =
        ["rsh", "--ssh", &ssh, "--remote-path", env!("CARGO_BIN_EXE_farhaul"), "--rate", "1mbit", "far", &command];
    let mut run = Started::begin_where(&[("XDG_RUNTIME_DIR", &here.run)], &words);
    let mut output = run.output();
    output.read_exact(&mut [0; 1]).unwrap();
    let state = here.state(|state| state["bytes"].as_u64() > Some(0));
    assert_eq!((&state["verb"], &state["rate_cap_bps"]), (&"rsh".into(), &1_000_000.into()), "{state}");
    assert!(state["what"].as_str().unwrap().contains("cat - ") && state["what"].as_str().unwrap().ends_with(" on far"));
    assert_eq!(here.ctl(&["pause", "--json"]).records().pop().unwrap()["paused"], true);
    here.ctl(&["resume"]).succeeds();
    here.ctl(&["rate", "off"]).succeeds();
    // At the cap, it would take half a minute.
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), SIZE - 1);
    run.end().succeeds();
}

#[test]
fn what_cannot_be_throttled_says_so() {
    let here = Here::with(SIZE);
    let copy = between(&here, &["--protocol", "rbudp", "--rate", "1mbit"]).after("start");
    let state = here.state(|_| true);
    let pid = state["pid"].to_string();
    soon(|| here.ctl(&[&pid, "rate", "50mbit"]).stderr.contains("rbudp cannot change its rate").then_some(()));
    let (clock, stop) = (Clock::start(), here.ctl(&["stop"]));
    stop.succeeds();
    assert_eq!(copy.end().code, 143);
    let took = clock.now() - Instant::ZERO;
    assert!(took < Duration::from_secs(10), "the programs of both hosts end with it: {took:?}");
    // The other side of a pull has the same protocol.
    let server =
        Server::begin(&["serve", "--protocol", "rbudp", "--rate", "1mbit", "--root", &here.scratch.at("root")]);
    let places = [&*format!("udt://{}/there", server.address), &here.scratch.at("pulled")];
    let pull = here.copy(&["--protocol", "rbudp"], places);
    soon(|| (here.listed().pop()?["bytes"].as_u64() > Some(0)).then_some(()));
    here.ctl(&["rate", "50mbit"]).fails(1, &["cannot change"]);
    here.ctl(&["stop"]).succeeds();
    pull.end();
    // Single requests are not controlled.
    let own = std::process::id().to_string();
    here.ctl(&[&own]).fails(1, &["no running copy, command, pipe or server", "requests such as cat"]);
}

#[test]
fn a_pipe_is_listed_and_paused() {
    let here = Here::with(1_000);
    let mut far = Server::begin(&["pipe"]);
    let connect = ["pipe", "--plain", "--connect", &far.address];
    let mut near = Started::begin_where(&[("XDG_RUNTIME_DIR", &here.run)], &connect);
    let mut input = far.input();
    input.write_all(&[7; 100]).unwrap();
    let mut arrived = near.output();
    arrived.read_exact(&mut [0; 100]).unwrap();
    let state = here.state(|state| state["bytes"].as_u64() >= Some(100));
    assert_eq!((&state["verb"], &state["bytes_total"]), (&"pipe".into(), &Value::Null), "{state}");
    here.ctl(&["pause"]).succeeds();
    here.ctl(&["resume"]).succeeds();
    input.write_all(&[8; 100]).unwrap();
    arrived.read_exact(&mut [0; 100]).unwrap();
    here.ctl(&["stop"]).succeeds();
    assert_eq!(near.end().code, 143);
}

#[test]
fn a_background_copy_uses_the_scavenger_at_the_lowest_priority() {
    let here = Here::with(SIZE);
    let background = here.push(&["--background", "--bwlimit", "1gbit"]).end();
    background.succeeds();
    let record = &background.records()[0];
    assert_eq!((&record["controller"], &record["rate_bps"]), (&"ledbat".into(), &1_000_000_000.into()), "{record}");
    let slow = here.push(&["--background", SLOW]);
    let nice = |process: u64| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        // The name may have spaces (proc_pid_stat(5)).
        stat.rsplit(") ").next().unwrap().split(' ').nth(16).unwrap().parse::<i32>().unwrap()
    };
    let state = here.state(|_| true);
    assert!(nice(state["pid"].as_u64().unwrap()) >= nice(std::process::id().into()).min(9) + 10);
    here.ctl(&["stop"]).succeeds();
    slow.end();
}
