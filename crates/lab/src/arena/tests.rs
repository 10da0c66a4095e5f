//! Draws, goals by hand, a small arena, and the page.

use std::sync::atomic::AtomicBool;

use super::goal::PAYLOAD;
use super::sketch::{PACKET, Sketch};
use super::*;
use crate::scenario::setup::Setup;
use crate::sweep::{Options, Work, sweep};
use crate::world::Venue;

/// The most packets that leave all links of a cell together.
const MOST_PACKETS: f64 = 2.6e6;

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= 1e-9 * expected.abs()
}

/// The setup of a cell's run.
fn setup(cell: &Cell) -> std::sync::Arc<Setup> {
    job(cell, "udt", "").unwrap_or_else(|wrong| panic!("{wrong}\n{}", cell.scenario("udt"))).setup
}

#[test]
fn every_round_has_every_family_once() {
    for round in cells(3, 4 * Family::ALL.len(), &[]).chunks(Family::ALL.len()) {
        let mut families: Vec<Family> = round.iter().map(|cell| cell.family).collect();
        families.sort_unstable();
        assert_eq!(families, Family::ALL);
    }
    let orders: Vec<Vec<Family>> =
        (1..9).map(|seed| cells(seed, Family::ALL.len(), &[]).iter().map(|cell| cell.family).collect()).collect();
    assert!(orders.iter().any(|order| *order != orders[0]), "the order is random");
}

#[test]
fn the_seed_alone_decides_a_cell_and_other_families_change_none() {
    let all = cells(7, 69, &[]);
    assert_eq!(all, cells(7, 69, &[]));
    assert_eq!(all[..20], cells(7, 20, &[]));
    let families = [Family::Loss, Family::LateHosts];
    let some: Vec<Cell> = all.iter().filter(|cell| families.contains(&cell.family)).cloned().collect();
    assert_eq!(cells(7, 6, &families), some);
    let mut labels: Vec<String> = (0..20).flat_map(|seed| cells(seed, 32, &[])).map(|cell| cell.label).collect();
    labels.sort();
    labels.dedup();
    assert!(labels.len() > 630, "{} of 640 cells differ", labels.len());
}

#[test]
fn all_cells_are_scenarios_within_bounds_and_budget() {
    for cell in (0..12).flat_map(|seed| cells(seed, 46, &[])) {
        let setup = setup(&cell);
        let seconds = setup.duration.as_secs_f64();
        assert!((0.25..=60.0).contains(&seconds), "{}: {seconds}", cell.label);
        // Every other link is the return path.
        let rates = setup.topology.links.iter().step_by(2);
        let rates = rates.filter_map(|link| link.path.policer.map(|policer| policer.rate).or(link.path.rate));
        let mut packets = 0.0;
        for rate in rates.map(|rate| rate.bits_per_second() as f64) {
            assert!((5e5..=1e11).contains(&rate), "{}: {rate}", cell.label);
            packets += rate * seconds / PACKET;
        }
        assert!(packets <= MOST_PACKETS, "{}: {packets} packets", cell.label);
        assert!((1..=2000).contains(&setup.flows.len()));
        assert!(!cell.goals.is_empty());
        for goal in &cell.goals {
            let limits = [goal.least, goal.most].into_iter().flatten();
            assert!(limits.clone().count() > 0 && limits.clone().all(|limit| limit > 0.0 && limit.is_finite()));
        }
    }
}

#[test]
fn a_scenario_has_the_numbers_of_its_goals() {
    for cell in (0..9).flat_map(|seed| cells(seed, 3, &[Family::Clean, Family::Loss])) {
        let setup = setup(&cell);
        let path = &setup.topology.links[0].path;
        let (rate, rtt) = (path.rate.unwrap().bits_per_second() as f64, 2.0 * path.delay.as_secs_f64());
        let growth = libm::log((rate * rtt / PACKET / 16.0).max(1.0)) / libm::log(4.0);
        let started = 1.0 - ((2.0 + growth) * rtt + 0.02) / setup.duration.as_secs_f64();
        let text = cell.scenario("udt");
        let loss: f64 = text.lines().find_map(|line| line.strip_prefix("loss = ")).map_or(0.0, |p| p.parse().unwrap());
        let factor = if cell.family == Family::Clean { 0.93 } else { 0.92 - 3.0 * loss };
        let least = factor * PAYLOAD * rate * (1.0 - loss) * started;
        assert!((cell.goals[0].least.unwrap() / least - 1.0).abs() < 1e-6, "{}", cell.label);
    }
}

#[test]
fn goals_follow_the_formulas() {
    // B = 1024 packets = 16 · 4³, so t0 = (2 + 3) · 0.1 s + 0.02 s. N = 102 400 packets.
    let mut sketch = Sketch::new(Draw::of_cell(1, 0, Family::Loss as u64));
    (sketch.rate, sketch.rtt, sketch.time, sketch.loss) = (122.88e6, 0.1, 10.0, 0.01);
    assert!(near(sketch.product(), 1024.0) && near(sketch.start(), 0.52));
    sketch.alone(0.89, "0.89", (0.0, ""));
    sketch.goodput_after(0.85);
    let cell = Cell::of(sketch, Family::Loss, 1, 0);
    assert!(near(cell.goals[0].least.unwrap(), 0.89 * 1456.0 / 1500.0 * 122.88e6 * 0.99 * 0.948));
    // 1.25 % for losses and their repairs, 3 · √(0.01/102 400), half a percent, 16 packets.
    assert!(near(cell.goals[1].most.unwrap(), 0.0125 + 0.000_937_5 + 0.005 + 0.000_156_25));
    assert!(near(cell.goals[2].least.unwrap(), 0.85 * 1456.0 / 1500.0 * 122.88e6 * 0.99));
    // Below 16 packets nothing has to grow.
    let mut short = Sketch::new(Draw::of_cell(1, 0, Family::Clean as u64));
    (short.rate, short.rtt) = (12e6, 0.01);
    assert!(near(short.start(), 0.04));
}

#[test]
fn the_ideal_sends_at_its_fair_share() {
    let of = |family| cells(2, 1, &[family]).remove(0);
    let rate = |text: &str| -> Vec<f64> {
        let fixed = text.lines().filter_map(|line| line.strip_prefix("controller = \"fixed:rate="));
        fixed.map(|rate| rate.trim_end_matches("bit\"").parse().unwrap()).collect()
    };
    let cell = of(Family::Fair);
    let (setup, text) = (setup(&cell), cell.scenario(IDEAL));
    let link = setup.topology.links[0].path.rate.unwrap().bits_per_second() as f64;
    assert!((rate(&text)[0] * setup.flows.len() as f64 / (0.97 * link) - 1.0).abs() < 1e-6);
    let cell = of(Family::MultiBottleneck);
    assert!(rate(&cell.scenario(IDEAL)).len() >= 3, "long flows, and cross flows at each of two links at least");
    assert!(!cell.scenario("udt").contains("fixed"));
}

#[test]
fn beside_tcp_there_are_three_laws() {
    let all: Vec<Cell> = (0..20).flat_map(|seed| cells(seed, 2, &[Family::Tcp])).collect();
    for (law, keys) in [
        ("cubic", "protocol = \"tcp\"\ncontroller = \"cubic\""),
        ("reno", "protocol = \"tcp\"\ncontroller = \"sack\""),
        ("bbr", "protocol = \"udt\"\ncontroller = \"bbr\""),
    ] {
        let of_law: Vec<&Cell> = all.iter().filter(|cell| cell.label.starts_with(&format!("tcp {law} "))).collect();
        assert!((5..=25).contains(&of_law.len()), "{law}: {}", of_law.len());
        for cell in of_law {
            assert!(cell.scenario("udt").contains(keys), "{}", cell.scenario("udt"));
        }
    }
}

#[test]
fn late_hosts_are_expected_to_do_without_the_time_they_lack() {
    let cell = &cells(1, 1, &[Family::LateHosts])[0];
    let setup = setup(cell);
    let [sender, receiver] = setup.flows[0].hosts.map(|host| host.unwrap().late.unwrap());
    let rate = setup.topology.links[0].path.rate.unwrap().bits_per_second() as f64;
    let most = PAYLOAD * rate * (1.0 - sender.share());
    let least = cell.goals[0].least.unwrap();
    assert!(least < 0.90 * most && least > 0.90 * most * 0.8, "{least} of {most}");
    for late in [sender, receiver] {
        assert!((0.005..0.2).contains(&late.share()));
        assert!(late.buffer.unwrap() as f64 >= rate / 8.0 * 2.0 * late.pause.as_secs_f64() - 1.0);
    }
}

/// Runs an arena on two threads.
fn run(cells: Vec<Cell>, controllers: &[&str]) -> (Results, Vec<String>) {
    let controllers: Vec<String> = controllers.iter().map(|name| (*name).to_owned()).collect();
    let jobs = jobs(&cells, &controllers, "").unwrap();
    let mut works = [Work { figure: "arena".to_owned(), jobs, store: None }];
    let mut records = Vec::new();
    let options = Options {
        venue: &Venue::Simulator,
        threads: 2,
        stop: &AtomicBool::new(false),
        progress: &mut |_, _| {},
        ran: &mut |_| {},
        finished: &mut |_, all| {
            records = all;
            Ok(())
        },
    };
    sweep(&mut works, options).unwrap();
    let traces = records.iter().map(|record| record.trace.clone()).collect();
    (Results::new(vec![1], controllers, cells, &records, "farhaul lab arena".to_owned()), traces)
}

#[test]
fn the_ideal_passes_quick_cells_and_a_rate_far_below_does_not() {
    // Slow links have few packets.
    let quick = || cells(1, 3, &[Family::Slow]);
    let (results, traces) = run(quick(), &[IDEAL, "fixed:rate=100kbit"]);
    let tally = results.tally(0, None);
    assert_eq!((tally.passed, tally.cells, tally.score), (3, 3, 1.0), "{:?}", results.verdicts);
    let below = results.tally(1, Some(Family::Slow));
    assert_eq!((below.passed, below.cells), (0, 3));
    assert!((0.005..0.5).contains(&below.score), "{below:?}");
    assert_eq!(results.tally(0, Some(Family::Clean)), Tally::default());
    assert_eq!(run(quick(), &[IDEAL, "fixed:rate=100kbit"]).1, traces);
}

#[test]
fn scenarios_of_a_seed() {
    let shown: Vec<String> = cells(1, 16, &[]).iter().map(|cell| cell.scenario("udt")).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn the_page_shows_every_cell_with_all_controllers() {
    let cells = cells(1, 32, &[]);
    let verdict = |cell: &Cell, passed: bool| {
        let mark = |goal: &Goal| Mark {
            name: goal.measure.name(),
            value: Some(0.5),
            met: passed,
            score: if passed { 1.0 } else { 0.75 },
            ratio: 0.75,
        };
        Verdict { marks: cell.goals.iter().map(mark).collect(), passed, score: if passed { 1.0 } else { 0.75 } }
    };
    let verdicts = cells.iter().map(|cell| vec![verdict(cell, true), verdict(cell, cell.place % 2 == 0)]).collect();
    let controllers = vec!["udt".to_owned(), "<two>".to_owned()];
    let (count, command) = (cells.len(), "farhaul lab arena udt --seed 1,2".to_owned());
    let results = Results { seeds: vec![1, 2], controllers, cells, verdicts, command };
    let page = page(&results);
    let half = results.tally(1, None).passed;
    for words in [
        "farhaul lab arena udt --seed 1,2",
        "drawn by seeds 1 to 2",
        &format!("<b>udt</b> passes <b>{count} of {count}</b> (100 %), mean score 1.000."),
        &format!("<b>&lt;two&gt;</b> passes <b>{half} of {count}</b>"),
        "<span class=\"unmet\">0.75g!</span>",
        "I = f·R·(1 − p)·(1 − t0/T)",
    ] {
        assert!(page.contains(words), "{words}");
    }
    for cell in &results.cells {
        assert!(page.contains(&format!("<td class=\"n\">1/{}</td>", cell.place)));
    }
    assert_eq!(
        page.matches("<circle class=\"dot").count() + page.matches("<circle class=\"mark").count(),
        2 * count + 2
    );
    assert!(!page.contains("<script") && !page.contains("http://") || page.matches("http://").count() == 1);
}
