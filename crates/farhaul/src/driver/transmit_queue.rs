//! Datagrams between the transport and the socket, and those that the socket has not accepted yet.

use std::io;

use farhaul_proto::{AddressPair, Batch, Transmit, Transport};
use farhaul_units::Instant;

/// Trains sent in one go before arrivals are handled: about a megabyte, 0.2 ms of work. With more, acknowledgements
/// would wait behind a long train. With fewer, the lock would be taken more often.
const TRAINS_PER_TURN: usize = 16;

/// The result of a [`transmit`](TransmitQueue::transmit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueState {
    /// The transport has nothing more to send now.
    Drained,
    /// The limit of trains was reached before the transport had sent everything.
    More,
    /// The socket accepts no more now.
    Blocked,
}

/// Passes datagrams to a network and keeps those that it refuses.
#[derive(Debug)]
pub(super) struct TransmitQueue {
    scratch: Batch,
    /// The refused rest, which is sent first. Usually empty.
    rest: Rest,
}

#[derive(Debug, Default)]
struct Rest {
    between: Option<AddressPair>,
    segment_size: usize,
    bytes: Vec<u8>,
    sent: usize,
    whole: bool,
}

impl TransmitQueue {
    pub(super) fn new() -> Self {
        Self { scratch: Batch::new(), rest: Rest::default() }
    }

    /// Moves datagrams from `transport` to `send`, which returns the number of *bytes* taken from a train.
    ///
    /// [`io::ErrorKind::WouldBlock`] keeps the train for later. Any other error loses it, as a router on the path
    /// might. The transport retransmits it, and a dead network shows as a silent peer.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        transport: &mut impl Transport,
        mut send: impl FnMut(&Transmit<'_>) -> io::Result<usize>,
    ) -> QueueState {
        if !self.send_rest(&mut send) {
            return QueueState::Blocked;
        }
        for _ in 0..TRAINS_PER_TURN {
            let Some(train) = transport.poll_transmit(now, &mut self.scratch) else { return QueueState::Drained };
            let taken = match send(&train) {
                Ok(taken) => taken,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(_) => continue,
            };
            if taken < train.bytes.len() {
                self.rest.keep(&train, taken);
                return QueueState::Blocked;
            }
        }
        QueueState::More
    }

    /// Sends the rest. Returns whether nothing remains.
    fn send_rest(&mut self, send: &mut impl FnMut(&Transmit<'_>) -> io::Result<usize>) -> bool {
        while let Some(train) = self.rest.train() {
            match send(&train) {
                Ok(0) => return false,
                Ok(taken) => self.rest.took(taken),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(_) => self.rest.took(usize::MAX),
            }
        }
        true
    }
}

impl Rest {
    fn keep(&mut self, train: &Transmit<'_>, taken: usize) {
        self.between = Some(AddressPair { peer: train.to, local: train.source });
        self.segment_size = train.segment_size;
        self.bytes.clear();
        self.bytes.extend_from_slice(&train.bytes[taken..]);
        self.sent = 0;
        self.whole = train.whole;
    }

    fn train(&self) -> Option<Transmit<'_>> {
        let rest = Transmit::between(self.between?, self.segment_size, &self.bytes[self.sent..]);
        Some(Transmit { whole: self.whole, ..rest })
    }

    fn took(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes);
        if self.sent >= self.bytes.len() {
            self.between = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use farhaul_proto::Event;

    use super::*;

    /// Provides this many trains of four datagrams of two bytes.
    struct Trains(u8);

    impl Transport for Trains {
        fn handle_datagrams(&mut self, _: Instant, _: Instant, _: impl Into<AddressPair>, _: &mut [u8], _: usize) {}
        fn handle_timeout(&mut self, _: Instant) {}
        fn poll_transmit<'a>(&'a mut self, _: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
            let number = self.0.checked_sub(1)?;
            self.0 = number;
            scratch.cleared().extend([number; 8]);
            let between = AddressPair { peer: (Ipv4Addr::LOCALHOST, 1).into(), local: Some([127, 0, 0, 2].into()) };
            Some(Transmit::between(between, 2, scratch.bytes()))
        }
        fn poll_timeout(&self) -> Option<Instant> {
            None
        }
        fn poll_event(&mut self) -> Option<Event> {
            None
        }
    }

    #[test]
    fn refused_datagrams_leave_first_later_and_in_order() {
        let (mut queue, mut trains, mut network) = (TransmitQueue::new(), Trains(2), Vec::new());
        let state = queue.transmit(Instant::ZERO, &mut trains, |train| {
            network.extend_from_slice(&train.bytes[..4]);
            Ok(4)
        });
        assert_eq!(state, QueueState::Blocked);
        let state = queue.transmit(Instant::ZERO, &mut trains, |train| {
            assert_eq!(train.source, Some([127, 0, 0, 2].into()), "also of a refused one");
            network.extend_from_slice(train.bytes);
            Ok(train.bytes.len())
        });
        assert_eq!(state, QueueState::Drained);
        assert_eq!(network, [[1; 8], [0; 8]].concat());
    }

    #[test]
    fn a_full_socket_is_not_asked_twice_in_a_turn() {
        let (mut transmit_queue, mut trains, mut calls) = (TransmitQueue::new(), Trains(3), 0);
        for _ in 0..2 {
            let state = transmit_queue.transmit(Instant::ZERO, &mut trains, |_| {
                calls += 1;
                Err(io::ErrorKind::WouldBlock.into())
            });
            assert_eq!(state, QueueState::Blocked);
        }
        assert_eq!((calls, trains.0), (2, 2));
    }

    #[test]
    fn other_errors_lose_a_train_as_a_router_might() {
        let (mut queue, mut trains) = (TransmitQueue::new(), Trains(3));
        let state = queue.transmit(Instant::ZERO, &mut trains, |_| Err(io::ErrorKind::NetworkUnreachable.into()));
        assert_eq!((state, trains.0), (QueueState::Drained, 0));
    }

    #[test]
    fn a_turn_is_bounded_however_much_there_is_to_send() {
        let (mut queue, mut trains) = (TransmitQueue::new(), Trains(200));
        let state = queue.transmit(Instant::ZERO, &mut trains, |train| Ok(train.bytes.len()));
        assert_eq!((state, usize::from(200 - trains.0)), (QueueState::More, TRAINS_PER_TURN));
    }
}
