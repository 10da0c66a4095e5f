//! Models of the throughput of a long TCP transfer at a loss rate, to draw beside measured curves.
//!
//! Rates are in packets per second, times in seconds, windows in packets. Payload in bits per second is the result
//! times eight times the segment size. `loss` is the probability that a packet begins a loss event, clamped to 0..=1.

use libm::pow;

/// A TCP sender and its path, for [`padhye`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpSenderSpec {
    /// RTT, s.
    pub round_trip: f64,
    /// T₀: the first retransmission time-out, s.
    pub timeout: f64,
    /// b: packets covered by one acknowledgement: 1, or 2 with delayed acknowledgements.
    pub packets_per_ack: f64,
    /// W_m: the receiver's window, packets.
    pub largest_window: f64,
}

/// The square-root law: `sqrt(1.5/p) / RTT`, for one acknowledgement per packet, no time-outs and an unlimited window.
///
/// [`f64::INFINITY`] if the loss or the RTT is zero, where the law sets no bound.
///
/// Source: paper:mathis-1997; it is the model that paper:emulab quotes.
///
/// ```
/// use farhaul_sim::measure::tcp_response::mathis;
/// // 1460 bytes, 100 ms, a loss in 10 000: 14.3 Mbit/s.
/// assert_eq!((mathis(0.1, 1e-4) * 1460.0 * 8.0 / 1e5).round(), 143.0);
/// ```
pub fn mathis(round_trip: f64, loss: f64) -> f64 {
    if loss <= 0.0 || round_trip <= 0.0 {
        return f64::INFINITY;
    }
    (1.5 / loss.min(1.0)).sqrt() / round_trip
}

/// The model of Reno with time-outs and a limited window, in its short form:
///
/// `min(W_m/RTT, 1/(RTT·sqrt(2bp/3) + T₀·min(1, 3·sqrt(3bp/8))·p·(1 + 32p²)))`.
///
/// Without loss the rate that the window allows. If the RTT is zero as well, [`f64::INFINITY`].
///
/// Source: paper:padhye-2000, the approximate model; TFRC (RFC 5348 §3.1) uses it with b = 1.
pub fn padhye_approximate(sender: &TcpSenderSpec, loss: f64) -> f64 {
    let TcpSenderSpec { round_trip, timeout, packets_per_ack: b, largest_window } = *sender;
    let p = loss.clamp(0.0, 1.0);
    let by_timeouts = timeout * (3.0 * (3.0 * b * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
    let time = round_trip * (2.0 * b * p / 3.0).sqrt() + by_timeouts;
    rate(1.0, time).min(rate(largest_window, round_trip))
}

/// The same model in full:
///
/// ```text
/// W = (2+b)/(3b) + sqrt( 8(1−p)/(3bp) + ((2+b)/(3b))² )                                    the mean window at a loss
/// Q = min(1, (1−(1−p)³)·(1 + (1−p)³·(1−(1−p)^(w−3))) / (1−(1−p)^w))                        that a loss is a timeout, w = min(W, W_m)
/// f = 1 + p + 2p² + 4p³ + 8p⁴ + 16p⁵ + 32p⁶                                                backing off
///
/// ((1−p)/p + w + Q/(1−p)) / (RTT·r + Q·f·T₀/(1−p)),   r = b·W/2 + 1                         for W < W_m
///                                                     r = b·W_m/8 + (1−p)/(p·W_m) + 2       otherwise
/// ```
///
/// Without loss the rate that the window allows. If the RTT is zero as well, [`f64::INFINITY`]. At total loss, one
/// packet in 64 time-outs. Source: paper:padhye-2000, the full model.
pub fn padhye(sender: &TcpSenderSpec, loss: f64) -> f64 {
    let TcpSenderSpec { round_trip, timeout, packets_per_ack: b, largest_window } = *sender;
    let p = loss.clamp(0.0, 1.0);
    if p <= 0.0 {
        return rate(largest_window, round_trip);
    }
    if p >= 1.0 {
        return rate(1.0, backing_off(p) * timeout);
    }
    let step = (2.0 + b) / (3.0 * b);
    let unlimited = step + (8.0 * (1.0 - p) / (3.0 * b * p) + step * step).sqrt();
    let (window, rounds) = if unlimited < largest_window {
        (unlimited, b / 2.0 * unlimited + 1.0)
    } else {
        (largest_window, b / 8.0 * largest_window + (1.0 - p) / (p * largest_window) + 2.0)
    };
    let timeouts = timeout_probability(p, window) / (1.0 - p);
    rate((1.0 - p) / p + window + timeouts, round_trip * rounds + timeouts * backing_off(p) * timeout)
}

/// Q of the full model.
fn timeout_probability(p: f64, window: f64) -> f64 {
    let arrives = 1.0 - p;
    let three = pow(arrives, 3.0);
    let share = (1.0 - three) * (1.0 + three * (1.0 - pow(arrives, window - 3.0))) / (1.0 - pow(arrives, window));
    // A window of three packets or fewer cannot cause three duplicate acknowledgements.
    if window <= 3.0 || share.is_nan() { 1.0 } else { share.clamp(0.0, 1.0) }
}

/// f of the full model: the length of a sequence of time-outs, in units of the first.
fn backing_off(p: f64) -> f64 {
    1.0 + p * (1.0 + p * (2.0 + p * (4.0 + p * (8.0 + p * (16.0 + p * 32.0)))))
}

/// `packets` per `time`; infinite if `time` is zero.
fn rate(packets: f64, time: f64) -> f64 {
    if time <= 0.0 { f64::INFINITY } else { packets / time }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PATH: TcpSenderSpec =
        TcpSenderSpec { round_trip: 0.1, timeout: 0.5, packets_per_ack: 2.0, largest_window: 1e9 };

    fn close(left: f64, right: f64) -> bool {
        (left / right - 1.0).abs() < 1e-6
    }

    #[test]
    fn the_models_by_hand() {
        assert!(close(mathis(0.1, 0.01), 122.474_487));
        assert!(close(padhye_approximate(&PATH, 0.01), 77.819_798));
        // W = 12.175 and Q = 0.2799.
        assert!(close(padhye(&PATH, 0.01), 76.323_811));
        assert!(close(padhye(&TcpSenderSpec { packets_per_ack: 1.0, ..PATH }, 0.01), 108.735_506));
        // A third of the windows is lost completely: W = 4.19, Q = 0.824.
        assert!(close(padhye(&PATH, 0.1), 13.639_678));
        assert!(close(padhye(&TcpSenderSpec { largest_window: 20.0, ..PATH }, 0.001), 176.566_607));
    }

    #[test]
    fn without_loss_the_window_is_the_limit_and_with_nothing_but_loss_the_timeouts() {
        let limited = TcpSenderSpec { largest_window: 100.0, ..PATH };
        assert_eq!([padhye(&limited, 0.0), padhye_approximate(&limited, 0.0)], [1_000.0; 2]);
        assert_eq!(
            [mathis(0.1, 0.0), mathis(0.0, 0.1), padhye(&TcpSenderSpec { round_trip: 0.0, ..PATH }, 0.0)],
            [f64::INFINITY; 3]
        );
        assert!(close(padhye(&PATH, 1.0), 1.0 / 32.0));
        assert!(close(padhye(&PATH, 1.0 - 1e-9), 1.0 / 32.0), "the limit");
    }

    #[test]
    fn for_rare_losses_all_three_are_the_square_root_law() {
        let prompt = TcpSenderSpec { packets_per_ack: 1.0, ..PATH };
        for loss in [1e-7, 1e-8] {
            let law = mathis(0.1, loss);
            assert!(
                (padhye(&prompt, loss) / law - 1.0).abs() < 1e-3
                    && (padhye_approximate(&prompt, loss) / law - 1.0).abs() < 1e-3
            );
        }
    }

    #[test]
    fn the_limited_window_meets_the_unlimited_one() {
        // At W_m = W(0.01) = 12.175118 both forms hold.
        let [below, above] =
            [12.175_117, 12.175_119].map(|largest_window| padhye(&TcpSenderSpec { largest_window, ..PATH }, 0.01));
        assert!(close(below, above));
    }

    proptest! {
        #[test]
        fn more_loss_a_longer_round_trip_or_a_smaller_window_never_raise_the_rate(
            loss in 1e-9..0.3f64,
            more in 1.0..3.0f64,
            round_trip in 1e-3..1.0f64,
            window in 4.0..1e4f64,
        ) {
            let sender = TcpSenderSpec { round_trip, timeout: 4.0 * round_trip, packets_per_ack: 1.0, largest_window: window };
            for model in [padhye, padhye_approximate] {
                let rate = model(&sender, loss);
                prop_assert!(rate.is_finite() && rate > 0.0);
                let longer = TcpSenderSpec { round_trip: round_trip * more, ..sender };
                let narrower = TcpSenderSpec { largest_window: window / more, ..sender };
                for lower in [model(&sender, loss * more), model(&longer, loss), model(&narrower, loss)] {
                    prop_assert!(lower <= rate * 1.000_001, "{} and {}", lower, rate);
                }
            }
        }
    }
}
