//! A controller under supervision: its panics are caught, and its settings are checked after each call.
//!
//! A transport holds its controller in here, so that a wrong one ends its own connection and nothing else.
//!
//! | setting | usable values |
//! | --- | --- |
//! | `cwnd` | above zero, finite |
//! | `send_period` | zero (unpaced) to 60 s |
//! | `freeze_until` | at most 60 s ahead |
//! | `catch_up_pace` | finite |
//! | `burst`, `least_burst`, `ack_interval`, `full_ack_interval` | at least one packet |
//! | `ack_period`, `rto` | above zero; `rto` at most 60 s |
//!
//! After the first fault, no callback is called any more but `on_close`. The settings stay as they were before it. Supervision
//! costs a copy of the settings and a dozen comparisons per acknowledgement, 2 to 5 ns (`benches/supervised.rs`), and nothing per
//! packet.

use std::panic::{AssertUnwindSafe, catch_unwind};

use farhaul_units::{Duration, Instant};

use crate::controller::{
    AckEvent, Control, Controller, CustomMessage, DeliveryEvent, KnownPath, LossEvent, Path, ReceivedEvent, SentEvent,
    TimeoutEvent,
};
use crate::failure::{ControllerFailure, ControllerFault, Nonsense};

/// The longest period, freeze and expiration time. With longer ones, a connection does not send again before it is given up.
const LONGEST: Duration = Duration::from_secs(60);

/// A controller, its settings, and the first fault that it had.
pub struct Supervised {
    /// `None` once it has failed.
    controller: Option<Box<dyn Controller>>,
    control: Control,
    failure: Option<ControllerFailure>,
    wants_packets: bool,
    wants_deliveries: bool,
    wants_custom_messages: bool,
}

impl Supervised {
    /// The controller that `make` makes. One that panics while it is made has failed.
    pub fn new(make: impl FnOnce() -> Box<dyn Controller>) -> Self {
        let mut supervised = Self::none();
        match caught(make) {
            Some(controller) => supervised.controller = Some(controller),
            None => supervised.failure = Some(ControllerFailure::new("", ControllerFault::Panicked("its constructor"))),
        }
        let wants = supervised.call("wants_…", |controller, _| {
            [controller.wants_packets(), controller.wants_deliveries(), controller.wants_custom_messages()]
        });
        if let Some(wants) = wants {
            [supervised.wants_packets, supervised.wants_deliveries, supervised.wants_custom_messages] = wants;
        }
        supervised
    }

    /// No controller, with the initial settings.
    pub const fn none() -> Self {
        Self {
            controller: None,
            control: Control::initial(),
            failure: None,
            wants_packets: false,
            wants_deliveries: false,
            wants_custom_messages: false,
        }
    }

    /// Its settings. All are usable.
    pub const fn control(&self) -> &Control {
        &self.control
    }

    /// Sets the settings with which the controller begins.
    pub fn begin_with(&mut self, control: Control) {
        self.control = control;
    }

    /// The controller's name; empty if it has failed.
    pub fn name(&self) -> String {
        self.controller.as_deref().and_then(|controller| caught(|| controller.name().to_owned())).unwrap_or_default()
    }

    /// Its first fault.
    pub const fn failure(&self) -> Option<ControllerFailure> {
        self.failure
    }

    /// See [`Controller::wants_packets`].
    pub const fn wants_packets(&self) -> bool {
        self.wants_packets
    }

    /// See [`Controller::wants_deliveries`].
    pub const fn wants_deliveries(&self) -> bool {
        self.wants_deliveries
    }

    /// See [`Controller::wants_custom_messages`].
    pub const fn wants_custom_messages(&self) -> bool {
        self.wants_custom_messages
    }

    // ---- callbacks ----

    /// See [`Controller::recall`].
    pub fn recall(&mut self, known: KnownPath) {
        self.call("recall", |controller, _| controller.recall(known));
    }

    /// See [`Controller::remember`].
    pub fn remember(&mut self, path: &Path, limited_by_path: bool) -> Option<KnownPath> {
        self.call("remember", |controller, _| controller.remember(path, limited_by_path)).flatten()
    }

    /// See [`Controller::on_connect`].
    pub fn on_connect(&mut self, path: &Path) {
        self.call_at("on_connect", path.now, |controller, control| controller.on_connect(path, control));
    }

    /// See [`Controller::on_take_over`].
    pub fn on_take_over(&mut self, path: &Path) {
        self.call_at("on_take_over", path.now, |controller, control| controller.on_take_over(path, control));
    }

    /// See [`Controller::on_ack`].
    pub fn on_ack(&mut self, path: &Path, ack: &AckEvent) {
        self.call_at("on_ack", path.now, |controller, control| controller.on_ack(path, ack, control));
    }

    /// See [`Controller::on_delivery`].
    pub fn on_delivery(&mut self, path: &Path, delivery: &DeliveryEvent) {
        self.call_at("on_delivery", path.now, |controller, control| controller.on_delivery(path, delivery, control));
    }

    /// See [`Controller::on_restart`].
    pub fn on_restart(&mut self, path: &Path) {
        self.call_at("on_restart", path.now, |controller, control| controller.on_restart(path, control));
    }

    /// See [`Controller::on_loss`].
    pub fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>) {
        self.call_at("on_loss", path.now, |controller, control| controller.on_loss(path, loss, control));
    }

    /// See [`Controller::on_recovered`].
    pub fn on_recovered(&mut self, path: &Path, spurious: bool) {
        self.call_at("on_recovered", path.now, |controller, control| controller.on_recovered(path, spurious, control));
    }

    /// See [`Controller::on_timeout`].
    pub fn on_timeout(&mut self, path: &Path, timeout: &TimeoutEvent) {
        self.call_at("on_timeout", path.now, |controller, control| controller.on_timeout(path, timeout, control));
    }

    /// See [`Controller::on_warning`].
    pub fn on_warning(&mut self, path: &Path) -> bool {
        self.call_at("on_warning", path.now, |controller, control| controller.on_warning(path, control))
            .unwrap_or(false)
    }

    /// See [`Controller::on_syn`].
    pub fn on_syn(&mut self, path: &Path) {
        self.call_at("on_syn", path.now, |controller, control| controller.on_syn(path, control));
    }

    /// See [`Controller::on_sent`].
    pub fn on_sent(&mut self, path: &Path, sent: &SentEvent<'_>) {
        self.call_at("on_sent", path.now, |controller, control| controller.on_sent(path, sent, control));
    }

    /// See [`Controller::on_received`].
    pub fn on_received(&mut self, path: &Path, received: &ReceivedEvent<'_>) {
        self.call_at("on_received", path.now, |controller, control| controller.on_received(path, received, control));
    }

    /// See [`Controller::on_custom_message`]. Does nothing if the controller wants none.
    pub fn on_custom_message(&mut self, path: &Path, kind: u16, body: &[u8]) {
        if self.wants_custom_messages {
            self.call_at("on_custom_message", path.now, |controller, control| {
                controller.on_custom_message(path, kind, body, control);
            });
        }
    }

    /// See [`Controller::next_message`]. `None` if the controller wants none.
    pub fn next_message(&mut self) -> Option<CustomMessage> {
        if !self.wants_custom_messages {
            return None;
        }
        self.call("next_message", |controller, _| controller.next_message()).flatten()
    }

    /// See [`Controller::on_close`]. Not called after a panic. Frees the controller.
    pub fn on_close(&mut self) {
        self.call("on_close", |controller, _| controller.on_close());
        self.free();
    }

    // ---- supervision ----

    /// Calls the controller in an event at `now`, and checks its settings. `None` if it fails now, or has before.
    fn call_at<R>(
        &mut self,
        callback: &'static str,
        now: Instant,
        call: impl FnOnce(&mut dyn Controller, &mut Control) -> R,
    ) -> Option<R> {
        let before = self.control;
        let Some(result) = self.call(callback, call) else {
            self.control = before;
            return None;
        };
        if are_plainly_usable(&self.control) {
            return Some(result);
        }
        let Some(nonsense) = nonsense_in(&self.control, now) else { return Some(result) };
        self.control = before;
        self.note_answer(callback, nonsense);
        None
    }

    /// Calls the controller. `None` if it panics now, or has failed before.
    fn call<R>(
        &mut self,
        callback: &'static str,
        call: impl FnOnce(&mut dyn Controller, &mut Control) -> R,
    ) -> Option<R> {
        let Self { controller, control, .. } = self;
        let controller = controller.as_deref_mut()?;
        // Nothing of the controller is used after a panic but its name.
        let result = caught(|| call(controller, control));
        if result.is_none() {
            self.note_panic(callback);
        }
        result
    }

    #[cold]
    fn note_answer(&mut self, callback: &'static str, nonsense: Nonsense) {
        self.note(ControllerFault::Answered(callback, nonsense));
        // It answers, so it can be told of the end.
        self.on_close();
    }

    #[cold]
    fn note_panic(&mut self, callback: &'static str) {
        self.note(ControllerFault::Panicked(callback));
        self.free();
    }

    /// Keeps its first fault.
    fn note(&mut self, fault: ControllerFault) {
        if self.failure.is_none() {
            self.failure = Some(ControllerFailure::new(&self.name(), fault));
        }
    }

    /// Frees the controller. A destructor may panic as well.
    fn free(&mut self) {
        let controller = self.controller.take();
        let _ = caught(|| drop(controller));
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.free();
    }
}

impl std::fmt::Debug for Supervised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervised")
            .field("name", &self.name())
            .field("control", &self.control)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

/// The result of `call`; `None` if it panicked.
fn caught<R>(call: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => Some(result),
        Err(payload) => {
            // Its destructor is of the controller as well.
            std::mem::forget(payload);
            None
        }
    }
}

/// Whether all settings are usable at any time, as far as a few comparisons without branches tell. Those that seldom are set are
/// left to [`nonsense_in`].
fn are_plainly_usable(control: &Control) -> bool {
    let some_packets = |packets: Option<u32>| packets != Some(0);
    let (cwnd, period) = (control.cwnd.unwrap_or(1.0), control.send_period.as_micros());
    let has_usable_numbers = (cwnd > 0.0)
        & cwnd.is_finite()
        & (period >= 0.0)
        & (period <= LONGEST.as_micros() as f64)
        & control.catch_up_pace.unwrap_or(0.0).is_finite();
    let has_usable_counts = some_packets(control.burst)
        & some_packets(control.least_burst)
        & some_packets(control.ack_interval)
        & some_packets(control.full_ack_interval);
    let has_no_times = control.freeze_until.is_none() & control.ack_period.is_none() & control.rto.is_none();
    has_usable_numbers & has_usable_counts & has_no_times
}

/// The first setting that is not usable at `now`.
fn nonsense_in(control: &Control, now: Instant) -> Option<Nonsense> {
    let no_packet = |packets: Option<u32>| packets == Some(0);
    let no_time = |time: Option<Duration>| time.is_some_and(|time| time.is_zero());
    if let Some(answer) = control.cwnd.filter(|cwnd| !(cwnd.is_finite() && *cwnd > 0.0)) {
        return Some(Nonsense::number("cwnd", answer));
    }
    let period = control.send_period.as_micros();
    if !(0.0..=LONGEST.as_micros() as f64).contains(&period) {
        return Some(Nonsense::number("send_period", period));
    }
    if let Some(answer) = control.catch_up_pace.filter(|pace| !pace.is_finite()) {
        return Some(Nonsense::number("catch_up_pace", answer));
    }
    let zeros = [
        ("burst", no_packet(control.burst)),
        ("least_burst", no_packet(control.least_burst)),
        ("ack_interval", no_packet(control.ack_interval)),
        ("full_ack_interval", no_packet(control.full_ack_interval)),
        ("ack_period", no_time(control.ack_period)),
        ("rto", no_time(control.rto)),
    ];
    if let Some((setting, _)) = zeros.into_iter().find(|(_, is_zero)| *is_zero) {
        return Some(Nonsense::number(setting, 0.0));
    }
    if control.freeze_until.is_some_and(|until| until.saturating_since(now) > LONGEST) {
        return Some(Nonsense::too_long("freeze_until"));
    }
    control.rto.filter(|rto| *rto > LONGEST).map(|_| Nonsense::too_long("rto"))
}

#[cfg(test)]
mod tests;
