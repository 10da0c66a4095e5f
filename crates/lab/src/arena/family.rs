//! The families of cells. `families.toml` has the paths they draw, and their goals, in words.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::Deserialize;

use super::sketch::Sketch;
use super::{beside, chain, crowd, hosts, lan, libudt, single, wireless};
use crate::listed_enum::listed_enum;

listed_enum! {
    /// A kind of path or competition. The number of a family is part of a cell's seed, so new ones go to the end.
    /// The row has the name, and what draws a cell.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Family: (&'static str, fn(&mut Sketch)) {
        /// A path without impairments.
        Clean = ("clean", single::clean),
        /// Independent random loss.
        Loss = ("loss", single::loss),
        /// Random loss in bursts.
        Burst = ("burst", single::burst),
        /// Random delay that keeps the order.
        Jitter = ("jitter", single::jitter),
        /// Some packets overtake others.
        Reorder = ("reorder", single::reorder),
        /// A queue of at most 0.3 BDP.
        Shallow = ("shallow", single::shallow),
        /// A queue of 1 to 4 BDP.
        Deep = ("deep", single::deep),
        /// 0.5 to 10 Mbit/s.
        Slow = ("slow", single::slow),
        /// 2 to 40 flows on one link.
        Fair = ("fair", crowd::fair),
        /// Two flows with different RTTs.
        Mix = ("mix", crowd::mix),
        /// A flow that joins one to three others.
        LateComer = ("late-comer", crowd::late_comer),
        /// One flow beside one of CUBIC, Reno or BBR.
        Tcp = ("tcp", crowd::tcp),
        /// The capacity falls and returns.
        Fall = ("fall", single::fall),
        /// 100 to 500 flows on one link.
        Many = ("many", crowd::many),
        /// Hosts whose programs are not scheduled at times.
        LateHosts = ("late-hosts", hosts::late_hosts),
        /// Several bottlenecks in a row, with cross flows at each.
        MultiBottleneck = ("multi-bottleneck", chain::multi_bottleneck),
        /// Loopback, a rack, a busy node.
        Lan = ("lan", lan::lan),
        /// Links whose delays or rates change.
        Wireless = ("wireless", wireless::wireless),
        /// A token bucket on a faster line.
        Policer = ("policer", wireless::policer),
        /// Bulk data in the other direction.
        Reverse = ("reverse", beside::reverse),
        /// One flow of another law in a short or deep queue.
        Neighbours = ("neighbours", beside::neighbours),
        /// 200 to 2000 flows on one link.
        Crowd = ("crowd", crowd::crowd),
        /// Very long RTTs.
        Satellite = ("satellite", wireless::satellite),
        /// A receiver without receipts.
        Libudt = ("libudt", libudt::libudt),
    }
}

/// A family in words.
#[derive(Deserialize)]
struct FamilyWords {
    paths: String,
    goals: String,
}

static WORDS: LazyLock<BTreeMap<String, FamilyWords>> =
    LazyLock::new(|| toml::from_str(include_str!("families.toml")).expect("the tests read it"));

impl Family {
    /// The name in tables and in `--family`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.entry().0
    }

    /// The paths that it draws.
    #[must_use]
    pub fn paths(self) -> &'static str {
        &self.words().paths
    }

    /// Its goals, in the terms of the [module](super).
    #[must_use]
    pub fn goals(self) -> &'static str {
        &self.words().goals
    }

    fn words(self) -> &'static FamilyWords {
        &WORDS[self.name()]
    }

    /// Draws the path, the flows and the goals of a cell.
    pub(super) fn draw(self, cell: &mut Sketch) {
        self.entry().1(cell);
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no family has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no family '{name}'{nearest}: there are {}", Family::ALL.map(Family::name).join(", "))]
pub struct UnknownFamily {
    name: String,
    /// A hint, or nothing.
    nearest: String,
}

impl FromStr for Family {
    type Err = UnknownFamily;

    fn from_str(name: &str) -> Result<Self, UnknownFamily> {
        let found = Self::ALL.into_iter().find(|family| family.name() == name);
        found.ok_or_else(|| {
            let meant = crate::scenario::nearest(name, Self::ALL.into_iter().map(Self::name));
            let nearest = meant.map_or(String::new(), |meant| format!(" ({meant}?)"));
            UnknownFamily { name: name.to_owned(), nearest }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_found_by_its_name() {
        for (place, family) in Family::ALL.into_iter().enumerate() {
            assert_eq!(family.name().parse(), Ok(family));
            assert_eq!(family as usize, place, "the number is part of a cell's seed");
            assert!(!family.paths().is_empty() && !family.goals().is_empty(), "{family} has its words");
        }
        assert_eq!(WORDS.len(), Family::ALL.len(), "all words are of a family");
        let message = "claen".parse::<Family>().unwrap_err().to_string();
        assert!(message.starts_with("there is no family 'claen' (clean?): there are clean, loss, "), "{message}");
    }
}
