//! The demo's report: the results against the capacity of the link.

use std::time::Duration;

use farhaul_transfer::internal::limit::share;
use farhaul_units::Rate;
use serde_json::Value;

use super::tcp::Tcp;
use super::testbed::Carrier;
use crate::output::human::{Style, count, digits, percent, plural, time};

/// Payload of a full UDT4 packet, and its size with IP, UDP and UDT headers, in bytes.
const PAYLOAD: u64 = 1456;
const PACKET: u64 = 1500;
/// Segment of a TCP flow on the same link, in bits, for the formula.
const TCP_SEGMENT_BITS: f64 = 1448.0 * 8.0;
/// Least file for the formula, in RTTs at the link's capacity. A shorter flow has no steady state.
const STEADY: u32 = 10;
/// Marks of the curve, lowest first, and their largest number.
const MARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const WIDTH: usize = 48;

/// All measurements of a demo.
pub(super) struct DemoResult {
    pub(super) size: u64,
    pub(super) rate: Rate,
    pub(super) rtt: Duration,
    pub(super) loss: f64,
    /// The `end` record of the sending process.
    pub(super) copy: Value,
    /// The `end` record of the receiving process.
    pub(super) serve: Value,
    pub(super) carrier: Carrier,
    /// Goodput of each interval, bits per second.
    pub(super) curve: Vec<u64>,
    pub(super) digest: blake3::Hash,
    /// The kernel's TCP, if the demo ran it.
    pub(super) tcp: Option<Tcp>,
}

impl DemoResult {
    /// Goodput at the receiver, in bit/s; `None` if no time passed there.
    fn goodput(&self) -> Option<u64> {
        self.serve["goodput_bps"].as_u64()
    }

    fn seconds(&self) -> f64 {
        self.copy["seconds"].as_f64().unwrap_or(0.0)
    }

    /// Capacity of the link for payload.
    fn capacity(&self) -> Rate {
        Rate::from_bits_per_second(self.rate.bits_per_second() / PACKET * PAYLOAD)
    }

    /// Goodput as a share of the capacity for payload.
    pub(super) fn capacity_share(&self) -> Option<f64> {
        self.goodput().map(|goodput| share(goodput as f64, self.capacity().bits_per_second() as f64))
    }

    /// Least possible time: one RTT to connect, one for the data and its confirmation, and the transmission.
    pub(super) fn ideal(&self) -> Duration {
        self.rtt * 2 + self.capacity().time_for(self.size)
    }

    /// The report for people.
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
                    "{} of the {} of payload that the link can carry",
                    percent(self.capacity_share().unwrap_or(0.0)),
                    self.capacity()
                ),
            ),
            None => row("goodput", "unknown", "all data arrived at once"),
        });
        if self.curve.len() > 2 {
            lines.push(row("over time", "", &format!("{}  start to end", style.green(&self.marks(&self.curve)))));
        }
        lines.push(row(
            "time",
            &time(Duration::from_secs_f64(self.seconds())),
            &format!(
                "{} times the ideal of {}: two RTTs and the transmission",
                digits(self.seconds() / ideal.as_secs_f64()),
                time(ideal)
            ),
        ));
        lines.push(row(
            "RTT",
            &micros("mean"),
            &format!("mean; minimum {}, 99th percentile {}", micros("min"), micros("p99")),
        ));
        lines.push(row(
            "retransmits",
            &percent(share(again as f64, sent as f64)),
            &format!(
                "{} of {}; the link lost {}, its queue dropped {}",
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
        let limit = self.limit().unwrap_or_else(|| ("unknown".into(), "too short for a limit".into()));
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
            "  Encrypted, as every copy. Between two hosts: `farhaul serve` on one, `farhaul copy` on the other.",
        ));
        lines
    }

    /// Processor time, and the load in percent of a core.
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

    /// Results of the kernel's TCP with the same file.
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
        let details = format!("{} of this kernel, on the same path; {again} retransmitted{buffers}", tcp.controller);
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

    /// Rate of one Reno flow by the formula of Mathis et al. (1997): MSS/RTT · √(3/2)/√loss.
    fn formula(&self) -> Option<(String, String)> {
        // A shorter flow never leaves slow start, which the formula does not cover.
        if self.loss <= 0.0 || self.rtt.is_zero() || self.capacity().time_for(self.size) < self.rtt * STEADY {
            return None;
        }
        let bits = TCP_SEGMENT_BITS / self.rtt.as_secs_f64() * (1.5 / self.loss).sqrt();
        let bits = bits.min(self.capacity().bits_per_second() as f64);
        let reno = Rate::from_bits_per_second(bits as u64);
        let words = format!(
            "by formula, for one Reno flow at this loss and RTT, after slow start: {} (Mathis et al. 1997)",
            time(reno.time_for(self.size) + self.rtt * 2)
        );
        Some((reno.to_string(), words))
    }

    /// The goodput over time as a row of marks, relative to the link's capacity.
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

/// Whether the emulator or the relay kept up.
fn carrier_row(carrier: &Carrier, row: impl Fn(&str, &str, &str) -> String, style: Style) -> String {
    if carrier.valid {
        let words = format!(
            "half of the packets up to {} late, 99 % up to {}: the results are the link's",
            time(carrier.lateness.p50),
            time(carrier.lateness.p99)
        );
        return row(carrier.name, "kept up", &words);
    }
    style.yellow(&row(carrier.name, "fell behind", &carrier.verdict))
}
