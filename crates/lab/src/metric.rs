//! The keys of all metrics and series, each with its unit and its words.
//!
//! A key is a quantity (`drops`), a quantity of a flow (`goodput.udt`) or a statistic of a quantity (`goodput.total`).
//! Records, scores, plots and reports take their keys from here.

use std::collections::BTreeSet;

use crate::listed_enum::listed_enum;
use crate::unit::Unit;

listed_enum! {
    /// A physical quantity or a count: the part of a key before its first dot. In the order of the names. The row has the name
    /// in keys, the unit and the words.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Quantity: (&'static str, Unit, &'static str) {
        /// Acknowledgements of acknowledgements (ACK2).
        Ack2s = ("ack2s", Unit::Number, "Acknowledgements of acknowledgements"),
        /// Full acknowledgements.
        Acks = ("acks", Unit::Number, "Acknowledgements"),
        /// The sender's estimate of the path's capacity.
        Capacity = ("capacity", Unit::BitsPerSecond, "Estimated capacity"),
        /// The share of transfers that are done.
        Completed = ("completed", Unit::Number, "Completed"),
        /// The duration of a transfer.
        Completion = ("completion", Unit::Seconds, "Completion time"),
        /// The time until the flows share evenly.
        Convergence = ("convergence", Unit::Seconds, "Convergence time"),
        /// The receiver's processor time for each gigabyte that it read.
        CpuOfReceiver = ("cpu_of_receiver", Unit::Seconds, "Receiver's processor time per GB"),
        /// The sender's processor time for each gigabyte that the receiver read.
        CpuOfSender = ("cpu_of_sender", Unit::Seconds, "Sender's processor time per GB"),
        /// The processor time of both for each gigabyte.
        CpuPerGigabyte = ("cpu_per_gigabyte", Unit::Seconds, "Processor time per GB"),
        /// The number of times that the rate fell.
        Dips = ("dips", Unit::Number, "Dips"),
        /// Packets that the queue or the policer dropped.
        Drops = ("drops", Unit::Packets, "Drops"),
        /// Packets that the link lost behind the queue.
        Errors = ("errors", Unit::Packets, "Lost on the link"),
        /// The rate of the application's bytes.
        Goodput = ("goodput", Unit::BitsPerSecond, "Goodput"),
        /// Jain's fairness index.
        Jain = ("jain", Unit::Number, "Jain index"),
        /// The deviation of the round-trip time, as a share of its mean.
        Jitter = ("jitter", Unit::Share, "Jitter"),
        /// Light acknowledgements.
        LightAcks = ("light_acks", Unit::Number, "Light acknowledgements"),
        /// The share of packets that were lost.
        Loss = ("loss", Unit::Share, "Loss"),
        /// The number of lost packets so far.
        Losses = ("losses", Unit::Packets, "Losses so far"),
        /// The goodput that the protocol's analytic model predicts.
        Model = ("model", Unit::BitsPerSecond, "Analytic model"),
        /// Loss reports (NAK).
        Naks = ("naks", Unit::Number, "Loss reports"),
        /// Data packets.
        Packets = ("packets", Unit::Packets, "Packets"),
        /// The interval between two packets.
        Period = ("period", Unit::Seconds, "Sending period"),
        /// The packets in the bottleneck's queue.
        Queue = ("queue", Unit::Packets, "Queue"),
        /// RED's average of the queue.
        Red = ("red", Unit::Packets, "RED"),
        /// The share of retransmitted packets.
        Retransmitted = ("retransmitted", Unit::Share, "Retransmitted"),
        /// The round-trip time.
        Rtt = ("rtt", Unit::Seconds, "Round-trip time"),
        /// The rate of data packets on the wire.
        Sent = ("sent", Unit::BitsPerSecond, "Sending rate"),
        /// The stability index.
        Stability = ("stability", Unit::Number, "Stability index"),
        /// Retransmission time-outs.
        Timeouts = ("timeouts", Unit::Number, "Time-outs"),
        /// The share of the bottleneck's capacity in use.
        Utilisation = ("utilisation", Unit::Share, "Utilisation"),
        /// The congestion window.
        Window = ("window", Unit::Packets, "Window"),
    }
}

impl Quantity {
    /// The name in keys: `goodput`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.entry().0
    }

    /// The unit of its values.
    #[must_use]
    pub const fn unit(self) -> Unit {
        self.entry().1
    }

    /// The name for readers: `Goodput`.
    #[must_use]
    pub const fn words(self) -> &'static str {
        self.entry().2
    }

    /// Whether it is processor time, which the simulator's hosts do not have.
    #[must_use]
    pub const fn is_processor_time(self) -> bool {
        matches!(self, Self::CpuOfReceiver | Self::CpuOfSender | Self::CpuPerGigabyte)
    }

    /// The quantity with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|quantity| quantity.name() == name)
    }

    /// The quantity of a key; `None` if the key begins with no quantity's name.
    #[must_use]
    pub fn of_key(key: &str) -> Option<Self> {
        Self::named(key.split_once('.').map_or(key, |(name, _)| name))
    }

    /// The unit of a metric or series by its key; a bare number for an unknown key.
    #[must_use]
    pub fn unit_of_key(key: &str) -> Unit {
        Self::of_key(key).map_or(Unit::Number, Self::unit)
    }

    /// The key of this quantity of a flow: `goodput.udt`.
    #[must_use]
    pub fn of_flow(self, flow: &str) -> String {
        format!("{}.{flow}", self.name())
    }

    /// The flow in a key of this quantity; `None` for other keys.
    #[must_use]
    pub fn flow_of(self, key: &str) -> Option<&str> {
        key.strip_prefix(self.name())?.strip_prefix('.')
    }

    /// The pattern for this quantity of all flows: `goodput.*`.
    #[must_use]
    pub fn of_all_flows(self) -> String {
        self.of_flow("*")
    }
}

/// The flows that have this quantity among these keys of metrics or series, `udt-2` before `udt-10`.
///
/// The mean over numbered flows, such as `goodput.udt` beside `goodput.udt-1`, is no flow.
#[must_use]
pub fn flows_of<'k>(quantity: Quantity, keys: impl IntoIterator<Item = &'k str>) -> Vec<&'k str> {
    let own = keys.into_iter().filter(|key| RunMetric::with_key(key).is_none());
    let flows: BTreeSet<&str> = own.filter_map(|key| quantity.flow_of(key)).collect();
    let is_single = |flow: &&str| !flows.contains(&*format!("{flow}-1"));
    let mut single: Vec<&str> = flows.iter().copied().filter(is_single).collect();
    single.sort_by_key(|flow| numbered(flow));
    single
}

/// A name and the number at its end, which orders `udt-2` before `udt-10`.
pub(crate) fn numbered(name: &str) -> (String, u64) {
    let stem = name.trim_end_matches(|character: char| character.is_ascii_digit());
    (stem.to_owned(), name[stem.len()..].parse().unwrap_or(0))
}

listed_enum! {
    /// A metric of a whole run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum RunMetric: &'static str {
        /// The share of transfers that are done.
        Completed = "completed",
        /// The time from the first start of a transfer to the end of the last one.
        CompletionAll = "completion.all",
        /// The longest duration of a transfer.
        CompletionMax = "completion.max",
        /// The mean duration of a transfer.
        CompletionMean = "completion.mean",
        /// The 99th percentile of the durations.
        CompletionP99 = "completion.p99",
        /// The time from the last start until the flows share evenly.
        Convergence = "convergence",
        /// Packets that the bottleneck's queue or policer dropped.
        Drops = "drops",
        /// Packets lost on the bottleneck, behind its queue.
        Errors = "errors",
        /// The greatest goodput of a flow.
        GoodputMax = "goodput.max",
        /// The least goodput of a flow.
        GoodputMin = "goodput.min",
        /// The goodput of all flows together.
        GoodputTotal = "goodput.total",
        /// Jain's index of the goodputs.
        Jain = "jain",
        /// The longest queue.
        QueueMax = "queue.max",
        /// The mean queue.
        QueueMean = "queue.mean",
        /// The 99th percentile of the queue's samples.
        QueueP99 = "queue.p99",
        /// The mean of RED's average queue.
        RedAverage = "red.average",
        /// The stability index.
        Stability = "stability",
        /// The share of the bottleneck's capacity in use by first transmissions.
        Utilisation = "utilisation",
    }
}

impl RunMetric {
    /// Its key in records.
    #[must_use]
    pub const fn key(self) -> &'static str {
        self.entry()
    }

    /// The part of the key after the dot: `total` of `goodput.total`.
    #[must_use]
    pub fn statistic(self) -> Option<&'static str> {
        self.key().split_once('.').map(|(_, statistic)| statistic)
    }

    /// The metric with this key.
    #[must_use]
    pub fn with_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.key() == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_finds_its_quantity_and_no_two_are_the_same() {
        for quantity in Quantity::ALL {
            assert_eq!(Quantity::named(quantity.name()), Some(quantity));
            assert_eq!(Quantity::of_key(&quantity.of_flow("udt-1.2")), Some(quantity));
            assert_eq!(quantity.flow_of(&quantity.of_flow("udt")), Some("udt"));
        }
        for metric in RunMetric::ALL {
            assert_eq!(RunMetric::with_key(metric.key()), Some(metric));
            assert!(Quantity::of_key(metric.key()).is_some(), "{metric:?}");
        }
        assert!(Quantity::ALL.windows(2).all(|pair| pair[0].name() < pair[1].name()));
        assert!(RunMetric::ALL.windows(2).all(|pair| pair[0].key() < pair[1].key()));
        let keys =
            ["goodput.a-10", "goodput.a-2", "goodput.a-1", "goodput.a", "goodput.b", "goodput.total", "loss.c", "jain"];
        assert_eq!(flows_of(Quantity::Goodput, keys), ["a-1", "a-2", "a-10", "b"]);
        assert_eq!(Quantity::unit_of_key("goodput.udt-2004"), Unit::BitsPerSecond);
        assert_eq!(Quantity::unit_of_key("jain"), Unit::Number);
        assert_eq!((Quantity::of_key("goodputs.udt"), Quantity::Goodput.flow_of("goodputs.udt")), (None, None));
    }
}
