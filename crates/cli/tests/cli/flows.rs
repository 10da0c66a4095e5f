//! Copies and pipes over several connections at once.

use std::fs;
use std::process::Stdio;
use std::thread;

use rustix::process::Signal;
use serde_json::Value;

use crate::over_ssh::Far;
use crate::process::{Run, Scratch, Server, Started, farhaul, farhaul_where, farhaul_with};
use crate::secured::User;
use crate::streams::port_of_our_own;

/// Enough for each of several flows to carry some.
const SIZE: usize = 15_000_000;

/// Flows that carried something.
fn flows(end: &Value) -> usize {
    end["flows"].as_array().map_or(0, Vec::len)
}

/// It ended well, and the sums are those of its flows. Before the flows joined, the first connection carried some.
fn carried_by(end: &Value, count: usize) {
    assert_eq!(end["error"], Value::Null, "{end}");
    let each = end["flows"].as_array().unwrap();
    assert_eq!(each.len(), 1 + count, "{end}");
    let sum = |field: &str| each.iter().map(|flow| flow[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!(end["packets_sent"].as_u64().unwrap(), sum("packets_sent"), "{end}");
}

#[test]
fn a_file_is_pushed_and_pulled_over_flows_of_the_number_that_was_asked_for() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let (file, root, back) = (scratch.file("file", SIZE), scratch.dir("root"), scratch.at("back"));
    for is_plain in [false, true] {
        let mut server = match is_plain {
            true => Server::begin(&["serve", "--root", &root]),
            false => Server::begin_as(&user.0, &["serve", "--root", &root]),
        };
        let url = format!("udt://{}/copy", server.address);
        for count in ["1", "2", "4"] {
            for (from, to) in [(&file, &url), (&url, &back)] {
                let plain: &[&str] = if is_plain { &["--plain"] } else { &[] };
                // Slow enough for all flows to join.
                let copy = ["copy", "--json", "--rate", "300mbit", "--flows", count, "--skip", "never", from, to];
                let run = user.runs(&[&copy[..], plain].concat());
                run.succeeds();
                let (end, there) = (run.end(), server.wait_for("end"));
                assert_eq!((end["verified"].as_bool(), end["bytes"].as_u64()), (Some(true), Some(SIZE as u64)));
                match count {
                    "1" => assert_eq!((flows(&end), flows(&there)), (0, 0)),
                    count => [&end, &there].iter().for_each(|end| carried_by(end, count.parse().unwrap())),
                }
                let goodput = end["goodput_bps"].as_u64().unwrap();
                assert!(goodput < 320_000_000, "the cap is for all flows together: {end}");
            }
            assert!(fs::read(&back).unwrap() == fs::read(&file).unwrap());
            fs::remove_file(&back).unwrap();
        }
        drop(server);
    }
}

/// Runs a pipe whose caller asks for so many flows, with these inputs. Returns the runs of the caller and of the listener.
fn pipe(count: &str, user: Option<&User>, inputs: [&[u8]; 2]) -> [Run; 2] {
    let scratch = Scratch::new();
    let address = format!("127.0.0.1:{}", port_of_our_own());
    let run = |input: &[u8], name: &str, role: &[&str]| {
        let file = scratch.at(name);
        fs::write(&file, input).unwrap();
        let (security, home) = match user {
            Some(user) => ("--cipher=auto", user.0.as_str()),
            None => ("--plain", ""),
        };
        let arguments = [&["pipe", "--json", security][..], role].concat();
        let line = format!("exec \"$0\" \"$@\" < '{file}'");
        Started::begin_under(&["env", &format!("XDG_CONFIG_HOME={home}"), "sh", "-c", &line], &arguments, Stdio::null())
    };
    if let Some(user) = user {
        user.key("show");
    }
    let mut listener = run(inputs[1], "there", &["--listen", &address]);
    listener.says("\"start\"");
    let caller = run(inputs[0], "here", &["--flows", count, "--connect", &address]);
    // Both outputs must be read at once.
    let listener = thread::spawn(|| listener.end());
    [caller.end(), listener.join().unwrap()]
}

#[test]
fn a_pipe_keeps_its_order_over_several_flows_in_both_directions() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let data = fs::read(scratch.file("data", SIZE)).unwrap();
    for count in ["1", "2", "4"] {
        let [here, there] = pipe(count, Some(&user), [&data, &data[..SIZE / 2]]);
        assert_eq!((here.code, there.code), (0, 0), "{} {}", here.stderr, there.stderr);
        assert!(there.stdout == data && here.stdout == data[..SIZE / 2], "{count} flows");
        for (to, from) in [(&data[..], &b""[..]), (b"", &data)] {
            let [here, there] = pipe(count, None, [to, from]);
            assert_eq!((here.code, there.code), (0, 0), "{} {}", here.stderr, there.stderr);
            assert!(there.stdout == to && here.stdout == from, "{count} flows");
        }
    }
}

#[test]
fn a_pipe_of_few_bytes_ends_well_before_its_flows_have_joined() {
    let scratch = Scratch::new();
    for user in [None, Some(&User::new(&scratch, "user"))] {
        for inputs in [[&b"x"[..], b""], [b"", b"a line\n"]] {
            let [here, there] = pipe("8", user, inputs);
            assert_eq!((here.code, there.code), (0, 0), "{} {}", here.stderr, there.stderr);
            assert_eq!([&there.stdout[..], &here.stdout], inputs);
        }
    }
}

#[test]
fn bytes_that_look_like_an_offer_of_flows_are_not_sent_as_a_pipe_of_one() {
    let bonding = farhaul_session::Bonding { flows: 2, token: farhaul_session::Token([1; 16]) };
    let input = bonding.open_frame();
    let listener = Server::begin(&["pipe"]);
    let run = farhaul_with(&input, &["pipe", "--plain", "--connect", &listener.address]);
    run.fails(2, &["several flows", "--flows 2"]);
    drop(listener);
    // What only begins so is sent as it is.
    let part = &input[..input.len() - 1];
    let [here, there] = pipe("1", None, [part, b""]);
    assert_eq!((here.code, there.code, &there.stdout[..]), (0, 0, part));
    let [here, there] = pipe("2", None, [&input, b""]);
    assert_eq!((here.code, there.code, &there.stdout[..]), (0, 0, &input[..]));
}

#[test]
fn a_copy_over_flows_whose_server_is_killed_goes_on_with_another_number_of_them() {
    let scratch = Scratch::new();
    let (file, root) = (scratch.file("file", 40_000_000), scratch.dir("root"));
    let server = Server::begin(&["serve", "--timeout", "1s", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let slow = ["copy", "--plain", "--json", "--timeout", "1s", "--interval", "1s", "--rate", "50mbit", "--flows", "3"];
    let copy = Started::begin(&[&slow[..], &[&file, &url]].concat(), Stdio::null()).after("interval");
    server.signal(Signal::KILL);
    server.end();
    let end = copy.end();
    assert_eq!(end.code, 8, "{}", end.stderr);
    assert!(!scratch.names("root").contains(&"file".to_owned()));
    let server = Server::begin(&["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let again = farhaul(&["copy", "--plain", "--json", "--flows", "2", &file, &url]);
    again.succeeds();
    assert!(again.end()["spared_bytes"].as_u64().unwrap() > 1 << 20, "{}", again.end());
    assert_eq!(scratch.names("root"), ["file"]);
    assert!(fs::read(&file).unwrap() == fs::read(format!("{root}/file")).unwrap());
}

#[test]
fn flows_of_a_copy_over_ssh_join_although_the_program_there_serves_one_session() {
    let Some(far) = Far::new("") else { return };
    far.scratch.file("file", SIZE);
    let (file, copy) = (far.scratch.at("file"), far.scratch.at("copy"));
    let run = far.copies(&format!("--flows 2 {file} far:{copy}"));
    run.succeeds();
    carried_by(&run.end(), 2);
    assert!(fs::read(&file).unwrap() == fs::read(&copy).unwrap());
}

#[test]
fn what_cannot_have_several_flows_says_so() {
    let scratch = Scratch::new();
    let file = scratch.file("file", 10);
    let copy = ["copy", "--plain", "--flows", "2"];
    let fails = |more: &[&str], words: &[&str]| farhaul(&[&copy[..], more].concat()).fails(2, words);
    fails(&["--control-stream", "1mbit", &file, "udt://127.0.0.1:9/"], &["several flows"]);
    fails(&["--protocol", "rbudp", &file, "udt://127.0.0.1:9/"], &["several flows", "udt"]);
    farhaul(&["copy", "--flows", "17", &file, "udt://127.0.0.1:9/"]).fails(2, &["1 to 16"]);
    farhaul(&["copy", "--flows", "2", "one:a", "two:b"]).fails(2, &["several flows"]);
    farhaul(&["pipe", "--plain", "--protocol", "rbudp", "--flows", "2", "--connect", "127.0.0.1:9"])
        .fails(2, &["several flows"]);
    let both = ["pipe", "--flows", "2", "--rendezvous", "--listen", "127.0.0.1:9", "--connect", "127.0.0.1:9"];
    farhaul_where(&[], &both).fails(2, &["--flows", "--rendezvous"]);
}
