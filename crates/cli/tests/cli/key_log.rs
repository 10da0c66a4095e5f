//! `--unsafe-keylog`: the secrets of connections in a file of their own, for debugging.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::process::{Scratch, Server, farhaul_where};
use crate::secured::User;

#[test]
fn both_sides_write_the_same_secrets_to_private_files_and_warn() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let (theirs, ours) = (scratch.at("theirs"), scratch.at("ours"));
    let mut server = Server::begin_as(&user.0, &["bench", "--unsafe-keylog", &theirs]);
    let warned = server.wait_for("warning")["message"].as_str().unwrap().to_owned();
    assert!(warned.contains("secrets of all connections are written down"), "{warned}");
    let bench = ["bench", "--bytes", "1kB", "--connect", &server.address];
    for run in [1, 2] {
        let done = user.runs(&[&bench[..], &["--unsafe-keylog", &ours]].concat());
        done.succeeds();
        assert!(done.stderr.contains("secrets of all connections are written down"), "{}", done.stderr);
        let lines =
            |file: &str| -> BTreeSet<String> { fs::read_to_string(file).unwrap().lines().map(Into::into).collect() };
        assert_eq!(lines(&ours), lines(&theirs));
        for label in ["CLIENT_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"] {
            let of_label = lines(&ours).into_iter().filter(|line| line.starts_with(&format!("{label} "))).count();
            assert_eq!(of_label, run, "{label}: a line for each connection");
        }
    }
    for file in [&ours, &theirs] {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn secrets_are_written_on_request_alone_and_to_no_file_of_others() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let server = Server::begin_as(&user.0, &["bench"]);
    let bench = ["bench", "--bytes", "1kB", "--connect", &server.address];
    let file = scratch.at("log");
    let home = ("XDG_CONFIG_HOME", user.0.as_str());
    farhaul_where(&[home, ("FARHAUL_UNSAFE_KEYLOG", &file)], &bench).succeeds();
    assert!(!fs::exists(&file).unwrap(), "no variable of its own asks for it");
    // That of other programs does, and says so. Plain connections have no secrets.
    let usual = [home, ("SSLKEYLOGFILE", &file)];
    let run = farhaul_where(&usual, &bench);
    run.succeeds();
    assert!(run.stderr.contains("secrets of all connections are written down"), "{}", run.stderr);
    assert!(fs::read_to_string(&file).unwrap().contains("CLIENT_TRAFFIC_SECRET_0 "));
    let plain = Server::begin(&["bench"]);
    farhaul_where(&usual, &["bench", "--plain", "--bytes", "1kB", "--connect", &plain.address]).succeeds();
    let logs_to = |file: &str| user.runs(&[&bench[..], &["--unsafe-keylog", file]].concat());
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    logs_to(&file).fails(7, &["others may open it", "chmod 600"]);
    let link = scratch.at("link");
    symlink(scratch.at("elsewhere"), &link).unwrap();
    logs_to(&link).fails(7, &["symbolic link"]);
    assert!(!fs::exists(scratch.at("elsewhere")).unwrap());
    user.runs(&["bench", "--plain", "--unsafe-keylog", &file, "--connect", "127.0.0.1:9"]).fails(2, &["--plain"]);
    fs::write(user.file("config.toml"), format!("unsafe-keylog = \"{file}\"\n")).unwrap();
    user.runs(&bench).fails(2, &["unsafe-keylog", "cannot be set in a file"]);
}
