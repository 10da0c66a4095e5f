//! Losses: of bursts, of policers, of chance, and those that are none.

use super::*;

#[test]
fn losses_in_start_up_without_a_queue_leave_the_capacity_of_its_trains() {
    let mut script = Script::new();
    (0..2).for_each(|_| script.deliver(1_000.0, 0.0, Some(10_000.0)));
    (0..8).for_each(|_| script.deliver(100.0, 0.0, Some(10_000.0)));
    assert!(matches!(script.law.phase, UnionPhase::Start(_)));
    script.lose(64);
    assert_eq!(script.law.rate, 10_000.0);
}

#[test]
fn losses_without_a_queue_halve_bursts_before_they_cost_rate() {
    let mut script = Script::grown();
    script.law.rate = 100_000.0;
    script.law.link.lower(101_011.0);
    script.law.carried.take(script.path.now, MEMORY, 110_000.0);
    let mut changes = Vec::new();
    for _ in 0..60 {
        script.lose(6);
        script.deliver(10_000.0, 0.0, None);
        if script.control.burst.is_some() && changes.last().is_none_or(|(burst, _)| *burst != script.control.burst) {
            changes.push((script.control.burst, script.law.rate > 99_000.0));
        }
    }
    assert_eq!(changes, [12, 6, 4].map(|burst| (Some(burst), true)), "no rate is lost meanwhile");
    assert!(script.control.catch_up_pace.is_some());
    assert!(script.law.rate < 99_000.0, "bursts of four are the shortest");
}

#[test]
fn more_losses_than_bursts_explain_cost_rate_at_once() {
    let mut script = Script::grown();
    script.law.rate = 100_000.0;
    script.law.link.lower(101_011.0);
    while script.control.burst.is_none() {
        script.lose(90);
        script.deliver(10_000.0, 0.0, None);
    }
    assert_eq!(script.control.burst, Some(12));
    assert!(script.law.rate < 90_000.0, "{}", script.law.rate);
    assert!(script.control.catch_up_pace.is_some_and(|pace| pace < 1.011), "a late host does not exceed the link");
}

#[test]
fn the_round_after_a_cut_counts_no_losses() {
    let (mut losses, mut path) = (Losses::default(), Path { rtt: RTT, ..Path::default() });
    let mut round = |losses: &mut Losses| {
        losses.add(50);
        path.packets_sent += 100;
        path.now += RTT + SYN_INTERVAL;
        losses.end_of_round(&path, 0.0)
    };
    assert_eq!(round(&mut losses), Some(0.5));
    losses.cut(&Path { now: Instant::ZERO + RTT + SYN_INTERVAL, packets_sent: 100, rtt: RTT, ..Path::default() });
    assert_eq!([round(&mut losses), round(&mut losses)].map(|lost| lost.is_some()), [false, true]);
}

#[test]
fn a_policer_is_believed_once_growth_arrives_in_vain() {
    // Of 10 000 packets/s, or of all that leaves.
    let believes = |limit: f64| {
        let mut script = Script::grown();
        script.law.belief = Belief::default();
        script.law.link.lower(11_000.0);
        script.law.rate = 9_000.0;
        let mut paces = vec![9_000.0; 5];
        for _ in 0..150 {
            let left = paces[paces.len() - 5];
            let lost = if limit > 0.0 { (left - limit).max(0.0) } else { left * 0.1 };
            if lost > 0.0 {
                script.lose((lost / 100.0) as u32);
            }
            script.deliver(left - lost, 0.0, None);
            script.path.packets_sent += (lost / 100.0) as u64;
            paces.push(script.pace());
        }
        script.law.belief.is_sole()
    };
    assert!(believes(10_000.0));
    assert!(!believes(0.0), "a path that loses a tenth of whatever leaves");
}

#[test]
fn what_is_too_much_for_a_round_is_told_before_its_end() {
    let lossy = |lost| {
        let (mut losses, mut path) = (Losses::default(), Path { rtt: RTT, ..Path::default() });
        path.packets_sent = 1_000;
        path.now += SYN_INTERVAL;
        losses.add(lost);
        losses.end_of_round(&path, 60.0)
    };
    assert_eq!(lossy(40), None, "others of the round may all arrive");
    let share = lossy(60).unwrap();
    assert!((0.3..0.6).contains(&share), "half of those of which it is known: {share}");
}

#[test]
fn a_loss_report_raises_nothing() {
    let mut script = Script::grown();
    let (pace, window) = (script.pace(), cwnd(&script.control));
    (0..50).for_each(|_| script.lose(10));
    assert!(script.pace() <= pace && cwnd(&script.control) <= window);
}

#[test]
fn losses_that_turn_out_to_be_none_cost_nothing() {
    let rate_after = |lost, spurious| {
        let mut script = Script::grown();
        script.lose(lost);
        script.law.on_recovered(&script.path, spurious, &mut script.control);
        (0..12).for_each(|_| script.deliver(9_900.0, 0.0, None));
        script.law.rate
    };
    assert_eq!(rate_after(800, true), rate_after(0, false));
    assert!(rate_after(800, false) < 0.97 * rate_after(0, false), "{}", rate_after(800, false));
}

#[test]
fn losses_of_a_burst_are_compared_with_the_burst_and_not_with_what_follows_it() {
    let rate_after = |lost| {
        let mut script = Script::grown();
        script.path.application_limited = true;
        (0..6).for_each(|_| script.deliver(9_900.0, 0.0, None));
        // The burst is over when its losses are reported, and only their repairs leave.
        script.lose(lost);
        (0..12).for_each(|_| script.deliver(100.0, 0.0, None));
        script.law.rate
    };
    assert_eq!(rate_after(5), rate_after(0));
    assert!(rate_after(60) < 0.97 * rate_after(0), "{}", rate_after(60));
}

#[test]
fn many_small_flows_halve_once() {
    let mut script = Script::grown();
    script.law.rate = 300.0;
    let lose = |script: &mut Script| {
        let (before, held) = (script.law.rate, script.law.losses.hold_until);
        for _ in 0..60 {
            script.lose(1);
            script.deliver(200.0, 0.0, None);
            if script.law.losses.hold_until > held {
                return script.law.rate / before;
            }
        }
        panic!("no round is lossy")
    };
    let left = lose(&mut script);
    assert!(left <= HALF, "{left}");
    // Losses go on at the lower rate: they are of chance.
    let left = lose(&mut script);
    assert!(left > HALF, "{left}");
}

#[test]
fn losses_of_the_flight_that_overran_the_path_at_the_start_count_once() {
    let mut script = Script::grown();
    script.law.first_flight = Some(SeqNo::new(500));
    let before = script.law.losses.lost();
    script.lose(500);
    assert_eq!(script.law.losses.lost(), before, "they left before start-up ended");
    script.lose(501);
    assert_eq!(script.law.losses.lost(), before + 501.0);
    script.lose(500);
    assert_eq!(script.law.losses.lost(), before + 1001.0, "the flight is over");
}
