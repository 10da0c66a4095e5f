//! Programs that start a command through ssh, with rsh in its place: rsync, git, borg, sftp, sshfs. Each is skipped where it is missing.

use std::fs;
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::requirement::runs;
use crate::rsh::Here;

const PROGRAM: &str = env!("CARGO_BIN_EXE_farhaul");

/// A remote host on this machine, and `rsh` as a program without options.
struct Programs {
    here: Here,
}

impl Programs {
    /// `None` if one of these is missing.
    fn with(needed: &[&str]) -> Option<Self> {
        let found = needed.iter().map(|name| format!("command -v {name}")).collect::<Vec<_>>().join(" && ");
        runs(&["sh", "-c", &found], &format!("rsh below {}", needed.join(", ")))?;
        let here = Here::new();
        let at = |name: &str| here.scratch.at(name);
        here.script(
            "remote-shell",
            &format!(
                "echo $$ > '{}'\nexport XDG_CONFIG_HOME=/dev/null XDG_CACHE_HOME='{}'\nexec '{PROGRAM}' rsh --ssh '{}' --remote-path '{PROGRAM}' \"$@\"",
                at("near.pid"),
                at("cache"),
                at("ssh")
            ),
        );
        Some(Self { here })
    }

    fn at(&self, name: &str) -> String {
        self.here.scratch.at(name)
    }

    /// Runs a shell line in the folder of this test. In it, `$RSH` is rsh.
    fn run(&self, line: &str) -> Output {
        let mut command = Command::new("timeout");
        command.args(["60", "bash", "-c", &format!("set -eo pipefail; {line}")]).current_dir(self.at(""));
        command.env("RSH", self.at("remote-shell")).env("LC_ALL", "C.UTF-8").output().unwrap()
    }

    #[track_caller]
    fn succeeds(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(
            output.status.success(),
            "{line}: {:?}\n{}",
            output.status.code(),
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// A tree with what rsync -aHAX carries.
const TREE: &str = "mkdir -p src/deep/empty && cd src && head -c 3000000 /dev/urandom > big && echo one > a && ln a same && ln -s a link && \
                    truncate -s 500000 holes && touch -d 2001-02-03T04:05:06.789 a && chmod 750 deep && \
                    for i in $(seq 200); do echo $i > deep/$i; done && printf x > $'deep/n\\new \\377' && \
                    (setfattr -n user.note -v here a && setfacl -m u:1:r big || true) && cd ..";

#[test]
fn rsync_copies_trees_both_ways_and_finds_them_the_same() {
    let Some(programs) = Programs::with(&["rsync"]) else { return };
    programs.succeeds(TREE);
    let target = programs.at("there");
    let rsync = |options: &str, from: &str, to: &str| {
        programs.succeeds(&format!("rsync -aHAX --delete {options} -e $RSH {from} {to}"))
    };
    rsync("", "src/", &format!("me@far:'{target}/'"));
    assert_eq!(rsync("-n -i", "src/", &format!("far:'{target}/'")), "");
    programs.succeeds("echo more >> src/a; rm -r src/deep/7; rm -rf back");
    rsync("--stats", "src/", &format!("far:'{target}/'"));
    rsync("", &format!("far:'{target}/'"), "back/");
    assert_eq!(rsync("-n -i", &format!("far:'{target}/'"), "back/"), "");
    programs.succeeds("diff -r --no-dereference src back && test back/a -ef back/same && test ! -e back/deep/7");
}

#[test]
fn the_exit_codes_of_rsync_are_its_own_and_a_long_stderr_arrives() {
    let Some(programs) = Programs::with(&["rsync"]) else { return };
    programs.succeeds("mkdir src; echo x > src/x; head -c 2000000 /dev/urandom > src/a; echo last > src/z");
    let target = programs.at("there");
    let output = programs.run(&format!(
        "rsync -a -e $RSH far:'{}/missing' far:'{}/src' here/",
        programs.at(""),
        programs.at("")
    ));
    assert_eq!(output.status.code(), Some(23), "{}", String::from_utf8_lossy(&output.stderr));
    programs.succeeds("cmp src/a here/src/a");
    // It vanishes once the file before it arrives, which takes 2 s.
    let output = programs.run(&format!(
        "(until test -n \"$(find '{target}' -name '.a.*' -size +0 2> /dev/null)\"; do sleep 0.02; done; rm src/z) & \
         rsync -a --bwlimit=1000 -e $RSH src far:'{target}/'"
    ));
    assert_eq!(output.status.code(), Some(24), "{}", String::from_utf8_lossy(&output.stderr));
    // What the program there says goes to the same stderr.
    let noisy = programs.here.script("noisy", "head -c 1000000 /dev/zero | tr '\\0' e >&2; exec rsync \"$@\"");
    let output = programs.run(&format!("rsync -a --rsync-path='{noisy}' -e $RSH src far:'{target}/'"));
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 1_000_000));
}

#[test]
fn a_cut_rsync_goes_on_with_what_it_has() {
    let Some(programs) = Programs::with(&["rsync"]) else { return };
    programs.here.scratch.file("big", 6_000_000);
    let target = format!("far:'{}'", programs.at("there"));
    let cut = programs.run(&format!(
        "rsync --partial --bwlimit=2000 -e $RSH big {target} & P=$!; until test -n \"$(find . -name '.there.*' -size +500k)\"; do \
         sleep 0.02; done; kill -9 $(cat near.pid); wait $P"
    ));
    // A lost connection, as rsync tells it (rsync(1), exit values).
    assert!(matches!(cut.status.code(), Some(10 | 12 | 255)), "{cut:?}");
    let has = |name: &str| fs::metadata(programs.at(name)).map_or(0, |metadata| metadata.len());
    let part = (0..100).map(|_| {
        std::thread::park_timeout(std::time::Duration::from_millis(50));
        has("there")
    });
    let part = part.clone().find(|&bytes| bytes > 0).unwrap_or(0);
    assert!((1..6_000_000).contains(&part), "{part}");
    let said =
        programs.succeeds(&format!("rsync --partial --no-whole-file --stats -e $RSH big {target} && cmp big there"));
    let sent = said.lines().find_map(|line| line.strip_prefix("Literal data: ")).unwrap();
    let sent: u64 = sent.trim_end_matches(" bytes").replace(',', "").parse().unwrap();
    assert!(sent < 6_000_000 - part / 2, "{sent} bytes sent again, {part} were there");
}

#[test]
fn git_clones_and_pushes() {
    let Some(programs) = Programs::with(&["git"]) else { return };
    let line = format!(
        "export GIT_SSH_COMMAND=$RSH GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b \
         GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b\n\
         git init -q --bare there.git; git -c protocol.version=2 clone -q 'ssh://me@far:2222{0}/there.git' one\n\
         cd one; head -c 300000 /dev/urandom > file; git add file; git commit -qm first; git push -q origin HEAD; cd ..\n\
         git clone -q 'far:{0}/there.git' two; cmp one/file two/file; git -C two fsck --strict 2>&1; git -C two ls-remote | wc -l",
        programs.at("")
    );
    let said = programs.succeeds(&line);
    assert_eq!(said.lines().last(), Some("2"), "{said}");
}

#[test]
fn borg_backs_up_and_restores() {
    let Some(programs) = Programs::with(&["borg"]) else { return };
    let line = format!(
        "export BORG_RSH=$RSH BORG_BASE_DIR=$PWD/base BORG_REPO='ssh://me@far:2222{0}/backups' BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes\n\
         mkdir data out; head -c 2000000 /dev/urandom > data/file; echo x > data/x\n\
         borg init --encryption=none; borg create ::today data; borg list --short; cd out; borg extract ::today; diff -r ../data data",
        programs.at("")
    );
    assert_eq!(programs.succeeds(&line), "today\n");
}

#[test]
fn rclone_copies_and_checks_through_its_own_external_ssh() {
    let Some(programs) = Programs::with(&["rclone"]) else { return };
    // Rclone 1.60 of Debian 12 has no such option.
    let has_it = "rclone help flags 2> /dev/null | grep -q -- --sftp-ssh";
    if runs(&["bash", "-c", has_it], "an rclone of 1.62 or later").is_none() {
        return;
    }
    // It changes names that are not UTF-8.
    programs.succeeds(
        "mkdir src && cd src && head -c 3000000 /dev/urandom > big && for i in $(seq 20); do echo $i > $i; done",
    );
    let (there, ssh) = (programs.at("there"), programs.at("remote-shell"));
    let rclone = format!("rclone --config /dev/null --sftp-ssh '{ssh} me@far'");
    programs.succeeds(&format!(
        "{rclone} sync src :sftp:{there} && diff -r src {there} && {rclone} check src :sftp:{there} && \
         {rclone} copy :sftp:{there} back && diff -r src back"
    ));
}

/// Both start the subsystem `sftp`.
#[test]
fn sftp_and_scp_go_through_the_subsystem() {
    let Some(programs) = Programs::with(&["sftp", "scp"]) else { return };
    let servers = ["/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server"];
    if !servers.iter().any(|server| fs::exists(server).unwrap_or(false)) {
        return;
    }
    programs.here.scratch.file("big", 3_000_000);
    let at = programs.at("");
    programs.succeeds(&format!(
        "printf 'put {at}/big {at}/there\\nget {at}/there {at}/back\\nrename {at}/there {at}/renamed\\nls {at}\\n' | sftp -q -b - -S $RSH me@far\n\
         cmp big back; cmp big renamed; scp -q -P 22 -S $RSH big me@far:'{at}/scped'; cmp big scped"
    ));
}

#[test]
fn sshfs_mounts_a_folder() {
    static MOUNTS: OnceLock<Option<()>> = OnceLock::new();
    let Some(programs) = Programs::with(&["sshfs", "fusermount3"]) else { return };
    if MOUNTS.get_or_init(|| runs(&["sh", "-c", "test -w /dev/fuse"], "sshfs below /dev/fuse")).is_none() {
        return;
    }
    programs.here.scratch.dir("there");
    programs.here.scratch.file("there/file", 2_000_000);
    programs.here.scratch.dir("mounted");
    let line = format!(
        "sshfs -o ssh_command=$RSH me@far:'{}' mounted\n\
         trap 'fusermount3 -u mounted' EXIT\n\
         cmp there/file mounted/file; head -c 1000000 /dev/urandom > mounted/new; mkdir mounted/dir; ls mounted; cmp there/new mounted/new",
        programs.at("there")
    );
    assert_eq!(programs.succeeds(&line), "dir\nfile\nnew\n");
}
