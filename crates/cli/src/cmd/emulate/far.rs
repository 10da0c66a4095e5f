//! What runs on the far host: started first, stopped last.

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

/// How long a server may take until it listens: many are there after some ten milliseconds, none needs seconds.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// How long it may take after its command has ended with success: a daemon opens its port in the background, and most commands that
/// end are none.
const DAEMON: Duration = Duration::from_millis(300);
/// How often is looked whether it does.
const LOOK: Duration = Duration::from_millis(10);
/// How long a server may take for its last words, such as what a capture still holds in memory.
const FAREWELL: Duration = Duration::from_millis(500);
/// Bytes of what a server prints that are kept, for the case that it fails.
const KEPT: usize = 4096;

/// A command on the far host.
pub(super) struct Served {
    line: String,
    child: Child,
    said: Arc<Mutex<VecDeque<u8>>>,
    clock: Clock,
}

impl Served {
    /// Starts `line`, and waits until a port is open that was not; whether that happened, or nothing is left to wait for.
    pub(super) fn start(hosts: &Hosts<'_>, context: &Context, line: &str) -> Result<(Self, bool), Fault> {
        let far = hosts.far();
        let before = hosts.emulation.enter(far.host, ports)?;
        let (said, out) = io::pipe()?;
        let mut command = Command::new("sh");
        far.introduce(command.args(["-c", line]));
        // What the terminal sends is for the near host's command.
        command.process_group(0).stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        let child = hosts.emulation.spawn(far.host, &mut command)?;
        // The command has our end of the pipe, which would never be empty otherwise.
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
                // It went into the background, or had nothing more to do.
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

    /// Stops it. What there is to say if it had failed before.
    pub(super) fn end(mut self) -> Option<String> {
        let had_ended = self.ended().ok()?.is_some();
        // Also what it has started: its shell may have ended.
        let group = Pid::from_child(&self.child);
        let _ = kill_process_group(group, Signal::TERM);
        if had_ended {
            let status = self.child.wait().ok()?;
            return (!status.success()).then(|| self.complaint(status));
        }
        let until = self.clock.now() + FAREWELL;
        while self.ended().is_ok_and(|status| status.is_none()) && self.clock.now() < until {
            self.clock.sleep_until(self.clock.now() + LOOK);
        }
        // Whoever is still there ends with its host, and is waited for by nobody else.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
        None
    }

    /// How it ended, if it has. It is not reaped here: its number, which signals go to, could be somebody else's then.
    fn ended(&self) -> io::Result<Option<WaitIdStatus>> {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(Pid::from_child(&self.child)), look)?)
    }

    /// Keeps the end of what it prints.
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

    /// Why it is no longer there.
    fn complaint(&self, status: ExitStatus) -> String {
        // What it printed may still be on its way, but whoever ends that early has said little.
        self.clock.sleep_until(self.clock.now() + LOOK);
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let said = String::from_utf8_lossy(said.make_contiguous()).into_owned();
        let last = said.lines().rfind(|line| !line.trim().is_empty()).map_or(String::new(), |line| format!(": {line}"));
        format!("`{}` on the far host ended {}{last}", self.line, ending(status))
    }
}

/// The ports that are open in the calling thread's network: listening TCP sockets and bound UDP sockets, with their inodes.
fn ports() -> io::Result<BTreeSet<String>> {
    let mut open = BTreeSet::new();
    for (table, is_tcp) in [("tcp", true), ("tcp6", true), ("udp", false), ("udp6", false)] {
        // A system without IPv6 has only two of them.
        let text = fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        open.extend(open_in(&text, is_tcp));
    }
    Ok(open)
}

/// The lines of a table of sockets that are about open ports.
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
