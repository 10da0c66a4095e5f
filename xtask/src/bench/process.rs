//! Child processes that always end: output by lines, a deadline for every wait, and none is left behind.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::clock::Stopwatch;

/// How long a child may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// A running child; killed when dropped.
#[derive(Debug)]
pub(super) struct Process {
    name: String,
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
    stderr: Option<JoinHandle<String>>,
}

impl Process {
    /// Starts a program.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().rsplit('/').next().unwrap_or_default().to_owned();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("{name} cannot be started"))?;
        let stdout = child.stdout.take().context("stdout is a pipe")?;
        let mut stderr = child.stderr.take().context("stderr is a pipe")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let stderr = thread::spawn(move || {
            let mut bytes = Vec::new();
            // What a child managed to say before its pipe broke is all there is.
            let _ = stderr.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Ok(Self { name, child, lines, seen: Vec::new(), stderr: Some(stderr) })
    }

    /// Waits for a line of output that begins so.
    pub(super) fn wait_for_line(&mut self, begin: &str, time: Duration) -> Result<String> {
        let stopwatch = Stopwatch::start();
        loop {
            match self.lines.recv_timeout(stopwatch.left_of(time)) {
                Ok(line) if line.starts_with(begin) => return Ok(line),
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Timeout) => bail!("{} said no '{begin}' within {time:?}", self.name),
                Err(RecvTimeoutError::Disconnected) => {
                    let complaint = self.complaint();
                    bail!("{} ended: {complaint}", self.name)
                }
            }
        }
    }

    /// Waits for its end and gives the last JSON object of its output that has the field `with`.
    ///
    /// # Errors
    /// It does not end in time, fails, or prints no such object.
    pub(super) fn record(mut self, with: &str, time: Duration) -> Result<Value> {
        let status = self.end(time)?;
        if !status.success() {
            let complaint = self.complaint();
            bail!("{} ended with {status}: {complaint}", self.name);
        }
        self.last_record(with).with_context(|| format!("{} printed no record with '{with}'", self.name))
    }

    /// Asks it to end, as a terminal would, and gives the last JSON object of its output that has the field `with`.
    pub(super) fn interrupt(mut self, with: &str) -> Option<Value> {
        let asked = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        if asked.is_ok_and(|status| status.success()) {
            // A child that does not listen is killed when it is dropped.
            let _ = self.end(GRACE);
        }
        self.last_record(with)
    }

    fn end(&mut self, time: Duration) -> Result<ExitStatus> {
        let stopwatch = Stopwatch::start();
        loop {
            match self.lines.recv_timeout(stopwatch.left_of(time)) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected) => return Ok(self.child.wait()?),
                Err(RecvTimeoutError::Timeout) => bail!("{} did not end within {time:?}", self.name),
            }
        }
    }

    fn last_record(&self, with: &str) -> Option<Value> {
        let objects = self.seen.iter().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        objects.into_iter().find(|object| object.get(with).is_some())
    }

    /// Its last words; only for one that ended or is to end.
    fn complaint(&mut self) -> String {
        let _ = self.child.kill();
        let said = self.stderr.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).or(self.seen.last().map(String::as_str));
        last.unwrap_or("it said nothing").to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Process {
        Process::start(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn the_last_record_with_the_field_counts() {
        let child = shell(r#"echo hello; echo '{"a":1}'; echo '{"a":2}'; echo '{"b":3}'"#);
        assert_eq!(child.record("a", SOON).unwrap()["a"], 2);
    }

    #[test]
    fn a_failing_child_is_quoted() {
        let error = shell("echo '{\"a\":1}'; echo no such host >&2; exit 4").record("a", SOON).unwrap_err().to_string();
        assert!(error.contains("no such host") && error.contains('4'), "{error}");
    }

    #[test]
    fn a_child_that_does_not_end_is_given_up() {
        let error = shell("exec sleep 1000").record("a", Duration::from_millis(50)).unwrap_err().to_string();
        assert!(error.contains("did not end"), "{error}");
    }
}
