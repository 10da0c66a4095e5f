//! The family of late hosts.
//!
//! A sender that is not scheduled sends nothing, and a link whose queue is empty then idles. A sender at the full rate
//! while it runs, without any standing queue, carries f·R·(1 − o), with o the share of time in which it is absent. This
//! is the yardstick. One that catches up through the queue carries more. The receiver's absences delay
//! acknowledgements, which costs a sender nothing that knows its path, so they count nothing. The handshake may meet
//! one pause at each host.

use farhaul_sim::agent::late::Lateness;
use farhaul_units::Duration;

use super::draw::{digits, millis, percent, rounded};
use super::goal::{Goal, Measure, PAYLOAD};
use super::sketch::{Flow, Sketch};

/// Short absences, as a busy machine of two cores shows them to a program that sleeps between packets.
const SHORT: (f64, f64) = (1e-3, 10e-3);
/// The long absence: a few time slices of other programs.
const PAUSE: f64 = 50e-3;
/// Loss in half of the cells.
const LOSSES: (f64, f64) = (1e-5, 1e-3);
/// The least receive buffer in bytes. It holds two pauses at the link's rate, so that it never limits.
const BUFFER: f64 = 1e6;

pub(super) fn late_hosts(cell: &mut Sketch) {
    cell.path((2e7, 2e9), (10e-3, 0.2), (6.0, 12.0));
    cell.queue_between(1.0, 2.0);
    // Rare losses as on long real paths: a law that is misled by late acknowledgements takes them for congestion.
    let loss = rounded(cell.draw.log_between(LOSSES.0, LOSSES.1));
    if cell.draw.chance(0.5) {
        cell.loss = loss;
        cell.link("loss", digits(loss));
    }
    let mut ends = [0.0; 2];
    let mut flow = Flow::judged("a");
    let mut absent = 0.0;
    for (end, every) in ["sender", "receiver"].into_iter().zip(&mut ends) {
        *every = rounded(cell.draw.log_between(50e-3, 0.5));
        let pauses = rounded(cell.draw.between(0.01, 0.05));
        let buffer = (2.0 * PAUSE * cell.rate / 8.0).max(BUFFER).ceil();
        let (least, most, pause) = (millis(SHORT.0), millis(SHORT.1), millis(PAUSE));
        let (between, share) = (millis(*every), digits(pauses));
        let late = format!(
            "{{ every = \"{between}\", least = \"{least}\", most = \"{most}\", pause = \"{pause}\", pauses = {share} }}"
        );
        flow = flow.with_value(end, format!("{{ receive_buffer = \"{buffer}B\", late = {late} }}"));
        if end == "sender" {
            absent = lateness(*every, pauses).share();
        }
    }
    let lossy = if cell.loss > 0.0 { format!(" {}", percent(cell.loss)) } else { String::new() };
    cell.note = format!("{}{lossy} every {}, {}", cell.place(), millis(ends[0]), millis(ends[1]));
    cell.flows = vec![flow];
    let start = cell.start() + 2.0 * PAUSE;
    let ideal = PAYLOAD * cell.rate * (1.0 - cell.loss) * (1.0 - start / cell.time) * (1.0 - absent);
    let formula = format!("≥ 0.90·f·R·(1 − p)·(1 − t0/T)·(1 − o), t0 with two pauses, o = {}", digits(absent));
    cell.goals.push(Goal::at_least(Measure::Goodput, 0.90 * ideal, formula));
    // A burst after an absence may find the queue full.
    cell.waste(0.01, " + 0.01");
}

/// The absences of a host.
fn lateness(every: f64, pauses: f64) -> Lateness {
    let [every, least, most, pause] = [every, SHORT.0, SHORT.1, PAUSE].map(Duration::from_secs_f64);
    Lateness { every, least, most, pause, pauses, buffer: None }
}
