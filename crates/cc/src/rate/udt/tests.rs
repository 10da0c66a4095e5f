use farhaul_units::{SeqNo, SeqRange};

use super::*;

#[test]
fn a_congestion_while_losses_are_repaired_does_not_forget_what_the_path_held() {
    let rate = |packets| Some(PacketRate::new(packets));
    let path = Path { arrival_rate: rate(80_000.0), delivery_rate: rate(30_000.0), ..Path::default() };
    let through = |carried| gets_through(&path, carried).unwrap();
    assert!((through(79_000.0) - 79_000.0).abs() < 1e-6, "arrived, and carried before");
    assert!((through(20_000.0) - 30_000.0).abs() < 1e-6, "no less than is acknowledged");
    assert_eq!(gets_through(&Path::default(), 1.0), None);
}

#[test]
fn the_return_after_a_pause_of_acknowledgements_goes_no_further_than_what_was_lost() {
    let round_trip = Duration::from_millis(100);
    let path = Path {
        now: Instant::ZERO + round_trip * 10,
        rtt: round_trip,
        min_rtt: Some(round_trip),
        arrival_rate: Some(PacketRate::new(60_000.0)),
        mss: 1_500,
        max_window: 100_000,
        ..Path::default()
    };
    let (mut law, mut control) = (Udt::new(1), Control::initial());
    (law.phase, law.carried, law.capacity) = (Phase::Steady, 80_000.0, Some(PacketRate::new(80_000.0)));
    control.send_period = PacketRate::new(60_000.0).send_period();
    law.on_syn(&path, &mut control);
    let rate = 1e6 / control.send_period.as_micros();
    assert!((rate / (80_000.0 * RETURN_SHARE) - 1.0).abs() < 1e-3, "{rate}");
}

#[test]
fn what_a_receiver_that_stood_still_sees_in_one_burst_is_not_what_the_path_carries() {
    let (mut law, mut control) = (Udt::new(1), Control::initial());
    let queue = Duration::from_millis(6);
    let mut path = Path {
        now: Instant::ZERO + Duration::from_secs(10),
        rtt: Duration::from_millis(100),
        min_rtt: Some(Duration::from_millis(100)),
        mss: 1_500,
        max_window: 100_000,
        ..Path::default()
    };
    (law.phase, law.capacity) = (Phase::Steady, Some(PacketRate::new(80_000.0)));
    control.send_period = PacketRate::new(80_500.0).send_period();
    let mut sees = |law: &mut Udt, arrives, rtt| {
        path.now += SYN_INTERVAL;
        (path.rtt, path.arrival_rate) = (rtt, Some(PacketRate::new(arrives)));
        law.on_syn(&path, &mut control);
    };
    for syn in 0..40 {
        sees(&mut law, if syn % 20 < 10 { 120_000.0 } else { 80_000.0 }, Duration::from_millis(100) + queue * 4);
    }
    let most = law.capacity.unwrap().packets_per_second().max(law.carried).max(law.stood);
    assert!((80_000.0..82_000.0).contains(&most), "{most}");
}

/// A path of 100 ms on which 10 packets/s arrive, and the round trip stands 20 ms above its least.
fn interactive() -> Path {
    Path {
        now: Instant::ZERO + Duration::from_secs(30),
        rtt: Duration::from_millis(120),
        min_rtt: Some(Duration::from_millis(100)),
        arrival_rate: Some(PacketRate::new(10.0)),
        delivery_rate: Some(PacketRate::new(10.0)),
        mss: 1_500,
        max_window: 100_000,
        in_flight: 2,
        application_limited: true,
        ..Path::default()
    }
}

fn lose_one(law: &mut Udt, path: &Path, control: &mut Control) {
    let range = [SeqRange::new(SeqNo::new(7), SeqNo::new(7))];
    law.on_loss(path, &LossEvent::new(&range, 1, SeqNo::new(9)), control);
}

#[test]
fn a_loss_while_the_application_is_the_limit_does_not_end_start_up_at_what_it_sent() {
    let (mut law, mut control, path) = (Udt::new(1), Control::initial(), interactive());
    lose_one(&mut law, &path, &mut control);
    assert!(matches!(law.phase, Phase::Start(_)) && control.send_period.is_unpaced());
    let mut path = path;
    path.application_limited = false;
    lose_one(&mut law, &path, &mut control);
    assert!(matches!(law.phase, Phase::Steady), "what arrives of one that sends all it can is the path's");
}

#[test]
fn a_loss_while_the_application_is_the_limit_does_not_say_when_the_path_is_full() {
    let (mut law, mut control, path) = (Udt::new(1), Control::initial(), interactive());
    (law.phase, law.carried, law.full) = (Phase::Steady, 80_000.0, 81_000.0);
    control.send_period = PacketRate::new(80_000.0).send_period();
    lose_one(&mut law, &path, &mut control);
    assert!((law.full - 81_000.0).abs() < 1e-9, "{}", law.full);
}

#[test]
fn a_path_on_which_packets_overtook_each_other_is_another_one_twenty_seconds_later() {
    let (mut law, mut control) = (Udt::new(1), Control::initial());
    let mut path = Path { arrival_rate: Some(PacketRate::new(70_000.0)), ..interactive() };
    path.application_limited = false;
    (law.phase, law.capacity) = (Phase::Steady, Some(PacketRate::new(80_000.0)));
    lose_one(&mut law, &path, &mut control);
    law.on_recovered(&path, true, &mut control);
    let mut rate_after_new_queue = |seconds| {
        path.now += Duration::from_secs(seconds);
        (law.carried, law.full, law.queue) = (80_000.0, 80_000.0, QueueWatch::default());
        control.send_period = PacketRate::new(80_000.0).send_period();
        law.on_syn(&path, &mut control);
        1e6 / control.send_period.as_micros()
    };
    assert!((rate_after_new_queue(10) - 80_000.0).abs() < 1.0, "a round trip that grew says nothing");
    assert!((rate_after_new_queue(11) - 80_000.0 * NEW_QUEUE).abs() < 1.0, "it says that a queue has begun");
}
