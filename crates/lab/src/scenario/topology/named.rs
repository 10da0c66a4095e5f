//! The long form: links between named nodes.

use farhaul_units::Duration;
use serde::Deserialize;
use toml::Spanned;

use super::super::flow::FlowSpec;
use super::super::link::LinkSpec;
use super::super::reader::{Section, Source, hint, listed};
use super::{Link, Topology};
use crate::error::ScenarioError;

/// The most nodes.
const MAX_NODES: usize = 1_000;
/// A link, for messages.
const LINK: &str = "{ from = \"a\", to = \"b\", rate = \"1gbit\", delay = \"5ms\" }";

/// A `[[route]]`: at a node, packets for another take this link.
#[derive(Deserialize)]
#[serde(expecting = "{ at = \"a\", to = \"c\", via = \"a-b\" }")]
struct RouteKeys {
    at: String,
    to: String,
    via: String,
}

/// A link in parsing: the index of its first direction.
struct Named {
    name: String,
    forth: usize,
    /// Whether there is a second direction, at the next index.
    duplex: bool,
    line: usize,
}

#[derive(Default)]
struct Reader {
    nodes: Vec<String>,
    links: Vec<Link>,
    specs: Vec<LinkSpec>,
    names: Vec<Named>,
}

pub(super) fn read(root: &mut Section<'_>, flows: &[FlowSpec]) -> Result<Topology, ScenarioError> {
    let mut reader = Reader::default();
    for section in root.sections("links")? {
        reader.link(section)?;
    }
    let source = root.source();
    if reader.nodes.len() > MAX_NODES {
        return Err(source.error_on(root.line_of("links"), format!("there are more than {MAX_NODES} nodes")));
    }
    let routes: Vec<Spanned<RouteKeys>> = root.value("route")?.unwrap_or_default();
    let bottleneck = match &root.value::<Spanned<String>>("bottleneck")? {
        Some(name) => reader.named(name.get_ref()).map(|link| link.forth).map_err(|what| source.error(name, what))?,
        None => reader.slowest().ok_or_else(|| source.error_on(root.line_of("links"), "there are no links"))?,
    };
    let route = |keys: &Spanned<RouteKeys>| reader.route(keys.get_ref()).map_err(|what| source.error(keys, what));
    let mut topology = Topology {
        nodes: reader.nodes.len(),
        links: reader.links.clone(),
        routes: routes.iter().map(route).collect::<Result<_, _>>()?,
        bottleneck,
        places: Vec::new(),
    };
    for flow in flows {
        let Some((from, to)) = &flow.ends else {
            return Err(source.error_on(flow.line, format!("flow '{}' needs `from` and `to`", flow.name)));
        };
        let node = |name: &str| reader.node(name).map_err(|what| source.error_on(flow.line, what));
        topology.places.push((node(from)?, node(to)?));
    }
    let longest = longest_round_trip(source, &topology, flows)?;
    for (link, spec) in topology.links.iter_mut().zip(&reader.specs) {
        link.path = spec.path(longest);
    }
    Ok(topology)
}

/// The longest propagation delay of all flows, there and back. Every flow must be able to reach its other end.
fn longest_round_trip(source: &Source, topology: &Topology, flows: &[FlowSpec]) -> Result<Duration, ScenarioError> {
    let graph = topology.graph();
    let mut longest = Duration::ZERO;
    for (flow, &place) in flows.iter().zip(&topology.places) {
        let (from, to) = flow.ends.clone().unwrap_or_default();
        if place.0 == place.1 {
            return Err(source.error_on(flow.line, format!("flow '{}' begins and ends at {from}", flow.name)));
        }
        if flow.round_trip.is_some() {
            let message =
                format!("flow '{}' cannot have `rtt`: with [[links]], the delays of the links give the RTT", flow.name);
            return Err(source.error_on(flow.line, message));
        }
        let reaches = |from, to, there: &str, here: &str| {
            let message = format!("flow '{}' cannot reach its end: no links lead from {here} to {there}", flow.name);
            graph.links_between(from, to).map(drop).ok_or_else(|| source.error_on(flow.line, message))
        };
        reaches(place.0, place.1, &to, &from)?;
        reaches(place.1, place.0, &from, &to)?;
        longest = longest.max(topology.round_trip(&graph, place).unwrap_or_default());
    }
    Ok(longest)
}

impl Reader {
    fn link(&mut self, mut section: Section<'_>) -> Result<(), ScenarioError> {
        let name: String = section.needed("name", LINK)?;
        let (from, to): (String, String) = (section.needed("from", LINK)?, section.needed("to", LINK)?);
        if from == to {
            return Err(section.error(format!("link '{name}' begins and ends at {from}")));
        }
        if self.names.iter().any(|other| other.name == name) {
            return Err(section.error(format!("two links are called '{name}': give one a `name`")));
        }
        let spec = LinkSpec::read(&mut section, &LinkSpec::default())?;
        let duplex = !section.value("simplex")?.unwrap_or(false);
        let mut back = spec.clone();
        back.path.loss = None;
        if let Some(mut reverse) = section.section("back")? {
            if !duplex {
                return Err(reverse.error(format!("link '{name}' is simplex and cannot have `back`")));
            }
            back = LinkSpec::read(&mut reverse, &back)?;
            reverse.finish()?;
        }
        let line = section.line();
        section.finish()?;
        let (from, to) = (self.add_node(&from), self.add_node(&to));
        self.names.push(Named { name, forth: self.links.len(), duplex, line });
        self.links.push(Link { from, to, path: spec.path.clone() });
        self.specs.push(spec);
        if duplex {
            self.links.push(Link { from: to, to: from, path: back.path.clone() });
            self.specs.push(back);
        }
        Ok(())
    }

    fn add_node(&mut self, name: &str) -> usize {
        self.nodes.iter().position(|node| node == name).unwrap_or_else(|| {
            self.nodes.push(name.to_owned());
            self.nodes.len() - 1
        })
    }

    fn node(&self, name: &str) -> Result<usize, String> {
        self.nodes.iter().position(|node| node == name).ok_or_else(|| {
            let names: Vec<&str> = self.nodes.iter().map(String::as_str).collect();
            let meant = hint(name, names.iter().copied());
            format!("no link begins or ends at a host '{name}'{meant}: there are {}", listed(&names))
        })
    }

    fn named(&self, name: &str) -> Result<&Named, String> {
        self.names.iter().find(|link| link.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.names.iter().map(|link| link.name.as_str()).collect();
            format!("no link is called '{name}': there are {}", listed(&names))
        })
    }

    /// The first of the slowest links.
    fn slowest(&self) -> Option<usize> {
        let slowest = self.names.iter().min_by_key(|link| {
            let rate = self.specs[link.forth].path.rate;
            (rate.is_none(), rate)
        });
        slowest.map(|link| link.forth)
    }

    fn route(&self, RouteKeys { at, to, via }: &RouteKeys) -> Result<(usize, usize, usize), String> {
        let (at_node, to_node, link) = (self.node(at)?, self.node(to)?, self.named(via)?);
        let directions = if link.duplex { 2 } else { 1 };
        let found = (link.forth..link.forth + directions).find(|&index| self.links[index].from == at_node);
        let found = found.ok_or_else(|| format!("link '{via}' (line {}) does not begin at {at}", link.line))?;
        Ok((at_node, to_node, found))
    }
}
