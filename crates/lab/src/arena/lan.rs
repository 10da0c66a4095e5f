//! The family of fast short paths: loopback, a rack, a busy node.
//!
//! A host that spends c seconds on a packet carries 12 000/c bit/s at most, so the path carries C = min(R, 12 000/c). A
//! sender that is absent for a share o of the time sends nothing then. The absences of a run of seconds vary by chance: o is
//! the mean and two standard deviations, √(n·E[a²])/T for n absences of a seconds. The receiver's absences delay
//! acknowledgements, which costs a sender nothing that knows its path. An interface that gathers packets for some
//! microseconds hides how far they were apart, and costs no throughput.
//!
//! The pseudo controller of the arena catches up whatever the queue holds. Beside late hosts and 50 packets of queue it shows
//! the goodput within reach, and misses the waste.

use super::draw::{Draw, digits, millis, percent, rounded};
use super::goal::{Goal, Measure, PAYLOAD};
use super::sketch::{BUDGET, Flow, PACKET, Sketch};

/// Seconds of a run, at least and at most.
const TIMES: (f64, f64) = (0.25, 2.0);
/// The longest short absence is between these. The shortest is the first.
const ABSENCES: (f64, f64) = (50e-6, 10e-3);
/// The long absence, a few time slices of other programs, and its share of all.
const PAUSE: f64 = 60e-3;
const PAUSES: f64 = 0.01;
/// A program runs for so many times the longest short absence between two of them.
const RUNNING: (f64, f64) = (1.0, 20.0);
/// The fastest link of programs that are late: their buffers hold two pauses.
const LATE_RATE: f64 = 1e10;
/// The least receive buffer in bytes, of hosts that are never late as well.
const BUFFER: f64 = 8e6;

/// Absences of one program.
struct Absences {
    every: f64,
    most: f64,
}

impl Absences {
    fn draw(draw: &mut Draw) -> Self {
        let most = rounded(draw.log_between(ABSENCES.0, ABSENCES.1));
        Self { every: rounded(most * draw.log_between(RUNNING.0, RUNNING.1)), most }
    }

    /// The share of `time` for which the program is absent: the mean and two standard deviations.
    fn share(&self, time: f64) -> f64 {
        let short = f64::midpoint(ABSENCES.0, self.most);
        let mean = (1.0 - PAUSES) * short + PAUSES * PAUSE;
        let width = self.most - ABSENCES.0;
        let square = (1.0 - PAUSES) * (short * short + width * width / 12.0) + PAUSES * PAUSE * PAUSE;
        let count = time / (self.every + mean);
        (count * mean + 2.0 * (count * square).sqrt()) / time
    }

    fn key(&self) -> String {
        let [every, least, most, pause] = [self.every, ABSENCES.0, self.most, PAUSE].map(millis);
        let pauses = digits(PAUSES);
        format!(
            "late = {{ every = \"{every}\", least = \"{least}\", most = \"{most}\", pause = \"{pause}\", pauses = {pauses} }}"
        )
    }
}

pub(super) fn lan(cell: &mut Sketch) {
    cell.path((5e8, 1e11), (20e-6, 2e-3), TIMES);
    let is_late = cell.draw.chance(0.4);
    if is_late {
        cell.rate = cell.rate.min(LATE_RATE);
        cell.time = TIMES.1.min(rounded(1.5 * BUDGET * PACKET / cell.rate));
    }
    let most = (cell.rate * 1e-3 / PACKET).max(51.0);
    let queue = cell.draw.log_between(50.0, most).floor();
    cell.link("queue", queue.to_string());
    cell.note = format!("{} q{queue}", cell.place());

    let buffer = if is_late { (2.0 * PAUSE * cell.rate / 8.0).max(BUFFER) } else { BUFFER };
    let receives = format!("receive_buffer = \"{}B\", ", buffer.ceil());
    // A sender that is late has a buffer as well, for acknowledgements.
    let mut ends = [if is_late { receives.clone() } else { String::new() }, receives];
    let mut carried = cell.rate;
    if cell.draw.chance(0.5) {
        let cost = rounded(cell.draw.log_between(0.2e-6, 3e-6));
        carried = carried.min(PACKET / cost);
        let at_sender = cell.draw.chance(0.5);
        let key = if at_sender { "per_sent" } else { "per_data" };
        ends[usize::from(!at_sender)].push_str(&format!("{key} = \"{}\", ", micros(cost)));
        cell.note.push_str(&format!(" {key} {}", micros(cost)));
    }
    if cell.draw.chance(0.4) {
        let gather = rounded(cell.draw.log_between(5e-6, 60e-6));
        ends[1].push_str(&format!("gather = \"{}\", ", micros(gather)));
        cell.note.push_str(&format!(" gather {}", micros(gather)));
    }
    let mut present = 1.0;
    for (end, name) in ends.iter_mut().zip(["sender", "receiver"]).filter(|_| is_late) {
        let absences = Absences::draw(&mut cell.draw);
        let share = absences.share(cell.time).min(0.9);
        if name == "sender" {
            present = 1.0 - share;
        }
        end.push_str(&absences.key());
        cell.note.push_str(&format!(" {name} late {} to {}", percent(share), millis(absences.most)));
    }
    let [sender, receiver] = ends.map(|keys| format!("{{ {} }}", keys.trim_end_matches(", ")));
    cell.flows = vec![Flow::judged("a").worth(carried)];
    for (name, keys) in [("sender", sender), ("receiver", receiver)] {
        if keys != "{  }" {
            cell.flows[0].keys.push((name, keys));
        }
    }
    let ideal = PAYLOAD * carried * (1.0 - cell.start() / cell.time) * present;
    let formula = format!("≥ 0.88·f·C·(1 − t0/T)·(1 − o), C = min(R, 12 000/c), 1 − o = {}", digits(present));
    cell.goals.push(Goal::at_least(Measure::Goodput, 0.88 * ideal, formula));
    // A burst after an absence may find the queue full, and so may the search for a host's own limit.
    cell.waste(0.01, " + 0.01");
}

/// A time in a scenario and in labels, in microseconds.
fn micros(seconds: f64) -> String {
    format!("{}us", digits(seconds * 1e6))
}
