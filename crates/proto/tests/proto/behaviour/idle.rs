//! An idle connection survives at little cost while both sides live.

use farhaul_proto::{Config, ConnectionLost};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair, UP};
use farhaul_sim::{TapAction, Workload};
use farhaul_units::Duration;

use crate::behaviour::scenario::{clean_path, endpoint, listener, pair, small_buffers};

const HOUR: Duration = Duration::from_secs(3_600);

#[test]
fn an_idle_connection_lives_for_an_hour_on_few_packets() {
    let workload = Workload::send(10_000).kept_open();
    let mut run = pair(1, small_buffers).path(clean_path()).caller(workload).start();
    run.run_for(HOUR);
    for host in [CALLER, LISTENER] {
        assert_eq!(run.flows(host)[0].closed, None);
    }
    assert_eq!(run.missing(CALLER, LISTENER), [""; 0]);
    // About one keep-alive per ten seconds from each side, perhaps answered.
    let packets = run.link_counters(UP).pushed.packets;
    assert!((300..1_500).contains(&packets), "{packets} packets in an hour");
}

#[test]
fn the_silence_of_a_peer_ends_an_idle_connection() {
    let workload = Workload::send(10_000).kept_open();
    let mut run = pair(2, small_buffers).path(clean_path()).caller(workload).start();
    run.run_for(Duration::from_secs(60));
    run.set_tap(Some(Box::new(|_| TapAction::Drop)));
    let cut = run.now();
    run.run_for(Duration::from_secs(60));
    for host in [CALLER, LISTENER] {
        let (at, reason) = run.flows(host)[0].closed.expect("it is over");
        assert!(matches!(reason, ConnectionLost::PeerSilent(_)), "{reason:?}");
        // The peer's last packet may have come a keep-alive interval before the cut.
        let silence = at - cut;
        assert!((17..33).contains(&silence.as_secs()), "closed {silence:?} after the cut");
    }
}

#[test]
fn a_side_with_little_patience_holds_on_to_a_peer_that_speaks_more_rarely() {
    for patience in [1, 3, 8] {
        let caller = Config { peer_timeout: Duration::from_secs(patience), ..small_buffers() };
        let run = Pair::new(endpoint(1, caller), listener(2, small_buffers()));
        let mut run = run.path(clean_path()).caller(Workload::send(10_000).kept_open()).start();
        run.run_for(HOUR / 10);
        for host in [CALLER, LISTENER] {
            assert_eq!(run.flows(host)[0].closed, None, "with a patience of {patience} s");
        }
    }
}
