use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use farhaul::security::{AcceptAll, KeyPair, Pinned, Security};
use farhaul::{ConnectionLost, Endpoint, Error, Rate, Stream};
use farhaul_session::{BLOCK_HEADER, Bonding, Join, JoinAnswer, MAX_BLOCK, Record, Token, join_accepted, refusal_in};
use farhaul_udp::Clock;

use crate::flow::Flow;
use crate::join::join_over;
use crate::{BondedStream, Registry};

const TOKEN: Token = Token([9; 16]);
/// Long for a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(20);

/// Two ends of a stream on this machine, and what further flows need.
struct Pair {
    here: BondedStream,
    there: BondedStream,
    to: SocketAddr,
    /// The keys of the listener and of the caller, where the connections are encrypted.
    keys: Option<(KeyPair, KeyPair)>,
    /// Further connections of the listener join by it.
    registry: Registry,
}

impl Pair {
    /// A stream that so many flows may join, and none has.
    fn offering(flows: u8, is_encrypted: bool) -> Self {
        let keys = is_encrypted.then(|| (KeyPair::generate().unwrap(), KeyPair::generate().unwrap()));
        let listener = match &keys {
            // Another key is admitted as well, as on a server of several clients.
            Some((own, _)) => Endpoint::secure("127.0.0.1:0", Security::new(own.clone(), AcceptAll)).unwrap(),
            None => Endpoint::plain("127.0.0.1:0").unwrap(),
        };
        let listener = listener.listen().unwrap();
        let to = listener.local_addr();
        let caller = keys.as_ref().map(|(_, caller)| caller);
        let first = connect(to, keys.as_ref().map(|(own, _)| own), caller);
        // A connection is accepted once its peer has said something, at the latest.
        let (accepted, _) = listener.accept().unwrap();
        let (here, there) = (BondedStream::open(first, 0), BondedStream::open(accepted, 0));
        let registry = Registry::default();
        assert!(registry.offer(&there, Bonding { flows, token: TOKEN }));
        registry.clone().serve(listener, Clock::start()).unwrap();
        [&here, &there].iter().for_each(|end| end.set_read_timeout(Some(PATIENCE)));
        Self { here, there, to, keys, registry }
    }

    /// A stream over so many flows, of which one is the first connection alone.
    fn over(flows: u8, is_encrypted: bool) -> Self {
        let pair = Self::offering(flows, is_encrypted);
        if flows > 1 {
            (1..=flows).for_each(|index| pair.join(index).unwrap());
            pair.wait_for_flows(usize::from(flows));
        }
        pair
    }

    fn connection(&self) -> Stream {
        let keys = self.keys.as_ref();
        connect(self.to, keys.map(|(own, _)| own), keys.map(|(_, caller)| caller))
    }

    fn join(&self, index: u8) -> Result<(), String> {
        join_over(self.connection(), &Arc::downgrade(self.here.shared()), Join { token: TOKEN, index })
    }

    /// Waits until the listener has so many flows.
    fn wait_for_flows(&self, count: usize) {
        wait_until(|| self.there.flows() == count, "the listener has all flows");
    }

    /// Waits until the peer has taken so many flows of the caller, so that they carry what it sends.
    fn wait_for_flows_here(&self, count: usize) {
        let is_confirmed = |flow: &Arc<Flow>| flow.is_confirmed.load(Ordering::Acquire);
        let confirmed = || self.here.shared().joined().iter().filter(|flow| is_confirmed(flow)).count();
        wait_until(|| confirmed() == count, "the peer has taken all flows");
    }
}

fn wait_until(is_true: impl Fn() -> bool, what: &str) {
    let waited = (0..2_000).find(|_| is_true() || (thread::park_timeout(Duration::from_millis(10)), false).1);
    assert!(waited.is_some(), "{what}");
}

fn connect(to: SocketAddr, server: Option<&KeyPair>, caller: Option<&KeyPair>) -> Stream {
    match server.zip(caller) {
        Some((server, caller)) => {
            let trust = Pinned { servers: vec![server.public()], clients: Vec::new() };
            Endpoint::secure("127.0.0.1:0", Security::new(caller.clone(), trust)).unwrap().connect(to).unwrap()
        }
        None => Stream::connect_plain(to).unwrap(),
    }
}

/// Bytes that differ everywhere.
fn data(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .flatten()
    .take(len)
    .collect()
}

fn read_all(stream: BondedStream) -> JoinHandle<(Vec<u8>, Result<(), Error>)> {
    thread::spawn(move || {
        let (mut all, mut block) = (Vec::new(), vec![0; 100_000]);
        loop {
            match stream.recv(&mut block) {
                Ok(0) => return (all, Ok(())),
                Ok(len) => all.extend_from_slice(&block[..len]),
                Err(error) => return (all, Err(error)),
            }
        }
    })
}

#[test]
fn a_stream_arrives_whole_and_in_order_over_any_number_of_flows() {
    for is_encrypted in [false, true] {
        for flows in [1, 2, 4] {
            let pair = Pair::over(flows, is_encrypted);
            let all = data(6_000_000, 1 + u64::from(flows));
            let arrived = read_all(pair.there.clone());
            let answered = read_all(pair.here.clone());
            // Small pieces and large ones, and answers beside them.
            pair.here.send_all(&all[..1000]).unwrap();
            all[1000..50_000].chunks(70).for_each(|piece| pair.here.send_all(piece).unwrap());
            pair.there.send_all(&all[..300_000]).unwrap();
            pair.here.send_all(&all[50_000..]).unwrap();
            pair.here.finish().unwrap();
            let (bytes, result) = arrived.join().unwrap();
            assert!(result.is_ok() && bytes == all, "{flows} flows: {} bytes, {result:?}", bytes.len());
            let (answers, _) = answered.join().unwrap();
            assert!(all[..300_000].starts_with(&answers));
            assert_eq!(pair.here.flows(), usize::from(flows));
        }
    }
}

#[test]
fn each_direction_ends_alone_where_the_connections_can() {
    for flows in [1, 3] {
        let pair = Pair::over(flows, true);
        let (question, answer) = (data(400_000, 5), data(3_000_000, 6));
        let asked = read_all(pair.there.clone());
        pair.here.send_all(&question).unwrap();
        pair.here.finish_sending().unwrap();
        assert!(pair.here.send(b"more").is_err());
        assert_eq!(asked.join().unwrap().0, question);
        let answered = read_all(pair.here.clone());
        pair.there.send_all(&answer).unwrap();
        pair.there.finish_sending().unwrap();
        let (bytes, result) = answered.join().unwrap();
        assert!(result.is_ok() && bytes == answer);
        pair.here.wait_until_closed().unwrap();
        pair.there.wait_until_closed().unwrap();
    }
}

#[test]
fn flows_join_while_data_moves_and_acknowledged_bytes_are_those_of_the_stream() {
    let pair = Pair::offering(3, false);
    let all = data(9_000_000, 3);
    let arrived = read_all(pair.there.clone());
    for (index, part) in (1..).zip(all.chunks(3_000_000)) {
        let (before, after) = part.split_at(1_000_000);
        pair.here.send_all(before).unwrap();
        pair.join(index).unwrap();
        pair.here.send_all(after).unwrap();
    }
    pair.here.finish().unwrap();
    assert_eq!(arrived.join().unwrap().0, all);
    let figures = pair.here.stats().map(|stats| stats.totals.bytes_acked);
    assert!(figures.is_err() || figures.unwrap() == all.len() as u64);
    assert_eq!(pair.here.each_stats().len(), 4);
}

#[test]
fn without_a_byte_the_end_arrives_as_well() {
    for flows in [1, 2] {
        let pair = Pair::over(flows, false);
        let arrived = read_all(pair.there.clone());
        pair.here.finish().unwrap();
        let (bytes, result) = arrived.join().unwrap();
        assert!(bytes.is_empty() && result.is_ok(), "{result:?}");
    }
}

#[test]
fn the_loss_of_one_flow_is_that_of_the_stream_and_never_looks_like_its_end() {
    for is_encrypted in [false, true] {
        let pair = Pair::over(3, is_encrypted);
        let all = data(30_000_000, 4);
        let (sender, bytes) = (pair.here.clone(), all.clone());
        let sent = thread::spawn(move || sender.send_all(&bytes).and_then(|()| sender.finish()));
        let mut block = vec![0; 1_000_000];
        let first = pair.there.recv(&mut block).unwrap();
        pair.there.shared().joined()[1].stream.abort();
        let (rest, result) = read_all(pair.there.clone()).join().unwrap();
        assert!(matches!(result, Err(Error::Lost(_))), "{result:?}");
        assert!(sent.join().unwrap().is_err());
        let arrived = [&block[..first], &rest].concat();
        assert!(arrived.len() < all.len() && all.starts_with(&arrived));
    }
}

#[test]
fn a_stream_that_is_dropped_is_no_stream_that_has_ended() {
    let Pair { here, there, .. } = Pair::over(2, true);
    let arrived = read_all(there);
    here.send_all(b"the beginning").unwrap();
    drop(here);
    let (_, result) = arrived.join().unwrap();
    assert!(matches!(result, Err(Error::Lost(ConnectionLost::Aborted))), "{result:?}");
}

#[test]
fn a_reader_that_pauses_holds_the_sender_back_in_bounded_memory() {
    let pair = Pair::over(2, false);
    pair.here.set_write_timeout(Some(Duration::from_secs(2)));
    let block = data(MAX_BLOCK, 8);
    let (mut sent, most) = (0u64, 400 << 20);
    let why = loop {
        match pair.here.send(&block) {
            Ok(len) => sent += len as u64,
            Err(error) => break error,
        }
        assert!(sent < most, "nobody holds it back");
    };
    assert!(matches!(why, Error::TimedOut(_)), "{why}");
    // It goes on once somebody reads.
    let arrived = read_all(pair.there.clone());
    pair.here.set_write_timeout(None);
    pair.here.finish().unwrap();
    assert_eq!(arrived.join().unwrap().0.len() as u64, sent);
}

#[test]
fn a_cancellation_ends_calls_that_wait() {
    for flows in [1, 2] {
        let pair = Pair::over(flows, false);
        pair.here.set_read_timeout(None);
        let waiting = read_all(pair.here.clone());
        thread::park_timeout(Duration::from_millis(100));
        pair.here.cancel();
        assert!(matches!(waiting.join().unwrap().1, Err(Error::Cancelled)));
        // The last words still leave.
        pair.here.part(b"last words");
        let (bytes, ended) = read_all(pair.there.clone()).join().unwrap();
        assert_eq!(bytes, b"last words", "{flows} {ended:?}");
    }
}

#[test]
fn a_read_has_its_time() {
    for flows in [1, 2] {
        let pair = Pair::over(flows, false);
        pair.here.set_read_timeout(Some(Duration::from_millis(120)));
        let clock = Clock::start();
        let result = pair.here.recv(&mut [0; 10]);
        let took = clock.now() - farhaul_units::Instant::ZERO;
        assert!(matches!(result, Err(Error::TimedOut(_))) && took >= Duration::from_millis(110), "{result:?}");
    }
}

/// What the listener answers to a flow that asks to join.
fn answer(flow: &Stream, join: Join) -> Vec<u8> {
    flow.set_read_timeout(Some(PATIENCE));
    flow.send_all(&join.open_frame()).unwrap();
    let (mut all, mut block) = (Vec::new(), [0; 1000]);
    while let Ok(len @ 1..) = flow.recv(&mut block) {
        all.extend_from_slice(&block[..len]);
        if JoinAnswer::default().handle_received(&all) != Ok((0, false)) {
            break;
        }
    }
    all
}

#[test]
fn only_the_same_peer_joins_with_the_right_token_and_each_flow_once() {
    for is_encrypted in [false, true] {
        let pair = Pair::offering(2, is_encrypted);
        let asks = |flow: &Stream, token, index| {
            let answer = answer(flow, Join { token, index });
            refusal_in(&answer).map(|abort| abort.message)
        };
        let right = pair.connection();
        assert_eq!(asks(&right, TOKEN, 2), None);
        let mut refusals = vec![
            asks(&pair.connection(), Token([8; 16]), 1),
            asks(&pair.connection(), TOKEN, 2),
            asks(&pair.connection(), TOKEN, 0),
            asks(&pair.connection(), TOKEN, 3),
            asks(&pair.connection(), TOKEN, 255),
        ];
        if let Some((server, _)) = &pair.keys {
            let other = KeyPair::generate().unwrap();
            refusals.push(asks(&connect(pair.to, Some(server), Some(&other)), TOKEN, 1));
        }
        let first = refusals[0].clone().expect("a refusal");
        assert!(refusals.iter().all(|refusal| refusal.as_ref() == Some(&first)), "one for all reasons: {refusals:?}");
        // A second stream cannot take the token.
        assert!(!pair.registry.offer(&pair.there, Bonding { flows: 16, token: TOKEN }));
        // The stream has not suffered, and the honest flow may still join.
        pair.join(1).unwrap();
        pair.wait_for_flows(1);
        let arrived = read_all(pair.there.clone());
        pair.here.send_all(b"safe").unwrap();
        pair.here.finish().unwrap();
        assert_eq!(arrived.join().unwrap().0, b"safe");
    }
}

#[test]
fn a_flow_that_never_comes_or_never_gets_ready_delays_nothing() {
    let pair = Pair::offering(4, true);
    let silent = pair.connection();
    let half = pair.connection();
    assert_eq!(refusal_in(&answer(&half, Join { token: TOKEN, index: 4 })), None);
    let arrived = read_all(pair.there.clone());
    pair.here.send_all(b"meanwhile").unwrap();
    pair.here.finish().unwrap();
    assert_eq!(arrived.join().unwrap().0, b"meanwhile");
    assert_eq!(pair.there.flows(), 1);
    drop((silent, half));
}

/// A flow of `here` that a peer has accepted, and has not taken. Returns the peer's end.
fn half_joined(pair: &Pair, index: u8) -> Stream {
    let listener = Endpoint::plain("127.0.0.1:0").unwrap().listen().unwrap();
    let flow = Stream::connect_plain(listener.local_addr()).unwrap();
    let weak = Arc::downgrade(pair.here.shared());
    let joins = thread::spawn(move || join_over(flow, &weak, Join { token: TOKEN, index }));
    let (flow, _) = listener.accept().unwrap();
    flow.set_read_timeout(Some(PATIENCE));
    assert!(flow.recv(&mut [0; 100]).unwrap() > 0);
    flow.send_all(&join_accepted()).unwrap();
    let mut ready = [0; BLOCK_HEADER];
    assert_eq!(flow.recv(&mut ready).unwrap(), BLOCK_HEADER);
    assert_eq!(Record::from_bytes(ready), Ok(Record::Ready));
    assert!(pair.here.shared().is_bonded(), "whoever says that it is ready reads the flow");
    joins.join().unwrap().unwrap();
    flow
}

#[test]
fn a_flow_that_the_peer_has_not_taken_carries_no_byte() {
    let pair = Pair::offering(2, false);
    let half = half_joined(&pair, 1);
    let arrived = read_all(pair.there.clone());
    pair.here.send_all(b"on the first connection").unwrap();
    pair.here.finish().unwrap();
    assert_eq!(arrived.join().unwrap().0, b"on the first connection");
    drop(half);
}

#[test]
fn a_stream_whose_only_flow_is_lost_before_it_carried_anything_ends_with_an_error() {
    let pair = Pair::offering(2, false);
    let half = half_joined(&pair, 1);
    half.send_all(&Record::Ready.to_bytes()).unwrap();
    half.finish().unwrap();
    pair.here.set_write_timeout(Some(PATIENCE));
    let block = data(MAX_BLOCK, 3);
    let failed = (0..1000).find_map(|_| pair.here.send(&block).err());
    assert!(matches!(failed, Some(Error::Lost(_))), "{failed:?}");
}

/// Sends until the peer, where nobody reads, has no more room. The first connection keeps a part of what it is given then, for as
/// long as a low cap makes that last. Returns the bytes given.
fn fill(stream: &BondedStream) -> usize {
    stream.set_write_timeout(Some(Duration::from_millis(300)));
    let (block, mut sent) = (data(MAX_BLOCK, 1), 0);
    while let Ok(len) = stream.send(&block) {
        sent += len;
    }
    stream.set_write_timeout(None);
    sent
}

#[test]
fn the_first_connection_has_the_cap_until_it_has_sent_everything() {
    let pair = Pair::offering(2, false);
    // Under the first of these, what the first connection keeps takes minutes.
    let [slow, cap, half] = [10_000, 80_000_000, 40_000_000].map(Rate::from_bits_per_second).map(Some);
    let (block, sent) = (data(MAX_BLOCK, 1), fill(&pair.here));
    pair.here.set_max_rate(slow).unwrap();
    (1..=2).for_each(|index| pair.join(index).unwrap());
    pair.wait_for_flows_here(2);
    let shared = pair.here.shared();
    let written = || shared.joined().iter().map(|flow| flow.stats().totals.bytes_written).sum::<u64>();
    for _ in 0..3 {
        pair.here.send_all(&block).unwrap();
    }
    thread::park_timeout(Duration::from_millis(200));
    assert_eq!(pair.here.stats().unwrap().max_rate, slow);
    assert!(shared.has_first_the_cap() && written() < MAX_BLOCK as u64, "{}", written());
    // With a higher cap, the rest leaves, and then the blocks.
    pair.here.set_max_rate(cap).unwrap();
    let arrived = read_all(pair.there.clone());
    pair.here.finish().unwrap();
    assert_eq!(arrived.join().unwrap().0.len(), sent + 3 * MAX_BLOCK);
    assert!(!shared.has_first_the_cap());
    assert!(written() > 3 * MAX_BLOCK as u64, "{}", written());
    assert_eq!(shared.joined().iter().map(|flow| flow.stats().max_rate).collect::<Vec<_>>(), [half, half]);
}

#[test]
fn last_words_of_a_cancelled_stream_do_not_wait_for_the_first_connection() {
    let pair = Pair::offering(1, false);
    fill(&pair.here);
    pair.here.set_max_rate(Some(Rate::from_bits_per_second(1_000_000))).unwrap();
    pair.join(1).unwrap();
    pair.wait_for_flows_here(1);
    let shared = pair.here.shared();
    let written = || shared.joined()[0].stats().totals.bytes_written;
    let (before, words) = (written(), [b'x'; 1000]);
    pair.here.cancel();
    pair.here.part(&words);
    assert!(written() > before + words.len() as u64, "{} of {} bytes", written() - before, words.len());
}

#[test]
fn a_peer_whose_blocks_make_no_stream_loses_it() {
    let block = |offset: u64, bytes: &[u8]| [&Record::Block { offset, len: bytes.len() }.to_bytes(), bytes].concat();
    let total = |total| Record::Total { total, flows: 1 }.to_bytes().to_vec();
    for said in [
        [block(0, b"abc"), block(2, b"d")].concat(),
        [block(5, b"abc"), block(5, b"abc")].concat(),
        [total(4), total(5)].concat(),
        [block(0, b"abc"), total(2)].concat(),
        [total(2), block(0, b"abc")].concat(),
        vec![0; 100],
        // It closes without the end of the stream, or before the end of a block.
        block(0, b"abc"),
        block(0, b"abc")[..14].to_vec(),
    ] {
        let pair = Pair::offering(1, false);
        let flow = pair.connection();
        assert_eq!(refusal_in(&answer(&flow, Join { token: TOKEN, index: 1 })), None);
        flow.send_all(&[&Record::Ready.to_bytes()[..], &said].concat()).unwrap();
        let arrived = read_all(pair.there.clone());
        pair.wait_for_flows(1);
        let closing = thread::spawn(move || flow.finish());
        let (_, result) = arrived.join().unwrap();
        assert!(matches!(result, Err(Error::Lost(_))), "{said:?}: {result:?}");
        let _ = closing.join();
    }
}

#[test]
fn a_caller_that_waits_for_a_moment_only_does_not_end_a_stream_of_flows() {
    let pair = Pair::offering(1, false);
    let flow = pair.connection();
    assert_eq!(refusal_in(&answer(&flow, Join { token: TOKEN, index: 1 })), None);
    flow.send_all(&Record::Ready.to_bytes()).unwrap();
    pair.wait_for_flows(1);
    // A thread reads the first connection now, on which the other side goes on.
    for piece in [b"one", b"two"] {
        pair.there.set_read_timeout(Some(Duration::from_millis(1)));
        pair.here.send_all(piece).unwrap();
        let mut bytes = [0; 3];
        let waited =
            (0..20_000).map(|_| pair.there.recv(&mut bytes)).find(|read| !matches!(read, Err(Error::TimedOut(_))));
        assert_eq!(waited.unwrap().unwrap(), 3);
        assert_eq!(&bytes, piece);
        for _ in 0..20 {
            assert!(matches!(pair.there.recv(&mut bytes), Err(Error::TimedOut(_))));
        }
    }
}
