//! A congestion controller of one's own: a packet more per RTT, and half of the window after a loss.
use farhaul::cc::{AckEvent, Control, Controller, LossEvent, Path, Registration};
use farhaul::units::SeqNo;

/// The controller under its name.
pub fn aimd() -> Registration {
    let summary = "additive increase, multiplicative decrease";
    Registration::new("aimd", summary, |_options, _seed| Ok(Box::new(Aimd { cut_until: None })))
}

struct Aimd {
    cut_until: Option<SeqNo>, // losses of packets up to this one were answered
}

impl Controller for Aimd {
    fn name(&self) -> &str {
        "aimd"
    }
    fn on_ack(&mut self, _: &Path, ack: &AckEvent, control: &mut Control) {
        control.cwnd = control.cwnd.map(|window| window + f64::from(ack.newly_acked) / window);
    }
    fn on_loss(&mut self, _: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        if loss.newly_lost > 0 && self.cut_until.is_none_or(|until| loss.ranges[0].first.is_after(until)) {
            control.cwnd = control.cwnd.map(|window| (window / 2.0).max(2.0));
            self.cut_until = Some(loss.largest_sent);
        }
    }
}
