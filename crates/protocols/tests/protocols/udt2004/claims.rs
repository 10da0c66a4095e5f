//! The paper's statements about overhead and behaviour (A-claims of the experiments).

use std::cell::Cell;
use std::rc::Rc;

use farhaul_netem::{PathSpec, ReorderSpec};
use farhaul_proto::{Config, Stats};
use farhaul_sim::topology::path::{CALLER, LISTENER, UP};
use farhaul_sim::{TapAction, Workload};
use farhaul_units::{Duration, Rate};
use farhaul_wire::udt2004::{Control, Packet};

use crate::udt2004::scenario::{LIMIT, pair, paper, paper_with, path, stats, throughput, utilisation};

/// Data packets received, acknowledgements sent and confirmations received between `from` and `to` milliseconds.
fn counts(config: fn() -> Config, path: PathSpec, (from, to): (u64, u64)) -> [u64; 3] {
    let mut run = pair(1, config).path(path).caller(Workload::send_without_end()).start();
    let at = |stats: [Stats; 2]| [1, 1, 0].map(|host: usize| stats[host].totals);
    run.run_for(Duration::from_millis(from));
    let before = at([stats(&run, CALLER), stats(&run, LISTENER)]);
    run.run_for(Duration::from_millis(to - from));
    let after = at([stats(&run, CALLER), stats(&run, LISTENER)]);
    [
        after[0].packets_received - before[0].packets_received,
        after[1].acks_sent - before[1].acks_sent,
        // Each received acknowledgement is confirmed once.
        after[2].acks_received - before[2].acks_received,
    ]
}

/// §3.4.1: at 1 Gbit/s and 1500 bytes there are 833 data packets per ACK and ACK2.
#[test]
fn a_gigabit_has_833_data_packets_to_an_acknowledgement_and_its_confirmation() {
    let [data, acks, confirmations] = counts(paper, path(1_000, 10, 1_000), (1_500, 3_000));
    let per_ack = data as f64 / acks as f64;
    assert!((815.0..=834.0).contains(&per_ack), "{data} packets, {acks} acknowledgements: {per_ack:.1}");
    assert!(confirmations.abs_diff(acks) <= 2, "{acks} acknowledgements, {confirmations} received");
}

/// §3.4.1: at no more than one packet per SYN interval, there are as many data packets as ACKs and ACK2s.
#[test]
fn one_packet_in_two_syns_has_one_acknowledgement_and_one_confirmation() {
    // 47.5 packets per second, and every sixteenth leaves with the next. At 50, pairs could always meet the tick of the receiver's clock
    // between their packets.
    let slow = || Config { max_rate: Some(Rate::from_bits_per_second(570_000)), ..paper() };
    let [data, acks, confirmations] = counts(slow, path(100, 10, 100), (2_000, 12_000));
    let pairs = data / 16;
    assert!(acks.abs_diff(data - pairs) <= 3, "{data} packets, {pairs} pairs, {acks} acknowledgements");
    assert!(confirmations.abs_diff(acks) <= 1, "{acks} acknowledgements, {confirmations} received");
}

/// §3.4.2: at worst, with every other packet lost, immediate reports are half of the packets.
#[test]
fn immediate_reports_are_at_most_half_of_the_packets_when_every_other_one_is_lost() {
    let (data, reports) = (Rc::new(Cell::new(0u64)), Rc::new(Cell::new(0u64)));
    let (seen, reported) = (Rc::clone(&data), Rc::clone(&reports));
    let run = pair(2, || paper_with("fixed:rate=5mbit")).path(path(100, 20, 1_000)).caller(Workload::send(1 << 20));
    let mut run = run.start();
    let mut next = None;
    run.set_tap(Some(Box::new(move |datagram| match Packet::decode(datagram.bytes) {
        Ok(Packet::Data { seq, .. }) => {
            seen.set(seen.get() + 1);
            let expected = *next.get_or_insert(seq);
            let is_new = seq.distance_from(expected) >= 0;
            if is_new {
                next = Some(seq.plus(1));
            }
            // Every other original is lost, but no retransmission, so that all reports are immediate.
            if is_new && !seq.value().is_multiple_of(2) { TapAction::Drop } else { TapAction::Pass }
        }
        Ok(Packet::Control(Control::Nak(_))) => {
            reported.set(reported.get() + 1);
            TapAction::Pass
        }
        _ => TapAction::Pass,
    })));
    assert!(run.run_until_done(LIMIT));
    assert!(reports.get() > 100, "{} reports: the test tests nothing", reports.get());
    assert!(reports.get() * 2 <= data.get(), "{} reports of {} packets", reports.get(), data.get());
}

/// §4.1: if the queue is long enough to show the growing delay, no packet is lost.
#[test]
fn nothing_is_lost_when_the_queue_suffices_and_delay_is_heeded() {
    let (rate, mut run) = throughput(paper, path(100, 10, 5_000), (5, 20));
    let (sender, receiver) = (stats(&run, CALLER), stats(&run, LISTENER));
    assert_eq!(run.link_counters(UP).dropped_queue.packets, 0);
    assert_eq!((sender.totals.packets_lost_sending, receiver.totals.packets_lost_receiving), (0, 0));
    assert!(receiver.totals.delay_warnings_sent > 0, "it was the warnings that ended slow start");
    assert!(sender.totals.delay_warnings_received > 0);
    assert!(utilisation(rate, 100) >= 0.944, "{rate}");
}

/// §4.6: a gap that is reported only after N more packets does not count overtaken packets as lost.
#[test]
fn waiting_for_late_packets_raises_the_utilisation_of_a_path_that_reorders() {
    let reorder = Some(ReorderSpec { probability: 0.01, extra_delay: Duration::from_micros(300) });
    let used = |packets| {
        let config = || Config { reorder_tolerance: packets, ..paper() };
        let (rate, run) = throughput(config, PathSpec { reorder, ..path(100, 20, 200) }, (2, 12));
        (utilisation(rate, 100), stats(&run, CALLER).totals.packets_retransmitted)
    };
    let [none, some, many] = [0, 1, 8].map(used);
    assert!(none.0 < 0.9 * many.0 && none.0 < some.0 + 0.05, "{none:?} {some:?} {many:?}");
    assert!(many.0 >= 0.944, "{many:?}");
}
