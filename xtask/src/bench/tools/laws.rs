//! Transfers under one congestion controller, of ours or of the kernel's TCP, between two hosts of this machine.

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::super::machine::PACKET_SIZE;
use super::super::process::Process;
use super::super::samples::{Measured, Skipped};
use super::host_cost::{TCP_BUFFERS, Transfer};
use super::namespaces::{Hosts, Wire};
use super::quota::Quota;
use super::{Amount, Emulated, Tools, patience};

/// How long a program may take to listen. At a tenth of a core, starting takes ten times its usual time.
const OPENING: Duration = Duration::from_secs(30);
/// The kernel's list of congestion controllers that need no loading.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// A program with its congestion controller.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Law {
    /// `farhaul bench --plain`.
    Plain(&'static str),
    /// `farhaul bench`.
    Encrypted(&'static str),
    /// The kernel's TCP, by `iperf3`.
    Kernel(&'static str),
}

/// What lies between the hosts.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum LawPath {
    Wire(Wire),
    Emulated(Emulated),
}

/// Hosts that are held to a tenth of a core, if any.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Quotas<'a> {
    pub(in super::super) sender: Option<&'a Quota>,
    pub(in super::super) receiver: Option<&'a Quota>,
}

impl Law {
    /// # Errors
    /// [`Skipped`] if this machine lacks it.
    fn ensure_available(self) -> Result<()> {
        let Self::Kernel(name) = self else { return Ok(()) };
        let list = fs::read_to_string(AVAILABLE).unwrap_or_default();
        let has = list.split_whitespace().any(|other| other == name);
        ensure!(has, Skipped(format!("the kernel's list of congestion controllers has no {name}: {}", list.trim())));
        Ok(())
    }

    /// Waits until the receiver listens.
    fn wait_for(self, receiver: &mut Process) -> Result<()> {
        match self {
            Self::Plain(_) | Self::Encrypted(_) => receiver.wait_for_text("local", OPENING)?,
            Self::Kernel(_) => receiver.wait_for_line("Server listening", OPENING)?,
        };
        Ok(())
    }

    fn transfer(self, output: &str) -> Result<Transfer> {
        match self {
            Self::Plain(_) | Self::Encrypted(_) => Transfer::of_farhaul(output),
            Self::Kernel(_) => Transfer::of_iperf3(output),
        }
    }
}

impl Tools {
    /// One transfer under `law`.
    ///
    /// # Errors
    /// `Invalid` if an emulator was the limit, [`Skipped`] if this machine lacks the law or the path.
    pub(in super::super) fn law(&self, law: Law, path: &LawPath, quotas: Quotas<'_>, seconds: u64) -> Result<Measured> {
        law.ensure_available()?;
        let (serve, send) = self.lines(law, quotas, seconds);
        let output = match path {
            LawPath::Emulated(path) => {
                let serve = format!("exec >/dev/null; {serve}");
                self.emulate(path, &[&serve], &send, seconds)?.output
            }
            LawPath::Wire(wire) => {
                let hosts = Hosts::new(*wire).map_err(|error| Skipped(format!("{error:#}")))?;
                let mut receiver = Process::start(&mut hosts.far(&serve))?;
                law.wait_for(&mut receiver)?;
                let send = format!("FARHAUL_PEER={}; {send}", hosts.address());
                let sent = Process::start(&mut hosts.near(&send))?.finish(patience(Amount::Seconds(seconds)))?;
                receiver.interrupt();
                sent.text()
            }
        };
        Ok(law.transfer(&output)?.measured())
    }

    /// Lines for the shells of the receiver and of the sender, which reaches the receiver at `$FARHAUL_PEER`.
    fn lines(&self, law: Law, quotas: Quotas<'_>, seconds: u64) -> (String, String) {
        let [far, near] = [quotas.receiver, quotas.sender].map(|quota| quota.map(Quota::enter).unwrap_or_default());
        let ours = |controller, protection| {
            let bench = self.bench_line(protection);
            let options = format!("--seconds {seconds} --mtu {PACKET_SIZE} --controller {controller}");
            let send = format!("{near}{bench} --connect $FARHAUL_PEER:9000 {options}");
            (format!("{far}{} --listen 0.0.0.0:9000", exec(&bench)), send)
        };
        match law {
            Law::Plain(controller) => ours(controller, Some("--plain")),
            Law::Encrypted(controller) => ours(controller, None),
            Law::Kernel(name) => (
                format!("{TCP_BUFFERS}; {far}exec iperf3 -s -1 --forceflush"),
                format!("{TCP_BUFFERS}; {near}iperf3 -c $FARHAUL_PEER -C {name} -t {seconds} --json"),
            ),
        }
    }
}

/// A line that replaces the shell, so that an interrupt reaches the program. Settings come before the command.
fn exec(line: &str) -> String {
    format!("exec env {line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_law_that_the_kernel_lacks_is_skipped() {
        assert!(Law::Kernel("nosuch").ensure_available().unwrap_err().is::<Skipped>());
        assert!(Law::Plain("nosuch").ensure_available().is_ok());
    }
}
