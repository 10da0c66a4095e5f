//! Families of access networks: wifi and mobile links, policers, satellites.
//!
//! A link whose rate changes between R and R/k every h seconds carries the mean. After each rise a sender may take two RTTs to
//! find the higher rate, so 2·RTT/(2·h) of the difference is not asked for. What is in flight when the rate falls, (1 − 1/k)·RTT
//! of R, finds a queue of one BDP. Half of it may be lost.

use super::draw::{self, digits, millis, percent, rounded, seconds};
use super::sketch::{Flow, Sketch};

/// 5 to 500 Mbit/s.
const RATES: (f64, f64) = (5e6, 5e8);
/// 20 to 120 ms.
const RTTS: (f64, f64) = (20e-3, 0.12);
/// Seconds of a run, at least and at most.
const TIMES: (f64, f64) = (10.0, 20.0);

pub(super) fn wireless(cell: &mut Sketch) {
    cell.path(RATES, RTTS, TIMES);
    cell.queue(1.0);
    cell.note = cell.place();
    // Wifi delays packets, mobile links change their rates, and some do both.
    let kind = cell.draw.pick(&[1, 1, 2, 2, 3]);
    let (mut mean, mut more) = (cell.rate, 0.0);
    if kind != 2 {
        let jitter = cell.draw.log_between(5e-3, 40e-3).min(cell.rtt / 2.0);
        let both = cell.draw.chance(0.5);
        cell.link("jitter", format!("\"{}\"", millis(jitter)));
        if both {
            cell.link("back", format!("{{ jitter = \"{}\" }}", millis(jitter)));
        }
        cell.note.push_str(&format!(" ±{}{}", millis(jitter), if both { " both ways" } else { "" }));
    }
    if kind != 1 {
        let ratio = rounded(cell.draw.log_between(1.5, 4.0));
        let every = rounded(cell.draw.log_between(0.5, 5.0));
        let (low, high) = (draw::rate(cell.rate / ratio), draw::rate(cell.rate));
        cell.link(
            "schedule",
            format!("[{{ at = \"0s\", rate = \"{high}\" }}, {{ at = \"{}\", rate = \"{low}\" }}]", seconds(every)),
        );
        cell.link("repeat", format!("\"{}\"", seconds(2.0 * every)));
        cell.note.push_str(&format!(" /{} each {}", digits(ratio), seconds(every)));
        let missed = (cell.rtt / every).min(0.5) * (1.0 - 1.0 / ratio);
        more = missed / 4.0 / f64::midpoint(1.0, 1.0 / ratio);
        mean *= f64::midpoint(1.0, 1.0 / ratio) - missed / 2.0;
    }
    cell.flows = vec![Flow::judged("a").worth(mean)];
    cell.goodput_of(mean, 0.85, "≥ 0.85·I of the mean capacity, two RTTs after each rise left out");
    cell.waste(0.01 + more, " + 0.01 + half of what is on its way at each fall");
}

pub(super) fn policer(cell: &mut Sketch) {
    cell.path(RATES, (5e-3, 0.15), TIMES);
    let times = rounded(cell.draw.log_between(2.0, 20.0));
    let burst = rounded(cell.draw.log_between(1e4, 2e6)).round();
    cell.link("policer", format!("{{ rate = \"{}\", burst = \"{burst}B\" }}", draw::rate(cell.rate)));
    cell.link("queue", "1000");
    cell.note = format!("{} bucket {burst}B line x{}", cell.place(), digits(times));
    cell.line = Some(rounded(cell.rate * times));
    cell.alone(0.90, "0.90", (0.02, " + 0.02"));
}

pub(super) fn satellite(cell: &mut Sketch) {
    cell.path((2e6, 3e8), (0.3, 0.7), (30.0, 60.0));
    cell.queue_between(0.3, 1.5);
    cell.note = cell.place();
    if cell.draw.chance(0.6) {
        cell.loss = rounded(cell.draw.log_between(1e-4, 2e-2));
        cell.link("loss", digits(cell.loss));
        cell.note.push_str(&format!(" {}", percent(cell.loss)));
    }
    cell.alone(0.90 - 3.0 * cell.loss, "(0.90 − 3p)", (0.005, " + 0.005"));
}
