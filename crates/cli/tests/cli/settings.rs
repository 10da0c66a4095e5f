//! Settings in files, and which of several holds.

use std::fs;
use std::net::UdpSocket;

use crate::process::{Run, Scratch, farhaul_where};

/// A user's and a system's file; runs find no others.
struct Files(Scratch);

impl Files {
    fn new(user: &str, system: &str) -> Self {
        let files = Self(Scratch::new());
        for (folder, text) in [("user", user), ("system", system)] {
            files.0.dir(&format!("{folder}/farhaul"));
            fs::write(files.0.at(&format!("{folder}/farhaul/config.toml")), text).unwrap();
        }
        files
    }

    fn run(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
        let (user, system) = (self.0.at("user"), self.0.at("system"));
        let folders = [("XDG_CONFIG_HOME", user.as_str()), ("XDG_CONFIG_DIRS", system.as_str())];
        farhaul_where(&[&folders, variables].concat(), arguments)
    }
}

#[test]
fn flags_win_over_the_environment_that_over_the_user_and_that_over_the_system() {
    let files = Files::new(
        "timeout = \"2s\"\nrate = \"2mbit\"\n[host.\"far.example\"]\nmtu = 9000\n",
        "timeout = \"1s\"\nrate = \"1mbit\"\nbuffer = \"1MiB\"\n[copy]\ninterval = \"3s\"\n",
    );
    let shown = |arguments: &[&str]| {
        let run = files.run(&[("FARHAUL_RATE", "3mbit")], arguments);
        run.succeeds();
        String::from_utf8(run.stdout).unwrap()
    };
    let text = shown(&["bench", "--connect", "far.example:9", "--show-config", "--controller", "udt:native"]);
    let line = |key: &str| text.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{key}: {text}"));
    for (key, value, origin) in [
        ("controller", "\"udt:native\"", "# --controller"),
        ("rate", "\"3mbit\"", "# FARHAUL_RATE"),
        ("timeout", "\"2s\"", "user/farhaul/config.toml"),
        ("buffer", "\"1MiB\"", "system/farhaul/config.toml"),
        ("mtu", "9000", "user/farhaul/config.toml [host.\"far.example\"]"),
        ("connect-timeout", "\"5s\"", "# default"),
    ] {
        assert!(line(key).contains(&format!("{key} = {value}")) && line(key).ends_with(origin), "{}", line(key));
    }
    assert!(text.parse::<toml::Table>().is_ok(), "{text}");
    // Another host, another verb; nothing else has to be said.
    assert!(shown(&["bench", "--connect", "near.example:9", "--show-config"]).contains("mtu = 1500"));
    let copy = shown(&["copy", "--show-config"]);
    assert!(copy.contains("interval = \"3s\"") && copy.contains("[copy]"), "{copy}");
    assert_eq!(shown(&["--show-config", "copy"]), copy);
    for verb in ["serve", "pipe", "bench", "relay"] {
        shown(&[verb, "--show-config"]);
    }
}

#[test]
fn settings_hold_without_being_shown() {
    let files = Files::new("plain = true\nconnect-timeout = \"150ms\"\n", "");
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    files.run(&[], &["bench", "--connect", &address]).fails(4, &[&address, "150 ms"]);
    files.run(&[], &["bench", "--connect", &address, "--connect-timeout", "160ms"]).fails(4, &["160 ms"]);
}

#[test]
fn what_is_misspelt_is_refused_with_its_place() {
    let files = Files::new("[serve]\nreadonly = true\n", "");
    let run = files.run(&[], &["bench", "--plain", "--connect", "127.0.0.1:9"]);
    run.fails(2, &["user/farhaul/config.toml [serve]", "'readonly'"]);
    files.run(&[], &["version"]).succeeds();
    files.run(&[], &["serve", "--help"]).succeeds();
    let broken = Files::new("timeout = \n", "");
    let run = broken.run(&[], &["bench", "--plain", "--connect", "127.0.0.1:9"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("config.toml is no TOML") && run.stderr.contains("line 1"), "{}", run.stderr);
}

#[test]
fn a_value_that_is_none_is_refused_with_the_file_that_it_is_from() {
    let files = Files::new("rate = 100\n", "");
    let run = files.run(&[], &["bench", "--plain", "--connect", "127.0.0.1:9"]);
    run.fails(2, &["the value is from", "user/farhaul/config.toml"]);
    assert!(run.stderr.contains("100mbit"), "{}", run.stderr);
}
