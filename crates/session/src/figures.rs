//! The figures of each side of a measurement or a copy.

use farhaul_units::Duration;

use crate::field::{Fields, Malformed};

/// Represents an unknown value on the wire.
const UNKNOWN: u64 = u64::MAX;

/// One side's figures. A value that the side does not know is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Payload bytes sent or received.
    pub bytes: u64,
    /// Time from the first to the last of these bytes.
    pub elapsed: Duration,
    /// Processor time of this side's program in user mode during the session.
    pub cpu_user: Option<Duration>,
    /// The same in the kernel.
    pub cpu_system: Option<Duration>,
    /// Data packets sent, retransmissions included.
    pub packets_sent: Option<u64>,
    /// Of these, retransmissions.
    pub packets_retransmitted: Option<u64>,
    /// Data packets received, duplicates included.
    pub packets_received: Option<u64>,
    /// Packets found missing, on the side that received.
    pub packets_lost: Option<u64>,
    /// Minimum RTT.
    pub rtt_min: Option<Duration>,
    /// Mean RTT.
    pub rtt_mean: Option<Duration>,
    /// The 99th percentile of the RTT.
    pub rtt_p99: Option<Duration>,
    /// Time that this side waited for its disk: for reading on the sending side, for writing and synchronising on the
    /// other.
    pub disk: Option<Duration>,
    /// The main limit of this side's sending, by a number that drivers define. Drivers ignore unknown numbers.
    pub limit: Option<u64>,
    /// The share of time under that limit, parts per million.
    pub limit_share: Option<u64>,
    /// Time for which this side held the data back, because it caps the rate of the other one.
    pub held_back: Option<Duration>,
    /// Of the packets found missing, those that died in the receive buffer of this side's socket.
    pub packets_dropped: Option<u64>,
}

impl Figures {
    /// Encodes a count, then that many `u64`. Later versions append values, earlier ones have fewer.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let values = [
            Some(self.bytes),
            Some(nanos(self.elapsed)),
            self.cpu_user.map(nanos),
            self.cpu_system.map(nanos),
            self.packets_sent,
            self.packets_retransmitted,
            self.packets_received,
            self.packets_lost,
            self.rtt_min.map(nanos),
            self.rtt_mean.map(nanos),
            self.rtt_p99.map(nanos),
            self.disk.map(nanos),
            self.limit,
            self.limit_share,
            self.held_back.map(nanos),
            self.packets_dropped,
        ];
        out.push(u8::try_from(values.len()).expect("sixteen"));
        for value in values {
            out.extend_from_slice(&value.unwrap_or(UNKNOWN).to_be_bytes());
        }
    }

    /// Decodes all announced values. Values that only a later version knows are skipped.
    pub(crate) fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let count = usize::from(fields.u8()?);
        let mut values = Fields::new(fields.bytes(count * size_of::<u64>())?);
        let mut next = || -> Result<Option<u64>, Malformed> {
            if values.end().is_ok() {
                return Ok(None);
            }
            Ok(Some(values.u64()?).filter(|&value| value != UNKNOWN))
        };
        Ok(Self {
            bytes: next()?.ok_or(Malformed::Value("byte count"))?,
            elapsed: next()?.map(Duration::from_nanos).ok_or(Malformed::Value("time"))?,
            cpu_user: next()?.map(Duration::from_nanos),
            cpu_system: next()?.map(Duration::from_nanos),
            packets_sent: next()?,
            packets_retransmitted: next()?,
            packets_received: next()?,
            packets_lost: next()?,
            rtt_min: next()?.map(Duration::from_nanos),
            rtt_mean: next()?.map(Duration::from_nanos),
            rtt_p99: next()?.map(Duration::from_nanos),
            disk: next()?.map(Duration::from_nanos),
            limit: next()?,
            limit_share: next()?,
            held_back: next()?.map(Duration::from_nanos),
            packets_dropped: next()?,
        })
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(UNKNOWN - 1)
}
