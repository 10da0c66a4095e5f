//! Ends of connections: after everything arrived, at once, or unexpectedly. Also connections without data.

use farhaul_netem::{LossSpec, PathSpec};
use farhaul_proto::{ConnectionLost, Event, Streams, Transport};
use farhaul_sim::topology::path::{CALLER, LISTENER, UP};
use farhaul_sim::{Flow, TapAction, Workload};
use farhaul_units::{Duration, Rng};

use crate::udt2004::scenario::{LIMIT, clean_path, pair, small_buffers};

#[test]
fn finish_waits_until_everything_arrived_and_then_tells_the_peer() {
    for seed in 0..20 {
        let path = PathSpec { loss: Some(LossSpec::Bernoulli(0.05)), ..clean_path() };
        let mut run = pair(seed, small_buffers).path(path).caller(Workload::send(1 << 20)).start();
        assert!(run.run_until_done(LIMIT));
        run.run_for(Duration::from_secs(60));
        assert_eq!(run.missing(CALLER, LISTENER), [""; 0]);
        let (caller, listener) = (&run.flows(CALLER)[0], &run.flows(LISTENER)[0]);
        let complete = listener.received().complete_at.expect("it is complete");
        assert!(caller.finished_at.expect("it finished") > complete);
        // All three close packets are lost once in 8000 times. The received data does not depend on them.
        if let Some((_, ConnectionLost::ClosedByPeer)) = listener.closed {
            assert!(listener.received().ended, "the reader saw the end of the stream");
        } else {
            assert!(matches!(listener.closed, Some((_, ConnectionLost::PeerSilent(_)))), "{:?}", listener.closed);
        }
    }
}

/// Both sides finish at the same time. Each still learns that the other has everything.
#[test]
fn an_exchange_ends_well_for_both_sides() {
    for seed in 0..20 {
        let workload = Workload::exchange(300_000);
        let mut run = pair(seed, small_buffers).path(clean_path()).caller(workload).listener(workload).start();
        assert!(run.run_until_done(LIMIT));
        run.run_for(Duration::from_secs(2));
        for host in [CALLER, LISTENER] {
            let closed = run.flows(host)[0].closed.map(|(_, reason)| reason);
            assert!(
                matches!(closed, None | Some(ConnectionLost::ClosedByPeer)),
                "seed {seed}, host {host}: {closed:?}"
            );
        }
    }
}

#[test]
fn a_close_before_all_is_sent_is_an_abort_for_the_peer() {
    // Unlike UDT4's shutdown, this close packet names the end of the stream. So the abort shows without a gap.
    let mut run = pair(2, small_buffers).path(clean_path()).caller(Workload::send(1 << 30)).start();
    run.run_for(Duration::from_secs(1));
    let id = run.flows(CALLER)[0].id();
    run.command(CALLER, |now, endpoint, _| endpoint.close(now, id));
    run.run_for(Duration::from_secs(1));
    let listener = &run.flows(LISTENER)[0];
    assert_eq!(listener.closed.map(|(_, reason)| reason), Some(ConnectionLost::Aborted));
    assert!(!listener.received().ended, "an abort is no end of a stream");
}

#[test]
fn a_stream_that_is_aborted_or_dropped_has_no_end_although_all_of_it_has_arrived() {
    for released in [false, true] {
        let mut run = pair(7, small_buffers).path(clean_path()).caller(Workload::send(10_000).kept_open()).start();
        run.run_for(Duration::from_secs(5));
        let id = run.flows(CALLER)[0].id();
        run.command(CALLER, |now, endpoint, _| match released {
            true => endpoint.release(now, id),
            false => endpoint.abort(now, id),
        });
        run.run_for(Duration::from_secs(1));
        let listener = &run.flows(LISTENER)[0];
        assert_eq!((listener.received().bytes, listener.received().ended), (10_000, false));
        assert_eq!(listener.closed.map(|(_, reason)| reason), Some(ConnectionLost::Aborted));
    }
}

#[test]
fn a_call_that_nobody_answers_times_out() {
    let mut run = pair(3, small_buffers).path(clean_path()).caller(Workload::send(1_000)).start();
    run.set_tap(Some(Box::new(|_| TapAction::Drop)));
    run.run_for(Duration::from_secs(6));
    let closed = run.flows(CALLER)[0].closed.map(|(_, reason)| reason);
    assert!(matches!(closed, Some(ConnectionLost::ConnectTimeout(_))), "{closed:?}");
}

#[test]
fn connections_are_made_although_handshakes_get_lost() {
    for seed in 0..40 {
        let path = PathSpec { loss: Some(LossSpec::Bernoulli(0.3)), ..clean_path() };
        let mut run = pair(seed, small_buffers).path(path).caller(Workload::send(10_000)).start();
        run.run_until_done(Duration::from_secs(60));
        let caller = &run.flows(CALLER)[0];
        let timed_out = matches!(caller.closed, Some((_, ConnectionLost::ConnectTimeout(_))));
        assert!(timed_out || caller.finished_at.is_some(), "seed {seed}: {:?}", caller.closed);
        assert!(run.flows(LISTENER).len() <= 1, "seed {seed}: a repeated handshake is no second connection");
    }
}

#[test]
fn an_idle_connection_lives_for_an_hour_on_few_packets() {
    let workload = Workload::send(10_000).kept_open();
    let mut run = pair(4, small_buffers).path(clean_path()).caller(workload).start();
    run.run_for(Duration::from_secs(3_600));
    for host in [CALLER, LISTENER] {
        assert_eq!(run.flows(host)[0].closed, None);
    }
    assert_eq!(run.missing(CALLER, LISTENER), [""; 0]);
    let packets = run.link_counters(UP).pushed.packets;
    assert!((300..500).contains(&packets), "{packets} packets in an hour");
}

#[test]
fn the_silence_of_a_peer_ends_a_connection() {
    for workload in [Workload::send(10_000).kept_open(), Workload::send_without_end()] {
        let mut run = pair(5, small_buffers).path(clean_path()).caller(workload).start();
        run.run_for(Duration::from_secs(5));
        run.set_tap(Some(Box::new(|_| TapAction::Drop)));
        let cut = run.now();
        run.run_for(Duration::from_secs(60));
        for host in [CALLER, LISTENER] {
            let (at, reason) = run.flows(host)[0].closed.expect("it is over");
            assert!(matches!(reason, ConnectionLost::PeerSilent(_)), "{reason:?}");
            assert!(at - cut <= Duration::from_secs(31), "{:?}", at - cut);
        }
    }
}

/// The connection survives an outage, and the sender does not retransmit its window again and again.
#[test]
fn an_outage_of_ten_seconds_costs_few_packets_and_no_bytes() {
    let mut run = pair(6, small_buffers).path(clean_path()).caller(Workload::send(20 << 20)).start();
    run.run_for(Duration::from_millis(500));
    run.set_tap(Some(Box::new(|_| TapAction::Drop)));
    let before = crate::udt2004::scenario::stats(&run, CALLER).totals.packets_sent;
    run.run_for(Duration::from_secs(10));
    let during = crate::udt2004::scenario::stats(&run, CALLER).totals.packets_sent - before;
    run.set_tap(None);
    assert!(run.run_until_done(LIMIT));
    assert_eq!(run.missing(CALLER, LISTENER), [""; 0]);
    // Without back-off, 200 expirations would send about 300 packets each.
    assert!(during < 10_000, "{during} packets into an outage");
}

#[test]
fn nothing_is_sent_once_both_sides_are_over_and_released_connections_leave_nothing_behind() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let path = PathSpec { loss: Some(LossSpec::Bernoulli(0.05)), ..clean_path() };
        let workload = Workload::exchange(300_000);
        let mut run = pair(seed, small_buffers).path(path).caller(workload).listener(workload).start();
        // Some are released early, by either side, in any state.
        for _ in 0..2 {
            run.run_for(Duration::from_millis(rng.below(600)));
            let host = rng.below(2) as usize;
            if let Some(flow) = run.flows(host).last() {
                let id = flow.id();
                run.command(host, |now, endpoint, _| endpoint.release(now, id));
            }
        }
        run.run_for(Duration::from_secs(60));
        for host in [CALLER, LISTENER] {
            let ids: Vec<_> = run.flows(host).iter().map(Flow::id).collect();
            run.command(host, |now, endpoint, _| ids.into_iter().for_each(|id| endpoint.release(now, id)));
        }
        run.run_for(Duration::from_secs(60));
        let hash = run.trace_hash();
        run.run_for(Duration::from_secs(600));
        assert_eq!(run.trace_hash(), hash, "seed {seed}");
        for host in [CALLER, LISTENER] {
            let endpoint = run.transport(host);
            assert_eq!((endpoint.connections(), endpoint.poll_timeout()), (0, None), "seed {seed}, host {host}");
            let log = run.application(host).log();
            for flow in run.flows(host) {
                let ends = log.iter().filter(|(_, event)| matches!(event, Event::Closed(id, _) if *id == flow.id()));
                assert!(ends.count() <= 1, "{log:?}");
            }
        }
    }
}
