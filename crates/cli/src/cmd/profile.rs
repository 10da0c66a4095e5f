//! `profile`: goodput and loss of a path over bursts W_c and sleeps T_s, and the best rate.

mod files;
mod jitter;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use farhaul::probe::{self, BlasterConfig, BlasterFigures, CachedRate, Profile, Search, Shape, grid};
use farhaul_transfer::internal::report::micros;
use farhaul_units::{Rate, parse_duration};
use serde_json::{Value, json};

use super::Context;
use super::drawing::{self, Format};
use super::measured::Port;
use crate::exit::Fault;
use crate::options::Probing;
use crate::output::human::{plural, time};
use crate::output::progress;
use crate::values::seconds;

/// Seconds of a point.
const POINT: Duration = Duration::from_secs(1);
/// Time of a point beside its seconds: the questions for the counts, on a path with a short round trip.
const QUESTIONS: Duration = Duration::from_millis(120);

/// Measure goodput and loss of a path over the sending rate
///
/// Sends bursts of W_c datagrams every T_s, for a grid of both, and reports which rate arrives best. Without options it
/// finds the grid itself. The other host runs `farhaul bench --listen`, which admits this user's key and those in its
/// authorized_keys. It fills the path again and again: on a shared path, others notice.
///
///     farhaul profile --connect host:9000 --out profile
///     farhaul profile --connect host:9000 --jitter
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct ProfileArgs {
    /// Datagrams in a burst (W_c), a list: 1,2,5,10 [default: found by a search]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=65_535))]
    window: Vec<u32>,
    /// Times from burst to burst (T_s), a list: 100us,1ms [default: found by a search]
    #[arg(long, value_name = "TIME,…", value_delimiter = ',', value_parser = pause)]
    sleep: Vec<Duration>,
    /// Seconds of each point [default: 1, with --jitter 10]
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<Duration>,
    /// Repeats of the whole grid, for ranges
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    repeat: u32,
    /// Spread the datagrams of a burst evenly over the time between bursts
    #[arg(long)]
    spaced: bool,
    /// Measure the delays of messages of 10 kB instead
    #[arg(long, conflicts_with_all = ["window", "repeat", "spaced"])]
    jitter: bool,
    /// Write CSV, JSON and pictures into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Formats of the pictures; pdf and png need rsvg-convert
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FORMAT,…", default_value = "svg", requires = "out")]
    format: Vec<Format>,
    #[command(flatten)]
    pub(crate) probing: Probing,
}

/// Longest T_s: a grid of longer ones never ends.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Parses T_s. Zero sends without a pause, and needs no unit.
fn pause(text: &str) -> Result<Duration, String> {
    match text.trim() {
        "0" => Ok(Duration::ZERO),
        text => match parse_duration(text).map_err(|error| error.to_string())? {
            pause if pause > LONGEST_PAUSE => Err(format!("a pause is at most {}", time(LONGEST_PAUSE))),
            pause => Ok(pause),
        },
    }
}

pub(crate) fn run(args: &ProfileArgs, context: &Context) -> Result<(), Fault> {
    // Before anything is measured that could then not be written.
    if let Some(directory) = &args.out {
        drawing::possible(&args.format)?;
        files::prepare(directory)?;
    }
    let port = Port::open(&args.probing, context, "profile", args.settings())?;
    if args.jitter {
        return jitter::run(args, port);
    }
    let mut sweep = Sweep { args, port, capacity: Rate::ZERO, profile: Profile::default() };
    let swept = sweep.run();
    let cached = if swept.is_ok() { sweep.remember() } else { None };
    let written = match &args.out {
        Some(directory) if !sweep.profile.points.is_empty() => {
            files::write(directory, &args.format, &sweep.profile, &sweep.record())
        }
        _ => Ok(()),
    };
    if !sweep.profile.points.is_empty() {
        report::print(&sweep, cached.as_deref());
        sweep.port.print_protection();
    }
    let mut end = sweep.record();
    end["cached"] = json!(cached);
    sweep.port.conclude(end, swept.and(written))
}

impl ProfileArgs {
    fn settings(&self) -> Value {
        json!({
            "window_datagrams": self.window,
            "sleep_us": self.sleep.iter().map(|sleep| micros(*sleep)).collect::<Vec<_>>(),
            "seconds": self.seconds.map(|seconds| seconds.as_secs_f64()),
            "repeat": self.repeat,
            "spaced": self.spaced,
            "jitter": self.jitter,
            "out": self.out.as_ref().map(|out| out.to_string_lossy().into_owned()),
        })
    }
}

/// A profile in progress.
struct Sweep<'a> {
    args: &'a ProfileArgs,
    port: Port<'a>,
    /// The answers of the search; zero without a search.
    capacity: Rate,
    profile: Profile,
}

impl Sweep<'_> {
    fn run(&mut self) -> Result<(), Fault> {
        if self.args.window.is_empty() || self.args.sleep.is_empty() {
            self.search()?;
        }
        let points = grid(self.port.datagram, self.capacity, &self.args.window, &self.args.sleep);
        let length = self.args.seconds.unwrap_or(POINT);
        let runs = points.len() as u64 * u64::from(self.args.repeat);
        self.port.output.print_line(&format!(
            "measuring {}, {} each: about {}",
            plural(points.len() as u64, "point"),
            plural(self.args.repeat.into(), "run"),
            time((length + QUESTIONS) * u32::try_from(runs).unwrap_or(u32::MAX)),
        ));
        let bar = progress::runs();
        bar.set_length(runs);
        self.port.output.attach(bar.clone());
        // Each repeat covers the whole grid, so that a drift of the path shows as a range and not as a slope.
        for repeat in 1..=self.args.repeat {
            for &(window, sleep) in &points {
                let config = self.config(window, sleep, length);
                let figures = self.port.measure(config)?;
                self.record_run(repeat, (window, sleep), &figures);
                self.profile.add(window, sleep, figures);
                bar.inc(1);
            }
        }
        self.port.output.detach();
        Ok(())
    }

    fn config(&self, window: u32, sleep: Duration, time: Duration) -> BlasterConfig {
        BlasterConfig { datagram: self.port.datagram, window, sleep, spaced: self.args.spaced, messages: false, time }
    }

    /// Finds the capacity by doubling the rate.
    fn search(&mut self) -> Result<(), Fault> {
        let line = progress::line();
        self.port.output.attach(line.clone());
        let mut search = Search::new(self.port.datagram);
        while let Some(step) = search.step() {
            let figures = self.port.measure(step)?;
            search.take(&figures);
            line.set_message(format!("looking for the capacity: {} arrives", search.capacity()));
        }
        self.port.output.detach();
        self.capacity = search.capacity();
        self.port.output.print_line(&format!("the path carries about {} of payload", self.capacity));
        Ok(())
    }

    fn record_run(&self, repeat: u32, (window, sleep): (u32, Duration), figures: &BlasterFigures) {
        let record = json!({
            "event": "point",
            "repeat": repeat,
            "window_datagrams": window,
            "sleep_us": micros(sleep),
            "rate_bps": figures.rate.bits_per_second(),
            "goodput_bps": figures.goodput.bits_per_second(),
            "loss_ratio": figures.loss,
            "jitter_us": micros(figures.jitter),
            "datagrams_sent": figures.sent,
            "datagrams_arrived": figures.arrived,
            "datagrams_late": figures.late,
        });
        self.port.output.record_value(&record);
    }

    /// Stores the advice for later transfers. Returns the file.
    fn remember(&self) -> Option<PathBuf> {
        let mut advice = self.profile.advice()?;
        let datagram = self.port.udp_payload();
        // Stored rates count UDP payload, of which packet protection is a part.
        let whole = |rate: Rate| {
            let bits =
                u128::from(rate.bits_per_second()) * u128::from(datagram) / u128::from(self.port.datagram.max(1));
            Rate::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX))
        };
        (advice.rate, advice.goodput) = (whole(advice.rate), whole(advice.goodput));
        let cached = probe::cache_rate(self.port.peer, &CachedRate::of(&advice, datagram));
        cached.map_err(|error| self.port.output.warn(&format!("the best rate was not stored: {error}"))).ok()
    }

    /// The whole profile, without its address.
    fn record(&self) -> Value {
        let spread = |spread: probe::Spread| json!({ "mean": spread.mean, "low": spread.low, "high": spread.high });
        let points = self.profile.points.iter().map(|point| {
            json!({
                "window_datagrams": point.window,
                "sleep_us": micros(point.sleep),
                "runs": point.runs.len(),
                "rate_bps": spread(point.rate()),
                "goodput_bps": spread(point.goodput()),
                "loss_ratio": spread(point.loss()),
                "jitter_seconds": spread(point.jitter()),
            })
        });
        let advice = self.profile.advice().map(|advice| {
            json!({
                "window_datagrams": advice.window,
                "sleep_us": micros(advice.sleep),
                "rate_bps": advice.rate.bits_per_second(),
                "goodput_bps": advice.goodput.bits_per_second(),
                "loss_ratio": advice.loss,
            })
        });
        json!({
            "datagram_bytes": self.port.datagram,
            "capacity_bps": (self.capacity != Rate::ZERO).then(|| self.capacity.bits_per_second()),
            "shape": match self.profile.shape() {
                Shape::Plateau => "plateau",
                Shape::Fall => "fall",
                Shape::Unsaturated => "unsaturated",
            },
            "advice": advice,
            "points": points.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_of_zero_needs_no_unit_and_another_one_does() {
        assert_eq!((pause("0"), pause("100us")), (Ok(Duration::ZERO), Ok(Duration::from_micros(100))));
        assert!(pause("100").is_err() && pause("11s").is_err() && pause("").is_err());
    }
}
