//! Ends of connections: after everything arrived, at once, or unexpectedly.

use farhaul_netem::PathSpec;
use farhaul_proto::{ConnectionId, ConnectionLost, Endpoint, Event, Streams, Transport};
use farhaul_sim::topology::path::{CALLER, LISTENER};
use farhaul_sim::{Flow, Simulation, TapAction, Workload};
use farhaul_units::{Duration, Instant, Rng};

use crate::behaviour::scenario::{LIMIT, at_millis, clean_path, pair, random_loss, small_buffers, some_path};

#[test]
fn finish_waits_until_everything_arrived_and_then_tells_the_peer() {
    let mut run = pair(1, small_buffers).path(clean_path()).caller(Workload::send(1 << 20)).start();
    assert!(run.run_until_done(LIMIT));
    run.run_for(Duration::from_secs(1));
    assert_eq!(run.missing(CALLER, LISTENER), [""; 0]);
    let caller = &run.flows(CALLER)[0];
    let listener = &run.flows(LISTENER)[0];
    let complete = listener.received().complete_at.expect("it is complete");
    assert!(caller.finished_at.expect("it finished") > complete);
    assert!(listener.received().ended, "the reader saw the end of the stream");
    assert_eq!(listener.closed.map(|(_, reason)| reason), Some(ConnectionLost::ClosedByPeer));
}

/// Ends of a stream by its sender, other than `finish`.
const ENDS: [fn(&mut Endpoint, Instant, ConnectionId); 3] = [
    |endpoint, now, id| endpoint.close(now, id),
    |endpoint, now, id| endpoint.abort(now, id),
    |endpoint, now, id| endpoint.release(now, id),
];

#[test]
fn a_stream_that_is_aborted_or_dropped_has_no_end_although_all_of_it_has_arrived() {
    for (end, closed) in ENDS.into_iter().zip([true, false, false]) {
        let mut run = pair(5, small_buffers).path(clean_path()).caller(Workload::send(10_000).kept_open()).start();
        run.run_for(Duration::from_secs(5));
        let (id, left) = (run.flows(CALLER)[0].id(), run.now());
        run.command(CALLER, |now, endpoint, _| end(endpoint, now, id));
        run.run_for(Duration::from_secs(1));
        let listener = &run.flows(LISTENER)[0];
        assert_eq!((listener.received().bytes, listener.received().ended), (10_000, closed));
        let (at, reason) = listener.closed.expect("it is over");
        let expected = if closed { ConnectionLost::ClosedByPeer } else { ConnectionLost::Aborted };
        assert_eq!(reason, expected);
        // Half an RTT for the packet, one for the missing answer, and a margin.
        assert!(at - left < Duration::from_millis(120), "{:?}", at - left);
    }
}

#[test]
fn only_a_stream_that_was_finished_has_an_end() {
    let mut ended = 0;
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let path = PathSpec { loss: random_loss(0.1 * rng.unit()), ..some_path(&mut rng) };
        let mut run = pair(seed, small_buffers).path(path).caller(Workload::send(1 << 20)).start();
        run.run_for(Duration::from_millis(100 + rng.below(600)));
        if let Some(flow) = run.flows(CALLER).first() {
            let id = flow.id();
            let end = ENDS[seed as usize % ENDS.len()];
            run.command(CALLER, |now, endpoint, _| end(endpoint, now, id));
        }
        run.run_for(Duration::from_secs(60));
        let finished = run.flows(CALLER).first().is_some_and(|flow| flow.finished_at.is_some());
        let Some(listener) = run.flows(LISTENER).first() else { continue };
        assert!(listener.closed.is_some(), "seed {seed}: in any case it is over");
        assert!(finished || !listener.received().ended, "seed {seed}: a part looks like the whole");
        ended += u32::from(listener.received().ended);
    }
    assert!((1..59).contains(&ended), "{ended} streams have an end, and the others have none");
}

#[test]
fn a_receiver_that_aborts_ends_the_sender() {
    for end in ENDS {
        let mut run = pair(6, small_buffers).path(clean_path()).caller(Workload::send(1 << 30)).start();
        run.run_for(Duration::from_secs(2));
        let (id, left) = (run.flows(LISTENER)[0].id(), run.now());
        run.command(LISTENER, |now, endpoint, _| end(endpoint, now, id));
        run.run_for(Duration::from_secs(2));
        let (at, reason) = run.flows(CALLER)[0].closed.expect("it is over");
        assert_eq!(reason, ConnectionLost::Aborted);
        assert!(at - left < Duration::from_secs(1), "{:?}", at - left);
    }
}

/// The application of a side that has closed may be gone, so what comes then must not count as delivered.
#[test]
fn data_that_arrives_after_this_side_has_closed_is_not_acknowledged() {
    for seed in 0..20 {
        let caller = Workload::send(100_000 * (1 + seed));
        let mut run =
            pair(seed, small_buffers).path(clean_path()).caller(caller).listener(Workload::send_without_end()).start();
        let finished =
            |run: &Simulation<Endpoint>| run.flows(CALLER).first().is_some_and(|flow| flow.finished_at.is_some());
        assert!(run.run_until_true(Instant::ZERO + LIMIT, finished));
        let stats = |run: &Simulation<Endpoint>, host: usize| {
            run.transport(host).stats(run.now(), run.flows(host)[0].id()).expect("it was not released")
        };
        let arrived = stats(&run, CALLER).totals.bytes_received;
        run.run_for(Duration::from_secs(2));
        let acknowledged = stats(&run, LISTENER).totals.bytes_acked;
        assert!(acknowledged <= arrived, "seed {seed}: {acknowledged} of {arrived}");
        let reason = run.flows(LISTENER)[0].closed.map(|(_, reason)| reason);
        assert_eq!(reason, Some(ConnectionLost::Aborted), "seed {seed}");
    }
}

#[test]
fn a_close_while_packets_are_missing_is_an_abort_for_the_peer() {
    let mut run = pair(2, small_buffers).path(clean_path()).caller(Workload::send(1 << 30)).start();
    run.run_for(Duration::from_millis(950));
    let mut hole: Option<[u8; 4]> = None;
    run.set_tap(Some(Box::new(move |datagram| {
        let number: [u8; 4] = datagram.bytes[..4].try_into().expect("UDT packets have sixteen bytes");
        let is_data = number[0] & 0x80 == 0;
        if is_data && *hole.get_or_insert(number) == number { TapAction::Drop } else { TapAction::Pass }
    })));
    run.run_for(Duration::from_millis(50));
    let id = run.flows(CALLER)[0].id();
    run.command(CALLER, |now, endpoint, _| endpoint.close(now, id));
    run.run_for(Duration::from_secs(1));
    let listener = &run.flows(LISTENER)[0];
    assert_eq!(listener.closed.map(|(_, reason)| reason), Some(ConnectionLost::Aborted));
    assert!(!listener.received().ended, "an abort is no end of a stream");
}

#[test]
fn every_connection_is_reported_over_once_at_most() {
    let workload = Workload::exchange(100_000);
    let mut run = pair(3, small_buffers).path(clean_path()).caller(workload).listener(workload).start();
    run.run_until_done(LIMIT);
    run.run_for(Duration::from_secs(120));
    for host in [CALLER, LISTENER] {
        let log = run.application(host).log();
        let ends = log.iter().filter(|(_, event)| matches!(event, Event::Closed(..))).count();
        assert!(ends <= 1, "{log:?}");
    }
}

#[test]
fn nothing_is_sent_once_both_sides_are_over() {
    let mut run = pair(4, small_buffers).path(clean_path()).caller(Workload::send(100_000)).start();
    run.run_until_done(LIMIT);
    run.run_for(Duration::from_secs(120));
    let hash = run.trace_hash();
    run.run_for(Duration::from_secs(600));
    assert_eq!(run.trace_hash(), hash);
}

#[test]
fn released_connections_leave_nothing_behind() {
    for seed in 0..10 {
        let path = PathSpec { loss: random_loss(0.05), ..clean_path() };
        let workload = Workload::exchange(300_000);
        let calls = (0..30).map(|call| at_millis(20 * call));
        let mut run = pair(seed, small_buffers).path(path).calls(calls).caller(workload).listener(workload).start();
        let mut rng = Rng::new(seed);
        // Some are released early, by either side, in any state.
        for _ in 0..20 {
            run.run_for(Duration::from_millis(rng.below(100)));
            let host = rng.below(2) as usize;
            let flows = run.flows(host);
            if !flows.is_empty() {
                let id = flows[rng.below(flows.len() as u64) as usize].id();
                run.command(host, |now, endpoint, _| endpoint.release(now, id));
            }
        }
        run.run_for(Duration::from_secs(60));
        for host in [CALLER, LISTENER] {
            let ids: Vec<_> = run.flows(host).iter().map(Flow::id).collect();
            run.command(host, |now, endpoint, _| ids.into_iter().for_each(|id| endpoint.release(now, id)));
        }
        run.run_for(Duration::from_secs(60));
        for host in [CALLER, LISTENER] {
            let endpoint = run.transport(host);
            assert_eq!((endpoint.connections(), endpoint.poll_timeout()), (0, None), "seed {seed}, host {host}");
        }
    }
}
