//! Settings in files, and which of several holds.

use std::fs::{self, Permissions};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;

use crate::process::{Run, Scratch, farhaul_under, farhaul_where};
use crate::requirement::runs;

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
    let text = shown(&["bench", "--connect", "far.example:9", "--show-config", "--controller", "udt-2007:release-3.3"]);
    let line = |key: &str| text.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{key}: {text}"));
    for (key, value, origin) in [
        ("controller", "\"udt-2007:release-3.3\"", "# --controller"),
        ("rate", "\"3mbit\"", "# FARHAUL_RATE"),
        ("timeout", "\"2s\"", "user/farhaul/config.toml"),
        ("buffer", "\"1MiB\"", "system/farhaul/config.toml"),
        ("mtu", "9000", "user/farhaul/config.toml [host.\"far.example\"]"),
        ("connect-timeout", "\"5s\"", "# default"),
    ] {
        assert!(line(key).contains(&format!("{key} = {value}")) && line(key).ends_with(origin), "{}", line(key));
    }
    assert!(text.parse::<toml::Table>().is_ok(), "{text}");
    // The default controller is the protocol's, wherever the protocol is from.
    let bare =
        |arguments: &[&str]| shown(&[&["bench", "--connect", "near.example:9", "--show-config"], arguments].concat());
    for (arguments, controller) in
        [(&[][..], "\"union\""), (&["--protocol", "udt-2004:delay-warnings=off"], "\"udt-2004\"")]
    {
        let text = bare(arguments);
        let line = text.lines().find(|line| line.starts_with("controller")).unwrap();
        assert!(line.contains(&format!("controller = {controller}")) && line.ends_with("# default"), "{line}");
    }
    // Another host, another verb; nothing else has to be said.
    assert!(shown(&["bench", "--connect", "near.example:9", "--show-config"]).contains("# mtu is not set"));
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

/// Commands that connect nowhere, whatever the settings say.
const WITHOUT_SETTINGS: &[&[&str]] = &[
    &["version"],
    &["--version"],
    &["--help"],
    &["help"],
    &["help", "serve"],
    &["serve", "--help"],
    &["man"],
    &["completions", "bash"],
    &["controllers"],
    &["protocols"],
    &["lab", "list"],
];

#[test]
fn settings_that_cannot_be_read_are_an_error_of_this_machine_with_a_remedy() {
    let files = Files::new("", "");
    // Nobody can read a directory, not even root.
    for (folder, variable) in [("user", "XDG_CONFIG_HOME"), ("system", "XDG_CONFIG_DIRS")] {
        let path = files.0.at(&format!("{folder}/farhaul/config.toml"));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        for arguments in [&["bench", "--plain", "--connect", "127.0.0.1:9"][..], &["copy", "--show-config"]] {
            let run = files.run(&[], arguments);
            run.fails(7, &["cannot read the settings", &path, &format!("{variable}=/dev/null")]);
            assert!(!run.stderr.contains("os error"), "{}", run.stderr);
        }
        let run = files.run(&[], &["bench", "--plain", "--json", "--connect", "127.0.0.1:9"]);
        assert_eq!((&run.end()["exit_code"], &run.end()["error"]["code"]), (&7.into(), &"LOCAL_IO".into()));
        for arguments in WITHOUT_SETTINGS {
            files.run(&[], arguments).succeeds();
        }
        // The remedy that it names.
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap().to_string();
        files
            .run(&[(variable, "/dev/null")], &["bench", "--plain", "--connect-timeout", "150ms", "--connect", &address])
            .fails(4, &[&address]);
        fs::remove_dir(&path).unwrap();
    }
}

#[test]
fn settings_of_a_home_that_may_not_be_entered_are_named_as_that() {
    let files = Files::new("timeout = \"2s\"\n", "");
    let (folder, path) = (files.0.at("user"), files.0.at("user/farhaul/config.toml"));
    fs::set_permissions(&folder, Permissions::from_mode(0o0)).unwrap();
    // Root may enter everything, unless it gives that right away.
    let home = format!("XDG_CONFIG_HOME={folder}");
    let wrapper = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "env", &home];
    let wrapper = if rustix::process::geteuid().is_root() { &wrapper[..] } else { &wrapper[2..] };
    if runs(&[wrapper, &["true"]].concat(), "it takes root's rights away").is_some() {
        let run = farhaul_under(wrapper, &["bench", "--plain", "--connect", "127.0.0.1:9"]);
        run.fails(7, &["cannot read the settings", &path, "Permission denied", "XDG_CONFIG_HOME=/dev/null"]);
    }
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn settings_that_are_no_text_are_no_toml() {
    let files = Files::new("", "");
    fs::write(files.0.at("user/farhaul/config.toml"), b"timeout = '\xff'\n").unwrap();
    files.run(&[], &["bench", "--show-config"]).fails(2, &["user/farhaul/config.toml", "is no TOML", "UTF-8"]);
}

#[test]
fn a_value_that_is_none_is_refused_with_the_file_that_it_is_from() {
    let files = Files::new("rate = 100\n", "");
    let run = files.run(&[], &["bench", "--plain", "--connect", "127.0.0.1:9"]);
    run.fails(2, &["the value is from", "user/farhaul/config.toml"]);
    assert!(run.stderr.contains("100mbit"), "{}", run.stderr);
}

#[test]
fn a_wrong_value_of_the_environment_is_refused_with_its_variable() {
    let files = Files::new("timeout = \"2s\"\n", "");
    for (variable, value) in [("FARHAUL_TIMEOUT", "abc"), ("FARHAUL_HOST_KEY_POLICY", "trust-all")] {
        let wrong = [(variable, value)];
        files.run(&wrong, &["bench", "--connect", "h:9"]).fails(2, &[&format!("the value is from {variable}")]);
    }
    let run = files.run(&[("FARHAUL_TIMEOUT", "1s")], &["bench", "--connect", "h:9", "--timeout", "abc"]);
    run.fails(2, &["--timeout"]);
    assert!(!run.stderr.contains("the value is from"), "{}", run.stderr);
}

#[test]
fn the_file_of_one_verb_has_no_section_in_messages() {
    let files = Files::new("", "");
    let own = files.0.at("own.toml");
    for (line, words) in
        [("max-sessions = 0\n", "it must be at least 1"), ("readonly = true\n", "'readonly' is no option")]
    {
        fs::write(&own, line).unwrap();
        let run = files.run(&[], &["serve", "--config", &own]);
        run.fails(2, &[&own, words]);
        assert!(!run.stderr.contains("[serve]"), "{}", run.stderr);
    }
}

#[test]
fn a_host_that_ssh_reaches_has_its_section() {
    let files = Files::new("[host.\"b.test\"]\nrate = \"20mbit\"\n", "");
    for place in ["b.test:", "me@b.test:dir/"] {
        let run = files.run(&[], &["copy", "--show-config", "file", place]);
        run.succeeds();
        let text = String::from_utf8(run.stdout).unwrap();
        assert!(text.contains("rate = \"20mbit\"") && text.contains("[host.\"b.test\"]"), "{text}");
    }
}
