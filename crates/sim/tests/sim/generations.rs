//! The generations of UDT as whole endpoints on one path: they work, and they differ as published.

use std::cell::RefCell;
use std::rc::Rc;

use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_proto::{Config, Endpoint, Entropy, Mode, controller_factory, udt};
use farhaul_sim::measure::interval::mean;
use farhaul_sim::measure::throughput::goodput;
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair, address};
use farhaul_sim::{Simulation, TapAction, Workload};
use farhaul_units::{Duration, Instant, Rate};

const SEEDS: u64 = 2;

fn endpoint(controller: &str, seed: u64) -> Endpoint {
    let controller = controller_factory(controller.parse().expect("a controller of the registry"));
    udt::endpoint(Config { controller, ..Config::default() }, Entropy { cookie_key: [0; 16], seed })
}

fn start(controller: &str, rate: Rate, round_trip: Duration, loss: f64, seed: u64) -> Simulation<Endpoint> {
    let clean =
        PathSpec { rate: Some(rate), delay: round_trip / 2, queue: QueueSize::Bdp(round_trip), ..PathSpec::default() };
    let up = PathSpec { loss: (loss > 0.0).then_some(LossSpec::Bernoulli(loss)), ..clean.clone() };
    let mut listener = endpoint(controller, 2 * seed + 1);
    listener.listen(Mode::Stream).expect("UDT has the mode");
    let pair = Pair::new(endpoint(controller, 2 * seed), listener).up(up).down(clean);
    pair.caller(Workload::send_without_end()).seed(seed).start()
}

/// Goodput in Mbit/s from second 10 to second 20, for each seed, at 100 Mbit/s and 40 ms.
fn settled(controller: &str, loss: f64) -> Vec<f64> {
    let (from, to) = (Duration::from_secs(10), Duration::from_secs(20));
    let run = |seed| {
        let mut run = start(controller, Rate::from_megabits_per_second(100), Duration::from_millis(40), loss, seed);
        run.sample_every(Duration::from_millis(500));
        run.run_for(to);
        let id = run.flows(LISTENER)[0].id();
        let samples = run.samples().expect("they were asked for");
        let rate = goodput(samples, LISTENER, id, Instant::ZERO + from, Instant::ZERO + to);
        rate.map_or(0.0, |rate| rate.bits_per_second() as f64 / 1e6)
    };
    (1..=SEEDS).map(run).collect()
}

// Slow: four generations fill the link until they have settled.
#[test]
fn every_generation_fills_a_clean_path() {
    for controller in ["udt-2007", "udt-2011", "udt-2011:only=rate", "udt-2011:only=window"] {
        let megabits = mean(&settled(controller, 0.0));
        // A payload of 1456 in 1500 bytes gives at most 97 Mbit/s. The last tenth of the link fills at 1.2 Mbit/s per
        // second.
        assert!((85.0..97.1).contains(&megabits), "{controller}: {megabits:.1} Mbit/s");
    }
}

#[test]
fn the_free_first_report_of_2007_keeps_more_under_random_loss() {
    let [early, native] = ["udt-2007", "udt"].map(|controller| settled(controller, 1e-3));
    assert!(mean(&early) > 1.5 * mean(&native), "{early:.1?} and {native:.1?}");
}

#[test]
fn the_wider_window_of_2011_gains_under_random_loss() {
    let [modified, native] = ["udt-2011:only=window", "udt"].map(|controller| settled(controller, 1e-3));
    assert!(mean(&modified) > mean(&native), "{modified:.1?} and {native:.1?}");
}

/// Time from the report of one lost packet to the next data packet of its sender.
fn silence_after_a_report(controller: &str) -> Duration {
    let round_trip = Duration::from_millis(20);
    let mut run = start(controller, Rate::from_megabits_per_second(100), round_trip, 0.0, 1);
    run.run_for(Duration::from_secs(12));
    let seen = Rc::new(RefCell::new(Seen::default()));
    let tap = Rc::clone(&seen);
    run.set_tap(Some(Box::new(move |datagram| {
        let seen = &mut *tap.borrow_mut();
        let is_data = datagram.bytes[0] & 0x80 == 0;
        if is_data && datagram.from == address(CALLER) {
            seen.departures.push(datagram.now);
            return if seen.departures.len() == 1 { TapAction::Drop } else { TapAction::Pass };
        }
        if datagram.bytes[..2] == NAK && seen.reported.is_none() {
            seen.reported = Some(datagram.now + round_trip / 2);
        }
        TapAction::Pass
    })));
    run.run_for(Duration::from_millis(200));
    let seen = seen.borrow();
    let reported = seen.reported.expect("one packet is lost");
    let next = seen.departures.iter().find(|departure| **departure > reported).expect("it goes on");
    *next - reported
}

/// The first two bytes of a loss report.
const NAK: [u8; 2] = [0x80, 0x03];

#[derive(Default)]
struct Seen {
    departures: Vec<Instant>,
    reported: Option<Instant>,
}

#[test]
fn one_lost_packet_freezes_the_generation_of_2007_for_one_interval_and_no_other() {
    let syn = Duration::from_millis(10);
    let silence = silence_after_a_report("udt-2007");
    assert!(silence >= syn && silence < syn + Duration::from_millis(1), "{silence:?}");
    for controller in ["udt", "udt-2011"] {
        let silence = silence_after_a_report(controller);
        assert!(silence < Duration::from_millis(1), "{controller}: {silence:?}");
    }
}
