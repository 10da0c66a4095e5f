//! The setup of one run, after all changes.

use std::collections::{BTreeMap, BTreeSet};

use farhaul_cc::registry::Revision;
use farhaul_netem::PathSpec;
use farhaul_units::{Duration, Rate};
use toml::Spanned;

use super::flow::{FlowSpec, Protocol, check_beside};
use super::reader::{AboveZero, Node, Section, Source, Time};
use super::topology::{Topology, has_named_nodes};
use super::{Controllers, files};
use crate::error::ScenarioError;

/// The longest run: a day, which some hours can simulate.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// The shortest period of time series: a tenth of UDT's SYN interval.
const SHORTEST_SAMPLE: Duration = Duration::from_millis(1);
/// The default period of time series: ten SYN intervals.
const SAMPLE: Duration = Duration::from_millis(100);
/// The most values of a time series, many times more than a drawing shows.
const MAX_SAMPLES: u128 = 1_000_000;
/// The most flows of a run.
const MAX_FLOWS: usize = 10_000;

/// The bits that the bottleneck of a smoke run can carry, and the longest smoke run.
const SMOKE_BITS: u64 = 400_000_000;
const LONGEST_SMOKE: Duration = Duration::from_secs(2);

/// Keys of a scenario that do not belong to a setup.
const KEYS_OF_SCENARIOS: [&str; 13] = [
    "title", "paper", "source", "shows", "seeds", "axis", "curve", "labels", "quick", "emulated", "plot", "score",
    "series",
];

/// The setup of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setup {
    pub(crate) duration: Duration,
    pub(crate) warmup: Duration,
    /// The period of time series.
    pub(crate) sample: Duration,
    /// Whether the run keeps time series; `None` if the scenario does not say.
    pub(crate) series: Option<bool>,
    pub(crate) topology: Topology,
    pub(crate) flows: Vec<FlowSpec>,
    /// The files that the setup names.
    pub(crate) files: BTreeSet<String>,
}

impl Setup {
    /// The path of the bottleneck.
    pub(crate) fn bottleneck(&self) -> &PathSpec {
        self.topology.bottleneck_path()
    }

    /// A short form without warm-up.
    pub(super) fn smoke(mut self) -> Self {
        let rate = self.bottleneck().nominal_rate();
        let short = rate.map_or(LONGEST_SMOKE, |rate| rate.time_for(SMOKE_BITS / 8));
        self.duration = self.duration.min(short).min(LONGEST_SMOKE);
        self.warmup = Duration::ZERO;
        self.sample = self.sample.min(SAMPLE);
        self
    }

    /// The revisions of controllers whose code is not in this program. The key of the program covers all others.
    pub(super) fn revisions(&self) -> String {
        let revised = self.flows.iter().filter_map(|flow| match flow.protocol.law()?.revision() {
            Revision::Text(text) => Some(format!("revision {text:?}\n")),
            _ => None,
        });
        revised.collect()
    }

    /// The law of each group of flows that is named by its protocol alone, if it is not the protocol's own: the name
    /// `udt` says nothing about the controller.
    pub(super) fn laws(&self) -> BTreeMap<String, String> {
        let law = |flow: &FlowSpec| match &flow.protocol {
            Protocol::Bulk(bulk) if bulk.protocol.entry().name == flow.group => {
                let law = bulk.controller.as_ref()?.to_string();
                let law = law.split_once(':').map_or(&*law, |(name, _)| name);
                (law != flow.group).then(|| (flow.group.clone(), law.to_owned()))
            }
            _ => None,
        };
        self.flows.iter().filter_map(law).collect()
    }

    /// The size of the largest packets, in bytes; `None` without flows.
    pub(crate) fn largest_packet(&self) -> Option<u32> {
        self.flows.iter().map(|flow| flow.packet).max()
    }

    /// The rate of the fastest link; `None` if no link has one.
    pub(super) fn fastest_link(&self) -> Option<Rate> {
        self.topology.links.iter().filter_map(|link| link.path.nominal_rate()).max()
    }

    /// All settings of the run as text, the same however the file is written.
    pub(crate) fn canonical(root: &Node) -> String {
        own(root).map(|(key, node)| format!("{key} = {}\n", node.get_ref())).collect()
    }

    /// Parses the setup from a scenario after all changes.
    ///
    /// `controllers` are those of the program, by name.
    pub(crate) fn read(source: &Source, root: &Node, controllers: &Controllers) -> Result<Self, ScenarioError> {
        let files = files::named(own(root).map(|(_, node)| node));
        let mut root = Section::root(source, root)?;
        let length: Spanned<AboveZero> = root.needed("duration", "duration = \"60s\"")?;
        let AboveZero(duration) = *length.get_ref();
        if duration > LONGEST {
            let what = format!("{duration:?} is too long: a run lasts at most a day (24h)");
            return Err(source.error(&length, what));
        }
        let Time(warmup) = root.value("warmup")?.unwrap_or_default();
        let AboveZero(sample) = root.value("sample")?.unwrap_or(AboveZero(SAMPLE));
        let wrong = |root: &Section<'_>, key: &str, what: String| Err(source.error_on(root.line_of(key), what));
        if warmup >= duration {
            let what = format!("the warm-up must be shorter than the run, which lasts {duration:?}");
            return wrong(&root, "warmup", what);
        }
        if sample < SHORTEST_SAMPLE || duration.as_nanos() / sample.as_nanos() > MAX_SAMPLES {
            let what = format!("samples are at least 1ms apart, and at most {MAX_SAMPLES} in a run");
            return wrong(&root, "sample", what);
        }
        let series = root.value("series")?;
        let named = has_named_nodes(&mut root);
        let mut flows = Vec::new();
        for section in root.sections("flow")? {
            flows.extend(FlowSpec::read(section, named, controllers)?);
        }
        if flows.is_empty() {
            return wrong(&root, "flow", "a scenario needs a [[flow]]".to_owned());
        }
        if flows.len() > MAX_FLOWS {
            return wrong(&root, "flow", format!("{} flows are too many: {MAX_FLOWS} are allowed", flows.len()));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = flows.iter().find(|flow| !names.insert(&flow.name)) {
            let what = format!("two flows are called '{}': give one a `name`", twice.name);
            return Err(source.error_on(twice.line, what));
        }
        check_beside(&flows).map_err(|(line, what)| source.error_on(line, what))?;
        let topology = Topology::read(&mut root, &flows)?;
        let bottleneck = topology.bottleneck_path().nominal_rate();
        for flow in &mut flows {
            let wrong = |what| source.error_on(flow.line, format!("flow '{}': {what}", flow.name));
            flow.protocol.fix_rate(bottleneck).map_err(wrong)?;
        }
        for key in ["access", "route", "bottleneck"] {
            if root.get(key).is_some() && (key == "access") == named {
                let form = if named { "[link]" } else { "[[links]]" };
                return wrong(&root, key, format!("`{key}` belongs to scenarios with {form}"));
            }
        }
        root.know(&KEYS_OF_SCENARIOS);
        root.finish()?;
        Ok(Self { duration, warmup, sample, series, topology, flows, files })
    }
}

/// The keys of a scenario that belong to the setup.
fn own(root: &Node) -> impl Iterator<Item = (&String, &Node)> {
    root.get_ref().as_table().into_iter().flatten().filter(|(key, _)| !KEYS_OF_SCENARIOS.contains(&key.as_str()))
}
