//! Copies over SSH where UDP packets vanish without any answer: to the remote host, and between two remote hosts. Needs what the other
//! tests over SSH need, and rules of the kernel for one protocol.

use serde_json::Value;

use crate::over_ssh::{Far, fails, same, wait_for_sshd};
use crate::process::Run;
use crate::requirement::runs;

const SIZE: usize = 3_000_000;
/// From here on, incoming UDP packets of the interface `$DEV` vanish, and TCP goes on.
pub(crate) const DROP_UDP: &str =
    "ip rule add pref 10 lookup local; ip rule del pref 0; ip rule add pref 5 iif $DEV ipproto udp blackhole";
/// The interface of the remote host.
pub(crate) const DEV: &str = "DEV=$(ip -o -4 addr show scope global | sed 's/^[0-9]*: *//; s/[ @].*//; q')";
/// Beyond this, UDP counts as blocked too late, in seconds. Less than the usual time for connecting, which is 5 s.
const LATE: f64 = 4.5;
/// Less than the usual 3 s until UDP counts as blocked, for tests of something else. A connection through ssh has this time, too.
pub(crate) const SOON: &str = "--connect-timeout 2s";

pub(crate) fn can_drop() -> Option<()> {
    let rules = format!("ip link set lo up; DEV=lo; {DROP_UDP}");
    runs(&["unshare", "-n", "sh", "-c", &format!("set -e; {rules}")], "rules that drop UDP alone")
}

/// A third host, behind the far one. Its UDP packets from there vanish if `drops`.
fn with_third(drops: bool) -> Option<Far> {
    can_drop()?;
    runs(&["unshare", "-n", "ip", "link", "add", "va", "type", "veth", "peer", "name", "vb"], "pairs of interfaces")?;
    let rules = if drops { format!("DEV=vb; {DROP_UDP}; ") } else { String::new() };
    let third = format!(
        "until ip link set vb up 2> /dev/null; do sleep 0.05; done; ip link set lo up; ip addr add 10.99.0.2/24 dev vb; \
         {rules}exec $SSHD"
    );
    // The interface is gone once the new namespace exists.
    let prelude = format!(
        "export SSHD; unshare -n sh -c '{third}' & P=$!\n\
         ip link add va type veth peer name vb; ip addr add 10.99.0.1/24 dev va; ip link set va up\n\
         while ip link set vb netns $P 2> /dev/null; do sleep 0.05; done\n{}",
        wait_for_sshd("10.99.0.2")
    );
    Some(Far::new("")?.after(&prelude).knows("third", "HostName 10.99.0.2\n ProxyJump far"))
}

fn warning(run: &Run) -> Option<String> {
    let record = run.records().into_iter().find(|record| record["event"] == "warning" && is_about_udp(record))?;
    Some(record["message"].as_str().unwrap().to_owned())
}

fn is_about_udp(record: &Value) -> bool {
    record["message"].as_str().unwrap().contains("UDP does not reach")
}

fn settings(run: &Run) -> Value {
    let start = run.records().into_iter().find(|record| record["event"] == "start").unwrap();
    start["settings"].clone()
}

#[test]
fn udp_that_vanishes_is_noticed_within_3_seconds_and_named() {
    // Waits for these 3 s twice.
    let (Some(()), Some(far)) = (can_drop(), Far::new("")) else { return };
    let far = far.after(&format!("{DEV}; {DROP_UDP}"));
    let (file, there) = (far.scratch.file("file", SIZE), far.scratch.dir("there"));
    let run = far.copies(&format!("--port-range 47100 '{file}' far:'{there}/'"));
    run.succeeds();
    let (warning, settings) = (warning(&run).unwrap(), settings(&run));
    assert!(warning.contains(":47100 within") && warning.contains("through the SSH connection"), "{warning}");
    assert_eq!(settings["carrier"], "ssh");
    let noticed = settings["udp_tried_seconds"].as_f64().unwrap();
    assert!((2.9..LATE).contains(&noticed), "{noticed}");
    assert!(same(&file, &format!("{there}/file")));
    // A shorter time for connecting is kept.
    let run = far.copies(&format!("--connect-timeout 500ms far:'{there}/file' '{}'", far.scratch.at("back")));
    run.succeeds();
    let noticed = self::settings(&run)["udp_tried_seconds"].as_f64().unwrap();
    assert!((0.4..2.9).contains(&noticed), "{noticed}");
    let run = far.copies(&format!("--no-fallback '{file}' far:'{there}/no'"));
    fails(&run, 4, &["UDP does not reach", "within 3 s", "--port-range"]);
    assert_eq!(run.end()["error"]["code"], "UDP_BLOCKED");
    assert_eq!(far.scratch.names("there"), ["file"]);
}

// Waits for four runs with up to three logins each, and until UDP counts as blocked: once 3 s and twice 1 s.
#[test]
fn two_remote_hosts_without_udp_between_them_copy_through_ssh_and_this_is_said() {
    let Some(far) = with_third(true) else { return };
    let scratch = &far.scratch;
    scratch.dir("tree");
    let (file, there) = (scratch.file("tree/file", SIZE), scratch.dir("there"));
    let run = far.copies(&format!("--interval 100ms -r far:'{}' third:'{there}'", scratch.at("tree")));
    run.succeeds();
    let warning = warning(&run).unwrap();
    assert!(warning.starts_with("far: ") && warning.contains("10.99.0.2:"), "{warning}");
    assert!(warning.contains("through both SSH connections and this machine"), "{warning}");
    assert_eq!(settings(&run)["carrier"], "ssh");
    let end = run.end();
    assert_eq!((end["verified"].as_bool(), end["bytes"].as_u64()), (Some(true), Some(SIZE as u64)), "{end}");
    assert!(end["rtt_us"]["min"].as_u64() > Some(10_000), "the data took the way by this host: {end}");
    assert!(same(&file, &format!("{there}/tree/file")));
    // The other direction, and for people.
    let words = format!("{SOON} --ssh \"$S\" --remote-path $F third:'{there}/tree/file' far:'{there}/back'");
    let run = far.near(&format!("exec $F copy {words}"));
    run.succeeds();
    assert!(run.stderr.contains("from third to far through ssh and this machine"), "{}", run.stderr);
    assert!(same(&file, &format!("{there}/back")));
    let run = far.copies(&format!("{SOON} --no-fallback far:'{file}' third:'{there}/no'"));
    fails(&run, 4, &["far: ", "UDP does not reach 10.99.0.2:", "--port-range"]);
    assert_eq!(run.end()["error"]["code"], "UDP_BLOCKED");
    let run = far.copies(&format!("{SOON} far:'{}' third:'{there}'", scratch.at("missing")));
    fails(&run, 3, &["far: ", "missing"]);
    assert_eq!(scratch.names("there"), ["back", "tree"]);
}

#[test]
fn two_remote_hosts_with_udp_between_them_copy_directly() {
    let Some(far) = with_third(false) else { return };
    let (file, there) = (far.scratch.file("file", SIZE), far.scratch.dir("there"));
    let run = far.copies(&format!("--no-fallback far:'{file}' third:'{there}/'"));
    run.succeeds();
    assert!(settings(&run)["carrier"].is_null());
    assert!(run.end()["rtt_us"]["min"].as_u64() < Some(10_000), "{}", run.end());
    assert!(same(&file, &format!("{there}/file")));
}
