//! Copies over SSH: a real sshd on the remote host of an emulated path, with keys and settings of its own. Needs root, TUN devices
//! and OpenSSH; without them the tests say so and pass.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::process::{Run, Scratch, farhaul, farhaul_where};
use crate::requirement::runs;
use crate::udp_blocked::SOON;

const PROGRAM: &str = env!("CARGO_BIN_EXE_farhaul");
const SSHD: &str = "/usr/sbin/sshd";
const SIZE: usize = 300_000;

/// A remote host with a running sshd, and the settings of ssh on the local host.
pub(crate) struct Far {
    pub(crate) scratch: Scratch,
    /// Shell lines that run on the remote host before its sshd. In them, `$SSHD` starts another one.
    prelude: String,
    /// Hosts for the settings of ssh.
    hosts: Vec<(&'static str, &'static str)>,
    /// Options of the emulator about its path.
    path: &'static [&'static str],
}

/// A path that the timing of most tests relies on.
const PATH: [&str; 4] = ["--rate", "100mbit", "--delay", "5ms"];

/// A shell line that waits until sshd answers at this address. A login would take longer, and fails with some settings.
pub(crate) fn wait_for_sshd(address: &str) -> String {
    let asked = format!("ssh-keyscan -T 1 -t ed25519 -p 2222 {address} 2> /dev/null | grep -q .");
    format!("for i in $(seq 100); do {asked} && break; sleep 0.05; done")
}

impl Far {
    /// `None` if this machine lacks something. `settings` are lines for the sshd.
    pub(crate) fn new(settings: &str) -> Option<Self> {
        runs(&[PROGRAM, "emulate", "--quiet", "--", "true"], "networks of one's own")?;
        runs(&["sh", "-c", &format!("test -x {SSHD} && test $(id -u) = 0")], "root and OpenSSH's sshd")?;
        let scratch = Scratch::new();
        for name in ["host", "user", "stranger"] {
            let made =
                Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &scratch.at(name)]).status();
            assert!(made.unwrap().success());
        }
        fs::create_dir_all("/run/sshd").unwrap();
        let (cache, home) = (scratch.at("cache"), scratch.dir("home"));
        let settings = settings.replace("HOME_FOLDER", &home);
        fs::write(
            scratch.at("sshd_config"),
            format!(
                "Port 2222\nHostKey {}\nAuthorizedKeysFile {}\nPermitRootLogin yes\nPasswordAuthentication no\nStrictModes no\n\
                 UsePAM no\nPidFile none\nSetEnv XDG_CACHE_HOME={cache}\n{settings}\n",
                scratch.at("host"),
                scratch.at("user.pub"),
            ),
        )
        .unwrap();
        Some(Self { scratch, prelude: String::new(), hosts: Vec::new(), path: &PATH })
    }

    /// The same with these shell lines before the sshd starts.
    pub(crate) fn after(self, prelude: &str) -> Self {
        Self { prelude: prelude.to_owned(), ..self }
    }

    /// The same over a path as fast as the emulator is, without delay: for copies of the program, which has many megabytes.
    pub(crate) fn fast(self) -> Self {
        Self { path: &[], ..self }
    }

    /// The same over a path on which UDP takes longer to answer than a copy waits for it.
    pub(crate) fn distant(self) -> Self {
        Self { path: &["--rate", "100mbit", "--delay", "30ms"], ..self }
    }

    /// The same with one more host in the settings of ssh.
    pub(crate) fn knows(mut self, name: &'static str, settings: &'static str) -> Self {
        self.hosts.push((name, settings));
        self
    }

    /// The same with these shell lines in the place of the sshd, which `$SSHD` starts.
    pub(crate) fn instead(self, script: &str) -> Self {
        Self { prelude: format!("{script}\n"), ..self }
    }

    /// Runs a shell line on the local host. In it, `$F` is the program, and ssh knows `far`, `other`, `behind` and `stranger`.
    pub(crate) fn near(&self, line: &str) -> Run {
        self.near_with(&[], line)
    }

    /// The same with these options of the emulator.
    pub(crate) fn near_with(&self, options: &[&str], line: &str) -> Run {
        let ssh_config = self.scratch.at("config");
        let common = format!(
            "Port 2222\n User root\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n IdentityFile {}\n",
            self.scratch.at("user")
        );
        let host = |name: &str, more: &str| format!("Host {name}\n {more}\n {common}");
        let config = [
            host("far", "HostName PEER"),
            host("other", "HostName PEER"),
            // Behind a jump host, under the address that the jump host knows.
            host("behind", "HostName PEER\n ProxyJump far"),
            // Nothing on the local host has this address of the far one: UDP is as good as blocked.
            host("inside", "HostName 127.0.0.1\n ProxyJump far"),
            format!("Host stranger\n HostName PEER\n IdentitiesOnly yes\n{}", common.replace("user\n", "stranger\n")),
        ];
        let more = self.hosts.iter().map(|(name, settings)| host(name, settings));
        fs::write(format!("{ssh_config}.in"), config.into_iter().chain(more).collect::<String>()).unwrap();
        let script = format!(
            "sed \"s/PEER/$FARHAUL_PEER/\" '{ssh_config}.in' > '{ssh_config}'; F='{PROGRAM}'; S=\"ssh -F {ssh_config}\"; {}\n{line}",
            wait_for_sshd("$FARHAUL_PEER")
        );
        let sshd = format!("{SSHD} -D -f {}", self.scratch.at("sshd_config"));
        let served = format!("SSHD='{sshd}'\n{}\nexec $SSHD", self.prelude);
        let (emulate, serve) = (["emulate", "--quiet"], ["--serve", &served]);
        let line = ["--", "sh", "-c", &script];
        farhaul_where(&[("SSH_AUTH_SOCK", "")], &[&emulate[..], self.path, &serve, options, &line].concat())
    }

    /// The same for a copy with the program at its place.
    pub(crate) fn copies(&self, arguments: &str) -> Run {
        self.near(&format!("exec $F copy --json --ssh \"$S\" --remote-path $F {arguments}"))
    }
}

/// The run failed with this code, and one of its lines says all of these words. The emulator may add a warning on a busy machine.
#[track_caller]
pub(crate) fn fails(run: &Run, code: i32, words: &[&str]) {
    assert_eq!(run.code, code, "{}", run.stderr);
    assert!(run.stderr.lines().any(|line| words.iter().all(|word| line.contains(word))), "{}", run.stderr);
}

/// The lines of the program itself.
pub(crate) fn lines(run: &Run) -> Vec<&str> {
    run.stderr.lines().filter(|line| !line.contains("emulator did not keep up")).collect()
}

pub(crate) fn same(one: &str, other: &str) -> bool {
    fs::read(one).unwrap() == fs::read(other).unwrap()
}

// Waits for five logins.
#[test]
fn files_and_trees_go_both_ways_with_the_keys_that_ssh_knows() {
    let home = "ForceCommand cd 'HOME_FOLDER' && HOME='HOME_FOLDER' && export HOME && eval \"$SSH_ORIGINAL_COMMAND\"";
    let Some(far) = Far::new(home) else { return };
    let scratch = &far.scratch;
    let (file, there) = (scratch.file("file", SIZE), scratch.dir("there"));
    scratch.dir("tree/deep");
    scratch.file("tree/a", 10);
    scratch.file("tree/deep/b", SIZE);
    let run = far.copies(&format!("'{file}' far:'{there}/'"));
    run.succeeds();
    let end = run.end();
    assert_eq!((end["security"].as_str(), end["verified"].as_bool()), (Some("tls1.3"), Some(true)));
    assert!(end["rtt_us"]["min"].as_u64() >= Some(10_000), "the data took the path, by UDP: {end}");
    assert!(same(&file, &format!("{there}/file")));
    far.copies(&format!("-r '{}' far:'{there}/new'", scratch.at("tree"))).succeeds();
    assert!(same(&scratch.at("tree/deep/b"), &format!("{there}/new/deep/b")));
    far.copies(&format!("-r far:'{there}/new' far:'{there}/file' '{}'", scratch.dir("back"))).succeeds();
    assert_eq!(
        (scratch.names("back"), scratch.names("back/new")),
        (vec!["file".into(), "new".into()], vec!["a".into(), "deep".into()])
    );
    // A relative path begins in the home directory there.
    far.copies(&format!("'{file}' far:in-home")).succeeds();
    assert!(same(&file, &scratch.at("home/in-home")));
    far.copies(&format!("far:~/in-home '{}'", scratch.at("from-home"))).succeeds();
    assert!(same(&file, &scratch.at("from-home")));
}

#[test]
fn stdin_and_stdout_are_ends_of_a_copy_over_ssh() {
    let Some(far) = Far::new("") else { return };
    let (file, there) = (far.scratch.file("file", SIZE), far.scratch.dir("there"));
    let line = format!(
        "$F copy --ssh \"$S\" --remote-path $F - far:'{there}/fed' < '{file}' && $F copy --ssh \"$S\" --remote-path $F \
         far:'{there}/fed' - > '{}'",
        far.scratch.at("fetched")
    );
    far.near(&line).succeeds();
    assert!(same(&file, &far.scratch.at("fetched")));
}

#[test]
fn two_remote_hosts_copy_between_each_other() {
    let Some(far) = Far::new("") else { return };
    let scratch = &far.scratch;
    scratch.dir("tree");
    let (file, there) = (scratch.file("tree/file", SIZE), scratch.dir("there"));
    let run = far.copies(&format!("-r far:'{}' other:'{there}'", scratch.at("tree")));
    run.succeeds();
    let end = run.end();
    assert_eq!((end["verified"].as_bool(), end["bytes"].as_u64()), (Some(true), Some(SIZE as u64)));
    assert!(end["rtt_us"]["min"].as_u64() < Some(10_000), "the data took no path to this host: {end}");
    assert!(same(&file, &format!("{there}/tree/file")));
    let run = far.copies(&format!("far:'{}' other:'{there}'", scratch.at("missing")));
    fails(&run, 3, &["missing"]);
}

#[test]
fn a_jump_host_is_passed_by_ssh_and_udp_goes_directly() {
    // UDP answers in time, also on a busy machine.
    let Some(far) = Far::new("").map(Far::fast) else { return };
    let (file, there) = (far.scratch.file("file", SIZE), far.scratch.dir("there"));
    let run = far.copies(&format!("'{file}' behind:'{there}/'"));
    run.succeeds();
    assert!(run.records().iter().all(|record| record["settings"]["carrier"].is_null()), "{:?}", run.records());
    assert!(same(&file, &format!("{there}/file")));
}

#[test]
fn where_udp_is_blocked_the_data_goes_through_ssh_at_once() {
    let Some(far) = Far::new("") else { return };
    let (file, there) = (far.scratch.file("file", SIZE), far.scratch.dir("there"));
    let run = far.copies(&format!("'{file}' inside:'{there}/'"));
    run.succeeds();
    let records = run.records();
    assert!(records.iter().all(|record| record["event"] != "warning"), "{records:?}");
    assert!(records.iter().any(|record| record["settings"]["carrier"] == "ssh"));
    assert!(same(&file, &format!("{there}/file")));
    let run = far.copies(&format!("{SOON} --no-fallback inside:'{there}/file' '{}'", far.scratch.at("back")));
    fails(&run, 4, &["UDP does not reach", "--port-range"]);
    // And from there, through ssh.
    far.copies(&format!("inside:'{there}/file' '{}'", far.scratch.at("back"))).succeeds();
    assert!(same(&file, &far.scratch.at("back")));
}

#[test]
fn the_noise_of_login_shells_is_skipped() {
    let noise = "ForceCommand sh -c 'echo Welcome to far; echo; printf \"no newline\"; eval \"$SSH_ORIGINAL_COMMAND\"'\nBanner none";
    let Some(far) = Far::new(noise) else { return };
    let (file, there) = (far.scratch.file("file", SIZE), far.scratch.dir("there"));
    far.copies(&format!("'{file}' far:'{there}/'")).succeeds();
    assert!(same(&file, &format!("{there}/file")));
}

// Waits for five runs, each with an attempt to log in.
#[test]
fn each_failure_of_ssh_is_one_line_with_the_next_step() {
    let Some(far) = Far::new("") else { return };
    let (file, there) = (far.scratch.file("file", SIZE), far.scratch.dir("there"));
    let run = far.copies(&format!("'{file}' stranger:'{there}/'"));
    fails(&run, 5, &["ssh cannot reach stranger or log in", "try `ssh -F ", "/config stranger true`"]);
    assert_eq!(run.end()["error"]["code"], "SSH_FAILED");
    let missing = format!("--remote-path /nonexistent/farhaul '{file}' far:'{there}/'");
    let run = far.near(&format!("exec $F copy --ssh \"$S\" {missing}"));
    fails(&run, 5, &["far lacks the program /nonexistent/farhaul", "--remote-path"]);
    assert_eq!(lines(&run).len(), 1, "{}", run.stderr);
    let old = far.scratch.at("old");
    fs::write(&old, "#!/bin/sh\necho \"error: unrecognized subcommand 'bootstrap'\" >&2\nexit 2\n").unwrap();
    fs::set_permissions(&old, Permissions::from_mode(0o755)).unwrap();
    let run = far.near(&format!("exec $F copy --ssh \"$S\" --remote-path '{old}' '{file}' far:'{there}/'"));
    fails(&run, 9, &["no farhaul of this version", "update it there"]);
    assert!(!run.stderr.contains("--install"), "it does not replace a program that the user names: {}", run.stderr);
    let other = far.scratch.at("other-version");
    let said = "{\"failed\":{\"code\":\"PROTOCOL\",\"message\":\"farhaul 9 there speaks version 9\\u001b[31m\"}}";
    let frame = format!("\\001farhaul-bootstrap\\n{:08x}%s", said.len());
    fs::write(&other, format!("#!/bin/sh\nprintf '{frame}' '{said}'\nexec cat > /dev/null\n")).unwrap();
    fs::set_permissions(&other, Permissions::from_mode(0o755)).unwrap();
    let run = far.near(&format!("exec $F copy --ssh \"$S\" --remote-path '{other}' '{file}' far:'{there}/'"));
    fails(&run, 9, &["far: farhaul 9 there speaks version 9"]);
    assert!(!run.stderr.contains('\x1b'), "{}", run.stderr);
    let run = far.copies(&format!("far:'{}' '{there}'", far.scratch.at("nothing-there")));
    fails(&run, 3, &["nothing-there"]);
    assert!(far.scratch.names("there").is_empty());
}

#[test]
fn a_remote_host_without_the_program_gets_this_one_on_request() {
    let Some(far) = Far::new("").map(Far::fast) else { return };
    let (file, there) = (far.scratch.file("file", SIZE), far.scratch.dir("there"));
    let copy = |options: &str| far.near(&format!("exec $F copy --ssh \"$S\" {options} '{file}' far:'{there}/'"));
    let run = copy("");
    fails(&run, 5, &["far lacks the program farhaul", "--install"]);
    assert_eq!(lines(&run).len(), 1, "{}", run.stderr);
    copy("--install").succeeds();
    assert!(same(&file, &format!("{there}/file")));
    fs::remove_file(format!("{there}/file")).unwrap();
    // It stays there.
    copy("").succeeds();
    assert!(same(&file, &format!("{there}/file")));
    assert_eq!(fs::read_dir(Path::new(&far.scratch.at("cache")).join("farhaul/bin")).unwrap().count(), 1);
}

#[test]
fn the_ports_of_the_remote_program_stay_in_their_range() {
    let Some(far) = Far::new("") else { return };
    let (file, there) = (far.scratch.file("file", SIZE), far.scratch.dir("there"));
    let run = far.copies(&format!("--port-range 47000-47001 '{file}' far:'{there}/'"));
    run.succeeds();
    let start = &run.records()[0];
    assert!(["47000", "47001"].iter().any(|port| start["address"].as_str().unwrap().ends_with(port)), "{start}");
}

#[test]
fn nothing_of_a_host_reaches_a_shell_and_plain_is_refused() {
    for place in ["-oProxyCommand=touch${IFS}x:f", "a b:f", ":f"] {
        farhaul(&["copy", "--", "/etc/hostname", place]).fails(2, &["refused"]);
    }
    farhaul(&["copy", "--plain", "/etc/hostname", "far:"]).fails(2, &["always encrypted", "--plain"]);
    farhaul(&["copy", "--ssh", "/nonexistent/ssh", "/etc/hostname", "far:"])
        .fails(5, &["cannot start /nonexistent/ssh"]);
}

#[test]
fn a_control_stream_goes_with_a_copy_over_ssh() {
    let Some(far) = Far::new("") else { return };
    let scratch = &far.scratch;
    // Little, since a copy gives way to its control stream, and falls to a few Mbit/s on a busy machine.
    let (file, there) = (scratch.file("file", 3_000_000), scratch.dir("there"));
    let run = far.copies(&format!("--control-stream 1mbit '{file}' far:'{there}/'"));
    run.succeeds();
    let acknowledged = run.end()["control_stream"]["datagrams_acknowledged"].as_u64();
    assert!(acknowledged.is_some_and(|acknowledged| acknowledged > 5), "{}", run.end());
    assert!(same(&file, &scratch.at("there/file")));
}
