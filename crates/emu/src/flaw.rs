//! Why a run in real time cannot be believed.

use std::fmt;

use farhaul_units::Duration;

use crate::lateness::LatenessReport;
use crate::tun::INTERFACE;

/// A run in which more than one packet in a hundred left later than this is invalid: the smallest round trip that
/// figures are made with is 1 ms.
pub const MAX_LATENESS: Duration = Duration::from_millis(1);

/// A run in which any packet left later than this is invalid: half of the shortest time-outs of the protocols.
pub const MAX_STALL: Duration = Duration::from_millis(50);

/// An emulator that is at work for more than this share of any second, in percent of one processor, has no reserve. Linux takes the
/// processor away from real-time threads that use more than 95 % of it, for 50 ms in a second.
pub const MAX_BUSY: u32 = 90;

/// Why a run cannot be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flaw {
    /// More than one packet in a hundred was later than [`MAX_LATENESS`].
    Late(Duration),
    /// A packet was later than [`MAX_STALL`].
    Stalled(Duration),
    /// The emulator did not look for packets for longer than [`MAX_STALL`].
    Away(Duration),
    /// In some second the emulator used more than [`MAX_BUSY`] percent of a processor's time.
    Busy(u32),
    /// Packets were dropped because they were not taken from where senders leave them.
    ReceiveOverflow(u64),
    /// Of so many hosts it is not known whether they could hand over all packets: somebody renamed their interface.
    Uncounted(u64),
    /// Packets were dropped because too many were under way.
    OutOfMemory(u64),
    /// Packets were not taken by this machine for sending.
    Unsent(u64),
    /// Datagrams came from more clients than the relay takes.
    TooManyClients(u64),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late(p99) => {
                write!(f, "1 % of the packets left more than {} late (limit {})", time(*p99), time(MAX_LATENESS))
            }
            Self::Stalled(max) => write!(f, "a packet left {} late (limit {})", time(*max), time(MAX_STALL)),
            Self::Away(gap) => {
                write!(f, "no packet was looked for during {} (limit {})", time(*gap), time(MAX_STALL))
            }
            Self::Busy(percent) => {
                write!(f, "{percent} % of a processor were needed in some second (limit {MAX_BUSY} %)")
            }
            Self::ReceiveOverflow(count) => write!(f, "{count} packets overflowed the buffers that they come from"),
            Self::Uncounted(hosts) => {
                write!(f, "{hosts} hosts have no {INTERFACE} that could tell whether it dropped packets")
            }
            Self::OutOfMemory(count) => write!(f, "{count} packets found no memory"),
            Self::Unsent(count) => write!(f, "{count} packets were not taken for sending"),
            Self::TooManyClients(count) => write!(f, "{count} datagrams came from more clients than fit"),
        }
    }
}

/// The flaws of a run, from what was measured. `others` are flaws if they are beyond their limit.
pub(crate) fn flaws(lateness: &LatenessReport, others: impl IntoIterator<Item = Flaw>) -> Vec<Flaw> {
    let late = (lateness.p99 > MAX_LATENESS).then_some(Flaw::Late(lateness.p99));
    let stalled = (lateness.max > MAX_STALL).then_some(Flaw::Stalled(lateness.max));
    late.into_iter().chain(stalled).chain(others.into_iter().filter(|flaw| flaw.counts())).collect()
}

impl Flaw {
    /// Whether it is beyond its limit.
    fn counts(&self) -> bool {
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

/// A time beyond a limit, in milliseconds with three digits.
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
