//! A controller from a law of the window: rounds, one decrease per window, time-outs, and pacing.
//!
//! ```text
//! Loss, once a window:   the law's ssthresh,  cwnd ← min(cwnd, ssthresh)
//! Time-out:              the same, unless it is another of the same packet; then cwnd ← 1
//! Pace:                  RTT/(2·cwnd) between packets while cwnd < ssthresh/2, RTT/(1.2·cwnd) later
//! ```
//!
//! **Duplicate acknowledgements.** TCP learns of a loss from three of them. UDT sends none: its receiver reports what is missing. So for
//! all laws of windows a loss is [`LossEvent`], be it a report of UDT's receiver, or what the agents of simulated TCP have found in
//! duplicates. Inflation of the window, partial acknowledgements and limited transmit are retransmission, and belong to the transport.
//!
//! **Rounds** end with the acknowledgement of a packet that left after the one before had ended. RTTs are those of receipts where the
//! peer sends any, and those of acknowledgements elsewhere.

use farhaul_units::{SendPeriod, SeqNo};

use super::law::{LOSS_WINDOW, Round, Window, WindowLaw};
use super::loss_epoch::LossEpoch;
use crate::controller::{AckEvent, Control, Controller, DeliveryEvent, LossEvent, Path, TimeoutEvent};
use crate::rate::period::{bounded as period, longer};

/// Windows that leave in an RTT of slow start, which doubles them. Source: Linux (`tcp_pacing_ss_ratio`).
const START_PACE: f64 = 2.0;

/// The controller of the law `L`.
#[derive(Clone, Debug)]
pub(crate) struct Windowed<L> {
    name: String,
    pub(super) law: L,
    threshold: f64,
    losses: LossEpoch,
    round: Round,
    /// The first packet that left in this round.
    round_begins: Option<SeqNo>,
    /// The peer sends receipts, whose RTTs count in the place of those of acknowledgements.
    hears_receipts: bool,
}

impl<L: WindowLaw> Windowed<L> {
    /// The controller that is selected by `name`.
    pub(crate) const fn new(name: String, law: L) -> Self {
        Self {
            name,
            law,
            threshold: f64::INFINITY,
            losses: LossEpoch::new(),
            round: Round::EMPTY,
            round_begins: None,
            hears_receipts: false,
        }
    }

    fn note_rtt(&mut self, rtt: f64, path: &Path) {
        self.round.note(rtt);
        self.law.on_rtt(rtt, path);
    }

    /// Lets the law change the window.
    fn change(&mut self, path: &Path, control: &mut Control, change: impl FnOnce(&mut Self, &mut Window)) {
        let Some(cwnd) = control.cwnd else { return };
        let mut window = Window { cwnd, threshold: self.threshold };
        change(self, &mut window);
        self.threshold = window.threshold;
        let cwnd = window.bounded(path);
        control.cwnd = Some(cwnd);
        if !path.rtt.is_zero() {
            let windows = if cwnd < self.threshold / 2.0 { START_PACE } else { L::PACE };
            control.send_period = period(path.rtt.as_secs_f64() * 1e6 / (windows * cwnd));
        }
    }

    /// Ends the round if a packet of it that left at its beginning is acknowledged.
    fn count_rounds(&mut self, acked: SeqNo, window: &mut Window, path: &Path) {
        let begins = *self.round_begins.get_or_insert(path.next_seq);
        if acked.is_after(begins) {
            self.round_begins = Some(path.next_seq);
            let round = std::mem::replace(&mut self.round, Round::EMPTY);
            self.law.on_round(&round, window, path);
        }
    }
}

impl<L: WindowLaw> Controller for Windowed<L> {
    fn name(&self) -> &str {
        &self.name
    }

    fn on_connect(&mut self, path: &Path, control: &mut Control) {
        control.window_of_outstanding = L::OF_OUTSTANDING;
        control.period_of_window = true;
        self.law.on_connect(path, control);
    }

    fn on_take_over(&mut self, path: &Path, control: &mut Control) {
        control.send_period = SendPeriod::UNPACED;
        self.on_connect(path, control);
        self.threshold = control.cwnd.unwrap_or(f64::INFINITY);
    }

    fn wants_deliveries(&self) -> bool {
        L::OF_OUTSTANDING
    }

    fn on_delivery(&mut self, path: &Path, delivery: &DeliveryEvent, _control: &mut Control) {
        self.hears_receipts = true;
        if let Some(rtt) = delivery.rtt {
            self.note_rtt(rtt.as_secs_f64(), path);
        }
    }

    /// One acknowledgement counts for at most a window of packets. A transport whose acknowledgements wait for
    /// retransmissions may confirm a whole flight at once, which was not sent under this window.
    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        self.losses.on_ack(ack.seq);
        if let Some(rtt) = ack.rtt_sample.filter(|_| !self.hears_receipts) {
            self.note_rtt(rtt.as_secs_f64(), path);
        }
        self.change(path, control, |this, window| {
            let acked = f64::from(ack.newly_acked).min(window.cwnd);
            this.law.on_ack(acked, window, path);
            this.count_rounds(ack.seq, window, path);
        });
    }

    /// The period never becomes shorter, though the RTT may be shorter than it was at the last acknowledgement.
    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        let before = control.send_period;
        self.change(path, control, |this, window| {
            if this.losses.begins(loss) {
                this.law.on_loss(window, path);
            }
        });
        control.send_period = longer(before, control.send_period);
    }

    fn on_recovered(&mut self, path: &Path, _spurious: bool, control: &mut Control) {
        self.change(path, control, |this, window| this.law.on_recovered(window, path));
    }

    fn on_timeout(&mut self, path: &Path, timeout: &TimeoutEvent, control: &mut Control) {
        let before = control.send_period;
        self.losses.restart(timeout.largest_sent);
        self.change(path, control, |this, window| {
            if timeout.count <= 1 {
                let threshold = this.law.threshold(window, path);
                window.lower_to(threshold);
            }
            this.law.on_timeout(window, path);
            window.cwnd = LOSS_WINDOW;
        });
        control.send_period = longer(before, control.send_period);
    }
}

#[cfg(test)]
pub(super) mod tests;
