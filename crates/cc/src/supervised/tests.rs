use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use farhaul_units::SendPeriod;

use super::*;

/// A change of the settings.
type Change = fn(&mut Control);

/// Does what it is told at each acknowledgement, and counts its end.
struct Told {
    on_ack: fn(&mut Control),
    ends: Arc<AtomicU32>,
    panics_at_its_end: bool,
}

impl Controller for Told {
    fn name(&self) -> &str {
        "told"
    }

    fn on_ack(&mut self, _: &Path, _: &AckEvent, control: &mut Control) {
        (self.on_ack)(control);
    }

    fn on_loss(&mut self, _: &Path, _: &LossEvent<'_>, _: &mut Control) {}

    fn on_close(&mut self) {
        self.ends.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        assert!(!self.panics_at_its_end, "the panic of this test");
    }
}

/// What two acknowledgements cause: the failure, the settings, and how often the end was told.
fn after(on_ack: fn(&mut Control)) -> (Option<String>, Control, u32) {
    let ends = Arc::default();
    let told = Told { on_ack, ends: Arc::clone(&ends), panics_at_its_end: false };
    let mut supervised = Supervised::new(|| Box::new(told));
    let now = Instant::ZERO + Duration::from_secs(100);
    let path = Path { now, ..Path::default() };
    supervised.on_connect(&path);
    supervised.on_ack(&path, &AckEvent::default());
    supervised.on_ack(&path, &AckEvent::default());
    supervised.on_close();
    let control = *supervised.control();
    (supervised.failure().map(|failure| failure.fault.to_string()), control, ends.load(Ordering::Relaxed))
}

#[test]
fn usable_settings_pass_and_the_end_is_told_once() {
    let (failure, control, ends) = after(|control| {
        control.cwnd = None;
        control.send_period = SendPeriod::from_micros(6e7);
        control.freeze_until = Some(Instant::ZERO + Duration::from_secs(160));
        control.rto = Some(Duration::from_secs(60));
        control.ack_period = Some(Duration::from_nanos(1));
        control.ack_interval = Some(1);
        control.burst = Some(1);
        control.least_burst = Some(44);
        control.catch_up_pace = Some(-1.0);
    });
    assert_eq!((failure, control.cwnd, ends), (None, None, 1));
}

#[test]
fn each_unusable_setting_is_a_failure_after_which_the_settings_stay() {
    let wrong: [(Change, &str); 18] = [
        (|control| control.cwnd = Some(f64::NAN), "cwnd to NaN"),
        (|control| control.cwnd = Some(f64::INFINITY), "cwnd to an infinite value"),
        (|control| control.cwnd = Some(0.0), "cwnd to zero"),
        (|control| control.cwnd = Some(-1.0), "cwnd to a value below zero"),
        (|control| control.send_period = SendPeriod::from_micros(f64::NAN), "send_period to NaN"),
        (|control| control.send_period = SendPeriod::from_micros(f64::INFINITY), "send_period to an infinite value"),
        (|control| control.send_period = SendPeriod::from_micros(-1.0), "send_period to a value below zero"),
        (|control| control.send_period = SendPeriod::from_micros(6.1e7), "send_period to more than 60 s"),
        (|control| control.catch_up_pace = Some(f64::NAN), "catch_up_pace to NaN"),
        (|control| control.burst = Some(0), "burst to zero"),
        (|control| control.least_burst = Some(0), "least_burst to zero"),
        (|control| control.ack_interval = Some(0), "ack_interval to zero"),
        (|control| control.full_ack_interval = Some(0), "full_ack_interval to zero"),
        (|control| control.ack_period = Some(Duration::ZERO), "ack_period to zero"),
        (|control| control.rto = Some(Duration::ZERO), "rto to zero"),
        (|control| control.rto = Some(Duration::from_secs(61)), "rto to more than 60 s"),
        (
            |control| control.freeze_until = Some(Instant::ZERO + Duration::from_secs(161)),
            "freeze_until to more than 60 s",
        ),
        (|control| control.freeze_until = Some(Instant::from_nanos(u64::MAX)), "freeze_until to more than 60 s"),
    ];
    for (on_ack, expected) in wrong {
        let (failure, control, ends) = after(on_ack);
        assert_eq!(failure, Some(format!("on_ack set {expected}")));
        assert_eq!((control, ends), (Control::initial(), 1), "{expected}");
    }
}

#[test]
fn a_panic_is_a_failure_after_which_nothing_is_called() {
    let (failure, control, ends) = after(|control| {
        control.cwnd = Some(7.0);
        panic!("the panic of this test");
    });
    assert_eq!(failure.as_deref(), Some("it panicked in on_ack"));
    assert_eq!((control, ends), (Control::initial(), 0));
}

#[test]
fn panics_of_constructors_and_destructors_are_caught() {
    let mut supervised = Supervised::new(|| panic!("the panic of this test"));
    supervised.on_connect(&Path::default());
    let failure = supervised.failure().expect("it has failed");
    assert_eq!(failure.fault, ControllerFault::Panicked("its constructor"));
    let told = Told { on_ack: |_| {}, ends: Arc::default(), panics_at_its_end: true };
    drop(Supervised::new(|| Box::new(told)));
}

#[test]
fn the_first_fault_is_named_although_the_end_is_one_as_well() {
    /// Sets an unusable window, and panics at its end.
    struct FailsTwice;

    impl Controller for FailsTwice {
        fn name(&self) -> &str {
            "fails-twice"
        }

        fn on_ack(&mut self, _: &Path, _: &AckEvent, control: &mut Control) {
            control.cwnd = Some(0.0);
        }

        fn on_loss(&mut self, _: &Path, _: &LossEvent<'_>, _: &mut Control) {}

        fn on_close(&mut self) {
            panic!("the panic of this test");
        }
    }

    let mut supervised = Supervised::new(|| Box::new(FailsTwice));
    supervised.on_ack(&Path::default(), &AckEvent::default());
    let failure = supervised.failure().map(|failure| failure.fault.to_string());
    assert_eq!(failure.as_deref(), Some("on_ack set cwnd to zero"));
}

#[test]
fn settings_that_are_plainly_usable_have_no_nonsense() {
    let numbers =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -0.0, 0.0, f64::MIN_POSITIVE, 1.0, 6e7, 6.1e7, f64::MAX];
    let (mut plain, now) = (0, Instant::ZERO + Duration::from_secs(100));
    let mut try_all = |change: &dyn Fn(&mut Control)| {
        for cwnd in numbers {
            for period in numbers {
                let mut control = Control { cwnd: Some(cwnd), ..Control::initial() };
                control.send_period = SendPeriod::from_micros(period);
                change(&mut control);
                if are_plainly_usable(&control) {
                    plain += 1;
                    assert_eq!(nonsense_in(&control, now), None, "{control:?}");
                }
            }
        }
    };
    for pace in numbers {
        try_all(&|control| control.catch_up_pace = Some(pace));
    }
    for packets in [0, 1, u32::MAX] {
        try_all(&|control| control.burst = Some(packets));
        try_all(&|control| control.least_burst = Some(packets));
        try_all(&|control| control.ack_interval = Some(packets));
        try_all(&|control| control.full_ack_interval = Some(packets));
    }
    for time in [0, 1, u64::MAX].map(Duration::from_nanos) {
        try_all(&|control| control.ack_period = Some(time));
        try_all(&|control| control.rto = Some(time));
        try_all(&|control| control.freeze_until = Some(Instant::ZERO + time));
    }
    assert!(plain > 100, "{plain}");
}
