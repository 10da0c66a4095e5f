//! Unreliable datagrams that have arrived and wait for the host.

use core::net::SocketAddr;

use farhaul_units::Instant;
use farhaul_wire::probe::{is_probe, is_question};

use crate::event::ConnectionId;
use crate::transport::{DatagramKind, ReceivedDatagrams};

/// Bytes of datagrams that wait for the host. It takes them after each receive call, which has half a megabyte.
const MOST_WAITING: usize = 4 << 20;

/// The datagrams that wait for the host, and the connections that have nothing else.
#[derive(Debug, Default)]
pub(crate) struct DatagramQueue {
    /// Those of each kind; `None` while nobody wants them.
    inboxes: [Option<Box<Inbox>>; 2],
    /// Connections of callers for datagrams alone, and some that are forgotten.
    pub(crate) connections: Vec<ConnectionId>,
    /// The time of the last input.
    now: Instant,
}

#[derive(Debug, Default)]
struct Inbox {
    bytes: Vec<u8>,
    runs: Vec<Run>,
}

/// Datagrams of one length that arrived together. The last may be shorter.
#[derive(Clone, Copy, Debug)]
struct Run {
    origin: Origin,
    end: usize,
    stride: usize,
    /// A shorter datagram was the last one.
    closed: bool,
}

/// Where and when a datagram arrived: its connection, the address from which its packet came, and the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) connection: ConnectionId,
    pub(super) peer: SocketAddr,
    pub(super) arrived: Instant,
}

impl Inbox {
    fn put(&mut self, origin: Origin, datagram: &[u8]) {
        let len = datagram.len();
        if self.bytes.len() + len > MOST_WAITING {
            return;
        }
        self.bytes.extend_from_slice(datagram);
        match self.runs.last_mut() {
            Some(run) if !run.closed && len <= run.stride && run.origin == origin => {
                run.end += len;
                run.closed = len < run.stride;
            }
            _ => self.runs.push(Run { origin, end: self.bytes.len(), stride: len, closed: false }),
        }
    }

    fn deliver(&mut self, to: &mut dyn FnMut(&ReceivedDatagrams<'_>)) {
        let mut begin = 0;
        for Run { origin: Origin { connection, peer, arrived }, end, stride, .. } in self.runs.drain(..) {
            to(&ReceivedDatagrams { arrived, connection, peer, bytes: &self.bytes[begin..end], stride });
            begin = end;
        }
        self.bytes.clear();
    }
}

impl DatagramQueue {
    /// Keeps a datagram if somebody wants those of its kind. An empty one says nothing.
    pub(super) fn put(&mut self, origin: Origin, datagram: &[u8]) {
        if !is_probe(datagram) {
            return;
        }
        let kind = if is_question(datagram) { DatagramKind::Question } else { DatagramKind::Answer };
        if let Some(inbox) = self.inbox(kind) {
            inbox.put(origin, datagram);
        }
    }

    /// There is input at this time.
    pub(super) const fn note_time(&mut self, now: Instant) {
        self.now = now;
    }

    /// The time of the last input.
    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    /// The host wants datagrams of this kind from now on, or no more.
    pub(super) fn want(&mut self, kind: DatagramKind, wanted: bool) {
        let inbox = &mut self.inboxes[kind as usize];
        match wanted {
            true => drop(inbox.get_or_insert_default()),
            false => *inbox = None,
        }
    }

    /// Hands over those of this kind that wait.
    pub(super) fn take(&mut self, kind: DatagramKind, to: &mut dyn FnMut(&ReceivedDatagrams<'_>)) {
        if let Some(inbox) = self.inbox(kind) {
            inbox.deliver(to);
        }
    }

    fn inbox(&mut self, kind: DatagramKind) -> Option<&mut Inbox> {
        self.inboxes[kind as usize].as_deref_mut()
    }
}

#[cfg(test)]
mod tests {
    use farhaul_wire::probe::WORD;

    use super::*;

    #[test]
    fn datagrams_that_nobody_takes_are_bounded_and_kinds_stay_apart() {
        let datagram = |kind: u8, len: usize| {
            let mut bytes = WORD.to_be_bytes().to_vec();
            bytes.resize(len, kind);
            bytes
        };
        let origin = Origin {
            connection: ConnectionId { slot: 0, generation: 0 },
            peer: SocketAddr::from(([10, 0, 0, 1], 9)),
            arrived: Instant::ZERO,
        };
        let mut queue = DatagramQueue::default();
        queue.put(origin, &datagram(1, 80));
        queue.want(DatagramKind::Question, true);
        for bytes in [datagram(1, 80), datagram(1, 80), datagram(2, 80), vec![9; 80], datagram(1, 50), datagram(1, 50)]
        {
            queue.put(origin, &bytes);
        }
        let mut taken = Vec::new();
        queue.inbox(DatagramKind::Question).unwrap().deliver(&mut |run| taken.push((run.bytes.len(), run.stride)));
        assert_eq!(taken, [(210, 80), (50, 50)], "a shorter one is the last of its run");
        assert!(queue.inbox(DatagramKind::Answer).is_none());
        (0..100_000).for_each(|_| queue.put(origin, &datagram(1, 80)));
        assert_eq!(queue.inbox(DatagramKind::Question).unwrap().bytes.len(), MOST_WAITING / 80 * 80);
    }
}
