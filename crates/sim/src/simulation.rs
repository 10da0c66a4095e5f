//! Simulations whose hosts all run the same transport: what its tests look at.

use core::net::SocketAddr;

use farhaul_netem::Counters;
use farhaul_proto::Streams;
use farhaul_units::{Duration, Instant};

use crate::host::{Application, Host};
use crate::network::{LinkId, Network, NetworkCounters, NodeId};
use crate::packet::Pool;
use crate::sample::Samples;
use crate::trace::{Tap, TraceHash};
use crate::traffic::{Flow, Traffic, delivery};
use crate::world::World;

/// How often [`Simulation::run_until_true`] looks whether its condition holds.
const CHECK_PERIOD: Duration = Duration::from_millis(1);

/// Hosts and links in virtual time, of which transports and applications can be seen. Made by a topology such as
/// [`Pair`](crate::topology::path::Pair).
pub struct Simulation<T, A = Traffic> {
    world: World<Host<T, A>>,
}

impl<T: Streams, A: Application<T>> Simulation<T, A> {
    /// One host for each place of the network.
    pub(crate) fn new(network: Network, hosts: Vec<(T, A)>) -> Self {
        let hosts = hosts.into_iter().map(|(transport, application)| Host::new(transport, application));
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

    /// Gives commands to a host, after which its transport is drained as after any command.
    pub fn command<R>(&mut self, host: NodeId, give: impl FnOnce(Instant, &mut T, &mut A) -> R) -> R {
        self.world.interfere(host, |now, host, out| {
            let result = give(now, &mut host.transport, &mut host.application);
            host.settle(now, out);
            result
        })
    }

    /// A datagram from any address arrives at a host now, without having travelled.
    pub fn inject(&mut self, host: NodeId, from: SocketAddr, bytes: &[u8]) {
        self.world.inject(host, from, bytes);
    }

    /// Lets `tap` see every datagram that hosts send from now on; `None` takes it away.
    pub fn set_tap(&mut self, tap: Option<Tap>) {
        self.world.set_tap(tap);
    }

    /// Whether damaged datagrams reach the transport. By default they do not: UDP's checksum catches them.
    pub fn deliver_damaged(&mut self, deliver: bool) {
        for host in 0..self.world.agents().len() {
            self.world.interfere(host, |_, host, _| host.takes_damaged = deliver);
        }
    }

    /// Records counters of all connections and links every `period` from now on.
    pub fn sample_every(&mut self, period: Duration) {
        self.world.sample_every(period);
    }

    /// What was recorded; `None` unless [`sample_every`](Simulation::sample_every) was called.
    pub fn samples(&self) -> Option<&Samples> {
        self.world.samples()
    }

    /// The hash of everything that was sent and delivered so far.
    pub fn trace_hash(&self) -> TraceHash {
        self.world.trace_hash()
    }

    /// What a link has done so far.
    pub fn link_counters(&mut self, link: LinkId) -> Counters {
        self.world.link_counters(link)
    }

    /// What happened between the links.
    pub fn network_counters(&self) -> NetworkCounters {
        self.world.network_counters()
    }

    /// The datagrams on their way.
    pub fn pool(&self) -> &Pool {
        self.world.pool()
    }

    /// Runs until `condition` holds, which is looked at every millisecond, or `end` is reached; returns whether it held.
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

impl<T: Streams> Simulation<T> {
    /// Runs until every host that has connections is done with them, or for `limit`; returns whether all are done.
    pub fn run_until_done(&mut self, limit: Duration) -> bool {
        let end = self.now() + limit;
        self.run_until_true(end, |run| run.world.agents().iter().all(|host| host.application.is_done()))
    }

    /// The streams of host `from` that have not arrived at host `to` whole, each with what is wrong; empty if all have.
    pub fn missing(&self, from: NodeId, to: NodeId) -> Vec<String> {
        let arrived = self.flows(to);
        self.flows(from).iter().filter_map(|sent| delivery::fault(sent, arrived)).collect()
    }

    /// A host's connections, in order of their beginning.
    pub fn flows(&self, host: NodeId) -> &[Flow] {
        self.application(host).flows()
    }
}
