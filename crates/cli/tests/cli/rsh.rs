//! Commands on a remote host, through a script in the place of ssh, which runs the remote program on this machine. Needs nothing of the
//! system.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::process::{Run, Scratch, Started, farhaul, farhaul_with};

const PROGRAM: &str = env!("CARGO_BIN_EXE_farhaul");

/// A remote host on this machine.
pub(crate) struct Here {
    pub(crate) scratch: Scratch,
}

impl Here {
    pub(crate) fn new() -> Self {
        Self::behind("")
    }

    /// `lines` of a shell run first on the remote host. In them, `$C` is the command that ssh was given.
    fn behind(lines: &str) -> Self {
        let here = Self { scratch: Scratch::new() };
        here.script(
            "ssh",
            &format!(
                "case \"$*\" in *-G*) exit 0;; esac\nfor C; do :; done\necho $$ > \"$0.pid\"\n\
                 export SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'\n{lines}\nexec sh -c \"$C\""
            ),
        );
        here
    }

    /// A program of these shell lines.
    pub(crate) fn script(&self, name: &str, lines: &str) -> String {
        let path = self.scratch.at(name);
        fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// The arguments that run this command there.
    fn words<'a>(&self, ssh: &'a str, command: &[&'a str]) -> Vec<&'a str> {
        [&["rsh", "--ssh", ssh, "--remote-path", PROGRAM, "far"], command].concat()
    }

    fn runs(&self, command: &str) -> Run {
        self.runs_with(b"", &[command])
    }

    fn runs_with(&self, input: &[u8], command: &[&str]) -> Run {
        farhaul_with(input, &self.words(&self.scratch.at("ssh"), command))
    }

    /// Without `timeout` around it, which keeps the standard streams open.
    fn begins_alone(&self, command: &str) -> Child {
        let mut begun = Command::new(PROGRAM);
        begun.args(self.words(&self.scratch.at("ssh"), &[command])).env("XDG_CONFIG_HOME", "/dev/null");
        begun.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn begins(&self, command: &str) -> Started {
        Started::begin(&self.words(&self.scratch.at("ssh"), &[command]), Stdio::piped())
    }
}

/// Waits until none of these processes exists, or only as a zombie.
#[track_caller]
fn are_gone(processes: &str) {
    let runs = |process: &str| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
    };
    let gone = (0..200).any(|_| {
        thread::park_timeout(Duration::from_millis(25));
        !processes.split_whitespace().any(runs)
    });
    assert!(gone, "{processes}");
}

#[test]
fn streams_and_the_exit_code_are_those_of_the_command() {
    let here = Here::new();
    let run = here.runs_with(b"to it", &["cat;", "echo 'a  b' >&2;", "exit", "7"]);
    assert_eq!((run.code, &run.stdout[..], &*run.stderr), (7, &b"to it"[..], "a  b\n"));
    let run = here.runs("true");
    assert_eq!((run.code, run.stdout.len(), &*run.stderr), (0, 0, ""));
    assert_eq!(here.runs("kill -TERM $$").code, 143, "a signal is told as shells tell it");
    assert_eq!(here.runs("exit 255").code, 255);
    let bytes: Vec<u8> = (0..3_000_000u32).map(|index| (index * 7 + index / 250) as u8).collect();
    let run = here.runs_with(&bytes, &["cat"]);
    assert!(run.code == 0 && run.stdout == bytes, "{} of {} bytes", run.stdout.len(), bytes.len());
}

#[test]
fn the_login_shell_runs_it_in_the_folder_and_with_the_variables_that_ssh_gave() {
    let here = Here::behind("export GIT_PROTOCOL=version=2 SHLVL=7; cd /usr");
    let run = here.runs("pwd; echo $GIT_PROTOCOL $0; env | grep -c ^SHLVL=[3-9]");
    let user = rustix::process::getuid().as_raw().to_string();
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    let entry = passwd.lines().find(|line| line.split(':').nth(2) == Some(&user)).unwrap();
    let shell = entry.rsplit_once('/').unwrap().1;
    assert_eq!(String::from_utf8(run.stdout).unwrap(), format!("/usr\nversion=2 {shell}\n0\n"), "{}", run.stderr);
}

#[test]
fn stdout_ends_while_the_command_reads_on() {
    let here = Here::new();
    let mut begun = here.begins_alone("echo first; exec >&-; read LINE; echo \"$LINE\" >&2; exit 3");
    let mut stdout = Vec::new();
    begun.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
    assert_eq!(stdout, b"first\n");
    begun.stdin.take().unwrap().write_all(b"second\n").unwrap();
    let run = begun.wait_with_output().unwrap();
    assert_eq!((run.status.code(), &run.stderr[..]), (Some(3), &b"second\n"[..]));
}

#[test]
fn a_command_that_closes_its_stdin_stops_whoever_writes_here() {
    let here = Here::new();
    let (ssh, code) = (here.scratch.at("ssh"), here.scratch.at("code"));
    // Without a reader, yes ends by SIGPIPE.
    let line = format!(
        "{{ yes; echo $? > '{code}'; }} | '{PROGRAM}' rsh --ssh '{ssh}' --remote-path '{PROGRAM}' far 'exec <&-; while ! test -s {code}; do \
         sleep 0.05; done; echo seen'"
    );
    let run = Started::begin_under(&["sh", "-c", &line], &[], Stdio::null()).end();
    assert_eq!((run.code, &run.stdout[..]), (0, &b"seen\n"[..]), "{}", run.stderr);
    assert_eq!(fs::read_to_string(code).unwrap(), "141\n");
}

#[test]
fn a_reader_that_leaves_ends_the_command_by_sigpipe() {
    let here = Here::new();
    let mut started = here.begins("yes");
    let mut first = [0; 2];
    let mut output = started.output();
    output.read_exact(&mut first).unwrap();
    drop(output);
    assert_eq!((first, started.end().code), (*b"y\n", 141));
}

#[test]
fn a_small_write_leaves_at_once_in_both_directions() {
    let here = Here::new();
    let mut started = here.begins("cat");
    let (mut input, mut output) = (started.input(), started.output());
    for number in 0..300u32 {
        let mut back = [0; 4];
        input.write_all(&number.to_be_bytes()).unwrap();
        output.read_exact(&mut back).unwrap();
        assert_eq!(back, number.to_be_bytes());
    }
    drop(input);
    started.end().succeeds();
}

/// As a parent that waits for the end of stdout before it looks at stderr.
#[test]
fn a_reader_of_stderr_that_is_late_holds_back_neither_stdout_nor_stdin() {
    let here = Here::new();
    let mut begun = here.begins_alone("head -c 1500000 /dev/zero >&2; cat");
    let (mut input, mut output) = (begun.stdin.take().unwrap(), begun.stdout.take().unwrap());
    let sent = vec![7; 2_000_000];
    thread::scope(|scope| {
        scope.spawn({
            let sent = &sent;
            move || input.write_all(sent).unwrap()
        });
        let mut back = Vec::new();
        output.read_to_end(&mut back).unwrap();
        assert!(back == sent, "{} bytes", back.len());
    });
    let run = begun.wait_with_output().unwrap();
    assert_eq!((run.status.code(), run.stderr.len()), (Some(0), 1_500_000));
}

#[test]
fn a_session_without_any_data_outlives_every_time_out() {
    let here = Here::new();
    let ssh = here.scratch.at("ssh");
    let words = [
        "rsh",
        "--ssh",
        &ssh,
        "--remote-path",
        PROGRAM,
        "--timeout",
        "1s",
        "--connect-timeout",
        "1s",
        "far",
        "sleep 3; echo late",
    ];
    let run = farhaul(&words);
    assert_eq!((run.code, &run.stdout[..]), (0, &b"late\n"[..]), "{}", run.stderr);
}

#[test]
fn a_signal_here_ends_the_command_and_its_children_there() {
    let here = Here::new();
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut started = here.begins("sleep 1000 & echo $$ $!; cat > /dev/null; wait");
        let processes = started.prints();
        started.signal(signal);
        let run = started.end();
        assert_eq!(run.code, code, "{}", run.stderr);
        are_gone(&processes);
    }
    // Its own kill is told by ssh alone, which ends with it.
    let mut started = here.begins("sleep 1000 & echo $PPID $$ $!; wait");
    let processes = started.prints();
    let near =
        fs::read_to_string(format!("/proc/{}/stat", fs::read_to_string(here.scratch.at("ssh.pid")).unwrap().trim()));
    let near = near.unwrap().rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(near).unwrap(), Signal::KILL).unwrap();
    assert_ne!(started.end().code, 0);
    are_gone(&processes);
}

/// It may not write any more, so a blocked write must not hold it.
#[test]
fn a_signal_ends_a_program_whose_output_nobody_takes() {
    let here = Here::new();
    let mut started = here.begins("echo $$ >&2; sleep 0.5; yes");
    let process = started.says("");
    thread::park_timeout(Duration::from_secs(1));
    started.signal(Signal::TERM);
    let output = started.output();
    let run = started.end();
    drop(output);
    assert_eq!(run.code, 143, "{}", run.stderr);
    are_gone(&process);
}

#[test]
fn a_remote_program_that_dies_is_a_failure_of_rsh() {
    let here = Here::new();
    let run = here.runs("echo $$; sleep 0.3; kill -9 $PPID; exec sleep 1000");
    run.fails(255, &["ssh to far ended before the command did"]);
    are_gone(&String::from_utf8(run.stdout).unwrap());
}

#[test]
fn a_login_with_a_fixed_command_runs_no_other_one() {
    // As sshd starts a fixed command: for whoever asks for another one, and for whoever asks for a login.
    let forced = format!("exec '{PROGRAM}' bootstrap");
    for lines in [
        format!("export SSH_ORIGINAL_COMMAND=\"$C\"; {forced}"),
        forced,
        "export SSH_ORIGINAL_COMMAND=\"$C\"".to_owned(),
    ] {
        let here = Here::behind(&lines);
        let run = here.runs(&format!("touch '{}'", here.scratch.at("made")));
        run.fails(255, &["far: this login may only copy files", "ForceCommand"]);
        assert!(!fs::exists(here.scratch.at("made")).unwrap());
    }
}

#[test]
fn what_rsh_cannot_do_is_one_line_and_the_code_of_ssh() {
    for (words, said) in [
        (&["far"][..], &["no command", "`ssh far`"][..]),
        (&["-l", "me", "far", "--"], &["`ssh far`"]),
        (&["-t", "far", "x"], &["no terminal"]),
        (&["-L", "1:h:2", "far", "x"], &["-L"]),
        (&["--rate", "7", "far", "x"], &["--rate"]),
        (&["--plain", "far", "x"], &["always encrypted"]),
        (&["--json", "far", "x"], &["--json has no effect"]),
        (&["-s", "far"], &["subsystem"]),
        (&["a b", "x"], &["the host 'a b' is refused"]),
        (&["--ssh", "/nonexistent/ssh", "far", "x"], &["cannot start /nonexistent/ssh"]),
        (&[], &["HOST"]),
    ] {
        let run = farhaul(&[&["rsh"], words].concat());
        run.fails(255, said);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
    let here = Here::behind("exit 255");
    here.runs("x").fails(255, &["ssh cannot reach far or log in there"]);
    let here = Here::new();
    let ssh = here.scratch.at("ssh");
    farhaul(&["rsh", "--ssh", &ssh, "--remote-path", PROGRAM, "-s", "far", "nosuch"])
        .fails(255, &["no subsystem nosuch"]);
}

/// As git asks whether a program takes the options of OpenSSH, and as sshfs, rsync and borg give them.
#[test]
fn the_options_of_ssh_reach_ssh_wherever_they_stand() {
    let here = Here::new();
    let log = here.scratch.at("log");
    let ssh = here.script("logging", &format!("echo \"$*\" >> '{log}'; exec '{}' \"$@\"", here.scratch.at("ssh")));
    let run = farhaul(&[
        "rsh",
        "-x",
        "-a",
        "-oA=b",
        "-2",
        "--ssh",
        &ssh,
        "-l",
        "me",
        "far",
        "-p",
        "22",
        "--remote-path",
        PROGRAM,
        "-F",
        "/f",
        "-v",
        "-4",
        "echo",
        "-n",
        "x",
        "--rate",
    ]);
    assert_eq!((run.code, &run.stdout[..]), (0, &b"x --rate"[..]), "{}", run.stderr);
    let logged = fs::read_to_string(&log).unwrap();
    let (settings, started) = logged.split_once('\n').unwrap();
    let options = "-F /f -l me -4 -a -v";
    assert_eq!(settings, format!("{options} -G -T -p 22 -o A=b -- far"));
    assert!(started.starts_with(&format!("{options} -T -p 22 -o A=b -- far sh -c ")), "{started}");
    assert_eq!(farhaul(&["rsh", "--ssh", &ssh, "-G", "far"]).code, 0);
    assert_eq!(farhaul(&["rsh", "--ssh", "false", "-G", "far"]).code, 1);
}

#[test]
fn nothing_is_read_from_stdin_with_n() {
    let here = Here::new();
    let ssh = here.scratch.at("ssh");
    let mut file = File::open(here.scratch.file("file", 1_000)).unwrap();
    let words = ["rsh", "-n", "--ssh", &ssh, "--remote-path", PROGRAM, "far", "wc -c"];
    let run = Started::begin(&words, file.try_clone().unwrap().into()).end();
    assert_eq!(String::from_utf8_lossy(&run.stdout).trim(), "0", "{}", run.stderr);
    let mut rest = Vec::new();
    file.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), 1_000, "a loop over lines goes on");
}
