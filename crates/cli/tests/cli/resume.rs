//! Copies that were cut, and the same command again.

use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::over_ssh::Far;
use crate::process::{Run, Scratch, Server, Started, farhaul};
use crate::secured::User;

/// A file of several seconds at [`SLOW`], and of many chunks.
const SIZE: usize = 40_000_000;
const SLOW: [&str; 2] = ["--rate", "100mbit"];
const MIB: u64 = 1 << 20;

/// Which side is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Killed {
    Sender,
    Receiver,
}

fn moved(end: &Value) -> u64 {
    end["moved_bytes"].as_u64().unwrap()
}

/// The incomplete file in `directory` and its journal.
fn remains(scratch: &Scratch, directory: &str) -> Vec<String> {
    let mut names = scratch.names(directory);
    names.retain(|name| name.ends_with(".fhpart") || name.ends_with(".fhjournal"));
    names
}

fn size_of_file(scratch: &Scratch, name: &str) -> u64 {
    fs::metadata(scratch.at(&format!("root/{name}"))).unwrap().len()
}

/// Waits until so many bytes of an incomplete file in `directory` are written. How long that takes depends on the machine.
fn wait_until_written(scratch: &Scratch, directory: &str, bytes: u64) {
    let written = || -> u64 {
        let part =
            |name: &String| fs::metadata(scratch.at(&format!("{directory}/{name}"))).map_or(0, |part| part.len());
        remains(scratch, directory).iter().filter(|name| name.ends_with(".fhpart")).map(part).sum()
    };
    let is_written =
        (0..4_500).any(|_| written() >= bytes || (thread::park_timeout(Duration::from_millis(10)), false).1);
    assert!(is_written, "{} bytes", written());
}

/// Pushes a file, and kills one side in the middle. Returns the bytes that had been written.
fn cut_push(scratch: &Scratch, killed: Killed) -> u64 {
    let (file, root) = (scratch.at("file"), scratch.dir("root"));
    let server = Server::begin(&["serve", "--timeout", "1s", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let slow = ["copy", "--plain", "--json", "--timeout", "1s"];
    let copy = Started::begin(&[&slow[..], &SLOW, &[&file, &url]].concat(), Stdio::null()).after("start");
    wait_until_written(scratch, "root", 6 * MIB);
    match killed {
        Killed::Sender => {
            copy.signal(Signal::KILL);
            copy.end();
            // The server notices, and lets go of the incomplete file.
            let mut server = server;
            server.wait_for("end");
        }
        Killed::Receiver => {
            server.signal(Signal::KILL);
            server.end();
            copy.end();
        }
    }
    assert!(!scratch.names("root").contains(&"file".to_owned()));
    let [journal, part] = &remains(scratch, "root")[..] else { panic!("{:?}", scratch.names("root")) };
    assert!(journal.ends_with(".fhjournal") && part.ends_with(".fhpart"));
    size_of_file(scratch, part)
}

fn push(scratch: &Scratch) -> Run {
    let server = Server::begin(&["serve", "--root", &scratch.at("root")]);
    let run = farhaul(&["copy", "--plain", "--json", &scratch.at("file"), &format!("udt://{}/", server.address)]);
    run.succeeds();
    assert_eq!(scratch.names("root"), ["file"], "nothing is left over");
    assert!(fs::read(scratch.at("file")).unwrap() == fs::read(scratch.at("root/file")).unwrap());
    run
}

#[test]
fn a_push_that_was_cut_goes_on_whichever_side_was_killed() {
    for killed in [Killed::Sender, Killed::Receiver] {
        let scratch = Scratch::new();
        scratch.file("file", SIZE);
        let written = cut_push(&scratch, killed);
        assert!(written > 4 * MIB, "{killed:?}: {written}");
        let end = push(&scratch).end();
        // All but the chunk under way and the eager first one.
        let again = moved(&end) - (SIZE as u64 - written);
        assert!(again <= 3 * MIB, "{killed:?}: {again} bytes again after {written}");
        assert_eq!(moved(&end) + end["spared_bytes"].as_u64().unwrap(), SIZE as u64, "{end}");
    }
}

#[test]
fn the_same_command_goes_on_although_the_server_has_not_noticed_that_its_sender_was_killed() {
    let scratch = Scratch::new();
    let size = 160_000_000;
    let (file, root) = (scratch.file("file", size), scratch.dir("root"));
    let server = Server::begin(&["serve", "--timeout", "3s", "--root", &root]);
    let copy = ["copy", "--plain", "--json", &file, &format!("udt://{}/", server.address)];
    let first = Started::begin(&[&copy[..], &["--rate", "400mbit"]].concat(), Stdio::null()).after("start");
    wait_until_written(&scratch, "root", 80 * MIB);
    first.signal(Signal::KILL);
    first.end();
    let written: u64 = remains(&scratch, "root").iter().map(|name| size_of_file(&scratch, name)).sum();
    assert!(written > 64 * MIB, "shorter files are sent again: {written}");
    let end = farhaul(&copy).end();
    let missing = size as u64 - written.min(size as u64);
    assert!(moved(&end) <= missing + 3 * MIB, "{} bytes moved after {written}", moved(&end));
    assert_eq!(scratch.names("root"), ["file"]);
    assert!(fs::read(&file).unwrap() == fs::read(scratch.at("root/file")).unwrap());
}

/// Its server has heard nothing of the end, and would hold the session, and a short file, for the 30 s of its time-out.
#[test]
fn the_same_copy_with_the_same_key_ends_the_session_of_a_client_that_was_killed() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let (file, root) = (scratch.file("file", SIZE), scratch.dir("root"));
    let mut server = Server::begin_as(&user.0, &["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let copy = ["copy", "--json", "--host-key-policy", "accept-new", &file, &url];
    let slow = [&copy[..], &SLOW].concat();
    let first = Started::begin_where(&[("XDG_CONFIG_HOME", &user.0)], &slow).after("start");
    wait_until_written(&scratch, "root", 6 * MIB);
    first.signal(Signal::KILL);
    first.end();
    let run = user.runs(&copy);
    run.succeeds();
    assert!(run.end()["spared_bytes"].as_u64() >= Some(4 * MIB), "{}", run.end());
    assert_eq!(scratch.names("root"), ["file"], "no second part is left");
    // The session of the first one ended before the second one did.
    let ends = [server.wait_for("end"), server.wait_for("end")];
    assert!(!ends[0]["error"].is_null() && ends[1]["error"].is_null(), "{ends:?}");
}

#[test]
fn a_pull_that_was_cut_goes_on() {
    let scratch = Scratch::new();
    let (root, here) = (scratch.dir("root"), scratch.dir("here"));
    scratch.file("root/file", SIZE);
    let server = Server::begin(&[&["serve", "--root", &root][..], &SLOW].concat());
    let url = format!("udt://{}/file", server.address);
    let pull = ["copy", "--plain", "--json", &url, &here];
    let copy = Started::begin(&pull, Stdio::null()).after("start");
    wait_until_written(&scratch, "here", 6 * MIB);
    copy.signal(Signal::KILL);
    copy.end();
    let [_, part] = &remains(&scratch, "here")[..] else { panic!("{:?}", scratch.names("here")) };
    let written = fs::metadata(scratch.at(&format!("here/{part}"))).unwrap().len();
    let run = farhaul(&["copy", "--plain", "--json", &url, &here]);
    run.succeeds();
    let again = moved(&run.end()) - (SIZE as u64 - written);
    assert!(written > 4 * MIB && again <= 3 * MIB, "{again} bytes again after {written}");
    assert_eq!(scratch.names("here"), ["file"]);
    assert!(fs::read(scratch.at("root/file")).unwrap() == fs::read(scratch.at("here/file")).unwrap());
}

#[test]
fn a_copy_over_ssh_that_was_cut_goes_on_also_between_two_hosts() {
    const SIZE: usize = 12_000_000;
    let Some(far) = Far::new("") else { return };
    let file = far.scratch.file("file", SIZE);
    let to = far.scratch.dir("to");
    for (from_host, to_host) in [("", "far:"), ("far:", ""), ("far:", "other:")] {
        let copy = format!("$F copy --json --ssh \"$S\" --remote-path $F {from_host}{file} {to_host}{to}/");
        // Nobody may continue what somebody still has open.
        let line = format!(
            "{copy} --rate 60mbit > /dev/null 2>&1 & C=$!
             written() {{ stat -c %s {to}/.file.*.fhpart 2> /dev/null || echo 0; }}
             until [ $(written) -gt 6000000 ]; do sleep 0.05; done
             kill -9 $C; wait $C
             until flock -n {to}/.file.*.fhpart true; do sleep 0.05; done
             written; exec {copy}"
        );
        let run = far.near(&line);
        run.succeeds();
        let written = String::from_utf8_lossy(&run.stdout).lines().next().and_then(|line| line.parse::<u64>().ok());
        let again = moved(&run.end()) - (SIZE as u64 - written.unwrap());
        assert!(again <= 3 * MIB, "{from_host} {to_host}: {again} bytes again: {}", run.end());
        assert!(fs::read(&file).unwrap() == fs::read(format!("{to}/file")).unwrap());
        assert_eq!(far.scratch.names("to"), ["file"], "{from_host} {to_host}");
        fs::remove_file(format!("{to}/file")).unwrap();
    }
}

#[test]
fn whatever_happens_to_the_remains_the_next_copy_is_right_and_only_bad_chunks_come_again() {
    type Harm = fn(&Scratch, &str, &str);
    let part_of = |scratch: &Scratch, part: &str| fs::File::options().write(true).open(scratch.at(part)).unwrap();
    let harms: [(&str, u64, Harm); 5] = [
        ("a flipped bit", 2, |scratch, part, _| {
            let file = fs::File::options().read(true).write(true).open(scratch.at(part)).unwrap();
            let mut byte = [0];
            file.read_exact_at(&mut byte, 2 * MIB + 7).unwrap();
            file.write_all_at(&[byte[0] ^ 1], 2 * MIB + 7).unwrap();
        }),
        ("a torn journal", 2, |scratch, _, journal| {
            let file = fs::File::options().write(true).open(scratch.at(journal)).unwrap();
            file.set_len(file.metadata().unwrap().len() - 5).unwrap();
        }),
        ("a journal of rubbish", u64::MAX, |scratch, _, journal| {
            fs::write(scratch.at(journal), [0x55; 5000]).unwrap();
        }),
        ("no journal", u64::MAX, |scratch, _, journal| fs::remove_file(scratch.at(journal)).unwrap()),
        ("a file cut short", u64::MAX, |scratch, part, _| {
            fs::File::options().write(true).open(scratch.at(part)).unwrap().set_len(3 * MIB).unwrap();
        }),
    ];
    let _ = part_of;
    let before = Scratch::new();
    before.file("file", SIZE);
    let written = cut_push(&before, Killed::Receiver);
    for (name, chunks, harm) in harms {
        let scratch = Scratch::new();
        fs::copy(before.at("file"), scratch.at("file")).unwrap();
        scratch.dir("root");
        let [journal, part] = [0, 1].map(|index| format!("root/{}", remains(&before, "root")[index]));
        for remain in [&journal, &part] {
            fs::copy(before.at(remain), scratch.at(remain)).unwrap();
        }
        harm(&scratch, &part, &journal);
        let end = push(&scratch).end();
        let again = moved(&end).saturating_sub(SIZE as u64 - written);
        assert!(again / MIB <= chunks.saturating_add(2), "{name}: {again} bytes again");
        assert!(again >= MIB, "{name}: {again}");
    }
}

#[test]
fn a_source_that_changed_since_the_cut_arrives_as_it_is_now() {
    let scratch = Scratch::new();
    let file = scratch.file("file", SIZE);
    let written = cut_push(&scratch, Killed::Receiver);
    fs::File::options().write(true).open(&file).unwrap().write_all_at(b"other bytes", 3 * MIB).unwrap();
    let end = push(&scratch).end();
    let again = moved(&end) - (SIZE as u64 - written);
    assert!((MIB..=4 * MIB).contains(&again), "the changed chunk alone: {again}");
}

#[test]
fn two_copies_to_one_target_at_a_time_do_not_share_an_incomplete_file() {
    let scratch = Scratch::new();
    let (one, root) = (scratch.file("one/file", SIZE), scratch.dir("root"));
    let other = scratch.file("other/file", 9_000_000);
    let server = Server::begin(&["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let slow = ["copy", "--plain", "--json", "--interval", "100ms"];
    let first = Started::begin(&[&slow[..], &SLOW, &[&one, &url]].concat(), Stdio::null()).after("interval");
    farhaul(&["copy", "--plain", &other, &url]).succeeds();
    assert!(fs::read(scratch.at("root/file")).unwrap() == fs::read(&other).unwrap());
    first.end().succeeds();
    assert!(fs::read(scratch.at("root/file")).unwrap() == fs::read(&one).unwrap());
    assert_eq!(scratch.names("root"), ["file"]);
}

#[test]
fn clean_removes_what_broken_copies_left_and_nothing_that_is_in_use() {
    let scratch = Scratch::new();
    scratch.file("file", SIZE);
    cut_push(&scratch, Killed::Receiver);
    scratch.file("root/sub/.x.0123456789abcdef.fhpart", 100);
    scratch.file("root/.mine.fhpart", 5);
    for path in ["root/sub/.x.0123456789abcdef.fhpart", "root/.mine.fhpart"] {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(scratch.at(path), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let server = Server::begin(&["serve", "--root", &scratch.at("root")]);
    let url = format!("udt://{}/used", server.address);
    let slow = ["copy", "--plain", "--json", "--interval", "200ms", "--skip", "never"];
    let used = Started::begin(&[&slow[..], &SLOW, &[&scratch.at("file"), &url]].concat(), Stdio::null());
    let used = used.after("interval");
    let run = farhaul(&["clean", "-r", "--json", &scratch.at("root")]);
    run.succeeds();
    let told: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!((&told["files"], &told["failed"]), (&2.into(), &0.into()), "{told}");
    used.end().succeeds();
    assert_eq!(scratch.names("root"), [".mine.fhpart", "sub", "used"]);
    assert!(scratch.names("root/sub").is_empty());
}
