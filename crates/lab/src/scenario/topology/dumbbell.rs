//! The short form: one bottleneck in both directions, and a pair of hosts for each flow.
//!
//! ```text
//!   sender 1 ──┐                            ┌── receiver 1
//!   sender 2 ──┼── left ═══ [link] ═══ right ┼── receiver 2
//!       …      └─ [access]         [access] ─┘     …
//! ```
//!
//! A flow without `[access]` and without an RTT of its own is at the ends of the bottleneck. A link without rate and
//! delay would change nothing.

use farhaul_netem::{PathSpec, QueueSize};
use farhaul_units::Duration;
use toml::Spanned;

use super::super::flow::FlowSpec;
use super::super::link::{Limit, LinkSpec};
use super::super::reader::{Section, Time};
use super::{Link, Topology};
use crate::error::ScenarioError;

/// The ends of the bottleneck.
const LEFT: usize = 0;
const RIGHT: usize = 1;

/// The queue of a host's own link, in packets: a host does not lose its own packets.
const ACCESS_QUEUE: u32 = 100_000;

pub(super) fn read(root: &mut Section<'_>, flows: &[FlowSpec]) -> Result<Topology, ScenarioError> {
    let [forth, back] = bottleneck(root)?;
    let access = access(root)?;
    let mut topology = Topology { nodes: 2, links: Vec::new(), routes: Vec::new(), bottleneck: 0, places: Vec::new() };
    let base = forth.path.delay + back.path.delay;
    let by_access = access.as_ref().map_or(Duration::ZERO, |access| access.path.delay * 4);
    let mut longest = base + by_access;
    let mut hosts = Vec::new();
    for flow in flows {
        let wanted = flow.round_trip.unwrap_or(base + by_access);
        let Some(more) = wanted.checked_sub(base + by_access) else {
            let message = format!(
                "flow '{}' has an RTT of {wanted:?}, but its links alone take {:?}: give [link] a shorter one",
                flow.name,
                base + by_access
            );
            return Err(root.source().error_on(flow.line, message));
        };
        longest = longest.max(wanted);
        hosts.push(more);
    }
    let link = |from, to, spec: &LinkSpec| Link { from, to, path: spec.path(longest) };
    topology.links = vec![link(LEFT, RIGHT, &forth), link(RIGHT, LEFT, &back)];
    let perfect = LinkSpec { limit: Limit::Fixed(QueueSize::Packets(ACCESS_QUEUE)), ..LinkSpec::default() };
    for more in hosts {
        if more.is_zero() && access.is_none() {
            topology.places.push((LEFT, RIGHT));
            continue;
        }
        let (sender, receiver) = (topology.nodes, topology.nodes + 1);
        topology.nodes += 2;
        let access = access.as_ref().unwrap_or(&perfect).path(longest);
        let towards = half(more);
        let later = |by: Duration| PathSpec { delay: access.delay + by, ..access.clone() };
        topology.links.extend([
            Link { from: sender, to: LEFT, path: later(towards) },
            Link { from: LEFT, to: sender, path: later(more - towards) },
            Link { from: RIGHT, to: receiver, path: access.clone() },
            Link { from: receiver, to: RIGHT, path: access },
        ]);
        topology.places.push((sender, receiver));
    }
    Ok(topology)
}

/// `[link]` and `[link.back]`.
fn bottleneck(root: &mut Section<'_>) -> Result<[LinkSpec; 2], ScenarioError> {
    let mut section = root.section("link")?.ok_or_else(|| root.error("a scenario needs a [link]"))?;
    let (rtt, delay) = (section.value("rtt")?, section.value::<Spanned<Time>>("delay")?);
    let mut forth = LinkSpec::read(&mut section, &LinkSpec::default())?;
    let mut back = forth.clone();
    match (rtt, delay) {
        (Some(_), Some(delay)) => {
            return Err(section.source().error(&delay, "[link] has either `rtt` or `delay`, which is half of it"));
        }
        (Some(Time(time)), None) => {
            forth.path.delay = half(time);
            back.path.delay = time - forth.path.delay;
        }
        (None, _) => {}
    }
    // Losses, jitter and the like apply to the direction of the data, unless `[link.back]` has them.
    let PathSpec { rate, delay, discipline, variation, .. } = back.path;
    back.path = PathSpec { rate, delay, discipline, variation, ..PathSpec::default() };
    if let Some(mut reverse) = section.section("back")? {
        if let (Some(_), Some(delay)) = (rtt, reverse.get("delay")) {
            let message = "[link] has `rtt`: for a different delay on the way back, give both delays instead";
            return Err(reverse.source().error(delay, message));
        }
        back = LinkSpec::read(&mut reverse, &back)?;
        reverse.finish()?;
    }
    section.finish()?;
    Ok([forth, back])
}

/// `[access]`.
fn access(root: &mut Section<'_>) -> Result<Option<LinkSpec>, ScenarioError> {
    let Some(mut section) = root.section("access")? else { return Ok(None) };
    let base = LinkSpec { limit: Limit::Fixed(QueueSize::Packets(ACCESS_QUEUE)), ..LinkSpec::default() };
    let access = LinkSpec::read(&mut section, &base)?;
    section.finish()?;
    Ok(Some(access))
}

/// Half of a time, rounded up to a nanosecond.
fn half(time: Duration) -> Duration {
    Duration::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).div_ceil(2))
}
