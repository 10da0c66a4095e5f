//! Families of flows that share one link: with each other, with other RTTs, with late-comers, and with TCP.

use super::draw::{digits, millis, rounded, seconds};
use super::goal::{Goal, Measure};
use super::sketch::{BUDGET, CONVERGED, Flow, PACKET, Sketch};

/// Starts within this time, so that no two seeds have the same order.
const SPREAD: &str = "1s";
/// What flows that share may waste beyond the general formula: they probe for each other's capacity.
const PROBES: (f64, &str) = (0.015, " + 0.015");
/// The time of a late-comer in the run, and the first part of it that is not judged, in seconds.
const LATE: f64 = 12.0;
const SETTLING: f64 = 5.0;
/// Packets per RTT at most beside TCP. CUBIC takes minutes to fill more, so no share of more would be fair.
pub(super) const TCP_PACKETS: f64 = 1_500.0;

pub(super) fn fair(cell: &mut Sketch) {
    let count = cell.draw.log_between(2.0, 40.0).round();
    cell.path((2e6 * count, 2e9), (4e-3, 0.15), (12.0, 40.0));
    cap(cell, 1.6);
    cell.warmup = rounded(CONVERGED * cell.time);
    cell.queue_between(0.5, 2.0);
    cell.note = format!("{count} flows {}", cell.place());
    cell.flows = vec![Flow::judged("a").times(count as u64).with("spread", SPREAD)];
    cell.goodput_after(0.90);
    cell.waste(PROBES.0, PROBES.1);
    let least = 0.97 - 0.0005 * count;
    cell.goals.push(Goal::at_least(Measure::Jain, least, "≥ 0.97 − 0.0005·n"));
}

pub(super) fn mix(cell: &mut Sketch) {
    let ratio = cell.draw.log_between(2.0, 20.0);
    cell.path((1e7, 4e8), (5e-3, 20e-3), (30.0, 50.0));
    cap(cell, 1.5);
    let longest = rounded((ratio * cell.rtt).min(0.25));
    cell.warmup = rounded(CONVERGED * cell.time);
    cell.queue_between(0.5, 1.5);
    cell.note = format!("{} : {}", cell.place(), millis(longest));
    cell.flows = vec![Flow::judged("a"), Flow::judged("b").with("rtt", millis(longest))];
    cell.goodput_after(0.88);
    cell.waste(PROBES.0, PROBES.1);
    cell.goals.push(Goal::at_least(Measure::Jain, 0.95, "≥ 0.95"));
}

pub(super) fn late_comer(cell: &mut Sketch) {
    cell.path((5e6, 8e8), (4e-3, 0.15), (24.0, 24.0));
    cap(cell, 1.5);
    let others = cell.draw.pick(&[1, 1, 2, 3]);
    let begin = cell.time - LATE;
    cell.warmup = begin + SETTLING;
    cell.queue_between(0.5, 1.5);
    cell.note = format!("{others} + 1 {}", cell.place());
    cell.flows = vec![Flow::judged("a").times(others), Flow::judged("b").with("start", seconds(begin))];
    let fair = 1.0 / (others as f64 + 1.0);
    let (least, most) = (0.8 * fair, 1.0 - 0.8 * (1.0 - fair));
    let share = Measure::Share("b".to_owned());
    cell.goals.push(Goal::between(share, least, most, "of b from 0.8·s to 1 − 0.8·(1 − s), s = 1/(n + 1)"));
    cell.goodput_after(0.88);
    cell.waste(PROBES.0, PROBES.1);
}

pub(super) fn tcp(cell: &mut Sketch) {
    cell.rtt = rounded(cell.draw.log_between(8e-3, 0.1));
    cell.rate = rounded(cell.draw.log_between(1e7, 2e8).min(TCP_PACKETS * PACKET / cell.rtt));
    (cell.time, cell.warmup) = (60.0, 15.0);
    let law = cell.draw.pick(&["cubic", "cubic", "reno", "bbr"]);
    let products = rounded(cell.draw.between(0.5, 2.0));
    cell.queue(products);
    cell.note = format!("{law} {} q{}bdp", cell.place(), digits(products));
    cell.flows = vec![Flow::judged("a"), Flow::of_law("t", law)];
    cell.goals.push(Goal::between(Measure::Share("a".to_owned()), 0.33, 0.67, "of a from 0.33 to 0.67"));
    cell.goodput_after(0.85);
}

pub(super) fn many(cell: &mut Sketch) {
    let count = cell.draw.log_between(100.0, 500.0).round();
    cell.rtt = rounded(cell.draw.log_between(5e-3, 0.1));
    cell.rate = rounded(count * cell.draw.log_between(1e6, 4e6));
    (cell.time, cell.warmup) = (16.0, 6.0);
    cap(cell, 1.0);
    cell.queue_between(0.7, 2.0);
    cell.note = format!("{count} flows {}", cell.place());
    cell.flows = vec![Flow::judged("a").times(count as u64).with("spread", SPREAD)];
    cell.goodput_after(0.85);
    cell.waste(0.05, " + 0.05");
    cell.goals.push(Goal::at_least(Measure::Jain, 0.80, "≥ 0.80"));
}

pub(super) fn crowd(cell: &mut Sketch) {
    let count = cell.draw.log_between(200.0, 2_000.0).round();
    cell.rtt = rounded(cell.draw.log_between(10e-3, 0.1));
    cell.rate = rounded(count * cell.draw.log_between(0.7e6, 2e6));
    (cell.time, cell.warmup) = (20.0, 10.0);
    cap(cell, 2.0);
    cell.queue_between(0.5, 2.0);
    let together = cell.draw.chance(0.5);
    cell.note = format!("{count} flows {}{}", cell.place(), if together { " together" } else { "" });
    let spread = if together { "0s" } else { SPREAD };
    cell.flows = vec![Flow::judged("a").times(count as u64).with("spread", spread)];
    cell.goodput_after(0.85);
    cell.waste(0.03, " + 0.03");
    cell.goals.push(Goal::at_least(Measure::Jain, 0.85, "≥ 0.85"));
}

/// Lowers the rate until the run has so many times the budget of packets.
fn cap(cell: &mut Sketch, times: f64) {
    cell.rate = cell.rate.min(rounded(times * BUDGET * PACKET / cell.time));
}
