//! Families beside traffic of other laws: in short and deep queues, and in the other direction.

use super::chain;
use super::crowd::TCP_PACKETS;
use super::draw::{digits, rounded};
use super::goal::{Goal, Measure, PAYLOAD};
use super::sketch::{Flow, PACKET, Sketch};

/// Times of a run and of its first part, which is not judged, in seconds.
const TIMES: (f64, f64) = (40.0, 15.0);

pub(super) fn neighbours(cell: &mut Sketch) {
    cell.rtt = rounded(cell.draw.log_between(8e-3, 0.1));
    cell.rate = rounded(cell.draw.log_between(1e7, 2e8).min(TCP_PACKETS * PACKET / cell.rtt));
    (cell.time, cell.warmup) = TIMES;
    let law = cell.draw.pick(&["cubic", "cubic", "bbr", "reno"]);
    let products = rounded(cell.draw.log_between(0.05, 4.0));
    cell.link("queue", format!("{{ limit = \"{}bdp\", at_least = 8 }}", digits(products)));
    cell.note = format!("{law} {} q{}bdp", cell.place(), digits(products));
    cell.flows = vec![Flow::judged("a"), Flow::of_law("t", law)];
    // A neighbour keeps a quarter, and so do we: half of the fair share.
    let share = |flow: &str| Measure::Share(flow.to_owned());
    cell.goals.push(Goal::at_least(share("t"), 0.25, "of the neighbour ≥ 0.25"));
    cell.goals.push(Goal::at_least(share("a"), 0.25, "of a ≥ 0.25"));
    cell.goodput_after(0.80);
}

pub(super) fn reverse(cell: &mut Sketch) {
    cell.path((1e7, 3e8), (10e-3, 0.1), (16.0, 16.0));
    cell.warmup = 4.0;
    let law = cell.draw.pick(&["cubic", "cubic", "bbr", "same"]);
    let products = rounded(cell.draw.between(0.5, 2.0));
    cell.links = Some(chain::links(&[cell.rate], &[cell.rtt / 2.0], products, cell.rtt));
    cell.note = format!("{law} {} q{}bdp", cell.place(), digits(products));
    let back = if law == "same" { Flow::judged("t").worth(cell.rate) } else { Flow::of_law("t", law) };
    cell.flows = vec![
        Flow::judged("a").worth(cell.rate).with("from", "n0").with("to", "n1"),
        back.with("from", "n1").with("to", "n0"),
    ];
    // Acknowledgements of the other direction take a fiftieth at most.
    let fair = vec![("a".to_owned(), PAYLOAD * cell.rate)];
    cell.goals.push(Goal::at_least(Measure::MaxMin(fair), 0.85, "of a ≥ 0.85·f·R"));
    cell.waste(0.01, " + 0.01");
}
