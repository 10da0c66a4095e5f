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
fn a_copy_waits_for_no_firewall_and_says_after_3_seconds_that_there_is_one() {
    let (Some(()), Some(far)) = (can_drop(), Far::new("")) else { return };
    // Nothing over UDP, on loopback neither.
    let far = far.after(&format!("{DEV}; {DROP_UDP}; ip rule add pref 4 iif lo ipproto udp blackhole"));
    let (file, there) = (far.scratch.file("file", SIZE), far.scratch.dir("there"));
    let run = far.copies(&format!("'{file}' far:'{there}/'"));
    run.succeeds();
    assert_eq!((warning(&run), settings(&run)["carrier"].as_str()), (None, Some("ssh")));
    let end = run.end();
    assert_eq!((end["security"].as_str(), end["verified"].as_bool()), (Some("ssh"), Some(true)), "{end}");
    assert!(end["seconds"].as_f64() < Some(2.0), "it waited: {end}");
    assert!(same(&file, &format!("{there}/file")));
    let run = far.copies(&format!("far:'{there}/file' '{}'", far.scratch.at("back")));
    run.succeeds();
    assert!(same(&file, &far.scratch.at("back")));
    // 3 MB take 6 s, so the warning comes in their middle.
    let run = far.copies(&format!("--port-range 47100 --rate 4mbit '{file}' far:'{there}/slow'"));
    run.succeeds();
    let warning = warning(&run).unwrap();
    assert!(warning.contains(":47100 within 3 s") && warning.contains("through the SSH connection"), "{warning}");
    let seconds = run.end()["seconds"].as_f64().unwrap();
    assert!((5.0..30.0).contains(&seconds), "the cap holds: {seconds}");
    let run = far.copies(&format!("--no-fallback '{file}' far:'{there}/no'"));
    fails(&run, 4, &["UDP does not reach", "within 3 s", "--port-range"]);
    assert_eq!(run.end()["error"]["code"], "UDP_BLOCKED");
    assert_eq!(far.scratch.names("there"), ["file", "slow"]);
}

#[test]
fn a_copy_that_began_through_ssh_moves_to_udp_when_that_answers() {
    let Some(far) = Far::new("").map(Far::distant) else { return };
    let (file, there) = (far.scratch.file("file", 4 * SIZE), far.scratch.dir("there"));
    for (from, to) in
        [(file.clone(), format!("far:'{there}/file'")), (format!("far:'{there}/file'"), far.scratch.at("back"))]
    {
        let run = far.copies(&format!("--rate 50mbit {from} {to}"));
        run.succeeds();
        let (end, start) = (run.end(), settings(&run));
        // The handshake takes two round trips of 60 ms.
        assert_eq!(start["carrier"], "ssh", "{start}");
        assert_eq!(end["security"], "tls1.3", "{end}");
        let flows = end["flows"].as_array().unwrap();
        let carried: Vec<u64> = flows.iter().map(|flow| flow["bytes"].as_u64().unwrap()).collect();
        assert!(carried.len() == 2 && carried[1] > carried[0], "UDP has most of it: {end}");
    }
    assert!(same(&file, &far.scratch.at("back")));
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
    assert!(end["rtt_us"]["min"].as_u64() > Some(10_000), "the data took the path through this host: {end}");
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
    // The errors of the receiver arrive as well: before the copy, and of a file.
    let run = far.copies(&format!("{SOON} far:'{file}' third:'{}/a/b'", scratch.at("nowhere")));
    fails(&run, 7, &["on the other side (third)", "nowhere/a/b"]);
    scratch.dir("there/taken/file");
    let run = far.copies(&format!("{SOON} -r far:'{}' third:'{there}/taken'", scratch.at("tree/file")));
    fails(&run, 3, &["file", "something else is in the way"]);
    assert_eq!(scratch.names("there"), ["back", "taken", "tree"]);
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
