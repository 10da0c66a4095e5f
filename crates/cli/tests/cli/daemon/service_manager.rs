//! The service manager, and the units that come along.

use std::fs;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use super::{admit_writer, begin, settings};
use crate::process::{Scratch, farhaul_where};

#[test]
fn a_service_manager_opens_the_port_and_hears_when_the_daemon_is_ready() {
    let scratch = Scratch::new();
    let file = settings(&scratch, "");
    let (home, sent) = (scratch.dir("home"), scratch.file("sent", 1_000));
    admit_writer(&scratch, &home);
    let port = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap().to_string();
    let manager = UnixDatagram::bind(scratch.at("notify")).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let line = format!(
        "LISTEN_FDS=1 LISTEN_PID=$$ exec '{}' serve --json --config '{file}' 3<&0 < /dev/null",
        env!("CARGO_BIN_EXE_farhaul")
    );
    let mut command = Command::new("sh");
    command.args(["-c", &line]).stdin(Stdio::from(OwnedFd::from(port))).stdout(Stdio::piped());
    command.env("NOTIFY_SOCKET", scratch.at("notify")).env("XDG_CONFIG_HOME", "/dev/null");
    let mut daemon = command.spawn().unwrap();
    let mut word = [0; 64];
    let len = manager.recv(&mut word).unwrap();
    assert_eq!(&word[..len], b"READY=1");
    let to = format!("udt://{address}/");
    let copy = ["copy", "--host-key-policy", "accept-new", &sent, &to];
    farhaul_where(&[("XDG_CONFIG_HOME", &home)], &copy).succeeds();
    assert_eq!(scratch.names("root"), ["sent"]);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

#[test]
fn the_units_and_settings_that_come_along_are_valid() {
    let dist = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist");
    let text = fs::read_to_string(format!("{dist}/serve.toml")).unwrap();
    let scratch = Scratch::new();
    let (root, file) = (scratch.dir("root"), format!("{}/serve.toml", scratch.dir("etc")));
    fs::write(&file, text.replace("/srv/farhaul", &root).replace(":9000", "127.0.0.1:0")).unwrap();
    let daemon = begin(&file);
    daemon.signal(Signal::TERM);
    daemon.end();
    let unit = fs::read_to_string(format!("{dist}/systemd/farhaul.service")).unwrap();
    for wanted in ["Type=notify", "NoNewPrivileges=yes", "ProtectSystem=strict", "MemoryMax=", "kill -HUP"] {
        assert!(unit.contains(wanted), "{wanted}");
    }
}
