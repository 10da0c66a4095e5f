//! A child process of this program, with its records.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cmd::Context;
use crate::exit::{Code, Fault};

/// Records that wait. The child waits with the next one.
const WAITING: usize = 16;
/// Longest silence of a child. Children report far more often, and time out earlier.
const SILENCE: Duration = Duration::from_secs(90);

/// A child process. Dropping it stops the process.
pub(super) struct Child {
    process: std::process::Child,
    /// Target of signals; `None` once the process may be reaped and its id reused.
    target: Arc<Mutex<Option<Pid>>>,
    records: Receiver<Value>,
    complaints: Option<thread::JoinHandle<String>>,
}

impl Child {
    /// Starts the child with `spawn`, which has its settings and its key in the folder `settings`.
    pub(super) fn start(
        context: &Context,
        settings: &Path,
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
            // No settings of the user, so that the demo is the same for everybody, and leaves no key behind.
            .env("XDG_CONFIG_HOME", settings)
            .env("XDG_CONFIG_DIRS", "/dev/null")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = spawn(&mut command)?;
        let (stdout, stderr) =
            (process.stdout.take().expect("it is piped"), process.stderr.take().expect("it is piped"));
        let (sender, records) = sync_channel(WAITING);
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
            let said = said.lines().last().unwrap_or("it ended without a message").to_owned();
            Fault::new(Code::Failed, format!("a process of the demo failed: {said}"))
        })
    }

    /// The next record with this event.
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
        // The process may have ended, but is not reaped yet.
        let _ = kill_process(process, Signal::TERM);
    }
}
