//! Servers on the far host: started first, stopped last.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io::{self, PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use farhaul_udp::Clock;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid};

use super::Hosts;
use super::near::ending;
use crate::cmd::Context;
use crate::exit::{Code, Fault};

/// Longest wait until a server listens. Most servers need about ten milliseconds.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// Longest wait after the command has ended with success. A daemon may still open its port in the background.
const DAEMON: Duration = Duration::from_millis(300);
/// Polling interval.
const LOOK: Duration = Duration::from_millis(10);
/// Time for a server to exit, for instance to flush a capture.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);
/// Bytes kept of a server's latest output, for the report of its failure.
const KEPT: usize = 4096;

/// A command on the far host.
pub(super) struct Served {
    line: String,
    child: Child,
    said: Arc<Mutex<VecDeque<u8>>>,
    clock: Clock,
}

impl Served {
    /// Starts `line`, and waits until a new port is open. Also returns whether one is, or the command has ended.
    pub(super) fn start(hosts: &Hosts<'_>, context: &Context, line: &str) -> Result<(Self, bool), Fault> {
        let far = hosts.far();
        let before = hosts.emulation.enter(far.host, ports)?;
        let (said, out) = io::pipe()?;
        let mut command = Command::new("sh");
        far.introduce(command.args(["-c", line]));
        // Signals of the terminal go to the near host's command.
        command.process_group(0).stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        let child = hosts.emulation.spawn(far.host, &mut command)?;
        // Close the write end here. Otherwise the reader would never see the end.
        drop(command);
        let mut served = Self { line: line.to_owned(), child, said: Arc::default(), clock: context.clock };
        served.listen(said)?;
        let mut until = context.clock.now() + PATIENCE;
        let mut has_ended = false;
        loop {
            if let Some(fault) = context.interrupt.fault() {
                return Err(fault);
            }
            match served.ended()? {
                Some(status) if status.exit_status() != Some(0) => {
                    let status = served.child.wait()?;
                    return Err(Fault::new(Code::Failed, served.complaint(status)));
                }
                // It went into the background, or is done.
                Some(_) if !has_ended => {
                    has_ended = true;
                    until = until.min(context.clock.now() + DAEMON);
                }
                _ => {}
            }
            if hosts.emulation.enter(far.host, ports)?.difference(&before).next().is_some() {
                return Ok((served, true));
            }
            if context.clock.now() >= until {
                return Ok((served, has_ended));
            }
            context.clock.sleep_until(context.clock.now() + LOOK);
        }
    }

    /// Stops the server. Returns a complaint if it had failed before.
    pub(super) fn end(mut self) -> Option<String> {
        let had_ended = self.ended().ok()?.is_some();
        // The group has its children, too. The shell may have ended.
        let group = Pid::from_child(&self.child);
        let _ = kill_process_group(group, Signal::TERM);
        if had_ended {
            let status = self.child.wait().ok()?;
            return (!status.success()).then(|| self.complaint(status));
        }
        let until = self.clock.now() + EXIT_TIMEOUT;
        while self.ended().is_ok_and(|status| status.is_none()) && self.clock.now() < until {
            self.clock.sleep_until(self.clock.now() + LOOK);
        }
        // Kill the rest of the group, since nothing else waits for it.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
        None
    }

    /// The exit status, if it has ended. The process is not reaped here, so that its id stays valid for signals.
    fn ended(&self) -> io::Result<Option<WaitIdStatus>> {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(Pid::from_child(&self.child)), look)?)
    }

    /// Keeps the end of the server's output.
    fn listen(&self, mut from: PipeReader) -> io::Result<()> {
        let said = Arc::clone(&self.said);
        thread::Builder::new().name("far host".into()).spawn(move || {
            let mut piece = [0; KEPT];
            while let Ok(length @ 1..) = from.read(&mut piece) {
                let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                said.extend(&piece[..length]);
                let beyond = said.len().saturating_sub(KEPT);
                said.drain(..beyond);
            }
        })?;
        Ok(())
    }

    /// The message about a server that ended.
    fn complaint(&self, status: ExitStatus) -> String {
        // Its last output may still be in the pipe.
        self.clock.sleep_until(self.clock.now() + LOOK);
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let said = String::from_utf8_lossy(said.make_contiguous()).into_owned();
        let last = said.lines().rfind(|line| !line.trim().is_empty()).map_or(String::new(), |line| format!(": {line}"));
        format!("`{}` on the far host ended {}{last}", self.line, ending(status))
    }
}

/// Open ports in the calling thread's network: listening TCP sockets and bound UDP sockets, with their inodes.
fn ports() -> io::Result<BTreeSet<String>> {
    let mut open = BTreeSet::new();
    for (table, is_tcp) in [("tcp", true), ("tcp6", true), ("udp", false), ("udp6", false)] {
        // A system without IPv6 has only two of these tables.
        let text = fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        open.extend(open_in(&text, is_tcp));
    }
    Ok(open)
}

/// The open ports in a table of sockets.
fn open_in(table: &str, is_tcp: bool) -> impl Iterator<Item = String> {
    /// The state of listening sockets in `/proc/net/tcp`.
    const LISTEN: &str = "0A";
    table.lines().skip(1).filter_map(move |line| {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        let (local, state, inode) = (columns.get(1)?, columns.get(3)?, columns.get(9)?);
        (!is_tcp || *state == LISTEN).then(|| format!("{local} {inode}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_ports_are_listening_or_datagram_sockets() {
        let tcp = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
             0: 00000000:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 37 1 0 100 0 0 10 0\n   \
             1: 0100007F:0035 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 38 1 0 20 4 0 10 -1\n";
        assert_eq!(open_in(tcp, true).collect::<Vec<_>>(), ["00000000:1451 37"]);
        assert_eq!(open_in(tcp, false).count(), 2);
        assert_eq!(open_in("", true).count() + open_in("x\ny\n", true).count(), 0);
    }
}
