//! A running network. Its hosts are namespaces of this machine, and its links run in a thread of this program.

#[cfg(test)]
mod tests;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::io::Errno;

use crate::capture::Capture;
use crate::error::EmulateError;
use crate::flaw::Flaw;
use crate::namespace::{NetworkNamespace, ProcessNamespace};
use crate::network::{HostId, HostSpec, MAX_HOSTS, NetworkSpec};
use crate::pool::MAX_BYTES;
use crate::report::{EmulationReport, Snapshot};
use crate::run::{Port, Shared, run};
use crate::sys;
use crate::tun::{self, Tun};

/// A network of hosts and links on this machine.
///
/// The network ends when this value is dropped or the program that holds it is killed, and so do all programs on its
/// hosts. Its namespaces and devices have no names and live only as long as this program and the programs inside.
///
/// ```no_run
/// use farhaul_emu::{Emulation, NetworkSpec};
/// use farhaul_netem::PathSpec;
/// use farhaul_units::{Duration, Rate};
///
/// let path = PathSpec {
///     rate: Some(Rate::from_megabits_per_second(1_000)),
///     delay: Duration::from_millis(50),
///     ..PathSpec::default()
/// };
/// let (network, [near, far]) = NetworkSpec::pair(&path, &PathSpec { seed: 1, ..path.clone() }, 1_500);
/// let emulation = Emulation::start(&network)?;
/// let mut ping = std::process::Command::new("ping");
/// ping.args(["-c", "3", &emulation.ipv4(far).to_string()]);
/// emulation.spawn(near, &mut ping)?.wait()?;
/// let report = emulation.stop()?;
/// assert!(report.valid);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Emulation {
    spec: NetworkSpec,
    networks: Vec<NetworkNamespace>,
    processes: ProcessNamespace,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<EmulationReport>>>,
}

impl Emulation {
    /// Makes the hosts of `spec` and joins them.
    ///
    /// # Errors
    /// The system does not permit it or lacks a feature, or there are too many hosts.
    pub fn start(spec: &NetworkSpec) -> Result<Self, EmulateError> {
        Self::start_capturing(spec, &[])
    }

    /// Like [`start`](Self::start), and captures all packets of some hosts, sent and received, in one file each for
    /// Wireshark.
    ///
    /// # Errors
    /// As [`start`](Self::start), and if a file cannot be created.
    pub fn start_capturing(spec: &NetworkSpec, captures: &[(HostId, &Path)]) -> Result<Self, EmulateError> {
        Self::start_within(spec, captures, MAX_BYTES)
    }

    /// The same, with a limit of `memory` bytes on packets in flight.
    fn start_within(spec: &NetworkSpec, captures: &[(HostId, &Path)], memory: usize) -> Result<Self, EmulateError> {
        if spec.hosts().len() > MAX_HOSTS {
            return Err(EmulateError::TooManyHosts(spec.hosts().len()));
        }
        let mut networks = Vec::new();
        let mut ports = Vec::new();
        for (host, &HostSpec { mtu, .. }) in spec.hosts() {
            let (network, tun) =
                NetworkNamespace::new(|| Tun::new(spec.ipv4(host), spec.ipv6(host), mtu)).map_err(explained)?;
            networks.push(network);
            let capture = captures.iter().find(|(captured, _)| *captured == host);
            let capture = capture.map(|(_, path)| Capture::create(path)).transpose();
            let capture = capture.map_err(EmulateError::system("creating a capture file"))?;
            ports.push(Port { tun, mtu, capture });
        }
        let processes = ProcessNamespace::new().map_err(explained)?;
        let shared = Arc::new(Shared::new(memory));
        let thread = thread::Builder::new().name("emulator".into()).spawn({
            let (spec, shared) = (spec.clone(), Arc::clone(&shared));
            move || run(&spec, ports, &shared)
        });
        let thread = Some(thread.map_err(EmulateError::system("starting a thread"))?);
        Ok(Self { spec: spec.clone(), networks, processes, shared, thread })
    }

    /// A host's IPv4 address.
    pub fn ipv4(&self, host: HostId) -> Ipv4Addr {
        self.spec.ipv4(host)
    }

    /// A host's IPv6 address.
    pub fn ipv6(&self, host: HostId) -> Ipv6Addr {
        self.spec.ipv6(host)
    }

    /// Starts a program on a host. It ends with the emulation at the latest, as do its child processes.
    ///
    /// # Errors
    /// As [`Command::spawn`].
    pub fn spawn(&self, host: HostId, command: &mut Command) -> io::Result<Child> {
        self.enter(host, || {
            self.processes.adopt_children()?;
            // Programs look themselves up there. Without it, they see the processes of the machine.
            sys::renew_proc(command);
            command.spawn()
        })
    }

    /// Runs `work` on a host, in its own thread. Sockets that it makes belong to the host, wherever they are used
    /// later.
    ///
    /// # Errors
    /// The error that `work` returns.
    pub fn enter<T: Send>(&self, host: HostId, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        self.networks[host.0 as usize].enter(work)
    }

    /// The current state.
    pub fn look(&self) -> Snapshot {
        self.shared.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the loop has ended without a call of [`stop`](Self::stop), which returns the reason.
    pub fn has_failed(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Ends the emulation.
    ///
    /// # Errors
    /// The emulator's loop had failed before, for example because a host lost its interface.
    pub fn stop(mut self) -> Result<EmulationReport, EmulateError> {
        let overflows: Vec<_> = self.networks.iter().map(|network| network.enter(tun::overflows)).collect();
        self.shared.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("only this and the drop, which comes later, take the thread");
        let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let mut report = ended.map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
            // A removed device still has an open descriptor.
            Some(Errno::BADFD) => EmulateError::InterfaceGone(error),
            _ => EmulateError::System { what: "the emulator's loop", source: error },
        })?;
        // A host whose drop counters cannot be read may have lost packets.
        let uncounted = overflows.iter().filter(|count| count.is_err()).count() as u64;
        let overflows = overflows.into_iter().flatten().sum();
        report.judge([Flaw::ReceiveOverflow(overflows), Flaw::Uncounted(uncounted)]);
        Ok(report)
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // `stop` reports the reason of a failure.
            let _ = thread.join();
        }
    }
}

/// The meaning of an error of the system.
fn explained(error: io::Error) -> EmulateError {
    match error.kind() {
        _ if tun::refused_with(&error) => EmulateError::NoTun(error),
        io::ErrorKind::PermissionDenied => EmulateError::NoPermission(error),
        _ => EmulateError::System { what: "making a host", source: error },
    }
}
