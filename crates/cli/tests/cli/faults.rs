//! Bad input and faults: the blast protocols between Farhaul ends, and the dialogues with original programs.

mod blocked;
mod breakable_relay;
mod breaks;
mod full;
mod scripted;
mod shrinking;
mod signals;
mod silence;
mod sizes;
mod throttled;
mod unread;

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::process::{Reporting, Scratch, Server, Started, is_temporary};

/// The protocols with datagrams beside a channel of TCP.
const BLASTS: [&str; 5] = ["sabul", "rbudp", "tsunami", "fobs", "hurricane"];
/// The original programs that give files.
const SENDERS: [&str; 2] = ["tsunami", "rbudp"];
/// Bytes of a file that takes long at [`SLOW`].
const LONG: usize = 60_000_000;
const SLOW: [&str; 2] = ["--rate", "20mbit"];

/// No file has its final name. Temporary names may remain.
#[track_caller]
fn nothing_is_final(scratch: &Scratch, directory: &str) {
    let names = scratch.names(directory);
    assert!(names.iter().all(|name| is_temporary(name)), "{names:?}");
}

/// The failure in an end record: exit code and name.
fn failure(end: &Value) -> (Option<u64>, Option<&str>) {
    (end["exit_code"].as_u64(), end["error"]["code"].as_str())
}

/// A copy from a server for original programs that is in its middle for a long time.
struct Getting {
    scratch: Scratch,
    server: Server,
    copy: Reporting,
}

impl Getting {
    /// By way of `through`, if that is not the server itself.
    fn begin(original: &str, wrapper: &[&str], through: impl FnOnce(&Server) -> String) -> Self {
        let scratch = Scratch::new();
        let root = scratch.dir("root");
        scratch.file("root/file", LONG);
        let server =
            Server::begin_under(wrapper, &[&["serve", "--protocol", original, "--root", &root][..], &SLOW].concat());
        let place = format!("{original}://{}/file", through(&server));
        let to = scratch.dir("to");
        let get = ["copy", "--plain", "--json", "--interval", "50ms", "--timeout", "5s", &place, &to];
        let mut copy = Started::begin(&get, Stdio::null()).after("interval");
        while copy.record["bytes_total"] == 0 {
            copy.record = copy.next("interval");
        }
        Self { scratch, server, copy }
    }

    fn direct(original: &str) -> Self {
        Self::begin(original, &[], |server| server.address.clone())
    }
}

/// Lets time pass that a test measures, or that a peer takes.
#[expect(clippy::disallowed_methods, reason = "the time itself is what is tested")]
fn pause(time: Duration) {
    thread::sleep(time);
}

/// Clock ticks per second in /proc (proc(5); 100 on every Linux of today).
const TICKS: f64 = 100.0;

/// Seconds of the processor that a process has used.
fn processor_seconds(process: i32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // proc(5): the name is in parentheses. User and system time are the fields 14 and 15.
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / TICKS
}

/// Bytes of a process in memory.
fn resident_bytes(process: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}
