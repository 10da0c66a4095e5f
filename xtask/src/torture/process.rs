//! Processes of a row: those that run until their handle is dropped, and copies with an end.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::clock::{Stopwatch, pause};

/// Longest time of one copy. A copy that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(90);
/// The standard library panics and aborts if the system refuses memory for the signal stack of a thread.
const STACK_OF_SIGNALS: &str = "failed to allocate an alternative stack";

/// A process that ends with its handle.
pub(super) struct Process {
    child: Child,
    /// The address in its `start` record.
    pub(super) address: String,
}

impl Process {
    /// Starts it, and waits for its `start` record.
    pub(super) fn begin(mut command: Command) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("it is a pipe")?);
        let mut line = String::new();
        lines.read_line(&mut line)?;
        let start: Value = serde_json::from_str(&line).with_context(|| format!("it does not begin: {line}"))?;
        // Nobody reads the rest, and a full pipe would hold the process.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Ok(Self { child, address: start["local"].as_str().unwrap_or_default().to_owned() })
    }

    pub(super) fn signal(&self, name: &str) -> Result<()> {
        signal(self.child.id(), name)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = signal(self.child.id(), "CONT");
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A copy that runs.
pub(super) struct Running {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    /// The part of its output that was read.
    said: String,
}

/// A copy that has ended.
pub(super) struct Ended {
    /// `None` after a signal.
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) stderr: String,
    /// All records, and the last of them.
    pub(super) records: Vec<Value>,
    pub(super) end: Value,
}

impl Running {
    /// Starts it, with its output kept.
    pub(super) fn begin(mut command: Command) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().map(BufReader::new);
        Ok(Self { child, stdout, said: String::new() })
    }

    /// Waits for its `start` record, and returns its own address.
    pub(super) fn local(&mut self) -> Result<SocketAddr> {
        let before = self.said.len();
        self.stdout.as_mut().context("it is a pipe")?.read_line(&mut self.said)?;
        let start: Value = serde_json::from_str(&self.said[before..]).context("it does not begin")?;
        Ok(start["local"].as_str().context("it has an address")?.parse()?)
    }

    /// The number of the process, or of its wrapper.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn signal(&self, name: &str) -> Result<()> {
        signal(self.child.id(), name)
    }

    /// Waits for its end, but not for ever.
    pub(super) fn end(mut self) -> Result<Ended> {
        let (stdout, stderr) = (self.stdout.take(), self.child.stderr.take());
        let read = |stream: Option<Box<dyn Read + Send>>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                stream.map(|mut stream| stream.read_to_end(&mut bytes));
                bytes
            })
        };
        let stdout = read(stdout.map(|stream| Box::new(stream) as _));
        let stderr = read(stderr.map(|stream| Box::new(stream) as _));
        let began = Stopwatch::start();
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if began.elapsed() > PATIENCE {
                self.child.kill()?;
                self.child.wait()?;
                bail!("it hung for {} s", PATIENCE.as_secs());
            }
            pause(Duration::from_millis(5));
        };
        let text = |thread: std::thread::JoinHandle<Vec<u8>>| {
            String::from_utf8_lossy(&thread.join().unwrap_or_default()).into_owned()
        };
        let (stdout, stderr) = (std::mem::take(&mut self.said) + &text(stdout), text(stderr));
        ensure!(!stderr.contains("panicked") || stderr.contains(STACK_OF_SIGNALS), "it panicked: {stderr}");
        let records: Vec<Value> = stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let end = records.last().cloned().unwrap_or_default();
        Ok(Ended { code: status.code(), signal: status.signal(), stderr, records, end })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Sends a signal by its name.
pub(super) fn signal(process: u32, name: &str) -> Result<()> {
    let status =
        Command::new("kill").args([&format!("-{name}"), &process.to_string()]).stderr(Stdio::null()).status()?;
    ensure!(status.success(), "no signal reaches the process");
    Ok(())
}

/// Whether a program is there.
pub(super) fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    found.is_ok_and(|output: Output| output.status.success())
}
