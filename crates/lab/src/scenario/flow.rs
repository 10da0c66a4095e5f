//! One flow, as a run has it.

use farhaul_cc::{Spec, SpecError};
use farhaul_sim::agent::disk::DiskSpec;
use farhaul_sim::agent::source::Timing;
use farhaul_sim::agent::tcp::Recovery;
use farhaul_units::{Duration, Instant, Rate, Rng};

mod host;
mod keys;
mod measured;
mod window;

pub(crate) use host::Host;
pub(crate) use measured::{Measured, Point, check_beside};
pub(crate) use window::Window;

/// A flow, or several of the same kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FlowSpec {
    /// The name in records and plots.
    pub(crate) name: String,
    /// The name of all flows of this kind: `name` of the scenario.
    pub(crate) group: String,
    pub(crate) protocol: Protocol,
    pub(crate) start: Duration,
    /// The longest random delay of the start. The seed decides it.
    pub(crate) spread: Duration,
    /// The end, finished or not; `None` for the end of the run.
    pub(crate) stop: Option<Duration>,
    /// The size of the transfer in bytes; `None` for an endless one.
    pub(crate) bytes: Option<u64>,
    /// The number of transfers of the group, one after the other in each flow; `None` for one transfer per flow.
    pub(crate) transfers: Option<u32>,
    /// The flow's own RTT; `None` for the link's.
    pub(crate) round_trip: Option<Duration>,
    /// The flow's hosts, where nodes have names.
    pub(crate) ends: Option<(String, String)>,
    /// Bytes of a full packet on the wire.
    pub(crate) packet: u32,
    /// Its sending and its receiving host; `None` for hosts that cost nothing and are never late.
    pub(crate) hosts: [Option<Host>; 2],
    /// The bulk flow whose endpoint sends this stream; `None` for an endpoint of its own.
    pub(crate) beside: Option<String>,
    /// The line in the scenario.
    pub(crate) line: usize,
}

impl FlowSpec {
    /// The flow with its drawn start, and the seeds of its ends.
    pub(crate) fn drawn(&self, rng: &mut Rng) -> (Self, [u64; 2]) {
        let seeds = [rng.next_u64(), rng.next_u64()];
        (Self { start: self.start + self.spread.mul_f64(rng.unit()), ..self.clone() }, seeds)
    }
}

/// The sender's protocol.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Protocol {
    /// A protocol of the registry.
    Bulk(Bulk),
    /// TCP.
    Tcp(Tcp),
    /// The reference library in its own program, in the emulated world only.
    Libudt,
    /// Cross traffic: packets without any answer.
    Cross(Rate, Pattern),
    /// A measured stream: datagrams that a responder counts.
    Measured(Measured),
}

impl Protocol {
    /// The congestion controller that a scenario chooses.
    pub(crate) fn law(&self) -> Option<&Spec> {
        match self {
            Self::Bulk(bulk) => bulk.controller.as_ref(),
            Self::Tcp(tcp) => Some(&tcp.law),
            _ => None,
        }
    }

    /// Whether it is cross traffic, which fairness leaves out.
    pub(crate) fn is_cross_traffic(&self) -> bool {
        matches!(self, Self::Cross(..))
    }

    /// Puts a rate that is a share of the `bottleneck`'s into the options of the protocol.
    ///
    /// # Errors
    /// The bottleneck has no rate, or the protocol takes none.
    pub(crate) fn fix_rate(&mut self, bottleneck: Option<Rate>) -> Result<(), String> {
        let Self::Bulk(bulk) = self else { return Ok(()) };
        let Some(share) = bulk.share.take() else { return Ok(()) };
        let Some(rate) = bottleneck else {
            return Err("a share of the bottleneck's rate needs a bottleneck with `rate`".to_owned());
        };
        let bits = (share * rate.bits_per_second() as f64) as u64;
        let text = bulk.protocol.to_string();
        let separator = if text.contains(':') { ',' } else { ':' };
        let fixed = format!("{text}{separator}rate={bits}bit").parse();
        bulk.protocol = fixed.map_err(|wrong: SpecError| wrong.to_string())?;
        Ok(())
    }
}

/// Both sides of a connection of a protocol of the registry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bulk {
    pub(crate) protocol: farhaul_protocols::Protocol,
    /// `None` if the protocol's own rules govern the rate.
    pub(crate) controller: Option<Spec>,
    /// The packets beyond a gap before the gap is a loss.
    pub(crate) reorder_tolerance: u32,
    /// The longest time that one burst stands for; `None` for the default.
    pub(crate) burst_time: Option<Duration>,
    /// Whether the receiver answers as libudt does.
    pub(crate) answers_as_libudt: bool,
    /// The disk that the sender reads from.
    pub(crate) disk: Option<DiskSpec>,
    /// The protocol's fixed rate as a share of the bottleneck's, until [`Protocol::fix_rate`].
    share: Option<f64>,
}

/// A TCP sender and its receiver.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tcp {
    /// The loss recovery.
    pub(crate) recovery: Recovery,
    /// The law of the window.
    pub(crate) law: Spec,
    /// The most packets in flight. A bandwidth-delay product is that of the bottleneck and the flow's own RTT.
    pub(crate) window: Window,
    /// Whether the receiver acknowledges every other packet.
    pub(crate) delayed_ack: bool,
    /// The shortest retransmission time-out; `None` for that of RFC 6298.
    pub(crate) min_rto: Option<Duration>,
}

/// The pattern of cross traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pattern {
    /// At even intervals.
    Constant,
    /// At even intervals for a while, then none for a while.
    OnOff(Duration, Duration),
    /// At random.
    Poisson,
}

impl Pattern {
    /// The pattern between two times of a run.
    pub(crate) fn timing(self, begin: Duration, end: Duration) -> Timing {
        let [begin, end] = [begin, end].map(|time| Instant::ZERO + time);
        match self {
            Self::Constant => Timing::Even { begin, end },
            Self::OnOff(on, off) => Timing::OnOff { begin, end, on, off },
            Self::Poisson => Timing::Poisson { begin, end },
        }
    }
}
