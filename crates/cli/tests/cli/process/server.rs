//! A run that listens, and is stopped at the end of the test.

use super::*;

/// Arguments of every listening run: a port of the system's choice, and records.
const LISTENING: [&str; 4] = ["--plain", "--json", "--listen", "127.0.0.1:0"];

/// A listening run whose address is known.
pub(crate) struct Server {
    child: Child,
    lines: BufReader<Box<dyn Read>>,
    pub(crate) address: String,
    process: i32,
}

impl Server {
    /// Begins; `--json`, `--plain` and a port of its own are added.
    pub(crate) fn begin(arguments: &[&str]) -> Self {
        Self::begin_under(&[], arguments)
    }

    /// The same, run by another program.
    pub(crate) fn begin_under(wrapper: &[&str], arguments: &[&str]) -> Self {
        let all = [arguments, &LISTENING].concat();
        Self::started(&mut command_under(wrapper, &all), arguments[0], Stdio::piped())
    }

    /// Begins with encryption, as the user whose settings are in this folder.
    pub(crate) fn begin_as(home: &str, arguments: &[&str]) -> Self {
        Self::begin_as_at(home, "127.0.0.1:0", arguments)
    }

    /// The same on a port that is given.
    pub(crate) fn begin_as_at(home: &str, address: &str, arguments: &[&str]) -> Self {
        let all = [arguments, &["--json", "--listen", address]].concat();
        Self::started(command(&all).env("XDG_CONFIG_HOME", home), arguments[0], Stdio::piped())
    }

    /// Begins on a port that is given.
    pub(crate) fn begin_at(address: &str, arguments: &[&str]) -> Self {
        let all = [arguments, &["--plain", "--json", "--listen", address]].concat();
        Self::started(&mut command(&all), arguments[0], Stdio::piped())
    }

    /// Begins with its stdout somewhere else.
    pub(crate) fn begin_to(arguments: &[&str], stdout: Stdio) -> Self {
        let all = [arguments, &LISTENING].concat();
        Self::started(command(&all).stdout(stdout), arguments[0], Stdio::piped())
    }

    fn started(command: &mut Command, verb: &str, input: Stdio) -> Self {
        let mut child = command.stdin(input).spawn().unwrap();
        // A pipe's records are on stderr, because its stdout is data.
        let from: Box<dyn Read> = match verb {
            "pipe" => Box::new(child.stderr.take().unwrap()),
            _ => Box::new(child.stdout.take().unwrap()),
        };
        let mut lines = BufReader::new(from);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let start: Value = serde_json::from_str(&line).unwrap();
        let address = start["local"].as_str().unwrap().to_owned();
        let process = i32::try_from(start["process_id"].as_u64().unwrap()).unwrap();
        Self { child, lines, address, process }
    }

    /// Its output, for another reader.
    pub(crate) fn output(&mut self) -> ChildStdout {
        self.child.stdout.take().unwrap()
    }

    /// The same, unless another reader has it.
    pub(crate) fn take_output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Its input, to be written piece by piece.
    pub(crate) fn input(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    /// Begins with this input.
    pub(crate) fn begin_with(arguments: &[&str], input: Stdio) -> Self {
        let all = [arguments, &LISTENING].concat();
        Self::started(&mut command(&all), arguments[0], input)
    }

    /// Reads no more records; whoever writes them finds the pipe closed.
    pub(crate) fn forget_records(&mut self) {
        self.lines = BufReader::new(Box::new(std::io::empty()));
    }

    /// Gives it input, and ends that.
    pub(crate) fn feed(&mut self, input: &[u8]) {
        self.child.stdin.take().unwrap().write_all(input).unwrap();
    }

    /// The next record of this kind.
    pub(crate) fn wait_for(&mut self, event: &str) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "it ended without {event}");
            match serde_json::from_str::<Value>(&line) {
                Ok(record) if record["event"] == event => return record,
                _ => {}
            }
        }
    }

    /// The program's own process.
    pub(crate) fn process(&self) -> i32 {
        self.process
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.process).unwrap(), signal).unwrap();
    }

    /// Suspends it, and returns once none of its threads runs.
    pub(crate) fn suspend(&self) {
        suspend(self.process);
    }

    /// Waits for its end; its exit code and the records that were not read.
    pub(crate) fn end_with_records(mut self) -> (i32, String) {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code().unwrap_or(-1), rest)
    }

    /// Waits for its end; its exit code and stdout, as far as that was not read.
    pub(crate) fn end(mut self) -> (i32, Vec<u8>) {
        drop(self.child.stdin.take());
        let mut stdout = Vec::new();
        if let Some(mut rest) = self.child.stdout.take() {
            rest.read_to_end(&mut stdout).unwrap();
        }
        (self.child.wait().unwrap().code().unwrap_or(-1), stdout)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let running = self.child.try_wait().is_ok_and(|status| status.is_none());
        if running {
            // It may end by itself at this moment.
            let _ = kill_process(Pid::from_raw(self.process).unwrap(), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}
