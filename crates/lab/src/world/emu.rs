//! The emulated network: real sockets in network namespaces, joined by the scenario's links in real time.
//!
//! UDT flows are connections of the library `farhaul`, and TCP flows are the kernel's. Cross traffic is our own
//! datagrams. All of them run in threads of this program. Flows of libudt are separate programs. The instants of
//! samples are those of the simulator.

mod bulk;
mod control;
mod cross;
mod descriptors;
mod drops;
mod libudt;
mod measured;
mod network;
mod pressure;
mod processor;
mod refusal;
mod tcp;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use farhaul_emu::{Emulation, EmulationReport, HostId};
use farhaul_proto::Stats;
use farhaul_sim::FlowTally;
use farhaul_units::{Duration, Rng};

use super::marks::{self, FlowRow, MarksRow};
use super::{Ending, Observed};
use crate::error::LabError;
use crate::record::EmulationRecord;
use crate::scenario::Job;
use crate::scenario::flow::{FlowSpec, Protocol};
use crate::scenario::setup::Setup;
use control::{RunControl, Trouble};
use network::Network;
use pressure::Pressure;
use processor::Meter;
pub(crate) use refusal::refusal;

/// The port of the first flow, as in the simulator. The others follow.
const FIRST_PORT: u16 = 9_000;
/// The longest wait before a check whether the run must stop.
const SLICE: Duration = Duration::from_millis(50);

/// The choices for this world.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Choices {
    /// The kernel's congestion control of every TCP flow; `None` for the scenario's, `reno` or `cubic`.
    pub tcp: Option<String>,
    /// The program at both ends of flows of the reference library. `interop/build.sh` builds it and prints its path.
    pub libudt: Option<PathBuf>,
}

/// A flow that is running.
struct RunningFlow {
    ends: Box<dyn Ends>,
    /// The meters of the threads of its sender and of its receiver; `None` if nothing measures them.
    meters: Option<[Arc<Meter>; 2]>,
    threads: Vec<JoinHandle<()>>,
    /// How it ended, which its threads write down.
    ending: Arc<Mutex<Ending>>,
}

/// The sender and the receiver of a flow that is running.
trait Ends {
    /// Their counters. A closed connection keeps the counters of `before`.
    fn look(&self, before: [Stats; 2]) -> [Stats; 2];

    /// Their processor time so far, if they are no threads with meters; `None` if it is not known.
    fn processor(&self) -> [Option<Duration>; 2] {
        [None; 2]
    }

    /// Ends whatever their threads wait for. These threads then see the end of the run.
    fn stop(&mut self) {}
}

impl RunningFlow {
    /// The processor time of its sender and of its receiver so far; `None` if it is not known.
    fn processor(&self) -> [Option<Duration>; 2] {
        let meters = self.meters.as_ref();
        meters.map_or_else(|| self.ends.processor(), |meters| meters.each_ref().map(|meter| meter.used()))
    }

    /// How long its threads waited for a processor each time that they needed one, in the mean; `None` if it is not known.
    fn mean_wait(&self) -> Option<Duration> {
        self.meters.as_ref()?.iter().filter_map(|meter| meter.mean_wait()).max()
    }

    /// Ends the flow, waits for its threads, and returns how it ended.
    fn end(&mut self) -> Ending {
        self.ends.stop();
        for thread in self.threads.drain(..) {
            // The thread has reported its panic. Its counts stay.
            let _ = thread.join();
        }
        std::mem::take(&mut *self.ending.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The parts of a run that all flows share.
struct Scene<'a> {
    emulation: &'a Emulation,
    network: &'a Network,
    setup: &'a Setup,
    choices: &'a Choices,
    control: &'a Arc<RunControl>,
    /// The transfers that are left, by the name of the flows that share them.
    lists: BTreeMap<&'a str, Arc<AtomicU32>>,
}

/// Runs a job of the scenario `figure`, and stops once `over` says so.
pub(crate) fn observe(
    figure: &str,
    job: &Job,
    choices: &Choices,
    over: &dyn Fn() -> bool,
) -> Result<Observed, LabError> {
    let setup = &*job.setup;
    if let Some((_, reason)) = refusal(setup, choices) {
        return Err(LabError::Refused { reason });
    }
    descriptors::allow();
    let mut rng = Rng::new(job.seed);
    let network = Network::of(setup, rng.next_u64());
    let emulation = Emulation::start(&network.spec)?;
    let control = Arc::new(RunControl::begin());
    let pressure = Pressure::begin();
    let mut flows = Vec::new();
    let mut scene =
        Scene { emulation: &emulation, network: &network, setup, choices, control: &control, lists: BTreeMap::new() };
    let begun = scene.begin(&mut rng, &mut flows);
    let rows = begun.and_then(|()| rows(setup, &emulation, &network, &control, &flows, over));
    let waited = pressure.share(control.now());
    // Closed sockets lose their counters.
    let seen = rows.and_then(|rows| Ok((rows, drops::count(&emulation, &network, setup)?)));
    control.finish();
    let endings = flows.iter_mut().map(RunningFlow::end).collect();
    let waits = setup.flows.iter().zip(&flows).filter_map(|(flow, running)| Some((running.mean_wait()?, &*flow.name)));
    let host_wait = waits.max();
    drop(flows);
    let report = emulation.stop()?;
    let error = |trouble| match trouble {
        Trouble::Stopped => LabError::Stopped,
        Trouble::Broken(reason) => LabError::Broken { name: job.name(figure), reason },
        Trouble::Controller(flow, failure) => LabError::Controller { flow, failure },
    };
    if let Some(trouble) = control.trouble() {
        return Err(error(trouble));
    }
    let (rows, receiver_drops) = seen.map_err(error)?;
    Ok(Observed {
        rows,
        endings,
        trace: String::new(),
        packet_hops: report.links.iter().map(|link| link.delivered.packets).sum(),
        emulation: Some(EmulationRecord { waited, receiver_drops, ..verdict(&report, host_wait, choices, setup) }),
    })
}

impl<'a> Scene<'a> {
    /// Starts all flows. After an error, `flows` holds those that started.
    fn begin(&mut self, rng: &mut Rng, flows: &mut Vec<RunningFlow>) -> Result<(), Trouble> {
        let setup: &'a Setup = self.setup;
        tcp::prepare_hosts(self.emulation, self.network, setup, self.choices)?;
        for (index, flow) in setup.flows.iter().enumerate() {
            // The same random numbers as in the simulator, in its order, so that flows start at the same instants.
            let (drawn, [seed, _]) = flow.drawn(rng);
            if let Some(transfers) = flow.transfers {
                self.lists.entry(&flow.group).or_insert_with(|| Arc::new(AtomicU32::new(transfers)));
            }
            let hosts = self.network.places[index];
            let port = FIRST_PORT + index as u16;
            let addresses = hosts.map(|host| SocketAddr::new(self.emulation.ipv4(host).into(), port));
            let start = Start { scene: self, index, flow: drawn, hosts, addresses };
            flows.push(match &flow.protocol {
                Protocol::Bulk(bulk) => bulk::begin(start, bulk)?,
                Protocol::Tcp(_) => tcp::begin(start)?,
                Protocol::Libudt => libudt::begin(&start)?,
                Protocol::Measured(source) => measured::begin(start, *source)?,
                Protocol::Cross(rate, pattern) => cross::begin(&start, (*rate, *pattern), seed)?,
            });
        }
        Ok(())
    }
}

/// A flow that is to start.
struct Start<'s> {
    scene: &'s Scene<'s>,
    index: usize,
    /// The flow. Its start is the drawn one.
    flow: FlowSpec,
    /// The hosts of its sender and of its receiver.
    hosts: [HostId; 2],
    /// Their addresses.
    addresses: [SocketAddr; 2],
}

impl Start<'_> {
    fn control(&self) -> Arc<RunControl> {
        Arc::clone(self.scene.control)
    }

    /// The end of sending.
    fn end(&self) -> Duration {
        self.flow.stop.unwrap_or(self.scene.setup.duration)
    }

    fn failed(&self) -> impl Fn(io::Error) -> Trouble {
        Trouble::of(&self.flow.name)
    }
}

/// Samples all flows at the instants of the run.
fn rows(
    setup: &Setup,
    emulation: &Emulation,
    network: &Network,
    control: &RunControl,
    flows: &[RunningFlow],
    over: &dyn Fn() -> bool,
) -> Result<Vec<MarksRow>, Trouble> {
    let mut rows: Vec<MarksRow> = Vec::new();
    for time in marks::times(setup) {
        while control.now() < time {
            if over() {
                return Err(Trouble::Stopped);
            }
            if control.is_over() {
                // That flow has reported the reason.
                return Err(Trouble::Broken("a flow ended".to_owned()));
            }
            control.sleep_until(time.min(control.now() + SLICE));
        }
        let row = {
            let before = rows.last();
            let looked = flows.iter().enumerate().map(|(index, running)| {
                let before = before.map(|row| row.flows[index]).unwrap_or_default();
                let [sender, receiver] = running.ends.look([before.sender, before.receiver]);
                let tally = tally(&setup.flows[index], &receiver, network.passes_bottleneck[index]);
                let processor = running.processor();
                let cpu = [0, 1].map(|side| processor[side].or(before.cpu[side]));
                FlowRow { sender, receiver, tally, cpu }
            });
            MarksRow { at: time, flows: looked.collect(), bottleneck: emulation.look().link(network.bottleneck) }
        };
        rows.push(row);
    }
    Ok(rows)
}

/// The traffic of a flow that left the bottleneck, estimated from its arrivals: payload that arrived for the first
/// time, with headers.
fn tally(flow: &FlowSpec, receiver: &Stats, passes_bottleneck: bool) -> FlowTally {
    let mut tally = FlowTally::default();
    if passes_bottleneck {
        let header = match &flow.protocol {
            Protocol::Bulk(bulk) => bulk::header(bulk),
            Protocol::Tcp(_) => tcp::HEADER,
            Protocol::Libudt => libudt::HEADER,
            Protocol::Measured(_) => measured::HEADER,
            Protocol::Cross(..) => 0,
        };
        let payload = u64::from(flow.packet - header);
        let bytes = receiver.totals.bytes_received;
        tally.new.packets = bytes / payload;
        // Not in whole packets, which would make short intervals uneven.
        tally.new.bytes = (u128::from(bytes) * u128::from(flow.packet) / u128::from(payload)) as u64;
    }
    tally
}

/// The emulator's report about itself, for the record. `host_wait` is that of the flow that waited longest, with its
/// name.
fn verdict(
    report: &EmulationReport,
    host_wait: Option<(Duration, &str)>,
    choices: &Choices,
    setup: &Setup,
) -> EmulationRecord {
    let mut flaws: Vec<String> = report.flaws.iter().map(ToString::to_string).collect();
    flaws.extend(host_wait.and_then(|(wait, flow)| too_long(wait, flow)));
    EmulationRecord {
        valid: flaws.is_empty(),
        flaws,
        host_wait: host_wait.map(|(wait, _)| wait.as_secs_f64()),
        lateness_p50: report.lateness.p50.as_secs_f64(),
        lateness_p99: report.lateness.p99.as_secs_f64(),
        lateness_max: report.lateness.max.as_secs_f64(),
        longest_gap: report.longest_gap.as_secs_f64(),
        busy: report.cpu.as_secs_f64() / report.elapsed.as_secs_f64().max(f64::MIN_POSITIVE),
        waited: None,
        receiver_drops: 0,
        tcp: tcp::congestion_controls(setup, choices),
    }
}

/// The reason against a run whose hosts waited for processors. A host that waits longer than packets may be late is
/// slower than the path, in the mean of all its turns.
fn too_long(wait: Duration, flow: &str) -> Option<String> {
    (wait > farhaul_emu::MAX_LATENESS).then(|| {
        let [wait, limit] = [wait, farhaul_emu::MAX_LATENESS].map(|time| time.as_secs_f64() * 1e3);
        format!("the hosts of flow '{flow}' waited {wait:.2} ms for a processor in the mean (limit {limit:.2} ms)")
    })
}
