//! The result of a copy for its `end` record.

use farhaul::Stats;
use farhaul_session::{Progress, Source, Store, Totals};
use farhaul_units::{ByteSize, Rate};

use super::{FileLog, Receiving, Sending};
use crate::error::{Code, Error, Trouble};
use crate::limit::{Limit, is_too_short, share};
use crate::report::{Report, RttMicros, goodput};
use crate::session::Waits;
use crate::session::measure::{self, Meter, Sender};

/// Least share of the time for which a disk is the limit.
const MOSTLY: f64 = 0.5;

/// Measurements besides the session's.
pub(crate) struct Measured {
    pub(crate) stats: Stats,
    pub(crate) rtt: RttMicros,
    pub(crate) meter: Meter,
    pub(crate) waits: Waits,
    /// The data came from another program.
    pub(crate) fed: bool,
    /// The user's caps on the sending rate and buffers.
    pub(crate) rate: Option<Rate>,
    pub(crate) buffer: Option<ByteSize>,
}

/// Fills in the fields of a sender.
pub(crate) fn of_sending<S: Source>(end: &mut Report, job: &Sending<S>, measured: &Measured) {
    common(end, &job.log, (job.session.totals(), job.session.progress()), measured);
    let there = job.session.peer_figures();
    // Without the receiver's report, estimate its time: data and the confirmation take half an RTT each.
    let receiving = there
        .map_or_else(|| job.log.until_confirmed().saturating_sub(measured.stats.min_rtt), |figures| figures.elapsed);
    end.goodput_bps = goodput(end.bytes, receiving);
    end.peer = there.map(measure::peer);
    let Measured { waits, rate, buffer, fed, .. } = *measured;
    // The wait for another program is no wait for a disk.
    let disk = if fed { 0.0 } else { job.source.seconds() };
    let peer_disk = there.and_then(|figures| figures.disk).unwrap_or_default().as_secs_f64();
    let held_back = job.source.held_back().as_secs_f64();
    let peer_held_back = there.and_then(|figures| figures.held_back).unwrap_or_default().as_secs_f64();
    let receiver = there.map(measure::losses_of).unwrap_or_default();
    let sender = Sender { waits, disk, peer_disk, held_back, peer_held_back, receiver, fed, rate, buffer };
    measure::fill_limit(end, &measured.stats, &sender);
}

/// Fills in the fields of a receiver.
pub(crate) fn of_receiving<S: Store>(end: &mut Report, job: &Receiving<S>, measured: &Measured) {
    common(end, &job.log, (job.session.totals(), job.session.progress()), measured);
    end.goodput_bps = goodput(end.bytes, job.store.moving());
    let there = job.session.peer_figures();
    end.peer = there.map(measure::peer);
    let storing = share(job.store.seconds(), end.seconds);
    let held_back = share(job.store.held_back().as_secs_f64(), end.seconds);
    let limit = match job.store.is_program() {
        _ if end.bytes == 0 || is_too_short(end.seconds, measured.stats.min_rtt) => None,
        _ if held_back >= MOSTLY.max(storing) => Some((Limit::KeyRateCap, held_back)),
        true if storing >= MOSTLY => Some((Limit::Application, storing)),
        false if storing >= MOSTLY => Some((Limit::DiskWrite, storing)),
        _ => there.and_then(|sender| measure::limit_of_receiver(sender, &measured.stats)),
    };
    (end.limited_by, end.limited_by_share) = limit.unzip();
}

/// `totals` are those of the session so far, which may have broken off.
fn common(end: &mut Report, log: &FileLog, (totals, progress): (Totals, Progress), measured: &Measured) {
    measure::fill(end, &measured.stats, measured.rtt);
    end.cpu_seconds = measured.meter.cpu();
    end.seconds = log.done_after().unwrap_or_else(|| measured.meter.elapsed()).as_secs_f64();
    end.bytes = totals.bytes;
    end.files = Some(totals.files);
    end.kept = Some(totals.kept);
    end.kept_bytes = Some(totals.kept_bytes);
    end.directories = Some(totals.directories);
    end.links = Some(totals.links);
    end.deleted = Some(totals.deleted);
    end.moved_bytes = Some(progress.bytes);
    end.spared_bytes = Some(progress.spared);
    end.repaired_chunks = Some(log.repaired());
    end.failed = Some(totals.failed);
    end.ledger = log.ledger().clone();
    end.verified = log.done_after().is_some() && totals.failed == 0;
}

/// The result of a copy. `why` makes a fault of its trouble.
///
/// Sources that a broken copy did not reach count as failed.
pub(crate) fn result(
    end: &mut Report,
    log: &FileLog,
    driven: Result<(), Trouble>,
    why: impl FnOnce(&Trouble) -> Error,
) -> Result<(), Error> {
    match driven {
        Err(trouble) => {
            let behind = log.not_reached(&trouble).len() as u64;
            end.failed = end.failed.map(|failed| failed + behind);
            Err(log.broken_by(why(&trouble), &trouble))
        }
        Ok(()) if log.done_after().is_none() => {
            Err(Error::new(Code::PeerLost, "the other side left before everything was confirmed; start the copy again"))
        }
        Ok(()) => log.error().map_or(Ok(()), Err),
    }
}
