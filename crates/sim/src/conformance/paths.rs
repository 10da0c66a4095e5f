//! The requirements, each with its path.

use farhaul_netem::{LossSpec, PathSpec, ReorderSpec};
use farhaul_proto::{Endpoint, Streams};
use farhaul_units::{Duration, Instant, Rate, SeqNo};

use super::subject::{Checked, Subject, acked, finish, is_in_order, pair_under, path, run_until, transfer};
use crate::topology::path::{CALLER, address};
use crate::trace::{OutgoingDatagram, TapAction};
use crate::{Simulation, Workload};

/// Checks one requirement with one seed.
pub(super) type Requirement = fn(&Subject, u64) -> Checked;

pub(super) const REQUIREMENTS: &[(&str, Requirement)] = &[
    ("start-up", start_up),
    ("loss", loss),
    ("outage", outage),
    ("reordering", reordering),
    ("application-limited", application_limited),
    ("silence", silence),
    ("switch in", switch_in),
    ("switch out", switch_out),
    ("fast path", fast_path),
    ("slow path", slow_path),
    ("wrap", wrap),
    ("hostile reports", hostile_reports),
    ("sharing", sharing),
    ("determinism", determinism),
    ("messages", messages),
];

/// The part of an idle path that a flow uses at the least.
const LEAST_USE: u64 = 40;
/// The part of its fair share that a flow gets at the least.
const LEAST_SHARE: u64 = 20;
/// Messages of a controller to that of its peer, beyond one a call.
const MORE_MESSAGES: u64 = 64;
/// UDT's full acknowledgement: its type, and where the RTT with its variation, and the rate with the capacity, are.
const ACK: [u8; 2] = [0x80, 2];
const REPORTED_TIMES: core::ops::Range<usize> = 20..28;
const REPORTED_RATES: core::ops::Range<usize> = 32..40;

fn plain_rate() -> Rate {
    Rate::from_megabits_per_second(40)
}

fn plain() -> PathSpec {
    path(plain_rate(), Duration::from_millis(20))
}

fn lossy(probability: f64) -> PathSpec {
    PathSpec { loss: Some(LossSpec::Bernoulli(probability)), ..plain() }
}

fn start_up(subject: &Subject, seed: u64) -> Checked {
    let bytes = subject.bytes(2_000_000);
    let run = transfer(subject.pair(seed, plain()), bytes)?;
    let (taken, most) = (run.now() - Instant::ZERO, plain_rate().time_for(bytes) * LEAST_USE as u32);
    let is_slow = run.flows(CALLER)[0].finished_at.is_none_or(|at| at - Instant::ZERO > most);
    if is_slow { Err(format!("{bytes} bytes take {taken:?} on a path of {}", plain_rate())) } else { Ok(()) }
}

fn loss(subject: &Subject, seed: u64) -> Checked {
    transfer(subject.pair(seed, lossy(0.02)), subject.bytes(500_000)).map(drop)
}

fn outage(subject: &Subject, seed: u64) -> Checked {
    let mut run = subject.pair(seed, plain()).caller(Workload::send(subject.bytes(4_000_000))).start();
    run_until(&mut run, Instant::ZERO + Duration::from_millis(500))?;
    run.set_tap(Some(Box::new(|_| TapAction::Drop)));
    run.run_for(Duration::from_secs(3));
    run.set_tap(None);
    finish(&mut run)
}

fn reordering(subject: &Subject, seed: u64) -> Checked {
    let reorder = ReorderSpec { probability: 0.05, extra_delay: Duration::from_millis(5) };
    let path = PathSpec { reorder: Some(reorder), ..plain() };
    transfer(subject.pair(seed, path), subject.bytes(1_000_000)).map(drop)
}

/// Writes so many bytes.
fn write(run: &mut Simulation<Endpoint>, bytes: usize) -> Checked {
    let id = run.flows(CALLER)[0].id();
    let taken = run.command(CALLER, |now, transport, _| transport.write(now, id, &vec![7; bytes]));
    match taken {
        Ok(taken) if taken == bytes => Ok(()),
        Ok(taken) => Err(format!("at {}, there is room for {taken} of {bytes} bytes alone", run.now())),
        Err(error) => Err(format!("at {}, {error}", run.now())),
    }
}

/// A connection whose application is the test itself.
fn idle(subject: &Subject, seed: u64) -> Simulation<Endpoint> {
    let mut run = subject.pair(seed, plain()).listener(Workload::receive()).start();
    run.run_for(Duration::from_secs(1));
    run
}

/// Waits until so many bytes were acknowledged.
fn wait_for(run: &mut Simulation<Endpoint>, bytes: u64) -> Checked {
    let end = run.now() + Duration::from_secs(10);
    if run.run_until_true(end, |run| acked(run) == [bytes]) {
        return Ok(());
    }
    is_in_order(run)?;
    Err(format!("at {}, {:?} bytes of {bytes} are acknowledged", run.now(), acked(run)))
}

fn application_limited(subject: &Subject, seed: u64) -> Checked {
    let mut run = idle(subject, seed);
    let rounds = subject.bytes(60);
    for _ in 0..rounds {
        write(&mut run, 6_000)?;
        run.run_for(Duration::from_millis(50));
    }
    wait_for(&mut run, rounds * 6_000)
}

fn silence(subject: &Subject, seed: u64) -> Checked {
    let mut run = idle(subject, seed);
    for round in 1..=3 {
        write(&mut run, 100_000)?;
        wait_for(&mut run, round * 100_000)?;
        run.run_for(Duration::from_secs(20));
    }
    is_in_order(&run)
}

fn switch_in(subject: &Subject, seed: u64) -> Checked {
    let pair = pair_under("union", seed, lossy(0.001));
    switched(pair.caller(Workload::send(subject.bytes(3_000_000))).start(), subject.controller(seed))
}

fn switch_out(subject: &Subject, seed: u64) -> Checked {
    let pair = subject.pair(seed, lossy(0.001));
    let reno: farhaul_cc::Spec = "reno".parse().expect("it is built in");
    switched(pair.caller(Workload::send(subject.bytes(3_000_000))).start(), reno.build(seed))
}

fn switched(mut run: Simulation<Endpoint>, controller: Box<dyn farhaul_cc::Controller>) -> Checked {
    run_until(&mut run, Instant::ZERO + Duration::from_millis(300))?;
    let id = run.flows(CALLER)[0].id();
    if !run.command(CALLER, |now, transport, _| transport.set_controller(now, id, controller)) {
        return Err("the transfer was over before the switch".to_owned());
    }
    finish(&mut run)
}

fn fast_path(subject: &Subject, seed: u64) -> Checked {
    let path = path(Rate::from_megabits_per_second(10_000), Duration::from_micros(40));
    transfer(subject.pair(seed, path), subject.bytes(2_000_000)).map(drop)
}

fn slow_path(subject: &Subject, seed: u64) -> Checked {
    let path = path(Rate::from_bits_per_second(256_000), Duration::from_millis(600));
    transfer(subject.pair(seed, path), subject.bytes(100_000)).map(drop)
}

fn wrap(subject: &Subject, seed: u64) -> Checked {
    let first = SeqNo::MAX.minus(300);
    transfer(subject.pair_from(seed, lossy(0.002), Some(first)), subject.bytes(1_000_000)).map(drop)
}

fn hostile_reports(subject: &Subject, seed: u64) -> Checked {
    let mut run = subject.pair(seed, plain()).caller(Workload::send(subject.bytes(1_000_000))).start();
    let mut count = 0_usize;
    let mut earlier: Option<Vec<u8>> = None;
    run.set_tap(Some(Box::new(move |datagram: &mut OutgoingDatagram<'_>| {
        let is_report = datagram.from != address(CALLER) && datagram.bytes.starts_with(&ACK);
        if is_report && datagram.bytes.len() >= REPORTED_RATES.end {
            let claims = [[0_u8; 8], [0xFF; 8], [0, 0, 0, 1, 0, 0, 0, 1], [0, 0, 0, 0, 0x7F, 0xFF, 0xFF, 0xFF]];
            datagram.bytes[REPORTED_RATES].copy_from_slice(&claims[count % claims.len()]);
            datagram.bytes[REPORTED_TIMES].copy_from_slice(&claims[count / claims.len() % claims.len()]);
            count += 1;
            if let Some(earlier) = earlier.replace(datagram.bytes.clone()) {
                datagram.forged.push((datagram.from, datagram.to, earlier));
            }
        }
        TapAction::Pass
    })));
    finish(&mut run)
}

fn sharing(subject: &Subject, seed: u64) -> Checked {
    let half = Duration::from_secs(subject.bytes(4));
    let calls = [Instant::ZERO, Instant::ZERO + Duration::from_millis(500)];
    let path = path(Rate::from_megabits_per_second(10), Duration::from_millis(20));
    let mut run = subject.pair(seed, path).caller(Workload::send_without_end()).calls(calls).start();
    run_until(&mut run, Instant::ZERO + half)?;
    let before = acked(&run);
    run_until(&mut run, Instant::ZERO + half * 2)?;
    let gained: Vec<u64> = acked(&run).iter().zip(before).map(|(after, before)| after - before).collect();
    let total: u64 = gained.iter().sum();
    match gained.iter().find(|bytes| **bytes * 2 * LEAST_SHARE < total) {
        Some(bytes) => Err(format!("one of two flows gets {bytes} of {total} bytes")),
        None => Ok(()),
    }
}

fn determinism(subject: &Subject, seed: u64) -> Checked {
    let bytes = subject.bytes(500_000);
    let [one, other] = [(); 2].map(|()| transfer(subject.pair(seed, lossy(0.01)), bytes));
    let (one, other) = (one?.trace_hash(), other?.trace_hash());
    if one == other { Ok(()) } else { Err("two runs with the same seed differ".to_owned()) }
}

/// Looks at what all requirements before have caused, and a transfer.
fn messages(subject: &Subject, seed: u64) -> Checked {
    transfer(subject.pair(seed, plain()), subject.bytes(100_000))?;
    let (calls, messages) = subject.tally();
    if messages > calls + MORE_MESSAGES {
        return Err(format!("it sends {messages} messages to that of its peer in {calls} calls"));
    }
    Ok(())
}
