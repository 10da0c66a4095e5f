//! Each direction of a secure stream ends by itself, whatever the path does.

use farhaul_netem::{LossSpec, PathSpec, ReorderSpec};
use farhaul_proto::secure::Null;
use farhaul_proto::{Config, ConnectionLost, Endpoint, Entropy, Mode, Streams, secure};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair, address};
use farhaul_sim::{Nat, Simulation, TapAction, Workload};
use farhaul_units::{Duration, Rate, Rng};
use farhaul_wire::secure::STREAM_OVERHEAD;

use crate::behaviour::scenario::{LIMIT, clean_path, small_buffers, some_path};

/// Payload of a full protected packet, on a path for 1500 bytes: the headers of IP, UDP, UDT4 and packet protection are outside.
const FULL: u64 = 1_500 - 28 - 16 - STREAM_OVERHEAD as u64;

type Run = Simulation<Endpoint>;

fn endpoint(seed: u64, config: Config, provider: Null) -> Endpoint {
    secure::endpoint(config, Entropy { cookie_key: [seed as u8; 16], seed }, Box::new(provider))
}

fn pair(seed: u64, provider: fn(u64) -> Null) -> Pair<Endpoint> {
    let [caller, mut listener] = [2 * seed, 2 * seed + 1].map(|seed| endpoint(seed, small_buffers(), provider(seed)));
    listener.listen(Mode::Stream).expect("it has streams");
    Pair::new(caller, listener).seed(seed)
}

/// Both directions arrived whole and ended, and neither side saw a fault.
#[track_caller]
fn assert_ended(run: &Run, what: &str) {
    assert_eq!([run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat(), [""; 0], "{what}");
    for host in [CALLER, LISTENER] {
        let flow = &run.flows(host)[0];
        assert!(flow.received().ended, "{what}, host {host}");
        let reason = flow.closed.map(|(_, reason)| reason);
        assert!(matches!(reason, None | Some(ConnectionLost::ClosedByPeer)), "{what}, host {host}: {reason:?}");
        assert!(flow.finished_at.is_some() || reason.is_some(), "{what}, host {host}");
    }
}

#[test]
fn both_directions_arrive_whole_and_end_over_bad_paths_of_many_shapes() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let path = PathSpec {
            loss: Some(LossSpec::Bernoulli(0.1 * rng.unit())),
            corrupt: 0.02 * rng.unit(),
            duplicate: 0.05 * rng.unit(),
            reorder: Some(ReorderSpec { probability: 0.1, extra_delay: Duration::from_millis(rng.below(30)) }),
            ..some_path(&mut rng)
        };
        // Nothing at all, one packet, whole packets, and any other length.
        let mut workload = || match rng.below(6) {
            0 => Workload::default(),
            1 => Workload::send(16),
            2 => Workload::send(FULL * (1 + rng.below(60))),
            _ => Workload::send(100_000 + rng.below(200_000)),
        };
        let [caller, listener] = [workload(), workload()].map(Workload::half_closing);
        let mut run = pair(seed, Null::new).path(path.clone()).caller(caller).listener(listener).start();
        let what = format!("seed {seed}: {caller:?}, {listener:?}, {path:?}");
        assert!(run.run_until_done(LIMIT), "{what}");
        run.run_for(Duration::from_secs(5));
        assert_ended(&run, &what);
    }
}

/// A reader that is slower than the path closes the window, also for the end.
#[test]
fn an_end_behind_a_closed_window_arrives_once_the_reader_has_made_room() {
    let slow = Workload::send(16).half_closing().reading_at(Rate::from_megabits_per_second(8));
    let mut run =
        pair(1, Null::new).path(clean_path()).caller(Workload::send(4 << 20).half_closing()).listener(slow).start();
    assert!(run.run_until_done(LIMIT));
    assert_ended(&run, "a slow reader");
    let caller = &run.flows(CALLER)[0];
    let sent = caller.sending_finished_at.or(caller.finished_at).expect("everything was acknowledged");
    let read = run.flows(LISTENER)[0].received().complete_at.expect("everything was read");
    assert!(sent < read, "the end is acknowledged, not awaited by the reader");
}

#[test]
fn both_directions_end_through_changes_of_keys_and_of_the_clients_address() {
    let outside = |port| ([198, 51, 100, 1], port).into();
    let nat = Nat::new(address(CALLER), outside(1_000));
    let often = |seed| Null::new(seed).with_confidentiality_limit(256);
    let workloads = [Workload::send(600_000), Workload::send(3_000_000)].map(Workload::half_closing);
    let mut run = pair(3, often).path(clean_path()).caller(workloads[0]).listener(workloads[1]).start();
    run.set_tap(Some(nat.tap()));
    // The client has ended its direction by then.
    run.run_for(Duration::from_millis(250));
    assert!(run.flows(CALLER)[0].sending_finished_at.is_some());
    nat.rebind(outside(2_000));
    assert!(run.run_until_done(LIMIT));
    assert_ended(&run, "a client that moves");
}

/// An answer may take its time.
#[test]
fn a_half_closed_connection_lives_as_long_as_its_peer() {
    let mut run = pair(4, Null::new)
        .path(clean_path())
        .caller(Workload::send(1_000).half_closing())
        .listener(Workload::default().kept_open())
        .start();
    run.run_for(Duration::from_secs(600));
    assert_eq!(run.flows(CALLER)[0].closed, None);
    let id = run.flows(LISTENER)[0].id();
    let written = run.command(LISTENER, |now, endpoint, _| endpoint.write(now, id, &[1; 1_000]));
    assert_eq!(written, Ok(1_000));
    run.run_for(Duration::from_secs(1));
    assert_eq!(run.flows(CALLER)[0].received().bytes, 1_000);
    run.set_tap(Some(Box::new(|_| TapAction::Drop)));
    run.run_for(Duration::from_secs(60));
    let reason = run.flows(CALLER)[0].closed.map(|(_, reason)| reason);
    assert!(matches!(reason, Some(ConnectionLost::PeerSilent(_))), "{reason:?}");
}

#[test]
fn nothing_is_sent_once_both_directions_have_ended() {
    let mut run = pair(5, Null::new)
        .path(clean_path())
        .caller(Workload::send(10_000).half_closing())
        .listener(Workload::send(20_000).half_closing())
        .start();
    assert!(run.run_until_done(LIMIT));
    run.run_for(Duration::from_secs(20));
    let hash = run.trace_hash();
    run.run_for(Duration::from_secs(600));
    assert_eq!(run.trace_hash(), hash);
}
