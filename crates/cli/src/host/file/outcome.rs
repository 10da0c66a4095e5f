//! What a copy gave, as its `end` record says it.

use farhaul::Stats;
use farhaul_session::{Source, Store};
use farhaul_units::{ByteSize, Rate};

use super::{FileLog, Receiving, Sending};
use crate::exit::{Code, Fault};
use crate::host::measure::{self, Meter, Sender};
use crate::host::{Trouble, Waits};
use crate::output::json::{End, Limit, RttMicros, bits_per_second, share};

/// A disk that took this share of the time was what the transfer waited for.
const MOSTLY: f64 = 0.5;

/// What was measured beside the session.
pub(crate) struct Measured {
    pub(crate) stats: Stats,
    pub(crate) rtt: RttMicros,
    pub(crate) meter: Meter,
    pub(crate) waits: Waits,
    /// The data came out of another program.
    pub(crate) fed: bool,
    /// Caps of the sending rate and of buffers.
    pub(crate) rate: Option<Rate>,
    pub(crate) buffer: Option<ByteSize>,
}

/// Fills in what the sending side knows.
pub(crate) fn of_sending<S: Source>(end: &mut End, job: &Sending<S>, measured: &Measured) {
    common(end, &job.log, measured);
    let there = job.session.peer_figures();
    // A receiver that saw one block, or that never came to tell, has no first and last byte. What it would see otherwise:
    // confirmations travel half a round trip, as data does.
    let receiving = there.map(|figures| figures.elapsed).filter(|time| !time.is_zero());
    let receiving = receiving.unwrap_or_else(|| job.log.until_confirmed().saturating_sub(measured.stats.min_rtt));
    end.goodput_bps = bits_per_second(end.bytes, receiving);
    end.peer = there.map(measure::peer);
    let Measured { waits, rate, buffer, fed, .. } = *measured;
    // Who waits for another program does not wait for a disk.
    let disk = if fed { 0.0 } else { job.source.seconds() };
    let peer_disk = there.and_then(|figures| figures.disk).unwrap_or_default().as_secs_f64();
    let sender = Sender { waits, disk, peer_disk, fed, rate, buffer };
    measure::fill_limit(end, &measured.stats, &sender);
}

/// Fills in what the receiving side knows.
pub(crate) fn of_receiving<S: Store>(end: &mut End, job: &Receiving<S>, measured: &Measured) {
    common(end, &job.log, measured);
    let receiving = Some(job.store.moving()).filter(|time| !time.is_zero());
    let receiving = receiving.unwrap_or_else(|| job.log.until_confirmed());
    end.goodput_bps = bits_per_second(job.log.moved(), receiving);
    end.peer = job.session.peer_figures().map(measure::peer);
    let disk = share(job.store.seconds(), end.seconds);
    if disk >= MOSTLY {
        end.limited_by = Some(Limit::DiskWrite);
        end.limited_by_share = Some(disk);
    }
}

fn common(end: &mut End, log: &FileLog, measured: &Measured) {
    measure::fill(end, &measured.stats, measured.rtt);
    end.cpu_seconds = measured.meter.cpu();
    let (totals, seconds) = log.totals().unwrap_or_else(|| (Default::default(), measured.meter.elapsed()));
    end.seconds = seconds.as_secs_f64();
    end.bytes = if log.totals().is_some() { totals.bytes } else { log.moved() };
    end.files = Some(totals.files);
    end.directories = Some(totals.directories);
    end.failed = Some(totals.failed);
    end.verified = log.totals().is_some() && totals.failed == 0;
}

/// How a copy ended: `why` words the trouble, if there was any.
pub(crate) fn result(
    log: &FileLog,
    driven: Result<(), Trouble>,
    why: impl FnOnce(&Trouble) -> Fault,
) -> Result<(), Fault> {
    match driven {
        Err(trouble) => Err(log.broken_by(why(&trouble), &trouble)),
        Ok(()) if log.totals().is_none() => {
            Err(Fault::new(Code::PeerLost, "the other side left before everything was confirmed; start the copy again"))
        }
        Ok(()) => log.fault().map_or(Ok(()), Err),
    }
}
