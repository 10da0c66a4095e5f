//! A process of this same program whose records are read.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cmd::Context;
use crate::exit::{Code, Fault};

/// Longest silence of a child: it reports far more often, and fails by itself long before.
const SILENCE: Duration = Duration::from_secs(90);

/// A child that is stopped when this is dropped.
pub(super) struct Child {
    process: std::process::Child,
    /// Whom signals go to, until its number may be somebody else's.
    target: Arc<Mutex<Option<Pid>>>,
    records: Receiver<Value>,
    complaints: Option<thread::JoinHandle<String>>,
}

impl Child {
    /// Starts it in the way of `spawn`.
    pub(super) fn start(
        context: &Context,
        arguments: &[&str],
        spawn: impl FnOnce(&mut Command) -> io::Result<std::process::Child>,
    ) -> Result<Self, Fault> {
        let program = std::env::current_exe()?;
        let mut command = Command::new(program);
        let variables = std::env::vars_os().map(|(name, _)| name);
        variables.filter(|name| name.to_string_lossy().starts_with("FARHAUL_")).for_each(|name| {
            command.env_remove(name);
        });
        command
            .args(arguments)
            // The demonstration is the same for everybody: no file lies below these.
            .env("XDG_CONFIG_HOME", "/dev/null")
            .env("XDG_CONFIG_DIRS", "/dev/null")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = spawn(&mut command)?;
        let (stdout, stderr) =
            (process.stdout.take().expect("it is piped"), process.stderr.take().expect("it is piped"));
        let (sender, records) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if serde_json::from_str(&line).map_or(true, |record| sender.send(record).is_err()) {
                    return;
                }
            }
        });
        let complaints = thread::spawn(move || {
            let mut text = String::new();
            let _ = BufReader::new(stderr).read_to_string(&mut text);
            text
        });
        let target = Arc::new(Mutex::new(Some(Pid::from_child(&process))));
        let its = Arc::clone(&target);
        context.interrupt.on_stop(move || terminate(*its.lock().unwrap_or_else(PoisonError::into_inner)));
        Ok(Self { process, target, records, complaints: Some(complaints) })
    }

    /// The next record.
    pub(super) fn next(&mut self) -> Result<Value, Fault> {
        self.records.recv_timeout(SILENCE).map_err(|why| {
            if why == RecvTimeoutError::Timeout {
                let _ = self.process.kill();
            }
            let said = self.complaints.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
            let said = said.lines().last().unwrap_or("it ended without a word").to_owned();
            Fault::new(Code::Failed, format!("a process of the demo failed: {said}"))
        })
    }

    /// The next record of this kind.
    pub(super) fn wait_for(&mut self, event: &str) -> Result<Value, Fault> {
        loop {
            let record = self.next()?;
            if record["event"] == event {
                return Ok(record);
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        terminate(self.target.lock().unwrap_or_else(PoisonError::into_inner).take());
        let _ = self.process.wait();
    }
}

fn terminate(process: Option<Pid>) {
    if let Some(process) = process {
        // It may have ended, but nobody has asked how.
        let _ = kill_process(process, Signal::TERM);
    }
}
