//! Packets per second, and the time between packets: UDT's packet sending period (STP in the 2004 paper).

use core::fmt;
use core::time::Duration;

use crate::rate::Rate;

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

/// The time from the departure of one packet to the next, set by a rate-based controller.
///
/// Stored in microseconds as a float, because UDT's laws multiply it by factors such as 1.125. Zero means unpaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct SendPeriod(f64);

impl SendPeriod {
    /// No pacing: packets leave as the window allows.
    pub const UNPACED: Self = Self(0.0);

    /// `micros` microseconds from packet to packet; zero for unpaced. Other values than positive finite numbers are kept, and
    /// a transport takes them for the failure of a controller.
    pub const fn from_micros(micros: f64) -> Self {
        Self(micros)
    }

    /// The period at which packets of `packet_size` bytes give `rate`; unpaced for a rate of zero.
    pub fn from_rate(rate: Rate, packet_size: u32) -> Self {
        if rate == Rate::ZERO {
            return Self::UNPACED;
        }
        Self::from_micros(f64::from(packet_size) * 8e6 / rate.bits_per_second() as f64)
    }

    /// Microseconds from packet to packet; zero if unpaced.
    pub const fn as_micros(self) -> f64 {
        self.0
    }

    /// Whether packets leave as the window allows.
    pub fn is_unpaced(self) -> bool {
        self.0 <= 0.0
    }

    /// Packets per second; `None` if unpaced.
    pub fn packet_rate(self) -> Option<PacketRate> {
        (!self.is_unpaced()).then(|| PacketRate::new(1e6 / self.0))
    }

    /// The time for `packets` packets.
    pub fn time_for(self, packets: u64) -> Duration {
        Duration::from_nanos((self.0 * 1e3 * packets as f64) as u64)
    }

    /// This period times `factor`. 1.125 lowers the rate by a ninth.
    pub fn scaled(self, factor: f64) -> Self {
        Self::from_micros(self.0 * factor)
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

    #[test]
    fn a_gigabit_is_twelve_microseconds_a_packet() {
        let period = SendPeriod::from_rate(Rate::from_megabits_per_second(1_000), 1_500);
        assert!((period.as_micros() - 12.0).abs() < 1e-9);
        assert_eq!(period.time_for(1_000), Duration::from_millis(12));
    }

    #[test]
    fn an_eighth_more_period_is_a_ninth_less_rate() {
        let before = SendPeriod::from_micros(12.0);
        let after = before.scaled(1.125);
        let ratio =
            after.packet_rate().unwrap().packets_per_second() / before.packet_rate().unwrap().packets_per_second();
        assert!((ratio - 8.0 / 9.0).abs() < 1e-12);
    }
}
