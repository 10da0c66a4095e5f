//! Values of path options: queues, disciplines, policers, traces.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::str::FromStr;

use clap::ValueEnum;
use farhaul_netem::{CoDelSpec, DeliveryTrace, Discipline, Mtu, PolicerSpec, QueueSize, RedSpec};
use farhaul_transfer::internal::lists;
use farhaul_units::{ByteSize, Duration, Rate, parse_duration};

use crate::values::some_rate;

/// Default burst of a policer, as a time at its rate: about one round of common schedulers.
const POLICED_BURST: Duration = Duration::from_millis(10);
/// Least default burst in bytes: ten full packets.
const LEAST_BURST: u64 = 15_000;
/// Largest trace file, in bytes.
const MAX_TRACE_BYTES: u64 = 400_000_000;

/// Size of a queue. A bare number counts packets.
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

/// Drop policy of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DisciplineName {
    /// Arriving packets, when the queue is full
    DropTail,
    /// The oldest packet, when another arrives at a full queue
    DropHead,
    /// Random early detection, with thresholds set for the rate
    Red,
    /// Controlled delay (CoDel, RFC 8289), with a target of 5 ms
    Codel,
}

impl DisciplineName {
    /// The discipline before a link of `rate`.
    pub(super) fn at(self, rate: Option<Rate>) -> Discipline {
        match self {
            Self::DropTail => Discipline::DropTail,
            Self::DropHead => Discipline::DropHead,
            Self::Red => Discipline::Red(rate.map_or_else(RedSpec::default, RedSpec::for_rate)),
            Self::Codel => Discipline::CoDel(CoDelSpec::default()),
        }
    }
}

/// A policer: `100mbit`, or `100mbit,64KiB` with its burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policed(pub(super) PolicerSpec);

impl FromStr for Policed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rate, burst) = text.split_once(',').map_or((text, None), |(rate, burst)| (rate, Some(burst)));
        let rate = some_rate(rate)?;
        let burst = match burst {
            Some(burst) => burst.parse().map_err(|error: farhaul_units::ParseQuantityError| error.to_string())?,
            None => ByteSize(rate.bytes_in(POLICED_BURST).max(LEAST_BURST)),
        };
        Ok(Self(PolicerSpec { rate, burst }))
    }
}

/// The largest packet that a path carries: `1300`, or `1300,3s` for one that carries all packets until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LargestPacket {
    bytes: u32,
    since: Duration,
}

impl LargestPacket {
    /// The link with this limit.
    pub(super) fn mtu(self) -> Mtu {
        if self.since.is_zero() { Mtu::new(self.bytes) } else { Mtu::new(u32::MAX).then(self.since, self.bytes) }
    }
}

impl FromStr for LargestPacket {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (bytes, since) = text.split_once(',').map_or((text, None), |(bytes, since)| (bytes, Some(since)));
        let bytes = bytes.parse().map_err(|_| format!("'{bytes}' is no whole number of bytes"))?;
        let since = since.map(parse_duration).transpose().map_err(|error| error.to_string())?;
        Ok(Self { bytes, since: since.unwrap_or_default() })
    }
}

/// A delivery trace and its file.
#[derive(Clone)]
pub(super) struct TraceFile {
    pub(super) trace: DeliveryTrace,
    name: String,
}

impl FromStr for TraceFile {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut text = Vec::new();
        let file = File::open(name).map_err(|error| error.to_string())?;
        let read = file.take(MAX_TRACE_BYTES + 1).read_to_end(&mut text).map_err(|error| error.to_string())?;
        if read as u64 > MAX_TRACE_BYTES {
            return Err(format!("longer than {MAX_TRACE_BYTES} bytes, the limit for a trace"));
        }
        let text = lists::utf8(&text).map_err(|error| error.to_string())?;
        let trace = text.parse().map_err(|error: farhaul_netem::ParseTraceError| error.to_string())?;
        Ok(Self { trace, name: name.to_owned() })
    }
}

impl fmt::Debug for TraceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} opportunities)", self.name, self.trace.opportunities())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_count_packets_unless_they_say_otherwise() {
        assert_eq!("1000".parse(), Ok(Queue::Size(QueueSize::Packets(1_000))));
        assert_eq!("1000packets".parse(), Ok(Queue::Size(QueueSize::Packets(1_000))));
        assert_eq!("4MB".parse(), Ok(Queue::Size(QueueSize::Bytes(ByteSize(4_000_000)))));
        for text in ["1.5", "-1", "1000 furlongs"] {
            assert!(text.parse::<Queue>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_largest_packet_holds_at_once_or_from_a_time_on() {
        let mtu = |text: &str| text.parse::<LargestPacket>().map(LargestPacket::mtu);
        assert_eq!(mtu("1300"), Ok(Mtu::new(1_300)));
        assert_eq!(mtu("1300,3s"), Ok(Mtu::new(u32::MAX).then(Duration::from_secs(3), 1_300)));
        for text in ["", "1.5kB", "1300,", "1300,soon"] {
            assert!(mtu(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_policer_has_a_burst_of_ten_milliseconds_unless_told() {
        let policed =
            |text: &str| text.parse::<Policed>().map(|Policed(spec)| (spec.rate.bits_per_second(), spec.burst));
        assert_eq!(policed("100mbit"), Ok((100_000_000, ByteSize(125_000))));
        assert_eq!(policed("1mbit"), Ok((1_000_000, ByteSize(15_000))));
        assert_eq!(policed("100mbit,64KiB"), Ok((100_000_000, ByteSize(65_536))));
        assert!(policed("0bit").is_err() && policed("100mbit,").is_err() && policed("100").is_err());
    }

    #[test]
    fn a_file_that_is_no_trace_is_refused_with_its_line() {
        let file = std::env::temp_dir().join(format!("farhaul-trace-{}", std::process::id()));
        let read = |content: &str| {
            std::fs::write(&file, content).unwrap();
            file.to_str().unwrap().parse::<TraceFile>()
        };
        let (good, bad) = (read("1\n2\n"), read("1\nx\n"));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(good.unwrap().trace.opportunities(), 2);
        assert!(bad.unwrap_err().contains("line 2"));
        assert!("/no/such/file".parse::<TraceFile>().is_err());
    }
}
