//! The families of cells: names, the paths they draw, and their goals in words.

use std::fmt;
use std::str::FromStr;

use crate::listed_enum::listed_enum;

listed_enum! {
    /// A kind of path or competition. The number of a family is part of a cell's seed, so new ones go to the end.
    /// The row has the name, the drawn paths and the goals.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Family: (&'static str, &'static str, &'static str) {
        /// A path without impairments.
        Clean = ("clean", "1 Mbit/s to 2.5 Gbit/s, RTT 2 to 250 ms, queue 0.5 to 1.5 BDP", "goodput ≥ 0.93·I; waste"),
        /// Independent random loss.
        Loss = ("loss", "as clean, with independent loss of 1e-5 to 2e-2", "goodput ≥ (0.92 − 3p)·I; waste"),
        /// Random loss in bursts.
        Burst = (
            "burst",
            "as clean, with loss of 1e-5 to 5e-3 in bursts of 2 to 100 packets, queue 1 BDP",
            "goodput ≥ 0.90·I; waste, with more for the chance number of bursts b: 4.5·p/√b + 3 bursts",
        ),
        /// Random delay that keeps the order.
        Jitter = (
            "jitter",
            "1 to 500 Mbit/s, RTT 10 to 250 ms, delays vary by 0.3 to 10 ms, at most a quarter of the RTT",
            "goodput ≥ 0.88·I; waste",
        ),
        /// Some packets overtake others.
        Reorder = (
            "reorder",
            "as jitter, but 0.2 to 10 % of the packets come 0.3 to 8 ms late",
            "goodput ≥ 0.88·I; waste, with 1.5 × the reordered share more",
        ),
        /// A queue of at most 0.3 BDP.
        Shallow = (
            "shallow",
            "from 10 Mbit/s, queue of q packets: 8 to 0.3 BDP",
            "goodput ≥ (0.93 − 0.35/√q)·I; waste, with 0.5 % more",
        ),
        /// A queue of 1 to 4 BDP.
        Deep = (
            "deep",
            "as clean, RTT from 10 ms, queue 1 to 4 BDP",
            "goodput ≥ 0.92·I; waste; mean queue ≤ 0.10·B + 20 packets",
        ),
        /// 0.5 to 10 Mbit/s.
        Slow = (
            "slow",
            "0.5 to 10 Mbit/s, RTT 10 to 250 ms, queue 1 to 3 BDP, half of them with loss of 1e-4 to 1e-2",
            "goodput ≥ 0.90·I; waste, with 1.5 % more",
        ),
        /// 2 to 40 flows on one link.
        Fair = (
            "fair",
            "n = 2 to 40 flows, from 2 Mbit/s each, starts within 1 s",
            "after 0.4·T: goodput ≥ 0.90·f·R; waste, with 1.5 % more; Jain ≥ 0.97 − 0.0005·n",
        ),
        /// Two flows with different RTTs.
        Mix = (
            "mix",
            "two flows, one with 2 to 20 times the RTT, 10 to 400 Mbit/s",
            "after 0.4·T: goodput ≥ 0.88·f·R; waste, with 1.5 % more; Jain ≥ 0.95",
        ),
        /// A flow that joins one to three others.
        LateComer = (
            "late-comer",
            "a flow joins n = 1 to 3 others 12 s before the end, fair share s = 1/(n + 1)",
            "from 5 s after the start: its share between 0.8·s and 1 − 0.8·(1 − s); goodput ≥ 0.88·f·R; waste, with 1.5 % more",
        ),
        /// One flow beside one of CUBIC, Reno or BBR.
        Tcp = (
            "tcp",
            "beside one flow of CUBIC, Reno with SACK, or BBR, 10 to 200 Mbit/s, at most 1500 packets per RTT",
            "after 15 s: share between 0.33 and 0.67; goodput of both ≥ 0.85·f·R",
        ),
        /// The capacity falls and returns.
        Fall = (
            "fall",
            "the capacity falls to 0.1 to 0.6 for a third of the time",
            "goodput ≥ 0.90·I of the mean capacity; waste, with 0.5 % + 2·RTT/T more",
        ),
        /// 100 to 500 flows on one link.
        Many = (
            "many",
            "100 to 500 flows, 1 to 4 Mbit/s each",
            "after 6 s: goodput ≥ 0.85·f·R; waste, with 5 % more; Jain ≥ 0.80",
        ),
        /// Hosts whose programs are not scheduled at times.
        LateHosts = (
            "late-hosts",
            "20 Mbit/s to 2 Gbit/s, RTT 10 to 200 ms, half of them with loss of 1e-5 to 1e-3; both programs are absent for 1 to 10 ms every 50 to 500 ms, and 1 to 5 % of the absences last 50 ms",
            "goodput ≥ 0.90·I·(1 − o), o = share of time in which the sender is absent; waste, with 1 % more",
        ),
        /// Several bottlenecks in a row, with cross flows at each.
        MultiBottleneck = (
            "multi-bottleneck",
            "2 to 4 bottlenecks in a row, 1 or 2 flows over all of them, 1 to 3 cross flows at each",
            "after 0.4·T: every flow ≥ 0.5 of its max-min share; every bottleneck ≥ 0.85 used; waste, with 1.5 % more",
        ),
        /// Loopback, a rack, a busy node.
        Lan = (
            "lan",
            "0.5 to 100 Gbit/s, RTT 20 µs to 2 ms, queue of 50 packets to 1 ms; half of them with hosts that spend c = 0.2 to 3 µs on a packet, two in five with interfaces that gather packets for 5 to 60 µs, two in five with both programs absent for 0.05 to 10 ms, at times 60 ms",
            "goodput ≥ 0.88·f·C·(1 − t0/T)·(1 − o), C = min(R, 12 000/c), o = share of time in which the sender is absent; waste, with 1 % more",
        ),
        /// Links whose delays or rates change.
        Wireless = (
            "wireless",
            "5 to 500 Mbit/s, RTT 20 to 120 ms; delays vary in order by up to 5 to 40 ms, one or both ways, or the rate changes by 1.5 to 4 every 0.5 to 5 s, or both",
            "goodput ≥ 0.85·I of the mean capacity, two RTTs after each rise left out; waste, with 1 % and half of what is on its way at each fall more",
        ),
        /// A token bucket on a faster line.
        Policer = (
            "policer",
            "5 to 500 Mbit/s by a bucket of 10 kB to 2 MB on a line of 2 to 20 times the rate, RTT 5 to 150 ms",
            "goodput ≥ 0.90·I; waste, with 2 % more",
        ),
        /// Bulk data in the other direction.
        Reverse = (
            "reverse",
            "10 to 300 Mbit/s, RTT 10 to 100 ms, queue 0.5 to 2 BDP, and a flow of CUBIC, BBR or the same law the other way",
            "after 4 s: goodput ≥ 0.85·f·R; waste, with 1 % more",
        ),
        /// One flow of another law in a short or deep queue.
        Neighbours = (
            "neighbours",
            "beside one flow of CUBIC, BBR, or Reno with SACK, queue 0.05 to 4 BDP, 10 to 200 Mbit/s, at most 1500 packets per RTT",
            "after 15 s: at least a quarter for each of both; goodput of both ≥ 0.80·f·R",
        ),
        /// 200 to 2000 flows on one link.
        Crowd = (
            "crowd",
            "200 to 2000 flows, 0.7 to 2 Mbit/s each, half of them begin together",
            "after 10 s: goodput ≥ 0.85·f·R; waste, with 3 % more; Jain ≥ 0.85",
        ),
        /// Very long RTTs.
        Satellite = (
            "satellite",
            "2 to 300 Mbit/s, RTT 300 to 700 ms, queue 0.3 to 1.5 BDP, three in five with loss of 1e-4 to 2e-2",
            "goodput ≥ (0.90 − 3p)·I; waste, with 0.5 % more",
        ),
        /// A receiver without receipts.
        Libudt = (
            "libudt",
            "as clean, loss, shallow, late-hosts or lan, to a receiver that acknowledges as libudt 4.11 does",
            "those of the family that it is like",
        ),
    }
}

impl Family {
    /// The name in tables and in `--family`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.entry().0
    }

    /// The paths that it draws.
    #[must_use]
    pub const fn paths(self) -> &'static str {
        self.entry().1
    }

    /// Its goals, in the terms of the [module](super).
    #[must_use]
    pub const fn goals(self) -> &'static str {
        self.entry().2
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
        }
        let message = "claen".parse::<Family>().unwrap_err().to_string();
        assert!(message.starts_with("there is no family 'claen' (clean?): there are clean, loss, "), "{message}");
    }
}
