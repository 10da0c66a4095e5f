//! Encrypted copies over IPv6, to listeners of both families, and over SSH. Needs `::1`; the last one also root and OpenSSH.
//! Without them the tests say so and pass.

use std::fs;
use std::net::{Ipv6Addr, TcpListener, UdpSocket};
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};

use crate::over_ssh::same;
use crate::process::{Scratch, Server, farhaul_where};
use crate::requirement::runs;
use crate::secured::User;

const SSHD: &str = "/usr/sbin/sshd";
const SIZE: usize = 300_000;

fn has_ipv6() -> Option<()> {
    let has = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    if !has {
        println!("skipped: this machine has no ::1");
    }
    has.then_some(())
}

#[test]
fn an_encrypted_copy_goes_over_ipv6_in_both_directions() {
    if has_ipv6().is_none() {
        return;
    }
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let (file, root) = (scratch.file("file", SIZE), scratch.dir("root"));
    let server = Server::begin_as_at(&user.0, "[::1]:0", &["serve", "--root", &root]);
    assert!(server.address.starts_with("[::1]:"), "{}", server.address);
    let url = format!("udt://{}/", server.address);
    let run = user.runs(&["copy", "--json", &file, &url]);
    run.succeeds();
    assert_eq!((run.end()["security"].as_str(), run.end()["verified"].as_bool()), (Some("tls1.3"), Some(true)));
    user.runs(&["copy", &format!("{url}file"), &scratch.at("back")]).succeeds();
    assert!(same(&file, &scratch.at("back")));
    let known = fs::read_to_string(user.file("known_hosts"));
    assert!(known.is_err(), "its own key needs no line: {known:?}");
}

#[test]
fn an_encrypting_listener_at_all_addresses_serves_both_families() {
    if has_ipv6().is_none() {
        return;
    }
    let scratch = Scratch::new();
    let (alice, bob) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"));
    let (file, root) = (scratch.file("file", SIZE), scratch.dir("root"));
    // What a key may do depends on its address: one of IPv4 counts as such at a port of both families.
    alice.admits(&bob, &format!("bob path={root},write from=127.0.0.0/8,::1"));
    let server = Server::begin_as_at(&alice.0, ":0", &["serve", "--root", &root]);
    let port = server.address.rsplit_once(':').unwrap().1;
    for (index, host) in ["127.0.0.1", "[::1]", "localhost"].into_iter().enumerate() {
        let url = format!("udt://{host}:{port}/{index}");
        let run = bob.runs(&["copy", "--json", "--host-key-policy", "accept-new", &file, &url]);
        run.succeeds();
        assert_eq!(run.end()["security"], "tls1.3", "{host}");
        assert!(same(&file, &format!("{root}/{index}")), "{host}");
    }
    let known = fs::read_to_string(bob.file("known_hosts")).unwrap();
    for host in [format!("127.0.0.1:{port} "), format!("[::1]:{port} ")] {
        assert!(known.lines().any(|line| line.starts_with(&host)), "{known}");
    }
    bob.runs(&["copy", "--host-key-policy", "strict", &format!("udt://[::1]:{port}/1"), &scratch.at("back")])
        .succeeds();
}

/// An sshd on `::1`, which ends with the test.
struct Sshd {
    child: Child,
    port: u16,
}

impl Sshd {
    fn begin(scratch: &Scratch) -> Option<Self> {
        has_ipv6()?;
        runs(&["sh", "-c", &format!("test -x {SSHD} && test $(id -u) = 0")], "root and OpenSSH's sshd")?;
        for name in ["host", "user"] {
            let made =
                Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &scratch.at(name)]).status();
            assert!(made.unwrap().success());
        }
        fs::create_dir_all("/run/sshd").unwrap();
        let port = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let settings = format!(
            "Port {port}\nListenAddress ::1\nHostKey {}\nAuthorizedKeysFile {}\nPermitRootLogin yes\n\
             PasswordAuthentication no\nStrictModes no\nUsePAM no\nPidFile none\n",
            scratch.at("host"),
            scratch.at("user.pub"),
        );
        fs::write(scratch.at("sshd_config"), settings).unwrap();
        let child = Command::new(SSHD).args(["-D", "-f", &scratch.at("sshd_config")]).spawn().unwrap();
        Some(Self { child, port })
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

#[test]
fn a_copy_over_ssh_goes_to_an_address_of_ipv6() {
    let scratch = Scratch::new();
    let Some(sshd) = Sshd::begin(&scratch) else { return };
    let (file, there, port) = (scratch.file("file", SIZE), scratch.dir("there"), sshd.port.to_string());
    let key = scratch.at("user");
    let copy = |from: &str, to: &str| {
        let options = [
            "copy",
            "--json",
            "--no-fallback",
            "--remote-path",
            env!("CARGO_BIN_EXE_farhaul"),
            "-P",
            &port,
            "-i",
            &key,
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "LogLevel=ERROR",
            from,
            to,
        ];
        // The server may need a moment.
        let runs = std::iter::repeat_with(|| farhaul_where(&[("SSH_AUTH_SOCK", "")], &options)).take(20);
        let run = runs.into_iter().find(|run| run.code != 5).expect("ssh gets in");
        run.succeeds();
        let start = run.records().into_iter().find(|record| record["event"] == "start").unwrap();
        assert!(start["address"].as_str().unwrap().starts_with("[::1]:"), "the data took IPv6: {start}");
    };
    copy(&file, &format!("[::1]:{there}/"));
    assert!(same(&file, &format!("{there}/file")));
    copy(&file, &format!("root@[::1]:{there}/again"));
    assert!(same(&file, &format!("{there}/again")));
    copy(&format!("root@[::1]:{there}/ag*"), &scratch.dir("back"));
    assert!(same(&file, &scratch.at("back/again")));
}
