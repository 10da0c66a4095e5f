//! An endpoint under attack on a test bench. Crafted datagrams go in, and the bench keeps all output.

use core::net::SocketAddr;

use farhaul_proto::{Batch, Config, ConnectionId, Endpoint, Entropy, Event, Mode, Stats, Streams, Transport, udt};
use farhaul_units::{AckNo, Duration, Instant, MsgNo, SeqNo, SeqRange};
use farhaul_wire::udt4::{
    Ack, Control, DataHeader, DropRequest, HEADER_LEN, Handshake, Largest, LossList, MessageField, Packet, Position,
    Request, SocketId, SocketType, Timestamp, encode_losses,
};

/// Limit of datagrams at one instant and of wake-ups in one run. Beyond it, the endpoint loops.
const TOO_MANY: u64 = 2_000_000;

/// The address of caller `n`. Each thousand callers share a network.
pub(crate) fn address(n: u16) -> SocketAddr {
    SocketAddr::from(([10, 1, (n >> 8) as u8, n as u8], 4000))
}

/// The default settings with those of UDT4 from `udt`.
pub(crate) fn with(udt: udt::Config) -> Config {
    Config { udt, ..Config::default() }
}

/// A datagram that the endpoint sent.
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Vec<u8>,
}

impl Sent {
    pub(crate) fn packet(&self) -> Packet<'_> {
        Packet::decode(&self.bytes).expect("what the endpoint sends is well formed")
    }

    /// The sequence number, if it is a data packet.
    pub(crate) fn seq(&self) -> Option<SeqNo> {
        match self.packet() {
            Packet::Data { header, .. } => Some(header.seq),
            Packet::Control { .. } => None,
        }
    }

    pub(crate) fn control(&self) -> Option<Control<'_>> {
        match self.packet() {
            Packet::Data { .. } => None,
            Packet::Control { control, .. } => Some(control),
        }
    }
}

/// An endpoint, its time, and its output.
pub(crate) struct Bench {
    pub(crate) end: Endpoint,
    pub(crate) now: Instant,
    pub(crate) sent: Vec<Sent>,
    pub(crate) events: Vec<Event>,
    /// Calls of `handle_timeout`.
    pub(crate) wakes: u64,
}

impl Bench {
    /// An endpoint that listens for streams.
    pub(crate) fn listening() -> Self {
        Self::new(Config::default(), Mode::Stream)
    }

    pub(crate) fn new(config: Config, mode: Mode) -> Self {
        let mut end = udt::endpoint(config, Entropy { cookie_key: [7; 16], seed: 11 });
        end.listen(mode).expect("UDT has the mode");
        Self { end, now: Instant::from_nanos(1), sent: Vec::new(), events: Vec::new(), wakes: 0 }
    }

    /// Delivers one datagram and collects the output.
    pub(crate) fn deliver(&mut self, from: SocketAddr, datagram: &[u8]) {
        let mut bytes = datagram.to_vec();
        let stride = bytes.len();
        self.end.handle_datagrams(self.now, self.now, from, &mut bytes, stride);
        self.drain();
    }

    pub(crate) fn drain(&mut self) {
        let (mut batch, mut trains) = (Batch::new(), 0);
        while let Some(transmit) = self.end.poll_transmit(self.now, &mut batch) {
            for datagram in transmit.datagrams() {
                self.sent.push(Sent { at: self.now, to: transmit.to, bytes: datagram.to_vec() });
            }
            trains += 1;
            assert!(trains < TOO_MANY, "the endpoint sends for ever at {}", self.now);
        }
        while let Some(event) = self.end.poll_event() {
            self.events.push(event);
        }
    }

    /// Advances time and wakes the endpoint at each of its deadlines.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        let mut wakes = 0;
        self.drain();
        while let Some(deadline) = self.end.poll_timeout().filter(|&deadline| deadline <= end) {
            self.now = self.now.max(deadline);
            self.end.handle_timeout(self.now);
            self.drain();
            wakes += 1;
            assert!(wakes < TOO_MANY, "the endpoint wants to be woken for ever at {}", self.now);
        }
        self.wakes += wakes;
        self.now = end;
    }

    pub(crate) fn run_millis(&mut self, millis: u64) {
        self.run_for(Duration::from_millis(millis));
    }

    /// The output since the last call.
    pub(crate) fn take_sent(&mut self) -> Vec<Sent> {
        self.drain();
        std::mem::take(&mut self.sent)
    }

    /// A caller requests a cookie.
    pub(crate) fn cookie(&mut self, from: SocketAddr, call: &Handshake) -> u32 {
        self.take_sent();
        self.deliver(from, &handshake(SocketId::NONE, call));
        match self.take_sent().first().and_then(Sent::control) {
            Some(Control::Handshake(answer)) => answer.cookie,
            other => panic!("no cookie but {other:?}"),
        }
    }

    /// A caller with the socket id `id` at `from` connects. Its first packet will be `isn`.
    pub(crate) fn accept(&mut self, from: SocketAddr, call: &Handshake) -> Peer {
        let cookie = self.cookie(from, call);
        let call = Handshake { request: Request::Conclusion, cookie, ..*call };
        self.deliver(from, &handshake(SocketId::NONE, &call));
        let answer = self.sent.iter().find_map(|sent| match sent.control() {
            Some(Control::Handshake(answer)) if answer.request == Request::Conclusion => Some(answer),
            _ => None,
        });
        let victim = answer.expect("a good cookie makes a connection").socket_id;
        let id = self.events.iter().rev().find_map(|event| match *event {
            Event::Accepted(id) => Some(id),
            _ => None,
        });
        self.take_sent();
        Peer { address: from, call, victim, id: id.expect("accepted"), acks: AckNo::FIRST }
    }

    pub(crate) fn accept_default(&mut self) -> Peer {
        self.accept(address(1), &call(5, 1000))
    }

    pub(crate) fn stats(&self, peer: &Peer) -> Stats {
        self.end.stats(self.now, peer.id).expect("it was not released")
    }

    /// Why the connection is over, if it is.
    pub(crate) fn closed(&self, peer: &Peer) -> Option<farhaul_proto::ConnectionLost> {
        self.events.iter().find_map(|event| match *event {
            Event::Closed(id, reason) if id == peer.id => Some(reason),
            _ => None,
        })
    }

    /// The application writes `bytes` bytes. There must be room.
    pub(crate) fn write(&mut self, peer: &Peer, bytes: usize) {
        assert_eq!(self.write_some(peer, bytes), bytes, "it fits");
    }

    /// The application writes as much of `bytes` as there is room for.
    pub(crate) fn write_some(&mut self, peer: &Peer, bytes: usize) -> usize {
        let written = self.end.write(self.now, peer.id, &vec![0x5A; bytes]).expect("the connection is open");
        self.drain();
        written
    }

    /// A control packet of the peer arrives.
    pub(crate) fn control(&mut self, peer: &Peer, control: &Control<'_>) {
        self.deliver(peer.address, &encode(peer.victim, control));
    }

    /// A loss report of the peer arrives.
    pub(crate) fn nak(&mut self, peer: &Peer, ranges: &[SeqRange]) {
        let mut body = Vec::new();
        encode_losses(ranges.iter().copied(), 364, &mut body);
        self.control(peer, &Control::Nak(LossList::from_body(&body).expect("the ranges are in order")));
    }

    /// One data packet of the peer arrives.
    pub(crate) fn data(&mut self, peer: &Peer, seq: SeqNo, field: MessageField, payload: &[u8]) {
        self.deliver(peer.address, &data(peer.victim, seq, field, payload));
    }

    /// One full packet of a stream arrives.
    pub(crate) fn full(&mut self, peer: &Peer, seq: SeqNo) {
        self.data(peer, seq, only(1), &[0x33; 1456]);
    }
}

/// The crafted peer of one connection.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// The handshake of its call, cookie included.
    pub(crate) call: Handshake,
    /// The socket under attack.
    pub(crate) victim: SocketId,
    pub(crate) id: ConnectionId,
    pub(crate) acks: AckNo,
}

impl Peer {
    /// The listener that the victim called with `call`.
    pub(crate) fn called(address: SocketAddr, call: Handshake, id: ConnectionId) -> Self {
        Self { address, call, victim: call.socket_id, id, acks: AckNo::FIRST }
    }

    /// The first packet of either side.
    pub(crate) fn isn(&self) -> SeqNo {
        self.call.isn
    }

    /// A full acknowledgement of everything before `seq`, otherwise plausible.
    pub(crate) fn ack(&mut self, seq: SeqNo) -> Control<'static> {
        self.full_ack(seq, Duration::from_millis(100), 8192, (0, 0))
    }

    pub(crate) fn full_ack(&mut self, seq: SeqNo, rtt: Duration, free: u32, rates: (u32, u32)) -> Control<'static> {
        let number = self.acks;
        self.acks = number.next();
        let (arrival_rate, capacity) = rates;
        Control::Ack(Ack::Full { number, seq, rtt, rtt_var: rtt / 8, free_buffer: free, arrival_rate, capacity })
    }
}

/// The first packet of a caller of streams.
pub(crate) fn call(id: u32, isn: u32) -> Handshake {
    Handshake {
        version: Handshake::VERSION,
        socket_type: SocketType::Stream,
        isn: SeqNo::new(isn),
        mss: 1500,
        flow_window: 8192,
        request: Request::Induction,
        socket_id: SocketId::new(id),
        cookie: 0,
        peer_ip: [127, 0, 0, 1].into(),
        largest: Largest::Unsaid,
        wants_receipts: false,
    }
}

pub(crate) fn encode(to: SocketId, control: &Control<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    control.encode(Timestamp::ZERO, to, &mut out);
    out
}

pub(crate) fn handshake(to: SocketId, packet: &Handshake) -> Vec<u8> {
    encode(to, &Control::Handshake(*packet))
}

pub(crate) fn data(to: SocketId, seq: SeqNo, field: MessageField, payload: &[u8]) -> Vec<u8> {
    let header = DataHeader { seq, field, timestamp: Timestamp::ZERO, destination: to };
    let mut out = vec![0; HEADER_LEN];
    header.encode((&mut out[..]).try_into().expect("the length of a header"));
    out.extend_from_slice(payload);
    out
}

/// A control packet, word by word.
pub(crate) fn raw(kind: u16, info: u32, to: SocketId, body: &[u8]) -> Vec<u8> {
    let words = [0x8000_0000 | u32::from(kind) << 16, info, 0, to.value()];
    words.iter().flat_map(|word| word.to_be_bytes()).chain(body.iter().copied()).collect()
}

/// A message of one packet that may be delivered out of order.
pub(crate) fn only(message: u32) -> MessageField {
    field(Position::Only, message)
}

pub(crate) fn field(position: Position, message: u32) -> MessageField {
    MessageField { position, in_order: false, message: MsgNo::new(message) }
}

pub(crate) fn range(first: SeqNo, last: SeqNo) -> SeqRange {
    SeqRange::new(first, last)
}

pub(crate) fn drop_request(message: u32, first: SeqNo, last: SeqNo) -> Control<'static> {
    Control::DropRequest(DropRequest { message: MsgNo::new(message), range: SeqRange::new(first, last) })
}

/// The number of distinct data packets, and of all.
pub(crate) fn data_packets(sent: &[Sent]) -> (usize, usize) {
    let all: Vec<u32> = sent.iter().filter_map(Sent::seq).map(SeqNo::value).collect();
    let distinct: std::collections::BTreeSet<u32> = all.iter().copied().collect();
    (distinct.len(), all.len())
}
