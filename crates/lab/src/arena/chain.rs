//! The family of several bottlenecks: a parking lot.
//!
//! ```text
//!   n0 ══ l1 ══ n1 ══ l2 ══ n2 ══ l3 ══ n3
//!   a ──────────────────────────────────▶      long flows over all links
//!   c1 ────────▶ c2 ────────▶ c3 ────────▶      cross flows over one link each
//! ```
//!
//! The fair allocation is the max-min one: no flow can get more without taking from one that has less. A long flow meets
//! congestion at every link and has a longer RTT than the cross flows, so laws give it less. Over L equal links with c
//! cross flows each, proportional fairness gives it (1 + c)/(1 + c·L) of its max-min share: 0.57 to 0.67 over two links,
//! 0.31 to 0.40 over four. The goal for every flow is half of its max-min share.
//!
//! With cross flows at each link, max-min fills every link, so each must be used. The goal of waste takes N from the
//! slowest link.

use std::fmt::Write as _;

use super::draw::{self, digits, millis, rounded};
use super::goal::{Goal, Measure, PAYLOAD};
use super::sketch::{BUDGET, CONVERGED, Flow, PACKET, Sketch};

/// The names of the cross flows at each link.
const CROSS: [&str; 4] = ["c1", "c2", "c3", "c4"];
/// The share of its max-min share that every flow must get, and the used share of every link.
const LEAST_SHARE: f64 = 0.5;
const LEAST_USE: f64 = 0.85;
/// Seconds of a run, at least and at most.
const TIMES: (f64, f64) = (16.0, 40.0);

pub(super) fn multi_bottleneck(cell: &mut Sketch) {
    let count = cell.draw.whole(2, 4) as usize;
    let base = cell.draw.log_between(1e7, 2e8);
    let mut rates: Vec<f64> = (0..count).map(|_| base * cell.draw.between(1.0, 2.5)).collect();
    // The packets of all links together are the work of the simulation.
    let most = 1.5 * BUDGET * PACKET / TIMES.0;
    let scale = (most / rates.iter().sum::<f64>()).min(1.0);
    rates.iter_mut().for_each(|rate| *rate = rounded(*rate * scale));
    cell.rate = rates.iter().copied().fold(f64::INFINITY, f64::min);
    cell.time = rounded((1.5 * BUDGET * PACKET / rates.iter().sum::<f64>()).clamp(TIMES.0, TIMES.1));
    cell.warmup = rounded(CONVERGED * cell.time);
    let rtt = cell.draw.log_between(10e-3, 0.12);
    let weights: Vec<f64> = (0..count).map(|_| cell.draw.between(0.5, 1.5)).collect();
    let delay = |weight: f64| rounded(rtt / 2.0 * weight / weights.iter().sum::<f64>());
    let delays: Vec<f64> = weights.iter().map(|weight| delay(*weight)).collect();
    cell.rtt = rounded(2.0 * delays.iter().sum::<f64>());
    let products = cell.draw.between(0.5, 1.5);
    let long = cell.draw.whole(1, 2);
    let cross: Vec<u64> = (0..count).map(|_| cell.draw.whole(1, 3)).collect();
    cell.links = Some(links(&rates, &delays, products, cell.rtt));
    let text: Vec<String> =
        rates.iter().zip(&cross).map(|(rate, flows)| format!("{}/{flows}", draw::short(*rate))).collect();
    cell.note = format!("{long} over {} {}", text.join(" "), millis(cell.rtt));

    let mut paths = vec![(long, (0..count).collect::<Vec<_>>())];
    paths.extend(cross.iter().enumerate().map(|(link, flows)| (*flows, vec![link])));
    let shares = max_min(&rates, &paths);
    let end = format!("n{count}");
    cell.flows = vec![Flow::judged("a").times(long).worth(shares[0]).with("from", "n0").with("to", end)];
    for (link, flows) in cross.iter().enumerate() {
        let (from, to) = (format!("n{link}"), format!("n{}", link + 1));
        let flow = Flow::judged(CROSS[link]).times(*flows).worth(shares[link + 1]);
        cell.flows.push(flow.with("from", from).with("to", to));
    }
    let names: Vec<Vec<String>> = cell.flows.iter().map(Flow::names).collect();
    let of_flow = names.iter().zip(&shares).flat_map(|(names, share)| names.iter().map(move |name| (name, share)));
    let fair = of_flow.map(|(name, share)| (name.clone(), PAYLOAD * share)).collect();
    let formula = format!("≥ {LEAST_SHARE} of its max-min share, the least of all flows");
    cell.goals.push(Goal::at_least(Measure::MaxMin(fair), LEAST_SHARE, formula));
    let over = |link: usize| [names[0].as_slice(), names[link + 1].as_slice()].concat();
    let used = rates.iter().enumerate().map(|(link, rate)| (over(link), PAYLOAD * rate)).collect();
    let formula = format!("≥ {LEAST_USE} of f·R of each link, the least of all links");
    cell.goals.push(Goal::at_least(Measure::Utilisation(used), LEAST_USE, formula));
    cell.waste(0.015, " + 0.015");
}

/// The links in TOML. All queues are in BDP of the long flows.
pub(super) fn links(rates: &[f64], delays: &[f64], products: f64, rtt: f64) -> String {
    let mut text = String::new();
    for (link, (rate, delay)) in rates.iter().zip(delays).enumerate() {
        let (rate, delay, limit, rtt) = (draw::rate(*rate), millis(*delay), digits(products), millis(rtt));
        let _ = writeln!(
            text,
            "\n[[links]]\nname = \"l{}\"\nfrom = \"n{link}\"\nto = \"n{}\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\n\
             queue = {{ limit = \"{limit}bdp\", rtt = \"{rtt}\", at_least = 20 }}",
            link + 1,
            link + 1
        );
    }
    text
}

/// The max-min fair rate of each group of flows, in the unit of `rates`. A group has a number of flows and the links
/// that they take, at least one.
///
/// By progressive filling (Bertsekas and Gallager, Data Networks, §6.5.2): all rates rise together until a link is full.
/// Its flows are done, the others rise on.
pub(super) fn max_min(rates: &[f64], groups: &[(u64, Vec<usize>)]) -> Vec<f64> {
    let mut shares: Vec<Option<f64>> = vec![None; groups.len()];
    loop {
        let level = |link: usize| {
            let on = || groups.iter().zip(&shares).filter(move |((_, links), _)| links.contains(&link));
            let taken: f64 = on().filter_map(|((flows, _), share)| Some(*flows as f64 * (*share)?)).sum();
            let rising: f64 = on().filter(|(_, share)| share.is_none()).map(|((flows, _), _)| *flows as f64).sum();
            (rising > 0.0).then(|| (rates[link] - taken).max(0.0) / rising)
        };
        let full = (0..rates.len()).filter_map(|link| Some((level(link)?, link)));
        let Some((level, link)) = full.min_by(|left, right| left.0.total_cmp(&right.0)) else { break };
        for ((_, links), share) in groups.iter().zip(&mut shares) {
            if share.is_none() && links.contains(&link) {
                *share = Some(level);
            }
        }
    }
    shares.into_iter().map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_max_min_fair() {
        // The first link is full at 25 each, with one long flow and three cross flows. The second then has 200 − 25 for one.
        assert_eq!(max_min(&[100.0, 200.0], &[(1, vec![0, 1]), (3, vec![0]), (1, vec![1])]), [25.0, 25.0, 175.0]);
        // Two long flows over equal links with one cross flow each: a third for everybody.
        let third = max_min(&[90.0, 90.0, 90.0], &[(2, vec![0, 1, 2]), (1, vec![0]), (1, vec![1]), (1, vec![2])]);
        assert_eq!(third, [30.0; 4]);
        // The narrowest link decides, wherever it is.
        assert_eq!(max_min(&[100.0, 20.0], &[(1, vec![0, 1]), (1, vec![0]), (1, vec![1])]), [10.0, 90.0, 10.0]);
    }
}
