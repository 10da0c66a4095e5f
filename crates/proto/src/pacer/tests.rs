use super::*;

fn pacer(micros: f64) -> Pacer {
    let mut pacer = Pacer::default();
    pacer.set_period(SendPeriod::from_micros(micros), Duration::from_millis(100));
    pacer
}

/// A pacer with a catch-up speed of 1.1.
fn gentle(micros: f64) -> Pacer {
    let mut pacer = pacer(micros);
    pacer.set_catch_up_pace(Some(1.1));
    pacer
}

/// Packets in one second if the driver wakes `late` after each deadline.
fn packets_in_a_second(mut pacer: Pacer, late: Duration) -> u32 {
    let start = Instant::from_nanos(1_000_000_000);
    let (mut now, mut sent) = (start, 0);
    pacer.on_sent(now, 0);
    while now < start + Duration::from_secs(1) {
        match pacer.allowance(now) {
            0 => now = pacer.deadline().unwrap() + late,
            n => {
                pacer.on_sent(now, n);
                sent += n;
            }
        }
    }
    sent
}

#[test]
fn the_period_is_kept_on_average_however_late_the_driver_wakes() {
    for late in [0, 70, 1_500] {
        for pacer in [pacer(12.0), gentle(12.0)] {
            let sent = packets_in_a_second(pacer, Duration::from_micros(late));
            // The catch-up at the start is worth up to 10 ms.
            assert!((83_300..=84_200).contains(&sent), "{sent} packets when {late} µs late");
        }
    }
}

/// Packets in a second of a driver that runs for 4 ms and then waits `late` for others.
fn packets_beside_others(mut pacer: Pacer, late: Duration) -> u32 {
    let start = Instant::from_nanos(1_000_000_000);
    let (mut now, mut slice, mut sent) = (start, start, 0);
    pacer.on_sent(now, 0);
    pacer.hold();
    while now < start + Duration::from_secs(1) {
        match pacer.allowance(now) {
            0 => now = pacer.deadline().unwrap().max(now),
            n => {
                pacer.on_sent(now, n);
                sent += n;
                // Even a packet of a burst takes time.
                now += Duration::from_micros(1) * n;
            }
        }
        if now >= slice + Duration::from_millis(4) {
            now = now.max(slice + Duration::from_millis(4) + late);
            slice = now;
        }
    }
    sent
}

#[test]
fn an_absolute_schedule_keeps_its_rate_on_a_host_that_others_keep_busy() {
    for late in [0, 1, 4, 12] {
        let mut pacer = pacer(68.0);
        pacer.keep_schedule();
        let sent = packets_beside_others(pacer, Duration::from_millis(late));
        // A quarter of the processor suffices with a debt of 60 ms, which is all that is missing.
        assert!((13_800..=14_710).contains(&sent), "{sent} of 14 706 packets with waits of {late} ms");
    }
}

#[test]
fn a_late_host_makes_a_cap_good_no_faster_than_congestion_control_permits() {
    let sent = |most| {
        let mut pacer = pacer(68.0);
        pacer.keep_cap(Some(most));
        pacer.set_period(SendPeriod::from_micros(68.0), Duration::from_millis(100));
        packets_beside_others(pacer, Duration::from_millis(4))
    };
    // It runs for half of the time.
    assert!((14_000..=14_710).contains(&sent(3.0)), "{}", sent(3.0));
    // A pace of 1.5 permits 11 029, and each wake-up the packets of 0.5 ms and of twice the usual lateness at once.
    assert!((10_500..=12_900).contains(&sent(1.5)), "{}", sent(1.5));
}

#[test]
fn the_debt_of_an_absolute_schedule_is_bounded_and_paid_without_a_flood() {
    let mut pacer = pacer(12.0);
    pacer.keep_schedule();
    let mut now = Instant::from_nanos(60_000_000_000);
    let (start, mut sent) = (now, Vec::new());
    while now < start + Duration::from_millis(500) {
        match pacer.allowance(now) {
            0 => now = pacer.deadline().unwrap(),
            n => {
                pacer.on_sent(now, n);
                sent.push((now, n));
            }
        }
    }
    let until = |millis| {
        let end = start + Duration::from_millis(millis);
        sent.iter().take_while(|(at, _)| *at < end).map(|(_, n)| n).sum::<u32>()
    };
    assert!(until(1) <= 700, "{} packets in the first millisecond", until(1));
    let all = (500 + 100) * 1_000 / 12;
    assert!((all - 500..=all + 10).contains(&until(500)), "{} of {all}", until(500));
}

#[test]
fn a_burst_waits_until_as_many_packets_are_due_as_it_shall_have_at_least() {
    let mut pacer = pacer(50.0);
    assert_eq!(pacer.burst(), 5);
    pacer.set_least_packets(Some(20));
    assert_eq!(pacer.burst(), 20);
    let sent = packets_in_a_second(pacer, Duration::ZERO);
    assert!((19_980..=20_220).contains(&sent), "{sent}");
    pacer.set_most_packets(Some(8));
    assert_eq!(pacer.burst(), 8);
    pacer.set_least_packets(None);
    assert_eq!(pacer.burst(), 5);
}

#[test]
fn a_burst_is_a_quarter_of_a_millisecond_and_one_train_at_most() {
    assert_eq!(pacer(12.0).burst(), 20);
    assert_eq!(pacer(0.6).burst(), MAX_BURST);
    assert_eq!(pacer(10_000.0).burst(), 1);
}

#[test]
fn a_controller_bounds_a_burst_and_keeps_the_rate() {
    for late in [0, 70] {
        let mut pacer = gentle(12.0);
        pacer.set_most_packets(Some(5));
        assert_eq!(pacer.burst(), 5);
        let sent = packets_in_a_second(pacer, Duration::from_micros(late));
        assert!((83_300..=84_200).contains(&sent), "{sent} packets when {late} µs late");
    }
    let mut pacer = pacer(12.0);
    for (most, burst) in [(Some(0), 1), (Some(1_000), 20), (None, 20)] {
        pacer.set_most_packets(most);
        assert_eq!(pacer.burst(), burst);
    }
}

#[test]
fn a_driver_with_bounded_bursts_that_wakes_late_once_sends_two_of_them() {
    let mut pacer = gentle(12.0);
    pacer.set_most_packets(Some(5));
    let start = Instant::from_nanos(1_000_000_000);
    pacer.on_sent(start, 0);
    let now = pacer.deadline().unwrap() + Duration::from_millis(2);
    let mut at_once = 0;
    loop {
        match pacer.allowance(now) {
            0 => break,
            n => {
                pacer.on_sent(now, n);
                at_once += n;
            }
        }
    }
    // The lateness itself is now worth an eighth of 2 ms.
    assert!((10..=2 * 5 + 21).contains(&at_once), "{at_once} packets");
}

#[test]
fn bursts_longer_than_the_catch_up_keep_the_rate() {
    let mut pacer = pacer(1_000.0);
    pacer.set_period(SendPeriod::from_micros(1_000.0), Duration::from_millis(10));
    pacer.set_burst_time(Duration::from_millis(4));
    let sent = packets_in_a_second(pacer, Duration::ZERO);
    assert!((996..=1_004).contains(&sent), "{sent} packets");
}

#[test]
fn a_long_pause_earns_no_more_than_the_bounded_catch_up() {
    for (mut pacer, most) in [(pacer(12.0), 1 + 10_000 / 12 + 20), (gentle(12.0), 1 + 750 / 12)] {
        let now = Instant::from_nanos(60_000_000_000);
        let mut burst = 0;
        loop {
            let n = pacer.allowance(now);
            if n == 0 {
                break;
            }
            pacer.on_sent(now, n);
            burst += n;
        }
        assert!(burst <= most, "{burst}");
    }
}

#[test]
fn a_single_pause_of_the_driver_is_caught_up_a_tenth_faster() {
    let mut pacer = gentle(12.0);
    let (mut now, mut sent) = (Instant::from_nanos(1_000_000_000), Vec::new());
    let pause = now + Duration::from_millis(100);
    let end = now + Duration::from_millis(300);
    pacer.on_sent(now, 0);
    while now < end {
        match pacer.allowance(now) {
            0 => {
                let next = pacer.deadline().unwrap();
                now = if now < pause && next >= pause { next + Duration::from_millis(5) } else { next };
            }
            n => {
                pacer.on_sent(now, n);
                sent.push((now, n));
            }
        }
    }
    let all: u32 = sent.iter().map(|(_, n)| n).sum();
    // The first 10 ms count as a pause as well.
    assert!((25_800..=25_850).contains(&all), "{all} packets in 310 ms");
    let after = |millis| pause + Duration::from_millis(millis);
    let in_time = |from, until| sent.iter().filter(|(at, _)| (from..until).contains(at)).map(|(_, n)| n).sum::<u32>();
    let at_once = in_time(after(0), after(6));
    assert!(at_once <= 42 + 92 + 44, "{at_once} packets at once and in a millisecond");
    let catching_up = in_time(after(10), after(20));
    assert!((880..=940).contains(&catching_up), "{catching_up} packets in 10 ms");
}

#[test]
fn a_freeze_blocks_everything_and_is_not_caught_up() {
    let start = Instant::from_nanos(1_000_000_000);
    let freeze = Duration::from_millis(10);
    for micros in [12.0, 500.0] {
        let mut pacer = pacer(micros);
        pacer.on_sent(start, 0);
        pacer.allowance(start);
        pacer.freeze_until(start + freeze);
        assert_eq!(pacer.allowance((start + freeze).saturating_sub(Duration::from_nanos(1))), 0);
        assert!(pacer.deadline().unwrap() >= start + freeze);
        let (mut now, mut sent) = (start, 0);
        while now < start + Duration::from_millis(110) {
            match pacer.allowance(now) {
                0 => now = pacer.deadline().unwrap(),
                n => {
                    pacer.on_sent(now, n);
                    sent += n;
                }
            }
        }
        let expected = (100_000.0 / micros) as u32;
        assert!((expected - pacer.burst()..=expected + 1).contains(&sent), "{sent} packets of {micros} µs in 100 ms");
    }
}

#[test]
fn a_shorter_period_does_not_wait_for_the_one_before() {
    let (mut pacer, now) = (pacer(1_000_000.0), Instant::from_nanos(1_000_000_000));
    pacer.on_sent(now, 1);
    pacer.allowance(now);
    pacer.on_sent(now, 10);
    pacer.set_period(SendPeriod::from_micros(1_000.0), Duration::from_millis(100));
    pacer.hasten(now);
    assert!(pacer.deadline().unwrap() <= now + Duration::from_millis(2), "{:?}", pacer.deadline());
}

#[test]
fn a_frozen_sender_that_is_hastened_asks_for_no_time_before_the_end() {
    let mut pacer = pacer(500.0);
    let (now, end) = (Instant::from_nanos(1_000), Instant::from_nanos(10_001_000));
    pacer.freeze_until(end);
    pacer.hasten(now);
    assert_eq!(pacer.allowance(now), 0);
    assert!(pacer.deadline().unwrap() >= end);
}

#[test]
fn an_unpaced_sender_freezes_once_and_asks_for_no_time_afterwards() {
    let mut pacer = Pacer::default();
    let (now, end) = (Instant::from_nanos(1_000), Instant::from_nanos(10_001_000));
    pacer.freeze_until(end);
    assert_eq!((pacer.allowance(now), pacer.deadline()), (0, Some(end)));
    assert_eq!((pacer.allowance(end), pacer.deadline()), (MAX_BURST, None));
    pacer.freeze_until(end);
    assert_eq!((pacer.allowance(end), pacer.deadline()), (MAX_BURST, None), "the same end again");
}
