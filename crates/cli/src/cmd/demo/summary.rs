//! The demo's last words: what was reached, against what the link can do.

use std::time::Duration;

use farhaul_units::Rate;
use serde_json::Value;

use super::tcp::Tcp;
use super::testbed::Carrier;
use crate::limit::share;
use crate::output::human::{Style, count, digits, percent, plural, time};

/// Payload of a full UDT4 packet, and what it takes on a link: IP, UDP and UDT headers.
const PAYLOAD: u64 = 1456;
const PACKET: u64 = 1500;
/// Segment of a TCP flow on the same link, for the comparison by formula.
const TCP_SEGMENT_BITS: f64 = 1448.0 * 8.0;
/// Round trips' worth of the link's capacity that a file needs before a rate in the long run says anything about it.
const STEADY: u32 = 10;
/// Marks of the curve, lowest first, and how many at most.
const MARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const WIDTH: usize = 48;

/// Everything that was measured.
pub(super) struct DemoResult {
    pub(super) size: u64,
    pub(super) rate: Rate,
    pub(super) rtt: Duration,
    pub(super) loss: f64,
    /// The last record of the sending process.
    pub(super) copy: Value,
    /// The last record of the receiving process.
    pub(super) serve: Value,
    pub(super) carrier: Carrier,
    /// Goodput of each interval, bits per second.
    pub(super) curve: Vec<u64>,
    pub(super) digest: blake3::Hash,
    /// The kernel's TCP, where it could be run.
    pub(super) tcp: Option<Tcp>,
}

impl DemoResult {
    /// None where the receiver saw no time pass.
    fn goodput(&self) -> Option<u64> {
        self.serve["goodput_bps"].as_u64()
    }

    fn seconds(&self) -> f64 {
        self.copy["seconds"].as_f64().unwrap_or(0.0)
    }

    /// What the link can carry beside headers.
    fn capacity(&self) -> Rate {
        Rate::from_bits_per_second(self.rate.bits_per_second() / PACKET * PAYLOAD)
    }

    /// Goodput as a share of that.
    pub(super) fn capacity_share(&self) -> Option<f64> {
        self.goodput().map(|goodput| share(goodput as f64, self.capacity().bits_per_second() as f64))
    }

    /// Nothing can be faster: a round trip to connect, one for the data and its confirmation, and the bits themselves.
    pub(super) fn ideal(&self) -> Duration {
        self.rtt * 2 + self.capacity().time_for(self.size)
    }

    /// The whole story for people.
    pub(super) fn lines(&self, style: Style) -> Vec<String> {
        let row = |name: &str, figure: &str, words: &str| {
            format!("  {name:<12}{}  {words}", style.bold(&format!("{figure:<13}")))
        };
        let (copy, serve) = (&self.copy, &self.serve);
        let micros = |field: &str| time(Duration::from_micros(copy["rtt_us"][field].as_u64().unwrap_or(0)));
        let (sent, again) =
            (copy["packets_sent"].as_u64().unwrap_or(0), copy["packets_retransmitted"].as_u64().unwrap_or(0));
        let ideal = self.ideal();
        let mut lines = vec![String::new()];
        lines.push(match self.goodput() {
            Some(goodput) => row(
                "goodput",
                &Rate::from_bits_per_second(goodput).to_string(),
                &format!(
                    "{} of the {} that the link carries beside headers",
                    percent(self.capacity_share().unwrap_or(0.0)),
                    self.capacity()
                ),
            ),
            None => row("goodput", "unknown", "everything came at one moment"),
        });
        if self.curve.len() > 2 {
            lines.push(row("over time", "", &format!("{}  start to end", style.green(&self.marks(&self.curve)))));
        }
        lines.push(row(
            "time",
            &time(Duration::from_secs_f64(self.seconds())),
            &format!(
                "{} times the ideal of {}: two round trips and the bits",
                digits(self.seconds() / ideal.as_secs_f64()),
                time(ideal)
            ),
        ));
        lines.push(row(
            "round trip",
            &micros("mean"),
            &format!("on average; {} at least, {} at the 99th percentile", micros("min"), micros("p99")),
        ));
        lines.push(row(
            "sent again",
            &percent(share(again as f64, sent as f64)),
            &format!(
                "{} of {}; the link lost {}, its queue refused {}",
                count(again),
                plural(sent, "packet"),
                count(self.carrier.up.dropped_loss.packets),
                count(self.carrier.up.dropped_queue.packets)
            ),
        ));
        lines.push(row(
            "processor",
            &self.cores(copy),
            &format!("sender; receiver {}; {} {}", self.cores(serve), self.carrier.name, time(self.carrier.cpu)),
        ));
        let limit = self.limit().unwrap_or_else(|| ("unknown".into(), "too short to say".into()));
        lines.push(row("limited by", &limit.0, &limit.1));
        lines.push(row(
            "verified",
            "yes",
            &format!("BLAKE3 {}… of the file and of the copy, read back from the disk", &self.digest.to_hex()[..16]),
        ));
        lines.push(carrier_row(&self.carrier, row, style));
        match &self.tcp {
            Some(tcp) => lines.extend(self.tcp_rows(tcp, row, style)),
            None => lines.extend(self.formula().map(|(figure, words)| row("TCP", &figure, &words))),
        }
        lines.push(String::new());
        lines.push(style.dim(
            "  Not encrypted: plain UDT4. Between two hosts: `farhaul serve` on one, `farhaul copy` on the other.",
        ));
        lines
    }

    /// Processor time, and how many cores that kept busy.
    fn cores(&self, record: &Value) -> String {
        let cpu = &record["cpu_seconds"];
        let seconds = cpu["user"].as_f64().unwrap_or(0.0) + cpu["system"].as_f64().unwrap_or(0.0);
        format!("{} s ({} %)", digits(seconds), digits(100.0 * seconds / self.seconds().max(f64::MIN_POSITIVE)))
    }

    fn limit(&self) -> Option<(String, String)> {
        let limit = self.copy["limited_by"].as_str()?;
        let share = self.copy["limited_by_share"].as_f64().unwrap_or(0.0);
        Some((limit.replace('_', " "), format!("{} of the time", percent(share))))
    }

    /// What the kernel's TCP made of the same.
    fn tcp_rows(&self, tcp: &Tcp, row: impl Fn(&str, &str, &str) -> String + Copy, style: Style) -> Vec<String> {
        let figure = tcp.goodput.map_or("unknown".into(), |goodput| Rate::from_bits_per_second(goodput).to_string());
        let took = time(Duration::from_secs_f64(tcp.seconds));
        let fate = match tcp.complete {
            true => format!("{took} for the same file, {} times Farhaul's", digits(tcp.seconds / self.seconds())),
            false => {
                format!("stopped after {took} with {} of the file", percent(share(tcp.bytes as f64, self.size as f64)))
            }
        };
        let (again, sent) = tcp.segments;
        let buffers = tcp.buffer.map_or(String::new(), |buffer| format!("; buffers up to {buffer}"));
        let again = percent(share(again as f64, sent as f64));
        let details = format!("{} of this kernel, on the same path; {again} sent again{buffers}", tcp.controller);
        let mut rows = vec![row("kernel TCP", &figure, &fate)];
        if tcp.curve.len() > 2 {
            rows.push(row("over time", "", &format!("{}  start to end", style.dim(&self.marks(&tcp.curve)))));
        }
        rows.push(row("", "", &details));
        if !tcp.carrier.valid {
            rows.push(carrier_row(&tcp.carrier, row, style));
        }
        rows
    }

    /// What one flow of classic TCP would reach, by the formula of Mathis et al. (1997): MSS/RTT · √(3/2)/√loss.
    fn formula(&self) -> Option<(String, String)> {
        // Below that, the formula's steady state is never reached: the round trips of the beginning are all there is.
        if self.loss <= 0.0 || self.rtt.is_zero() || self.capacity().time_for(self.size) < self.rtt * STEADY {
            return None;
        }
        let bits = TCP_SEGMENT_BITS / self.rtt.as_secs_f64() * (1.5 / self.loss).sqrt();
        let bits = bits.min(self.capacity().bits_per_second() as f64);
        let reno = Rate::from_bits_per_second(bits as u64);
        let words = format!(
            "by formula, for one Reno flow at this loss and round trip, after its start: {} (Mathis et al. 1997)",
            time(reno.time_for(self.size) + self.rtt * 2)
        );
        Some((reno.to_string(), words))
    }

    /// The goodput over time as a row of marks, against the link's capacity.
    fn marks(&self, curve: &[u64]) -> String {
        let per_mark = curve.len().div_ceil(WIDTH).max(1);
        let top = self.capacity().bits_per_second().max(1) as f64;
        curve
            .chunks(per_mark)
            .map(|part| {
                let mean = part.iter().sum::<u64>() as f64 / part.len() as f64;
                MARKS[((mean / top * MARKS.len() as f64) as usize).min(MARKS.len() - 1)]
            })
            .collect()
    }
}

/// Whether whoever made the path was the limit.
fn carrier_row(carrier: &Carrier, row: impl Fn(&str, &str, &str) -> String, style: Style) -> String {
    if carrier.valid {
        let words = format!(
            "half of the packets up to {} late, 99 % up to {}: the figures are the link's",
            time(carrier.lateness.p50),
            time(carrier.lateness.p99)
        );
        return row(carrier.name, "kept up", &words);
    }
    style.yellow(&row(carrier.name, "fell behind", &carrier.verdict))
}
