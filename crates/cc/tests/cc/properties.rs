//! Invariants of every controller under any behaviour of the peer.

use farhaul_cc::{
    AckEvent, Control, Controller, DeliveryEvent, DeliverySample, LossEvent, LostFlight, Path, RateSample, Spec,
    TimeoutEvent,
};
use farhaul_units::{Duration, Instant, PacketRate, SeqNo, SeqRange};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

/// Specs that cover every controller and variant.
const SPECS: [&str; 25] = [
    "union",
    "udt",
    "udt-2004",
    "udt-2004:false-warnings=0.5,missed-warnings=0.5",
    "udt-2007",
    "udt-2011",
    "udt-2011:only=rate",
    "bbr",
    "c4",
    "fixed:rate=500mbit",
    "reno",
    "newreno",
    "cubic",
    "highspeed",
    "scalable",
    "htcp",
    "bic",
    "westwood",
    "illinois",
    "hybla",
    "vegas",
    "copa",
    "fast",
    "ledbat",
    "tahoe",
];

/// UDT's laws keep two packets, a probe pair. TCP's fall to the loss window of one (RFC 5681 §3.1).
fn least_cwnd(spec: &str) -> f64 {
    if spec.starts_with("u") || matches!(spec, "bbr" | "c4" | "ledbat") { 2.0 } else { 1.0 }
}

/// An event of a connection.
#[derive(Clone, Debug)]
enum Happening {
    Ack { seq: u32, newly_acked: u32, light: bool, delivery: Option<DeliverySample> },
    Loss { first: u32, len: u32, newly_lost: u32, largest_sent: u32 },
    Delivery(DeliveryEvent),
    Restart,
    Recovered { spurious: bool },
    Timeout,
    Warning,
    Syn,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        3 => (any::<u32>(), 0..10_000u32, any::<bool>(), prop::option::of(delivery())).prop_map(
            |(seq, newly_acked, light, delivery)| Happening::Ack { seq, newly_acked, light, delivery }
        ),
        3 => (any::<u32>(), 0..100u32, 0..100u32, any::<u32>()).prop_map(|(first, len, newly_lost, largest_sent)| {
            Happening::Loss { first, len, newly_lost, largest_sent }
        }),
        3 => news().prop_map(Happening::Delivery),
        1 => Just(Happening::Restart),
        1 => any::<bool>().prop_map(|spurious| Happening::Recovered { spurious }),
        1 => Just(Happening::Timeout),
        1 => Just(Happening::Warning),
        1 => Just(Happening::Syn),
    ]
}

/// A rate claimed by a hostile peer, or none.
fn rate() -> impl Strategy<Value = Option<PacketRate>> {
    prop_oneof![
        Just(None),
        Just(Some(PacketRate::default())),
        (1.0..1e7).prop_map(|packets| Some(PacketRate::new(packets))),
        Just(Some(PacketRate::new(f64::MIN_POSITIVE))),
        Just(Some(PacketRate::new(f64::MAX))),
        Just(PacketRate::from_wire(u32::MAX)),
    ]
}

fn delivery() -> impl Strategy<Value = DeliverySample> {
    (any::<u32>(), rate(), rate()).prop_map(|(packets, sent, delivered)| DeliverySample {
        packets,
        sent: sent.unwrap_or_default(),
        delivered: delivered.unwrap_or_default(),
    })
}

/// A count of packets, in any relation to others.
fn packets() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..1e4, 0.0..1e12]
}

fn news() -> impl Strategy<Value = DeliveryEvent> {
    let sample = (packets(), packets(), rate(), packets(), packets(), any::<bool>()).prop_map(
        |(prior_delivered, delivered, rate, in_flight, lost, application_limited)| RateSample {
            prior_delivered,
            delivered,
            rate,
            in_flight,
            lost,
            application_limited,
        },
    );
    let samples = (prop::option::of(sample), prop::option::of(delivery()), prop::option::of(round_trip()));
    (packets(), packets(), samples, any::<bool>()).prop_map(
        |(newly_delivered, delivered, (sample, train, rtt), window_limited)| {
            let mut event = DeliveryEvent::default();
            (event.newly_delivered, event.delivered) = (newly_delivered, delivered);
            (event.sample, event.train, event.rtt) = (sample, train, rtt);
            event.window_limited = window_limited;
            event
        },
    )
}

/// Counters of the connection and reports of its peer, without an RTT.
fn counts() -> impl Strategy<Value = Path> {
    let sizes = (prop_oneof![Just(0), Just(1_500), any::<u32>()], prop_oneof![Just(0), Just(25_600), any::<u32>()]);
    let rates = (rate(), rate(), rate());
    let packets = (any::<u32>(), prop_oneof![0..1_000_000u64, any::<u64>()]);
    (sizes, rates, packets, any::<bool>()).prop_map(
        |(
            (mss, max_window),
            (arrival_rate, delivery_rate, capacity),
            (in_flight, packets_sent),
            application_limited,
        )| {
            let mut path = Path::default();
            (path.mss, path.max_window) = (mss, max_window);
            (path.arrival_rate, path.delivery_rate, path.capacity) = (arrival_rate, delivery_rate, capacity);
            (path.in_flight, path.packets_sent) = (in_flight, packets_sent);
            path.application_limited = application_limited;
            path.outstanding = in_flight.into();
            path
        },
    )
}

/// An RTT: zero, of a path with or without a queue, or too long for any clock.
fn round_trip() -> impl Strategy<Value = Duration> {
    prop_oneof![
        1 => Just(Duration::ZERO),
        4 => (0..200u64).prop_map(Duration::from_millis),
        2 => (0..60_000_000u64).prop_map(Duration::from_micros),
        1 => Just(Duration::MAX / 2),
    ]
}

fn path() -> impl Strategy<Value = Path> {
    let known = || prop::option::weighted(0.9, round_trip());
    (counts(), round_trip(), known(), known()).prop_map(|(mut path, rtt, least, latest)| {
        (path.rtt, path.min_rtt, path.latest_rtt) = (rtt, least, latest);
        path
    })
}

fn play(controller: &mut dyn Controller, path: &Path, happening: &Happening, control: &mut Control) {
    match *happening {
        Happening::Ack { seq, newly_acked, light, delivery } => {
            let mut ack = AckEvent::default();
            ack.seq = SeqNo::new(seq);
            ack.newly_acked = newly_acked;
            (ack.light, ack.delivery) = (light, delivery);
            controller.on_ack(path, &ack, control);
        }
        Happening::Loss { first, len, newly_lost, largest_sent } => {
            let range = [SeqRange::new(SeqNo::new(first), SeqNo::new(first).plus(len))];
            let packets = f64::from(newly_lost);
            let flights =
                [LostFlight { packets, in_flight: f64::from(len), lost: packets, application_limited: false }];
            let loss = LossEvent::new(&range, newly_lost, SeqNo::new(largest_sent)).of_flights(&flights);
            controller.on_loss(path, &loss, control);
        }
        Happening::Delivery(news) => controller.on_delivery(path, &news, control),
        Happening::Restart => controller.on_restart(path, control),
        Happening::Recovered { spurious } => controller.on_recovered(path, spurious, control),
        Happening::Timeout => controller.on_timeout(path, &TimeoutEvent::default(), control),
        Happening::Warning => drop(controller.on_warning(path, control)),
        Happening::Syn => controller.on_syn(path, control),
    }
}

/// One event, and its effect on the settings.
struct Step<'a> {
    now: Instant,
    happening: &'a Happening,
    before: &'a Control,
    after: &'a Control,
}

/// Runs every controller through the same events, each after a number of milliseconds. `check` sees the spec and each
/// step.
fn play_all(
    seed: u64,
    events: &[(u64, Path, Happening)],
    mut check: impl FnMut(&str, &Step<'_>) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    for spec in SPECS {
        let mut controller = spec.parse::<Spec>().expect("it is in the registry").build(seed);
        let mut control = Control::initial();
        let mut now = Instant::ZERO;
        controller.on_connect(&events[0].1, &mut control);
        for (millis, path, happening) in events {
            now += Duration::from_millis(*millis);
            let mut path = *path;
            path.now = now;
            let before = control;
            play(controller.as_mut(), &path, happening, &mut control);
            check(spec, &Step { now, happening, before: &before, after: &control })?;
        }
    }
    Ok(())
}

fn is_sane(least_cwnd: f64, step: &Step<'_>) -> Result<(), TestCaseError> {
    let Step { before, happening, after, .. } = *step;
    let (was, is) = (before.send_period.as_micros(), after.send_period.as_micros());
    prop_assert!(is.is_finite() && is >= 0.0, "period {is}");
    if let Some(cwnd) = after.cwnd {
        prop_assert!(cwnd.is_finite() && cwnd >= least_cwnd, "cwnd {cwnd}");
    }
    if matches!(happening, Happening::Loss { .. }) {
        prop_assert!(is >= was, "a loss report shortened the period from {was} to {is}");
        let (was, is) = (before.cwnd.unwrap_or(f64::INFINITY), after.cwnd.unwrap_or(f64::INFINITY));
        prop_assert!(is <= was, "a loss report widened the window from {was} to {is}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/cc/properties.failures"))),
        ..ProptestConfig::default()
    })]

    // Slow: 256 random cases, each with up to 199 events for twelve controllers.
    #[test]
    fn settings_stay_in_bounds_and_a_loss_report_never_raises_the_rate(
        seed: u64,
        events in prop::collection::vec((0..20u64, path(), happening()), 1..200),
    ) {
        play_all(seed, &events, |spec, step| is_sane(least_cwnd(spec), step))?;
    }

    #[test]
    fn no_controller_freezes_for_longer_than_one_interval(
        seed: u64,
        events in prop::collection::vec((0..20u64, path(), happening()), 1..50),
    ) {
        play_all(seed, &events, |spec, step| {
            let longest = step.now + Duration::from_millis(10);
            prop_assert!(step.after.freeze_until.is_none_or(|end| end <= longest), "{spec}");
            Ok(())
        })?;
    }
}

#[test]
fn a_flood_of_loss_events_never_ends_in_an_unpaced_sender() {
    for spec in SPECS {
        let mut controller = spec.parse::<Spec>().unwrap().build(1);
        let mut control = Control::initial();
        let mut path = Path::default();
        path.mss = 1_500;
        controller.on_connect(&path, &mut control);
        for seq in 0..10_000 {
            let range = [SeqRange::new(SeqNo::new(seq), SeqNo::new(seq))];
            controller.on_loss(&path, &LossEvent::new(&range, 1, SeqNo::new(seq)), &mut control);
        }
        let paced = control.send_period.packet_rate().is_some_and(|rate| rate.packets_per_second() >= 1.0);
        // TCP's laws do not pace, so the smallest window bounds them.
        assert!(paced || control.cwnd.is_some_and(|cwnd| cwnd <= 2.0), "{spec}");
    }
}
