//! Families of one flow: clean paths, losses, jitter, reordering, queues, slow links, and a capacity that falls.

use super::draw::{digits, millis, percent, rate, rounded, seconds};
use super::goal::{Goal, Measure};
use super::sketch::{BUDGET, Flow, PACKET, Sketch};

/// 1 Mbit/s to 2.5 Gbit/s.
const RATES: (f64, f64) = (1e6, 2.5e9);
/// For impairments whose times would be shorter than the gap between packets of a faster path.
const MODERATE: (f64, f64) = (1e6, 5e8);
/// 2 to 250 ms.
const RTTS: (f64, f64) = (2e-3, 0.25);
/// 10 to 250 ms.
const LONG_RTTS: (f64, f64) = (10e-3, 0.25);
/// Seconds of a run, at least and at most.
const TIMES: (f64, f64) = (4.0, 10.0);
/// No more waste than the general formula allows.
const NO_MORE: (f64, &str) = (0.0, "");

pub(super) fn clean(cell: &mut Sketch) {
    cell.path(RATES, RTTS, TIMES);
    cell.queue_between(0.5, 1.5);
    cell.note = cell.place();
    cell.alone(0.93, "0.93", NO_MORE);
}

pub(super) fn loss(cell: &mut Sketch) {
    cell.path(RATES, RTTS, TIMES);
    cell.queue_between(0.5, 1.5);
    // Three in ten are in the range in which laws that take every loss for congestion fail.
    let loss = if cell.draw.chance(0.7) { cell.draw.log_between(1e-5, 2e-2) } else { cell.draw.between(2e-3, 2e-2) };
    lose(cell, loss);
    cell.alone(0.92 - 3.0 * cell.loss, "(0.92 − 3p)", NO_MORE);
}

/// Independent loss.
fn lose(cell: &mut Sketch, loss: f64) {
    cell.loss = rounded(loss);
    cell.link("loss", digits(cell.loss));
    cell.note = format!("{} {}", cell.place(), percent(cell.loss));
}

pub(super) fn burst(cell: &mut Sketch) {
    cell.path(RATES, RTTS, TIMES);
    cell.queue(1.0);
    let length = rounded(cell.draw.log_between(2.0, 100.0));
    cell.loss = rounded(cell.draw.log_between(1e-5, 5e-3));
    let (loss, burst) = (digits(cell.loss), digits(length));
    cell.link("loss", format!("{{ kind = \"gilbert-elliott\", rate = {loss}, burst = {burst} }}"));
    cell.note = format!("{} {} x{burst}", cell.place(), percent(cell.loss));
    // The number of bursts varies by chance, and three bursts may come to no mean at all.
    let packets = cell.rate * cell.time / PACKET;
    let bursts = (cell.loss / length * packets).max(1.0);
    let more = 4.5 * cell.loss / bursts.sqrt() + 3.0 * length / packets;
    cell.alone(0.90, "0.90", (more, " + 4.5·p/√b + 3 bursts, b = number of bursts"));
}

pub(super) fn jitter(cell: &mut Sketch) {
    cell.path(MODERATE, LONG_RTTS, TIMES);
    cell.queue(1.0);
    let jitter = cell.draw.log_between(0.3e-3, (cell.rtt / 4.0).min(10e-3));
    let shape = cell.draw.pick(&["uniform", "normal"]);
    cell.link("jitter", format!("{{ max = \"{}\", shape = \"{shape}\" }}", millis(jitter)));
    cell.note = format!("{} ±{}", cell.place(), millis(jitter));
    cell.alone(0.88, "0.88", NO_MORE);
}

pub(super) fn reorder(cell: &mut Sketch) {
    cell.path(MODERATE, LONG_RTTS, TIMES);
    cell.queue(1.0);
    let share = rounded(cell.draw.log_between(2e-3, 0.1));
    let by = cell.draw.log_between(0.3e-3, (cell.rtt / 3.0).min(8e-3));
    cell.link("reorder", format!("{{ share = {}, by = \"{}\" }}", digits(share), millis(by)));
    cell.note = format!("{} {} by {}", cell.place(), percent(share), millis(by));
    // A packet that is overtaken may be reported lost and sent again, but not more than one and a half times.
    cell.alone(0.88, "0.88", (1.5 * share, " + 1.5 × the reordered share"));
}

pub(super) fn shallow(cell: &mut Sketch) {
    cell.path((1e7, RATES.1), RTTS, TIMES);
    let most = (0.3 * cell.product()).max(16.0);
    let packets = cell.draw.log_between(8.0, most).floor();
    cell.link("queue", packets.to_string());
    cell.note = format!("{} q{packets}", cell.place());
    // Bursts and the probing for capacity need room that a queue of a few packets does not have.
    cell.alone(0.93 - 0.35 / packets.sqrt(), "(0.93 − 0.35/√q)", (0.005, " + 0.005"));
}

pub(super) fn deep(cell: &mut Sketch) {
    cell.path(RATES, LONG_RTTS, (TIMES.0, 20.0));
    let products = rounded(cell.draw.between(1.0, 4.0));
    cell.queue(products);
    cell.note = format!("{} q{}bdp", cell.place(), digits(products));
    cell.alone(0.92, "0.92", NO_MORE);
    let most = 0.10 * cell.product() + 20.0;
    cell.goals.push(Goal::at_most(Measure::Queue, most, "≤ 0.10·B + 20 packets"));
}

pub(super) fn slow(cell: &mut Sketch) {
    cell.path((5e5, 1e7), LONG_RTTS, (TIMES.0, 30.0));
    cell.queue_between(1.0, 3.0);
    cell.note = cell.place();
    let loss = cell.draw.log_between(1e-4, 1e-2);
    if cell.draw.chance(0.5) {
        lose(cell, loss);
    }
    cell.alone(0.90, "0.90", (0.015, " + 0.015"));
}

pub(super) fn fall(cell: &mut Sketch) {
    cell.path((5e6, 8e8), (5e-3, 0.15), (24.0, 36.0));
    cell.rate = cell.rate.min(rounded(2.0 * BUDGET * PACKET / cell.time));
    let share = rounded(cell.draw.log_between(0.1, 0.6));
    cell.queue(1.0);
    let (low, high) = (rate(share * cell.rate), rate(cell.rate));
    let (down, up) = (seconds(cell.time / 3.0), seconds(2.0 * cell.time / 3.0));
    cell.link("schedule", format!("[{{ at = \"{down}\", rate = \"{low}\" }}, {{ at = \"{up}\", rate = \"{high}\" }}]"));
    cell.note = format!("{} to {}", cell.place(), digits(share));
    cell.flows = vec![Flow::judged("a")];
    let mean = cell.rate * (2.0 + share) / 3.0;
    cell.goodput_of(mean, 0.90, "≥ 0.90·I of the mean capacity");
    // A sender sees the fall after one RTT at the earliest. What is in flight by then is lost without its fault.
    let more = 0.005 + 2.0 * cell.rtt / cell.time;
    cell.waste(more, " + 0.005 + 2·RTT/T");
}
