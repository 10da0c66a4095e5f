//! What all sessions with original programs have in common.

use std::convert::Infallible;

use farhaul_originals::OriginalSession;
use farhaul_units::Instant;

/// The next datagrams, of a file whose bytes are all 1 if the session holds none.
pub(crate) fn train<'a>(
    session: &'a mut impl OriginalSession,
    now: Instant,
    scratch: &'a mut Vec<u8>,
) -> Option<(usize, &'a [u8])> {
    let ones = |_, out: &mut [u8]| {
        out.fill(1);
        Ok::<_, Infallible>(())
    };
    let Ok(train) = session.poll_datagrams(now, ones, scratch);
    train
}
