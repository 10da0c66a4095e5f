//! The response function of each law of windows, its window over the share of lost packets, beside that of its paper.
//!
//! One packet in `1/p` is lost, exactly, on a path of 100 ms without a queue. So windows are sawteeth of equal teeth, which is what the
//! formulas of the papers describe.

use farhaul_cc::{AckEvent, Control, LossEvent, Path, Spec};
use farhaul_units::{Duration, Instant, SeqNo, SeqRange};

const RTT: Duration = Duration::from_millis(100);
/// Losses before counting, and while counting.
const WARM_UP: u32 = 30;
const COUNTED: u32 = 20;

/// The mean window of the law `spec` with one loss in `interval` packets. It takes over with a window of `cwnd`, because some laws come
/// down from slow start by a tenth per loss.
fn mean_window(spec: &str, interval: u32, cwnd: f64) -> f64 {
    let mut controller = spec.parse::<Spec>().expect("the tests name controllers that exist").build(1);
    let mut control = Control::initial();
    let mut path = Path::default();
    (path.rtt, path.min_rtt, path.latest_rtt) = (RTT, Some(RTT), Some(RTT));
    control.cwnd = Some(cwnd);
    controller.on_take_over(&path, &mut control);
    let mut acked = 0;
    let (mut packets, mut began) = (0.0, Instant::ZERO);
    for loss in 0..WARM_UP + COUNTED {
        if loss == WARM_UP {
            (packets, began) = (0.0, path.now);
        }
        let end = acked + interval;
        while acked < end {
            let cwnd = control.cwnd.expect("laws of windows set one");
            // A hundred acknowledgements in an RTT show a window's growth as well as one for each packet.
            let step = (cwnd / 100.0).ceil().min(f64::from(end - acked));
            acked += step as u32;
            packets += step;
            path.now += RTT.mul_f64(step / cwnd);
            (path.in_flight, path.next_seq) = (cwnd as u32, SeqNo::new(acked + cwnd as u32));
            let mut ack = AckEvent::default();
            (ack.seq, ack.newly_acked, ack.rtt_sample) = (SeqNo::new(acked), step as u32, Some(RTT));
            controller.on_ack(&path, &ack, &mut control);
        }
        path.in_flight = control.cwnd.expect("as above") as u32;
        let lost = [SeqRange::new(SeqNo::new(acked), SeqNo::new(acked))];
        controller.on_loss(&path, &LossEvent::new(&lost, 1, path.next_seq), &mut control);
        // What was in flight is acknowledged before the next loss counts.
        acked = acked.max(path.next_seq.value());
        path.next_seq = SeqNo::new(acked + path.in_flight);
        path.now += RTT;
        controller.on_recovered(&path, false, &mut control);
    }
    packets / (path.now - began).as_secs_f64() * RTT.as_secs_f64()
}

/// The window of additive increase by `a` per RTT and decrease by the share `b`.
fn additive(a: f64, b: f64, p: f64) -> f64 {
    (a * (2.0 - b) / (2.0 * b * p)).sqrt()
}

#[track_caller]
fn assert_response(spec: &str, intervals: &[u32], formula: impl Fn(f64) -> f64) {
    for interval in intervals {
        let expected = formula(1.0 / f64::from(*interval));
        let window = mean_window(spec, *interval, expected);
        let off = (window / expected - 1.0) * 100.0;
        assert!(
            off.abs() < 12.0,
            "{spec}, one loss in {interval}: {window:.0} packets, expected {expected:.0} ({off:+.0} %)"
        );
    }
}

#[test]
fn reno_and_newreno_follow_the_square_root() {
    for spec in ["reno", "newreno"] {
        assert_response(spec, &[1_000, 100_000, 10_000_000], |p| additive(1.0, 0.5, p));
    }
}

/// RFC 3649 §5: 0.12/p^0.835.
#[test]
fn highspeed_has_its_rfcs_window() {
    assert_response("highspeed", &[10_000, 100_000, 1_000_000], |p| 0.12 / libm::pow(p, 0.835));
}

/// The paper, §3: a/(b·p) at the top of a tooth, so by b/ln(1/(1 - b)) less on average.
#[test]
fn scalable_is_in_proportion_to_the_distance_of_losses() {
    let mean = 0.125 / libm::log(1.0 / 0.875);
    assert_response("scalable", &[1_000, 10_000, 100_000], |p| mean * 0.08 / p);
}

/// RFC 9438 §5.1 table: 1.054·RTT^¾/p^¾, beyond where Reno's window is larger.
#[test]
fn cubic_has_its_rfcs_window() {
    assert_response("cubic", &[100_000, 1_000_000], |p| 1.054 * libm::pow(RTT.as_secs_f64() / p, 0.75));
}

/// Far from W_max it adds S_max per RTT: the paper, §IV.
#[test]
fn bic_adds_its_largest_step_on_fast_paths() {
    assert_response("bic", &[10_000_000], |p| additive(16.0, 205.0 / 1_024.0, p));
}

/// Without a queue it grows by α_max and decreases by β_min: the paper, §IV.
#[test]
fn illinois_has_its_fastest_curve_without_a_queue() {
    assert_response("illinois", &[10_000, 1_000_000], |p| additive(10.0, 0.125, p));
}

/// The paper, §3: at 100 ms it has the throughput that Reno has at 25 ms.
#[test]
fn hybla_has_the_throughput_of_reno_at_25_ms() {
    assert_response("hybla", &[10_000, 1_000_000], |p| 4.0 * additive(1.0, 0.5, p));
}

/// With the bandwidth estimated, a loss leaves the path full.
#[test]
fn westwood_loses_little_of_its_window_by_random_losses() {
    assert!(mean_window("westwood", 10_000, 1_000.0) > 2.0 * additive(1.0, 0.5, 1e-4));
}
