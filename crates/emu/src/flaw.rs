//! Reasons why a run in real time is invalid.

use farhaul_units::Duration;

use crate::lateness::LatenessReport;
use crate::tun::INTERFACE;

/// A run is invalid if more than one packet in a hundred left later than this. Equals the shortest RTT in the shipped
/// figures, 1 ms.
pub const MAX_LATENESS: Duration = Duration::from_millis(1);

/// A run is invalid if any packet left later than this: half of the shortest time-out of the protocols.
pub const MAX_STALL: Duration = Duration::from_millis(50);

/// A run is invalid if the emulator used more than this share of a processor in any second, in percent.
///
/// Linux stops real-time threads that use more than 95 % of a second for the remaining 50 ms.
pub const MAX_BUSY: u32 = 90;

/// Why a run is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// More than one packet in a hundred was later than [`MAX_LATENESS`].
    #[error("1 % of the packets left more than {} late (limit {})", time(*.0), time(MAX_LATENESS))]
    Late(Duration),
    /// A packet was later than [`MAX_STALL`].
    #[error("a packet left {} late (limit {})", time(*.0), time(MAX_STALL))]
    Stalled(Duration),
    /// The emulator did not poll its hosts for longer than [`MAX_STALL`].
    #[error("the emulator did not poll for {} (limit {})", time(*.0), time(MAX_STALL))]
    Away(Duration),
    /// The emulator used more than [`MAX_BUSY`] percent of a processor in some second.
    #[error("the emulator used {0} % of a processor in one second (limit {MAX_BUSY} %)")]
    Busy(u32),
    /// The receive buffers overflowed before the emulator read them. The number of dropped packets.
    #[error("{0} packets overflowed the receive buffers")]
    ReceiveOverflow(u64),
    /// Number of hosts whose dropped packets are unknown, because their interface was renamed.
    #[error("the drop counters of {0} hosts are unknown: they have no interface {INTERFACE}")]
    Uncounted(u64),
    /// The memory for packets in flight was exhausted. The number of dropped packets.
    #[error("{0} packets were dropped for lack of memory")]
    OutOfMemory(u64),
    /// The system refused to send. The number of dropped packets.
    #[error("the system refused to send {0} packets")]
    Unsent(u64),
    /// The relay had its maximum of clients. The number of dropped datagrams.
    #[error("{0} datagrams were dropped because the relay had too many clients")]
    TooManyClients(u64),
}

/// The flaws of a run. `others` count if they exceed their limits.
pub(crate) fn flaws(lateness: &LatenessReport, others: impl IntoIterator<Item = Flaw>) -> Vec<Flaw> {
    let late = (lateness.p99 > MAX_LATENESS).then_some(Flaw::Late(lateness.p99));
    let stalled = (lateness.max > MAX_STALL).then_some(Flaw::Stalled(lateness.max));
    late.into_iter().chain(stalled).chain(others.into_iter().filter(|flaw| flaw.counts())).collect()
}

impl Flaw {
    /// Whether the value exceeds its limit.
    pub(crate) fn counts(&self) -> bool {
        match self {
            Self::Late(_) | Self::Stalled(_) => true,
            Self::Away(time) => *time > MAX_STALL,
            Self::Busy(percent) => *percent > MAX_BUSY,
            Self::ReceiveOverflow(count)
            | Self::Uncounted(count)
            | Self::OutOfMemory(count)
            | Self::Unsent(count)
            | Self::TooManyClients(count) => *count > 0,
        }
    }
}

/// A time above a limit, in milliseconds with three digits.
fn time(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    let decimals = match millis {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{millis:.decimals$} ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LOSSES: [Flaw; 4] =
        [Flaw::ReceiveOverflow(0), Flaw::OutOfMemory(0), Flaw::Unsent(0), Flaw::TooManyClients(0)];

    #[test]
    fn a_prompt_relay_has_no_flaws() {
        let lateness = LatenessReport { p99: MAX_LATENESS, max: MAX_STALL, ..LatenessReport::default() };
        assert_eq!(flaws(&lateness, NO_LOSSES), []);
    }

    #[test]
    fn times_have_three_digits() {
        let late = |micros| Flaw::Stalled(Duration::from_micros(micros)).to_string();
        assert_eq!(late(67_109), "a packet left 67.1 ms late (limit 50.0 ms)");
        assert_eq!(late(1_234_567), "a packet left 1235 ms late (limit 50.0 ms)");
        let late = Flaw::Late(Duration::from_nanos(2_097_151)).to_string();
        assert_eq!(late, "1 % of the packets left more than 2.10 ms late (limit 1.00 ms)");
    }

    #[test]
    fn lateness_and_own_losses_are_flaws() {
        let p99 = MAX_LATENESS * 2;
        let lateness = LatenessReport { p99, max: MAX_STALL * 2, ..LatenessReport::default() };
        let mut losses = NO_LOSSES;
        losses[0] = Flaw::ReceiveOverflow(3);
        let found = flaws(&lateness, losses);
        assert_eq!(found, [Flaw::Late(p99), Flaw::Stalled(MAX_STALL * 2), Flaw::ReceiveOverflow(3)]);
        assert!(found[2].to_string().starts_with("3 packets"));
    }
}
