//! Measured streams: a source of the library on one host, and a port that answers it on the other.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use farhaul::probe::{BlasterConfig, Delays, ProbeSocket, Probing, StableConfig};
use farhaul::{Endpoint, Error};
use farhaul_proto::Stats;
use farhaul_units::Duration;

use super::control::{RunControl, Trouble};
use super::processor::Meter;
use super::{Ends, RunningFlow, Start, bulk};
use crate::scenario::flow::{FlowSpec, Measured, Point};

/// IPv4 and UDP headers of a datagram, in bytes.
pub(super) const HEADER: u32 = 28;
/// The time between two looks at a stream's counts: a tenth of the shortest usual sample, which is 100 ms.
const SLICE: Duration = Duration::from_millis(10);

/// A flow with both ends in this program.
struct MeasuredFlow {
    far: Endpoint,
    /// The sender's counters after its latest slice.
    sender: Arc<Mutex<Stats>>,
}

/// The work of a source.
struct StreamSource {
    measured: Measured,
    flow: FlowSpec,
    peer: SocketAddr,
    end: Duration,
    control: Arc<RunControl>,
    sender: Arc<Mutex<Stats>>,
}

pub(super) fn begin(start: Start<'_>, measured: Measured) -> Result<RunningFlow, Trouble> {
    let ([from, to], peer, failed) = (start.hosts, start.addresses[1], start.failed());
    let answering = Endpoint::builder().plain().mss(start.flow.packet).answer_probes(true);
    let meters: [Arc<Meter>; 2] = Default::default();
    let bind = || Ok(meters[1].count_new(&bulk::driver(peer.port()), || answering.bind(peer))?);
    let emulation = start.scene.emulation;
    let far = emulation.enter(to, bind).map_err(&failed)?;
    let sender: Arc<Mutex<Stats>> = Arc::default();
    let (end, control) = (start.end(), start.control());
    let source = StreamSource { measured, flow: start.flow.clone(), peer, end, control, sender: Arc::clone(&sender) };
    let work = meters[0].counting(move || {
        if let Err(error) = source.run() {
            source.control.fail(&source.flow.name, error);
        }
    });
    // A thread that starts on a host stays there, and so does its socket.
    let thread = emulation.enter(from, || thread::Builder::new().name("measured".into()).spawn(work));
    let threads = vec![thread.map_err(failed)?];
    let ends = Box::new(MeasuredFlow { far, sender });
    Ok(RunningFlow { ends, meters: Some(meters), threads, ending: Arc::default() })
}

impl StreamSource {
    fn run(&self) -> Result<(), Error> {
        if !self.control.await_time(self.flow.start) {
            return Ok(());
        }
        let mut socket = ProbeSocket::towards(self.peer)?;
        let datagram = Measured::datagram(self.flow.packet);
        match self.measured {
            Measured::Stable(config) => {
                let mut stream = socket.stable(StableConfig { datagram, ..config })?;
                while self.control.now() < self.end && !self.control.is_over() {
                    socket.run(&mut stream, SLICE.min(self.end.saturating_sub(self.control.now())))?;
                    self.publish(stream.figures(socket.now()).sent, stream.delays());
                }
                stream.stop();
                self.finish(&mut socket, &mut stream)
            }
            Measured::Point(Point { window, sleep, spaced, messages }) => {
                let time = self.end.saturating_sub(self.flow.start);
                let config = BlasterConfig { datagram, window, sleep, spaced, messages, time };
                let mut point = socket.blaster(config)?;
                while point.result().is_none() && !self.control.is_over() {
                    socket.run(&mut point, SLICE)?;
                    self.publish(point.sent(), point.delays());
                }
                Ok(())
            }
        }
    }

    /// Takes late answers until the run is over.
    fn finish(&self, socket: &mut ProbeSocket, stream: &mut impl Probing) -> Result<(), Error> {
        while !self.control.is_over() {
            socket.drain(stream, SLICE)?;
        }
        Ok(())
    }

    fn publish(&self, sent: u64, delays: &Delays) {
        let mut stats = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        (stats.totals.packets_sent, stats.totals.acks_received) = (sent, delays.count());
        (stats.rtt, stats.rtt_var) = (delays.mean(), delays.deviation());
    }
}

impl Ends for MeasuredFlow {
    fn look(&self, [_, before]: [Stats; 2]) -> [Stats; 2] {
        let sender = *self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok((datagrams, bytes)) = self.far.probe_totals() else { return [sender, before] };
        let mut receiver = before;
        receiver.totals.packets_received = datagrams;
        (receiver.totals.bytes_received, receiver.totals.bytes_read) = (bytes, bytes);
        [sender, receiver]
    }
}
