//! Flows of a protocol of the registry: connections of the library, each between two endpoints of its own.
//!
//! A `disk` is the simulator's, in real time: the program waits until the disk would have read a block.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use farhaul::{ConnectionLost, Endpoint, Error, Listener, Stats, Stream};
use farhaul_sim::agent::disk::{DiskSpec, Supply};
use farhaul_units::{Duration, Instant};

use super::control::{RunControl, Trouble};
use super::processor::Meter;
use super::{Ends, RunningFlow, Start};
use crate::scenario::flow::{Bulk, FlowSpec};
use crate::world::Ending;

/// IPv4 and UDP headers of a datagram, in bytes.
const IP_UDP_HEADER: u32 = 28;
/// The longest connection attempt and the longest silence of a peer, as in the simulator. The path may have an RTT of
/// seconds and lose every other packet.
const PATIENCE: Duration = Duration::from_secs(3_600);
/// The longest wait of a call before a check whether its time is over.
const TICK: Duration = Duration::from_millis(20);
/// The size of one write or read, in bytes. One call of the library moves as much.
const BLOCK: usize = 256 << 10;
/// The time between two questions whether everything is acknowledged, as in the simulator.
const POLL: Duration = Duration::from_millis(1);

/// A flow with both ends in this program.
struct BulkFlow {
    endpoints: [Endpoint; 2],
    streams: [Arc<OnceLock<Stream>>; 2],
}

/// The work of a sender.
struct Task {
    flow: FlowSpec,
    disk: Option<DiskSpec>,
    control: Arc<RunControl>,
}

/// Headers of a data packet, those of IPv4 and UDP included, in bytes.
pub(super) fn header(bulk: &Bulk) -> u32 {
    IP_UDP_HEADER + bulk.protocol.entry().header_len
}

pub(super) fn begin(start: Start<'_>, bulk: &Bulk) -> Result<RunningFlow, Trouble> {
    let meters: [Arc<Meter>; 2] = Default::default();
    let at = |side: usize| endpoint(&start, side, bulk, &meters[side]);
    let endpoints = [at(0)?, at(1)?];
    let peer = endpoints[1].local_addr();
    let listener =
        endpoints[1].listen().map_err(|error| Trouble::Broken(format!("flow '{}': {error}", start.flow.name)))?;
    let streams: [Arc<OnceLock<Stream>>; 2] = Default::default();
    let ending = Arc::new(Mutex::new(Ending::default()));
    let receiver = {
        let (stream, name, control) = (Arc::clone(&streams[1]), start.flow.name.clone(), start.control());
        meters[1].counting(move || {
            if let Err(error) = receive(&listener, &stream) {
                report(&control, &name, &error);
            }
        })
    };
    let task = Task { control: start.control(), flow: start.flow, disk: bulk.disk };
    let sender = {
        let (endpoint, stream, ending) = (endpoints[0].clone(), Arc::clone(&streams[0]), Arc::clone(&ending));
        meters[0].counting(move || task.send(&endpoint, peer, &stream, &ending))
    };
    let threads = vec![thread::spawn(sender), thread::spawn(receiver)];
    Ok(RunningFlow { ends: Box::new(BulkFlow { endpoints, streams }), meters: Some(meters), threads, ending })
}

/// The name of the thread that drives an endpoint of the library at this port.
pub(super) fn driver(port: u16) -> String {
    format!("farhaul:{port}")
}

/// An endpoint on one of the hosts, with the library's default settings except for the scenario's.
fn endpoint(start: &Start<'_>, side: usize, bulk: &Bulk, meter: &Meter) -> Result<Endpoint, Trouble> {
    let Start { scene, flow, hosts, addresses, .. } = start;
    let address = addresses[side];
    let mut builder = Endpoint::builder()
        .plain()
        .protocol(bulk.protocol.clone())
        .mss(flow.packet)
        .reorder_tolerance(bulk.reorder_tolerance)
        .connect_timeout(PATIENCE)
        .peer_timeout(PATIENCE)
        .linger(PATIENCE);
    if let Some(controller) = bulk.controller.clone() {
        builder = builder.controller_with(move |seed| controller.build(seed));
    }
    let bind = || Ok(meter.count_new(&driver(address.port()), || builder.bind(address))?);
    let bound = scene.emulation.enter(hosts[side], bind);
    bound.map_err(|error| Trouble::Broken(format!("flow '{}': {error}", flow.name)))
}

impl Task {
    fn send(&self, endpoint: &Endpoint, peer: SocketAddr, place: &OnceLock<Stream>, ending: &Mutex<Ending>) {
        if self.control.await_time(self.flow.start)
            && let Err(error) = self.try_send(endpoint, peer, place, ending)
            && !report(&self.control, &self.flow.name, &error)
        {
            self.control.fail(&self.flow.name, error);
        }
    }

    fn try_send(
        &self,
        endpoint: &Endpoint,
        peer: SocketAddr,
        place: &OnceLock<Stream>,
        ending: &Mutex<Ending>,
    ) -> Result<(), Error> {
        let connected = endpoint.connect(peer)?;
        let stream = place.get_or_init(|| connected);
        stream.set_write_timeout(Some(TICK));
        let block = vec![0; BLOCK];
        let mut left = self.flow.bytes.unwrap_or(u64::MAX);
        let mut supply = self.disk.map(|disk| Supply::new(disk, self.flow.bytes));
        if let Some(supply) = &mut supply {
            supply.begin(self.time());
        }
        while left > 0 && !self.control.is_over() {
            if self.flow.stop.is_some_and(|stop| self.control.now() >= stop) {
                stream.close();
                return Ok(());
            }
            let ready = supply.as_mut().map_or(u64::MAX, |supply| supply.ready(self.time()));
            let length = left.min(ready).min(BLOCK as u64) as usize;
            if let (0, Some(supply)) = (length, &mut supply) {
                self.wait_for_disk(supply, stream);
                continue;
            }
            match stream.send(&block[..length]) {
                Ok(sent) => {
                    left -= sent as u64;
                    if let Some(supply) = &mut supply {
                        supply.take(self.time(), sent as u64);
                    }
                }
                Err(Error::TimedOut(_)) => {}
                Err(error) => return Err(error),
            }
        }
        if left == 0 {
            stream.finish()?;
            ending.lock().unwrap_or_else(PoisonError::into_inner).finished = Some(self.control.now());
        }
        Ok(())
    }
}

impl Task {
    /// The time of the run, for the disk.
    fn time(&self) -> Instant {
        Instant::ZERO + self.control.now()
    }

    /// Waits a while until the disk has read more. A coupled disk begins once everything is acknowledged.
    fn wait_for_disk(&self, supply: &mut Supply, stream: &Stream) {
        let now = self.control.now();
        // A closed connection has no statistics, and ends the flow at its next call.
        let is_idle = || stream.stats().map_or(true, |stats| stats.send_buffer_packets == 0);
        if supply.waits_for_network() && is_idle() {
            supply.begin(Instant::ZERO + now);
        }
        let next = supply.next().map_or(now + POLL, |next| next - Instant::ZERO);
        self.control.sleep_until(next.min(now + TICK));
    }
}

/// Reads all data until the stream ends. The sender reports all failures but those of the receiver's controller.
fn receive(listener: &Listener, place: &OnceLock<Stream>) -> Result<(), Error> {
    let (stream, _) = listener.accept()?;
    let stream = place.get_or_init(|| stream);
    let mut block = vec![0; BLOCK];
    while stream.recv(&mut block)? > 0 {}
    Ok(())
}

/// Ends the run if this error is the failure of a flow's controller. Returns whether it is.
fn report(control: &RunControl, flow: &str, error: &Error) -> bool {
    let Error::Lost(ConnectionLost::ControllerFailed(failure)) = error else { return false };
    control.fail_controller(flow, *failure);
    true
}

impl Ends for BulkFlow {
    fn look(&self, before: [Stats; 2]) -> [Stats; 2] {
        let look =
            |side: usize| self.streams[side].get().and_then(|stream| stream.stats().ok()).unwrap_or(before[side]);
        [look(0), look(1)]
    }

    fn stop(&mut self) {
        for endpoint in &self.endpoints {
            endpoint.canceller().cancel();
        }
        for stream in self.streams.iter().filter_map(|stream| stream.get()) {
            stream.close();
        }
    }
}
