//! The description of one direction of a path, and how the elements of such a path are joined.

#[cfg(test)]
mod tests;

use farhaul_units::{Duration, Rate, Rng};

use crate::{
    Bernoulli, Corrupt, Duplicate, Impair, Jitter, JitterSpec, Link, LossSpec, Packet, Pipe, QueueSize, Reorder,
    ReorderSpec,
};

/// One direction of a path: plain data, the same for simulator, relay and demo.
///
/// A packet meets, in this order: the queue, the rate, the delay, then loss, duplication, corruption, jitter and
/// reordering, as far as they are asked for. Impairments come behind the bottleneck, because the published experiments
/// mean errors of the link: a packet that is lost has taken its place in the queue and its time on the link. Losses
/// before the queue would unload it and hide congestion. For the other order, join elements by hand in a [`Pipe`].
///
/// The default is a perfect path. Write what differs: `PathSpec { rate, delay, ..PathSpec::default() }`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathSpec {
    /// The rate of the bottleneck; `None` sends in no time and so never queues.
    pub rate: Option<Rate>,
    /// The propagation delay of this direction.
    pub delay: Duration,
    /// How many packets may wait for the bottleneck; a thousand unless said otherwise. Without a rate nothing waits.
    pub queue: QueueSize,
    /// Packets lost on the link.
    pub loss: Option<LossSpec>,
    /// The share of packets that arrive twice, in 0..=1.
    pub duplicate: f64,
    /// The share of packets that arrive damaged, in 0..=1; copies are damaged each by itself.
    pub corrupt: f64,
    /// Delay that differs from packet to packet.
    pub jitter: Option<JitterSpec>,
    /// Packets that are held back, so that later ones overtake.
    pub reorder: Option<ReorderSpec>,
    /// Decides the fate of every packet. Give the two directions different seeds, or they suffer alike.
    pub seed: u64,
}

impl PathSpec {
    /// The path, new and empty.
    pub fn build<P: Packet + 'static>(&self) -> Pipe<P> {
        let randomness = Randomness::new(self.seed);
        let mut path = Pipe::new(Link::new(self.rate, self.delay, self.queue));
        match &self.loss {
            None => {}
            Some(LossSpec::Bernoulli(share)) => path = path.then(Impair::new(Bernoulli::new(*share, randomness.loss))),
            Some(LossSpec::Pattern(pattern)) => path = path.then(Impair::new(pattern.clone())),
        }
        if self.duplicate > 0.0 {
            path = path.then(Impair::new(Duplicate::new(self.duplicate, randomness.duplicate)));
        }
        if self.corrupt > 0.0 {
            path = path.then(Impair::new(Corrupt::new(self.corrupt, randomness.corrupt)));
        }
        if let Some(jitter) = self.jitter {
            path = path.then(Impair::new(Jitter::new(jitter, randomness.jitter)));
        }
        if let Some(reorder) = self.reorder {
            path = path.then(Impair::new(Reorder::new(reorder, randomness.reorder)));
        }
        path
    }
}

/// A generator for each impairment, made whether it is used or not: switching one on leaves the others' draws alone.
struct Randomness {
    loss: Rng,
    duplicate: Rng,
    corrupt: Rng,
    jitter: Rng,
    reorder: Rng,
}

impl Randomness {
    /// New impairments fork last: the order is part of what a seed means.
    fn new(seed: u64) -> Self {
        let mut root = Rng::new(seed);
        Self {
            loss: root.fork(),
            duplicate: root.fork(),
            corrupt: root.fork(),
            jitter: root.fork(),
            reorder: root.fork(),
        }
    }
}
