//! The rate on a path: utilisation, fairness, warnings.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use farhaul_netem::{LossSpec, PathSpec};
use farhaul_proto::{Config, Endpoint, Entropy, Mode};
use farhaul_protocols::udt2004;
use farhaul_sim::measure::throughput::goodput;
use farhaul_sim::topology::dumbbell::{self, Dumbbell, Flank};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_sim::{TapAction, Workload};
use farhaul_units::{Duration, Rate};
use farhaul_wire::udt2004::{Control, is_control};

use crate::udt2004::scenario::{
    at_millis, endpoint, listener, pair, paper, paper_with, path, stats, throughput, throughput_of, utilisation,
};

/// §4.1: at least 94.4 % = (1 + 1/1.125)/2.
// Slow: five paths of up to 500 Mbit/s, each for 10 s in virtual time.
#[test]
fn one_flow_uses_at_least_944_permille_of_the_path() {
    for (megabits, round_trip, queue) in
        [(100, 10, 100), (100, 10, 1_000), (10, 10, 100), (10, 100, 100), (500, 10, 1_000)]
    {
        let (rate, _) = throughput(paper, path(megabits, round_trip, queue), (3, 10));
        let used = utilisation(rate, megabits);
        assert!(used >= 0.944, "{megabits} Mbit/s, {round_trip} ms, queue {queue}: {used:.3}");
    }
}

#[test]
fn waits_for_a_cap_below_the_rate_of_congestion_control_count_as_its_own() {
    let limits = |cap: Option<Rate>| {
        let config = move || Config { max_rate: cap, ..paper() };
        let mut run = pair(1, config).path(path(100, 20, 170)).caller(Workload::send_without_end()).start();
        run.run_for(Duration::from_secs(10));
        let totals = stats(&run, CALLER).totals;
        (totals.limited_by_rate_cap, totals.limited_by_congestion)
    };
    let (by_cap, by_congestion) = limits(Some(Rate::from_megabits_per_second(5)));
    assert!(by_cap > by_congestion * 4, "{by_cap:?} {by_congestion:?}");
    let (by_cap, by_congestion) = limits(None);
    assert!(by_cap.is_zero() && by_congestion > Duration::from_secs(5), "{by_cap:?} {by_congestion:?}");
}

/// Payload rates in Mbit/s of flows on a shared `link` from `from` to `to` seconds. One flow joins every second.
fn shares(configs: &[fn() -> Config], link: &PathSpec, (from, to): (u64, u64)) -> Vec<f64> {
    let mut net = Dumbbell::new(link.clone());
    for (pair, config) in configs.iter().enumerate() {
        let access = PathSpec { rate: Some(Rate::from_megabits_per_second(1_000)), ..PathSpec::default() };
        let (caller, listener) = (endpoint(100 + pair as u64, config()), listener(200 + pair as u64, config()));
        let begins = at_millis(1_000 * pair as u64);
        net = net.pair(Flank { caller, listener, access, workload: Workload::send_without_end(), begins });
    }
    let mut run = net.seed(1).start();
    run.sample_every(Duration::from_millis(100));
    run.run_for(Duration::from_secs(to));
    let samples = run.samples().expect("asked for");
    let rate = |pair| {
        let host = dumbbell::listener(pair);
        let id = run.flows(host)[0].id();
        let rate = goodput(samples, host, id, at_millis(1_000 * from), at_millis(1_000 * to)).expect("it was sampled");
        rate.bits_per_second() as f64 / 1e6
    };
    (0..configs.len()).map(rate).collect()
}

fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|share| share * share).sum::<f64>());
    sum * sum / (shares.len() as f64 * squares)
}

// Slow: two runs of 40 s at 100 Mbit/s in virtual time, of which the first 20 s are for the shares to settle.
#[test]
fn flows_that_join_one_after_another_come_to_share_fairly() {
    for flows in [2, 4] {
        let shares = shares(&vec![paper as fn() -> Config; flows], &path(100, 10, 200), (20, 40));
        let sum: f64 = shares.iter().sum();
        assert!(jain(&shares) >= 0.98 && sum >= 90.0, "{shares:.1?}");
    }
}

#[test]
fn warnings_that_are_off_are_not_sent_and_those_that_are_sent_can_be_ignored() {
    let silent = || {
        let mut listener = udt2004::endpoint(
            udt2004::Options { delay_warnings: false },
            paper(),
            Entropy { cookie_key: [3; 16], seed: 3 },
        );
        listener.listen(Mode::Stream).expect("the protocol has streams");
        Pair::new(endpoint(2, paper()), listener).seed(1)
    };
    let sent = |ends: Pair<Endpoint>| {
        let (_, run) = throughput_of(ends, path(100, 10, 3_000), (1, 8));
        (stats(&run, LISTENER).totals.delay_warnings_sent, stats(&run, CALLER).totals.packets_lost_sending)
    };
    let (warned, lost) = sent(pair(1, paper));
    assert!(warned > 0 && lost == 0, "{warned} warnings, {lost} lost");
    let (warned, lost) = sent(silent());
    assert!(warned == 0 && lost > 0, "{warned} warnings, {lost} lost: slow start ends by loss");
    let (warned, lost) = sent(pair(1, || paper_with("udt-2004:warnings=off")));
    assert!(warned > 0 && lost > 0, "{warned} warnings, {lost} lost");
}

/// §4.4 and A-err: estimates in different decades cause unequal increases, and false warnings cost throughput.
// Slow: three pairs of flows for 30 s and two single flows for 10 s, all at 100 Mbit/s in virtual time.
#[test]
fn errors_of_estimation_show_where_the_paper_says() {
    let link = path(100, 10, 200);
    let beside = |other| jain(&shares(&[paper, other], &link, (15, 30)));
    let (same, near, far) = (
        beside(paper),
        beside(|| paper_with("udt-2004:capacity-factor=0.9")),
        beside(|| paper_with("udt-2004:capacity-factor=0.1")),
    );
    assert!(same >= 0.98 && near >= 0.98, "{same:.3} {near:.3}");
    assert!(far < same, "{far:.3} {same:.3}");
    let used = |config: fn() -> Config| utilisation(throughput(config, link.clone(), (3, 10)).0, 100);
    let (right, wrong) = (used(paper), used(|| paper_with("udt-2004:false-warnings=0.5")));
    assert!(wrong < 0.9 * right, "{wrong:.3} {right:.3}");
}

/// §4.7: the utilisation falls with the link's error rate.
#[test]
fn random_errors_cost_throughput() {
    let used = |share: f64| {
        let loss = (share > 0.0).then_some(LossSpec::Bernoulli(share));
        utilisation(throughput(paper, PathSpec { loss, ..path(100, 10, 200) }, (3, 13)).0, 100)
    };
    let [clean, few, many] = [0.0, 1e-3, 1e-2].map(used);
    assert!(clean > few && few > many, "{clean:.3} {few:.3} {many:.3}");
    assert!(many > 0.05, "{many:.3}");
}

/// No data packet leaves in the SYN interval after a loss report (§3.5.2), not even its retransmission.
#[test]
fn sending_freezes_for_a_syn_after_a_decrease() {
    let left = Rc::new(RefCell::new(Vec::new()));
    let reported = Rc::new(Cell::new(None));
    let (seen, report) = (Rc::clone(&left), Rc::clone(&reported));
    let mut run = pair(1, paper).path(path(100, 10, 5_000)).caller(Workload::send_without_end()).start();
    run.run_for(Duration::from_secs(2));
    let mut packets = 0;
    run.set_tap(Some(Box::new(move |datagram| {
        if is_control(datagram.bytes) {
            if matches!(Control::decode(datagram.bytes), Ok(Control::Nak(_))) && report.get().is_none() {
                report.set(Some(datagram.now));
            }
            return TapAction::Pass;
        }
        packets += 1;
        seen.borrow_mut().push(datagram.now);
        if packets == 500 { TapAction::Drop } else { TapAction::Pass }
    })));
    run.run_for(Duration::from_millis(400));
    // The report takes 5 ms and its own length on the link.
    let came = reported.get().expect("a loss was reported") + Duration::from_micros(5_005);
    let within = |from: u64, to: u64| {
        let window = came + Duration::from_micros(from)..came + Duration::from_micros(to);
        left.borrow().iter().filter(|at| window.contains(at)).count()
    };
    assert_eq!(within(0, 9_990), 0);
    assert!(within(9_990, 12_000) > 0, "it goes on after the freeze");
}

/// A competing flow fills a short queue in step with the acknowledgements. Of an unpaced window, only the head arrives.
/// After an expiration only the head of the retransmissions does. So the receiver sees and reports no gap (departure
/// D147).
#[test]
fn a_window_of_which_only_the_head_arrives_ends_slow_start_without_a_loss_report() {
    /// Places in the queue, the time in which they drain, and how long the competing flow fills it after an
    /// acknowledgement.
    const PLACES: u32 = 6;
    const DRAIN: Duration = Duration::from_micros(720);
    const FILLED: Duration = Duration::from_millis(1);
    let link = PathSpec { delay: Duration::from_micros(50), ..path(100, 0, 1_000) };
    let mut run = pair(1, paper).path(link).caller(Workload::send_without_end()).start();
    let (mut free_at, mut burst, mut taken) = (at_millis(0), at_millis(0), 0);
    run.set_tap(Some(Box::new(move |datagram| {
        if is_control(datagram.bytes) {
            if matches!(Control::decode(datagram.bytes), Ok(Control::Ack(_))) {
                free_at = datagram.now + FILLED;
            }
            return TapAction::Pass;
        }
        if datagram.now >= burst + DRAIN {
            (burst, taken) = (datagram.now, 0);
        }
        taken += 1;
        if datagram.now < free_at || taken > PLACES { TapAction::Drop } else { TapAction::Pass }
    })));
    run.run_for(Duration::from_secs(5));
    let totals = stats(&run, CALLER).totals;
    let carried = 5 * 100_000_000 / (8 * 1_500);
    assert!(totals.timeouts > 0 && totals.packets_sent < carried, "{totals:#?}");
    assert!(totals.naks_received > 0, "the receiver sees the gaps of paced packets: {totals:#?}");
}
