//! `stream`: a stable control stream, whose goodput settles at a target.

use std::time::Duration;

use clap::Args;
use farhaul::probe::{StableConfig, StableFigures, StableStream};
use farhaul_transfer::internal::control::delay_record;
use farhaul_transfer::internal::limit::share;
use farhaul_transfer::internal::report::{bits_per_second, micros};
use farhaul_units::{Instant, Rate};
use serde_json::{Value, json};

use super::Context;
use super::measured::{Port, fault_of_stream};
use crate::exit::{Code, Fault};
use crate::options::Probing;
use crate::output::human::{count, percent, time};
use crate::values::{seconds, some_rate, some_time};

/// A stable stream looks at the clock, at signals and at its convergence so often.
const SLICE: Duration = Duration::from_millis(50);
/// After the end, late acknowledgements are awaited for twice the longest round trip, within these bounds.
const LEAST_DRAIN: Duration = Duration::from_millis(20);
const MOST_DRAIN: Duration = Duration::from_secs(1);

/// Send a stream whose goodput stays at a target
///
/// For control loops: the goodput at the other end settles at --rate within seconds, whatever share of the packets is
/// lost, and stays there. The stream shows the delay and the jitter that such a loop would see. It is encrypted, and the
/// remote end admits this user's key and those in its authorized_keys. It runs until stopped:
///
///     farhaul bench --listen :9000
///     farhaul stream --connect host:9000 --rate 10mbit
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct StreamArgs {
    /// Goodput to hold: payload that arrives, 10mbit
    #[arg(long, value_name = "RATE", value_parser = some_rate)]
    rate: Rate,
    /// Datagrams in a burst (W_c)
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    window: u32,
    /// First time from burst to burst (T_s); the stream adapts it
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = some_time)]
    sleep: Duration,
    /// Spread the datagrams of a burst evenly over the time between bursts
    #[arg(long)]
    spaced: bool,
    /// Stop after this many seconds [default: when stopped]
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<Duration>,
    /// Report every S seconds; 0 for never
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    interval: Duration,
    /// Give up after the peer has been silent this long
    #[arg(long, env = "FARHAUL_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = some_time)]
    timeout: Duration,
    #[command(flatten)]
    pub(crate) probing: Probing,
}

pub(crate) fn run(args: &StreamArgs, context: &Context) -> Result<(), Fault> {
    let mut port = Port::open(&args.probing, context, "stream", args.settings())?;
    let config = StableConfig {
        datagram: port.datagram,
        window: args.window,
        spaced: args.spaced,
        first_sleep: args.sleep,
        ..StableConfig::new(args.rate)
    };
    let stream = port.socket.stable(config).map_err(|error| fault_of_stream(error, port.peer))?;
    port.output.print_line(&format!("sending to {} ({}); Ctrl-C stops", port.peer, port.protected()));
    let now = port.socket.now();
    let mut running = Running {
        args,
        bits: u64::from(port.datagram) * 8,
        begun: now,
        interval: Interval::at(now),
        settled: None,
        stream,
    };
    let result = running.run(&mut port);
    let ended = port.socket.now();
    running.report_rest(&port, ended);
    running.drain(&mut port);
    running.conclude(&port, ended, result)
}

impl StreamArgs {
    fn settings(&self) -> Value {
        json!({
            "rate_bps": self.rate.bits_per_second(),
            "window_datagrams": self.window,
            "first_sleep_us": micros(self.sleep),
            "spaced": self.spaced,
            "seconds": self.seconds.map(|seconds| seconds.as_secs_f64()),
            "interval_seconds": self.interval.as_secs_f64(),
            "timeout_seconds": self.timeout.as_secs_f64(),
        })
    }
}

struct Running<'a> {
    args: &'a StreamArgs,
    /// Bits of payload in a datagram.
    bits: u64,
    begun: Instant,
    interval: Interval,
    /// When the goodput reached the target for the last time, and the datagrams acknowledged until then.
    settled: Option<(Instant, u64)>,
    stream: StableStream,
}

/// The present interval: its begin, and the counts then.
struct Interval {
    since: Instant,
    sent: u64,
    acknowledged: u64,
}

impl Interval {
    const fn at(since: Instant) -> Self {
        Self { since, sent: 0, acknowledged: 0 }
    }
}

impl Running<'_> {
    fn run(&mut self, port: &mut Port<'_>) -> Result<(), Fault> {
        let mut heard = (self.begun, 0);
        loop {
            let now = port.socket.now();
            let left = self.args.seconds.map(|seconds| (self.begun + seconds).saturating_since(now));
            if left == Some(Duration::ZERO) {
                return Ok(());
            }
            let slice = left.map_or(SLICE, |left| left.min(SLICE));
            port.socket.run(&mut self.stream, slice).map_err(|error| fault_of_stream(error, port.peer))?;
            let now = port.socket.now();
            let figures = self.stream.figures(now);
            self.note_convergence(&figures, now);
            if figures.acknowledged > heard.1 {
                heard = (now, figures.acknowledged);
            } else if figures.acknowledged == 0 && self.stream.is_alone(now) {
                return Err(port.nobody());
            } else if now - heard.0 >= self.args.timeout.max(figures.sleep * 2) {
                let silence = format!(
                    "nothing heard from {} for {}: it or the network is down (--timeout waits longer)",
                    port.peer,
                    time(now - heard.0)
                );
                return Err(Fault::new(Code::PeerLost, silence));
            }
            if !self.args.interval.is_zero() && now - self.interval.since >= self.args.interval {
                self.report(port, &figures, now);
            }
            if let Some(fault) = port.context.interrupt.fault() {
                return Err(fault);
            }
        }
    }

    /// Reports the last interval, unless it is so short that it is noise.
    fn report_rest(&mut self, port: &Port<'_>, now: Instant) {
        let figures = self.stream.figures(now);
        let every = self.args.interval;
        if figures.acknowledged > 0 && !every.is_zero() && now - self.interval.since >= every / 10 {
            self.report(port, &figures, now);
        }
    }

    /// Takes the acknowledgements that are still in flight, so that they do not count as lost.
    fn drain(&mut self, port: &mut Port<'_>) {
        self.stream.stop();
        let last = self.stream.delays().quantile(1.0).unwrap_or_default();
        // A network that fails now changes no figure of the stream.
        let _ = port.socket.drain(&mut self.stream, (last * 2).clamp(LEAST_DRAIN, MOST_DRAIN));
    }

    fn note_convergence(&mut self, figures: &StableFigures, now: Instant) {
        if figures.converged_after.is_none() {
            self.settled = None;
        } else if self.settled.is_none() {
            self.settled = Some((now, figures.acknowledged));
        }
    }

    fn report(&mut self, port: &Port<'_>, figures: &StableFigures, now: Instant) {
        let delays = self.stream.take_delays();
        let acknowledged = figures.acknowledged - self.interval.acknowledged;
        let [from, to] = [self.interval.since, now].map(|at| (at - self.begun).as_secs_f64());
        port.output.print_line(&format!(
            "{from:>5.1} to {to:>5.1} s   goodput {:>11}   source {:>11}   T_s {:>7}   RTT {:>7} ± {:>6}   jitter {:>6}",
            figures.goodput.to_string(),
            figures.rate.to_string(),
            time(figures.sleep),
            time(delays.mean()),
            time(delays.deviation()),
            time(figures.jitter),
        ));
        let record = json!({
            "event": "interval",
            "start_seconds": from,
            "end_seconds": to,
            "bytes": acknowledged * self.bits / 8,
            "bytes_total": figures.acknowledged * self.bits / 8,
            "goodput_bps": figures.goodput.bits_per_second(),
            "rate_bps": figures.rate.bits_per_second(),
            "sleep_us": micros(figures.sleep),
            "steps": figures.steps,
            "datagrams_sent": figures.sent - self.interval.sent,
            "datagrams_acknowledged": acknowledged,
            "delay_us": delay_record(&delays),
            "jitter_us": micros(figures.jitter),
            "converged": figures.converged_after.is_some(),
        });
        port.output.record_value(&record);
        self.interval = Interval { since: now, sent: figures.sent, acknowledged: figures.acknowledged };
    }

    fn conclude(&self, port: &Port<'_>, now: Instant, result: Result<(), Fault>) -> Result<(), Fault> {
        let figures = self.stream.figures(now);
        let goodput = bits_per_second(figures.acknowledged * self.bits / 8, now - self.begun);
        let settled = self.settled.filter(|(since, _)| now > *since);
        let settled = settled.map(|(since, acknowledged)| {
            bits_per_second((figures.acknowledged - acknowledged) * self.bits / 8, now - since)
        });
        let delays = self.stream.delays();
        if figures.acknowledged > 0 {
            port.output.print_line(&self.summary(port, &figures, settled, now - self.begun));
            port.print_protection();
        }
        let end = json!({
            "seconds": (now - self.begun).as_secs_f64(),
            "bytes": figures.acknowledged * self.bits / 8,
            "target_bps": self.args.rate.bits_per_second(),
            "goodput_bps": goodput,
            "settled_goodput_bps": settled,
            "converged_after_seconds": figures.converged_after.map(|time| time.as_secs_f64()),
            "datagrams_sent": figures.sent,
            "datagrams_arrived": figures.arrived,
            "datagrams_acknowledged": figures.acknowledged,
            "sleep_us": micros(figures.sleep),
            "delay_us": delay_record(delays),
            "jitter_us": micros(figures.jitter),
        });
        port.conclude(end, result)
    }

    fn summary(&self, port: &Port<'_>, figures: &StableFigures, settled: Option<u64>, elapsed: Duration) -> String {
        let style = port.output.style();
        let delays = self.stream.delays();
        let quantile = |part| time(delays.quantile(part).unwrap_or_default());
        let goodput = match (settled, figures.converged_after) {
            (Some(goodput), Some(after)) => format!(
                "{} at the target of {} from {} on",
                style.bold(&Rate::from_bits_per_second(goodput).to_string()),
                self.args.rate,
                time(after)
            ),
            _ => format!("{} and not settled at the target of {}", figures.goodput, self.args.rate),
        };
        format!(
            "{} {goodput}, in {}\n  {} datagrams sent, {} acknowledged ({} lost either way), T_s {}\n  round trip mean {}, \
             deviation {} ({} of the mean), 99th percentile {}; one-way jitter {}",
            style.green("stream:"),
            time(elapsed),
            count(figures.sent),
            count(figures.acknowledged),
            percent(share(figures.sent.saturating_sub(figures.acknowledged) as f64, figures.sent as f64)),
            time(figures.sleep),
            time(delays.mean()),
            time(delays.deviation()),
            percent(delays.jitter()),
            quantile(0.99),
            time(figures.jitter),
        )
    }
}
