//! Copies through a script in the place of ssh, which runs the remote program on this machine: what a lost, silent or interrupted ssh
//! does to a copy. Needs nothing of the system.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::process::{Run, Scratch, farhaul_where};
use crate::requirement::runs;

const SIZE: usize = 300_000;

/// A remote host on this machine, whose cache folder is its own.
struct Here {
    scratch: Scratch,
}

impl Here {
    /// `lines` of a shell run first. In them, `$C` is the command for the remote host, and `$PPID` the local program.
    fn behind(lines: &str) -> Self {
        let scratch = Scratch::new();
        let ssh = scratch.at("ssh");
        fs::write(
            &ssh,
            format!(
                "#!/bin/sh\ncase \"$*\" in *-G*) exit 0;; esac\nfor C; do :; done\nexport SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'\n\
                 {lines}\nexec sh -c \"$C\"\n"
            ),
        )
        .unwrap();
        fs::set_permissions(&ssh, Permissions::from_mode(0o755)).unwrap();
        scratch.file("file", SIZE);
        scratch.dir("there");
        Self { scratch }
    }

    fn copies(&self, options: &[&str]) -> Run {
        let (file, target) = (self.scratch.at("file"), format!("far:{}/", self.scratch.at("there")));
        let ssh = self.scratch.at("ssh");
        let words = [&["copy", "--ssh", &ssh], options, &[&file, &target]].concat();
        farhaul_where(&[("XDG_CACHE_HOME", &self.scratch.at("cache"))], &words)
    }

    /// The same with the program at its place.
    fn copies_with_program(&self, options: &[&str]) -> Run {
        self.copies(&[&["--remote-path", env!("CARGO_BIN_EXE_farhaul")], options].concat())
    }

    /// The names in the folder of `--install`.
    fn installed(&self) -> Vec<String> {
        self.scratch.dir("cache/farhaul/bin");
        self.scratch.names("cache/farhaul/bin")
    }
}

#[test]
fn an_install_that_ends_early_leaves_nothing_and_installs_nothing() {
    let here = Here::behind("case \"$C\" in *umask*) head -c 1000000 | sh -c \"$C\"; exit;; esac");
    here.copies(&["--install"]).fails(5, &["far did not store the program"]);
    assert!(here.installed().is_empty(), "{:?}", here.installed());
}

#[test]
fn an_interrupted_install_says_so_and_leaves_nothing() {
    // To this program alone, and to both, of which ssh ends first. A connection ends with its ssh, which is a zombie at first.
    let connected = "for i in $(seq 400); do test -e /proc/$$/exe || break; sleep 0.05; done";
    let alone = format!(
        "case \"$C\" in *umask*) {{ head -c 1000000; kill -INT $PPID; {connected}; }} | sh -c \"$C\"; exit;; esac"
    );
    for lines in [alone.as_str(), "case \"$C\" in *uname*) (sleep 0.05; kill -INT $PPID) > /dev/null & exit 255;; esac"]
    {
        let here = Here::behind(lines);
        here.copies(&["--install"]).fails(130, &["interrupted"]);
        // The remote shell may need a moment for its end.
        let is_clean = (0..100).any(|_| {
            std::thread::park_timeout(std::time::Duration::from_millis(50));
            here.installed().is_empty()
        });
        assert!(is_clean, "{:?}", here.installed());
    }
}

/// A process that ssh leaves behind keeps its output open.
#[test]
fn an_interrupted_install_waits_for_ssh_and_not_for_what_it_leaves_behind() {
    let here = Here::behind(
        "case \"$C\" in *umask*) sleep 60 & echo $! > $(dirname \"$0\")/left; kill -INT $PPID; sleep 0.3; exit;; esac",
    );
    here.copies(&["--install"]).fails(130, &["interrupted"]);
    let left = fs::read_to_string(here.scratch.at("left")).unwrap().trim().parse().unwrap();
    assert!(fs::exists(format!("/proc/{left}/exe")).unwrap(), "it still runs");
    rustix::process::kill_process(rustix::process::Pid::from_raw(left).unwrap(), rustix::process::Signal::TERM)
        .unwrap();
}

#[test]
fn a_cache_folder_that_permits_no_programs_is_the_reason() {
    if runs(&["unshare", "-m", "mount", "-t", "tmpfs", "-o", "noexec", "none", "/mnt"], "mounts of one's own").is_none()
    {
        return;
    }
    let here = Here::behind(
        "mkdir -p $XDG_CACHE_HOME; C=\"mount -t tmpfs -o noexec none $XDG_CACHE_HOME; $C\"; exec unshare -m sh -c \"$C\"",
    );
    let run = here.copies(&["--install"]);
    run.fails(5, &["does not start it", "noexec", "--remote-path"]);
    assert!(!run.stderr.contains("with --install"), "it was given: {}", run.stderr);
}

#[test]
fn the_end_of_the_remote_program_by_a_signal_is_a_lost_peer_here() {
    let here = Here::behind("C=\"exec $C\"; (sleep 1; kill -TERM $$) > /dev/null 2>&1 < /dev/null &");
    let run = here.copies_with_program(&["--rate", "500kbit"]);
    run.fails(8, &["far: stopped by SIGTERM"]);
}

/// It does not read either, and the first message of the second copy is longer than what the pipes hold. Waits for the 15 s.
#[test]
fn a_remote_program_that_says_nothing_ends_the_copy_in_time() {
    let here = Here::behind("printf '\\001farhaul-shell\\n'; exec sleep 60");
    let (ssh, file, there) = (here.scratch.at("ssh"), here.scratch.at("file"), here.scratch.at("there"));
    // In the message, each quotation mark takes two bytes.
    let many: Vec<String> = (0..300).map(|number| format!("far:/{number}{}", "\"".repeat(200))).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).chain([&*there]).collect();
    std::thread::scope(|scope| {
        for ends in [&[&*file, "far:there"], &many[..]] {
            let words = [&["copy", "--remote-path", "farhaul", "--ssh", &ssh], ends].concat();
            scope.spawn(move || {
                let run = farhaul_where(&[], &words);
                run.fails(4, &["was started and has said nothing for 15 s", "--remote-path"]);
                assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
            });
        }
    });
}

#[test]
fn a_copy_that_ssh_ends_has_its_settings_and_its_time_in_records() {
    let here = Here::behind("sleep 0.3; exit 255");
    let run = here.copies_with_program(&["--json", "-P", "2222"]);
    run.fails(5, &[&format!("{} -p 2222 far true", here.scratch.at("ssh"))]);
    let (start, end) = (&run.records()[0], run.end());
    assert_eq!(start["settings"]["sources"][0], here.scratch.at("file"), "{start}");
    assert_eq!(start["settings"]["recursive"], false, "{start}");
    assert!(end["seconds"].as_f64().unwrap() >= 0.3, "{end}");
}

/// A key of nobody.
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICcdIZqOvAScrKcbplYvp2CqyedVuuVYuTFN1Lxxm3K2";

#[test]
fn a_remote_program_that_talks_without_end_waits_and_fills_no_memory() {
    let ready = format!("{{\"ready\":{{\"key\":\"{KEY}\",\"port\":9,\"address\":\"127.0.0.1\"}}}}");
    // A frame with a message of 4,000,013 bytes as often as it goes, and the number of those that went.
    let lines = format!(
        "printf '\\001farhaul-shell\\n\\001farhaul-bootstrap\\n{:08x}%s' '{ready}'; D=$(dirname \"$0\"); \
         {{ printf '\\001\\075\\011\\015'; printf '{{\"record\":\"'; head -c 4000000 /dev/zero | tr '\\0' x; printf '\"}}'; }} > $D/message; n=0; \
         while cat $D/message 2> $D/end; do n=$((n+1)); echo $n >> $D/count; grep VmHWM /proc/$PPID/status >> $D/peak; done; exit",
        ready.len(),
    );
    let here = Here::behind(&lines);
    let run = here.copies_with_program(&["--connect-timeout", "1s", "--timeout", "5s"]);
    run.fails(8, &["far"]);
    // The script may be stopped in the middle of a line.
    let number = |name: &str| -> u64 {
        let text = fs::read_to_string(here.scratch.at(name)).unwrap();
        let digits = |line: &str| line.chars().filter(char::is_ascii_digit).collect::<String>();
        text.lines().filter_map(|line| digits(line).parse().ok()).max().unwrap()
    };
    // Those that are kept, one in the queue, one behind it, and the one that is too many.
    assert!(number("count") <= 8, "{} messages went", number("count"));
    assert!(number("peak") < 120_000, "{} KiB at most", number("peak"));
}

#[test]
fn what_the_remote_side_says_during_an_install_controls_no_terminal() {
    let hostile = "printf '\\033]0;mine\\007\\033[2Jall is well\\n' >&2";
    let here = Here::behind(&format!("case \"$C\" in *uname*) {hostile};; *umask*) {hostile}; exit 1;; esac"));
    let run = here.copies(&["--install"]);
    run.fails(5, &["far did not store the program: \\x1b]0;mine\\x07\\x1b[2Jall is well"]);
    assert!(!run.stderr.contains(['\x1b', '\x07']), "{}", run.stderr);
}

#[test]
fn a_login_shell_that_prints_without_end_is_told_so() {
    let here = Here::behind("yes 'Welcome to far.' | head -c 400000");
    for options in [&[][..], &["--install"]] {
        let run = here.copies(options);
        run.fails(5, &["the login shell on far prints more than 256 KiB before it starts the program", ".bashrc"]);
        assert!(!run.stderr.contains("log in"), "{}", run.stderr);
    }
}

#[test]
fn a_copy_of_the_program_that_is_damaged_is_named_with_the_option_that_replaces_it() {
    for damaged in ["", "\x7fELF and nothing more", "#!/nonexistent/shell\n"] {
        let here = Here::behind("");
        here.scratch.dir("cache/farhaul/bin");
        let place = here.scratch.at(concat!("cache/farhaul/bin/farhaul-", env!("CARGO_PKG_VERSION")));
        fs::write(&place, damaged).unwrap();
        fs::set_permissions(&place, Permissions::from_mode(0o755)).unwrap();
        let run = here.copies(&[]);
        run.fails(5, &["the copy of this program in the cache folder on far does not run: it is damaged", "--install"]);
        assert!(!run.stderr.contains("lacks"), "{}", run.stderr);
    }
}

#[test]
fn an_ssh_that_closes_stdin_is_told_from_another_version() {
    let here = Here::behind("exec sh -c \"$C\" < /dev/null");
    let run = here.copies_with_program(&[]);
    run.fails(5, &["far: nothing of the local program came in", "StdinNull"]);
    assert!(!run.stderr.contains("version"), "{}", run.stderr);
}

#[test]
fn small_files_go_along_with_the_first_message_and_are_nothing_to_a_shell() {
    // The remote program starts once so much has come, or after a while.
    let content = b"\n`false`\n$(false)\n".repeat(1_000);
    let here = |wait: &str| {
        let lines = format!(
            "S=$(dirname \"$0\")/said; timeout {wait} dd bs=1 count=15000 2> /dev/null > $S; {{ cat $S; cat; }} | sh -c \"$C\"; exit"
        );
        let here = Here::behind(&lines);
        fs::write(here.scratch.at("file"), &content).unwrap();
        here
    };
    let said = |here: &Here| fs::read(here.scratch.at("said")).unwrap();
    let arrived = |here: &Here| fs::read(here.scratch.at("there/file")).unwrap();
    let small = here("30");
    let run = small.copies_with_program(&["--json"]);
    run.succeeds();
    assert_eq!((run.end()["verified"].as_bool(), run.end()["security"].as_str()), (Some(true), Some("ssh")));
    assert_eq!(arrived(&small), content);
    assert_eq!(said(&small).len(), 15_000);
    // A start-up file that begins another shell has it read this.
    assert!(said(&small).iter().all(|byte| !b"\n$`".contains(byte)));
    // What concerns UDP needs it.
    let capped = here("1");
    capped.copies_with_program(&["--rate", "100mbit"]).succeeds();
    assert_eq!(arrived(&capped), content);
    assert!(said(&capped).len() < 2_000, "{}", said(&capped).len());
}

/// A remote host that gets the first message of the local program and nothing more, and that UDP does not reach.
fn hears_once() -> Here {
    Here::behind(
        "export SSH_CONNECTION='127.0.0.1 1 192.0.2.1 22'; S=$(dirname \"$0\")/said; H=$(dd bs=1 count=8 2> /dev/null); \
         { printf %s \"$H\"; dd bs=1 count=$((0x$H)) 2> /dev/null | tee $S; sleep 20; } | sh -c \"$C\"; exit",
    )
}

#[test]
fn a_request_goes_along_with_the_first_message_and_needs_no_other() {
    let program = env!("CARGO_BIN_EXE_farhaul");
    let run = |here: &Here, words: &[&str]| {
        let ssh = here.scratch.at("ssh");
        let words = [words, &["--ssh", &ssh, "--remote-path", program]].concat();
        let cache = here.scratch.at("cache");
        farhaul_where(&[("XDG_CACHE_HOME", &cache)], &words)
    };
    let begins = |here: &Here| fs::read_to_string(here.scratch.at("said")).unwrap().contains("\"opening\"");
    let here = hears_once();
    here.scratch.file("file", 40_000);
    let (from, to) = (format!("far:{}", here.scratch.at("file")), here.scratch.at("here"));
    let pulled = run(&here, &["copy", "--json", &from, &to]);
    pulled.succeeds();
    assert_eq!(pulled.end()["security"].as_str(), Some("ssh"));
    assert_eq!(fs::read(&to).unwrap(), fs::read(here.scratch.at("file")).unwrap());
    assert!(begins(&here));
    let shown = run(&here, &["copy", &from, "-"]);
    assert_eq!((shown.code, shown.stdout), (0, fs::read(&to).unwrap()), "{}", shown.stderr);
    // The remote program checks the request as ever.
    run(&here, &["copy", &format!("far:{}", here.scratch.at("none")), &to]).fails(3, &["none"]);
    let script = format!("{} rsh --ssh {} --remote-path {program} far echo there", program, here.scratch.at("ssh"));
    let said =
        std::process::Command::new("sh").args(["-c", &script]).stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!((said.status.code(), said.stdout.as_slice()), (Some(0), &b"there\n"[..]), "{:?}", said.stderr);
    // What concerns UDP begins once that answers.
    let capped = run(&here, &["copy", "--rate", "100mbit", "--timeout", "5s", &from, &to]);
    assert_ne!(capped.code, 0);
    assert!(!begins(&here));
}
