//! The testbed of the demo: two emulated hosts if this machine permits them, otherwise a relay between two programs.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{self, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use farhaul_emu::{Emulation, EmulationReport, HostId, LatenessReport, NetworkSpec, Relay, RelayReport};
use farhaul_netem::{Counters, PathSpec};
use farhaul_transfer::internal::report::CpuSeconds;
use serde_json::Value;

use super::child::Child;
use crate::cmd::{Context, capacity, emulate, relay};
use crate::exit::{Code, Fault};
use crate::fault;
use crate::output::Output;
use crate::sys;

/// Names of the path's carrier in records.
const HOSTS: &str = "emulator";
const RELAY: &str = "relay";
/// Largest packet of the hosts.
const MTU: u32 = 1500;

/// Two ends and the path between them.
#[expect(clippy::large_enum_variant, reason = "there are two of them in a run")]
pub(super) enum Testbed {
    Hosts { emulation: Emulation, near: HostId, far: HostId },
    Relay { path: [PathSpec; 2], link: Option<Link> },
}

/// The relay on its thread.
pub(super) struct Link {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<(RelayReport, CpuSeconds)>>,
}

/// The report of the emulator or the relay.
pub(super) struct Carrier {
    pub(super) name: &'static str,
    /// From the sender to the receiver.
    pub(super) up: Counters,
    pub(super) lateness: LatenessReport,
    pub(super) cpu: Duration,
    pub(super) valid: bool,
    pub(super) verdict: String,
    pub(super) record: Value,
}

impl Testbed {
    /// Two hosts, or the reason why this machine refuses them.
    pub(super) fn hosts(context: &Context, [up, down]: &[PathSpec; 2]) -> Result<Self, Fault> {
        context.networks.as_ref().map_err(fault::of_emulation)?;
        let (network, [near, far]) = NetworkSpec::pair(up, down, MTU);
        let emulation = Emulation::start(&network).map_err(|error| fault::of_emulation(&error))?;
        Ok(Self::Hosts { emulation, near, far })
    }

    /// The warning if the path exceeds the capacity of this machine between two hosts.
    pub(super) fn warning(&self, [up, down]: &[PathSpec; 2]) -> Result<Option<String>, Fault> {
        let Self::Hosts { .. } = self else { return Ok(None) };
        let asked = capacity::faster([up, down]);
        let carries = capacity::carried(asked, MTU).map_err(|error| fault::of_emulation(&error))?;
        let advice = "use a lower --rate, and check the verdict at the end";
        Ok(carries.and_then(|carries| capacity::too_fast(asked, carries, MTU, advice)))
    }

    /// Its name in records.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Hosts { .. } => HOSTS,
            Self::Relay { .. } => RELAY,
        }
    }

    /// A relay, for UDP only.
    pub(super) fn relay(path: [PathSpec; 2]) -> Self {
        Self::Relay { path, link: None }
    }

    /// Starts the receiving process, which listens on a port of its choice.
    pub(super) fn receiver(&self, context: &Context, settings: &Path, arguments: &[&str]) -> Result<Child, Fault> {
        let address = match self {
            Self::Hosts { emulation, far, .. } => emulation.ipv4(*far),
            Self::Relay { .. } => Ipv4Addr::LOCALHOST,
        };
        let listen = SocketAddr::from((address, 0)).to_string();
        let arguments = [arguments, &["--listen", &listen]].concat();
        Child::start(context, settings, &arguments, |command| match self {
            Self::Hosts { emulation, far, .. } => emulation.spawn(*far, command),
            Self::Relay { .. } => spawn_beside(command),
        })
    }

    /// The address for the sender of a receiver that listens at `local`.
    pub(super) fn address_towards(&mut self, local: &str, output: &Output) -> Result<String, Fault> {
        let Self::Relay { path: [up, down], link } = self else { return Ok(local.to_owned()) };
        let to = local.parse().map_err(|_| Fault::new(Code::Failed, "the server did not say where it listens"))?;
        let listen = (Ipv4Addr::LOCALHOST, 0).into();
        let mut relay =
            Relay::bind(listen, to, up.clone(), down.clone()).map_err(|error| Fault::of_bind(listen, &error))?;
        relay.warnings().for_each(|warning| output.warn(&warning));
        let (address, stop) = (relay.local_addr().to_string(), Arc::new(AtomicBool::new(false)));
        let its = Arc::clone(&stop);
        let thread = thread::Builder::new().name("relay".into()).spawn(move || {
            let began = CpuSeconds::of_thread();
            relay.run(&its).map(|report| (report, CpuSeconds::of_thread() - began))
        })?;
        *link = Some(Link { stop, thread });
        Ok(address)
    }

    /// Starts the sending process.
    pub(super) fn sender(&self, context: &Context, settings: &Path, arguments: &[&str]) -> Result<Child, Fault> {
        Child::start(context, settings, arguments, |command| match self {
            Self::Hosts { emulation, near, .. } => emulation.spawn(*near, command),
            Self::Relay { .. } => spawn_beside(command),
        })
    }

    /// Ends the testbed. `None` if the path never started.
    pub(super) fn end(self) -> Result<Option<Carrier>, Fault> {
        match self {
            Self::Hosts { emulation, .. } => {
                let report = emulation.stop().map_err(|error| fault::of_emulation(&error))?;
                Ok(Some(Carrier::of_emulation(&report)))
            }
            Self::Relay { link: None, .. } => Ok(None),
            Self::Relay { link: Some(link), .. } => {
                link.stop.store(true, Ordering::Release);
                let report = link.thread.join().map_err(|_| Fault::new(Code::Failed, "the relay met a defect"))?;
                let (report, cpu) = report?;
                Ok(Some(Carrier::of_relay(&report, cpu)))
            }
        }
    }
}

/// Starts a program on this machine that ends with this thread. On a host it ends with the host.
fn spawn_beside(command: &mut Command) -> io::Result<process::Child> {
    sys::end_with_thread(command);
    command.spawn()
}

impl Carrier {
    pub(super) fn of_emulation(report: &EmulationReport) -> Self {
        Self {
            name: HOSTS,
            up: report.links.first().copied().unwrap_or_default(),
            lateness: report.lateness,
            cpu: report.cpu,
            valid: report.valid,
            verdict: emulate::verdict(report),
            record: emulate::figures(report),
        }
    }

    fn of_relay(report: &RelayReport, cpu: CpuSeconds) -> Self {
        Self {
            name: RELAY,
            up: report.up.path,
            lateness: report.lateness,
            cpu: report.cpu,
            valid: report.valid,
            verdict: relay::verdict(report),
            record: relay::record(report, cpu),
        }
    }
}
