use farhaul_units::Duration;

use super::*;

/// Packets/s that give `bits` per second at 1500 bytes.
fn packets(bits: f64) -> f64 {
    bits / 12_000.0
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-9 * right.abs()
}

fn path(capacity: f64, delivered: f64) -> Path {
    Path {
        mss: 1_500,
        rtt: Duration::from_millis(100),
        capacity: Some(PacketRate::new(capacity)),
        delivery_rate: Some(PacketRate::new(delivered)),
        ..Path::default()
    }
}

#[test]
fn increase_follows_the_decade_of_the_spare_bandwidth() {
    for (spare, expected) in [
        (9.99e9, 10.0),
        (1.01e9, 10.0),
        (9.9e8, 1.0),
        (1.01e8, 1.0),
        (9.9e7, 0.1),
        (1.01e7, 0.1),
        (9.9e6, 0.01),
        (1e5, 0.01),
        (1.0, 0.01),
        (0.0, 0.01),
        (-1e9, 0.01),
        (f64::NEG_INFINITY, 0.01),
    ] {
        let increase = increase(packets(spare), 1_500);
        assert!(close(increase, expected), "{spare} bit/s: {increase}, not {expected}");
    }
}

#[test]
fn a_power_of_ten_belongs_to_the_lower_class() {
    // 1250 bytes are 10^4 bits, so that the product is exact.
    for (exponent, expected) in [(8, 0.12), (9, 1.2), (10, 12.0)] {
        let spare = libm::exp10(f64::from(exponent)) / 1e4;
        assert!(close(increase(spare, 1_250), expected), "10^{exponent}");
        assert!(close(increase(spare * 1.000_001, 1_250), expected * 10.0), "just above 10^{exponent}");
    }
}

#[test]
fn smaller_packets_are_added_in_larger_numbers() {
    assert!(close(increase(5e8 / (9_000.0 * 8.0), 9_000), 1.0 / 6.0));
    assert!(close(increase(5e8 / (500.0 * 8.0), 500), 3.0));
}

#[test]
fn recovery_counts_a_ninth_of_the_capacity_as_spare() {
    let gigabit = PacketRate::new(90_000.0);
    let (slow, fast) = (SendPeriod::from_micros(100.0), SendPeriod::from_micros(50.0));
    assert!(close(spare_bandwidth(gigabit, slow, fast), 10_000.0));
    assert!(close(spare_bandwidth(gigabit, slow, slow), 80_000.0));
    assert!(close(spare_bandwidth(gigabit, SendPeriod::from_micros(12.5), SendPeriod::UNPACED), 10_000.0));
    assert!(spare_bandwidth(gigabit, SendPeriod::from_micros(10.0), SendPeriod::UNPACED) < 0.0);
}

#[test]
fn raising_adds_the_increase_to_every_interval() {
    // 100 packets per SYN become 101.
    let raised = raise(SendPeriod::from_micros(100.0), 1.0);
    assert!(close(1e4 / raised.as_micros(), 101.0));
}

#[test]
fn a_cut_takes_a_ninth_and_rounds_to_whole_microseconds() {
    assert!(close(decrease(SendPeriod::from_micros(8.0), DECREASE).as_micros(), 9.0));
    assert!(close(decrease(SendPeriod::from_micros(12.0), DECREASE).as_micros(), 14.0));
}

#[test]
fn average_and_spread_by_numbers() {
    assert_eq!([average_naks(0, 0), average_naks(0, 1), average_naks(1, 5), average_naks(4, 1)], [0, 1, 2, 4]);
    assert_eq!([spread(0, 0.9), spread(3, 0.0), spread(3, 0.34), spread(3, 0.99)], [1, 1, 2, 3]);
}

#[test]
fn one_event_cuts_at_most_five_times() {
    let mut law = Daimd::new(1);
    let period = SendPeriod::from_micros(10.0);
    let first = SeqNo::new(100);
    let effects: Vec<NakEffect> = (0..8).map(|report| law.on_nak(first.plus(report), first.plus(50), period)).collect();
    assert_eq!(effects[0], NakEffect::NewEvent);
    assert_eq!(effects[1..5], [NakEffect::FurtherCut; 4], "without history every report may cut");
    assert_eq!(effects[5..], [NakEffect::Spared; 3]);
}

#[test]
fn in_2007_all_reports_count_and_five_of_them_cut() {
    let mut law = Daimd::of_2007(1);
    let period = SendPeriod::from_micros(10.0);
    let first = SeqNo::new(100);
    let mut effects = (0..9).map(|report| law.on_nak(first.plus(report), first.plus(50), period));
    assert_eq!(effects.next(), Some(NakEffect::NewEvent));
    let further: Vec<NakEffect> = effects.collect();
    assert_eq!(further[..5], [NakEffect::FurtherCut; 5], "without history every report may cut");
    assert_eq!(further[5..], [NakEffect::Spared; 3]);
    assert_eq!((law.naks, law.cuts), (9, 5));
}

#[test]
fn in_release_3_3_a_second_report_of_a_rare_event_seldom_cuts() {
    let mut law = Daimd::of_release(1);
    let period = SendPeriod::from_micros(10.0);
    // Events of two reports each, far apart. M grows to nine, so that N divides two for one or two of nine values.
    let mut cuts = 0;
    for event in 0..900_u32 {
        let first = SeqNo::new(1_000 * event);
        assert_eq!(law.on_nak(first, first.plus(50), period), NakEffect::NewEvent);
        cuts += u32::from(law.on_nak(first.plus(1), first.plus(50), period) == NakEffect::FurtherCut);
    }
    assert!((150..250).contains(&cuts), "{cuts} of 900");
}

#[test]
fn packets_sent_after_the_cut_make_a_new_event() {
    let mut law = Daimd::new(1);
    let period = SendPeriod::from_micros(10.0);
    assert_eq!(law.on_nak(SeqNo::new(100), SeqNo::new(150), period), NakEffect::NewEvent);
    assert_ne!(law.on_nak(SeqNo::new(150), SeqNo::new(180), period), NakEffect::NewEvent);
    assert_eq!(law.on_nak(SeqNo::new(181), SeqNo::new(200), period), NakEffect::NewEvent);
}

#[test]
fn an_old_event_does_not_hide_a_loss_half_a_wrap_later() {
    let mut law = Daimd::new(1);
    let period = SendPeriod::from_micros(10.0);
    assert_eq!(law.on_nak(SeqNo::new(100), SeqNo::new(150), period), NakEffect::NewEvent);
    law.on_progress(SeqNo::new(151));
    let later = SeqNo::new(150).plus(1 << 30).plus(5);
    assert_eq!(law.on_nak(later, later.plus(10), period), NakEffect::NewEvent);
}

#[test]
fn an_interval_with_loss_adds_nothing() {
    let mut law = Daimd::new(1);
    let period = SendPeriod::from_micros(100.0);
    let path = path(83_333.0, 10_000.0);
    law.on_nak(SeqNo::new(1), SeqNo::new(2), period);
    assert_eq!(law.on_syn(period, &path), period);
    assert!(law.on_syn(period, &path) < period);
}

#[test]
fn a_claimed_capacity_lifts_the_rate_to_four_times_the_delivered_at_most() {
    let mut law = Daimd::new(1);
    let mut period = SendPeriod::from_micros(100.0);
    let path = path(f64::from(i32::MAX), 10_000.0);
    for _ in 0..100 {
        period = law.on_syn(period, &path);
    }
    assert!(close(period.as_micros(), 25.0), "{period:?}");
}

#[test]
fn the_ceiling_never_lowers_the_rate() {
    let mut law = Daimd::new(1);
    let period = SendPeriod::from_micros(10.0);
    assert_eq!(law.on_syn(period, &path(83_333.0, 100.0)), period);
}

#[test]
fn without_a_measurement_only_the_smallest_increase_is_made() {
    let mut law = Daimd::new(1);
    let period = SendPeriod::from_micros(100.0);
    let least = raise(period, MIN_INCREASE);
    let no_capacity = Path { capacity: None, ..path(1.0, 10_000.0) };
    let no_delivery = Path { delivery_rate: None, ..path(83_333.0, 1.0) };
    assert_eq!(law.on_syn(period, &no_capacity), least);
    assert_eq!(law.on_syn(period, &no_delivery), least);
}
