use std::os::unix::ffi::OsStrExt;

use serde_json::{Value, json};

use crate::process::{Run, farhaul, farhaul_where};

#[test]
fn the_version_is_there_for_programs() {
    let run = farhaul(&["version", "--json"]);
    run.succeeds();
    let version: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(version["name"], "farhaul");
    assert_eq!(version["protocols"], names(&farhaul(&["protocols", "--json"])));
    let text = String::from_utf8(farhaul(&["version"]).stdout).unwrap();
    assert!(text.contains("encrypts with TLS 1.3"), "{text}");
    for name in version["protocols"].as_array().unwrap() {
        assert!(text.contains(name.as_str().unwrap()), "{text}");
    }
}

#[test]
fn the_version_names_the_encryption_that_a_connection_has() {
    let version: Value = serde_json::from_slice(&farhaul(&["version", "--json"]).stdout).unwrap();
    assert_eq!(version["security"], json!(["tls1.3", "none"]));
    assert_eq!(version["groups"], json!(["X25519MLKEM768", "X25519"]));
    let mut ciphers = serde_json::from_value::<Vec<String>>(version["ciphers"].clone()).unwrap();
    let text = String::from_utf8(farhaul(&["version"]).stdout).unwrap();
    assert!(text.contains("TLS 1.3, X25519MLKEM768") && text.contains(&ciphers[0]), "{text}");
    ciphers.sort();
    assert_eq!(ciphers, ["AES128-GCM", "AES256-GCM", "CHACHA20-POLY1305"]);
    assert!(version["protection_version"].is_u64(), "{version}");
}

/// The names in the list that `run` printed.
fn names(run: &Run) -> Value {
    run.succeeds();
    let all: Value = serde_json::from_slice(&run.stdout).unwrap();
    all.as_array().unwrap().iter().map(|row| row["name"].clone()).collect()
}

#[test]
fn protocols_are_listed_with_their_modes_and_options() {
    let run = farhaul(&["protocols", "--json"]);
    run.succeeds();
    let all: Value = serde_json::from_slice(&run.stdout).unwrap();
    let udt = json!({
        "name": "udt",
        "summary": "UDT4, compatible with libudt 4",
        "source": ["udt-draft", "udt-2007"],
        "modes": ["stream", "message"],
        "control_channel": false,
        "controller": "union",
        "options": [],
    });
    let udt_2004 = json!({
        "name": "udt-2004",
        "summary": "the protocol of the 2004 paper, for experiments; one connection between two ports",
        "source": ["udt-2004"],
        "modes": ["stream"],
        "control_channel": false,
        "controller": "udt-2004",
        "options": [{
            "name": "delay-warnings",
            "meaning": "whether the receiver warns the sender of a growing RTT: on or off",
            "kind": "optional",
            "default": "on",
        }],
    });
    assert_eq!(all[0], udt, "the default comes first");
    assert!(all.as_array().unwrap().contains(&udt_2004), "{all:#}");
    let run = farhaul(&["protocols"]);
    run.succeeds();
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(text.contains("udt-2004:delay-warnings=on") && text.contains("--protocol NAME"), "{text}");
}

#[test]
fn every_protocol_is_in_the_help_and_the_completions() {
    let Value::Array(names) = names(&farhaul(&["protocols", "--json"])) else { panic!("a list") };
    let texts = [&["bench", "--help-all"][..], &["completions", "bash"], &["man", "bench"]]
        .map(|arguments| String::from_utf8(farhaul(arguments).stdout).unwrap());
    for name in names.iter().map(|name| name.as_str().unwrap()) {
        for text in &texts {
            assert!(text.replace('\\', "").contains(name), "{name}");
        }
    }
}

#[test]
fn controllers_are_listed_with_their_options() {
    let run = farhaul(&["controllers", "--json"]);
    run.succeeds();
    let all: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(all[0]["name"], "union", "the default comes first");
    assert_eq!(all[0]["options"], json!([]));
    let with_options = all.as_array().unwrap().iter().find(|entry| entry["name"] == "udt-2011").unwrap();
    assert!(with_options["options"].as_array().unwrap().iter().any(|option| option["name"] == "alpha"));
}

#[test]
fn completions_and_manual_pages_are_made() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let run = farhaul(&["completions", shell]);
        run.succeeds();
        assert!(String::from_utf8(run.stdout).unwrap().contains("farhaul"), "{shell}");
    }
    let run = farhaul(&["man", "copy"]);
    run.succeeds();
    assert!(String::from_utf8(run.stdout).unwrap().contains(".TH"));
}

#[test]
fn encryption_is_never_left_out_silently() {
    farhaul(&["copy", "tsunami://127.0.0.1/x", "."]).fails(2, &["cannot be encrypted yet", "plain"]);
}

#[test]
fn a_bare_number_is_refused_with_both_readings() {
    let run = farhaul(&["relay", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9", "--rate", "100"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("100mbit") && run.stderr.contains("100MB/s"), "{}", run.stderr);
}

#[test]
fn a_packet_size_that_no_peer_agrees_to_is_refused_at_once() {
    let run = farhaul(&["bench", "--plain", "--connect", "127.0.0.1:9", "--mtu", "575"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("576") && run.stderr.contains("RFC 791"), "{}", run.stderr);
}

#[test]
fn a_name_that_is_no_text_is_refused_and_no_crash() {
    let name = std::ffi::OsStr::from_bytes(b"\xff");
    let run =
        std::process::Command::new(env!("CARGO_BIN_EXE_farhaul")).args(["copy", "--plain", "a"]).arg(name).output();
    assert_eq!(run.unwrap().status.code(), Some(2));
}

#[test]
fn a_copy_from_here_to_here_is_the_work_of_cp() {
    farhaul(&["copy", "a", "b"]).fails(2, &["cp", "udt://"]);
}

#[test]
fn the_environment_gives_defaults_and_flags_win() {
    let connect = ["bench", "--connect", "127.0.0.1:9", "--connect-timeout", "100ms"];
    let variables = [("FARHAUL_PLAIN", "1"), ("FARHAUL_CONTROLLER", "nonsense")];
    farhaul_where(&variables, &[&connect[..], &["--controller", "udt"]].concat()).fails(4, &["127.0.0.1:9"]);
    let run = farhaul_where(&variables, &connect);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("nonsense"), "{}", run.stderr);
}
