//! How requests share a connection.

use super::*;
use crate::capabilities::Capabilities;
use crate::failure::FailCode;
use crate::frame_kind::MAX_BLOCK;
use crate::handshake::Accept;
use crate::service::limits::FEW_PUTS;

/// Bytes of the reads below.
const LARGE: usize = 8 << 20;

#[test]
fn a_question_waits_for_the_bytes_in_flight_and_not_for_a_long_read() {
    let mut pair = Pair::new(&[("large", LARGE), ("small", 3)]);
    let large = pair.ask(&read("large", ReadFrom::Start(0), u64::MAX));
    for _ in 0..10 {
        pair.round();
    }
    let small = pair.ask(&FileRequest::Stat(place("small")));
    assert!(pair.answer(small).is_ok());
    assert!(!pair.answers.contains_key(&large) && pair.server.totals().read < LARGE as u64);
    assert!(pair.answer(large).is_ok());
}

#[test]
fn ranges_of_a_mebibyte_are_answered_one_after_the_other_and_a_long_read_yields_to_them() {
    let mut pair = Pair::new(&[("large", LARGE)]);
    let long = pair.ask(&read("large", ReadFrom::Start(0), u64::MAX));
    let ranges: Vec<_> = (0..4).map(|at| pair.ask(&read("large", ReadFrom::Start(at << 20), 1 << 20))).collect();
    assert!(pair.answer(long).is_ok());
    let order: Vec<_> = ranges.into_iter().chain([long]).collect();
    assert_eq!(pair.order, order);
}

#[test]
fn a_request_that_is_given_up_fails_and_gives_its_place_back() {
    let mut pair = Pair::new(&[("large", LARGE)]);
    for _ in 0..MAX_REQUESTS {
        let (reads, puts) = (read("large", ReadFrom::Start(0), u64::MAX), put("new", None, Existing::Keep));
        let (large, new) = (pair.ask(&reads), pair.ask(&puts));
        pair.client.write(new, b"begun");
        pair.round();
        pair.client.give_up(large);
        pair.client.give_up(large);
        pair.client.give_up(new);
        for id in [large, new] {
            assert_eq!(pair.answer(id).unwrap_err().code, FailCode::Cancelled);
        }
    }
    assert_eq!(pair.ends().tree.len(), 1, "no part of a put stays");
}

#[test]
fn a_client_has_so_many_requests_and_no_more() {
    let mut pair = Pair::new(&[("f", 3)]);
    let all: Vec<_> = (0..MAX_REQUESTS).map(|_| pair.ask(&FileRequest::Stat(place("f")))).collect();
    assert!(!pair.client.has_room() && pair.client.request(&FileRequest::Stat(place("f"))).is_none());
    for id in all {
        assert!(pair.answer(id).is_ok());
    }
    assert!(pair.client.has_room() && pair.client.outstanding() == 0);
}

#[test]
fn an_end_waits_for_the_answers_and_gives_up_what_is_not_whole() {
    let mut pair = Pair::new(&[("large", LARGE)]);
    let (large, new) =
        (pair.ask(&read("large", ReadFrom::Start(0), u64::MAX)), pair.ask(&put("n", None, Existing::Keep)));
    pair.client.finish();
    assert!(pair.client.request(&FileRequest::Stat(place("large"))).is_none());
    assert!(pair.answer(large).is_ok());
    assert_eq!(pair.answer(new).unwrap_err().code, FailCode::Cancelled);
    pair.ends();
}

#[test]
fn a_server_makes_no_more_than_the_driver_takes() {
    let mut pair = Pair::new(&[("large", LARGE)]);
    for _ in 0..MAX_REQUESTS {
        pair.ask(&read("large", ReadFrom::Start(0), u64::MAX));
    }
    let said = pair.client.poll_write().to_vec();
    let accepted = pair.server.poll_write().len();
    pair.server.handle_written(accepted);
    pair.server.handle_received(&said).unwrap();
    for _ in 0..100 {
        assert!((1..=MAX_BLOCK + 9).contains(&pair.server.poll_write().len()));
    }
    assert_eq!(pair.server.files().reads, 1);
}

#[test]
fn a_long_digest_does_not_keep_a_question_waiting() {
    let mut pair = Pair::new(&[("large", 64 << 20), ("small", 3)]);
    let digest = pair.ask(&FileRequest::Digest(place("large")));
    for _ in 0..5 {
        pair.round();
    }
    assert!(pair.server.has_work());
    let small = pair.ask(&FileRequest::Stat(place("small")));
    assert!(pair.answer(small).is_ok());
    assert!(!pair.answers.contains_key(&digest) && pair.answer(digest).is_ok());
}

/// Begins puts until no more are permitted.
fn puts(pair: &mut Pair) -> Vec<RequestId> {
    (0..).map_while(|number: u32| pair.client.request(&put(&number.to_string(), None, Existing::Keep))).collect()
}

#[test]
fn a_client_has_some_puts_at_a_time_and_few_before_it_knows_its_server() {
    let mut pair = Pair::new(&[]);
    let mut all = puts(&mut pair);
    assert_eq!(all.len(), FEW_PUTS);
    assert!(pair.asked(&FileRequest::Stat(place(""))).is_ok(), "an answer of a server of this version");
    let begun = |number: usize| put(&format!("later-{number}"), None, Existing::Keep);
    all.extend((FEW_PUTS..MAX_PUTS).map(|number| pair.ask(&begun(number))));
    assert!(pair.client.request(&begun(99)).is_none() && pair.client.has_room());
    all.iter().for_each(|&id| pair.client.finish_put(id));
    for id in all {
        assert!(pair.answer(id).is_ok());
    }
    assert!(pair.client.request(&begun(99)).is_some());
    assert_eq!(pair.ends().tree.len(), MAX_PUTS);
}

#[test]
fn an_earlier_server_gets_few_puts_at_a_time() {
    let mut pair = Pair::new(&[]);
    let mut accept = Vec::new();
    Accept::new(1 << 20).offering(Capabilities::OWNERS).put(&mut accept);
    pair.client.handle_received(&accept).unwrap();
    assert_eq!(puts(&mut pair).len(), FEW_PUTS);
}
