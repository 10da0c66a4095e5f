//! Outages in pulses, and computers that were suspended.

use farhaul_proto::{Config, Endpoint, Event, Mode, Read, Streams, Transport};
use farhaul_sim::TapAction;
use farhaul_units::{Duration, Instant};

use crate::attack_secure::bench::{endpoint, finish, null, undisturbed, upload};
use crate::attack_secure::server::sent;

#[test]
fn b15_pulses_of_outage_leave_most_of_the_rate_between_them() {
    let (best, _) = undisturbed();
    let mut run = upload();
    run.set_tap(Some(Box::new(|datagram| {
        let in_pulse = datagram.now.as_micros() % 1_000_000 < 100_000;
        if in_pulse { TapAction::Drop } else { TapAction::Pass }
    })));
    let (time, _) = finish(&mut run);
    assert!(time < best * 6, "{time:?} in place of {best:?}");
}

/// Passes everything between two ends for a while. Both are served every 10 ms.
fn pump(ends: &mut [Endpoint; 2], now: &mut Instant, millis: u64) -> Vec<Event> {
    let address = |end: usize| std::net::SocketAddr::from(([10, 0, 0, end as u8 + 1], 9_000));
    let mut events = Vec::new();
    for _ in 0..millis / 10 {
        for end in [0, 1] {
            ends[end].handle_timeout(*now);
            for (_, mut datagram) in sent(&mut ends[end], *now) {
                let stride = datagram.len();
                ends[1 - end].handle_datagrams(*now, *now, address(end), &mut datagram, stride);
            }
        }
        for end in &mut *ends {
            events.extend(std::iter::from_fn(|| end.poll_event()));
        }
        *now += Duration::from_millis(10);
    }
    events
}

#[test]
fn b20_suspended_computers_keep_their_connection_and_change_old_keys() {
    let mut ends = [1, 2].map(|seed| endpoint(seed, Config::default(), null(seed)));
    ends[1].listen(Mode::Stream).expect("UDT has the mode");
    let mut now = Instant::from_nanos(1);
    let caller = ends[0].connect(now, ([10, 0, 0, 2], 9_000).into()).unwrap();
    let events = pump(&mut ends, &mut now, 1_000);
    let accepted = events.iter().find(|event| matches!(event, Event::Accepted(_))).unwrap().connection();
    for _ in 0..5 {
        now += Duration::from_secs(7_200);
        let events = pump(&mut ends, &mut now, 5_000);
        assert!(!events.iter().any(|event| matches!(event, Event::Closed(..))), "{events:?}");
        assert_eq!(ends[0].write(now, caller, b"still here").unwrap(), 10);
        pump(&mut ends, &mut now, 1_000);
        assert_eq!(ends[1].read(now, accepted, &mut [0; 100]).unwrap(), Read::Data(10));
    }
}
