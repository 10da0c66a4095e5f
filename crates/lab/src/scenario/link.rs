//! One link: the keys of `[link]`, `[[links]]` and `[access]`.

mod loss;
mod queue;
mod variation;

use farhaul_netem::{Discipline, LossSpec, MIN_BDP_QUEUE, PathSpec};
use farhaul_units::Duration;
use serde::de::IgnoredAny;

use super::reader::OrTable::{Bare, Table};
use super::reader::{LinkRate, Section, Share, Time, Whole};
use crate::error::ScenarioError;

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

impl LinkSpec {
    /// The link for flows whose longest RTT is this.
    pub(crate) fn path(&self, round_trip: Duration) -> PathSpec {
        let queue = self.limit.size(self.path.nominal_rate(), self.product_of.unwrap_or(round_trip));
        PathSpec { queue, ..self.path.clone() }
    }

    /// Reads the keys that all links have. Absent keys are as in `base`.
    pub(crate) fn read(section: &mut Section<'_>, base: &Self) -> Result<Self, ScenarioError> {
        let mut spec = base.clone();
        let path = &mut spec.path;
        path.rate = section.value("rate")?.map(|LinkRate(rate)| rate).or(path.rate);
        path.delay = section.value("delay")?.map_or(path.delay, |Time(delay)| delay);
        if let Some(variation) = variation::variation(section)? {
            path.variation = variation;
        }
        match section.value("loss")? {
            None => {}
            Some(Bare(Share(share))) => path.loss = (share > 0.0).then_some(LossSpec::Bernoulli(share)),
            Some(Table(IgnoredAny)) => path.loss = section.section("loss")?.map(loss::read).transpose()?,
        }
        if let Some(Whole::<0, 65_535>(bytes)) = section.value("lossless_below")? {
            path.lossless_below = bytes as u32;
        }
        path.jitter = section.value("jitter")?.map_or(path.jitter, variation::jitter);
        path.reorder = section.value("reorder")?.map_or(path.reorder, variation::reorder);
        path.policer = section.value("policer")?.map(variation::policer).or(path.policer);
        path.duplicate = section.value("duplicate")?.map_or(path.duplicate, |Share(share)| share);
        path.corrupt = section.value("corrupt")?.map_or(path.corrupt, |Share(share)| share);
        match section.value("queue")? {
            None => {}
            Some(Bare(limit)) => (spec.limit, path.discipline) = (limit, Discipline::DropTail),
            Some(Table(IgnoredAny)) => {
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
