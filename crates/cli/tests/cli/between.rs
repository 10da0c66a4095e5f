//! Every protocol between two hosts behind an emulated path of 100 Mbit/s, 20 ms and a loss of 1e-4. Needs TUN devices,
//! and root or user namespaces; without them the tests say so and pass.

use std::fs;

use serde_json::Value;

use crate::process::{Run, Scratch, farhaul};
use crate::requirement::runs;

const PROGRAM: &str = env!("CARGO_BIN_EXE_farhaul");
const PATH: [&str; 8] = ["emulate", "--quiet", "--rate", "100mbit", "--delay", "10ms", "--loss", "1e-4"];

fn permitted() -> Option<()> {
    runs(&[PROGRAM, "emulate", "--quiet", "--", "true"], "networks of one's own")
}

/// Runs a command on the local host while another serves on the remote one.
fn between(served: &str, command: &str) -> Run {
    let (served, command) = (format!("exec '{PROGRAM}' {served}"), format!("exec '{PROGRAM}' {command}"));
    farhaul(&[&PATH[..], &["--serve", &served, "--", "sh", "-c", &command]].concat())
}

#[test]
fn a_copy_over_every_protocol_crosses_a_lossy_path_and_is_verified() {
    if permitted().is_none() {
        return;
    }
    let list: Value = serde_json::from_slice(&farhaul(&["protocols", "--json"]).stdout).unwrap();
    for row in list.as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        let scratch = Scratch::new();
        let (file, root) = (scratch.file("file", 3_000_001), scratch.dir("root"));
        let run = between(
            &format!("serve --plain --protocol {name} --root '{root}' --listen :9000"),
            &format!("copy --plain --json --protocol {name} '{file}' udt://$FARHAUL_PEER:9000/copy"),
        );
        run.succeeds();
        assert_eq!(run.end()["verified"].as_bool(), Some(true), "{name}");
        assert!(run.end()["rtt_us"]["min"].as_u64().is_some_and(|rtt| rtt >= 20_000), "{name}: {}", run.end());
        assert_eq!(fs::read(format!("{root}/copy")).unwrap(), fs::read(&file).unwrap(), "{name}");
    }
}

#[test]
fn the_original_forms_of_tsunami_and_rbudp_cross_a_lossy_path() {
    if permitted().is_none() {
        return;
    }
    for (name, port) in [("tsunami", 46_224), ("rbudp", 38_000)] {
        let scratch = Scratch::new();
        let root = scratch.dir("root");
        let (file, copy) = (scratch.file("root/file", 3_000_001), scratch.at("copy"));
        let rates = [("tsunami", ["", "--rate 90mbit"]), ("rbudp", ["--rate 90mbit", ""])];
        let (_, [server, client]) = rates.into_iter().find(|(of, _)| *of == name).unwrap();
        let run = between(
            &format!("serve --plain --protocol {name} {server} --root '{root}' --listen 0.0.0.0:{port}"),
            &format!("copy --plain --json {client} {name}://$FARHAUL_PEER:{port}/file '{copy}'"),
        );
        run.succeeds();
        assert_eq!(run.end()["verified"].as_bool(), Some(false), "{name} carries no digest");
        assert_eq!(fs::read(&copy).unwrap(), fs::read(&file).unwrap(), "{name}");
    }
}

#[test]
fn the_original_form_of_sabul_crosses_a_lossy_path() {
    if permitted().is_none() {
        return;
    }
    let scratch = Scratch::new();
    let file = scratch.file("file", 3_000_001);
    let run = between(
        &format!("pipe --plain --protocol sabul --listen 0.0.0.0:7000 < '{file}'"),
        "pipe --plain --protocol sabul --connect $FARHAUL_PEER:7000",
    );
    run.succeeds();
    assert_eq!(run.stdout, fs::read(&file).unwrap());
}
