use farhaul_units::{SeqNo, SeqRange};

use super::*;

const BASE: Duration = Duration::from_millis(50);

/// A controller, and the clock of its path.
struct Run {
    law: Ledbat,
    control: Control,
    path: Path,
}

impl Run {
    fn begin() -> Self {
        let mut path = Path { mss: 1_500, rtt: BASE, max_window: 100_000, ..Path::default() };
        path.min_rtt = Some(BASE);
        let (mut law, mut control) = (Ledbat::new(TARGET, "ledbat".into()), Control::initial());
        law.on_connect(&path, &mut control);
        Self { law, control, path }
    }

    /// One that has left its start, with this window and no slowdown in sight.
    fn avoiding(window: f64) -> Self {
        let mut run = Self::begin();
        run.round_trips(1, Duration::ZERO);
        (run.law.stage, run.law.window, run.law.slows_at) = (Stage::Avoidance, window, None);
        run
    }

    /// A window of packets arrives in each RTT, with this queueing delay. Returns the window.
    fn round_trips(&mut self, count: u32, delay: Duration) -> f64 {
        for _ in 0..count * 10 {
            self.path.now += (BASE + delay) / 10;
            self.path.rtt = BASE + delay;
            let delivery = DeliveryEvent {
                newly_delivered: self.law.window / 10.0,
                rtt: Some(BASE + delay),
                ..Default::default()
            };
            self.law.on_delivery(&self.path, &delivery, &mut self.control);
        }
        self.law.window
    }
}

#[test]
fn the_start_grows_by_a_third_per_round_trip_until_a_queue_begins() {
    let mut run = Run::begin();
    let grown = run.round_trips(10, Duration::ZERO) / Control::INITIAL_CWND;
    assert!(
        (17.0..27.0).contains(&grown),
        "{grown}: (1 + 1/3)^10 = 17.8, and e^(10/3) = 28 for acknowledgements without end"
    );
    run.round_trips(1, Duration::from_micros(1_600));
    assert_eq!(run.law.stage, Stage::Avoidance);
}

#[test]
fn without_a_queue_it_grows_by_no_more_than_a_quarter_of_the_target_per_round_trip() {
    let mut run = Run::avoiding(400.0);
    let before = run.law.window;
    let grown = run.round_trips(1, Duration::ZERO) - before;
    let step = 0.25 * 2.0 / 50.0 * before;
    assert!((step..1.2 * step + 1.0).contains(&grown), "{grown} packets, {step} by the queue they may add");
    let near_the_target = run.round_trips(2, Duration::from_micros(1_950)) - before - grown;
    assert!((0.0..3.0).contains(&near_the_target), "{near_the_target}");
}

#[test]
fn a_queue_that_others_hold_leaves_it_two_packets_within_two_seconds() {
    let mut run = Run::avoiding(400.0);
    let window = run.round_trips(40, Duration::from_millis(30));
    assert_eq!(window, SLOW_WINDOW);
}

#[test]
fn a_short_queue_costs_twice_its_share_of_the_round_trip() {
    let mut run = Run::avoiding(400.0);
    let window = run.round_trips(1, Duration::from_micros(2_500));
    let cut = 1.0 - window / 400.0;
    assert!((0.08..0.1).contains(&cut), "{cut}: 2·2.5/52.5");
}

#[test]
fn a_slowdown_empties_the_queue_for_two_round_trips_and_returns_to_its_window() {
    let mut run = Run::avoiding(400.0);
    run.law.slows_at = Some(run.path.now);
    assert_eq!(run.round_trips(2, Duration::ZERO), SLOW_WINDOW);
    let returned = run.round_trips(6, Duration::ZERO);
    assert!((399.0..420.0).contains(&returned), "{returned}");
    let pause = run.law.slows_at.unwrap() - run.path.now;
    assert!(pause > BASE * 60, "{pause:?} until the next one: 19 times its four RTTs");
}

#[test]
fn a_window_of_losses_halves_it_once() {
    let mut run = Run::avoiding(400.0);
    for lost in [10, 11] {
        let lost = SeqNo::new(lost);
        run.law.on_loss(&run.path, &LossEvent::new(&[SeqRange::new(lost, lost)], 1, SeqNo::new(400)), &mut run.control);
    }
    assert_eq!(run.law.window, 200.0);
    run.law.on_timeout(&run.path, &TimeoutEvent { count: 1, largest_sent: SeqNo::new(400) }, &mut run.control);
    assert_eq!((run.law.window, run.law.threshold), (LOSS_WINDOW, 100.0));
}

#[test]
fn the_base_delay_is_forgotten_after_ten_minutes() {
    let (mut base, at) = (Base::new(), |minute| Instant::ZERO + MINUTE * minute);
    base.note(at(0), 0.05);
    (1..10).for_each(|minute| base.note(at(minute), 0.07));
    assert_eq!(base.delay(), 0.05);
    base.note(at(10), 0.07);
    assert_eq!(base.delay(), 0.07);
}
