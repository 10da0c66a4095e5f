//! Secure connections in the simulator, and an attacker who forges packets for them.

use core::net::SocketAddr;
use std::cell::RefCell;
use std::rc::Rc;

use farhaul_netem::{PathSpec, QueueSize};
use farhaul_proto::secure::{KeyChange, Keys, Null, Provider};
use farhaul_proto::{Config, Endpoint, Entropy, Mode, Stats, Streams, secure};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair, address};
use farhaul_sim::{OutgoingDatagram, Simulation, TapAction, Workload};
use farhaul_units::{Duration, Instant, MsgNo, Rate, SeqNo};
use farhaul_wire::secure::{ConnectionName, DataForm, Epoch, HEADER_LEN, Header, PacketNumber, TAG_LEN, inner};
use farhaul_wire::udt4::{self, Control, DataHeader, MessageField, Position, Timestamp};

pub(crate) type Run = Simulation<Endpoint>;

/// Bytes of a transfer under attack.
pub(crate) const BYTES: u64 = 20_000_000;
/// Longest virtual time of a transfer.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

pub(crate) fn endpoint(seed: u8, config: Config, provider: impl Provider + 'static) -> Endpoint {
    secure::endpoint(config, Entropy { cookie_key: [seed; 16], seed: seed.into() }, Box::new(provider))
}

pub(crate) fn null(seed: u8) -> Null {
    Null::new(seed.into())
}

/// 100 Mbit/s, an RTT of 20 ms, and a queue of one bandwidth-delay product.
pub(crate) fn path() -> PathSpec {
    let delay = Duration::from_millis(10);
    let rate = Some(Rate::from_megabits_per_second(100));
    PathSpec { rate, delay, queue: QueueSize::Bdp(2 * delay), ..PathSpec::default() }
}

pub(crate) fn pair_of(caller: Endpoint, mut listener: Endpoint) -> Pair<Endpoint> {
    listener.listen(Mode::Stream).expect("UDT has the mode");
    Pair::new(caller, listener).path(path()).seed(7)
}

/// An upload that has not begun.
pub(crate) fn upload() -> Run {
    let pair = pair_of(endpoint(1, Config::default(), null(1)), endpoint(2, Config::default(), null(2)));
    pair.caller(Workload::send(BYTES)).listener(Workload::receive()).start()
}

pub(crate) fn stats(run: &Run, host: usize) -> Stats {
    run.transport(host).stats(run.now(), run.flows(host)[0].id()).unwrap()
}

pub(crate) fn assert_whole(run: &Run) {
    assert_eq!([run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat(), [""; 0]);
}

/// The end of an upload, and the sender's counters then.
pub(crate) fn finish(run: &mut Run) -> (Duration, Stats) {
    let complete = |run: &Run| run.flows(LISTENER).first().is_some_and(|flow| flow.received().complete_at.is_some());
    assert!(run.run_until_true(Instant::ZERO + LIMIT, complete), "it does not arrive");
    assert_whole(run);
    (run.now() - Instant::ZERO, stats(run, CALLER))
}

/// Runs an upload that nobody disturbs.
pub(crate) fn undisturbed() -> (Duration, Stats) {
    finish(&mut upload())
}

// ---- without keys ----

/// The knowledge of an attacker on the path, who can also read.
#[derive(Clone, Copy, Default)]
pub(crate) struct Overheard {
    /// The connection ids of both hosts.
    pub(crate) ids: [ConnectionName; 2],
    /// The newest packet of the caller, and its number in its header.
    pub(crate) seq: SeqNo,
    pub(crate) number: PacketNumber,
}

impl Overheard {
    fn note(&mut self, datagram: &OutgoingDatagram<'_>) {
        let Ok(header) = Header::decode(datagram.bytes) else { return };
        if !header.epoch.is_application() {
            return;
        }
        self.ids[usize::from(datagram.to == address(LISTENER))] = header.to;
        if let Some((seq, _)) = inner::stream_data(&datagram.bytes[HEADER_LEN..]) {
            (self.seq, self.number) = (seq, header.number);
        }
    }
}

/// Makes packets of UDT4 for hosts.
pub(crate) type Forger = fn(&Overheard) -> Vec<(usize, Vec<u8>)>;

/// An upload during which the packets of `forge` arrive at its hosts every millisecond: in plain, in protected packets without a
/// key, and from another address.
pub(crate) fn attacked(forge: Forger) -> (Duration, Stats) {
    let mut run = upload();
    let overheard = Rc::new(RefCell::new(Overheard::default()));
    let tap = Rc::clone(&overheard);
    run.set_tap(Some(Box::new(move |datagram| {
        tap.borrow_mut().note(datagram);
        TapAction::Pass
    })));
    let stranger: SocketAddr = "192.0.2.9:9000".parse().unwrap();
    for round in 0..1_500 {
        run.run_for(Duration::from_millis(1));
        let known = *overheard.borrow();
        if known.ids.iter().any(|id| id.is_none()) {
            continue;
        }
        for (host, packet) in forge(&known) {
            let header = Header { epoch: Epoch(3), number: known.number + 1 + round, to: known.ids[host] };
            let mut protected = Vec::new();
            if let Some(pieces) = packet.split_first_chunk() {
                inner::enclose(&header, pieces, DataForm::Stream, &mut protected);
            }
            for (from, bytes) in [(address(1 - host), &packet), (address(1 - host), &protected), (stranger, &protected)]
            {
                run.inject(host, from, bytes);
            }
        }
    }
    let refused: u64 = [CALLER, LISTENER].map(|host| run.transport(host).invalid_datagrams()).iter().sum();
    assert!(refused > 3_000, "{refused} of them came");
    finish(&mut run)
}

/// The upload takes its time, whatever `forge` does.
pub(crate) fn assert_nothing_changes(forge: Forger) {
    let ((time, quiet), (under_attack, stats)) = (undisturbed(), attacked(forge));
    let longest = time + time / 20;
    assert!(under_attack <= longest, "{under_attack:?} in place of {time:?}");
    let totals = |stats: &Stats| [stats.totals.error_signals_received, stats.totals.delay_warnings_received];
    assert_eq!(totals(&stats), totals(&quiet));
}

/// A control packet for a host.
pub(crate) fn encode(to: ConnectionName, control: &Control<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    control.encode(Timestamp::ZERO, to, &mut out);
    out
}

// ---- with keys ----

/// The keys that [`Null`] gives to the application, of the client and of the server.
pub(crate) fn application_keys() -> [Keys; 2] {
    let (mut provider, peer) = (Null::new(0), address(CALLER));
    let mut sides = [provider.call(peer, Vec::new()).unwrap(), provider.answer(peer, Vec::new()).unwrap()];
    let mut keys = [None, None];
    for turn in 0..8 {
        let (side, mut said) = (turn % 2, Vec::new());
        if let Some(KeyChange::Application(found, _)) = sides[side].write(&mut said) {
            keys[side] = Some(found);
        }
        sides[1 - side].read(&said).unwrap();
    }
    keys.map(Option::unwrap)
}

/// The packet in an opened datagram, as it was before it went in.
fn packet_of_udt4(header: &Header, protected: &mut [u8]) -> Vec<u8> {
    let body = &protected[HEADER_LEN..protected.len() - TAG_LEN];
    let Some((seq, payload)) = inner::stream_data(body) else { return inner::restore(protected).unwrap().to_vec() };
    let field = MessageField { position: Position::Only, in_order: false, message: MsgNo::FIRST };
    let mut packet = vec![0; udt4::HEADER_LEN];
    let data = DataHeader { seq, field, timestamp: Timestamp::ZERO, destination: header.to };
    data.encode((&mut packet[..]).try_into().unwrap());
    packet.extend_from_slice(payload);
    packet
}

/// A side that has the keys, and changes its packets before they are sealed.
pub(crate) struct Liar {
    keys: Keys,
    host: usize,
}

impl Liar {
    pub(crate) fn at(host: usize) -> Self {
        let [client, server] = application_keys();
        Self { keys: if host == CALLER { client } else { server }, host }
    }

    /// Lets `change` have a packet of UDT4 of this side, and seals it again.
    pub(crate) fn rewrite(&self, datagram: &mut OutgoingDatagram<'_>, change: impl FnOnce(&mut Vec<u8>)) {
        let Ok(header) = Header::decode(datagram.bytes) else { return };
        let mut copy = datagram.bytes.clone();
        let body = &copy[HEADER_LEN..copy.len() - TAG_LEN];
        if datagram.from != address(self.host) || !header.epoch.is_application() || inner::is_message(body) {
            return;
        }
        let (mut packet, mut sealed) = (packet_of_udt4(&header, &mut copy), Vec::new());
        change(&mut packet);
        let Some(pieces) = packet.split_first_chunk() else { return };
        inner::enclose(&header, pieces, DataForm::Stream, &mut sealed);
        let end = sealed.len() - TAG_LEN;
        let (head, body) = sealed.split_at_mut(HEADER_LEN);
        let tag = self.keys.local.seal(header.number, head, &mut body[..end - HEADER_LEN]);
        sealed[end..].copy_from_slice(&tag);
        *datagram.bytes = sealed;
    }
}
