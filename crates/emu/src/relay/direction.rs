//! One direction of the relay: its path, and the trains in which due datagrams leave.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use farhaul_netem::{Element, PathSpec, Pipe};
use farhaul_units::Instant;

use super::clients::ClientId;
use super::datagram::Datagram;
use super::report::DirectionReport;
use crate::lateness::Lateness;
use crate::pool::Pool;
use farhaul_udp::{MAX_TRAIN_BYTES, MAX_TRAIN_SEGMENTS, Train, UdpSocket, Wall};

/// A path with its input and output.
pub(super) struct Direction {
    path: Pipe<Datagram>,
    /// The current time of the path. Never decreases.
    now: Instant,
    pool: Rc<Pool>,
    /// Bytes of headers in front of each datagram.
    overhead: u32,
    train: OutgoingTrain,
    /// Datagrams dropped for lack of memory.
    exhausted: u64,
    /// Datagrams handed to the network.
    sent: u64,
    /// Datagrams refused by the system: the send buffer was full, or the packet too large.
    unsent: u64,
    /// Datagrams whose client was gone.
    orphaned: u64,
}

impl Direction {
    pub(super) fn new(spec: &PathSpec, pool: &Rc<Pool>, overhead: u32) -> Self {
        Self {
            path: spec.build(),
            now: Instant::ZERO,
            pool: Rc::clone(pool),
            overhead,
            train: OutgoingTrain::default(),
            exhausted: 0,
            sent: 0,
            unsent: 0,
            orphaned: 0,
        }
    }

    /// Takes in a train of `client`, dated by its timestamp.
    pub(super) fn take_in(&mut self, train: &Train<'_>, client: ClientId, wall: &Wall, lateness: &mut Lateness) {
        let arrival = train.arrived.map_or(wall.now, |stamp| wall.instant_of(stamp));
        for bytes in train.datagrams() {
            match self.pool.copy(bytes) {
                Some(bytes) => self.push(arrival, Datagram { bytes, overhead: self.overhead, client }, lateness),
                None => self.exhausted += 1,
            }
        }
    }

    /// Takes in a datagram. One that arrived before the path's current time was overtaken, which counts as lateness
    /// too.
    fn push(&mut self, arrival: Instant, datagram: Datagram, lateness: &mut Lateness) {
        if arrival < self.now {
            lateness.record(self.now - arrival);
        }
        self.now = self.now.max(arrival);
        self.path.push(self.now, datagram);
    }

    /// When the next datagram may be due.
    pub(super) fn next_event(&self) -> Option<Instant> {
        self.path.next_event()
    }

    /// Passes all datagrams due at `now` to `send`, in trains for one client each. It returns how many datagrams the system
    /// took, or `None` if the client is gone. Returns how many datagrams left the path.
    pub(super) fn release(
        &mut self,
        now: Instant,
        lateness: &mut Lateness,
        mut send: impl FnMut(&OutgoingTrain) -> Option<u64>,
    ) -> u64 {
        self.now = self.now.max(now);
        let mut released = 0;
        // The path may have inner steps before the departure. The instant of its next event is then earlier than the
        // due time, so lateness is never understated.
        while let Some(due) = self.path.next_event().filter(|due| *due <= self.now)
            && let Some(datagram) = self.path.pop(self.now)
        {
            lateness.record(self.now - due);
            released += 1;
            if !self.train.takes(&datagram) {
                self.send_train(&mut send);
            }
            self.train.push(&datagram);
        }
        if !self.train.is_empty() {
            self.send_train(&mut send);
        }
        released
    }

    fn send_train(&mut self, send: &mut impl FnMut(&OutgoingTrain) -> Option<u64>) {
        let count = self.train.count as u64;
        match send(&self.train) {
            Some(sent) => {
                self.sent += sent;
                self.unsent += count - sent;
            }
            None => self.orphaned += count,
        }
        self.train.clear();
    }

    /// Counters up to `now`.
    pub(super) fn report(&mut self, now: Instant) -> DirectionReport {
        self.now = self.now.max(now);
        self.path.advance(self.now);
        let Self { exhausted, sent, unsent, orphaned, .. } = *self;
        DirectionReport { path: self.path.counters(), exhausted, sent, unsent, orphaned }
    }
}

/// Datagrams that leave together: for one client and of one length. The last may be shorter.
#[derive(Debug, Default)]
pub(super) struct OutgoingTrain {
    bytes: Vec<u8>,
    segment_size: usize,
    count: usize,
    pub(super) client: ClientId,
}

impl OutgoingTrain {
    /// Sends the train through `socket`, from its address `source`. Returns how many datagrams the system took.
    pub(super) fn send(&self, socket: &UdpSocket, source: Option<IpAddr>, to: SocketAddr) -> u64 {
        if self.segment_size == 0 {
            return socket.send_one(source, to, &[]).is_ok().into();
        }
        let sent = socket.send_from(source, to, self.segment_size, &self.bytes);
        sent.map_or(0, |sent| sent.taken.div_ceil(self.segment_size) as u64)
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn takes(&self, datagram: &Datagram) -> bool {
        let length = datagram.bytes.len();
        let all_full = self.bytes.len() == self.count * self.segment_size;
        self.is_empty()
            || (datagram.client == self.client
                && all_full
                && (1..=self.segment_size).contains(&length)
                && self.count < MAX_TRAIN_SEGMENTS
                && self.bytes.len() + length <= MAX_TRAIN_BYTES)
    }

    fn push(&mut self, datagram: &Datagram) {
        if self.is_empty() {
            self.segment_size = datagram.bytes.len();
            self.client = datagram.client;
        }
        self.bytes.extend_from_slice(&datagram.bytes);
        self.count += 1;
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::Duration;

    use super::*;

    fn datagram(pool: &Rc<Pool>, length: usize) -> Datagram {
        Datagram { bytes: pool.copy(&vec![0; length]).unwrap(), overhead: 28, client: ClientId::default() }
    }

    fn lengths_of_trains(datagrams: &[usize]) -> Vec<Vec<usize>> {
        let (pool, mut lateness) = (Rc::new(Pool::default()), Lateness::new());
        let mut direction = Direction::new(&PathSpec::default(), &pool, 28);
        for length in datagrams {
            let datagram = datagram(&pool, *length);
            direction.push(Instant::ZERO, datagram, &mut lateness);
        }
        let mut trains = Vec::new();
        let _ = direction.release(Instant::ZERO, &mut lateness, |train| {
            trains.push(train.bytes.chunks(train.segment_size.max(1)).map(<[u8]>::len).collect());
            None
        });
        trains
    }

    #[test]
    fn equal_lengths_leave_together_and_a_shorter_one_ends_the_train() {
        assert_eq!(lengths_of_trains(&[9, 9, 5, 9, 9]), [vec![9, 9, 5], vec![9, 9]]);
        assert_eq!(lengths_of_trains(&[5, 9]), [vec![5], vec![9]]);
        assert_eq!(lengths_of_trains(&[9, 0, 9]), [vec![9], vec![], vec![9]]);
    }

    #[test]
    fn trains_are_no_longer_than_the_kernel_takes() {
        let lengths = |size| lengths_of_trains(&[size; 100]).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(1_472), [44, 44, 12]);
        assert_eq!(lengths(100), [64, 36]);
    }

    #[test]
    fn an_arrival_that_was_overtaken_by_the_present_counts_as_late() {
        let (pool, mut lateness) = (Rc::new(Pool::default()), Lateness::new());
        let mut direction = Direction::new(&PathSpec::default(), &pool, 28);
        let now = Instant::ZERO + Duration::from_millis(5);
        let _ = direction.release(now, &mut lateness, |_| None);
        let datagram = datagram(&pool, 1);
        direction.push(Instant::ZERO, datagram, &mut lateness);
        assert_eq!(lateness.report().max, Duration::from_millis(5));
        assert_eq!(direction.next_event(), Some(now));
    }
}
