//! One link: the keys of `[link]`, `[[links]]` and `[access]`.

mod loss;
mod queue;
mod variation;

use farhaul_netem::{MIN_BDP_QUEUE, PathSpec};
use farhaul_units::Duration;

use super::reader::{self, Section};
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

    /// Parses the keys that all links have. Absent keys are as in `base`.
    pub(crate) fn read(section: &mut Section<'_>, base: &Self) -> Result<Self, ScenarioError> {
        let mut spec = base.clone();
        let path = &mut spec.path;
        if let Some(rate) = section.rate("rate")? {
            path.rate = Some(rate);
        }
        if let Some(delay) = section.time("delay")? {
            path.delay = delay;
        }
        if let Some(variation) = variation::variation(section)? {
            path.variation = variation;
        }
        if let Some(node) = section.get("loss") {
            path.loss = loss::read(section, node)?;
        }
        if let Some(bytes) = section.integer("lossless_below", 0..=65_535)? {
            path.lossless_below = bytes as u32;
        }
        if section.has("jitter") {
            path.jitter = variation::jitter(section)?;
        }
        if section.has("reorder") {
            path.reorder = variation::reorder(section)?;
        }
        if section.has("policer") {
            path.policer = variation::policer(section)?;
        }
        if let Some(share) = section.share("duplicate")? {
            path.duplicate = share;
        }
        if let Some(share) = section.share("corrupt")? {
            path.corrupt = share;
        }
        if let Some(node) = section.get("queue") {
            queue::read(section, node, &mut spec)?;
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

fn kind_error(table: &Section<'_>, kind: &str, allowed: &[&str]) -> ScenarioError {
    let line = table.line_of("kind");
    table.error(line, format!("{}: there is no kind '{kind}': there are {}", table.name(), reader::listed(allowed)))
}
