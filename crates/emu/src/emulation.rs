//! A running network. Its hosts are namespaces of this machine, and its links run in a thread of this program.

#[cfg(test)]
mod tests;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use farhaul_netem::Counters;
use farhaul_units::Duration;
use rustix::io::Errno;

use crate::capture::{BrokenCapture, Capture};
use crate::engine::of_link;
use crate::error::EmulateError;
use crate::flaw::{Flaw, flaws};
use crate::lateness::LatenessReport;
use crate::namespace::{NetworkNamespace, ProcessNamespace};
use crate::network::{HostId, HostSpec, LinkId, MAX_HOSTS, NetworkSpec};
use crate::pool::MAX_BYTES;
use crate::run::{Findings, Port, run};
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
    thread: Option<JoinHandle<io::Result<Findings>>>,
}

/// State shared by the loop and its owner.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) stop: AtomicBool,
    pub(crate) snapshot: Mutex<Snapshot>,
    /// Most bytes of packets in flight.
    pub(crate) memory: usize,
    #[cfg(test)]
    obstacle: tests::Obstacle,
}

impl Shared {
    fn new(memory: usize) -> Self {
        Self {
            stop: AtomicBool::new(false),
            snapshot: Mutex::default(),
            memory,
            #[cfg(test)]
            obstacle: tests::Obstacle::default(),
        }
    }
}

/// State of an emulation, about ten milliseconds old, up to sixty while idle.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Time since the start.
    pub at: Duration,
    /// Lateness of packets so far.
    pub lateness: LatenessReport,
    pub(crate) links: Vec<Counters>,
}

/// Results of an emulation, and whether they are valid.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EmulationReport {
    /// How much later than the links require packets reached their hosts.
    pub lateness: LatenessReport,
    /// 99 % of the times without a poll of any host were at most this long.
    pub p99_gap: Duration,
    /// The longest time without a poll of any host.
    pub longest_gap: Duration,
    /// Packets to unknown addresses.
    pub unroutable: u64,
    /// Packets missing in captures because the disk was too slow.
    pub uncaptured: u64,
    /// Captures that end early because a write failed.
    pub broken_captures: Vec<BrokenCapture>,
    /// Duration of the emulation.
    pub elapsed: Duration,
    /// Processor time of the emulator's thread.
    pub cpu: Duration,
    /// Rounds of the emulator's loop.
    pub rounds: u64,
    /// Whether the links, not the emulator, limited the traffic: `flaws` is empty.
    pub valid: bool,
    /// The reasons why the run is invalid.
    pub flaws: Vec<Flaw>,
    links: Vec<Counters>,
}

impl Snapshot {
    /// Counters of all links, as [`EmulationReport::links`]. Empty before the loop has begun.
    pub fn links(&self) -> &[Counters] {
        &self.links
    }

    /// Counters of a link.
    pub fn link(&self, link: LinkId) -> Counters {
        of_link(&self.links, link)
    }
}

impl EmulationReport {
    /// Counters of all links, in the order of creation. The first link of a pair leads from its first host.
    pub fn links(&self) -> &[Counters] {
        &self.links
    }

    /// Counters of a link.
    pub fn link(&self, link: LinkId) -> Counters {
        of_link(&self.links, link)
    }
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
        let findings = self.end().unwrap_or_else(|| Ok(Findings::default()));
        let found = findings.map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
            // A removed device still has an open descriptor.
            Some(Errno::BADFD) => EmulateError::InterfaceGone(error),
            _ => EmulateError::System { what: "the emulator's loop", source: error },
        })?;
        // A host whose drop counters cannot be read may have lost packets.
        let uncounted = overflows.iter().filter(|count| count.is_err()).count() as u64;
        let overflows = overflows.into_iter().flatten().sum();
        let links = self.look().links;
        // A run shorter than one second is judged by its mean load.
        let mean = found.cpu.as_secs_f64() / found.elapsed.as_secs_f64().max(1e-9);
        let busy = mean.max(found.busiest);
        let flaws = flaws(
            &found.lateness,
            [
                Flaw::Away(found.longest_gap),
                Flaw::Busy((busy * 100.0) as u32),
                Flaw::ReceiveOverflow(overflows),
                Flaw::Uncounted(uncounted),
                Flaw::OutOfMemory(found.exhausted),
                Flaw::Unsent(found.unsent),
            ],
        );
        Ok(EmulationReport {
            lateness: found.lateness,
            p99_gap: found.p99_gap,
            longest_gap: found.longest_gap,
            unroutable: found.unroutable,
            uncaptured: found.uncaptured,
            broken_captures: found.broken_captures,
            elapsed: found.elapsed,
            cpu: found.cpu,
            rounds: found.rounds,
            valid: flaws.is_empty(),
            flaws,
            links,
        })
    }

    /// Ends the loop; `None` if it had ended before.
    fn end(&mut self) -> Option<io::Result<Findings>> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take()?;
        Some(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
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
