//! Ending calls that wait, from another thread.

use farhaul::Canceller;

use crate::border::border_of;
use crate::fork::leave;

/// Ends the calls that wait at a port, a listener or a connection. It may outlive them.
pub struct FarhaulCanceller {
    inner: Canceller,
}

impl FarhaulCanceller {
    pub(crate) const fn of(inner: Canceller) -> Self {
        Self { inner }
    }
}

/// Ends the calls that wait, and all later ones that would, with `FARHAUL_RESULT_CANCELLED`, until `farhaul_canceller_reset`.
/// Nothing is closed. Permitted in a signal handler if the process was not forked.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_canceller_cancel(canceller: Option<&FarhaulCanceller>) {
    border_of((), || {
        if let Some(canceller) = canceller {
            canceller.inner.cancel();
        }
    });
}

/// Lets calls wait again.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_canceller_reset(canceller: Option<&FarhaulCanceller>) {
    border_of((), || {
        if let Some(canceller) = canceller {
            canceller.inner.reset();
        }
    });
}

/// Frees a canceller. What it cancelled stays so.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_canceller_free(canceller: Option<Box<FarhaulCanceller>>) {
    leave(canceller);
}
