//! Forged shutdowns, aborts and error signals on idle connections, and real ones.

use farhaul_proto::{ConnectionLost, Endpoint, Event, Read, StreamError, Streams};
use farhaul_sim::topology::path::{CALLER, LISTENER, address};
use farhaul_sim::{OutgoingDatagram, Simulation, TapAction, Workload};
use farhaul_units::{AckNo, Duration, Instant};
use farhaul_wire::udt4::{CONNECTION_BROKEN, Control};

use crate::attack::bench::{Bench, Peer, encode};
use crate::attack::transfer::{eavesdrop, pair};

/// An accepted connection with a known RTT. One packet was received and confirmed, or none.
fn idle(received: bool) -> (Bench, Peer) {
    let mut bench = Bench::listening();
    let peer = bench.accept_default();
    bench.control(&peer, &Control::KeepAlive);
    if received {
        for packet in 0..40 {
            bench.full(&peer, peer.isn().plus(packet));
            bench.run_millis(10);
            confirm_all(&mut bench, &peer, Duration::from_millis(20));
        }
    }
    bench.run_millis(500);
    bench.take_sent();
    (bench, peer)
}

/// The peer confirms all acknowledgements that it received, after this RTT.
fn confirm_all(bench: &mut Bench, peer: &Peer, round_trip: Duration) {
    let numbers: Vec<AckNo> = bench
        .take_sent()
        .iter()
        .filter_map(|sent| match sent.control() {
            Some(Control::Ack(ack)) => ack.number(),
            _ => None,
        })
        .collect();
    bench.run_for(round_trip);
    for number in numbers {
        bench.control(peer, &Control::Ack2(number));
    }
}

#[test]
fn b1_an_idle_connection_survives_any_number_of_forged_shutdowns() {
    for received in [false, true] {
        let (mut bench, peer) = idle(received);
        for millis in (0..400).map(|n| n % 45) {
            bench.control(&peer, &Control::Shutdown);
            let asked = bench.sent.iter().filter(|sent| matches!(sent.control(), Some(Control::Ack(_)))).count();
            assert!(asked <= 3, "{asked} questions");
            confirm_all(&mut bench, &peer, Duration::from_millis(20));
            bench.run_millis(millis);
        }
        bench.run_millis(2_000);
        assert_eq!(bench.closed(&peer), None);
    }
}

#[test]
fn b1_an_idle_connection_survives_any_number_of_forged_aborts() {
    let (mut bench, peer) = idle(true);
    for millis in (0..400).map(|n| n % 45) {
        bench.control(&peer, &Control::ErrorSignal(CONNECTION_BROKEN));
        let asked = bench.sent.iter().filter(|sent| matches!(sent.control(), Some(Control::Ack(_)))).count();
        assert!(asked <= 3, "{asked} questions");
        confirm_all(&mut bench, &peer, Duration::from_millis(20));
        bench.run_millis(millis);
    }
    bench.run_millis(2_000);
    assert_eq!(bench.closed(&peer), None);
    assert!(!bench.events.iter().any(|event| matches!(event, Event::PeerComplained(..))), "nobody reported a file");
}

#[test]
fn b1_an_abort_is_accepted_as_soon_as_a_shutdown_and_outweighs_it() {
    for others in [&[][..], &[Control::Shutdown]] {
        let (mut bench, peer) = idle(true);
        bench.control(&peer, &Control::ErrorSignal(CONNECTION_BROKEN));
        others.iter().for_each(|other| bench.control(&peer, other));
        bench.run_millis(100);
        assert_eq!(bench.closed(&peer), Some(ConnectionLost::Aborted));
        let read = |bench: &mut Bench| bench.end.read(bench.now, peer.id, &mut [0; 100_000]);
        assert!(matches!(read(&mut bench), Ok(Read::Data(_))), "what has arrived can be read");
        assert_eq!(read(&mut bench), Err(StreamError::Lost(ConnectionLost::Aborted)));
    }
}

#[test]
fn b1_a_peer_that_left_confirms_nothing_and_is_accepted_after_a_round_trip_and_a_margin() {
    for (received, soon, late) in [(false, 300, 400), (true, 20, 80)] {
        let (mut bench, peer) = idle(received);
        let round_trip = bench.stats(&peer).rtt;
        assert_eq!(round_trip.as_millis() < 30, received, "{round_trip:?}");
        bench.control(&peer, &Control::Shutdown);
        bench.run_millis(soon);
        assert_eq!(bench.closed(&peer), None, "an answer would be in flight");
        bench.run_millis(late - soon);
        assert_eq!(bench.closed(&peer), Some(ConnectionLost::ClosedByPeer));
    }
}

#[test]
fn b1_nothing_but_the_answer_to_the_question_revokes_a_shutdown() {
    let (mut bench, peer) = idle(true);
    // A repeated confirmation from before the shutdown, and a guess far from the numbers in use.
    bench.control(&peer, &Control::Shutdown);
    bench.control(&peer, &Control::KeepAlive);
    for number in [1, 30, 500, 1 << 30] {
        bench.control(&peer, &Control::Ack2(AckNo::new(number)));
    }
    bench.run_millis(100);
    assert_eq!(bench.closed(&peer), Some(ConnectionLost::ClosedByPeer));
}

#[test]
fn after_finishing_the_received_data_has_an_end_unless_a_packet_is_known_to_be_missing() {
    for (packets, expected) in
        [(&[0, 1][..], Ok(Read::End)), (&[0, 2][..], Err(StreamError::Lost(ConnectionLost::ClosedLocally)))]
    {
        let mut bench = Bench::listening();
        let peer = bench.accept_default();
        for &packet in packets {
            bench.full(&peer, peer.isn().plus(packet));
        }
        bench.end.finish(bench.now, peer.id);
        bench.drain();
        assert!(bench.events.contains(&Event::Finished(peer.id)), "there was nothing to acknowledge");
        let mut out = vec![0; 10_000];
        let expected_len = if expected.is_ok() { 2 * 1_456 } else { 1_456 };
        assert_eq!(bench.end.read(bench.now, peer.id, &mut out), Ok(Read::Data(expected_len)));
        assert_eq!(bench.end.read(bench.now, peer.id, &mut out), expected);
    }
}

/// Two Farhaul endpoints, idle after a short transfer.
fn idle_pair() -> Simulation<Endpoint> {
    let workload = Workload::send(10_000).kept_open();
    let mut run = pair().caller(workload).listener(Workload::receive().kept_open()).start();
    run.run_for(Duration::from_secs(5));
    run
}

/// Why and when each side's connection ended.
fn ends(run: &Simulation<Endpoint>) -> [Option<(Instant, ConnectionLost)>; 2] {
    [CALLER, LISTENER].map(|host| run.flows(host)[0].closed)
}

#[test]
fn b1_two_farhaul_endpoints_stay_connected_through_forged_shutdowns() {
    let mut run = idle_pair();
    let overheard = eavesdrop(&mut run, Box::new(|_, _| Vec::new()));
    // The attacker must first overhear a packet.
    run.run_for(Duration::from_secs(15));
    let ids = overheard.borrow().ids;
    assert!(ids.iter().all(|id| !id.is_none()));
    for millis in 0..300 {
        for (host, other) in [(CALLER, LISTENER), (LISTENER, CALLER)] {
            run.inject(host, address(other), &encode(ids[host], &Control::Shutdown));
        }
        run.run_for(Duration::from_millis(millis));
    }
    assert_eq!(ends(&run), [None, None]);
    let id = run.flows(CALLER)[0].id();
    let written = run.command(CALLER, |now, end, _| end.write(now, id, &[1; 1_000]));
    assert_eq!(written, Ok(1_000));
}

#[test]
fn b1_a_real_shutdown_of_farhaul_is_accepted_after_a_round_trip_and_a_margin() {
    for seed in 0..5 {
        let mut run = idle_pair();
        run.run_for(Duration::from_millis(seed * 7_300));
        let id = run.flows(CALLER)[0].id();
        let closed_at = run.now();
        run.command(CALLER, |now, end, _| end.close(now, id));
        run.run_for(Duration::from_secs(1));
        let (at, reason) = ends(&run)[LISTENER].expect("it is over");
        assert_eq!(reason, ConnectionLost::ClosedByPeer);
        // Half an RTT for the shutdown, one for the missing answer, and a margin.
        let time = at - closed_at;
        assert!((40..120).contains(&time.as_millis()), "{time:?}");
    }
}

#[test]
fn b1_lost_questions_and_answers_do_not_make_a_forged_shutdown_come_true() {
    // Two of three packets are lost in either direction, in the worst order.
    for kept in 0..3 {
        let mut run = idle_pair();
        let overheard = eavesdrop(&mut run, Box::new(|_, _| Vec::new()));
        run.run_for(Duration::from_secs(15));
        let ids = overheard.borrow().ids;
        let mut questions = 0;
        run.set_tap(Some(Box::new(move |datagram: &mut OutgoingDatagram<'_>| {
            let is_ack = matches!(Control::decode(datagram.bytes), Ok((_, _, Control::Ack(_))));
            if is_ack && datagram.from == address(LISTENER) {
                questions += 1;
                return if (questions - 1) % 3 == kept { TapAction::Pass } else { TapAction::Drop };
            }
            TapAction::Pass
        })));
        run.inject(LISTENER, address(CALLER), &encode(ids[LISTENER], &Control::Shutdown));
        run.run_for(Duration::from_secs(2));
        assert_eq!(ends(&run), [None, None], "question {kept} is answered");
    }
}

#[test]
fn b1_an_error_signal_is_reported_once_and_an_idle_connection_survives_it() {
    let (mut bench, peer) = idle(true);
    for code in [4000, 4000, 1] {
        bench.control(&peer, &Control::ErrorSignal(code));
    }
    bench.run_millis(20_000);
    let said = bench.events.iter().filter(|event| matches!(event, Event::PeerComplained(..)));
    assert_eq!(said.collect::<Vec<_>>(), [&Event::PeerComplained(peer.id, 4000)]);
    assert_eq!(bench.closed(&peer), None);
    bench.write(&peer, 10);
}

#[test]
fn b1_a_reported_error_is_accepted_once_the_peer_accepts_no_more_data() {
    let (mut bench, mut peer) = crate::attack::acks::sending();
    bench.control(&peer, &Control::ErrorSignal(4000));
    bench.run_millis(4_000);
    // Not while it accepts data.
    for packet in 1..=5 {
        let ack = peer.ack(peer.isn().plus(packet));
        bench.control(&peer, &ack);
        bench.run_millis(4_000);
        assert_eq!(bench.closed(&peer), None);
    }
    for _ in 0..20 {
        bench.control(&peer, &Control::KeepAlive);
        bench.run_millis(100);
    }
    assert_eq!(bench.closed(&peer), Some(ConnectionLost::PeerError(4000)));
}

#[test]
fn b1_a_peer_that_reported_an_error_and_left_is_reported_with_it() {
    let (mut bench, peer) = crate::attack::acks::sending();
    bench.control(&peer, &Control::ErrorSignal(4000));
    bench.control(&peer, &Control::Shutdown);
    bench.run_millis(2_000);
    assert_eq!(bench.closed(&peer), Some(ConnectionLost::PeerError(4000)));
}

#[test]
fn b1_a_shutdown_with_data_missing_is_never_a_good_end() {
    let mut bench = Bench::listening();
    let peer = bench.accept_default();
    bench.full(&peer, peer.isn().plus(1));
    bench.control(&peer, &Control::Shutdown);
    bench.run_millis(2_000);
    assert_eq!(bench.closed(&peer), Some(ConnectionLost::Aborted));
    assert!(bench.end.read(bench.now, peer.id, &mut [0; 10]).is_err());
}
