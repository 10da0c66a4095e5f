//! Transfers under one congestion controller, of ours or of the kernel's TCP, between two hosts of this machine.

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::super::machine::PACKET_SIZE;
use super::super::process::Process;
use super::super::quantity::Quantity;
use super::super::samples::{Measured, Skipped};
use super::emulator::Temporary;
use super::host_cost::{TCP_BUFFERS, Transfer};
use super::namespaces::{Hosts, Wire};
use super::quota::Quota;
use super::raw::{PAYLOAD, SILENCE, paced_transfer};
use super::{Amount, Emulated, Tools, ensure_installed, patience};

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
    /// No law and no protocol: a paced sender of so many payload bits per second (the paced_raw example of crates/farhaul).
    Bare(f64),
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

impl Quotas<'_> {
    /// Neither host is held.
    pub(in super::super) const NONE: Self = Self { sender: None, receiver: None };
}

impl Law {
    /// # Errors
    /// [`Skipped`] if this machine lacks it.
    fn ensure_available(self) -> Result<()> {
        let Self::Kernel(name) = self else { return Ok(()) };
        ensure_installed("iperf3", "iperf3")?;
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
            Self::Bare(_) => receiver.wait_for_line("listening", OPENING)?,
        };
        Ok(())
    }

    /// Reads the output of the sender, with that of the receiver if only that has the figures of the receiver.
    fn transfer(self, output: &str) -> Result<Transfer> {
        match self {
            Self::Plain(_) | Self::Encrypted(_) => Transfer::of_farhaul(output),
            Self::Kernel(_) => Transfer::of_iperf3(output),
            Self::Bare(_) => paced_transfer(output),
        }
    }
}

impl Tools {
    /// One transfer under `law`: goodput and processor time of both ends. Over an emulated path, there is also the time with the
    /// emulator's; over a wire, the packets lost in the hosts' own buffers.
    ///
    /// # Errors
    /// `Invalid` if an emulator was the limit, [`Skipped`] if this machine lacks the law or the path.
    pub(in super::super) fn law(&self, law: Law, path: &LawPath, quotas: Quotas<'_>, seconds: u64) -> Result<Measured> {
        law.ensure_available()?;
        let (serve, send) = self.lines(law, quotas, seconds);
        match path {
            LawPath::Emulated(path) => {
                let report = Temporary::new("receiver");
                let file = report.0.display();
                let serve = format!("exec >{file}; {serve}");
                // Its receiver ends, and reports, after a second of silence.
                let wait =
                    format!("for _ in $(seq 50); do grep -q received {file} && break; sleep 0.1; done; cat {file}");
                let send = if matches!(law, Law::Bare(_)) { format!("{{ {send}; {wait}; }}") } else { send };
                let heard = self.emulate(path, &[&serve], &send, seconds)?;
                Ok(law.transfer(&heard.output)?.with_emulator(heard.processor_seconds))
            }
            LawPath::Wire(wire) => {
                let hosts = Hosts::new(*wire).map_err(|error| Skipped(format!("{error:#}")))?;
                let mut receiver = Process::start(&mut hosts.far(&serve))?;
                law.wait_for(&mut receiver)?;
                let send = format!("FARHAUL_PEER={}; {send}", hosts.address());
                let sent = Process::start(&mut hosts.near(&send))?.finish(patience(Amount::Seconds(seconds)))?;
                let output = if matches!(law, Law::Bare(_)) {
                    format!("{}\n{}", receiver.finish(SILENCE)?.text(), sent.text())
                } else {
                    receiver.interrupt();
                    sent.text()
                };
                let mut measured = law.transfer(&output)?.measured();
                measured.figures.push((Quantity::OwnLosses, hosts.receive_losses()?));
                Ok(measured)
            }
        }
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
            Law::Bare(rate) => {
                let program = self.example("paced_raw");
                let words: Vec<_> = std::iter::once(program.get_program()).chain(program.get_args()).collect();
                let program = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
                (
                    format!("{far}exec {program} recv 0.0.0.0:9000"),
                    format!("{near}{program} send $FARHAUL_PEER:9000 {rate:.0}bit {seconds} {PAYLOAD}"),
                )
            }
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
