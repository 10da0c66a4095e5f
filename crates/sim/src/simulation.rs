//! Simulations whose hosts all run the same transport, for tests of that transport.

use farhaul_proto::{Channels, Numbering, Streams};
use farhaul_units::{Duration, Instant};

use crate::agent::transport::{Application, TransportAgent};
use crate::first_times::FirstTimes;
use crate::network::{Network, NodeId};
use crate::traffic::{Flow, Traffic, delivery};
use crate::world::World;

/// How often [`Simulation::run_until_true`] checks its condition.
const CHECK_PERIOD: Duration = Duration::from_millis(1);

/// A world whose hosts run transports with applications. Made by a topology such as [`Pair`](crate::topology::path::Pair).
pub type Simulation<T, A = Traffic> = World<TransportAgent<T, A>>;

impl<T: Streams + Channels, A: Application<T>> Simulation<T, A> {
    /// One host per address of the network.
    pub(crate) fn of_hosts(network: Network, hosts: impl IntoIterator<Item = (T, A)>) -> Self {
        let host = |(transport, application)| Box::new(TransportAgent::new(transport, application));
        Self::new(network, hosts.into_iter().map(host).collect())
    }

    /// A host's transport.
    pub fn transport(&self, host: NodeId) -> &T {
        &self.agent(host).transport
    }

    /// A host's application.
    pub fn application(&self, host: NodeId) -> &A {
        &self.agent(host).application
    }

    /// Gives commands to a host, and drains its transport afterwards.
    pub fn command<R>(&mut self, host: NodeId, give: impl FnOnce(Instant, &mut T, &mut A) -> R) -> R {
        self.interfere(host, |now, host, out| {
            let result = give(now, &mut host.transport, &mut host.application);
            host.drain(now, out);
            result
        })
    }

    /// Breaks the channels of a host. Its transport learns it now, and its peers by an RST.
    pub fn break_channels(&mut self, host: NodeId) {
        self.interfere(host, |now, host, out| host.break_channels(now, out));
    }

    /// Whether damaged datagrams reach the transport. By default UDP's checksum drops them.
    pub fn deliver_damaged(&mut self, deliver: bool) {
        self.agents.iter_mut().for_each(|host| host.takes_damaged = deliver);
    }

    /// Sets the numbering of the datagrams of all hosts, which is UDT4's by default.
    pub fn set_numbering(&mut self, numbering: Numbering) {
        self.agents.iter_mut().for_each(|host| host.shares = FirstTimes::new(numbering));
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
        self.run_until_true(end, |run| run.agents.iter().all(|host| host.application.is_done()))
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
