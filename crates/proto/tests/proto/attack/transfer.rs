//! Forged datagrams during a transfer, from an attacker who knows addresses, ports and socket ids, but not the path.

use core::net::SocketAddr;
use std::cell::RefCell;
use std::rc::Rc;

use farhaul_netem::PathSpec;
use farhaul_proto::{Config, Endpoint, Entropy, Mode, Stats, Streams, udt};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair, address};
use farhaul_sim::{OutgoingDatagram, Simulation, TapAction, Workload};
use farhaul_units::{AckNo, Duration, Instant, MsgNo, Rate, SeqNo, SeqRange};
use farhaul_wire::udt4::{
    Ack, Control, DataHeader, DropRequest, LossList, SocketId, Timestamp, destination, encode_losses, is_control,
};

use crate::attack::bench::{data, encode, only};

const BYTES: u64 = 20_000_000;

pub(crate) fn pair() -> Pair<Endpoint> {
    let end = |seed: u8| {
        let mut end = udt::endpoint(Config::default(), Entropy { cookie_key: [seed; 16], seed: seed.into() });
        end.listen(Mode::Stream).expect("UDT has the mode");
        end
    };
    let path = PathSpec {
        rate: Some(Rate::from_megabits_per_second(100)),
        delay: Duration::from_millis(10),
        ..PathSpec::default()
    };
    Pair::new(end(1), end(2)).path(path).caller(Workload::send(BYTES)).listener(Workload::receive())
}

/// The knowledge of an attacker on the path.
#[derive(Clone, Copy, Default)]
pub(crate) struct Overheard {
    /// Socket ids of both hosts, once data flows.
    pub(crate) ids: [SocketId; 2],
    /// The newest packet of the caller.
    seq: SeqNo,
    datagrams: u64,
}

/// Forges datagrams and their destination hosts from the overheard facts. Called for each datagram that departs.
pub(crate) type Forger = Box<dyn FnMut(Instant, &Overheard) -> Vec<(usize, Vec<u8>)>>;

pub(crate) fn eavesdrop(run: &mut Simulation<Endpoint>, mut forge: Forger) -> Rc<RefCell<Overheard>> {
    let shared = Rc::new(RefCell::new(Overheard::default()));
    let overheard = Rc::clone(&shared);
    run.set_tap(Some(Box::new(move |datagram: &mut OutgoingDatagram<'_>| {
        let mut overheard = overheard.borrow_mut();
        overheard.datagrams += 1;
        if let Some(id) = destination(datagram.bytes).filter(|id| !id.is_none()) {
            overheard.ids[usize::from(datagram.to == address(LISTENER))] = id;
        }
        if !is_control(datagram.bytes)
            && let Ok((header, _)) = DataHeader::decode(datagram.bytes)
        {
            overheard.seq = header.seq;
        }
        if overheard.ids.iter().all(|id| !id.is_none()) && overheard.seq != SeqNo::new(0) {
            // Forged datagrams accompany the departing one, so they go in the same direction.
            for (to, bytes) in forge(datagram.now, &overheard) {
                if datagram.to == address(to) {
                    datagram.forged.push((datagram.from, datagram.to, bytes));
                }
            }
        }
        TapAction::Pass
    })));
    shared
}

/// Runs the transfer with forgeries. Returns its duration and the sender's final counters.
fn attacked(forge: Forger) -> (Duration, Stats) {
    let mut run = pair().start();
    eavesdrop(&mut run, forge);
    let complete = |run: &Simulation<Endpoint>| {
        run.flows(LISTENER).first().is_some_and(|flow| flow.received().complete_at.is_some())
    };
    assert!(run.run_until_true(Instant::ZERO + Duration::from_secs(300), complete), "it does not arrive");
    assert_eq!(run.missing(CALLER, LISTENER), [""; 0]);
    let id = run.flows(CALLER)[0].id();
    (run.now() - Instant::ZERO, run.transport(CALLER).stats(run.now(), id).expect("it was not released"))
}

fn undisturbed() -> (Duration, Stats) {
    attacked(Box::new(|_, _| Vec::new()))
}

/// Repeats the same control packet to both hosts.
fn both(control: Control<'static>) -> Forger {
    Box::new(move |_, overheard| {
        let forged = |to: usize| (to, encode(overheard.ids[to], &control));
        vec![forged(CALLER), forged(LISTENER)]
    })
}

#[test]
fn b1_forged_shutdowns_in_mid_transfer_end_nothing() {
    let (time, _) = undisturbed();
    let (attacked, _) = attacked(both(Control::Shutdown));
    assert!(attacked < time * 2, "{attacked:?} instead of {time:?}");
}

#[test]
fn b1_forged_error_signals_in_mid_transfer_end_nothing() {
    let (time, _) = undisturbed();
    let (attacked, stats) = attacked(both(Control::ErrorSignal(4000)));
    assert!(attacked < time * 2, "{attacked:?} instead of {time:?}");
    assert!(stats.totals.error_signals_received > 100);
}

#[test]
fn b2_b3_forged_acks_beyond_what_was_sent_end_nothing_and_lose_nothing() {
    let (time, _) = undisturbed();
    let (attacked, stats) = attacked(Box::new(|_, overheard| {
        let seq = overheard.seq.plus(50_000);
        let rtt = Duration::from_millis(20);
        let number = AckNo::new(77);
        let full = Ack::Full { number, seq, rtt, rtt_var: rtt, free_buffer: 0, arrival_rate: 1, capacity: 1 };
        [Ack::Light { seq }, full].map(|ack| (CALLER, encode(overheard.ids[CALLER], &Control::Ack(ack)))).into()
    }));
    assert!(attacked < time * 2, "{attacked:?} instead of {time:?}");
    assert!(stats.totals.packets_invalid > 0);
}

#[test]
fn b5_b6_a_flood_of_forged_loss_reports_costs_one_retransmission_a_round_trip_at_most() {
    // A flood also looks like congestion, so it may slow the transfer, but not stop it.
    let (_, stats) = attacked(Box::new(|now, overheard| {
        if now > Instant::ZERO + Duration::from_secs(2) {
            return Vec::new();
        }
        let all = SeqRange::new(overheard.seq.minus(20_000), overheard.seq.plus(20_000));
        let mut body = Vec::new();
        encode_losses([all; 100].into_iter(), 364, &mut body);
        let list = LossList::from_body(&body).expect("the ranges are in order");
        vec![(CALLER, encode(overheard.ids[CALLER], &Control::Nak(list)))]
    }));
    // Everything in flight may be sent twice, and once more for each further RTT in flight.
    let totals = stats.totals;
    assert!(totals.packets_retransmitted < 2 * totals.packets_sent / 3, "{totals:?}");
}

#[test]
fn b7_forged_drop_requests_in_a_stream_change_nothing() {
    let (time, _) = undisturbed();
    let (attacked, stats) = attacked(Box::new(|_, overheard| {
        let range = SeqRange::new(overheard.seq.minus(100_000), overheard.seq.plus(100_000));
        let request = DropRequest { message: MsgNo::new(3), range };
        vec![(LISTENER, encode(overheard.ids[LISTENER], &Control::DropRequest(request)))]
    }));
    assert!(attacked < time * 2 && stats.totals.packets_retransmitted < 1_000);
}

#[test]
fn b10_b14_warnings_and_custom_packets_in_floods_do_not_stop_a_transfer() {
    attacked(both(Control::CongestionWarning));
    let (time, _) = undisturbed();
    let (attacked, _) = attacked(both(Control::Custom { kind: 3, body: b"four" }));
    assert!(attacked < time * 2);
}

#[test]
fn b11_data_from_elsewhere_and_far_ahead_is_not_mixed_in() {
    let mut run = pair().start();
    let overheard = eavesdrop(&mut run, Box::new(|_, _| Vec::new()));
    let stranger: SocketAddr = "192.0.2.9:9000".parse().expect("an address");
    for _ in 0..1_500 {
        run.run_for(Duration::from_millis(1));
        let Overheard { ids, seq, .. } = *overheard.borrow();
        if ids[LISTENER].is_none() {
            continue;
        }
        for ahead in 0..5 {
            run.inject(LISTENER, stranger, &data(ids[LISTENER], seq.plus(ahead), only(1), &[0xEE; 1456]));
        }
        let far = data(ids[LISTENER], seq.plus(1 << 29), only(1), &[0xEE; 1456]);
        run.inject(LISTENER, address(CALLER), &far);
        let mut shutdown = Vec::new();
        Control::Shutdown.encode(Timestamp::ZERO, ids[LISTENER], &mut shutdown);
        run.inject(LISTENER, stranger, &shutdown);
    }
    assert!(run.run_until_done(Duration::from_secs(60)));
    assert_eq!(run.missing(CALLER, LISTENER), [""; 0]);
}

#[test]
fn b15_pulses_of_outage_leave_most_of_the_rate_between_them() {
    let mut run = pair().start();
    // A tenth of each second loses everything, at about the interval of the expiration timer.
    run.set_tap(Some(Box::new(|datagram| {
        let in_pulse = datagram.now.as_micros() % 1_000_000 < 100_000;
        if in_pulse { TapAction::Drop } else { TapAction::Pass }
    })));
    let complete = |run: &Simulation<Endpoint>| {
        run.flows(LISTENER).first().is_some_and(|flow| flow.received().complete_at.is_some())
    };
    assert!(run.run_until_true(Instant::ZERO + Duration::from_secs(60), complete), "it does not arrive");
    let time = run.now() - Instant::ZERO;
    let (best, _) = undisturbed();
    assert!(time < best * 6, "{time:?} instead of {best:?}");
}
