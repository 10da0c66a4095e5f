//! Copies of genuine packets from an address of the attacker (B16). They arrive before the originals.

use core::net::SocketAddr;
use farhaul_proto::Streams;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use farhaul_proto::Config;
use farhaul_sim::topology::path::{CALLER, LISTENER, address};
use farhaul_sim::{OutgoingDatagram, TapAction, Workload};
use farhaul_units::{Duration, Instant};
use farhaul_wire::secure::Header;

use crate::attack_secure::bench::{
    BYTES, LIMIT, Run, assert_whole, endpoint, finish, null, pair_of, undisturbed, upload,
};

fn thief(port: u16) -> SocketAddr {
    SocketAddr::from(([203, 0, 113, 66], port))
}

fn peer(run: &Run) -> SocketAddr {
    run.transport(LISTENER).peer(run.flows(LISTENER)[0].id()).unwrap()
}

/// Sends a copy from `source` in front of a datagram of the caller.
fn race(datagram: &mut OutgoingDatagram<'_>, source: SocketAddr) -> TapAction {
    let genuine = (datagram.from, datagram.to, datagram.bytes.clone());
    datagram.forged.extend([(source, datagram.to, datagram.bytes.clone()), genuine]);
    TapAction::Drop
}

/// Bytes that the server has taken from an address and sent there.
type Budgets = Rc<RefCell<BTreeMap<SocketAddr, (u64, u64)>>>;

fn assert_budgets(budgets: &Budgets) {
    for (address, (came, left)) in &*budgets.borrow() {
        assert!(*left <= 3 * came, "{left} bytes to {address} for {came}");
    }
}

/// An upload in which every copy of the attacker arrives first, from the source that `source` draws.
fn raced(mut source: impl FnMut(u64) -> SocketAddr + 'static) -> (Run, Budgets) {
    let (mut run, budgets) = (upload(), Budgets::default());
    run.run_for(Duration::from_millis(300));
    let (counts, mut copies) = (Rc::clone(&budgets), 0);
    run.set_tap(Some(Box::new(move |datagram| {
        if datagram.from == address(CALLER) {
            copies += 1;
            let from = source(copies);
            counts.borrow_mut().entry(from).or_default().0 += datagram.bytes.len() as u64;
            return race(datagram, from);
        }
        if let Some((_, left)) = counts.borrow_mut().get_mut(&datagram.to) {
            *left += datagram.bytes.len() as u64;
        }
        TapAction::Pass
    })));
    (run, budgets)
}

#[test]
fn b16_copies_that_win_every_race_move_no_connection() {
    let (best, _) = undisturbed();
    let (mut run, budgets) = raced(|_| thief(1));
    let end = Instant::ZERO + LIMIT;
    assert!(!run.run_until_true(run.now() + best / 2, |run| peer(run) != address(CALLER)));
    let (time, _) = finish(&mut run);
    assert!(run.now() < end && peer(&run) == address(CALLER));
    // Each packet goes up twice, and the path is the bottleneck.
    assert!(time < best * 3, "{time:?} in place of {best:?}");
    let (came, left) = budgets.borrow()[&thief(1)];
    assert!(left > 0 && left * 1_000 < came, "{left} bytes for {came}: some challenges, no data");
}

#[test]
fn b16_copies_from_many_sources_get_three_times_their_bytes_at_most() {
    let (mut run, budgets) = raced(|copy| thief((copy % 5_000) as u16 + 1));
    finish(&mut run);
    assert_budgets(&budgets);
    assert_eq!(peer(&run), address(CALLER));
}

/// Every tenth copy wins, and the others come late.
#[test]
fn b16_copies_that_win_some_races_move_no_connection_and_slow_none() {
    let (best, _) = undisturbed();
    let (mut run, budgets) = (upload(), Budgets::default());
    let (counts, mut copies) = (Rc::clone(&budgets), 0_u64);
    run.set_tap(Some(Box::new(move |datagram| {
        if let Some((_, left)) = counts.borrow_mut().get_mut(&datagram.to) {
            *left += datagram.bytes.len() as u64;
        }
        copies += 1;
        if datagram.from == address(CALLER) && copies.is_multiple_of(10) {
            counts.borrow_mut().entry(thief(1)).or_default().0 += datagram.bytes.len() as u64;
            return race(datagram, thief(1));
        }
        TapAction::Pass
    })));
    let (time, _) = finish(&mut run);
    assert!(time < best + best / 4, "{time:?} in place of {best:?}");
    assert_budgets(&budgets);
    assert_eq!(peer(&run), address(CALLER));
}

/// Packets that were captured so long ago that later ones have arrived.
#[test]
fn b16_old_packets_from_elsewhere_are_not_even_asked_about() {
    let (mut run, taped, asked) = (upload(), Rc::new(RefCell::new(Vec::new())), Rc::new(Cell::new(0)));
    let (tape, count) = (Rc::clone(&taped), Rc::clone(&asked));
    run.set_tap(Some(Box::new(move |datagram| {
        // A copied Initial packet is a call, and is answered as one.
        let in_connection = Header::decode(datagram.bytes).is_ok_and(|header| header.epoch.is_application());
        count.set(count.get() + u32::from(datagram.to == thief(1) && in_connection));
        if datagram.from != address(CALLER) {
            return TapAction::Pass;
        }
        tape.borrow_mut().push((datagram.now, datagram.bytes.clone()));
        // Some never arrive, so that their copies open.
        if tape.borrow().len().is_multiple_of(50) { TapAction::Drop } else { TapAction::Pass }
    })));
    for _ in 0..100 {
        run.run_for(Duration::from_millis(10));
        let now = run.now();
        let old = taped
            .borrow()
            .iter()
            .rev()
            .skip_while(|(at, _)| now - *at < Duration::from_millis(300))
            .take(300)
            .cloned()
            .collect::<Vec<_>>();
        for (_, packet) in old {
            run.inject(LISTENER, thief(1), &packet);
        }
    }
    finish(&mut run);
    assert_eq!(asked.get(), 0, "no challenge");
}

/// An attacker who forwards both ways and wins every race is a part of the path. Once he stops, the peer takes its
/// connection back.
#[test]
fn b16_a_forwarder_holds_a_connection_only_as_long_as_he_forwards() {
    let pair = pair_of(endpoint(1, Config::default(), null(1)), endpoint(2, Config::default(), null(2)));
    let mut run = pair.caller(Workload::exchange(BYTES)).listener(Workload::exchange(BYTES)).start();
    run.run_for(Duration::from_millis(300));
    let active = Rc::new(Cell::new(true));
    let forwards = Rc::clone(&active);
    run.set_tap(Some(Box::new(move |datagram| match (datagram.from == address(CALLER), datagram.to == thief(1)) {
        (true, _) if forwards.get() => race(datagram, thief(1)),
        (_, true) if forwards.get() => {
            datagram.forged.push((datagram.from, address(CALLER), datagram.bytes.clone()));
            TapAction::Drop
        }
        _ => TapAction::Pass,
    })));
    assert!(run.run_until_true(run.now() + Duration::from_secs(2), |run| peer(run) == thief(1)), "it moves");
    run.run_for(Duration::from_millis(200));
    active.set(false);
    let stopped = run.now();
    assert!(run.run_until_true(stopped + Duration::from_secs(1), |run| peer(run) == address(CALLER)), "and back");
    assert!(run.run_until_done(LIMIT));
    assert_whole(&run);
}
