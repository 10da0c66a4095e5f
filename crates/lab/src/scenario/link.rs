//! One link: the keys of `[link]`, `[[links]]` and `[access]`.

mod loss;
mod queue;
mod variation;

use farhaul_netem::{Discipline, LossSpec, MIN_BDP_QUEUE, PathSpec};
use farhaul_units::Duration;
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::reader::{AboveZero, LinkRate, OrTable, Section, Share, Time, Whole};
use crate::error::ScenarioError;
use variation::{JitterKeys, PolicerKeys, ReorderKeys, StepKeys};

pub(crate) use queue::{Limit, packets_of, products};

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinkSpec {
    /// Everything except the length of the queue.
    pub(crate) path: PathSpec,
    /// The length of the queue.
    pub(crate) limit: Limit,
    /// The RTT for a queue in bandwidth-delay products, if the scenario has one.
    pub(crate) product_of: Option<Duration>,
}

/// The keys that all links have.
#[derive(Deserialize)]
struct LinkKeys {
    rate: Option<LinkRate>,
    delay: Option<Time>,
    #[serde(default)]
    schedule: Vec<StepKeys>,
    repeat: Option<AboveZero>,
    trace: Option<Spanned<String>>,
    loss: Option<OrTable<Share, IgnoredAny>>,
    lossless_below: Option<Whole<0, 65_535>>,
    jitter: Option<OrTable<Time, JitterKeys>>,
    reorder: Option<ReorderKeys>,
    policer: Option<PolicerKeys>,
    duplicate: Option<Share>,
    corrupt: Option<Share>,
    queue: Option<OrTable<Limit, IgnoredAny>>,
}

impl LinkSpec {
    /// The link for flows whose longest RTT is this.
    pub(crate) fn path(&self, round_trip: Duration) -> PathSpec {
        let queue = self.limit.size(self.path.nominal_rate(), self.product_of.unwrap_or(round_trip));
        PathSpec { queue, ..self.path.clone() }
    }

    /// Reads the keys that all links have. Absent keys are as in `base`.
    pub(crate) fn read(section: &mut Section<'_>, base: &Self) -> Result<Self, ScenarioError> {
        let keys: LinkKeys = section.read()?;
        let mut spec = base.clone();
        let path = &mut spec.path;
        path.rate = keys.rate.map(|LinkRate(rate)| rate).or(path.rate);
        path.delay = keys.delay.map_or(path.delay, |Time(delay)| delay);
        if let Some(variation) = variation::variation(section, keys.schedule, keys.repeat, keys.trace)? {
            path.variation = variation;
        }
        match keys.loss {
            None => {}
            Some(OrTable::Bare(Share(share))) => path.loss = (share > 0.0).then_some(LossSpec::Bernoulli(share)),
            Some(OrTable::Table(_)) => path.loss = section.section("loss")?.map(loss::read).transpose()?,
        }
        path.lossless_below = keys.lossless_below.map_or(path.lossless_below, |Whole(bytes)| bytes as u32);
        path.jitter = keys.jitter.map_or(path.jitter, variation::jitter);
        path.reorder = keys.reorder.map_or(path.reorder, variation::reorder);
        path.policer = keys.policer.map(variation::policer).or(path.policer);
        path.duplicate = keys.duplicate.map_or(path.duplicate, |Share(share)| share);
        path.corrupt = keys.corrupt.map_or(path.corrupt, |Share(share)| share);
        match keys.queue {
            None => {}
            Some(OrTable::Bare(limit)) => {
                spec.limit = limit;
                spec.path.discipline = Discipline::DropTail;
            }
            Some(OrTable::Table(_)) => {
                section.section("queue")?.map_or(Ok(()), |table| queue::read(table, &mut spec))?
            }
        }
        Ok(spec)
    }
}

impl Default for LinkSpec {
    /// A perfect link. Once it has a rate, its queue holds one bandwidth-delay product.
    fn default() -> Self {
        Self {
            path: PathSpec::default(),
            limit: Limit::Products { times: 1.0, least: MIN_BDP_QUEUE },
            product_of: None,
        }
    }
}
