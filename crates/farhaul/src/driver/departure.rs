//! Ports that are saying good-bye, and waiting for them.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use farhaul_proto::LONGEST_FAREWELL;

/// Time by which a starved machine may be late.
const GRACE: Duration = Duration::from_millis(500);

/// Longest time that a driver thread outlives its last handle. The transport says by the round trip when the last shutdown
/// leaves; this bound is for a socket that takes nothing.
pub(super) const LONGEST_DEPARTURE: Duration = LONGEST_FAREWELL.saturating_add(GRACE);

/// Longest time that [`wait_for_farewells`] takes.
const LONGEST_WAIT: Duration = LONGEST_DEPARTURE.saturating_add(GRACE);

/// Ports of this process that are saying good-bye to a peer or about to be closed.
static DEPARTING: Mutex<usize> = Mutex::new(0);
static NONE_LEFT: Condvar = Condvar::new();

/// A port that is saying good-bye, until the peers have been told; or one whose last handle is gone, until it is closed.
#[derive(Debug)]
pub(super) struct Departure(());

impl Departure {
    /// Begins to count.
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

/// How many there are.
#[cfg(test)]
pub(super) fn departing() -> usize {
    *DEPARTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until the peers of all connections that this process finished, closed or dropped have been told, and the UDP ports
/// whose last handle is gone are closed. Handles that other threads still hold of such a connection do not matter.
///
/// Closing and dropping never wait: the port's own thread says good-bye afterwards, three times for the case that
/// datagrams are lost, and then closes the port. That takes two round trips with their variation, and two seconds at most. A
/// process that exits meanwhile cuts it off after the first good-bye; if just that one is lost, the peer notices the end only
/// at its own time-out. So call this at the end of `main`, or before opening the same port again.
///
/// Never waits longer than three seconds; returns at once if nothing is under way.
pub fn wait_for_farewells() {
    let departing = DEPARTING.lock().unwrap_or_else(PoisonError::into_inner);
    // Whether somebody is left then is of no use to the caller.
    let _ = NONE_LEFT.wait_timeout_while(departing, LONGEST_WAIT, |departing| *departing > 0);
}
