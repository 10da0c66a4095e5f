//! Settings, keys and lists of keys that others could have written are not trusted.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use crate::daemon;
use crate::process::{Scratch, Server, farhaul, farhaul_where};
use crate::secured::User;

fn set_mode(path: &str, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Runs `what` while others may write to this path. Then it is as before.
fn while_others_may_write(path: &str, what: impl FnOnce()) {
    let before = fs::metadata(path).unwrap().permissions();
    set_mode(path, before.mode() | 0o022);
    what();
    fs::set_permissions(path, before).unwrap();
}

#[test]
fn settings_that_others_could_have_written_are_refused_with_the_command_that_mends_it() {
    let scratch = Scratch::new();
    let (home, file) = (scratch.dir("home"), format!("{}/config.toml", scratch.dir("home/farhaul")));
    fs::write(&file, "[copy]\nssh = \"/tmp/evil\"\n").unwrap();
    let shown = || farhaul_where(&[("XDG_CONFIG_HOME", &home)], &["copy", "--show-config", "a", "b"]);
    for path in [&file, &scratch.at("home/farhaul"), &home] {
        while_others_may_write(path, || shown().fails(5, &[path, "settings", &format!("chmod go-w {path}")]));
    }
    let run = shown();
    run.succeeds();
    assert!(String::from_utf8_lossy(&run.stdout).contains("/tmp/evil"), "they apply otherwise");
}

#[test]
fn a_daemon_whose_files_or_folders_others_may_write_to_does_not_start() {
    let scratch = Scratch::new();
    let file = daemon::settings(&scratch, "");
    fs::write(scratch.at("etc/authorized_keys"), "# nobody\n").unwrap();
    let first = daemon::begin(&file);
    first.signal(Signal::TERM);
    first.end();
    for (path, words) in [
        ("etc/serve.toml", "settings"),
        ("etc/authorized_keys", "whom to trust"),
        ("etc/host_key", "key of this side"),
        ("etc", "settings"),
    ] {
        let path = scratch.at(path);
        while_others_may_write(&path, || {
            farhaul(&["serve", "--config", &file]).fails(5, &[&path, words, "chmod go-w"]);
        });
    }
}

#[test]
fn a_list_of_keys_whose_folder_others_may_write_to_is_not_read_again() {
    let scratch = Scratch::new();
    let file = daemon::settings(&scratch, "");
    let lists = scratch.dir("lists");
    fs::write(scratch.at("lists/keys"), "# nobody\n").unwrap();
    let settings = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{settings}authorized-keys = \"{lists}/keys\"\n")).unwrap();
    let mut server = daemon::begin(&file);
    set_mode(&lists, 0o777);
    server.signal(Signal::HUP);
    let warning = server.next("warning")["message"].as_str().unwrap().to_owned();
    assert!(warning.contains("others may write to the folder") && warning.contains("keys of before"), "{warning}");
    server.signal(Signal::TERM);
    server.end();
}

#[test]
fn keys_and_known_hosts_in_a_folder_that_others_may_write_to_are_not_trusted() {
    let scratch = Scratch::new();
    let (alice, bob) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"));
    for user in [&alice, &bob] {
        user.key("show");
    }
    alice.admits(&bob, "bob");
    let server = Server::begin_as(&alice.0, &["serve", "--root", &scratch.dir("root")]);
    scratch.file("root/file", 10);
    let url = format!("udt://{}/file", server.address);
    let copy = || bob.runs(&["copy", "--host-key-policy", "accept-new", &url, &scratch.dir("got")]);
    copy().succeeds();
    set_mode(&bob.file("known_hosts"), 0o666);
    copy().fails(5, &["known_hosts", "whom to trust", "chmod go-w"]);
    set_mode(&bob.file("known_hosts"), 0o600);
    let folder = format!("{}/farhaul", bob.0);
    set_mode(&folder, 0o777);
    copy().fails(5, &[&folder, "key of this side", "chmod go-w"]);
    // A new key in such a folder could be replaced at once.
    fs::remove_file(bob.file("key")).unwrap();
    copy().fails(5, &[&folder, "key of this side"]);
}
