//! The description of one direction of a path, and how the elements of such a path are joined.

#[cfg(test)]
mod tests;

use farhaul_units::{Duration, Rate, Rng};

use crate::{
    Bernoulli, BitErrors, CoDel, Corrupt, DeliveryTrace, Discipline, DropHead, DropTail, Duplicate, Element,
    GilbertElliott, Impair, Impairment, Jitter, JitterSpec, Link, LossSpec, Packet, Pipe, Policer, PolicerSpec, Queue,
    QueueSize, RecordedLoss, Red, Reorder, ReorderSpec, Schedule, Sparing,
};

/// One direction of a path: plain data, the same for simulator, relay and demo.
///
/// A packet meets, in this order: the queue, the rate, the delay, then policer, loss, duplication, corruption, jitter
/// and reordering, as far as they are asked for. Impairments come behind the bottleneck, because the published
/// experiments mean errors of the link: a packet that is lost has taken its place in the queue and its time on the
/// link. Losses before the queue would unload it and hide congestion. For the other order, join elements by hand in a
/// [`Pipe`].
///
/// The default is a perfect path. Write what differs: `PathSpec { rate, delay, ..PathSpec::default() }`.
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
    /// The rate of the bottleneck; `None` sends in no time and so never queues.
    pub rate: Option<Rate>,
    /// The propagation delay of this direction.
    pub delay: Duration,
    /// How rate and delay change over time.
    pub variation: Variation,
    /// How many packets may wait for the bottleneck; a thousand unless said otherwise. Without a rate nothing waits.
    pub queue: QueueSize,
    /// Which packets are dropped, and when; who comes when the queue is full, unless said otherwise.
    pub discipline: Discipline,
    /// A rate above which packets are dropped behind the link, without being queued. The link's rate is then that of
    /// the interface in front of it.
    pub policer: Option<PolicerSpec>,
    /// Packets lost on the link.
    pub loss: Option<LossSpec>,
    /// Packets shorter than this many bytes are spared by `loss`: with 100, only data is lost and no acknowledgement.
    /// Zero spares none.
    pub lossless_below: u32,
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

/// How a link changes over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Variation {
    /// It does not.
    #[default]
    None,
    /// Rate and delay change at known instants.
    Schedule(Schedule),
    /// Packets leave when a recorded link let packets leave; the rate of the description is not used, its delay is.
    Trace(DeliveryTrace),
}

impl PathSpec {
    /// The path, new and empty.
    pub fn build<P: Packet + 'static>(&self) -> Pipe<P> {
        let randomness = Randomness::new(self.seed);
        let mut path = self.bottleneck(randomness.queue);
        if let Some(policer) = self.policer {
            path = path.then(Impair::new(Policer::new(policer)));
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

    /// The path, new and empty, as a simulator keeps it: one of a link alone is just that link.
    pub fn build_element<P: Packet + 'static>(&self) -> Box<dyn Element<P>> {
        self.build().into_element()
    }

    /// The rate by which queues are dimensioned: the link's, or the highest or mean one where it changes.
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

    fn lossy<P: Packet + 'static>(&self, path: Pipe<P>, loss: impl Impairment<P> + 'static) -> Pipe<P> {
        if self.lossless_below > 0 {
            path.then(Impair::new(Sparing::new(self.lossless_below, loss)))
        } else {
            path.then(Impair::new(loss))
        }
    }
}

/// A generator for each impairment, made whether it is used or not: switching one on leaves the others' draws alone.
struct Randomness {
    loss: Rng,
    duplicate: Rng,
    corrupt: Rng,
    jitter: Rng,
    reorder: Rng,
    queue: Rng,
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
            queue: root.fork(),
        }
    }
}
