//! A fixed sending rate, for dedicated channels, and as a known quantity in tests.
//!
//! ```text
//! P = 8·MSS / rate        (1)
//! ```
//!
//! | symbol | here | unit |
//! | --- | --- | --- |
//! | MSS | `Path::mss` with headers, so that `rate` is the rate on the wire | bytes |
//! | P | `Control::send_period` | µs |
//!
//! Departures: none; it has no source. It does not react to loss, so it is for dedicated channels only.

use farhaul_units::{Rate, SendPeriod};

use crate::controller::{AckEvent, Control, Controller, LossEvent, Path};

/// Sends at one rate, `fixed:rate=…`.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    /// Bits per second on the wire, above zero.
    rate: Rate,
    /// The name, with the rate as given by the user.
    name: String,
}

impl Fixed {
    /// Sends at `rate`, which must be above zero, under the name `name`.
    pub(crate) fn new(rate: Rate, name: String) -> Self {
        Self { rate, name }
    }

    fn apply(&self, path: &Path, control: &mut Control) {
        control.cwnd = None;
        control.send_period = SendPeriod::from_rate(self.rate, path.mss.max(1));
    }
}

impl Controller for Fixed {
    fn name(&self) -> &str {
        &self.name
    }

    fn on_connect(&mut self, path: &Path, control: &mut Control) {
        self.apply(path, control);
    }

    fn on_ack(&mut self, path: &Path, _ack: &AckEvent, control: &mut Control) {
        // Again, because the packet size may have changed.
        self.apply(path, control);
    }

    fn on_loss(&mut self, _path: &Path, _loss: &LossEvent<'_>, _control: &mut Control) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_follows_from_the_rate_and_the_packet_size() {
        let mut fixed = Fixed::new(Rate::from_megabits_per_second(1_000), "fixed:rate=1gbit".into());
        let mut control = Control::initial();
        let mut path = Path { mss: 1_500, ..Path::default() };
        fixed.on_connect(&path, &mut control);
        assert_eq!((control.cwnd, control.send_period), (None, SendPeriod::from_micros(12.0)));
        path.mss = 9_000;
        fixed.on_ack(&path, &AckEvent::default(), &mut control);
        assert_eq!(control.send_period, SendPeriod::from_micros(72.0));
    }
}
