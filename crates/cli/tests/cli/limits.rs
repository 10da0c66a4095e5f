//! Each verdict of `limited_by`, in a run with exactly that throttle. `session/tests.rs` of `farhaul-transfer` covers the busy processor, because
//! congestion control adapts to a slower process and becomes the limit. The same happens when a machine pauses a run, so
//! each run has three tries.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::process::{Reporting, Scratch, Server, Started, farhaul, farhaul_under, records};
use crate::requirement::runs;
use crate::secured::User;

/// Most of the time: the other verdicts of a run share the rest.
const MOSTLY: f64 = 0.5;

#[track_caller]
pub(crate) fn is_limited_by(end: &Value, limit: &str) {
    assert_eq!(end["limited_by"], limit, "{end}");
    let share = end["limited_by_share"].as_f64().unwrap();
    assert!((MOSTLY..=1.0).contains(&share), "{end}");
}

/// Runs of one throttled transfer before it counts as limited by something else.
pub(crate) const TRIES: usize = 3;

/// Of a few runs that are throttled in the same way, one is limited by what throttles it. `run` gets the number of the try.
pub(crate) fn one_is_limited_by(limit: &str, run: impl FnMut(usize) -> Value) -> Value {
    let mut others = Vec::new();
    for end in (0..TRIES).map(run) {
        let kept = end["kept"].as_u64().unwrap_or_default();
        assert_eq!(kept, 0, "a try whose file is there already says nothing about limits: {end}");
        let share = end["limited_by_share"].as_f64();
        if end["limited_by"] == limit && share.is_some_and(|share| share >= MOSTLY) {
            is_limited_by(&end, limit);
            return end;
        }
        others.push(end);
    }
    panic!("none is limited by {limit}: {others:?}");
}

/// A relay that ends with the test.
pub(crate) struct Relay(pub(crate) Reporting);

impl Drop for Relay {
    fn drop(&mut self) {
        self.0.signal(Signal::TERM);
    }
}

/// A relay to `server` with this path, and its address.
pub(crate) fn relay(server: &Server, path: &[&str]) -> (Relay, String) {
    let arguments = [&["relay", "--json", "--listen", "127.0.0.1:0", "--to", &server.address], path].concat();
    let relay = Started::begin(&arguments, Stdio::null()).after("start");
    let address = relay.record["local"].as_str().unwrap().to_owned();
    (Relay(relay), address)
}

pub(crate) fn measure(address: &str, options: &[&str]) -> Value {
    let run = farhaul(&[&["bench", "--plain", "--json", "--interval", "0", "--connect", address], options].concat());
    run.succeeds();
    run.end()
}

#[test]
fn a_program_that_gives_its_data_slowly_is_the_limit() {
    let mut listener = Server::begin(&["pipe"]);
    let mut output = listener.output();
    listener.feed(b"");
    let (_relay, address) = relay(&listener, &["--delay", "2ms"]);
    let mut pipe = Started::begin(&["pipe", "--plain", "--json", "--connect", &address], Stdio::piped());
    let mut input = pipe.input();
    // The next piece only when the last one has arrived: meanwhile the transport has nothing to do.
    let mut piece = [7; 1000];
    for _ in 0..100 {
        input.write_all(&piece).unwrap();
        output.read_exact(&mut piece).unwrap();
    }
    drop(input);
    let run = pipe.end();
    run.succeeds();
    is_limited_by(records(&run.stderr).last().unwrap(), "application");
}

#[test]
fn a_cap_of_the_rate_is_the_limit() {
    let server = Server::begin(&["bench", "--interval", "0"]);
    one_is_limited_by("rate_cap", |_| measure(&server.address, &["--bytes", "3MB", "--rate", "20mbit"]));
}

// Waits for three copies of 2 MB at 8 Mbit/s, which take 2 s each.
#[test]
fn the_rate_of_a_key_is_the_limit_in_either_direction_and_both_sides_name_it() {
    let scratch = Scratch::new();
    let (alice, bob) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"));
    let (file, root) = (scratch.file("file", 2_000_000), scratch.dir("root"));
    alice.admits(&bob, &format!("bob path={root},write rate=8mbit"));
    let mut server = Server::begin_as(&alice.0, &["serve", "--root", &root]);
    let url = format!("udt://{}/file", server.address);
    for places in [[&file, &url], [&url, &scratch.at("back")]] {
        let run = bob.runs(&["copy", "--json", "--host-key-policy", "accept-new", places[0], places[1]]);
        run.succeeds();
        is_limited_by(&run.end(), "key_rate_cap");
        is_limited_by(&server.wait_for("end"), "key_rate_cap");
        let disk = run.end()["peer"]["disk_seconds"].as_f64().unwrap();
        assert!(disk < 1.0, "the disk was not waited for: {disk}");
    }
    let run = bob.runs(&["copy", &url, &scratch.at("again")]);
    run.succeeds();
    assert!(
        run.stderr.contains("limited by the rate cap of your key there (rate= in authorized_keys"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_narrow_path_is_the_limit_by_congestion_control() {
    let server = Server::begin(&["bench", "--interval", "0"]);
    let (_relay, address) = relay(&server, &["--rate", "20mbit", "--delay", "10ms", "--queue", "bdp"]);
    one_is_limited_by("congestion", |_| measure(&address, &["--bytes", "3MB"]));
}

#[test]
fn a_small_send_buffer_on_a_long_path_is_the_limit() {
    let server = Server::begin(&["bench", "--interval", "0"]);
    let (_relay, address) = relay(&server, &["--delay", "20ms"]);
    one_is_limited_by("send_buffer", |_| measure(&address, &["--bytes", "3MB", "--buffer", "128kB"]));
}

#[test]
fn a_reader_at_the_remote_end_that_does_not_read_is_the_limit() {
    let scratch = Scratch::new();
    let file = scratch.file("input", 4_000_000);
    one_is_limited_by("receive_buffer", |_| {
        // The reader of the remote end's output passes it on at a tenth of any other speed here.
        let mut last = Server::begin_to(&["pipe"], Stdio::null());
        let mut far = Server::begin(&["pipe", "--buffer", "256kB"]);
        last.feed(b"");
        far.feed(b"");
        let slow = ["pipe", "--plain", "--rate", "20mbit", "--buffer", "256kB", "--connect", &last.address];
        let slow = Started::begin(&slow, far.output().into());
        let near = Started::begin(
            &["pipe", "--plain", "--json", "--connect", &far.address],
            File::open(&file).unwrap().into(),
        );
        let run = near.end();
        run.succeeds();
        slow.end().succeeds();
        records(&run.stderr).pop().unwrap()
    });
}

/// Makes each of these system calls take this much longer.
pub(crate) fn slow(call: &str, by: Duration) -> Option<Vec<String>> {
    runs(&["strace", "-f", "-o", "/dev/null", "true"], "it slows system calls down")?;
    let (trace, inject) = (format!("trace={call}"), format!("inject={call}:delay_enter={}", by.as_micros()));
    Some(["strace", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject].map(str::to_owned).into())
}

/// How much slower the disk is in each try than in the one before.
const SLOWER: u32 = 4;

/// A disk whose calls take this much longer is the limit of one of a few runs. `run` gets the wrapper of a program with that disk,
/// and an empty directory for the copy. On a busy machine all else is slow as well, so each try has a slower disk. `None` if calls
/// cannot be slowed down here.
pub(crate) fn slow_disk_is_the_limit(
    limit: &str,
    (call, by): (&str, Duration),
    mut run: impl FnMut(&[&str], &str) -> Value,
) -> Option<Value> {
    let (mut slower, mut wrapper) = (by, slow(call, by)?);
    Some(one_is_limited_by(limit, |_| {
        let scratch = Scratch::new();
        let end = run(&wrapper.iter().map(String::as_str).collect::<Vec<_>>(), &scratch.dir("root"));
        slower *= SLOWER;
        wrapper = slow(call, slower).unwrap_or_default();
        end
    }))
}

/// A disk that is slower than the path.
const SLOW_DISK: Duration = Duration::from_millis(10);

#[test]
fn a_slow_disk_at_the_sender_is_the_limit() {
    let scratch = Scratch::new();
    let file = scratch.file("file", 8_000_000);
    slow_disk_is_the_limit("disk_read", ("pread64", SLOW_DISK), |slow, root| {
        let server = Server::begin(&["serve", "--root", root]);
        let target = format!("udt://{}/", server.address);
        let run = farhaul_under(slow, &["copy", "--plain", "--json", &file, &target]);
        run.succeeds();
        run.end()
    });
}

// Waits for 24 MB in writes of 10 ms, 2 s in all: several times what a busy machine needs to send them.
#[test]
fn a_slow_disk_at_the_receiver_is_the_limit() {
    let scratch = Scratch::new();
    let file = scratch.file("file", 24_000_000);
    let end = slow_disk_is_the_limit("disk_write", ("pwrite64", SLOW_DISK), |slow, root| {
        let mut server = Server::begin_under(slow, &["serve", "--root", root]);
        let run = farhaul(&["copy", "--plain", "--json", &file, &format!("udt://{}/", server.address)]);
        run.succeeds();
        let (here, there) = (run.end(), server.wait_for("end"));
        // Both sides say so in the same run.
        if there["limited_by"] == "disk_write" { here } else { there }
    });
    if let Some(end) = end {
        assert!(end["peer"]["disk_seconds"].as_f64().unwrap() > 0.0, "{end}");
    }
}
