//! The limit of a transfer: its name, and the share of the time for which it held.

use std::time::Duration;

use farhaul_units::{ByteSize, Rate};
use serde::Serialize;

/// Use of a processor or a disk from which it is the limit, whatever else is true: nothing else could make the transfer
/// much faster.
const BUSY: f64 = 0.9;
/// Least share of the time for which a processor, or the disk behind a full receive buffer, must be needed to be the limit.
const MOSTLY: f64 = 0.5;

/// Share of a cap from which it counts as reached.
const NEARLY: f64 = 0.8;
/// One in so many packets that arrive is the least that dies in the receiver's socket if its processor is the limit. Few do, since the
/// sender waits for a host that loses any.
const DROPPED_SHARE: u64 = 1_000;
/// Least share of the time for any verdict. Below it, no single reason dominates.
const LEAST: f64 = 0.2;
/// Least duration for a verdict, in RTTs. Connecting and the last confirmation take one each.
const ROUND_TRIPS: u32 = 5;
/// Least duration for a verdict. Below it, the kernel's processor times are a few ticks.
const SHORTEST: Duration = Duration::from_millis(20);

/// The limit of a transfer. The order is that of the numbers on the wire, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// A program at either end, or the small amount of data.
    Application,
    /// The sender's disk.
    DiskRead,
    /// The sender's processor.
    Cpu,
    /// The send buffer, if the user capped it.
    SendBuffer,
    /// Congestion control.
    Congestion,
    /// The user's cap on the rate.
    RateCap,
    /// The receiver's buffer.
    ReceiveBuffer,
    /// The receiver's disk.
    DiskWrite,
    /// The rate cap of the client's key at a server.
    KeyRateCap,
    /// The receiver's processor: packets died in its socket's buffer, because the program did not take them in time.
    ReceiverCpu,
}

impl Limit {
    const ALL: [Self; 10] = [
        Self::Application,
        Self::DiskRead,
        Self::Cpu,
        Self::SendBuffer,
        Self::Congestion,
        Self::RateCap,
        Self::ReceiveBuffer,
        Self::DiskWrite,
        Self::KeyRateCap,
        Self::ReceiverCpu,
    ];

    /// The number on the wire.
    pub const fn number(self) -> u64 {
        self as u64 + 1
    }

    /// The limit with this number; `None` for numbers of later versions.
    pub fn of_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.number() == number)
    }
}

/// Whether a transfer was too short for any verdict.
pub fn is_too_short(seconds: f64, least_rtt: Duration) -> bool {
    seconds < (least_rtt * ROUND_TRIPS).max(SHORTEST).as_secs_f64()
}

/// What a receiver found missing, and what of it its own host had dropped.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiverLosses {
    /// Data packets that arrived.
    pub received: u64,
    /// Those that it found missing.
    pub lost: u64,
    /// Of these, those that died in the buffer of its socket.
    pub dropped: u64,
}

impl ReceiverLosses {
    /// The limit in place of what a sender takes for one, which sees losses, or a small window.
    pub const fn judge(&self, found: (Limit, f64)) -> (Limit, f64) {
        let mostly_here = self.dropped > 0 && self.dropped.saturating_mul(2) >= self.lost;
        match found {
            // A receiver whose socket has overflowed gives a window of no more than that.
            (Limit::ReceiveBuffer, share) if mostly_here => (Limit::ReceiverCpu, share),
            (Limit::Congestion, share)
                if mostly_here && self.dropped.saturating_mul(DROPPED_SHARE) >= self.received =>
            {
                (Limit::ReceiverCpu, share)
            }
            found => found,
        }
    }
}

/// Caps on a sender: the user's, and a slow source of data.
#[derive(Clone, Copy, Debug, Default)]
pub struct Caps {
    /// On the sending rate.
    pub rate: Option<Rate>,
    /// On each buffer.
    pub buffer: Option<ByteSize>,
    /// The data comes from another program.
    pub fed: bool,
}

/// Use of a sender's time, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence {
    /// The whole transfer.
    pub elapsed: f64,
    /// The transport could send and had no data.
    pub application: f64,
    /// The receiver's flow window was full.
    pub flow_window: f64,
    /// The congestion window was full, or pacing delayed the next packet.
    pub congestion: f64,
    /// Pacing by the user's cap, which was below the pace of congestion control, delayed the next packet.
    pub rate_cap: f64,
    /// The rate as a share of the user's cap; `None` without a cap.
    pub of_cap: Option<f64>,
    /// The program waited for its disk.
    pub reading: f64,
    /// The program waited for an answer of the receiver, such as the last confirmation.
    pub answering: f64,
    /// The receiver waited for its disk.
    pub storing: f64,
    /// This side held the data back for the cap of a key.
    pub held_back: f64,
    /// The receiver did.
    pub peer_held_back: f64,
    /// The program waited for room in the send buffer.
    pub room: f64,
    /// The user capped the send buffer. Otherwise it grows with the path.
    pub small_buffer: bool,
    /// The data comes from another program, which may be slow.
    pub fed: bool,
    /// The transport needed a processor: its busiest thread ran, or one of its threads queued.
    pub busy: f64,
}

/// The strongest limit, with the share of the time for which it held; `None` if no reason dominates.
pub fn strongest(evidence: &Evidence) -> Option<(Limit, f64)> {
    let of_elapsed = |seconds| share(seconds, evidence.elapsed);
    let busy = of_elapsed(evidence.busy);
    let devices = [
        (Limit::Cpu, busy),
        (Limit::DiskRead, of_elapsed(evidence.reading)),
        (Limit::DiskWrite, of_elapsed(evidence.storing)),
    ];
    let busiest = devices.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, share)| *share >= BUSY);
    let strongest = busiest.unwrap_or_else(|| {
        let other = beside_devices(evidence);
        if busy >= MOSTLY && busy > other.1 { (Limit::Cpu, busy) } else { other }
    });
    Some(strongest).filter(|(_, share)| *share >= LEAST)
}

/// The limit where no processor and no disk was busy all the time.
fn beside_devices(evidence: &Evidence) -> (Limit, f64) {
    let Evidence { elapsed, application, flow_window, congestion, rate_cap, .. } = *evidence;
    let pacing = congestion + rate_cap;
    let of_elapsed = |seconds| share(seconds, elapsed);
    // Data that is held back on purpose cannot leave, whatever the transport waits for meanwhile.
    if of_elapsed(evidence.held_back) >= MOSTLY {
        return (Limit::KeyRateCap, of_elapsed(evidence.held_back));
    }
    if application > flow_window && application > pacing {
        return within_application(evidence);
    }
    match pacing >= flow_window {
        true if evidence.of_cap.is_some_and(|share| share > NEARLY) => (Limit::RateCap, of_elapsed(pacing)),
        // Packets were due, and left late.
        true if rate_cap > congestion && late(evidence) >= LEAST => (Limit::Cpu, late(evidence)),
        true if rate_cap > congestion => (Limit::RateCap, of_elapsed(pacing)),
        true => (Limit::Congestion, of_elapsed(pacing)),
        // A receiver that waits for its disk does not empty its buffer.
        false if evidence.storing.max(evidence.peer_held_back) >= MOSTLY * flow_window => {
            let (limit, seconds) = storing(evidence);
            (limit, of_elapsed(seconds))
        }
        false => (Limit::ReceiveBuffer, of_elapsed(flow_window)),
    }
}

/// The share of the time that a late host takes from a cap: the cap held for longer than its rate shows.
fn late(evidence: &Evidence) -> f64 {
    evidence.of_cap.map_or(0.0, |used| share(evidence.rate_cap, evidence.elapsed) - used)
}

/// What the receiver waited for before it read on: its disk, or the cap of the sender's key.
fn storing(evidence: &Evidence) -> (Limit, f64) {
    match evidence.peer_held_back > evidence.storing {
        true => (Limit::KeyRateCap, evidence.peer_held_back),
        false => (Limit::DiskWrite, evidence.storing),
    }
}

/// The reason why the transport had no data.
fn within_application(evidence: &Evidence) -> (Limit, f64) {
    let room = match evidence.small_buffer {
        true => (evidence.room - evidence.congestion - evidence.rate_cap - evidence.flow_window).max(0.0),
        false => 0.0,
    };
    let (stores, storing) = storing(evidence);
    let storing = evidence.answering.min(storing);
    // Waiting for the confirmation of a short transfer.
    let over = evidence.answering - storing;
    let rest = (evidence.application - evidence.reading - evidence.held_back - evidence.answering - room).max(0.0);
    let reasons = [
        (Limit::DiskRead, evidence.reading),
        (Limit::KeyRateCap, evidence.held_back),
        (stores, storing),
        (Limit::SendBuffer, room),
        (Limit::Application, if evidence.fed { over + rest } else { over }),
        // Data is at hand and not sent: the rest is processor time, as far as one was needed.
        (Limit::Cpu, if evidence.fed { 0.0 } else { rest.min(evidence.busy) }),
    ];
    let (limit, seconds) = reasons.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("there are six");
    (limit, share(seconds, evidence.elapsed))
}

/// `part` of `whole`, in 0..=1; 0 if `whole` is 0.
pub fn share(part: f64, whole: f64) -> f64 {
    let ratio = part / whole;
    if ratio.is_finite() { ratio.clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN_SECONDS: Evidence = Evidence {
        elapsed: 10.0,
        application: 0.0,
        flow_window: 0.0,
        congestion: 0.0,
        rate_cap: 0.0,
        of_cap: None,
        reading: 0.0,
        answering: 0.0,
        storing: 0.0,
        held_back: 0.0,
        peer_held_back: 0.0,
        room: 0.0,
        small_buffer: false,
        fed: false,
        busy: 0.0,
    };

    #[test]
    fn packets_that_die_in_the_receivers_socket_are_its_processors_and_no_congestion() {
        let of = |received, lost, dropped| ReceiverLosses { received, lost, dropped };
        let many = of(10_000, 900, 700);
        assert_eq!(many.judge((Limit::Congestion, 0.9)), (Limit::ReceiverCpu, 0.9));
        assert_eq!(many.judge((Limit::ReceiveBuffer, 0.6)), (Limit::ReceiverCpu, 0.6));
        assert_eq!(many.judge((Limit::DiskWrite, 0.6)), (Limit::DiskWrite, 0.6), "what else is known stays");
        for few in [of(10_000, 900, 400), of(10_000, 9, 9), of(0, 0, 0)] {
            assert_eq!(few.judge((Limit::Congestion, 0.9)), (Limit::Congestion, 0.9), "{few:?}");
        }
        assert_eq!(of(10_000, 9, 9).judge((Limit::ReceiveBuffer, 0.6)), (Limit::ReceiverCpu, 0.6), "a small window");
        assert_eq!(of(1, 1, u64::MAX).judge((Limit::Congestion, 0.9)), (Limit::ReceiverCpu, 0.9), "a peer's claim");
    }

    #[test]
    fn each_kind_of_evidence_points_to_its_limit() {
        let cases = [
            (Evidence { congestion: 9.0, room: 8.0, ..TEN_SECONDS }, Limit::Congestion, 0.9),
            (Evidence { congestion: 9.0, of_cap: Some(0.95), ..TEN_SECONDS }, Limit::RateCap, 0.9),
            (Evidence { congestion: 2.0, rate_cap: 7.0, of_cap: Some(0.65), ..TEN_SECONDS }, Limit::RateCap, 0.9),
            // A host that others keep busy sends less than the cap permits.
            (Evidence { rate_cap: 9.0, of_cap: Some(0.5), ..TEN_SECONDS }, Limit::Cpu, 0.4),
            (Evidence { congestion: 6.0, rate_cap: 3.0, ..TEN_SECONDS }, Limit::Congestion, 0.9),
            (Evidence { flow_window: 5.0, congestion: 4.0, ..TEN_SECONDS }, Limit::ReceiveBuffer, 0.5),
            (Evidence { application: 8.0, reading: 7.0, ..TEN_SECONDS }, Limit::DiskRead, 0.7),
            (Evidence { application: 8.0, answering: 7.0, storing: 6.0, ..TEN_SECONDS }, Limit::DiskWrite, 0.6),
            (Evidence { flow_window: 8.0, storing: 7.0, ..TEN_SECONDS }, Limit::DiskWrite, 0.7),
            (Evidence { flow_window: 8.0, storing: 3.0, ..TEN_SECONDS }, Limit::ReceiveBuffer, 0.8),
            (Evidence { application: 8.0, answering: 7.0, storing: 1.0, ..TEN_SECONDS }, Limit::Application, 0.6),
            (Evidence { application: 8.0, held_back: 7.0, reading: 1.0, ..TEN_SECONDS }, Limit::KeyRateCap, 0.7),
            (Evidence { congestion: 6.0, held_back: 7.0, ..TEN_SECONDS }, Limit::KeyRateCap, 0.7),
            (Evidence { congestion: 6.0, held_back: 4.0, ..TEN_SECONDS }, Limit::Congestion, 0.6),
            (Evidence { flow_window: 8.0, peer_held_back: 7.0, storing: 1.0, ..TEN_SECONDS }, Limit::KeyRateCap, 0.7),
            (Evidence { flow_window: 8.0, peer_held_back: 1.0, storing: 7.0, ..TEN_SECONDS }, Limit::DiskWrite, 0.7),
            (Evidence { application: 8.0, answering: 7.0, peer_held_back: 6.0, ..TEN_SECONDS }, Limit::KeyRateCap, 0.6),
            (Evidence { application: 8.0, room: 9.0, small_buffer: true, ..TEN_SECONDS }, Limit::SendBuffer, 0.9),
            (Evidence { application: 8.0, room: 9.0, fed: true, ..TEN_SECONDS }, Limit::Application, 0.8),
            (Evidence { application: 8.0, busy: 4.0, ..TEN_SECONDS }, Limit::Cpu, 0.4),
            (Evidence { congestion: 9.0, busy: 9.5, ..TEN_SECONDS }, Limit::Cpu, 0.95),
            (Evidence { congestion: 6.0, busy: 8.0, ..TEN_SECONDS }, Limit::Cpu, 0.8),
            (Evidence { congestion: 9.0, busy: 8.0, ..TEN_SECONDS }, Limit::Congestion, 0.9),
            // The path was slow to fill a buffer that the disk emptied more slowly still.
            (
                Evidence { congestion: 5.6, application: 4.4, answering: 4.4, storing: 9.8, ..TEN_SECONDS },
                Limit::DiskWrite,
                0.98,
            ),
            (Evidence { congestion: 5.6, reading: 9.8, ..TEN_SECONDS }, Limit::DiskRead, 0.98),
        ];
        for (evidence, limit, part) in cases {
            let (found, its) = strongest(&evidence).unwrap();
            assert_eq!(found, limit, "{evidence:?}");
            assert!((its - part).abs() < 1e-9, "{evidence:?}: {its}");
        }
    }

    #[test]
    fn without_a_dominant_reason_there_is_no_verdict() {
        assert_eq!(strongest(&Evidence::default()), None);
        // Nothing was sent for most of the time, and the processor was idle as well.
        assert_eq!(strongest(&Evidence { application: 8.0, busy: 0.05, ..TEN_SECONDS }), None);
        assert_eq!(strongest(&Evidence { congestion: 1.0, flow_window: 0.9, ..TEN_SECONDS }), None);
    }

    #[test]
    fn a_few_round_trips_are_too_short_for_a_verdict() {
        let rtt = Duration::from_millis(100);
        assert!(is_too_short(0.3, rtt) && !is_too_short(1.0, rtt));
        assert!(is_too_short(0.001, Duration::ZERO) && !is_too_short(0.1, Duration::ZERO));
    }

    #[test]
    fn limits_reach_the_other_side() {
        for limit in Limit::ALL {
            assert_eq!(Limit::of_number(limit.number()), Some(limit));
        }
        assert_eq!((Limit::of_number(0), Limit::of_number(11)), (None, None));
    }
}
