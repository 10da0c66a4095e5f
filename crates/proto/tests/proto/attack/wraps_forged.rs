//! Forged acknowledgements, confirmations and RTTs while numbers wrap (attacks B2, B3, B9 and B12 at once). The forged
//! numbers lie on both sides of the wrap.

use farhaul_netem::{LossSpec, PathSpec};
use farhaul_proto::{Config, Endpoint, Entropy, Mode, Stats, Streams, udt};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_sim::{Content, Integrity, OutgoingDatagram, Simulation, TapAction};
use farhaul_units::{AckNo, Duration, Rate, Rng, SeqNo};
use farhaul_wire::udt4::{Ack, Control, DataHeader, Packet, Timestamp, destination};

use crate::attack::bench::{encode, with};

/// The time after which a connection's time stamps wrap: 2^32 µs.
const STAMP_WRAP: Duration = Duration::from_micros(1 << 32);
/// Bytes sent in each direction: about 4100 packets.
const BYTES: u64 = 6_000_000;
/// Packets before their numbers wrap, and acknowledgements before theirs do.
const PACKETS_BEFORE: u32 = 2_000;
const ACKS_BEFORE: u32 = 60;

/// An RTT of 20 ms and 50 Mbit/s, with a loss of 0.1 %.
fn path() -> PathSpec {
    PathSpec {
        rate: Some(Rate::from_megabits_per_second(50)),
        delay: Duration::from_millis(10),
        loss: Some(LossSpec::Bernoulli(0.001)),
        ..PathSpec::default()
    }
}

/// An attack on each departing datagram. It may change the datagram and forge others.
type Attack = Box<dyn FnMut(&mut OutgoingDatagram<'_>, &mut Rng)>;

/// Transfers in both directions. In the middle, packet numbers, acknowledgement numbers and time stamps wrap. Returns
/// the duration, and the counters of both sides.
fn transfer(mut attack: Attack) -> (Duration, [Stats; 2]) {
    let end = |seed: u8| {
        let config = Config {
            initial_seq: Some(SeqNo::MAX.minus(PACKETS_BEFORE)),
            ..with(udt::Config { initial_ack: AckNo::new(SeqNo::MAX.value() - ACKS_BEFORE), ..Default::default() })
        };
        let mut end = udt::endpoint(config, Entropy { cookie_key: [seed; 16], seed: seed.into() });
        end.listen(Mode::Stream).expect("UDT has the mode");
        end
    };
    let mut run = Pair::new(end(1), end(2)).path(path()).seed(5).start();
    run.run_for(STAMP_WRAP - Duration::from_millis(500));
    let mut rng = Rng::new(9);
    run.set_tap(Some(Box::new(move |datagram| {
        attack(datagram, &mut rng);
        TapAction::Pass
    })));
    let begin = run.now();
    let limit = begin + Duration::from_secs(120);
    let (contents, mut written) = ([1, 2].map(content), [0; 2]);
    while !is_complete(&run) {
        assert!(run.now() < limit, "written: {written:?}");
        for host in [CALLER, LISTENER] {
            let id = run.flows(host)[0].id();
            let taken = run.command(host, |now, end, _| end.write(now, id, &contents[host][written[host]..]));
            written[host] += taken.expect("the connection lives");
        }
        run.run_for(Duration::from_millis(5));
    }
    let stats = [CALLER, LISTENER].map(|host| {
        let flow = &run.flows(host)[0];
        assert_eq!(flow.received().integrity, Integrity::Intact);
        run.transport(host).stats(run.now(), flow.id()).expect("it was not released")
    });
    (run.now() - begin, stats)
}

/// A stream that announces its length to the reader.
fn content(seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; BYTES as usize];
    Content::new(seed).fill(0, &mut bytes);
    bytes[8..16].copy_from_slice(&BYTES.to_le_bytes());
    bytes
}

fn is_complete(run: &Simulation<Endpoint>) -> bool {
    [CALLER, LISTENER].iter().all(|&host| run.flows(host)[0].received().complete_at.is_some())
}

/// The duration without an attack. Checks that all three kinds of numbers wrap.
fn undisturbed() -> Duration {
    let (time, stats) = transfer(Box::new(|_, _| {}));
    for Stats { totals, elapsed, .. } in stats {
        assert!(totals.packets_sent > u64::from(PACKETS_BEFORE) + 1_000, "packet numbers wrap");
        assert!(totals.acks_sent > u64::from(ACKS_BEFORE) + 20, "acknowledgement numbers wrap");
        assert!(elapsed > STAMP_WRAP, "time stamps wrap");
    }
    time
}

/// Checks that the attack prolongs the transfer by a factor below `times`. Returns both sides' smoothed and minimum RTT
/// in milliseconds.
fn withstands(times: u32, attack: Attack) -> [(u128, u128); 2] {
    let best = undisturbed();
    let (time, stats) = transfer(attack);
    assert!(time < best * times, "{time:?} instead of {best:?}");
    stats.map(|Stats { rtt, min_rtt, .. }| (rtt.as_millis(), min_rtt.as_millis()))
}

/// The same, and checks that both sides still know the RTT.
fn assert_withstands(times: u32, attack: Attack) {
    for (rtt, min_rtt) in withstands(times, attack) {
        assert!((20..200).contains(&rtt) && (20..200).contains(&min_rtt), "{rtt} ms, {min_rtt} ms at least");
    }
}

/// Forges a `control` packet in the name of the sender of `datagram`.
fn forge(datagram: &mut OutgoingDatagram<'_>, control: &Control<'_>) {
    if let Some(to) = destination(datagram.bytes).filter(|to| !to.is_none()) {
        datagram.forged.push((datagram.from, datagram.to, encode(to, control)));
    }
}

/// A number within `distance` of the wrap, on either side.
fn near_wrap(rng: &mut Rng, distance: u32) -> u32 {
    SeqNo::MAX.plus(rng.below(u64::from(distance) * 2) as u32).minus(distance).value()
}

/// The value of a forged field: an end of its range, or any value.
fn extreme(rng: &mut Rng) -> u32 {
    let any = rng.next_u64() as u32;
    [0, 1, 499, 500, 60_000_000, 60_000_001, 1 << 31, u32::MAX, any][rng.below(9) as usize]
}

/// An acknowledgement of everything before `seq`, in any of its three lengths, with extreme values in its other fields.
fn lie(seq: SeqNo, rng: &mut Rng) -> Ack {
    let number = AckNo::new(near_wrap(rng, 200));
    let [rtt, rtt_var] = [(); 2].map(|()| Duration::from_micros(extreme(rng).into()));
    let [free_buffer, arrival_rate, capacity] = [(); 3].map(|()| extreme(rng));
    match rng.below(3) {
        0 => Ack::Light { seq },
        1 => Ack::Medium { number, seq, rtt, rtt_var, free_buffer },
        _ => Ack::Full { number, seq, rtt, rtt_var, free_buffer, arrival_rate, capacity },
    }
}

#[test]
fn acks_of_packets_not_in_flight_are_ignored_on_either_side_of_the_wrap() {
    // The forged numbers lie up to a quarter of the number space away from the data in flight, on either side.
    assert_withstands(
        2,
        Box::new(|datagram, rng| {
            let distance = [5_000, 1 << 20, (1 << 29) - 10_000][rng.below(3) as usize];
            let far = if rng.chance(0.5) { SeqNo::MAX.plus(distance) } else { SeqNo::MAX.minus(distance) };
            let ack = lie(far, rng);
            forge(datagram, &Control::Ack(ack));
        }),
    );
}

#[test]
fn confirmations_guessed_around_the_wrap_neither_raise_the_round_trip_nor_stop_the_transfer() {
    // A guess that hits an outstanding acknowledgement lowers the measured RTT, as an early answer would.
    let known = withstands(
        2,
        Box::new(|datagram, rng| {
            let number = AckNo::new(near_wrap(rng, 300));
            forge(datagram, &Control::Ack2(number));
        }),
    );
    assert!(known.iter().all(|&(rtt, _)| rtt < 100), "{known:?}");
}

#[test]
fn round_trips_and_rates_that_a_peer_invents_while_numbers_wrap_stop_nothing() {
    // Its acknowledgements are true except for their measurements. An invented RTT moves the smoothed RTT of this peer's own
    // connection while no sample contradicts it. The minimum comes from this side's samples alone.
    let known = withstands(
        3,
        Box::new(|datagram, rng| {
            let Ok(Packet::Control { timestamp, destination, control: Control::Ack(ack) }) =
                Packet::decode(datagram.bytes)
            else {
                return;
            };
            let [rtt, rtt_var] = [(); 2].map(|()| Duration::from_micros(extreme(rng).into()));
            let lie = match ack {
                Ack::Light { .. } => return,
                Ack::Medium { number, seq, free_buffer, .. } => Ack::Medium { number, seq, rtt, rtt_var, free_buffer },
                Ack::Full { number, seq, free_buffer, arrival_rate, capacity, .. } => {
                    Ack::Full { number, seq, rtt, rtt_var, free_buffer, arrival_rate, capacity }
                }
            };
            datagram.bytes.clear();
            Control::Ack(lie).encode(timestamp, destination, datagram.bytes);
        }),
    );
    assert!(known.iter().all(|(_, min_rtt)| (20..200).contains(min_rtt)), "{known:?}");
}

#[test]
fn time_stamps_of_any_age_during_their_wrap_do_not_stop_the_transfer() {
    assert_withstands(
        3,
        Box::new(|datagram, rng| {
            if rng.chance(0.1) {
                DataHeader::set_timestamp(datagram.bytes, Timestamp::new(extreme(rng)));
            }
        }),
    );
}

#[test]
fn forged_acks_and_confirmations_at_once_do_not_stop_the_transfer() {
    let known = withstands(
        3,
        Box::new(|datagram, rng| {
            let distance = 5_000 + rng.below(1 << 28) as u32;
            let far = if rng.chance(0.5) { SeqNo::MAX.plus(distance) } else { SeqNo::MAX.minus(distance) };
            let ack = lie(far, rng);
            forge(datagram, &Control::Ack(ack));
            let number = AckNo::new(near_wrap(rng, 300));
            forge(datagram, &Control::Ack2(number));
        }),
    );
    assert!(known.iter().all(|&(rtt, _)| rtt < 100), "{known:?}");
}
