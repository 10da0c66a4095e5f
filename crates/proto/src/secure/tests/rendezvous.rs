//! Rendezvous under packet protection: two sides that call each other, and attackers in their names.

use std::cell::RefCell;
use std::rc::Rc;

use farhaul_wire::secure::{ConnectionName, Frame, TAG_LEN, is_protected};

use super::*;
use crate::error::{ConnectError, PeerIncompatible};
use crate::event::ConnectionId;
use crate::udt::ConnectOptions;

const RENDEZVOUS: ConnectOptions = ConnectOptions { mode: Mode::Stream, rendezvous: true };

/// Two ends of which none listens.
fn pair() -> Pair {
    pair_of(Null::new(1), Null::new(2))
}

fn pair_of(left: Null, right: Null) -> Pair {
    let mut pair = Pair::of(left, right);
    pair.ends[1].stop_listening();
    pair
}

fn meet(pair: &mut Pair, side: usize) -> ConnectionId {
    pair.ends[side].connect_with(pair.now, address(1 - side), RENDEZVOUS).unwrap()
}

fn both_connected(pair: &Pair, ids: [ConnectionId; 2]) -> bool {
    (0..2).all(|side| pair.events[side].contains(&Event::Connected(ids[side])))
}

/// Both call now. Returns the connection at both sides.
fn connect(pair: &mut Pair) -> [ConnectionId; 2] {
    let ids = [0, 1].map(|side| meet(pair, side));
    pair.run_until(30, |pair| both_connected(pair, ids));
    ids
}

fn run_for(pair: &mut Pair, time: Duration) {
    let end = pair.now + time;
    while pair.now < end && pair.step() {}
}

fn client_id(datagram: &[u8]) -> Option<Vec<u8>> {
    let header = Header::decode(datagram).ok().filter(|header| header.epoch == Epoch::INITIAL)?;
    let (initial, _) = InitialHeader::decode(datagram).ok()?;
    header.to.is_none().then(|| initial.client_id.to_vec())
}

/// The first packets of an end that meets, or calls, somebody. Their keys follow from what everybody sees.
fn calls(seed: u8, options: ConnectOptions) -> Vec<Vec<u8>> {
    let mut end = end(seed, Null::new(seed.into()));
    end.connect_with(Instant::from_nanos(1), address(1), options).unwrap();
    let (mut batch, mut all) = (Batch::new(), Vec::new());
    while let Some(transmit) = end.poll_transmit(Instant::from_nanos(1), &mut batch) {
        all.extend(transmit.datagrams().map(<[u8]>::to_vec));
    }
    all
}

/// Calls of strangers whose ids are larger, or smaller, than those of both ends.
fn forged(larger: bool) -> Vec<Vec<Vec<u8>>> {
    let own = [1, 2].map(|seed| client_id(&calls(seed, RENDEZVOUS)[0]).unwrap());
    let fits = |call: &Vec<Vec<u8>>| {
        let id = client_id(&call[0]).unwrap();
        own.iter().all(|own| (id > *own) == larger && id != *own)
    };
    (3..=250).map(|seed| calls(seed, RENDEZVOUS)).filter(fits).take(20).collect()
}

fn arrive(pair: &mut Pair, to: usize, datagram: &[u8]) {
    let (now, mut datagram) = (pair.now, datagram.to_vec());
    let len = datagram.len();
    pair.ends[to].handle_datagrams(now, now, address(1 - to), &mut datagram, len);
}

#[test]
fn two_sides_that_call_each_other_have_one_connection_in_two_delays_and_three() {
    let mut pair = pair();
    let began = pair.now;
    pair.fate = Box::new(|_, datagram| {
        assert!(is_protected(datagram));
        1
    });
    let ids = connect(&mut pair);
    assert_eq!(pair.news - began, DELAY * 3);
    assert_eq!([0, 1].map(|side| pair.ends[side].connections()), [1, 1]);
    assert_eq!([0, 1].map(|side| pair.ends[side].is_plain(ids[side])), [false, false]);
    let data = content(300_000);
    assert!(pair.transfer(ids, &data) == data);
    let rtt = pair.ends[0].stats(pair.now, ids[0]).unwrap().rtt;
    assert!(rtt < DELAY * 3, "{rtt:?}");
    assert_eq!([0, 1].map(|side| pair.ends[side].invalid_datagrams()), [0, 0]);
}

#[test]
fn a_side_that_comes_late_is_met_at_once() {
    for late in 0..2 {
        let mut pair = pair();
        let early = meet(&mut pair, 1 - late);
        run_for(&mut pair, Duration::from_secs(12));
        // In the middle between two repetitions of its call.
        let before = pair.sent[1 - late].len();
        while pair.sent[1 - late].len() == before {
            pair.step();
        }
        pair.now += Duration::from_millis(300);
        let began = pair.now;
        let other = meet(&mut pair, late);
        let ids = if late == 0 { [other, early] } else { [early, other] };
        pair.run_until(5, |pair| both_connected(pair, ids));
        assert!(pair.news - began <= DELAY * 5, "{:?}", pair.news - began);
    }
}

#[test]
fn a_rendezvous_without_a_peer_ends_after_its_time() {
    let mut pair = pair();
    let id = meet(&mut pair, 0);
    let late = Event::Closed(id, ConnectionLost::ConnectTimeout(Duration::from_secs(30)));
    pair.run_until(40, |pair| pair.events[0].contains(&late));
    assert!(pair.sent[0].len() < 100, "{} packets for nobody", pair.sent[0].len());
}

#[test]
fn an_address_has_one_rendezvous_at_a_time() {
    let mut pair = pair();
    connect_twice(&mut pair);
    let now = pair.now;
    assert!(pair.ends[0].connect_with(now, address(1), RENDEZVOUS).is_ok(), "the others are established");
    assert_eq!(pair.ends[0].connect_with(now, address(1), RENDEZVOUS), Err(ConnectError::RendezvousUnderWay));
}

fn connect_twice(pair: &mut Pair) {
    connect(pair);
    let ids = [0, 1].map(|side| meet(pair, side));
    pair.run_until(5, |pair| both_connected(pair, ids));
}

#[test]
fn both_sides_hear_that_one_does_not_know_the_key_of_the_other() {
    let mut pair = pair_of(Null::new(1).that_admits_nobody(), Null::new(2).that_admits_nobody());
    let ids = [0, 1].map(|side| meet(&mut pair, side));
    let end = |events: &[Event], id| {
        events.iter().find_map(|event| match event {
            Event::Closed(of, ConnectionLost::Insecure(fault)) if *of == id => Some(*fault),
            _ => None,
        })
    };
    pair.run_until(5, |pair| (0..2).all(|side| end(&pair.events[side], ids[side]).is_some()));
    let mut faults = [0, 1].map(|side| end(&pair.events[side], ids[side]).unwrap());
    faults.sort_by_key(|fault| *fault == SecurityFault::NotAdmitted);
    assert_eq!(faults, [SecurityFault::UnknownKey, SecurityFault::NotAdmitted]);
}

// ---- attackers who know both addresses, and read nothing ----

/// Larger calls in the names of both sides, all the time, from before the first call on.
#[test]
fn a8_forged_calls_with_larger_ids_cost_a_round_trip_at_most() {
    let forged = forged(true);
    assert!(forged.len() >= 10);
    let mut pair = pair();
    let ids = [0, 1].map(|side| meet(&mut pair, side));
    let began = pair.now;
    let mut turn = 0;
    pair.run_until(10, |pair| {
        let call = &forged[turn % forged.len()];
        turn += 1;
        for to in 0..2 {
            call.iter().for_each(|datagram| arrive(pair, to, datagram));
        }
        both_connected(pair, ids)
    });
    assert!(pair.news - began <= DELAY * 5, "{:?}", pair.news - began);
    let data = content(100_000);
    assert!(pair.transfer(ids, &data) == data);
    assert_eq!([0, 1].map(|side| pair.ends[side].connections()), [1, 1]);
}

#[test]
fn a8_forged_calls_with_smaller_ids_change_nothing_and_have_bounded_answers() {
    let forged = forged(false);
    assert!(forged.len() >= 10);
    let mut pair = pair();
    meet(&mut pair, 0);
    while pair.now < Instant::ZERO + Duration::from_secs(5) {
        forged.iter().for_each(|call| arrive(&mut pair, 0, &call[0]));
        pair.step();
    }
    // A call has two datagrams, and leaves five times a second at most.
    let most = 2 * ((pair.now - Instant::ZERO).as_millis() / 200 + 1);
    assert!(pair.sent[0].len() as u128 <= most, "{} datagrams until {}", pair.sent[0].len(), pair.now);
    let began = pair.now;
    meet(&mut pair, 1);
    pair.run_until(5, |pair| pair.events[1].iter().any(|event| matches!(event, Event::Connected(_))));
    assert!(pair.news - began <= DELAY * 5);
}

/// As at a listener, most of a flood is dropped before any cryptography. The peer gets through between two of its packets.
#[test]
fn a6_a_flood_of_forged_calls_has_bounded_answers_and_the_peer_is_met() {
    let forged = forged(true);
    let mut pair = pair();
    let early = meet(&mut pair, 0);
    run_for(&mut pair, Duration::from_millis(1));
    let (mut batch, mut answers) = (Batch::new(), 0);
    for round in 0..5_000 {
        arrive(&mut pair, 0, &forged[round % forged.len()][0]);
        while let Some(transmit) = pair.ends[0].poll_transmit(pair.now, &mut batch) {
            answers += transmit.datagrams().count();
        }
    }
    assert!((900..1_100).contains(&answers), "{answers} answers to 5000 calls at once");
    let late = meet(&mut pair, 1);
    pair.run_until(10, |pair| both_connected(pair, [early, late]));
}

/// The forged call has the only place. The bytes that it draws from this side are bounded.
#[test]
fn a11_a_forged_call_draws_no_more_than_three_times_its_bytes() {
    let call = &forged(true)[0];
    let mut pair = pair();
    let mut other = self::pair();
    for one in [&mut pair, &mut other] {
        meet(one, 0);
        run_for(one, Duration::from_millis(1));
    }
    call.iter().for_each(|datagram| arrive(&mut pair, 0, datagram));
    let came: usize = call.iter().map(Vec::len).sum();
    for one in [&mut pair, &mut other] {
        run_for(one, Duration::from_secs(20));
    }
    let [with, without] = [&pair, &other].map(|pair| pair.sent[0].iter().sum::<usize>());
    assert!(with > without && with - without <= 3 * came, "{with} and {without}, {came} came");
}

#[test]
fn a_peer_that_must_prove_its_address_meets_over_a_lossy_path_too() {
    let forged = forged(true);
    let mut connected = 0;
    for seed in 0..50 {
        let mut pair = pair();
        let mut rng = Rng::new(seed);
        pair.fate = Box::new(move |_, _| u32::from(rng.below(100) >= 30));
        let ids = [0, 1].map(|side| meet(&mut pair, side));
        for to in 0..2 {
            forged[0].iter().for_each(|datagram| arrive(&mut pair, to, datagram));
        }
        let end = pair.now + Duration::from_secs(30);
        while pair.now < end && pair.step() && !both_connected(&pair, ids) {}
        connected += u32::from(both_connected(&pair, ids));
    }
    assert_eq!(connected, 50);
}

// ---- attackers on the path ----

/// Every datagram of a side comes back to it from the address of its peer.
#[test]
fn a8_a_side_never_meets_its_own_reflection() {
    let mut pair = pair();
    let id = meet(&mut pair, 0);
    let echo = Rc::new(RefCell::new(Vec::new()));
    let tap = Rc::clone(&echo);
    pair.fate = Box::new(move |_, datagram| {
        tap.borrow_mut().push(datagram.clone());
        0
    });
    let late = Event::Closed(id, ConnectionLost::ConnectTimeout(Duration::from_secs(30)));
    pair.run_until(40, |pair| {
        let back: Vec<Vec<u8>> = echo.borrow_mut().drain(..).collect();
        back.iter().for_each(|datagram| arrive(pair, 0, datagram));
        pair.events[0].contains(&late)
    });
    assert!(pair.sent[0].len() < 100, "it answers itself: {} datagrams", pair.sent[0].len());
}

/// The frames of an Initial packet under another id, as the packet of `side`.
fn renamed(datagram: &[u8], id: &[u8], side: Side, (to, number): (ConnectionName, u64)) -> Vec<u8> {
    let (initial, head_len) = InitialHeader::decode(datagram).unwrap();
    let header = Header::decode(datagram).unwrap();
    let other = if side == Side::Client { Side::Server } else { Side::Client };
    let mut body = datagram[head_len..].to_vec();
    assert!(Null::new(9).initial(initial.client_id, other).remote.open(
        header.number,
        &datagram[..head_len],
        &mut body
    ));
    body.truncate(body.len() - TAG_LEN);
    let mut out = Header { number, to, ..header }.bytes().to_vec();
    InitialHeader { client_id: id, ..initial }.encode(&mut out);
    let head = out.len();
    out.extend_from_slice(&body);
    let (start, frames) = out.split_at_mut(head);
    let tag = Null::new(9).initial(id, side).local.seal(number, start, frames);
    out.extend_from_slice(&tag);
    out
}

/// The keys of Initial packets are public, so an attacker can send a side its own call under a larger id. Without the id in the
/// authenticated transport parameters, the side would then speak TLS with itself, and trust its own key.
#[test]
fn a8_a_side_does_not_answer_its_own_call_under_another_name() {
    let mut pair = pair();
    let id = meet(&mut pair, 0);
    let other = [0xFF; 20];
    let echo = Rc::new(RefCell::new(Vec::new()));
    let tap = Rc::clone(&echo);
    pair.fate = Box::new(move |_, datagram| {
        tap.borrow_mut().push(datagram.clone());
        0
    });
    let (mut own, mut answers) = (None, 0);
    let late = Event::Closed(id, ConnectionLost::ConnectTimeout(Duration::from_secs(30)));
    pair.run_until(40, |pair| {
        let sent: Vec<Vec<u8>> = echo.borrow_mut().drain(..).collect();
        for datagram in &sent {
            let header = Header::decode(datagram).unwrap();
            match client_id(datagram) {
                Some(id) => {
                    own = Some(id);
                    let back = renamed(datagram, &other, Side::Client, (ConnectionName::NONE, header.number));
                    arrive(pair, 0, &back);
                }
                None if header.epoch == Epoch::INITIAL => {
                    answers += 1;
                    let own = own.as_ref().unwrap();
                    let back = renamed(datagram, own, Side::Server, (header.to, header.number));
                    arrive(pair, 0, &back);
                }
                None => {
                    answers += 1;
                    arrive(pair, 0, datagram);
                }
            }
        }
        pair.events[0].contains(&late)
    });
    assert_eq!(answers, 0, "a call that names another one has no answer");
}

/// Two calls with one id are not told from a reflection. The ids have 160 random bits, so this never happens by chance.
#[test]
fn two_calls_with_one_id_do_not_meet() {
    let end = || end(7, Null::new(7));
    let mut pair = Pair::between([end(), end()]);
    pair.ends[1].stop_listening();
    let ids = [0, 1].map(|side| meet(&mut pair, side));
    run_for(&mut pair, Duration::from_secs(40));
    assert!(!(0..2).any(|side| pair.events[side].contains(&Event::Connected(ids[side]))));
}

/// A call of an earlier attempt, which somebody has kept.
#[test]
fn a8_old_calls_of_the_peer_cost_a_round_trip_at_most() {
    let mut pair = pair();
    let old = calls(2, RENDEZVOUS);
    // The ends draw other ids from now on.
    let first = [0, 1].map(|side| meet(&mut pair, side));
    let now = pair.now;
    pair.ends.iter_mut().zip(first).for_each(|(end, id)| end.release(now, id));
    run_for(&mut pair, Duration::from_secs(1));
    let ids = [0, 1].map(|side| meet(&mut pair, side));
    let began = pair.now;
    pair.run_until(10, |pair| {
        old.iter().for_each(|datagram| arrive(pair, 0, datagram));
        both_connected(pair, ids)
    });
    assert!(pair.news - began <= DELAY * 5, "{:?}", pair.news - began);
}

// ---- one side alone in a rendezvous ----

#[test]
fn a_rendezvous_and_a_listener_have_no_connection() {
    let mut pair = pair();
    pair.ends[1].listen(Mode::Stream).unwrap();
    let id = meet(&mut pair, 0);
    let late = Event::Closed(id, ConnectionLost::ConnectTimeout(Duration::from_secs(30)));
    pair.run_until(40, |pair| pair.events[0].contains(&late));
    assert!(pair.events[1].is_empty(), "{:?}", pair.events[1]);
}

/// Whichever of the two ids is the larger one.
#[test]
fn a_call_without_rendezvous_does_not_disturb_one() {
    for seed in 10..30 {
        let mut pair = Pair::between([end(1, Null::new(1)), end(seed, Null::new(seed.into()))]);
        pair.ends[1].stop_listening();
        let early = meet(&mut pair, 0);
        let call = pair.ends[1].connect(pair.now, address(0)).unwrap();
        run_for(&mut pair, Duration::from_secs(12));
        assert!(!pair.events[1].contains(&Event::Connected(call)), "{seed}");
        assert!(pair.events[0].is_empty(), "{seed}: {:?}", pair.events[0]);
        let late = meet(&mut pair, 1);
        pair.run_until(10, |pair| both_connected(pair, [early, late]));
    }
}

/// A side that listens beside a rendezvous does not answer a late repetition of the peer's call.
#[test]
fn a_listener_beside_a_rendezvous_leaves_it_alone() {
    for seed in 0..30 {
        let mut pair = pair();
        for side in 0..2 {
            pair.ends[side].listen(Mode::Stream).unwrap();
        }
        let mut rng = Rng::new(seed);
        pair.fate = Box::new(move |_, _| [0, 1, 1, 2][rng.below(4) as usize]);
        let ids = connect(&mut pair);
        run_for(&mut pair, Duration::from_secs(2));
        for (events, met) in pair.events.iter().zip(ids) {
            let is_other = |event: &&Event| !matches!(event, Event::Connected(id) | Event::Readable(id) if *id == met);
            assert_eq!(events.iter().find(is_other), None, "seed {seed}");
        }
    }
}

#[test]
fn a_server_that_claims_a_call_of_its_own_is_no_listener() {
    let mut pair = pair();
    // The other side meets this one, which calls without knowing.
    let call = pair.ends[0].connect(pair.now, address(1)).unwrap();
    let met = meet(&mut pair, 1);
    run_for(&mut pair, Duration::from_secs(12));
    assert!(!pair.events[1].contains(&Event::Connected(met)));
    let end = pair.events[0].iter().find_map(|event| match event {
        Event::Closed(id, reason) if *id == call => Some(*reason),
        _ => None,
    });
    let expected = [
        ConnectionLost::ConnectTimeout(Config::default().connect_timeout),
        ConnectionLost::PeerIncompatible(PeerIncompatible::Rendezvous),
    ];
    assert!(end.is_some_and(|end| expected.contains(&end)), "{end:?}");
}

/// The word of the attacker: the keys of Initial packets are known to whoever sees one.
#[test]
fn a_forged_end_of_a_forged_call_leaves_the_rendezvous_alone() {
    let call = &forged(true)[0];
    let mut pair = pair();
    let early = meet(&mut pair, 0);
    call.iter().for_each(|datagram| arrive(&mut pair, 0, datagram));
    let (initial, _) = InitialHeader::decode(&call[0]).unwrap();
    for frame in [Frame::Close(CloseCode::Unauthorised, "no"), Frame::Crypto { offset: 9_999_999, bytes: b"long" }] {
        let header = Header { epoch: Epoch::INITIAL, number: 77, to: ConnectionName::NONE };
        let mut out = header.bytes().to_vec();
        initial.encode(&mut out);
        let head = out.len();
        frame.encode(&mut out);
        out.resize(MIN_INITIAL - TAG_LEN, 0);
        let (start, frames) = out.split_at_mut(head);
        let tag = Null::new(9).initial(initial.client_id, Side::Client).local.seal(77, start, frames);
        out.extend_from_slice(&tag);
        arrive(&mut pair, 0, &out);
    }
    let late = meet(&mut pair, 1);
    pair.run_until(5, |pair| both_connected(pair, [early, late]));
}
