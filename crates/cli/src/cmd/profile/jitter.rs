//! `profile --jitter`: the delays of messages, as a control loop sees them (paper:ornl §2.2).

use std::fmt::Write as _;
use std::time::Duration;

use farhaul::probe::{BlasterConfig, Delays};
use farhaul_lab::expression::Unit;
use farhaul_lab::report::svg::{Caption, Histogram, Quantity, histogram as drawn};
use farhaul_transfer::internal::control::delay_record;
use farhaul_transfer::internal::report::micros;
use serde_json::{Value, json};

use super::{ProfileArgs, files};
use crate::cmd::measured::Port;
use crate::exit::{Code, Fault};
use crate::output::human::{count, percent, time};
use crate::output::progress;

/// Bytes of a message. Source: the paper's experiment.
const MESSAGE: u32 = 10_000;
/// Seconds of the measurement: enough messages for a 99th percentile.
const LENGTH: Duration = Duration::from_secs(10);
/// Time between messages: 4 Mbit/s, which leaves any long path idle.
const PAUSE: Duration = Duration::from_millis(20);
/// Bins of the histogram, over the delays from the least to the 99th percentile. The last bin has all above.
const BINS: usize = 16;
/// Width of the longest bar on the terminal.
const BAR: usize = 40;

pub(super) fn run(args: &ProfileArgs, mut port: Port<'_>) -> Result<(), Fault> {
    let sleep = match args.sleep[..] {
        [] => PAUSE,
        [sleep] => sleep,
        _ => return Err(Fault::usage("--jitter measures one pause between messages: give one --sleep")),
    };
    let window = MESSAGE.div_ceil(port.datagram.into());
    // Equal datagrams that hold the message together.
    let datagram = u16::try_from(MESSAGE.div_ceil(window)).unwrap_or(port.datagram);
    let length = args.seconds.unwrap_or(LENGTH);
    let config = BlasterConfig { datagram, window, sleep, spaced: false, messages: true, time: length };
    port.output.print_line(&format!(
        "sending a message of 10 kB every {} for {}, in {window} datagrams",
        time(sleep),
        time(length)
    ));
    let line = progress::line();
    line.set_message("measuring the delays");
    port.output.attach(line);
    let measured = port.blast(config);
    port.output.detach();
    let (delays, sent, result) = match measured {
        Ok(blaster) => match blaster.result().flatten() {
            Some(figures) if blaster.delays().count() > 0 => {
                (blaster.delays().clone(), figures.sent / u64::from(window), Ok(()))
            }
            _ => (Delays::default(), 0, Err(silent(&port))),
        },
        Err(fault) => (Delays::default(), 0, Err(fault)),
    };
    let bins = histogram(&delays);
    let record = record(&delays, sent, &bins);
    if result.is_ok() {
        words(&delays, sent, &bins).iter().for_each(|line| port.output.print_line(line));
        port.print_protection();
    }
    let is_written = args.out.is_some() && result.is_ok();
    let written = match &args.out {
        Some(out) if result.is_ok() => files::put(out, "delays.csv", &csv(&bins))
            .and_then(|()| files::put(out, "delays.json", &format!("{record:#}\n")))
            .and_then(|()| files::draw(out, "delays", &args.format, &drawing(&delays, &bins))),
        _ => Ok(()),
    };
    if let Some(out) = args.out.as_ref().filter(|_| is_written && written.is_ok()) {
        port.output.print_line(&format!("  CSV, JSON and the picture are in {}", out.display()));
    }
    port.conclude(record, result.and(written))
}

fn silent(port: &Port<'_>) -> Fault {
    Fault::new(Code::PeerLost, format!("{} acknowledged no message: it or the network is down", port.peer))
}

/// A bin: from, to, and the number of delays in it.
type Bin = (Duration, Duration, u64);

fn histogram(delays: &Delays) -> Vec<Bin> {
    let (Some(least), Some(most)) = (delays.quantile(0.0), delays.quantile(1.0)) else { return Vec::new() };
    let usual = delays.quantile(0.99).unwrap_or(most);
    let step = (usual.saturating_sub(least) / (BINS as u32 - 1)).max(Duration::from_micros(1));
    let mut bins: Vec<Bin> =
        (0..BINS as u32).map(|index| (least + step * index, least + step * (index + 1), 0)).collect();
    for sample in delays.samples() {
        let index = (sample.saturating_sub(least).as_nanos() / step.as_nanos()) as usize;
        bins[index.min(BINS - 1)].2 += 1;
    }
    while bins.len() > 1 && bins[bins.len() - 1].2 == 0 {
        bins.pop();
    }
    let last = bins.len() - 1;
    bins[last].1 = bins[last].1.max(most);
    bins
}

fn record(delays: &Delays, sent: u64, bins: &[Bin]) -> Value {
    let bin = |&(from, to, count): &Bin| json!({ "from_us": micros(from), "to_us": micros(to), "count": count });
    json!({
        "message_bytes": MESSAGE,
        "messages_sent": sent,
        "messages_acknowledged": delays.count(),
        "delay_us": delay_record(delays),
        "jitter_ratio": delays.jitter(),
        "histogram": bins.iter().map(bin).collect::<Vec<_>>(),
    })
}

fn csv(bins: &[Bin]) -> String {
    let mut text = "from_us,to_us,count\n".to_owned();
    for (from, to, count) in bins {
        let _ = writeln!(text, "{},{},{count}", from.as_micros(), to.as_micros());
    }
    text
}

fn drawing(delays: &Delays, bins: &[Bin]) -> String {
    let bin = |&(from, to, count): &Bin| (from.as_secs_f64(), to.as_secs_f64(), count);
    drawn(&Histogram {
        caption: Caption {
            id: "delays",
            title: "Delays of messages of 10 kB",
            shows: "Messages by the time until the acknowledgement of the whole message arrived",
        },
        across: Quantity { name: "Round trip", unit: Unit::Seconds },
        counted: "messages",
        bins: bins.iter().map(bin).collect(),
        marked: vec![(delays.mean().as_secs_f64(), "mean")],
    })
}

fn words(delays: &Delays, sent: u64, bins: &[Bin]) -> Vec<String> {
    let quantile = |part| time(delays.quantile(part).unwrap_or_default());
    let mut lines = vec![
        format!("{} of {} messages were acknowledged", count(delays.count()), count(sent)),
        format!(
            "  round trip mean {}, deviation {} (jitter {} of the mean), median {}, 99th percentile {}",
            time(delays.mean()),
            time(delays.deviation()),
            percent(delays.jitter()),
            quantile(0.5),
            quantile(0.99),
        ),
    ];
    let most = bins.iter().map(|(.., count)| *count).max().unwrap_or(0).max(1);
    lines.extend(bins.iter().map(|(from, to, count)| {
        let length = (*count as usize * BAR).div_ceil(most as usize);
        let [from, to] = [from, to].map(|time| format!("{:.2}", time.as_secs_f64() * 1e3));
        format!("  {from:>8} to {to:>8} ms  {count:>6}  {}", "█".repeat(length)).trim_end().to_owned()
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_delay_is_in_one_bin() {
        let mut delays = Delays::default();
        for index in 0..1_000_u64 {
            delays.add(Duration::from_micros(11_000 + index % 100 * 10));
        }
        delays.add(Duration::from_millis(400));
        let bins = histogram(&delays);
        assert_eq!(bins.iter().map(|(.., count)| count).sum::<u64>(), 1_001);
        assert!(bins.len() == BINS && bins[BINS - 1].1 == Duration::from_millis(400), "{bins:?}");
        assert!(bins.windows(2).all(|pair| pair[0].1 == pair[1].0));
        assert_eq!(csv(&bins).lines().count(), BINS + 1);
        let drawing = drawing(&delays, &bins);
        assert!(drawing.contains("the last bar: up to 400") && drawing.contains(">mean<"), "{drawing}");
    }

    #[test]
    fn equal_delays_and_none_have_a_histogram() {
        let mut delays = Delays::default();
        assert!(histogram(&delays).is_empty());
        delays.add(Duration::from_millis(5));
        delays.add(Duration::from_millis(5));
        assert_eq!(histogram(&delays)[0].2, 2);
        assert!(words(&delays, 2, &histogram(&delays)).last().unwrap().contains("█"));
    }
}
