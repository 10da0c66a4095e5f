//! Simulations whose hosts all run the same transport, for tests of that transport.

use core::net::SocketAddr;

use farhaul_netem::Counters;
use farhaul_proto::{Channels, Numbering, Streams};
use farhaul_units::{Duration, Instant};

use crate::agent::transport::{Application, TransportAgent};
use crate::first_times::FirstTimes;
use crate::network::{Capture, FlowId, FlowTally, LinkId, Network, NetworkCounters, NodeId};
use crate::packet::Pool;
use crate::sample::Samples;
use crate::trace::{Tap, TraceHash};
use crate::traffic::{Flow, Traffic, delivery};
use crate::world::World;

/// How often [`Simulation::run_until_true`] checks its condition.
const CHECK_PERIOD: Duration = Duration::from_millis(1);

/// Hosts and links in virtual time, with access to transports and applications. Made by a topology such as
/// [`Pair`](crate::topology::path::Pair).
pub struct Simulation<T, A = Traffic> {
    world: World<TransportAgent<T, A>>,
}

impl<T: Streams + Channels, A: Application<T>> Simulation<T, A> {
    /// One host per address of the network.
    pub(crate) fn new(network: Network, hosts: Vec<(T, A)>) -> Self {
        let hosts = hosts.into_iter().map(|(transport, application)| TransportAgent::new(transport, application));
        Self { world: World::new(network, hosts.collect()) }
    }

    /// The time in the simulation.
    pub fn now(&self) -> Instant {
        self.world.now()
    }

    /// A host's transport.
    pub fn transport(&self, host: NodeId) -> &T {
        &self.world.agent(host).transport
    }

    /// A host's application.
    pub fn application(&self, host: NodeId) -> &A {
        &self.world.agent(host).application
    }

    /// Runs until `end`.
    pub fn run_until(&mut self, end: Instant) {
        self.world.run_until(end);
    }

    /// Runs for `time`.
    pub fn run_for(&mut self, time: Duration) {
        self.world.run_for(time);
    }

    /// Gives commands to a host, and drains its transport afterwards.
    pub fn command<R>(&mut self, host: NodeId, give: impl FnOnce(Instant, &mut T, &mut A) -> R) -> R {
        self.world.interfere(host, |now, host, out| {
            let result = give(now, &mut host.transport, &mut host.application);
            host.settle(now, out);
            result
        })
    }

    /// Breaks the channels of a host. Its transport learns it now, and its peers by an RST.
    pub fn break_channels(&mut self, host: NodeId) {
        self.world.interfere(host, |now, host, out| host.break_channels(now, out));
    }

    /// Delivers a datagram from any address to a host now, without a path.
    pub fn inject(&mut self, host: NodeId, from: SocketAddr, bytes: &[u8]) {
        self.world.inject(host, from, bytes);
    }

    /// Shows every datagram that hosts send from now on to `tap`; `None` removes the tap.
    pub fn set_tap(&mut self, tap: Option<Tap>) {
        self.world.set_tap(tap);
    }

    /// Whether damaged datagrams reach the transport. By default UDP's checksum drops them.
    pub fn deliver_damaged(&mut self, deliver: bool) {
        for host in 0..self.world.agents().len() {
            self.world.interfere(host, |_, host, _| host.takes_damaged = deliver);
        }
    }

    /// Shows every packet that hosts send and receive from now on to `capture`, those of channels included; `None`
    /// removes it.
    pub fn set_capture(&mut self, capture: Option<Capture>) {
        self.world.set_capture(capture);
    }

    /// Sets the numbering of the datagrams of all hosts, which is UDT4's by default.
    pub fn set_numbering(&mut self, numbering: Numbering) {
        for host in 0..self.world.agents().len() {
            self.world.interfere(host, |_, host, _| host.shares = FirstTimes::new(numbering));
        }
    }

    /// Records counters of all connections and links every `period` from now on.
    pub fn sample_every(&mut self, period: Duration) {
        self.world.sample_every(period);
    }

    /// The samples; `None` unless [`sample_every`](Simulation::sample_every) was called.
    pub fn samples(&self) -> Option<&Samples> {
        self.world.samples()
    }

    /// The hash of all packets sent and delivered so far.
    pub fn trace_hash(&self) -> TraceHash {
        self.world.trace_hash()
    }

    /// Counters of a link so far.
    pub fn link_counters(&mut self, link: LinkId) -> Counters {
        self.world.link_counters(link)
    }

    /// Traffic of one flow that has left a link. All hosts of a [`Pair`](crate::topology::path::Pair) are of flow 0.
    pub fn flow_tally(&self, link: LinkId, flow: FlowId) -> FlowTally {
        self.world.flow_tally(link, flow)
    }

    /// Counters of the network.
    pub fn network_counters(&self) -> NetworkCounters {
        self.world.network_counters()
    }

    /// The packets in flight.
    pub fn pool(&self) -> &Pool {
        self.world.pool()
    }

    /// Runs until `condition` holds, checked every millisecond, or until `end`. Returns whether it held.
    pub fn run_until_true(&mut self, end: Instant, condition: impl Fn(&Self) -> bool) -> bool {
        while !condition(self) {
            if self.now() >= end {
                return false;
            }
            self.run_until((self.now() + CHECK_PERIOD).min(end));
        }
        true
    }
}

impl<T: Streams + Channels> Simulation<T> {
    /// Runs until every host with connections is done with them, at most for `limit`. Returns whether all are done.
    pub fn run_until_done(&mut self, limit: Duration) -> bool {
        let end = self.now() + limit;
        self.run_until_true(end, |run| run.world.agents().iter().all(|host| host.application.is_done()))
    }

    /// Describes each stream of host `from` that did not arrive whole at host `to`. Empty if all did.
    pub fn missing(&self, from: NodeId, to: NodeId) -> Vec<String> {
        let arrived = self.flows(to);
        self.flows(from).iter().filter_map(|sent| delivery::fault(sent, arrived)).collect()
    }

    /// A host's connections, oldest first.
    pub fn flows(&self, host: NodeId) -> &[Flow] {
        self.application(host).flows()
    }
}
