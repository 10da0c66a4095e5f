//! What each side of a measurement or of a copy reports about itself.

use farhaul_units::Duration;

use crate::error::Malformed;
use crate::field::Fields;

/// Stands for "this side cannot say" on the wire.
const UNKNOWN: u64 = u64::MAX;

/// One side's figures. What a side cannot say is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Payload bytes sent or received.
    pub bytes: u64,
    /// From the first to the last of these bytes.
    pub elapsed: Duration,
    /// Processor time of this side's program during the session, in user mode.
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
    /// Least round-trip time.
    pub rtt_min: Option<Duration>,
    /// Mean round-trip time.
    pub rtt_mean: Option<Duration>,
    /// Round-trip time that one in a hundred exceeds.
    pub rtt_p99: Option<Duration>,
    /// Time spent waiting for this side's disk: reading on the side that sent, writing and synchronising on the other.
    pub disk: Option<Duration>,
    /// What held this side's sending back, by a number that hosts agree on; a host passes over numbers it does not know.
    pub limit: Option<u64>,
    /// For which share of the time that held, in parts per million.
    pub limit_share: Option<u64>,
}

impl Figures {
    /// A count, then as many `u64`: later versions append more, earlier ones have fewer.
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
        ];
        out.push(u8::try_from(values.len()).expect("fourteen"));
        for value in values {
            out.extend_from_slice(&value.unwrap_or(UNKNOWN).to_be_bytes());
        }
    }

    /// Takes all that were announced; values that only a later version knows are passed over.
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
        })
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(UNKNOWN - 1)
}
