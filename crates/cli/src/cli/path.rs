//! A long path, described in options: rate, delay, queue and impairments, for both directions or each.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use farhaul_netem::{JitterSpec, LossSpec, PathSpec, QueueSize, ReorderSpec};
use farhaul_units::{ByteSize, Rate, parse_duration};
use serde_json::{Value, json};

use super::{share, some_rate};

/// Packets that are reordered come so much later, unless the delay is shorter: enough to be overtaken by several.
const REORDERED_BY: Duration = Duration::from_millis(1);
/// Makes the two directions lose different packets.
const OTHER_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// How the path behaves. Options without a prefix hold for both directions.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Path")]
pub(crate) struct PathOptions {
    /// Rate of the bottleneck: 1gbit [default: none]
    #[arg(long, value_name = "RATE", value_parser = some_rate)]
    rate: Option<Rate>,
    /// One-way delay; the round trip takes twice as long
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    delay: Option<Duration>,
    /// Share of packets that are lost: 0.1%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    loss: Option<f64>,
    /// Queue before the bottleneck: 1000 packets, 4MB, or bdp for one bandwidth-delay product [default: 1000]
    #[arg(long, value_name = "SIZE")]
    queue: Option<Queue>,
    /// Additional random delay of up to this, in order
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    jitter: Option<Duration>,
    /// Share of packets that are overtaken by later ones
    #[arg(long, value_name = "SHARE", value_parser = share)]
    reorder: Option<f64>,
    /// Share of packets that arrive twice
    #[arg(long, value_name = "SHARE", value_parser = share)]
    duplicate: Option<f64>,
    /// Share of packets that arrive damaged
    #[arg(long, value_name = "SHARE", value_parser = share)]
    corrupt: Option<f64>,
    /// Decides which packets are lost, so that runs can be repeated
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    up: Up,
    #[command(flatten)]
    down: Down,
}

macro_rules! one_way {
    ($name:ident, $prefix:literal, $from:literal) => {
        /// What differs in one direction.
        #[derive(Args, Clone, Debug)]
        #[command(next_help_heading = $from)]
        struct $name {
            /// Rate in this direction
            #[arg(id = concat!($prefix, "-rate"), long = concat!($prefix, "-rate"), value_name = "RATE", value_parser = some_rate)]
            rate: Option<Rate>,
            /// One-way delay in this direction
            #[arg(id = concat!($prefix, "-delay"), long = concat!($prefix, "-delay"), value_name = "TIME", value_parser = parse_duration)]
            delay: Option<Duration>,
            /// Loss in this direction
            #[arg(id = concat!($prefix, "-loss"), long = concat!($prefix, "-loss"), value_name = "SHARE", value_parser = share)]
            loss: Option<f64>,
            /// Queue in this direction
            #[arg(id = concat!($prefix, "-queue"), long = concat!($prefix, "-queue"), value_name = "SIZE")]
            queue: Option<Queue>,
            /// Jitter in this direction
            #[arg(id = concat!($prefix, "-jitter"), long = concat!($prefix, "-jitter"), value_name = "TIME", value_parser = parse_duration)]
            jitter: Option<Duration>,
            /// Reordering in this direction
            #[arg(id = concat!($prefix, "-reorder"), long = concat!($prefix, "-reorder"), value_name = "SHARE", value_parser = share)]
            reorder: Option<f64>,
            /// Duplication in this direction
            #[arg(id = concat!($prefix, "-duplicate"), long = concat!($prefix, "-duplicate"), value_name = "SHARE", value_parser = share)]
            duplicate: Option<f64>,
            /// Damage in this direction
            #[arg(id = concat!($prefix, "-corrupt"), long = concat!($prefix, "-corrupt"), value_name = "SHARE", value_parser = share)]
            corrupt: Option<f64>,
        }

        impl $name {
            fn or(&self, both: &PathOptions) -> OneWay {
                OneWay {
                    rate: self.rate.or(both.rate),
                    delay: self.delay.or(both.delay).unwrap_or_default(),
                    loss: self.loss.or(both.loss).unwrap_or(0.0),
                    queue: self.queue.or(both.queue).unwrap_or(Queue::Size(QueueSize::default())),
                    jitter: self.jitter.or(both.jitter),
                    reorder: self.reorder.or(both.reorder),
                    duplicate: self.duplicate.or(both.duplicate).unwrap_or(0.0),
                    corrupt: self.corrupt.or(both.corrupt).unwrap_or(0.0),
                }
            }
        }
    };
}

one_way!(Up, "up", "From the clients to the server");
one_way!(Down, "down", "From the server to the clients");

/// One direction with all defaults filled in.
struct OneWay {
    rate: Option<Rate>,
    delay: Duration,
    loss: f64,
    queue: Queue,
    jitter: Option<Duration>,
    reorder: Option<f64>,
    duplicate: f64,
    corrupt: f64,
}

/// A queue as it is typed. A bare number counts packets, as everywhere with queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    Size(QueueSize),
    /// One bandwidth-delay product of the path.
    Bdp,
}

impl FromStr for Queue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("bdp") {
            return Ok(Self::Bdp);
        }
        let bare = text.parse::<f64>().is_ok().then_some(text);
        let counted = ["packets", "packet", "pkt"].iter().find_map(|unit| text.strip_suffix(unit)).or(bare);
        if let Some(number) = counted {
            let packets = number.trim().parse().map_err(|_| format!("'{text}' is no whole number of packets"))?;
            return Ok(Self::Size(QueueSize::Packets(packets)));
        }
        text.parse::<ByteSize>().map(|bytes| Self::Size(QueueSize::Bytes(bytes))).map_err(|error| error.to_string())
    }
}

impl PathOptions {
    /// The paths from the clients to the server and back.
    pub(crate) fn specs(&self) -> (PathSpec, PathSpec) {
        let (up, down) = (self.up.or(self), self.down.or(self));
        let round_trip = up.delay + down.delay;
        (up.spec(round_trip, self.seed), down.spec(round_trip, self.seed ^ OTHER_SEED))
    }
}

impl PathOptions {
    /// All of it, so that a run can be repeated from its record.
    pub(crate) fn record(&self) -> Value {
        let (up, down) = self.specs();
        json!({ "seed": self.seed, "up": way(&up), "down": way(&down) })
    }
}

/// One direction as records show it.
pub(crate) fn way(path: &PathSpec) -> Value {
    let seconds = |time: Duration| time.as_secs_f64();
    let share = |loss: &LossSpec| match loss {
        LossSpec::Bernoulli(share) => json!(share),
        other => json!(format!("{other:?}")),
    };
    let queue = match path.queue {
        QueueSize::Packets(packets) => json!({ "packets": packets }),
        QueueSize::Bytes(ByteSize(bytes)) => json!({ "bytes": bytes }),
        QueueSize::Bdp(round_trip) => json!({ "bdp_of_seconds": seconds(round_trip) }),
    };
    json!({
        "rate_bps": path.rate.map(Rate::bits_per_second),
        "delay_seconds": seconds(path.delay),
        "loss": path.loss.as_ref().map_or(json!(0.0), share),
        "queue": queue,
        "jitter_seconds": path.jitter.as_ref().map_or(0.0, |jitter| seconds(jitter.max)),
        "reorder": path.reorder.as_ref().map_or(0.0, |reorder| reorder.probability),
        "reordered_by_seconds": path.reorder.as_ref().map(|reorder| seconds(reorder.extra_delay)),
        "duplicate": path.duplicate,
        "corrupt": path.corrupt,
        "seed": path.seed,
    })
}

impl OneWay {
    fn spec(self, round_trip: Duration, seed: u64) -> PathSpec {
        let queue = match self.queue {
            Queue::Size(size) => size,
            Queue::Bdp => QueueSize::Bdp(round_trip),
        };
        let held_back = |probability| ReorderSpec { probability, extra_delay: REORDERED_BY.max(self.delay / 10) };
        PathSpec {
            rate: self.rate,
            delay: self.delay,
            queue,
            loss: (self.loss > 0.0).then_some(LossSpec::Bernoulli(self.loss)),
            duplicate: self.duplicate,
            corrupt: self.corrupt,
            jitter: self.jitter.map(JitterSpec::up_to),
            reorder: self.reorder.map(held_back),
            seed,
            ..PathSpec::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        path: PathOptions,
    }

    fn specs(options: &[&str]) -> (PathSpec, PathSpec) {
        Only::try_parse_from(["x"].iter().chain(options)).unwrap().path.specs()
    }

    #[test]
    fn a_direction_of_its_own_wins_over_both() {
        let (up, down) = specs(&["--rate", "1gbit", "--delay", "50ms", "--down-rate", "10mbit", "--up-loss", "1%"]);
        assert_eq!(up.rate, Some(Rate::from_megabits_per_second(1_000)));
        assert_eq!(down.rate, Some(Rate::from_megabits_per_second(10)));
        assert_eq!((up.loss, down.loss), (Some(LossSpec::Bernoulli(0.01)), None));
        assert_ne!(up.seed, down.seed);
    }

    #[test]
    fn a_queue_of_one_bandwidth_delay_product_counts_the_whole_round_trip() {
        let (up, _) = specs(&["--queue", "bdp", "--up-delay", "10ms", "--down-delay", "30ms"]);
        assert_eq!(up.queue, QueueSize::Bdp(Duration::from_millis(40)));
    }

    #[test]
    fn queues_count_packets_unless_they_say_otherwise() {
        assert_eq!("1000".parse(), Ok(Queue::Size(QueueSize::Packets(1_000))));
        assert_eq!("1000packets".parse(), Ok(Queue::Size(QueueSize::Packets(1_000))));
        assert_eq!("4MB".parse(), Ok(Queue::Size(QueueSize::Bytes(ByteSize(4_000_000)))));
        for text in ["1.5", "-1", "1000 furlongs"] {
            assert!(text.parse::<Queue>().is_err(), "{text}");
        }
    }
}
