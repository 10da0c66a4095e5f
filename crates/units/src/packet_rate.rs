//! Packets per second.

use core::fmt;
use core::time::Duration;

use crate::{Rate, SendPeriod};

/// Packets per second, the unit of arrival rate, link capacity and delivery rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct PacketRate(f64);

impl PacketRate {
    /// `packets` per second. A value that is not a positive finite number becomes zero.
    pub fn new(packets: f64) -> Self {
        if packets.is_finite() && packets > 0.0 { Self(packets) } else { Self(0.0) }
    }

    /// The rate of `packets` in `time`; `None` if `time` is zero.
    pub fn from_packets_in(packets: u64, time: Duration) -> Option<Self> {
        let seconds = time.as_secs_f64();
        (seconds > 0.0).then(|| Self::new(packets as f64 / seconds))
    }

    /// Packets per second.
    pub const fn packets_per_second(self) -> f64 {
        self.0
    }

    /// The value on the wire: whole packets per second, rounded up as in libudt, at most 2^31 - 1.
    pub fn to_wire(self) -> u32 {
        self.0.ceil().min(f64::from(i32::MAX)) as u32
    }

    /// The value from the wire; zero means "not known".
    pub fn from_wire(packets: u32) -> Option<Self> {
        (packets > 0).then(|| Self(f64::from(packets)))
    }

    /// The send period of this rate; unpaced at rate zero.
    pub fn send_period(self) -> SendPeriod {
        if self.0 > 0.0 { SendPeriod::from_micros(1e6 / self.0) } else { SendPeriod::UNPACED }
    }

    /// Packets in `time`, not rounded.
    pub fn packets_in(self, time: Duration) -> f64 {
        self.0 * time.as_secs_f64()
    }

    /// The bit rate at `packet_size` bytes per packet.
    pub fn to_rate(self, packet_size: u32) -> Rate {
        Rate::from_bits_per_second((self.0 * f64::from(packet_size) * 8.0) as u64)
    }
}

impl fmt::Display for PacketRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} packets/s", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gigabit_of_full_packets() {
        let rate = PacketRate::new(83_333.3);
        assert_eq!(rate.to_wire(), 83_334);
        assert!((rate.send_period().as_micros() - 12.0).abs() < 0.001);
    }

    #[test]
    fn zero_on_the_wire_means_unknown() {
        assert_eq!(PacketRate::from_wire(0), None);
        assert_eq!(PacketRate::new(f64::NAN), PacketRate::new(0.0));
    }
}
