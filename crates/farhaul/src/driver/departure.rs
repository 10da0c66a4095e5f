//! Ports that are closing connections, and the wait for them.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use farhaul_proto::LONGEST_CLOSE;

/// Extra time for a starved machine.
const GRACE: Duration = Duration::from_millis(500);

/// Longest time that a driver thread outlives its last handle. The transport derives the time of the last shutdown from
/// the RTT. This bound covers a socket that accepts no datagrams.
pub(super) const LONGEST_DEPARTURE: Duration = LONGEST_CLOSE.saturating_add(GRACE);

/// Longest time that [`wait_idle`] takes.
const LONGEST_WAIT: Duration = LONGEST_DEPARTURE.saturating_add(GRACE);

/// Ports of this process that are closing connections or are about to be closed.
static DEPARTING: Mutex<usize> = Mutex::new(0);
static NONE_LEFT: Condvar = Condvar::new();

/// A port that is closing connections, until the peers have been told. Or a port whose last handle is gone, until it is
/// closed.
#[derive(Debug)]
pub(super) struct Departure(());

impl Departure {
    /// Counts one more.
    pub(super) fn begin() -> Self {
        *DEPARTING.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Self(())
    }
}

impl Drop for Departure {
    fn drop(&mut self) {
        let mut departing = DEPARTING.lock().unwrap_or_else(PoisonError::into_inner);
        *departing -= 1;
        if *departing == 0 {
            NONE_LEFT.notify_all();
        }
    }
}

/// The number of departing ports.
#[cfg(test)]
pub(super) fn departing() -> usize {
    *DEPARTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for all connections that this process finished, closed or dropped, until their peers have been told. Then
/// waits until the UDP ports without handles are closed. Handles of such a connection that other threads still hold do
/// not matter.
///
/// Closing and dropping never wait. The port's driver thread sends the close packet three times, in case datagrams are
/// lost, and then closes the port. That takes two RTTs with their variation, and two seconds at most. If the process
/// exits earlier, only the first close packet may have left. If that one is lost, the peer notices the end only at its own
/// time-out. So call this at the end of `main`, or before opening the same port again.
///
/// Never waits longer than three seconds. Returns at once if no connection is closing.
pub fn wait_idle() {
    let departing = DEPARTING.lock().unwrap_or_else(PoisonError::into_inner);
    // The caller cannot use the result, which tells whether a port still departs.
    let _ = NONE_LEFT.wait_timeout_while(departing, LONGEST_WAIT, |departing| *departing > 0);
}
