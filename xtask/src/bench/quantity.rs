//! Measured quantities and their units.

/// A measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Quantity {
    /// Payload received, bit/s from the first to the last byte.
    Goodput,
    /// Payload received in the second half of the sending time, after start-up, bit/s.
    Steady,
    /// Retransmitted data packets as a share of all sent.
    Retransmitted,
    /// Processor time of both sides, s per 1e9 bytes received.
    CpuPerGb,
    /// Processor time of both sides and of the emulator between them, s per 1e9 bytes received.
    CpuWithPath,
    /// Processor time of both sides, s per file.
    CpuPerFile,
    /// Processor time of both sides, s.
    CpuTime,
    /// Context switches of the sending side, voluntary and not, per 1e9 bytes received.
    SenderSwitches,
    /// Context switches of the receiving side, voluntary and not, per 1e9 bytes received.
    ReceiverSwitches,
    /// Calls of futex on both sides, per 1e9 bytes received.
    FutexCalls,
    /// Calls that send datagrams on both sides, per 1e9 bytes received.
    SendCalls,
    /// Calls that open files or ask for their status on both sides, per 1e9 bytes received.
    OpenCalls,
    /// Datagrams that both hosts dropped because a socket's receive buffer was full.
    OwnLosses,
    /// Peak resident memory of the sending process, bytes.
    SenderMemory,
    /// Peak resident memory of the receiving process, bytes.
    ReceiverMemory,
    /// From connect() to the receiver's confirmation, s.
    Completion,
    /// Jain's index of fairness of two flows: 1 is equal, 0.5 is everything for one.
    Jain,
    /// Additional resident memory, bytes.
    Growth,
    /// Processor time, share of one core.
    CpuShare,
    /// Handshakes per second of processor time of the listening side.
    Handshakes,
    /// Virtual seconds per real second.
    Speed,
    /// Processor time per packet that leaves a simulated link, s.
    HopTime,
    /// Peak resident memory, bytes.
    PeakMemory,
    /// Deviation of a delay, s.
    Lateness,
    /// Received rate as a share of the path's rate.
    RateShare,
    /// Deviation of a number of losses, in standard deviations.
    Deviation,
    /// Goodput as a multiple of that of our `cubic` in the same round.
    OfCubic,
    /// Goodput as a multiple of that of our `fixed` in the same round.
    OfFixed,
    /// Processor time per byte as a multiple of that of our `fixed` in the same round.
    CpuOfFixed,
}

impl Quantity {
    /// The name in tables and in JSON.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::Steady => "goodput after start-up",
            Self::Retransmitted => "retransmitted",
            Self::CpuPerGb => "cpu",
            Self::CpuWithPath => "cpu with the emulator",
            Self::CpuPerFile => "cpu a file",
            Self::CpuTime => "cpu time",
            Self::SenderSwitches => "context switches sending",
            Self::ReceiverSwitches => "context switches receiving",
            Self::FutexCalls => "futex calls",
            Self::SendCalls => "send calls",
            Self::OpenCalls => "open and status calls",
            Self::OwnLosses => "lost in own buffers",
            Self::SenderMemory => "memory sending",
            Self::ReceiverMemory => "memory receiving",
            Self::Completion => "completion",
            Self::Jain => "Jain's index",
            Self::Growth => "memory added",
            Self::CpuShare => "cpu share",
            Self::Handshakes => "handshakes",
            Self::Speed => "speed",
            Self::HopTime => "cpu a hop",
            Self::PeakMemory => "memory",
            Self::Lateness => "lateness",
            Self::RateShare => "of the rate",
            Self::Deviation => "deviation",
            Self::OfCubic => "of cubic",
            Self::OfFixed => "of fixed",
            Self::CpuOfFixed => "cpu of fixed",
        }
    }

    /// The unit of the values in JSON.
    pub(super) const fn unit(self) -> &'static str {
        match self {
            Self::Goodput | Self::Steady => "bit/s",
            Self::CpuPerGb | Self::CpuWithPath => "s/GB",
            Self::SenderSwitches | Self::ReceiverSwitches => "1/GB",
            Self::FutexCalls | Self::SendCalls | Self::OpenCalls => "1/GB",
            Self::OwnLosses => "packets",
            Self::SenderMemory | Self::ReceiverMemory | Self::PeakMemory | Self::Growth => "bytes",
            Self::Completion | Self::Lateness | Self::CpuPerFile | Self::CpuTime | Self::HopTime => "s",
            Self::Retransmitted | Self::CpuShare | Self::RateShare => "share",
            Self::OfCubic | Self::OfFixed | Self::CpuOfFixed => "share",
            Self::Deviation => "standard deviations",
            Self::Jain => "index",
            Self::Handshakes => "1/s",
            Self::Speed => "times real time",
        }
    }

    /// A value for display.
    pub(super) fn show(self, value: f64) -> String {
        match self {
            Self::Goodput | Self::Steady if value >= 2e9 => format!("{:.2} Gbit/s", value / 1e9),
            Self::Goodput | Self::Steady => format!("{:.1} Mbit/s", value / 1e6),
            Self::CpuPerGb | Self::CpuWithPath => format!("{value:.2} s/GB"),
            Self::SenderSwitches | Self::ReceiverSwitches => format!("{value:.0} per GB"),
            Self::FutexCalls | Self::SendCalls | Self::OpenCalls => format!("{value:.0} per GB"),
            Self::OwnLosses => format!("{value:.0} packets"),
            Self::SenderMemory | Self::ReceiverMemory | Self::PeakMemory | Self::Growth => {
                format!("{:.1} MiB", value / f64::from(1 << 20))
            }
            Self::Completion | Self::CpuTime => format!("{value:.3} s"),
            Self::Retransmitted | Self::CpuShare | Self::RateShare => format!("{:.3} %", value * 1e2),
            Self::Lateness | Self::CpuPerFile => format!("{:.0} µs", value * 1e6),
            Self::HopTime => format!("{:.2} µs", value * 1e6),
            Self::Deviation => format!("{value:.2} σ"),
            Self::Jain => format!("{value:.3}"),
            Self::OfCubic | Self::OfFixed => format!("{value:.2}"),
            Self::CpuOfFixed => format!("{value:.3}"),
            Self::Handshakes => format!("{value:.0} per s"),
            Self::Speed => format!("{value:.1} ×"),
        }
    }
}
