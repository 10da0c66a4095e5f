//! A partition of one side: packets pass in one direction only. Both ends learn it in bounded time.

use farhaul_proto::{Config, ConnectionLost, Endpoint};
use farhaul_sim::topology::path::{CALLER, LISTENER, address};
use farhaul_sim::{Simulation, TapAction, Workload};
use farhaul_units::{Duration, Instant};

use crate::behaviour::scenario::{clean_path, pair, small_buffers};

/// Combinations of use by the two sides.
fn uses() -> [(&'static str, [Workload; 2]); 4] {
    let idle = Workload::receive().kept_open();
    [
        ("the caller sends", [Workload::send_without_end(), Workload::receive()]),
        ("the listener sends", [idle, Workload::send_without_end()]),
        ("both send", [Workload::send_without_end(), Workload::send_without_end()]),
        ("both are idle", [Workload::send(10_000).kept_open(), idle]),
    ]
}

/// Drops everything that this host sends from now on.
fn mute(run: &mut Simulation<Endpoint>, host: usize) -> Instant {
    let from = address(host);
    run.set_tap(Some(Box::new(move |datagram| if datagram.from == from { TapAction::Drop } else { TapAction::Pass })));
    run.now()
}

#[test]
fn both_ends_of_a_one_sided_partition_end_with_the_silence_of_the_other() {
    let timeout = Config::default().peer_timeout;
    for (name, [caller, listener]) in uses() {
        for muted in [CALLER, LISTENER] {
            let mut run = pair(1, small_buffers).path(clean_path()).caller(caller).listener(listener).start();
            run.run_for(Duration::from_secs(3));
            let cut = mute(&mut run, muted);
            run.run_for(timeout * 3);
            let case = format!("{name}, host {muted} is muted");
            // The other end hears nothing from the start. The muted one hears it until the other gives up.
            for (host, most) in [(1 - muted, timeout), (muted, timeout * 2)] {
                let (at, reason) = run.flows(host)[0].closed.unwrap_or_else(|| panic!("{case}: host {host} lives on"));
                assert_eq!(reason, ConnectionLost::PeerSilent(timeout), "{case}: host {host}");
                let time = at - cut;
                assert!(time <= most + Duration::from_secs(1), "{case}: host {host} took {time:?}");
            }
        }
    }
}

#[test]
fn a_call_whose_answers_do_not_arrive_ends_on_both_sides() {
    for muted in [CALLER, LISTENER] {
        let mut run = pair(2, small_buffers).path(clean_path()).caller(Workload::send(1_000)).start();
        mute(&mut run, muted);
        run.run_for(Duration::from_secs(60));
        let (at, reason) = run.flows(CALLER)[0].closed.expect("it is over");
        assert!(matches!(reason, ConnectionLost::ConnectTimeout(_)), "{reason:?}");
        assert!(at - Instant::ZERO <= Duration::from_secs(6), "{at}");
        assert!(run.flows(LISTENER).iter().all(|flow| flow.closed.is_some()), "the listener holds no connection");
    }
}

/// The answer to the caller's last handshake packet arrives. Everything after it is dropped.
#[test]
fn a_listener_muted_after_its_answer_ends_on_both_sides() {
    let mut run = pair(3, small_buffers).path(clean_path()).caller(Workload::send(1 << 20)).start();
    let from = address(LISTENER);
    run.set_tap(Some(Box::new(move |datagram| {
        let is_handshake = datagram.bytes.starts_with(&[0x80, 0]);
        if datagram.from == from && !is_handshake { TapAction::Drop } else { TapAction::Pass }
    })));
    run.run_for(Duration::from_secs(120));
    for host in [CALLER, LISTENER] {
        let (at, reason) = run.flows(host)[0].closed.expect("it is over");
        assert!(matches!(reason, ConnectionLost::PeerSilent(_)), "host {host}: {reason:?}");
        assert!(at - Instant::ZERO < Duration::from_secs(62), "host {host}: {at}");
    }
}
