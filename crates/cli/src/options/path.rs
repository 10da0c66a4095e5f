//! Options of an emulated path: rate, delay, queue and impairments, for both directions or each.

mod values;

use std::time::Duration;

use clap::{Args, Parser};
use farhaul_netem::{
    Discipline, GilbertElliottSpec, JitterSpec, LossSpec, Mtu, PathSpec, QueueSize, ReorderSpec, Variation,
};
use farhaul_units::{ByteSize, Rate, parse_duration};
use serde_json::{Value, json};

use crate::values::{share, some_rate};
use values::{DisciplineName, LargestPacket, Policed, Queue, TraceFile};

/// Least extra delay of reordered packets: long enough for several packets to overtake.
const REORDERED_BY: Duration = Duration::from_millis(1);
/// Changes the seed of one direction, so that the two lose different packets.
const OTHER_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Options of a path.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Path")]
pub(crate) struct PathOptions {
    #[command(flatten)]
    both: Impairments,
    /// Options of the direction from the clients to the server alone: rate=10mbit,delay=50ms,loss=1%
    #[arg(long, value_name = "OPTION=VALUE,…", value_parser = one_direction)]
    up: Option<Impairments>,
    /// Options of the other direction alone
    #[arg(long, value_name = "OPTION=VALUE,…", value_parser = one_direction)]
    down: Option<Impairments>,
    /// Seed of random losses and delays; the same seed repeats a run
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

/// Options of both directions, or of one.
#[derive(Args, Clone, Debug, Default)]
struct Impairments {
    /// Rate of the bottleneck: 1gbit [default: none]
    #[arg(long, value_name = "RATE", value_parser = some_rate)]
    rate: Option<Rate>,
    /// One-way delay, half of the RTT
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    delay: Option<Duration>,
    /// Recorded link instead of a rate: a mahimahi file, one delivery opportunity in milliseconds per line
    #[arg(long, value_name = "FILE", conflicts_with = "rate")]
    link_trace: Option<TraceFile>,
    /// Share of packets lost: 0.1%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    loss: Option<f64>,
    /// Mean length of loss bursts in packets, at least 1 [default: independent losses]
    #[arg(long, value_name = "PACKETS", value_parser = burst)]
    loss_burst: Option<f64>,
    /// Bit error rate; a packet with a wrong bit is lost: 1e-9
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with_all = ["loss", "loss_burst"])]
    bit_errors: Option<f64>,
    /// Queue before the bottleneck: 1000 packets, 4MB, or bdp for one bandwidth-delay product [default: 1000]
    #[arg(long, value_name = "SIZE")]
    queue: Option<Queue>,
    /// Drop policy of the queue [default: drop-tail]
    #[arg(long, value_name = "NAME")]
    discipline: Option<DisciplineName>,
    /// Policer behind the bottleneck: drop excess over this rate and burst: 100mbit,64KiB
    #[arg(long, value_name = "RATE[,SIZE]")]
    police: Option<Policed>,
    /// Drop longer packets without a word, headers included; from a time on, if one follows: 1300,3s
    #[arg(long, value_name = "BYTES[,TIME]")]
    largest_packet: Option<LargestPacket>,
    /// Largest random extra delay; packets stay in order
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    jitter: Option<Duration>,
    /// Share of packets delayed until later ones have overtaken them
    #[arg(long, value_name = "SHARE", value_parser = share)]
    reorder: Option<f64>,
    /// Share of packets delivered twice
    #[arg(long, value_name = "SHARE", value_parser = share)]
    duplicate: Option<f64>,
    /// Share of packets delivered damaged
    #[arg(long, value_name = "SHARE", value_parser = share)]
    corrupt: Option<f64>,
}

/// The options of one direction, as on a command line of their own.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Direction {
    #[command(flatten)]
    options: Impairments,
}

/// Reads the options of one direction: `delay=50ms,loss=1%`. A part without a name belongs to the value before it.
fn one_direction(text: &str) -> Result<Impairments, String> {
    let mut words: Vec<String> = Vec::new();
    for part in text.split(',') {
        match words.last_mut() {
            Some(last) if !part.contains('=') => {
                last.push(',');
                last.push_str(part);
            }
            _ => words.push(format!("--{part}")),
        }
    }
    // Names of the parser have dashes, and whoever reads the error typed none.
    let refused = |error: clap::Error| {
        let line = error.to_string().lines().next().unwrap_or_default().replace("--", "");
        line.trim_start_matches("error: ").to_owned()
    };
    Direction::try_parse_from(words).map(|direction| direction.options).map_err(refused)
}

impl Impairments {
    /// This direction, with `both` where it has no option of its own.
    fn or(&self, both: &Self) -> Self {
        // Options that exclude each other are overridden together.
        let (rate, link_trace) = if self.rate.is_some() || self.link_trace.is_some() {
            (self.rate, &self.link_trace)
        } else {
            (both.rate, &both.link_trace)
        };
        let (loss, bit_errors) = if self.loss.is_some() || self.bit_errors.is_some() {
            (self.loss, self.bit_errors)
        } else {
            (both.loss, both.bit_errors)
        };
        Self {
            rate,
            link_trace: link_trace.clone(),
            delay: self.delay.or(both.delay),
            loss,
            loss_burst: self.loss_burst.or(both.loss_burst),
            bit_errors,
            discipline: self.discipline.or(both.discipline),
            police: self.police.or(both.police),
            largest_packet: self.largest_packet.or(both.largest_packet),
            queue: self.queue.or(both.queue),
            jitter: self.jitter.or(both.jitter),
            reorder: self.reorder.or(both.reorder),
            duplicate: self.duplicate.or(both.duplicate),
            corrupt: self.corrupt.or(both.corrupt),
        }
    }
}

impl PathOptions {
    /// The paths from the clients to the server and back.
    pub(crate) fn specs(&self) -> (PathSpec, PathSpec) {
        let alone = |direction: &Option<Impairments>| direction.clone().unwrap_or_default().or(&self.both);
        let (up, down) = (alone(&self.up), alone(&self.down));
        let round_trip = up.delay.unwrap_or_default() + down.delay.unwrap_or_default();
        (up.spec(round_trip, self.seed), down.spec(round_trip, self.seed ^ OTHER_SEED))
    }
}

impl PathOptions {
    /// All settings for the record, enough to repeat the run.
    pub(crate) fn record(&self) -> Value {
        let (up, down) = self.specs();
        json!({ "seed": self.seed, "up": path_record(&up), "down": path_record(&down) })
    }
}

/// One direction in a record.
pub(crate) fn path_record(path: &PathSpec) -> Value {
    let seconds = |time: Duration| time.as_secs_f64();
    let share = |loss: &LossSpec| match loss {
        LossSpec::BitErrors(rate) => json!({ "bit_errors": rate }),
        other => loss_share(other).map_or_else(|| json!(format!("{other:?}")), |share| json!(share)),
    };
    let queue = match path.queue {
        QueueSize::Packets(packets) => json!({ "packets": packets }),
        QueueSize::Bytes(ByteSize(bytes)) => json!({ "bytes": bytes }),
        QueueSize::Bdp(round_trip) => json!({ "bdp_of_seconds": seconds(round_trip) }),
    };
    let discipline = match path.discipline {
        Discipline::DropTail => "drop-tail",
        Discipline::DropHead => "drop-head",
        Discipline::Red(_) => "red",
        Discipline::CoDel(_) => "codel",
    };
    let burst = match &path.loss {
        Some(LossSpec::GilbertElliott(spec)) if spec.out_of_bad > 0.0 => Some(1.0 / spec.out_of_bad),
        _ => None,
    };
    let policer = path.policer.map(|policer| {
        let ByteSize(burst) = policer.burst;
        json!({ "rate_bps": policer.rate.bits_per_second(), "burst_bytes": burst })
    });
    json!({
        "rate_bps": path.rate.map(Rate::bits_per_second),
        "delay_seconds": seconds(path.delay),
        "mean_rate_bps": path.nominal_rate().map(Rate::bits_per_second),
        "loss": path.loss.as_ref().map_or(json!(0.0), share),
        "loss_burst": burst,
        "queue": queue,
        "discipline": discipline,
        "policer": policer,
        "largest_packet_bytes": path.mtu.as_ref().map(Mtu::last),
        "jitter_seconds": path.jitter.as_ref().map_or(0.0, |jitter| seconds(jitter.max)),
        "reorder": path.reorder.as_ref().map_or(0.0, |reorder| reorder.probability),
        "reordered_by_seconds": path.reorder.as_ref().map(|reorder| seconds(reorder.extra_delay)),
        "duplicate": path.duplicate,
        "corrupt": path.corrupt,
        "seed": path.seed,
    })
}

/// Long-run share of packets lost; `None` if it depends on the packets' length.
pub(crate) fn loss_share(loss: &LossSpec) -> Option<f64> {
    match loss {
        LossSpec::Bernoulli(share) => Some(*share),
        LossSpec::GilbertElliott(spec) => Some(spec.stationary_loss()),
        _ => None,
    }
}

impl Impairments {
    /// The path of one direction.
    fn spec(self, round_trip: Duration, seed: u64) -> PathSpec {
        let queue = match self.queue {
            None => QueueSize::default(),
            Some(Queue::Size(size)) => size,
            Some(Queue::Bdp) => QueueSize::Bdp(round_trip),
        };
        let delay = self.delay.unwrap_or_default();
        let held_back = |probability| ReorderSpec { probability, extra_delay: REORDERED_BY.max(delay / 10) };
        let [loss, bit_errors] = [self.loss, self.bit_errors].map(Option::unwrap_or_default);
        let loss = match self.loss_burst {
            _ if bit_errors > 0.0 => Some(LossSpec::BitErrors(bit_errors)),
            _ if loss == 0.0 => None,
            None => Some(LossSpec::Bernoulli(loss)),
            Some(packets) => Some(LossSpec::GilbertElliott(GilbertElliottSpec::bursts(loss, packets))),
        };
        let variation = self.link_trace.map_or(Variation::None, |file| Variation::Trace(file.trace));
        let spec = PathSpec {
            rate: self.rate,
            variation,
            delay,
            queue,
            policer: self.police.map(|Policed(spec)| spec),
            mtu: self.largest_packet.map(LargestPacket::mtu),
            loss,
            duplicate: self.duplicate.unwrap_or_default(),
            corrupt: self.corrupt.unwrap_or_default(),
            jitter: self.jitter.map(JitterSpec::up_to),
            reorder: self.reorder.map(held_back),
            seed,
            ..PathSpec::default()
        };
        PathSpec { discipline: self.discipline.unwrap_or(DisciplineName::DropTail).at(spec.nominal_rate()), ..spec }
    }
}

/// Parses the mean length of a burst, in packets.
fn burst(text: &str) -> Result<f64, String> {
    let is_burst = |packets: &f64| (1.0..=1e9).contains(packets);
    text.parse().ok().filter(is_burst).ok_or_else(|| format!("'{text}' is no number of packets from 1 on"))
}

#[cfg(test)]
mod tests {
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
        let (up, down) = specs(&["--rate", "1gbit", "--delay", "50ms", "--down", "rate=10mbit", "--up", "loss=1%"]);
        assert_eq!(up.rate, Some(Rate::from_megabits_per_second(1_000)));
        assert_eq!(down.rate, Some(Rate::from_megabits_per_second(10)));
        assert_eq!((up.loss, down.loss), (Some(LossSpec::Bernoulli(0.01)), None));
        assert_ne!(up.seed, down.seed);
    }

    #[test]
    fn the_options_of_a_direction_stand_in_one_value_and_a_wrong_one_is_named() {
        let (up, _) = specs(&["--up", "rate=1gbit,police=100mbit,64KiB,jitter=5ms"]);
        assert_eq!(up.policer.map(|policer| policer.burst), Some(ByteSize(65_536)));
        assert_eq!(up.jitter, Some(JitterSpec::up_to(Duration::from_millis(5))));
        for (text, words) in [
            ("loss=2", "loss"),
            ("speed=1gbit", "speed"),
            ("delay", "delay"),
            ("loss=1%,bit-errors=1e-9", "bit-errors"),
        ] {
            let message = one_direction(text).unwrap_err();
            assert!(message.contains(words) && !message.contains("--"), "{text}: {message}");
        }
    }

    #[test]
    fn a_queue_of_one_bandwidth_delay_product_counts_the_whole_round_trip() {
        let (up, _) = specs(&["--queue", "bdp", "--up", "delay=10ms", "--down", "delay=30ms"]);
        assert_eq!(up.queue, QueueSize::Bdp(Duration::from_millis(40)));
    }

    #[test]
    fn losses_come_one_by_one_in_bursts_or_from_bits() {
        let loss = |options: &[&str]| specs(options).0.loss;
        let bursts = LossSpec::GilbertElliott(GilbertElliottSpec::bursts(0.01, 4.0));
        assert_eq!(loss(&["--loss", "1%", "--loss-burst", "4"]), Some(bursts));
        assert_eq!(loss(&["--bit-errors", "1e-9"]), Some(LossSpec::BitErrors(1e-9)));
        assert_eq!(loss(&["--bit-errors", "1e-9", "--up", "loss=1%"]), Some(LossSpec::Bernoulli(0.01)));
        assert_eq!(loss(&["--loss", "1%", "--up", "bit-errors=1e-9"]), Some(LossSpec::BitErrors(1e-9)));
        assert_eq!(loss(&["--loss-burst", "4"]), None);
        for refused in [&["--loss", "1%", "--bit-errors", "1e-9"][..], &["--loss-burst", "0.5"], &["--loss-burst", "x"]]
        {
            assert!(Only::try_parse_from(["x"].iter().chain(refused)).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn a_discipline_knows_the_rate_and_a_policer_stands_beside_it() {
        let (up, down) =
            specs(&["--rate", "1gbit", "--discipline", "red", "--down", "discipline=codel", "--police", "1gbit"]);
        let Discipline::Red(red) = up.discipline else { panic!("{:?}", up.discipline) };
        assert!(red.min > 200.0, "{red:?}");
        assert_eq!(path_record(&down)["discipline"], "codel");
        assert_eq!(path_record(&up)["policer"]["burst_bytes"], 1_250_000);
        assert_eq!(specs(&[]).0, PathSpec { seed: 1, ..PathSpec::default() });
    }

    #[test]
    fn one_direction_may_drop_large_packets() {
        let (up, down) = specs(&["--up", "largest-packet=1300,3s,loss=1%"]);
        let narrow = Mtu::new(u32::MAX).then(Duration::from_secs(3), 1_300);
        assert_eq!((up.mtu.clone(), down.mtu), (Some(narrow), None));
        assert_eq!(path_record(&up)["largest_packet_bytes"], 1_300);
    }
}
