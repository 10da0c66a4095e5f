//! Child processes that always end: line-wise output, a deadline for every wait, and a kill on drop.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::clock::Stopwatch;

/// How long a child may take to end after an interrupt.
const GRACE: Duration = Duration::from_secs(5);
/// Interval between readings of a child's peak memory and context switches during a wait. The kernel reports them only while
/// the child lives.
const READING_INTERVAL: Duration = Duration::from_millis(50);

/// A running child; killed when dropped.
#[derive(Debug)]
pub(super) struct Process {
    name: String,
    child: Child,
    lines: Receiver<String>,
    output: Output,
    /// The context switches of each thread, by its name among the tasks.
    switches: BTreeMap<OsString, f64>,
    stderr: Option<JoinHandle<String>>,
}

/// The output and peak memory of a child.
#[derive(Debug, Default)]
pub(super) struct Output {
    lines: Vec<String>,
    /// Largest resident memory observed, bytes.
    pub(super) peak_memory: Option<f64>,
    /// Context switches of its threads, voluntary and not, up to the last reading of each.
    pub(super) context_switches: Option<f64>,
}

impl Process {
    /// Starts a program without input.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        Self::start_fed(command, Stdio::null())
    }

    /// Starts a program with `stdin` as input.
    pub(super) fn start_fed(command: &mut Command, stdin: Stdio) -> Result<Self> {
        let name = command.get_program().to_string_lossy().rsplit('/').next().unwrap_or_default().to_owned();
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
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
            // An error ends the reading; the bytes read so far count.
            let _ = stderr.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Ok(Self { name, child, lines, output: Output::default(), switches: BTreeMap::new(), stderr: Some(stderr) })
    }

    /// The id of the process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line of output that starts with `begin`.
    pub(super) fn wait_for_line(&mut self, begin: &str, time: Duration) -> Result<String> {
        self.wait_for(time, begin, |line| line.starts_with(begin).then(|| line.to_owned()))
    }

    /// Waits for a JSON object with a string in `field`.
    pub(super) fn wait_for_text(&mut self, field: &str, time: Duration) -> Result<String> {
        self.wait_for(time, field, |line| {
            serde_json::from_str::<Value>(line).ok()?.get(field)?.as_str().map(str::to_owned)
        })
    }

    fn wait_for<R>(&mut self, time: Duration, what: &str, wanted: impl Fn(&str) -> Option<R>) -> Result<R> {
        let stopwatch = Stopwatch::start();
        loop {
            match self.lines.recv_timeout(stopwatch.left_of(time)) {
                Ok(line) => {
                    let found = wanted(&line);
                    self.output.lines.push(line);
                    if let Some(found) = found {
                        return Ok(found);
                    }
                }
                Err(RecvTimeoutError::Timeout) => bail!("{} did not print '{what}' within {time:?}", self.name),
                Err(RecvTimeoutError::Disconnected) => {
                    let complaint = self.complaint();
                    bail!("{} ended: {complaint}", self.name)
                }
            }
        }
    }

    /// Lets the child run for `time`.
    ///
    /// # Errors
    /// The child ended.
    pub(super) fn work(&mut self, time: Duration) -> Result<()> {
        let stopwatch = Stopwatch::start();
        loop {
            match self.lines.recv_timeout(stopwatch.left_of(time)) {
                Ok(line) => self.output.lines.push(line),
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => {
                    let complaint = self.complaint();
                    bail!("{} ended: {complaint}", self.name)
                }
            }
        }
    }

    /// Waits for the child's end.
    ///
    /// # Errors
    /// The child does not end in time, or fails.
    pub(super) fn finish(self, time: Duration) -> Result<Output> {
        self.finish_beside(time, None)
    }

    /// The same. Reads the use of `other` meanwhile, because threads of it may end with this child.
    pub(super) fn finish_beside(mut self, time: Duration, other: Option<&mut Self>) -> Result<Output> {
        let status = self.end(time, other)?;
        if !status.success() {
            let complaint = self.complaint();
            bail!("{} ended with {status}: {complaint}", self.name);
        }
        Ok(std::mem::take(&mut self.output))
    }

    /// Interrupts the child, as a terminal would.
    pub(super) fn interrupt(mut self) -> Output {
        self.read_usage();
        let asked = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        if asked.is_ok_and(|status| status.success()) {
            // A child that ignores the interrupt is killed on drop.
            let _ = self.end(GRACE, None);
        }
        std::mem::take(&mut self.output)
    }

    fn end(&mut self, time: Duration, mut other: Option<&mut Self>) -> Result<ExitStatus> {
        let stopwatch = Stopwatch::start();
        loop {
            let left = stopwatch.left_of(time);
            match self.lines.recv_timeout(left.min(READING_INTERVAL)) {
                Ok(line) => self.output.lines.push(line),
                Err(RecvTimeoutError::Disconnected) => return Ok(self.child.wait()?),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    bail!("{} did not end within {time:?}", self.name)
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.read_usage();
            if let Some(other) = &mut other {
                other.read_usage();
            }
        }
    }

    /// Reads the peak memory and the context switches.
    fn read_usage(&mut self) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        self.output.peak_memory = peak_memory(&status).or(self.output.peak_memory);
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id())).into_iter().flatten().flatten() {
            let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            // A thread that has ended counts as it was read last.
            if let Some(switches) = context_switches(&status) {
                self.switches.insert(thread.file_name(), switches);
            }
        }
        self.output.context_switches = Some(self.switches.values().sum());
    }

    /// The last line of stderr or stdout. Kills the child.
    fn complaint(&mut self) -> String {
        let _ = self.child.kill();
        let stderr = self.stderr.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
        last.or(self.output.lines.last().map(String::as_str)).unwrap_or("no output").to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A kill of a child that has ended fails, which is harmless.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Output {
    /// Every JSON object of the output.
    pub(super) fn records(&self) -> Vec<Value> {
        self.lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The last JSON object with the field `with`.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn record(&self, with: &str) -> Result<Value> {
        let found = self.records().into_iter().rev().find(|object| object.get(with).is_some());
        found.with_context(|| format!("no record with '{with}' was printed"))
    }

    /// The whole output.
    pub(super) fn text(&self) -> String {
        self.lines.join("\n")
    }
}

/// The high-water mark of resident memory in `/proc/PID/status`, bytes.
fn peak_memory(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes * 1_024.0)
}

/// The context switches in `/proc/PID/task/TID/status`.
fn context_switches(status: &str) -> Option<f64> {
    let count = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().parse::<f64>().ok()
    };
    Some(count("voluntary_ctxt_switches")? + count("nonvoluntary_ctxt_switches")?)
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
        let output = child.finish(SOON).unwrap();
        assert_eq!(output.record("a").unwrap()["a"], 2);
        assert_eq!(output.records().len(), 3);
        assert!(output.record("c").is_err());
    }

    #[test]
    fn a_line_that_was_waited_for_is_kept() {
        let mut child = shell(r#"echo '{"a":1}'; echo '{"local":"here"}'; echo '{"a":2}'"#);
        assert_eq!(child.wait_for_text("local", SOON).unwrap(), "here");
        assert_eq!(child.finish(SOON).unwrap().records().len(), 3);
    }

    #[test]
    fn a_failing_child_is_quoted() {
        let error = shell("echo '{\"a\":1}'; echo no such host >&2; exit 4").finish(SOON).unwrap_err().to_string();
        assert!(error.contains("no such host") && error.contains('4'), "{error}");
    }

    #[test]
    fn a_child_that_does_not_end_is_an_error() {
        let error = shell("exec sleep 1000").finish(Duration::from_millis(50)).unwrap_err().to_string();
        assert!(error.contains("did not end"), "{error}");
    }

    #[test]
    fn context_switches_of_both_kinds_count() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(context_switches(status), Some(157.0));
        assert_eq!(context_switches("Name:\tzombie\n"), None);
    }

    #[test]
    fn peak_memory_is_the_kernels_high_water_mark() {
        let status = "Name:\tx\nVmPeak:\t  9000 kB\nVmHWM:\t    1024 kB\nVmRSS:\t  512 kB\n";
        assert_eq!(peak_memory(status), Some(1_048_576.0));
        assert_eq!(peak_memory("Name:\tzombie\n"), None);
    }
}
