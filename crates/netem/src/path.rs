//! The description of one direction of a path, and how its elements are joined.

#[cfg(test)]
mod tests;

use farhaul_units::{Duration, Rate, Rng};

use crate::corrupt::Corrupt;
use crate::duplicate::Duplicate;
use crate::element::Element;
use crate::impair::{Impair, Packet};
use crate::jitter::{Jitter, JitterSpec};
use crate::link::{Link, Variation};
use crate::loss::{Bernoulli, BitErrors, GilbertElliott, LossModel, LossSpec, RecordedLoss, Sparing};
use crate::mtu::Mtu;
use crate::pipe::Pipe;
use crate::policer::{Policer, PolicerSpec};
use crate::queue::{CoDel, Discipline, DropHead, DropTail, Queue, QueueSize, Red};
use crate::reorder::{Reorder, ReorderSpec};

/// One direction of a path as plain data, the same for simulator, relay and demo.
///
/// A packet passes the configured models in this order: queue, rate, delay, policer, largest packet, loss, duplication, corruption,
/// jitter, reordering.
///
/// Impairments come behind the bottleneck, because the published experiments mean errors of the link. A lost packet has
/// occupied the queue and the link. Losses in front of the queue would unload it and hide congestion. For another
/// order, join elements by hand in a [`Pipe`].
///
/// The default is a perfect path. Write only the differences: `PathSpec { rate, delay, ..PathSpec::default() }`.
///
/// ```
/// use farhaul_netem::{Discipline, GilbertElliottSpec, LossSpec, PathSpec, QueueSize, RedSpec, Schedule, Step, Variation};
/// use farhaul_units::{Duration, Rate};
///
/// // 100 Mbit/s that fall to 40 after ten seconds, RED in a queue of 20000 packets, and losses in bursts of three.
/// let rate = Rate::from_megabits_per_second(100);
/// let slower = Step { at: Duration::from_secs(10), rate: Some(Rate::from_megabits_per_second(40)), delay: None };
/// let path = PathSpec {
///     rate: Some(rate),
///     delay: Duration::from_millis(5),
///     variation: Variation::Schedule(Schedule::new([slower])?),
///     queue: QueueSize::Packets(20_000),
///     discipline: Discipline::Red(RedSpec::for_rate(rate)),
///     loss: Some(LossSpec::GilbertElliott(GilbertElliottSpec::bursts(0.001, 3.0))),
///     lossless_below: 100,
///     ..PathSpec::default()
/// };
/// assert_eq!(path.nominal_rate(), Some(rate));
/// # Ok::<(), farhaul_netem::ScheduleError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathSpec {
    /// The rate of the bottleneck. With `None`, transmission takes no time and nothing waits.
    pub rate: Option<Rate>,
    /// The propagation delay of this direction.
    pub delay: Duration,
    /// How rate and delay change over time.
    pub variation: Variation,
    /// How many packets may wait for the bottleneck; by default 1000. Unused without a rate.
    pub queue: QueueSize,
    /// Which packets the queue drops, and when; by default drop-tail.
    pub discipline: Discipline,
    /// A rate above which packets are dropped behind the link, without queueing. `rate` is then the rate of the
    /// interface in front of the policer.
    pub policer: Option<PolicerSpec>,
    /// The largest packet that the link carries. By default it carries any.
    pub mtu: Option<Mtu>,
    /// Loss on the link.
    pub loss: Option<LossSpec>,
    /// `loss` spares packets shorter than this many bytes. With 100, only data is lost and no acknowledgement. Zero
    /// spares none.
    pub lossless_below: u32,
    /// The share of packets that arrive twice, in 0..=1.
    pub duplicate: f64,
    /// The share of packets that arrive damaged, in 0..=1. Copies are damaged independently.
    pub corrupt: f64,
    /// Delay that varies from packet to packet.
    pub jitter: Option<JitterSpec>,
    /// Packets held back so that later ones overtake them.
    pub reorder: Option<ReorderSpec>,
    /// The seed of all random draws. Give the two directions different seeds, or they suffer the same losses.
    pub seed: u64,
}

impl PathSpec {
    /// Builds the path, empty.
    pub fn build<P: Packet + 'static>(&self) -> Pipe<P> {
        let randomness = Randomness::new(self.seed);
        let mut path = self.bottleneck(randomness.queue);
        if let Some(policer) = self.policer {
            path = path.then(Impair::new(Policer::new(policer)));
        }
        if let Some(mtu) = &self.mtu {
            path = path.then(Impair::new(mtu.clone()));
        }
        path = match &self.loss {
            None => path,
            Some(LossSpec::Bernoulli(share)) => self.lossy(path, Bernoulli::new(*share, randomness.loss)),
            Some(LossSpec::GilbertElliott(spec)) => self.lossy(path, GilbertElliott::new(*spec, randomness.loss)),
            Some(LossSpec::BitErrors(rate)) => self.lossy(path, BitErrors::new(*rate, randomness.loss)),
            Some(LossSpec::Periodic(periodic)) => self.lossy(path, periodic.clone()),
            Some(LossSpec::Pattern(pattern)) => self.lossy(path, pattern.clone()),
            Some(LossSpec::Trace(trace)) => self.lossy(path, RecordedLoss::new(trace.clone())),
        };
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

    /// Builds the path, empty, behind one pointer. A path of a link alone becomes just that link.
    pub fn build_element<P: Packet + 'static>(&self) -> Box<dyn Element<P>> {
        self.build().into_element()
    }

    /// The rate that sizes the queue: the link's constant rate, the highest of a schedule, or the mean of a trace.
    pub fn nominal_rate(&self) -> Option<Rate> {
        match &self.variation {
            Variation::None => self.rate,
            Variation::Schedule(schedule) => schedule.highest_rate(self.rate),
            Variation::Trace(trace) => Some(trace.mean_rate()),
        }
    }

    fn bottleneck<P: Packet + 'static>(&self, rng: Rng) -> Pipe<P> {
        let rate = self.nominal_rate();
        let limit = self.queue.limit(rate);
        match self.discipline {
            Discipline::DropTail => self.link(DropTail::new(limit)),
            Discipline::DropHead => self.link(DropHead::new(limit)),
            Discipline::Red(spec) => self.link(Red::new(spec, limit, rate, rng)),
            Discipline::CoDel(spec) => self.link(CoDel::new(spec, limit)),
        }
    }

    fn link<P: Packet + 'static>(&self, queue: impl Queue<P> + 'static) -> Pipe<P> {
        Pipe::new(Link::varying(self.rate, self.delay, &self.variation, queue))
    }

    fn lossy<P: Packet + 'static>(&self, path: Pipe<P>, loss: impl LossModel + 'static) -> Pipe<P> {
        if self.lossless_below > 0 {
            path.then(Impair::new(Sparing::new(self.lossless_below, loss)))
        } else {
            path.then(Impair::new(loss))
        }
    }
}

/// One generator per impairment, made whether it is used or not. Enabling one impairment then does not change the draws
/// of the others.
struct Randomness {
    loss: Rng,
    duplicate: Rng,
    corrupt: Rng,
    jitter: Rng,
    reorder: Rng,
    queue: Rng,
}

impl Randomness {
    /// Fork for new impairments at the end: the order is part of the meaning of a seed.
    fn new(seed: u64) -> Self {
        let mut root = Rng::new(seed);
        Self {
            loss: root.fork(),
            duplicate: root.fork(),
            corrupt: root.fork(),
            jitter: root.fork(),
            reorder: root.fork(),
            queue: root.fork(),
        }
    }
}
