//! Two endpoints, a path for datagrams, and channels between them, in virtual time.

use core::marker::PhantomData;
use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};

use farhaul_units::{Duration, Instant, Rng};

use super::engine::Simple;
use crate::blast::endpoint;
use crate::blast::engine::Protocol;
use farhaul_proto::channel::{ChannelEnd, ChannelOutput, Channels};
use farhaul_proto::endpoint::Endpoint;
use farhaul_proto::event::{ConnectionId, Event};
use farhaul_proto::transport::{Batch, Read, StreamError, Streams, Transport};
use farhaul_proto::{Config, Entropy, Mode};

/// One-way delay of datagrams and channels.
const DELAY: Duration = Duration::from_millis(10);
/// Bytes of a datagram that only carries a tag.
const PROBE: usize = 8;

/// Both ends.
pub(crate) struct Pair<P: Protocol = Simple> {
    protocol: PhantomData<P>,
    pub(crate) now: Instant,
    pub(crate) ends: [Endpoint; 2],
    /// Events of each side so far.
    pub(crate) events: [Vec<Event>; 2],
    /// Probability of loss of a datagram.
    pub(crate) loss: f64,
    /// Whether datagrams of this side are all dropped.
    pub(crate) blocked: [bool; 2],
    /// Whether the far host refuses channels, and whether all channels have fallen silent.
    pub(crate) refuses: bool,
    pub(crate) silent: bool,
    /// Datagrams with data that left each side, and those that were lost or refused.
    pub(crate) data_datagrams: [u64; 2],
    pub(crate) data_lost: u64,
    pub(crate) refused: u64,
    rng: Rng,
    datagrams: VecDeque<(Instant, usize, Vec<u8>)>,
    messages: VecDeque<(Instant, usize, ConnectionId, Message)>,
    /// The other end of each channel.
    peers: [BTreeMap<ConnectionId, ConnectionId>; 2],
    open: [BTreeMap<ConnectionId, ()>; 2],
    last: [Vec<u8>; 2],
}

#[derive(Debug)]
enum Message {
    Call,
    Opened(ConnectionId),
    Bytes(Vec<u8>),
    End(ChannelEnd),
}

fn address(side: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, side as u8 + 1], 9_000))
}

/// Channels come from another port than datagrams.
fn channel_address(side: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, side as u8 + 1], 45_678))
}

impl Pair {
    pub(crate) fn new(near: Config, far: Config) -> Self {
        Self::of((), near, far)
    }
}

impl<P: Protocol> Pair<P> {
    /// Two ends of any protocol.
    pub(crate) fn of(options: P::Options, near: Config, far: Config) -> Self {
        let end =
            |config, seed: u64| endpoint::<P>(config, options.clone(), Entropy { cookie_key: [seed as u8; 16], seed });
        let mut ends = [end(near, 1), end(far, 2)];
        ends[1].listen(Mode::Stream).unwrap();
        Self {
            protocol: PhantomData,
            now: Instant::from_nanos(1_000_000_000),
            ends,
            events: [Vec::new(), Vec::new()],
            loss: 0.0,
            blocked: [false; 2],
            refuses: false,
            silent: false,
            data_datagrams: [0; 2],
            data_lost: 0,
            refused: 0,
            rng: Rng::new(7),
            datagrams: VecDeque::new(),
            messages: VecDeque::new(),
            peers: [BTreeMap::new(), BTreeMap::new()],
            open: [BTreeMap::new(), BTreeMap::new()],
            last: [Vec::new(), Vec::new()],
        }
    }

    // ---- commands ----

    pub(crate) fn call(&mut self) -> ConnectionId {
        let id = self.ends[0].connect(self.now, address(1)).unwrap();
        self.settle();
        id
    }

    /// Connects both sides. The far side has its id once the near one's hello is there.
    pub(crate) fn connect(&mut self) -> (ConnectionId, ConnectionId) {
        let near = self.call();
        self.run_for(DELAY * 6);
        assert!(self.events[0].contains(&Event::Connected(near)), "{:?}", self.events[0]);
        let accepted = self.events[1].iter().find_map(|event| match event {
            Event::Accepted(id) => Some(*id),
            _ => None,
        });
        (near, accepted.expect("the far side has accepted"))
    }

    /// Writes all of `data`, while the other side's reader does nothing.
    pub(crate) fn write(&mut self, side: usize, id: ConnectionId, data: &[u8]) {
        let mut written = 0;
        for _ in 0..10_000 {
            written += self.write_some(side, id, &data[written..]);
            if written == data.len() {
                return;
            }
            self.run_for(Duration::from_millis(1));
        }
        panic!("{written} of {} bytes were taken", data.len());
    }

    pub(crate) fn write_some(&mut self, side: usize, id: ConnectionId, data: &[u8]) -> usize {
        let taken = self.ends[side].write(self.now, id, data).unwrap();
        self.settle();
        taken
    }

    pub(crate) fn read(&mut self, side: usize, id: ConnectionId, most: usize) -> Result<Read, StreamError> {
        let read = self.ends[side].read(self.now, id, &mut vec![0; most]);
        self.settle();
        read
    }

    pub(crate) fn read_until(&mut self, side: usize, id: ConnectionId, bytes: usize) -> Vec<u8> {
        let mut received = Vec::new();
        let mut chunk = vec![0; 1 << 16];
        for _ in 0..60_000 {
            let most = chunk.len().min(bytes - received.len());
            match self.ends[side].read(self.now, id, &mut chunk[..most]) {
                Ok(Read::Data(read)) => received.extend_from_slice(&chunk[..read]),
                Ok(Read::Pending) => self.run_for(Duration::from_millis(1)),
                other => panic!("{other:?} after {} of {bytes} bytes", received.len()),
            }
            self.settle();
            if received.len() == bytes {
                return received;
            }
        }
        panic!("only {} of {bytes} bytes came", received.len());
    }

    pub(crate) fn finish(&mut self, side: usize, id: ConnectionId) {
        self.ends[side].finish(self.now, id);
        self.settle();
    }

    pub(crate) fn close(&mut self, side: usize, id: ConnectionId) {
        self.ends[side].close(self.now, id);
        self.settle();
    }

    pub(crate) fn abort(&mut self, side: usize, id: ConnectionId) {
        self.ends[side].abort(self.now, id);
        self.settle();
    }

    pub(crate) fn release(&mut self, side: usize, id: ConnectionId) {
        self.ends[side].release(self.now, id);
        self.settle();
    }

    // ---- what a hostile world does ----

    /// Bytes that the peer never sent.
    pub(crate) fn inject(&mut self, side: usize, id: ConnectionId, bytes: &[u8]) {
        self.ends[side].handle_channel(self.now, id, bytes);
        self.settle();
    }

    pub(crate) fn cut(&mut self, side: usize, id: ConnectionId, end: ChannelEnd) {
        self.ends[side].channel_ended(self.now, id, end);
        self.settle();
    }

    pub(crate) fn deliver(&mut self, side: usize, from: SocketAddr, datagram: &[u8]) {
        let mut bytes = datagram.to_vec();
        let stride = bytes.len().max(1);
        self.ends[side].handle_datagrams(self.now, self.now, from, &mut bytes, stride);
        self.settle();
    }

    pub(crate) fn address_of(side: usize) -> SocketAddr {
        address(side)
    }

    pub(crate) fn last_datagram_to(&self, side: usize) -> Vec<u8> {
        self.last[side].clone()
    }

    // ---- facts ----

    pub(crate) fn connections(&self) -> [usize; 2] {
        [&self.ends[0], &self.ends[1]].map(Endpoint::connections)
    }

    pub(crate) fn channels(&self) -> [usize; 2] {
        [self.open[0].len(), self.open[1].len()]
    }

    // ---- time ----

    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.settle();
            let next = [
                self.datagrams.front().map(|(at, ..)| *at),
                self.messages.front().map(|(at, ..)| *at),
                self.ends[0].poll_timeout(),
                self.ends[1].poll_timeout(),
            ];
            let next = next.into_iter().flatten().min().unwrap_or(end).max(self.now + Duration::from_nanos(1));
            if next > end {
                self.now = end;
                return self.settle();
            }
            self.now = next;
            self.arrive();
            for side in 0..2 {
                self.ends[side].handle_timeout(self.now);
            }
        }
    }

    fn arrive(&mut self) {
        while self.datagrams.front().is_some_and(|(at, ..)| *at <= self.now) {
            let Some((_, side, mut bytes)) = self.datagrams.pop_front() else { return };
            let before = self.ends[side].invalid_datagrams();
            let stride = bytes.len();
            self.ends[side].handle_datagrams(self.now, self.now, address(1 - side), &mut bytes, stride);
            self.refused += self.ends[side].invalid_datagrams() - before;
        }
        while self.messages.front().is_some_and(|(at, ..)| *at <= self.now) {
            let Some((_, side, id, message)) = self.messages.pop_front() else { return };
            self.message(side, id, message);
        }
    }

    fn message(&mut self, side: usize, id: ConnectionId, message: Message) {
        if self.silent && !matches!(message, Message::Call | Message::Opened(_)) {
            return;
        }
        let now = self.now;
        match message {
            // `id` is the caller's.
            Message::Call => {
                let refusal = (now + DELAY, 1 - side, id, Message::End(ChannelEnd::Refused));
                if self.refuses {
                    return self.messages.push_back(refusal);
                }
                let from = channel_address(1 - side);
                let accepted = if self.silent { None } else { self.ends[side].accept_channel(now, from) };
                if let Some(accepted) = accepted {
                    self.peers[side].insert(accepted, id);
                    self.open[side].insert(accepted, ());
                    self.messages.push_back((now + DELAY, 1 - side, id, Message::Opened(accepted)));
                } else if self.silent {
                    self.messages.push_back((now + DELAY, 1 - side, id, Message::Opened(id)));
                }
            }
            Message::Opened(peer) => {
                self.peers[side].insert(id, peer);
                self.open[side].insert(id, ());
                self.ends[side].channel_opened(now, id);
            }
            Message::Bytes(bytes) if self.open[side].contains_key(&id) => {
                self.ends[side].handle_channel(now, id, &bytes);
            }
            Message::End(end) => {
                self.open[side].remove(&id);
                self.ends[side].channel_ended(now, id, end);
            }
            Message::Bytes(_) => {}
        }
    }

    /// Follows the contract of both traits until nothing more comes out.
    fn settle(&mut self) {
        for side in 0..2 {
            self.transmit(side);
            self.serve_channels(side);
            self.transmit(side);
            while let Some(event) = self.ends[side].poll_event() {
                self.events[side].push(event);
            }
        }
    }

    fn transmit(&mut self, side: usize) {
        let mut batch = Batch::new();
        while let Some(transmit) = self.ends[side].poll_transmit(self.now, &mut batch) {
            assert_eq!(transmit.to, address(1 - side));
            for datagram in transmit.datagrams() {
                let data = datagram.len() > PROBE;
                self.data_datagrams[side] += u64::from(data);
                self.last[1 - side] = datagram.to_vec();
                if self.blocked[side] || self.rng.unit() < self.loss {
                    self.data_lost += u64::from(data);
                } else {
                    self.datagrams.push_back((self.now + DELAY, 1 - side, datagram.to_vec()));
                }
            }
        }
    }

    fn serve_channels(&mut self, side: usize) {
        let (now, arrival) = (self.now, self.now + DELAY);
        loop {
            let mut drained = None;
            match self.ends[side].poll_channel(now) {
                None => return,
                Some(ChannelOutput::Open(id, to)) => {
                    assert_eq!(to, address(1 - side));
                    self.messages.push_back((arrival, 1 - side, id, Message::Call));
                }
                Some(ChannelOutput::Send(id, bytes)) => {
                    let bytes = bytes.to_vec();
                    if let Some(&peer) = self.peers[side].get(&id) {
                        self.messages.push_back((arrival, 1 - side, peer, Message::Bytes(bytes)));
                    }
                    drained = Some(id);
                }
                Some(ChannelOutput::Finish(id)) => self.end(side, id, ChannelEnd::Finished),
                Some(ChannelOutput::Reset(id)) => self.end(side, id, ChannelEnd::Failed),
            }
            if let Some(id) = drained {
                self.ends[side].channel_drained(now, id);
            }
        }
    }

    fn end(&mut self, side: usize, id: ConnectionId, end: ChannelEnd) {
        self.open[side].remove(&id);
        if let Some(&peer) = self.peers[side].get(&id) {
            self.messages.push_back((self.now + DELAY, 1 - side, peer, Message::End(end)));
        }
    }
}
