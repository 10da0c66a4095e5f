//! The system's count of datagrams that it dropped because the socket's buffer was full.
//!
//! A reading is a system call. So the count is read after an absence of the thread, which is when a buffer overflows, and now and then.

use std::time::Duration;

use farhaul_udp::UdpSocket;
use farhaul_units::Instant;

/// An absence of the thread. Its own sleeps are shorter.
const ABSENCE: Duration = Duration::from_millis(2);
/// Longest time between two readings while datagrams arrive.
const PERIOD: Duration = Duration::from_millis(10);

/// Shortest time between two reports of growth. A report goes to every connection of the port, and a flood of datagrams would cause one
/// for each turn of the thread.
const BETWEEN_REPORTS: Duration = Duration::from_millis(100);

/// Watches the count.
#[derive(Debug)]
pub(super) struct ReceiveDrops {
    /// As of the last report.
    count: Option<u32>,
    /// When datagrams were last taken, when the count was last read, and from when on growth may be reported.
    taken: Instant,
    read: Instant,
    silent_until: Instant,
}

impl ReceiveDrops {
    /// From what `socket` has dropped so far.
    pub(super) fn new(socket: &UdpSocket) -> Self {
        Self { count: socket.recv_drops().ok(), taken: Instant::ZERO, read: Instant::ZERO, silent_until: Instant::ZERO }
    }

    /// Datagrams were taken from `socket`. Returns whether it is known to have dropped more since the last report.
    pub(super) fn have_grown(&mut self, now: Instant, socket: &UdpSocket) -> bool {
        let was_away = now - std::mem::replace(&mut self.taken, now) >= ABSENCE;
        if self.count.is_none() || now < self.silent_until || !was_away && now - self.read < PERIOD {
            return false;
        }
        self.read = now;
        let count = socket.recv_drops().ok();
        let has_grown = std::mem::replace(&mut self.count, count) != count;
        if has_grown {
            self.silent_until = now + BETWEEN_REPORTS;
        }
        has_grown
    }
}
