//! Programs behind an emulated path. Needs TUN devices, and root or user namespaces; without them the tests say so and pass.

use std::fs;
use std::io::Read;
use std::process::Stdio;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::process::{
    Run, Scratch, Started, farhaul, farhaul_on_terminal, farhaul_on_terminal_with, farhaul_under, records,
};
use crate::requirement::runs;

const PROGRAM: &str = env!("CARGO_BIN_EXE_farhaul");

/// Root without any right but one that whoever keeps its own number in a user namespace needs.
const WITHOUT_RIGHTS: &[&str] = &["setpriv", "--bounding-set=-all,+setfcap", "--inh-caps=-all"];

/// A machine that permits nobody networks of their own.
pub(crate) const FORBIDDEN: &[&str] = &[
    "unshare",
    "--user",
    "--map-root-user",
    "sh",
    "-c",
    "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"",
    "sh",
];

fn permitted() -> Option<()> {
    runs(&[PROGRAM, "emulate", "--quiet", "--", "true"], "networks of one's own")
}

/// A line that stands on the far host in these tests.
fn listener() -> String {
    format!("exec '{PROGRAM}' bench --plain --listen :9000 --interval 0")
}

/// The command that measures the forward path.
fn measure() -> String {
    format!("exec '{PROGRAM}' bench --plain --json --connect $FARHAUL_PEER:9000 --bytes 300kB --interval 0")
}

#[track_caller]
fn crosses_the_path(run: &Run) {
    run.succeeds();
    let rtt = run.end()["rtt_us"]["min"].as_u64().unwrap();
    assert!((20_000..500_000).contains(&rtt), "{rtt} µs");
    assert!(run.stderr.contains("to the far host") && run.stderr.contains("the emulator "), "{}", run.stderr);
}

#[test]
fn a_command_talks_to_what_is_served_on_the_far_host_over_the_path() {
    if permitted().is_none() {
        return;
    }
    let path =
        ["emulate", "--rate", "100mbit", "--delay", "10ms", "--serve", &listener(), "--", "sh", "-c", &measure()];
    crosses_the_path(&farhaul(&path));
}

#[test]
fn the_packet_size_is_found_unless_it_is_given() {
    if permitted().is_none() {
        return;
    }
    for (mtu, option, found) in
        [("9000", "", 9_000), ("1500", "", 1_500), ("1300", "", 1_300), ("9000", " --mtu 1500", 1_500)]
    {
        let path = ["emulate", "--rate", "100mbit", "--delay", "10ms", "--mtu", mtu];
        let (served, measured) = (listener(), measure() + option);
        let run = farhaul(&[&path[..], &["--serve", &served, "--", "sh", "-c", &measured]].concat());
        run.succeeds();
        assert_eq!(run.end()["mtu_bytes"], found, "{mtu}{option}: {}", run.end());
        assert_eq!(run.end()["packets_retransmitted"], 0);
    }
}

#[test]
fn no_root_is_needed_where_users_may_make_namespaces() {
    let needed = [WITHOUT_RIGHTS, &[PROGRAM, "emulate", "--quiet", "--", "true"]].concat();
    if runs(&needed, "networks without root").is_none() {
        return;
    }
    let served = listener();
    let path = ["emulate", "--rate", "100mbit", "--delay", "10ms", "--serve", &served, "--", "sh", "-c", &measure()];
    crosses_the_path(&farhaul_under(WITHOUT_RIGHTS, &path));
    let id = farhaul_under(WITHOUT_RIGHTS, &["emulate", "--quiet", "--", "id", "-u"]);
    let own = std::process::Command::new("id").arg("-u").output().unwrap();
    assert_eq!(id.stdout, own.stdout, "whoever runs it stays who they are");
}

#[test]
fn the_exit_code_is_the_commands_and_faults_take_one_line() {
    if permitted().is_none() {
        return;
    }
    for (line, code) in [("exit 7", 7), ("kill -9 $$", 137), ("kill $$", 143)] {
        let run = farhaul(&["emulate", "--quiet", "--", "sh", "-c", line]);
        assert_eq!((run.code, &*run.stderr), (code, ""), "{line}");
    }
    for (command, code, words) in [("nosuch", 127, "no such command"), ("/etc/passwd", 126, "ermission denied")] {
        let run = farhaul(&["emulate", "--quiet", command]);
        run.fails(code, &[command, words]);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
    let run = farhaul(&["emulate", "--quiet", "--serve", "echo why; exit 9", "true"]);
    run.fails(1, &["`echo why; exit 9`", "far host", "exit code 9: why"]);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    farhaul(&["emulate", "--mtu", "500", "true"]).fails(2, &["--mtu", "576"]);
}

#[test]
fn records_go_to_stderr_because_stdout_is_the_commands() {
    if permitted().is_none() {
        return;
    }
    let line = "echo $FARHAUL_HOST $FARHAUL_PEER $FARHAUL_PEER6; exit 4";
    let path = ["--rate", "50mbit", "--down", "delay=7ms", "--mtu", "9000"];
    let run = farhaul(&[&["emulate", "--json"][..], &path, &["sh", "-c", line]].concat());
    assert_eq!((run.code, &*run.stdout), (4, &b"near 10.77.0.2 fd77::2\n"[..]));
    assert!(run.stderr.lines().all(|line| line.starts_with('{')), "{}", run.stderr);
    let [start, end] = &records(&run.stderr)[..] else { panic!("{}", run.stderr) };
    assert_eq!((&start["event"], &start["verb"]), (&"start".into(), &"emulate".into()));
    assert_eq!(start["settings"]["up"]["rate_bps"], 50_000_000);
    assert_eq!(
        (&start["settings"]["down"]["delay_seconds"], &start["settings"]["mtu_bytes"]),
        (&0.007.into(), &9000.into())
    );
    assert_eq!((&end["event"], &end["exit_code"], &end["error"]), (&"end".into(), &4.into(), &Value::Null));
    assert!(end["valid"].is_boolean() && end["up"]["packets_in"].is_u64() && end["gaps_us"]["max"].is_u64(), "{end}");
}

#[test]
fn captures_hold_the_packets_of_both_hosts() {
    if permitted().is_none() {
        return;
    }
    let scratch = Scratch::new();
    let (near, far) = (scratch.at("near.pcap"), scratch.at("far.pcap"));
    let captures = ["--pcap", &near, "--pcap-far", &far];
    let (served, measure) = (listener(), measure());
    let run = ["--serve", &served, "--", "sh", "-c", &measure];
    farhaul(&[&["emulate", "--loss", "20%", "--quiet"][..], &captures, &run].concat()).succeeds();
    for capture in [near, far] {
        assert!(fs::metadata(&capture).unwrap().len() > 300_000, "{capture}");
    }
    let same = scratch.at("./near.pcap");
    farhaul(&["emulate", "--pcap", &scratch.at("near.pcap"), "--pcap-far", &same, "true"])
        .fails(2, &["--pcap-far", "same file"]);
    farhaul(&["emulate", "--pcap", "/nonexistent/x", "true"]).fails(7, &["/nonexistent/x", "No such file"]);
}

#[test]
fn a_disk_that_fills_costs_the_capture_and_neither_the_report_nor_the_exit_code() {
    if permitted().is_none() {
        return;
    }
    let run = farhaul(&["emulate", "--pcap", "/dev/full", "--", "sh", "-c", "ping -c 1 $FARHAUL_PEER; exit 4"]);
    assert_eq!(run.code, 4, "{}", run.stderr);
    for words in ["warning: ", "/dev/full", "No space left", "to the far host"] {
        assert!(run.stderr.contains(words), "{}", run.stderr);
    }
    let run = farhaul(&["emulate", "--json", "--pcap", "/dev/full", "--", "sh", "-c", "exit 4"]);
    assert_eq!((run.code, &records(&run.stderr).pop().unwrap()["exit_code"]), (4, &4.into()), "{}", run.stderr);
}

#[test]
fn an_emulation_whose_host_loses_its_interface_ends_with_one_line() {
    if permitted().is_none() || runs(&["ip", "-V"], "ip").is_none() {
        return;
    }
    let run = farhaul(&["emulate", "--quiet", "--", "sh", "-c", "ip link delete tun0; exec sleep 1000"]);
    run.fails(1, &["tun0"]);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
}

#[test]
fn where_nothing_is_permitted_the_relay_is_offered() {
    if runs(&[FORBIDDEN, &["true"]].concat(), "a system that permits nothing").is_none() {
        return;
    }
    farhaul_under(FORBIDDEN, &["emulate", "true"]).fails(5, &["root", "namespaces", "`farhaul relay`"]);
    let run = farhaul_under(FORBIDDEN, &["emulate", "--json", "true"]);
    let [start, end] = &records(&run.stderr)[..] else { panic!("{}", run.stderr) };
    assert_eq!((run.code, &start["event"], &end["error"]["code"]), (5, &"start".into(), &"NOT_PERMITTED".into()));
}

#[test]
fn without_tun_devices_the_relay_is_offered() {
    let hide = "mount -t tmpfs none /dev/net && exec \"$@\"";
    let hidden = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", hide, "sh"];
    if runs(&[&hidden[..], &["true"]].concat(), "a system without TUN devices").is_none() {
        return;
    }
    farhaul_under(&hidden, &["emulate", "true"]).fails(1, &["/dev/net/tun", "`farhaul relay`"]);
}

#[test]
fn a_daemon_on_the_far_host_is_waited_for() {
    if permitted().is_none() {
        return;
    }
    let scratch = Scratch::new();
    let id = scratch.at("id");
    // The shell itself looks there, for the number that this machine knows it by.
    let daemon = format!("(read id rest < /proc/self/stat; echo $id > '{id}'; sleep 0.15; {}) & exit 0", listener());
    // 9000 in hexadecimal.
    let look = format!("read id < '{id}' && cat /proc/$id/net/udp /proc/$id/net/udp6 | grep -q :2328");
    farhaul(&["emulate", "--quiet", "--serve", &daemon, "--", "sh", "-c", &look]).succeeds();
}

#[test]
fn what_was_served_and_has_ended_keeps_its_number_until_all_ends() {
    if permitted().is_none() {
        return;
    }
    let scratch = Scratch::new();
    let (id, go) = (scratch.at("id"), scratch.at("go"));
    let succeeds = format!("read id rest < /proc/self/stat; echo $id > '{id}'; sleep 1000 & exit 0");
    let look = format!("read id < '{id}'; grep -q ') Z' /proc/$id/stat");
    let run = farhaul(&["emulate", "--quiet", "--serve", &succeeds, "--", "sh", "-c", &look]);
    assert_eq!((run.code, &*run.stderr), (0, ""));
    let wait = format!("while ! [ -e '{go}' ]; do sleep 0.01; done");
    let served = format!(
        "read id rest < /proc/self/stat; echo $id > '{id}'; ({}) > /dev/null 2>&1 & {wait}; echo why; exit 9",
        listener()
    );
    let look = format!("read id < '{id}'; touch '{go}'; until grep -q ') Z' /proc/$id/stat; do sleep 0.01; done");
    let run = farhaul(&["emulate", "--quiet", "--serve", &served, "--", "sh", "-c", &look]);
    run.succeeds();
    assert!(run.stderr.contains("on the far host ended with exit code 9: why"), "{}", run.stderr);
}

#[test]
fn an_interrupt_before_the_command_has_begun_is_not_swallowed() {
    if permitted().is_none() || runs(&["script", "-qec", "true", "/dev/null"], "it makes a terminal").is_none() {
        return;
    }
    let scratch = Scratch::new();
    let file = scratch.at("file");
    // Finding out whether the path is too fast takes a tenth of a second; whoever is too late with the signal tries again.
    let stops = |_| {
        let _ = fs::remove_file(&file);
        let run = thread::scope(|scope| {
            let run = scope.spawn(|| farhaul_on_terminal(&[], &["emulate", "--rate", "1gbit", "--", "touch", &file]));
            while !run.is_finished() {
                if let Some(program) = listens_for_signals(&file) {
                    // It may have ended just now.
                    let _ = kill_process(program, Signal::INT);
                    break;
                }
            }
            run.join().unwrap()
        });
        run.code == 130 && fs::metadata(&file).is_err()
    };
    assert!((0..5).any(stops));
}

/// The emulator with `word` in its command line, once it takes signals.
fn listens_for_signals(word: &str) -> Option<Pid> {
    let is_it = |entry: &fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.starts_with(&format!("{PROGRAM}\0")) && line.contains(word)
    };
    let process = fs::read_dir("/proc").unwrap().flatten().find(is_it)?;
    let threads = fs::read_dir(process.path().join("task")).ok()?.flatten();
    let mut names = threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
    names.find(|name| name.trim() == "signals")?;
    Pid::from_raw(process.file_name().to_str()?.parse().ok()?)
}

#[test]
fn a_path_that_is_too_fast_for_the_machine_is_said_at_once() {
    if permitted().is_none() {
        return;
    }
    let run = farhaul(&["emulate", "--json", "--rate", "400gbit", "--", "true"]);
    run.succeeds();
    let records = records(&run.stderr);
    let [start, warning, _end] = &records[..] else { panic!("{}", run.stderr) };
    let message = warning["message"].as_str().unwrap();
    assert!(message.contains("this machine carries about") && message.contains("not 400 Gbit/s"), "{message}");
    assert!(start["capacity_bps"].as_u64() > Some(0), "{start}");
}

#[test]
fn tun_devices_that_may_not_be_opened_are_named() {
    let forbid = "mount -t tmpfs none /dev/net && touch /dev/net/tun && chmod 0 /dev/net/tun && exec \"$@\"";
    let as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let forbidden = [&["unshare", "--mount", "sh", "-c", forbid, "sh"][..], &as_nobody].concat();
    let own = [&forbidden[..], &["unshare", "--user", "--net", PROGRAM, "version"]].concat();
    if runs(&own, "namespaces for nobody").is_none() {
        return;
    }
    let run = farhaul_under(&forbidden, &["emulate", "true"]);
    run.fails(5, &["/dev/net/tun", "ermission denied", "`farhaul relay`"]);
}

/// An emulation whose command says its network and then something of its own, away from any terminal.
struct Running {
    started: Started,
    program: Pid,
    network: String,
}

impl Running {
    fn begin(line: &str, options: &[&str]) -> Self {
        let line = format!("readlink /proc/self/ns/net; {line}");
        let arguments = [&["emulate", "--json"], options, &["sh", "-c", &line]].concat();
        let mut started = Started::begin_under(&["setsid"], &arguments, Stdio::null());
        let start: Value = serde_json::from_str(&started.says("start")).unwrap();
        let program = Pid::from_raw(i32::try_from(start["process_id"].as_i64().unwrap()).unwrap()).unwrap();
        let network = started.prints();
        Self { started, program, network }
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.program, signal).unwrap();
    }
}

/// Processes of this machine that are in a network; what just ends may still be seen for a moment.
fn inhabitants(network: &str) -> usize {
    let is_there = |entry: fs::DirEntry| {
        fs::read_link(entry.path().join("ns/net")).is_ok_and(|link| link.to_string_lossy() == network)
    };
    fs::read_dir("/proc").unwrap().flatten().map(is_there).filter(|there| *there).count()
}

#[test]
fn an_interrupt_is_the_commands_and_a_termination_is_for_all() {
    if permitted().is_none() || runs(&["setsid", "true"], "no terminal").is_none() {
        return;
    }
    let forever = "echo ready; while :; do sleep 0.1; done";
    let mut running = Running::begin(&format!("trap 'exit 5' INT; {forever}"), &[]);
    assert_eq!(running.started.prints(), "ready");
    running.signal(Signal::INT);
    let run = running.started.end();
    assert_eq!(run.code, 5, "{}", run.stderr);
    assert_eq!(records(&run.stderr).pop().unwrap()["exit_code"], 5);
    let mut running = Running::begin(&format!("trap 'echo bye' TERM; {forever}"), &["--serve", "sleep 1000 & exit 0"]);
    assert_eq!(running.started.prints(), "ready");
    assert!(inhabitants(&running.network) > 0);
    running.signal(Signal::TERM);
    let (network, run) = (running.network, running.started.end());
    assert_eq!((run.code, &*run.stdout), (143, &b"bye\n"[..]), "it is told, and killed if it does not listen");
    assert_eq!(records(&run.stderr).pop().unwrap()["error"]["code"], "TERMINATED");
    assert_eq!(inhabitants(&network), 0);
}

#[test]
fn a_killed_emulator_takes_everything_along() {
    if permitted().is_none() || runs(&["setsid", "true"], "no terminal").is_none() {
        return;
    }
    let served = ["--serve", "sleep 1000 & sleep 1001 & exit 0"];
    let mut running = Running::begin("sleep 1000 & echo ready; exec sleep 1001", &served);
    assert_eq!(running.started.prints(), "ready");
    running.signal(Signal::KILL);
    let (network, mut stdout) = (running.network, running.started.output());
    // Everybody who could write there has ended.
    stdout.read_to_end(&mut Vec::new()).unwrap();
    assert_ne!(running.started.end().code, 0);
    let attempts = (0..1_000).take_while(|_| inhabitants(&network) > 0).count();
    assert!(attempts < 1_000, "somebody is still there");
}

#[test]
fn a_line_tells_what_the_path_carries_unless_the_command_is_a_shell() {
    if permitted().is_none() || runs(&["script", "-qec", "true", "/dev/null"], "it makes a terminal").is_none() {
        return;
    }
    let shown = |options: &[&str]| {
        let run =
            farhaul_on_terminal(&[], &[&["emulate", "--rate", "10mbit"], options, &["--", "sleep", "1.2"]].concat());
        run.succeeds();
        String::from_utf8_lossy(&run.stdout).into_owned()
    };
    let line = shown(&[]);
    assert!(["up 0 bit/s, queue 0", "down 0 bit/s", "late 0 µs"].iter().all(|word| line.contains(word)), "{line}");
    assert_eq!(shown(&["--quiet"]), "");
}

#[test]
fn a_shell_has_the_terminal_and_its_jobs() {
    if permitted().is_none() || runs(&["script", "-qec", "true", "/dev/null"], "it makes a terminal").is_none() {
        return;
    }
    let typed = b"case $- in *m*) echo jobs $((40 + 2));; esac; sleep 1000 & kill -9 %1; wait; exit 3\n";
    let run = farhaul_on_terminal_with(typed, &[("SHELL", "/bin/sh")], &["emulate", "--rate", "10mbit"]);
    let shown = String::from_utf8_lossy(&run.stdout);
    assert_eq!(run.code, 3, "{shown}");
    assert!(shown.contains("jobs 42") && !shown.contains("job control"), "{shown}");
    assert!(shown.contains("this shell runs on the near host"), "{shown}");
}
