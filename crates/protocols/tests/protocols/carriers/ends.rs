//! Ends of connections, in order and not, and of carriers.

use super::*;
use farhaul_proto::error::ConnectionLost;
use farhaul_proto::transport::StreamError;

/// How the far side's connection ended.
fn end_at(pair: &mut Pair, side: usize) -> Option<ConnectionLost> {
    pair.events[side].iter().find_map(|event| match event {
        Event::Closed(_, reason) => Some(*reason),
        _ => None,
    })
}

#[test]
fn a_client_that_is_not_admitted_and_an_endpoint_that_does_not_know_the_server_hear_why() {
    for name in carried() {
        let mut pair = Pair::between([end(name, 1, Null::new(1)), end(name, 2, Null::new(2).that_admits_nobody())]);
        let reason = ConnectionLost::Insecure(SecurityFault::NotAdmitted);
        let id = pair.call();
        pair.run_until(10, |pair| pair.events[0].contains(&Event::Closed(id, reason)));
        assert!(pair.events[1].is_empty(), "{name}: the application of the server hears nothing");
        let now = pair.now;
        assert_eq!(pair.ends[0].read(now, id, &mut [0; 10]), Err(StreamError::Lost(reason)), "{name}");
        assert_eq!(pair.ends[0].write(now, id, b"x"), Err(StreamError::Lost(reason)), "{name}");
        pair.ends[0].release(now, id);
        run_for(&mut pair, Duration::from_secs(15));
        assert_eq!(held(&pair), [0, 0], "{name}");
    }
}

#[test]
fn nobody_who_listens_is_a_time_out() {
    for name in carried() {
        let mut pair = pair(name);
        pair.ends[1].stop_listening();
        let reason = pair.failure(20);
        assert!(matches!(reason, ConnectionLost::ConnectTimeout(_)), "{name}: {reason}");
        run_for(&mut pair, Duration::from_secs(15));
        assert_eq!(held(&pair)[1], 0, "{name}");
    }
}

#[test]
fn another_protocol_inside_is_named() {
    for (near, far) in [("rbudp", "tsunami"), ("udt-2004", "sabul"), ("sabul", "udt-2004")] {
        let mut pair = Pair::between([end(near, 1, Null::new(1)), end(far, 2, Null::new(2))]);
        let expected = ConnectionLost::PeerIncompatible(PeerIncompatible::OtherProtocol);
        assert_eq!(pair.failure(20), expected, "{near} calls {far}");
    }
}

#[test]
fn an_endpoint_without_a_place_refuses() {
    for name in carried().filter(|name| *name != "udt-2004") {
        let full = Config { backlog: 1, ..Config::default() };
        let mut pair = Pair::between([end(name, 1, Null::new(1)), end_of(name, full, 2, Null::new(2))]);
        pair.connect();
        pair.events[0].clear();
        assert_eq!(pair.failure(20), ConnectionLost::Refused, "{name}");
    }
}

#[test]
fn a_close_with_everything_delivered_ends_the_peers_stream() {
    for name in carried() {
        let mut pair = pair(name);
        let ids = pair.connect();
        pair.transfer(ids, &content(200_000));
        run_for(&mut pair, Duration::from_secs(1));
        let now = pair.now;
        pair.ends[0].close(now, ids[0]);
        assert!(pair.ends[0].is_closing(ids[0]), "{name}");
        pair.run_until(10, |pair| pair.ends[1].read(pair.now, ids[1], &mut [0; 10]) == Ok(Read::End));
        pair.run_until(10, |pair| !pair.ends[0].is_closing(ids[0]));
        assert_eq!(end_at(&mut pair, 0), Some(ConnectionLost::ClosedLocally), "{name}");
        assert_eq!(end_at(&mut pair, 1), Some(ConnectionLost::ClosedByPeer), "{name}");
    }
}

#[test]
fn an_abort_reaches_the_peer_and_no_end_of_the_stream_does() {
    for name in carried() {
        for released in [false, true] {
            let mut pair = pair(name);
            let ids = pair.connect();
            pair.transfer(ids, &content(200_000));
            let now = pair.now;
            pair.ends[0].write(now, ids[0], &content(30_000)).unwrap();
            if released {
                pair.ends[0].release(now, ids[0]);
            } else {
                pair.ends[0].abort(now, ids[0]);
            }
            pair.run_until(10, |pair| end_at(pair, 1).is_some());
            assert_eq!(end_at(&mut pair, 1), Some(ConnectionLost::Aborted), "{name}");
            let now = pair.now;
            pair.ends[0].release(now, ids[0]);
            pair.ends[1].release(now, ids[1]);
            run_for(&mut pair, Duration::from_secs(15));
            assert_eq!(held(&pair), [0, 0], "{name}");
        }
    }
}

#[test]
fn a_call_that_its_side_gives_up_leaves_nothing() {
    for name in carried() {
        for steps in [0, 1, 2, 3, 5, 8] {
            let mut pair = pair(name);
            let id = pair.call();
            (0..steps).for_each(|_| {
                pair.step();
            });
            let now = pair.now;
            pair.ends[0].release(now, id);
            run_for(&mut pair, Duration::from_secs(30));
            for event in pair.events[1].clone() {
                let now = pair.now;
                pair.ends[1].release(now, event.connection());
            }
            run_for(&mut pair, Duration::from_secs(30));
            assert_eq!(held(&pair), [0, 0], "{name} after {steps} steps");
        }
    }
}

#[test]
fn a_peer_that_vanishes_is_silent() {
    for name in carried() {
        let mut pair = pair(name);
        let ids = pair.connect();
        pair.transfer(ids, &content(200_000));
        pair.fate = Box::new(|_, _| 0);
        pair.run_until(60, |pair| end_at(pair, 0).is_some() && end_at(pair, 1).is_some());
        for side in [0, 1] {
            let reason = end_at(&mut pair, side);
            assert!(matches!(reason, Some(ConnectionLost::PeerSilent(_))), "{name} at {side}: {reason:?}");
            let now = pair.now;
            pair.ends[side].release(now, ids[side]);
        }
        run_for(&mut pair, Duration::from_secs(15));
        assert_eq!(held(&pair), [0, 0], "{name}");
    }
}

#[test]
fn many_connections_that_end_at_once_are_all_forgotten() {
    for name in carried() {
        let mut pair = pair(name);
        let calls: Vec<ConnectionId> = (0..100).map(|_| pair.call()).collect();
        pair.run_until(10, |pair| {
            let news = |side: usize| pair.events[side].len() >= 100;
            news(0) && news(1)
        });
        let now = pair.now;
        let accepted = pair.events[1].iter().map(|event| event.connection()).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(accepted.len(), 100, "{name}");
        calls.iter().for_each(|id| pair.ends[0].close(now, *id));
        run_for(&mut pair, Duration::from_secs(3));
        let now = pair.now;
        calls.iter().for_each(|id| pair.ends[0].release(now, *id));
        accepted.iter().for_each(|id| pair.ends[1].release(now, *id));
        run_for(&mut pair, IDLE + Duration::from_secs(5));
        assert_eq!(held(&pair), [0, 0], "{name}");
    }
}

/// The peer does not follow to new keys, because nothing comes back from it.
#[test]
fn keys_that_wear_out_are_the_reason_of_the_end() {
    for name in ["rbudp", "tsunami"] {
        let provider = |seed| Null::new(seed).with_confidentiality_limit(128);
        let mut pair = Pair::between([end(name, 1, provider(1)), end(name, 2, provider(2))]);
        let [near, _] = pair.connect();
        run_for(&mut pair, Duration::from_millis(100));
        pair.fate = Box::new(|end, _| u32::from(end == 0));
        let now = pair.now;
        pair.ends[0].write(now, near, &content(1_000_000)).unwrap();
        pair.run_until(60, |pair| end_at(pair, 0).is_some());
        let expected = Some(ConnectionLost::Insecure(SecurityFault::KeyLimit));
        assert_eq!(end_at(&mut pair, 0), expected, "{name}");
    }
}
