//! What held a transfer back, and for which share of its time.

use crate::output::json::{Limit, share};

/// A transport that has its processor this busy is held back by it, whatever else is true.
const BUSY: f64 = 0.9;

/// Where a sender's time went, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    /// The whole transfer.
    pub(crate) elapsed: f64,
    /// The transport had nothing to send although it could.
    pub(crate) application: f64,
    /// The receiver's flow window was used up.
    pub(crate) flow_window: f64,
    /// The congestion window was used up, or the next packet was not due.
    pub(crate) congestion: f64,
    /// The rate reached the cap that was asked for.
    pub(crate) capped: bool,
    /// The program waited for its disk.
    pub(crate) reading: f64,
    /// The program waited for leave of the receiver, whose disk had not taken enough.
    pub(crate) granting: f64,
    /// The program waited for room in the send buffer.
    pub(crate) room: f64,
    /// The send buffer has a cap; without one it is as large as the path needs.
    pub(crate) small_buffer: bool,
    /// The data comes from another program, which may be slow; otherwise it is at hand.
    pub(crate) fed: bool,
    /// Processor time of the busiest thread.
    pub(crate) cpu: f64,
}

/// The strongest limit, with the share of the time for which it held.
pub(crate) fn strongest(evidence: &Evidence) -> (Limit, f64) {
    let Evidence { elapsed, application, flow_window, congestion, .. } = *evidence;
    let of_elapsed = |seconds| share(seconds, elapsed);
    if of_elapsed(evidence.cpu) >= BUSY {
        return (Limit::Cpu, of_elapsed(evidence.cpu));
    }
    if application > flow_window && application > congestion {
        return within_application(evidence);
    }
    match congestion >= flow_window {
        true if evidence.capped => (Limit::RateCap, of_elapsed(congestion)),
        true => (Limit::Congestion, of_elapsed(congestion)),
        false => (Limit::ReceiveBuffer, of_elapsed(flow_window)),
    }
}

/// Why the transport was given nothing.
fn within_application(evidence: &Evidence) -> (Limit, f64) {
    let room = match evidence.small_buffer {
        true => (evidence.room - evidence.congestion - evidence.flow_window).max(0.0),
        false => 0.0,
    };
    let rest = (evidence.application - evidence.reading - evidence.granting - room).max(0.0);
    let reasons = [
        (Limit::DiskRead, evidence.reading),
        (Limit::DiskWrite, evidence.granting),
        (Limit::SendBuffer, room),
        // What is at hand and nevertheless does not leave waits for a processor.
        (if evidence.fed { Limit::Application } else { Limit::Cpu }, rest),
    ];
    let (limit, seconds) = reasons.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("there are four");
    (limit, share(seconds, evidence.elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN_SECONDS: Evidence = Evidence {
        elapsed: 10.0,
        application: 0.0,
        flow_window: 0.0,
        congestion: 0.0,
        capped: false,
        reading: 0.0,
        granting: 0.0,
        room: 0.0,
        small_buffer: false,
        fed: false,
        cpu: 0.0,
    };

    #[test]
    fn each_kind_of_evidence_points_to_its_limit() {
        let cases = [
            (Evidence { congestion: 9.0, room: 8.0, ..TEN_SECONDS }, Limit::Congestion, 0.9),
            (Evidence { congestion: 9.0, capped: true, ..TEN_SECONDS }, Limit::RateCap, 0.9),
            (Evidence { flow_window: 5.0, congestion: 4.0, ..TEN_SECONDS }, Limit::ReceiveBuffer, 0.5),
            (Evidence { application: 8.0, reading: 7.0, ..TEN_SECONDS }, Limit::DiskRead, 0.7),
            (Evidence { application: 8.0, granting: 6.0, ..TEN_SECONDS }, Limit::DiskWrite, 0.6),
            (Evidence { application: 8.0, room: 9.0, small_buffer: true, ..TEN_SECONDS }, Limit::SendBuffer, 0.9),
            (Evidence { application: 8.0, room: 9.0, fed: true, ..TEN_SECONDS }, Limit::Application, 0.8),
            (Evidence { application: 8.0, ..TEN_SECONDS }, Limit::Cpu, 0.8),
            (Evidence { congestion: 9.0, cpu: 9.5, ..TEN_SECONDS }, Limit::Cpu, 0.95),
        ];
        for (evidence, limit, part) in cases {
            let (found, its) = strongest(&evidence);
            assert_eq!(found, limit, "{evidence:?}");
            assert!((its - part).abs() < 1e-9, "{evidence:?}: {its}");
        }
    }

    #[test]
    fn a_transfer_that_took_no_time_has_a_share_of_zero() {
        assert_eq!(strongest(&Evidence::default()).1, 0.0);
    }
}
