//! Peers that do not answer, for a while or for ever.

use farhaul_proto::ConnectionLost;
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair, address};
use farhaul_sim::{TapAction, Workload};
use farhaul_units::{Duration, Instant};
use farhaul_wire::udt4::is_handshake;

use crate::behaviour::scenario::{LENGTH, LIMIT, at_millis, clean_path, endpoint, pair, small_buffers};

#[test]
fn a_call_that_nobody_answers_ends_after_five_seconds() {
    let deaf = Pair::new(endpoint(1, small_buffers()), endpoint(2, small_buffers()));
    let mut run = deaf.path(clean_path()).caller(Workload::send(1_000)).start();
    run.set_tap(Some(Box::new(|_| TapAction::Drop)));
    run.run_for(Duration::from_secs(10));
    let (at, reason) = run.flows(CALLER)[0].closed.expect("it is over");
    assert_eq!(reason, ConnectionLost::ConnectTimeout(Duration::from_secs(5)));
    assert_eq!((at - Instant::ZERO).as_secs(), 5);
}

#[test]
fn a_call_is_repeated_until_it_is_answered() {
    let mut run = pair(3, small_buffers).path(clean_path()).caller(Workload::send(1_000)).start();
    run.set_tap(Some(Box::new(|datagram| {
        if datagram.now < Instant::ZERO + Duration::from_secs(3) { TapAction::Drop } else { TapAction::Pass }
    })));
    assert!(run.run_until_done(LIMIT));
    assert_eq!(run.missing(CALLER, LISTENER), [""; 0]);
}

#[test]
fn a_call_succeeds_although_the_first_answers_to_its_cookie_get_lost() {
    for lost_until in [200, 400, 700, 1_000, 2_000, 4_000] {
        let mut run = pair(4, small_buffers).path(clean_path()).caller(Workload::send(1_000)).start();
        let listener = address(LISTENER);
        run.set_tap(Some(Box::new(move |datagram| {
            let lost = datagram.from == listener
                && is_handshake(datagram.bytes)
                && (at_millis(15)..at_millis(lost_until)).contains(&datagram.now);
            if lost { TapAction::Drop } else { TapAction::Pass }
        })));
        assert!(run.run_until_done(LIMIT));
        assert_eq!(run.missing(CALLER, LISTENER), [""; 0], "answers lost until {lost_until} ms");
    }
}

/// A program that serves one peer stops listening as soon as it has accepted one.
#[test]
fn a_call_succeeds_although_the_listener_that_accepted_it_is_gone_and_its_first_answers_got_lost() {
    for lost_until in [200, 400, 700, 1_000, 2_000, 4_000] {
        let mut run = pair(4, small_buffers).path(clean_path()).caller(Workload::send(1_000)).start();
        run.set_tap(Some(Box::new(move |datagram| {
            // The cookie leaves at 10 ms.
            let lost =
                datagram.from == address(LISTENER) && (at_millis(15)..at_millis(lost_until)).contains(&datagram.now);
            if lost { TapAction::Drop } else { TapAction::Pass }
        })));
        assert!(run.run_until_true(at_millis(100), |run| !run.flows(LISTENER).is_empty()));
        run.command(LISTENER, |_, endpoint, _| endpoint.stop_listening());
        assert!(run.run_until_done(LIMIT), "lost until {lost_until} ms");
        assert_eq!(run.missing(CALLER, LISTENER), [""; 0], "lost until {lost_until} ms");
    }
}

#[test]
fn a_transfer_survives_silence_of_any_length_below_the_peer_timeout() {
    for (seed, silence) in [100, 500, 1_000, 3_000, 8_000, 15_000, 25_000].into_iter().enumerate() {
        let workload = Workload::exchange(LENGTH);
        let mut run = pair(seed as u64, small_buffers).path(clean_path()).caller(workload).listener(workload).start();
        run.run_for(Duration::from_millis(300));
        let end = run.now() + Duration::from_millis(silence);
        run.set_tap(Some(Box::new(move |d| if d.now < end { TapAction::Drop } else { TapAction::Pass })));
        run.run_until_done(LIMIT);
        let missing = [run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat();
        assert_eq!(missing, [""; 0], "silence of {silence} ms");
    }
}

#[test]
fn a_transfer_to_a_peer_that_vanished_ends() {
    let mut run = pair(9, small_buffers).path(clean_path()).caller(Workload::send(1 << 30)).start();
    run.run_for(Duration::from_secs(2));
    run.set_tap(Some(Box::new(|_| TapAction::Drop)));
    run.run_for(Duration::from_secs(45));
    for host in [CALLER, LISTENER] {
        let (_, reason) = run.flows(host)[0].closed.expect("it is over");
        assert!(matches!(reason, ConnectionLost::PeerSilent(_)), "host {host}: {reason:?}");
    }
}
