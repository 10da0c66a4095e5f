//! Ports that are closing connections, and the wait for them.

use std::io;
use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use farhaul_proto::LONGEST_CLOSE;

/// Extra time for a starved machine.
const GRACE: Duration = Duration::from_millis(500);

/// Longest time that a driver thread outlives its last handle. The transport derives the time of the last shutdown from
/// the RTT. This bound covers a socket that accepts no datagrams.
pub(super) const LONGEST_PORT_CLOSE: Duration = LONGEST_CLOSE.saturating_add(GRACE);

/// Longest time that [`wait_idle`] takes.
const LONGEST_WAIT: Duration = LONGEST_PORT_CLOSE.saturating_add(GRACE);

/// Ports of this process that are closing connections, and the numbers of those that are about to be closed.
static CLOSING: Mutex<Vec<Option<u16>>> = Mutex::new(Vec::new());
/// One of them is closed.
static CLOSED: Condvar = Condvar::new();

/// A port that is closing connections, until the peers have been told. Or a port whose last handle is gone, until it is
/// closed.
#[derive(Debug)]
pub(super) struct Closing(Option<u16>);

impl Closing {
    /// Of a port that closes connections.
    pub(super) fn of_connections() -> Self {
        Self::begin(None)
    }

    /// Of the port with this number, which has no handle any more.
    pub(super) fn of_port(number: u16) -> Self {
        Self::begin(Some(number))
    }

    fn begin(port: Option<u16>) -> Self {
        CLOSING.lock().unwrap_or_else(PoisonError::into_inner).push(port);
        Self(port)
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        let mut closing = CLOSING.lock().unwrap_or_else(PoisonError::into_inner);
        let place = closing.iter().position(|port| *port == self.0);
        closing.swap_remove(place.expect("each is there until its drop"));
        CLOSED.notify_all();
    }
}

/// The number of closing ports.
#[cfg(test)]
pub(super) fn closing_ports() -> usize {
    CLOSING.lock().unwrap_or_else(PoisonError::into_inner).len()
}

/// Opens a port at `address`. If this process dropped its last handle of such a port before, it waits until that is closed.
///
/// # Errors
/// Those of `open`.
pub(crate) fn once_closed<R>(address: SocketAddr, mut open: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    let number = Some(address.port());
    // Asked before the attempt: the port may be closed between a refusal and a later question.
    let is_closing = CLOSING.lock().unwrap_or_else(PoisonError::into_inner).contains(&number);
    match open() {
        Err(error) if is_closing && error.kind() == io::ErrorKind::AddrInUse => {
            wait_while(|ports| ports.contains(&number));
            open()
        }
        opened => opened,
    }
}

/// Waits for all connections that this process finished, closed or dropped, until their peers have been told. Then
/// waits until the UDP ports without handles are closed. Handles of such a connection that other threads still hold do
/// not matter.
///
/// Closing and dropping never wait. The port's driver thread sends the close packet three times, in case datagrams are
/// lost, and then closes the port. That takes two RTTs with their variation, and two seconds at most. If the process
/// exits earlier, only the first close packet may have left. If that one is lost, the peer notices the end only at its own
/// time-out. So call this at the end of `main`. To open the same port again waits for its close by itself.
///
/// Never waits longer than three seconds. Returns at once if no connection is closing.
pub fn wait_idle() {
    wait_while(|closing| !closing.is_empty());
}

fn wait_while(waits: impl FnMut(&mut Vec<Option<u16>>) -> bool) {
    let closing = CLOSING.lock().unwrap_or_else(PoisonError::into_inner);
    drop(CLOSED.wait_timeout_while(closing, LONGEST_WAIT, waits));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_closed_just_after_its_number_was_refused_is_opened() {
        // No port that a socket of another test could get from the system.
        let address: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let mut closing = Some(Closing::of_port(address.port()));
        let open = || match closing.take() {
            Some(closed) => {
                drop(closed);
                Err(io::ErrorKind::AddrInUse.into())
            }
            None => Ok(()),
        };
        once_closed(address, open).unwrap();
    }
}
