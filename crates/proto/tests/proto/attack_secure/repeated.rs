//! Genuine packets that arrive again, and numbers that wrap.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_proto::{Config, udt};
use farhaul_sim::topology::path::{CALLER, LISTENER, address};
use farhaul_sim::{TapAction, Workload};
use farhaul_units::{AckNo, Duration, MsgNo, SeqNo};
use farhaul_wire::secure::{Epoch, HEADER_LEN, Header};

use crate::attack_secure::bench::{
    BYTES, LIMIT, assert_whole, endpoint, finish, null, pair_of, path, stats, undisturbed, upload,
};

#[test]
fn b9_repeated_acknowledgements_raise_no_rate_and_count_once() {
    let (time, quiet) = undisturbed();
    let mut run = upload();
    run.set_tap(Some(Box::new(|datagram| {
        if datagram.from == address(LISTENER) {
            let copy = (datagram.from, datagram.to, datagram.bytes.clone());
            datagram.forged.extend([copy.clone(), copy.clone(), copy]);
        }
        TapAction::Pass
    })));
    let (repeated, stats) = finish(&mut run);
    let (acks, of_quiet) = (stats.totals.acks_received, quiet.totals.acks_received);
    assert!(acks <= of_quiet + of_quiet / 10, "{acks} acknowledgements, {of_quiet} without copies");
    let apart = repeated.abs_diff(time);
    assert!(apart <= time / 20, "{repeated:?} in place of {time:?}");
}

/// Everything that either side has sent comes again, 1 to 300 ms later, at the side for which it was.
#[test]
fn b1_b9_b11_a_replay_of_everything_reaches_nothing_inside() {
    for limit in [1 << 23, 512] {
        let often = |seed| null(seed).with_confidentiality_limit(limit);
        let pair = pair_of(endpoint(1, Config::default(), often(1)), endpoint(2, Config::default(), often(2)));
        let lossless = PathSpec { queue: QueueSize::Packets(100_000), ..path() };
        let workload = Workload::exchange(BYTES / 4);
        let mut run = pair.path(lossless).caller(workload).listener(workload).start();
        let taped = Rc::new(RefCell::new(Vec::new()));
        let tape = Rc::clone(&taped);
        run.set_tap(Some(Box::new(move |datagram| {
            let host = usize::from(datagram.to == address(LISTENER));
            tape.borrow_mut().push((host, datagram.from, datagram.bytes.clone()));
            TapAction::Pass
        })));
        for _ in 0..20 {
            run.run_for(Duration::from_millis(50));
            let before = run.now();
            for (host, from, bytes) in taped.take() {
                run.inject(host, from, &bytes);
            }
            assert_eq!(run.now(), before);
        }
        assert!(run.run_until_done(LIMIT));
        assert_whole(&run);
        for host in [CALLER, LISTENER] {
            assert_eq!(stats(&run, host).totals.packets_duplicate, 0, "limit {limit}");
        }
    }
}

/// Copies with other epochs in their headers, in front of the originals. Keys change after every 256 packets.
#[test]
fn b1_b12_forged_epochs_change_no_keys_while_the_genuine_ones_do() {
    let often = |seed| null(seed).with_confidentiality_limit(512);
    let pair = pair_of(endpoint(1, Config::default(), often(1)), endpoint(2, Config::default(), often(2)));
    let workload = Workload::exchange(BYTES / 8);
    let mut run = pair.caller(workload).listener(workload).start();
    let genuine = Rc::new(RefCell::new(BTreeSet::new()));
    let (epochs, mut count) = (Rc::clone(&genuine), 0_u64);
    run.set_tap(Some(Box::new(move |datagram| {
        let Ok(header) = Header::decode(datagram.bytes) else { return TapAction::Pass };
        if !header.epoch.is_application() {
            return TapAction::Pass;
        }
        epochs.borrow_mut().insert(header.epoch);
        count += 1;
        let forged = [header.epoch.0 + 1, header.epoch.0 - 1, header.epoch.0 + 2, 0, 2, u8::MAX];
        let mut copy = datagram.bytes.clone();
        let epoch = Epoch(forged[count as usize % forged.len()]);
        copy[..HEADER_LEN].copy_from_slice(&Header { epoch, ..header }.bytes());
        let original = (datagram.from, datagram.to, datagram.bytes.clone());
        datagram.forged.extend([(datagram.from, datagram.to, copy), original]);
        TapAction::Drop
    })));
    assert!(run.run_until_done(LIMIT));
    assert_whole(&run);
    let epochs = genuine.borrow();
    assert!(epochs.len() >= 6, "{epochs:?}");
    let consecutive = epochs.iter().zip(epochs.iter().skip(1)).all(|(one, next)| one.next() == *next);
    assert!(consecutive, "{epochs:?}");
}

/// More epochs than their numbers can tell apart.
#[test]
fn b12_epochs_wrap_while_data_flow() {
    let often = |seed| null(seed).with_confidentiality_limit(256);
    let pair = pair_of(endpoint(1, Config::default(), often(1)), endpoint(2, Config::default(), often(2)));
    let mut run = pair.caller(Workload::send(6 * BYTES)).listener(Workload::receive()).start();
    let turns = Rc::new(RefCell::new((Epoch::FIRST_APPLICATION, 0)));
    let seen = Rc::clone(&turns);
    run.set_tap(Some(Box::new(move |datagram| {
        if let Ok(header) = Header::decode(datagram.bytes)
            && header.epoch == seen.borrow().0.next()
        {
            let turn = seen.borrow().1 + 1;
            *seen.borrow_mut() = (header.epoch, turn);
        }
        TapAction::Pass
    })));
    assert!(run.run_until_done(LIMIT));
    assert_whole(&run);
    assert_eq!(stats(&run, LISTENER).totals.packets_invalid, 0);
    let (_, turns) = *turns.borrow();
    assert!(turns > 300, "{turns}");
}

#[test]
fn b12_all_numbers_wrap_under_packet_protection_in_the_middle_of_losses() {
    for before in [0, 15, 63, 1_000] {
        let config = || {
            let udt = udt::Config {
                initial_ack: AckNo::new(SeqNo::MAX.value() - before / 10),
                initial_message: MsgNo::new(MsgNo::MASK - before),
                ..udt::Config::default()
            };
            Config { udt, initial_seq: Some(SeqNo::MAX.minus(before)), ..Config::default() }
        };
        let lossy = PathSpec { loss: Some(LossSpec::Bernoulli(0.01)), ..path() };
        let pair = pair_of(endpoint(1, config(), null(1)), endpoint(2, config(), null(2))).path(lossy);
        let mut run = pair.caller(Workload::exchange(4_000_000)).listener(Workload::exchange(4_000_000)).start();
        assert!(run.run_until_done(LIMIT), "{before}");
        assert_whole(&run);
    }
}
