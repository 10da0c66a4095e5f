//! `key`: files, permissions, formats.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use serde_json::Value;

use crate::process::{Scratch, farhaul, farhaul_where};

#[test]
fn a_new_key_is_readable_by_its_owner_alone_and_never_overwritten() {
    let scratch = Scratch::new();
    let file = scratch.at("key");
    let made = farhaul(&["key", "new", &file]);
    made.succeeds();
    let said = String::from_utf8(made.stdout).unwrap();
    assert!(said.starts_with("SHA256:") && said.contains(&file), "{said}");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&file).unwrap().starts_with("-----BEGIN PRIVATE KEY-----"));
    let before = fs::read(&file).unwrap();
    farhaul(&["key", "new", &file]).fails(7, &["exists", "remove it first"]);
    assert_eq!(fs::read(&file).unwrap(), before);
    fs::remove_file(&file).unwrap();
    farhaul(&["key", "new", &file]).fails(7, &["key.pub", "exists"]);
    assert!(fs::read(&file).is_err(), "no half of a pair stays");
}

#[test]
fn both_files_show_the_same_key() {
    let scratch = Scratch::new();
    let file = scratch.at("key");
    farhaul(&["key", "new", &file]).succeeds();
    let public = format!("{file}.pub");
    for verb in ["show", "fingerprint"] {
        let [of_private, of_public] = [&file, &public].map(|file| farhaul(&["key", verb, file]).stdout);
        assert_eq!(of_private, of_public, "{verb}");
    }
    assert_eq!(farhaul(&["key", "show", &file]).stdout, fs::read(&public).unwrap());
    let record: Value = serde_json::from_slice(&farhaul(&["key", "show", "--json", &file]).stdout).unwrap();
    assert!(record["fingerprint"].as_str().unwrap().starts_with("SHA256:"));
    assert!(record["key"].as_str().unwrap().starts_with("ssh-ed25519 AAAA"));
}

#[test]
fn a_private_key_of_openssh_is_told_from_a_public_one_with_the_next_step() {
    let scratch = Scratch::new();
    let file = scratch.at("id_ed25519");
    fs::write(&file, "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE=\n").unwrap();
    let public = format!("farhaul key show {file}.pub");
    let words = ["format of OpenSSH", public.as_str(), "farhaul key new"];
    farhaul(&["key", "show", &file]).fails(7, &words);
    farhaul(&["key", "fingerprint", &file]).fails(7, &words);
    farhaul(&["bench", "--key", &file, "--connect", "127.0.0.1:9"]).fails(7, &words);
}

#[test]
fn the_fingerprint_is_that_of_ssh_keygen() {
    let scratch = Scratch::new();
    let file = scratch.at("key");
    farhaul(&["key", "new", &file]).succeeds();
    let Ok(theirs) = Command::new("ssh-keygen").args(["-l", "-f", &format!("{file}.pub")]).output() else {
        println!("skipped: there is no ssh-keygen");
        return;
    };
    let ours = farhaul(&["key", "fingerprint", &file]).stdout;
    let theirs = String::from_utf8(theirs.stdout).unwrap();
    assert!(theirs.contains(String::from_utf8(ours).unwrap().trim()), "{theirs}");
}

#[test]
fn a_key_that_others_may_read_is_refused_with_the_command_that_mends_it() {
    let scratch = Scratch::new();
    let file = scratch.at("key");
    farhaul(&["key", "new", &file]).succeeds();
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    farhaul(&["key", "show", &file]).fails(5, &["chmod 600", &file]);
}

#[test]
fn without_a_file_the_key_is_that_of_the_user() {
    let scratch = Scratch::new();
    let home = scratch.dir("home");
    let variables = [("XDG_CONFIG_HOME", &*home)];
    farhaul_where(&variables, &["key", "show"]).fails(7, &["there is no key", "farhaul key new"]);
    farhaul_where(&variables, &["key", "new"]).succeeds();
    farhaul_where(&variables, &["key", "show"]).succeeds();
    assert_eq!(scratch.names("home/farhaul"), ["key", "key.pub"]);
}

#[test]
fn a_file_without_a_key_is_named() {
    let scratch = Scratch::new();
    let file = scratch.file("other", 100);
    farhaul(&["key", "show", &file]).fails(7, &["other"]);
    fs::write(&file, "ssh-rsa AAAA").unwrap();
    farhaul(&["key", "show", &file]).fails(7, &["ssh-rsa", "ssh-keygen -t ed25519"]);
}
