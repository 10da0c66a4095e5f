//! B21: a peer with keys whose end of a direction contradicts its data.

use farhaul_proto::{Config, ConnectionLost, PeerMisbehaved};
use farhaul_sim::topology::path::{CALLER, LISTENER};
use farhaul_sim::{Integrity, Received, TapAction, Workload};
use farhaul_units::Duration;
use farhaul_wire::udt4::{DataHeader, HEADER_LEN, is_control};

use crate::attack_secure::bench::{LIMIT, Liar, Run, endpoint, null, pair_of, stats};

/// An upload whose client ends its direction. `change` has its data packets, and how many came before.
fn lying(bytes: u64, mut change: impl FnMut(&mut Vec<u8>, u64) + 'static) -> Run {
    let pair = pair_of(endpoint(1, Config::default(), null(1)), endpoint(2, Config::default(), null(2)));
    let mut run = pair.caller(Workload::send(bytes).half_closing()).listener(Workload::send(16).half_closing()).start();
    let (liar, mut count) = (Liar::at(CALLER), 0);
    run.set_tap(Some(Box::new(move |datagram| {
        liar.rewrite(datagram, |packet| {
            if !is_control(packet) {
                change(packet, count);
                count += 1;
            }
        });
        TapAction::Pass
    })));
    run
}

/// The server ends the connection for this reason, and has read no byte that was not sent.
#[track_caller]
fn given_up(mut run: Run) -> Received {
    run.run_for(Duration::from_secs(5));
    let server = &run.flows(LISTENER)[0];
    let reason = server.closed.map(|(_, reason)| reason);
    assert_eq!(reason, Some(ConnectionLost::PeerMisbehaved(PeerMisbehaved::EndContradicted)));
    assert!(stats(&run, LISTENER).memory < 16 << 20);
    assert_eq!(server.received().integrity, Integrity::Intact);
    *server.received()
}

#[test]
fn b21_data_behind_an_end_in_their_middle_are_not_read() {
    for at in [0, 1, 200] {
        let received = given_up(lying(2_000_000, move |packet, count| {
            if count == at {
                packet.truncate(HEADER_LEN);
            }
        }));
        // The peer has ended its stream there, by its own word.
        assert!(received.bytes <= at * 1_500, "{received:?}");
    }
}

#[test]
fn b21_an_end_that_moves_is_no_end() {
    for distance in [1, 5_000] {
        let mut first = true;
        let received = given_up(lying(100_000, move |packet, _| {
            if packet.len() == HEADER_LEN && std::mem::take(&mut first) {
                let (header, _) = DataHeader::decode(packet).unwrap();
                let moved = DataHeader { seq: header.seq.plus(distance), ..header };
                moved.encode((&mut packet[..]).try_into().unwrap());
            }
        }));
        assert!(!received.ended, "{received:?}");
    }
}

#[test]
fn b21_an_end_that_overtakes_data_does_not_replace_them() {
    // The third packet behind it has data in the place of the end.
    let received = given_up(lying(100_000, move |packet, count| {
        if count == 20 {
            packet.truncate(HEADER_LEN);
            let (header, _) = DataHeader::decode(packet).unwrap();
            DataHeader { seq: header.seq.plus(3), ..header }.encode((&mut packet[..]).try_into().unwrap());
        }
    }));
    assert!(!received.ended && received.bytes <= 20 * 1_500, "{received:?}");
}

/// Ends far outside the window cost nothing, and change nothing.
#[test]
fn b21_an_end_far_ahead_does_not_count() {
    let mut far = false;
    let mut run = lying(100_000, move |packet, count| {
        if count == 20 && !std::mem::replace(&mut far, true) {
            packet.truncate(HEADER_LEN);
            packet[0] = (packet[0] + 0x20) & 0x7F;
        }
    });
    assert!(run.run_until_done(LIMIT));
    assert_eq!(run.missing(CALLER, LISTENER), [""; 0]);
    assert!(run.flows(LISTENER)[0].received().ended);
}
