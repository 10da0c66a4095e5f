//! Two secure endpoints.

mod attack;
mod close_cache;
mod half_close;
pub(super) mod pair;
mod plain_callers;
mod rendezvous;

use farhaul_units::{Duration, Instant, Rng};
use farhaul_wire::secure::{
    CloseCode, Epoch, HEADER_LEN, Header, InitialHeader, MIN_INITIAL, STREAM_OVERHEAD, VERSION,
};

use core::net::SocketAddr;

use self::pair::{DELAY, Pair, address};
use super::*;
use crate::error::{ConnectionLost, SecurityFault};
use crate::{Batch, Config, Entropy, Event, Mode, Read, Streams, Transport};

fn end(seed: u8, provider: Null) -> Endpoint {
    endpoint(Config::default(), Entropy { cookie_key: [seed; 16], seed: u64::from(seed) }, Box::new(provider))
}

impl Pair {
    fn new() -> Self {
        Self::of(Null::new(1), Null::new(2))
    }

    fn of(client: Null, server: Null) -> Self {
        Self::between([end(1, client), end(2, server)])
    }
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

#[test]
fn a_stream_arrives_and_ends_under_packet_protection() {
    let mut pair = Pair::new();
    pair.fate = Box::new(|_, datagram| {
        assert!(farhaul_wire::secure::is_protected(datagram) && datagram.len() <= 1472);
        1
    });
    let ids = pair.connect();
    let data = content(3_000_000);
    assert!(pair.transfer(ids, &data) == data);
    assert!(pair.sent[0].contains(&1472), "full packets fill the path: {:?}", pair.sent[0].iter().max());
    let now = pair.now;
    pair.ends[0].finish(now, ids[0]);
    pair.run_until(5, |pair| pair.ends[1].read(pair.now, ids[1], &mut [0; 10]) == Ok(Read::End));
    assert_eq!([0, 1].map(|end| pair.ends[end].invalid_datagrams()), [0, 0]);
    let stats = pair.ends[0].stats(pair.now, ids[0]).unwrap();
    assert_eq!((stats.totals.packets_retransmitted, stats.totals.bytes_acked), (0, 3_000_000));
    assert_eq!(stats.payload_size as usize, 1472 - 16 - STREAM_OVERHEAD);
}

#[test]
fn data_leaves_after_one_round_trip() {
    let mut pair = Pair::new();
    let caller = pair.call();
    let began = pair.now;
    pair.run_until(5, |pair| pair.events[0].contains(&Event::Connected(caller)));
    assert_eq!(pair.news - began, DELAY * 2);
    pair.run_until(5, |pair| pair.events[1].len() == 1);
    assert_eq!(pair.news - began, DELAY * 3, "the server knows its client");
}

#[test]
fn both_sides_forget_the_handshake() {
    let mut pair = Pair::new();
    let ids = pair.connect();
    let end = pair.now + Duration::from_secs(12);
    while pair.now < end && pair.step() {}
    let handshakes = pair.sent[0].iter().filter(|&&len| len > 200).count();
    assert_eq!(handshakes, 3, "two Initials and one Handshake: {:?}", pair.sent[0]);
    assert!(pair.ends[1].stats(pair.now, ids[1]).is_some());
}

#[test]
fn of_fifty_handshakes_over_thirty_percent_of_loss_and_damage_49_succeed() {
    let mut connected = 0;
    for seed in 0..50 {
        let mut pair = Pair::new();
        let mut rng = Rng::new(seed);
        pair.fate = Box::new(move |_, datagram| {
            let luck = rng.next_u64() % 100;
            if (15..30).contains(&luck) {
                let at = rng.next_u64() as usize % datagram.len();
                datagram[at] ^= 1 << (rng.next_u64() % 8);
            }
            u32::from(luck >= 15)
        });
        let caller = pair.call();
        let end = pair.now + Duration::from_secs(10);
        while pair.now < end && pair.step() {
            if pair.events[0].contains(&Event::Connected(caller)) && !pair.events[1].is_empty() {
                connected += 1;
                break;
            }
        }
    }
    assert!(connected >= 49, "{connected} of 50");
}

#[test]
fn a_stream_survives_loss_damage_and_repetition() {
    let mut pair = Pair::new();
    let ids = pair.connect();
    let mut rng = Rng::new(7);
    pair.fate = Box::new(move |_, datagram| {
        match rng.next_u64() % 100 {
            0..=2 => return 0,
            3..=5 => return 2,
            6..=8 => {
                let at = rng.next_u64() as usize % datagram.len();
                datagram[at] ^= 0x10;
            }
            _ => {}
        }
        1
    });
    let data = content(2_000_000);
    assert!(pair.transfer(ids, &data) == data);
}

#[test]
fn a_repeated_packet_never_reaches_the_protocol_inside() {
    let mut pair = Pair::new();
    let ids = pair.connect();
    pair.fate = Box::new(|_, _| 2);
    let data = content(500_000);
    assert!(pair.transfer(ids, &data) == data);
    let totals = pair.ends[1].stats(pair.now, ids[1]).unwrap().totals;
    assert_eq!(totals.packets_duplicate, 0);
}

#[test]
fn keys_change_before_they_wear_out_and_the_stream_goes_on() {
    let limited = |seed| Null::new(seed).with_confidentiality_limit(512);
    let mut pair = Pair::of(limited(1), limited(2));
    let ids = pair.connect();
    let data = content(3_000_000);
    let epochs = std::sync::Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let seen = std::sync::Arc::clone(&epochs);
    pair.fate = Box::new(move |_, datagram| {
        seen.lock().unwrap().insert(Header::decode(datagram).unwrap().epoch);
        1
    });
    assert!(pair.transfer(ids, &data) == data);
    assert!(epochs.lock().unwrap().len() >= 6, "{:?}", epochs.lock().unwrap());
    assert!(!pair.events[0].iter().any(|event| matches!(event, Event::Closed(..))));
}

/// The peer sees nothing of the new keys, so it cannot follow to them.
#[test]
fn a_side_whose_peer_does_not_follow_to_new_keys_stops_at_the_limit_and_then_ends() {
    let limited = |seed| Null::new(seed).with_confidentiality_limit(512);
    let mut pair = Pair::of(limited(1), limited(2));
    let [caller, _] = pair.connect();
    pair.fate = Box::new(|_, datagram| {
        u32::from(Header::decode(datagram).is_ok_and(|header| header.epoch == Epoch::FIRST_APPLICATION))
    });
    let data = content(100_000);
    let mut sealed = 0;
    let end = pair.now + Duration::from_secs(30);
    let lost = Event::Closed(caller, ConnectionLost::Insecure(SecurityFault::KeyLimit));
    while !pair.events[0].contains(&lost) {
        let _ = pair.ends[0].write(pair.now, caller, &data);
        let before = pair.sent[0].len();
        assert!(pair.step() && pair.now < end, "{:?}", pair.events[0]);
        sealed += pair.sent[0].len() - before;
    }
    assert!(sealed <= 1_024, "{sealed} packets with two keys of 512");
}

/// The server follows, and the client never hears of it.
#[test]
fn a_peer_is_told_of_keys_that_are_worn_out() {
    let limited = |seed| Null::new(seed).with_confidentiality_limit(512);
    let mut pair = Pair::of(limited(1), limited(2));
    let [caller, listener] = pair.connect();
    pair.fate = Box::new(|end, datagram| {
        u32::from(end == 0 || Header::decode(datagram).is_ok_and(|header| header.epoch == Epoch::FIRST_APPLICATION))
    });
    let data = content(100_000);
    let lost = Event::Closed(listener, ConnectionLost::Insecure(SecurityFault::KeyLimit));
    pair.run_until(30, |pair| {
        let _ = pair.ends[0].write(pair.now, caller, &data);
        pair.events[1].contains(&lost)
    });
}

#[test]
fn a_client_that_is_not_admitted_is_told() {
    let mut pair = Pair::of(Null::new(1), Null::new(2).that_admits_nobody());
    let caller = pair.call();
    let lost = Event::Closed(caller, ConnectionLost::Insecure(SecurityFault::NotAdmitted));
    pair.run_until(5, |pair| pair.events[0].contains(&lost));
    assert!(pair.events[1].is_empty(), "its application never knew: {:?}", pair.events[1]);
    let end = pair.now + Duration::from_secs(12);
    while pair.now < end && pair.step() {}
    assert_eq!(pair.ends[1].connections(), 0);
}

#[test]
fn a_stream_without_data_ends_well_only_if_the_server_admits_its_client() {
    let mut pair = Pair::of(Null::new(1), Null::new(2).that_admits_nobody());
    let caller = pair.call();
    pair.run_until(5, |pair| pair.events[0].contains(&Event::Connected(caller)));
    let now = pair.now;
    pair.ends[0].finish(now, caller);
    pair.run_until(5, |pair| pair.events[0].iter().any(|event| matches!(event, Event::Closed(..))));
    assert!(!pair.events[0].contains(&Event::Finished(caller)));
}

#[test]
fn a_client_that_the_server_never_confirms_is_lost() {
    let mut pair = Pair::new();
    pair.fate = Box::new(|end, datagram| {
        let application = Header::decode(datagram).is_ok_and(|header| header.epoch.is_application());
        u32::from(end == 0 || !application)
    });
    let caller = pair.call();
    let lost = Event::Closed(caller, ConnectionLost::ConnectTimeout(Duration::from_secs(10)));
    pair.run_until(15, |pair| pair.events[0].contains(&lost));
}

#[test]
fn nobody_who_listens_is_a_time_out() {
    let mut pair = Pair::new();
    pair.ends[1].stop_listening();
    assert!(matches!(pair.failure(20), ConnectionLost::ConnectTimeout(_)));
}

/// A listener of a later version answers in that of the caller, so the caller can read it.
#[test]
fn a_side_of_another_version_is_named() {
    let mut pair = Pair::new();
    pair.fate = Box::new(|end, datagram| {
        if end == 0 {
            // The version stands behind the header. The listener sees it before it opens the body.
            datagram[HEADER_LEN + 3] = 9;
        } else {
            let (initial, _) = InitialHeader::decode(datagram).unwrap();
            assert_eq!(initial.version, 9);
            let client_id = initial.client_id.to_vec();
            let asked = InitialHeader {
                version: VERSION,
                from: Header::decode(datagram).unwrap().to,
                client_id: &client_id,
                token: &[],
            };
            let mut answer = Vec::new();
            let keys = Null::new(2).initial(&client_id, Side::Server);
            stateless_replies::close(&asked, &keys, (CloseCode::Version, "another version"), &mut answer);
            assert!(answer.len() <= datagram.len());
            *datagram = answer;
        }
        1
    });
    assert_eq!(pair.failure(20), ConnectionLost::Insecure(SecurityFault::Version));
    assert_eq!(pair.ends[1].connections(), 0);
}
