//! Running the program: to its end, or as a server that is stopped at the end of the test.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

mod server;

pub(crate) use server::Server;

/// Far longer than anything here takes; a run that hangs is ended by `timeout` and fails.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Run {
    /// The records on stdout.
    pub(crate) fn records(&self) -> Vec<Value> {
        records(&String::from_utf8_lossy(&self.stdout))
    }

    /// The last record.
    pub(crate) fn end(&self) -> Value {
        let end = self.records().pop().unwrap();
        assert_eq!(end["event"], "end", "{end}");
        end
    }

    /// The run failed with this code, and its last line says all of these words.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{}", self.stderr);
        let line = self.stderr.lines().last().unwrap_or_default();
        assert!(words.iter().all(|word| line.contains(word)), "{line}");
    }

    #[track_caller]
    pub(crate) fn succeeds(&self) {
        assert_eq!(self.code, 0, "{}\n{:#?}", self.stderr, self.last_records());
    }

    /// How far it came, for the message of a test that failed.
    fn last_records(&self) -> Vec<Value> {
        let text = String::from_utf8_lossy(&self.stdout);
        let mut records: Vec<_> =
            text.lines().rev().filter_map(|line| serde_json::from_str(line).ok()).take(3).collect();
        records.reverse();
        records
    }
}

pub(crate) fn records(text: &str) -> Vec<Value> {
    text.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn command(arguments: &[impl AsRef<OsStr>]) -> Command {
    command_under(&[], arguments)
}

/// The program, run by another one that does something to it.
fn command_under(wrapper: &[&str], arguments: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new("timeout");
    // --foreground: a signal to the group reaches the program once.
    command.args(["--foreground", &LIMIT.as_secs().to_string()]).args(wrapper);
    command.arg(env!("CARGO_BIN_EXE_farhaul")).args(arguments);
    // The settings of whoever runs the tests are not ours.
    command.env("XDG_CONFIG_HOME", "/dev/null").env("XDG_CONFIG_DIRS", "/dev/null");
    command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
    // Nor are their sockets.
    command.env("XDG_RUNTIME_DIR", run_folder());
    // Most tests look at the first failure.
    command.env("FARHAUL_GIVE_UP", "0s");
    command.env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A folder for sockets that belongs to the tests.
fn run_folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs the program to its end without input.
pub(crate) fn farhaul(arguments: &[impl AsRef<OsStr>]) -> Run {
    Started(command(arguments).spawn().unwrap()).end()
}

/// The same, run by another program.
pub(crate) fn farhaul_under(wrapper: &[&str], arguments: &[&str]) -> Run {
    Started(command_under(wrapper, arguments).spawn().unwrap()).end()
}

/// The same with these variables in its environment.
pub(crate) fn farhaul_where(variables: &[(&str, &str)], arguments: &[&str]) -> Run {
    Started(command(arguments).envs(variables.iter().copied()).spawn().unwrap()).end()
}

/// Runs it on a terminal of its own; everything that appeared there is in `stdout`.
pub(crate) fn farhaul_on_terminal(variables: &[(&str, &str)], arguments: &[&str]) -> Run {
    Started(on_terminal(variables, arguments).spawn().unwrap()).end()
}

/// The same, while somebody types there.
pub(crate) fn farhaul_on_terminal_with(typed: &[u8], variables: &[(&str, &str)], arguments: &[&str]) -> Run {
    let mut child = on_terminal(variables, arguments).stdin(Stdio::piped()).spawn().unwrap();
    // Less than a pipe holds.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(typed).unwrap();
    let run = Started(child).end();
    drop(stdin);
    run
}

fn on_terminal(variables: &[(&str, &str)], arguments: &[&str]) -> Command {
    let quoted: Vec<String> = arguments.iter().map(|argument| format!("'{argument}'")).collect();
    let line = format!("exec '{}' {}", env!("CARGO_BIN_EXE_farhaul"), quoted.join(" "));
    let mut command = Command::new("timeout");
    command.args([&LIMIT.as_secs().to_string(), "script", "-qec", &line, "/dev/null"]).env_remove("NO_COLOR");
    command.env("TERM", "xterm").envs(variables.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it with `input`.
pub(crate) fn farhaul_with(input: &[u8], arguments: &[&str]) -> Run {
    farhaul_with_as("/dev/null", input, arguments)
}

/// The same as the user whose settings are in this folder.
pub(crate) fn farhaul_with_as(home: &str, input: &[u8], arguments: &[&str]) -> Run {
    let mut child = command(arguments).env("XDG_CONFIG_HOME", home).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // A child may end before it has read all input.
        scope.spawn(move || drop(stdin.write_all(input)));
        Started(child).end()
    })
}

/// A run that goes on.
pub(crate) struct Started(Child);

impl Started {
    pub(crate) fn begin(arguments: &[&str], input: Stdio) -> Self {
        Self(command(arguments).stdin(input).spawn().unwrap())
    }

    /// With these variables in its environment.
    pub(crate) fn begin_where(variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        Self(command(arguments).envs(variables.iter().copied()).spawn().unwrap())
    }

    /// Waits until it says this on stderr, and ends it. Returns all that it said.
    ///
    /// # Errors
    /// It ended before.
    pub(crate) fn after_words(mut self, words: &str) -> Result<String, Run> {
        let mut lines = BufReader::new(self.0.stderr.take().unwrap());
        let mut said = String::new();
        while lines.read_line(&mut said).unwrap() > 0 {
            if said.contains(words) {
                self.signal(Signal::TERM);
                self.0.wait().unwrap();
                return Ok(said);
            }
        }
        Err(Run { stderr: said, ..self.end() })
    }

    /// In this folder.
    pub(crate) fn begin_in(folder: &str, arguments: &[&str]) -> Self {
        Self(command(arguments).current_dir(folder).spawn().unwrap())
    }

    /// Run by another program.
    pub(crate) fn begin_under(wrapper: &[&str], arguments: &[&str], input: Stdio) -> Self {
        Self(command_under(wrapper, arguments).stdin(input).spawn().unwrap())
    }

    /// With its stdout somewhere else.
    pub(crate) fn begin_to(arguments: &[&str], input: Stdio, stdout: Stdio) -> Self {
        Self(command(arguments).stdin(input).stdout(stdout).spawn().unwrap())
    }

    /// Its input, to be written piece by piece.
    pub(crate) fn input(&mut self) -> ChildStdin {
        self.0.stdin.take().unwrap()
    }

    /// The next line that it prints.
    pub(crate) fn prints(&mut self) -> String {
        let stdout = self.0.stdout.as_mut().unwrap();
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            assert_ne!(stdout.read(&mut byte).unwrap(), 0, "it ended after {}", String::from_utf8_lossy(&line));
            match byte {
                [b'\n'] => return String::from_utf8(line).unwrap(),
                [other] => line.push(other),
            }
        }
    }

    /// The rest of its output, for the test to read.
    pub(crate) fn output(&mut self) -> ChildStdout {
        self.0.stdout.take().unwrap()
    }

    /// Waits until it has said this on stderr.
    pub(crate) fn says(&mut self, words: &str) -> String {
        let stderr = self.0.stderr.as_mut().unwrap();
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            assert_ne!(stderr.read(&mut byte).unwrap(), 0, "it ended without {words}");
            match byte {
                [b'\n'] if String::from_utf8_lossy(&line).contains(words) => return String::from_utf8(line).unwrap(),
                [b'\n'] => line.clear(),
                [other] => line.push(other),
            }
        }
    }

    /// Sends a signal to the program below `timeout`, which passes it on.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    pub(crate) fn end(self) -> Run {
        let output = self.0.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Run { code: output.status.code().unwrap_or(-1), stdout: output.stdout, stderr }
    }

    /// Waits until the run has printed a record of this kind.
    pub(crate) fn after(mut self, event: &str) -> Reporting {
        let mut lines = BufReader::new(self.0.stdout.take().unwrap());
        let mut process = 0;
        loop {
            let mut line = String::new();
            assert_ne!(lines.read_line(&mut line).unwrap(), 0, "it ended without {event}");
            let record: Value = serde_json::from_str(&line).unwrap();
            process = record["process_id"].as_i64().map_or(process, |id| i32::try_from(id).unwrap());
            if record["event"] == event {
                return Reporting { started: self, lines, process, record };
            }
        }
    }
}

/// A run that has begun to report.
pub(crate) struct Reporting {
    started: Started,
    lines: BufReader<ChildStdout>,
    process: i32,
    /// The record that was waited for.
    pub(crate) record: Value,
}

impl Reporting {
    /// The program's own process.
    pub(crate) fn process(&self) -> i32 {
        self.process
    }

    pub(crate) fn suspend(&self) {
        suspend(self.process);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.process).unwrap(), signal).unwrap();
    }

    /// The next record of this kind.
    pub(crate) fn next(&mut self, event: &str) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "it ended without {event}");
            let record: Value = serde_json::from_str(&line).unwrap();
            if record["event"] == event {
                return record;
            }
        }
    }

    /// Waits until it has said this on stderr; that line.
    pub(crate) fn says(&mut self, words: &str) -> String {
        self.started.says(words)
    }

    pub(crate) fn end(mut self) -> Run {
        let mut stdout = Vec::new();
        self.lines.read_to_end(&mut stdout).unwrap();
        Run { stdout, ..self.started.end() }
    }
}

/// A directory of the test's own.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A path below it, as text.
    pub(crate) fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// The names in one of its directories, in order.
    pub(crate) fn names(&self, directory: &str) -> Vec<String> {
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<_> = fs::read_dir(self.0.join(directory)).unwrap().map(name).collect();
        names.sort();
        names
    }

    /// Makes a directory.
    pub(crate) fn dir(&self, name: &str) -> String {
        fs::create_dir_all(self.0.join(name)).unwrap();
        self.at(name)
    }

    /// Makes a file of `len` patterned bytes.
    pub(crate) fn file(&self, name: &str, len: usize) -> String {
        // One period, since a test would compute long files for seconds.
        let period: Vec<u8> = (0..251 * 256).map(|index: usize| (index * 31 + index / 251) as u8).collect();
        let mut content = period.repeat(len.div_ceil(period.len()));
        content.truncate(len);
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self.at(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Stops all threads of a process, and returns once they stand still.
fn suspend(process: i32) {
    kill_process(Pid::from_raw(process).unwrap(), Signal::STOP).unwrap();
    let runs = |thread: &fs::DirEntry| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // proc(5): the state follows the name, which is in parentheses.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('T'))
    };
    let threads = format!("/proc/{process}/task");
    while fs::read_dir(&threads).unwrap().any(|thread| runs(&thread.unwrap())) {
        std::thread::yield_now();
    }
}

/// Whether a name is that of an incomplete file or of its journal, which no user takes for a result.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && (name.ends_with(".fhpart") || name.ends_with(".fhjournal"))
}
