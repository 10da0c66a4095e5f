//! Figures for people: how fast we and libudt are beside each other. Not run unless asked for, in a release build:
//! `cargo test --release -p farhaul --test interop -- --ignored --nocapture --test-threads 1`

use farhaul::Stream;
use farhaul_netem::{PathSpec, QueueSize};
use farhaul_udp::Clock;
use farhaul_units::{Duration, Instant, Rate};

use crate::content::stream;
use crate::here::Here;
use crate::libudt::{Libudt, Running};
use crate::long_path::LongPath;

/// How often everything is measured.
const RUNS: usize = 3;
/// libudt's settings for speed, for both of its roles.
const FAST: &str = "--unchecked --fc 100000 --sndbuf 64000000 --rcvbuf 64000000";
/// Round trip of the shared path.
const ROUND_TRIP: Duration = Duration::from_millis(16);
/// Duration of a transfer over the shared path, and on loopback, in seconds.
const SHARED_SECONDS: u64 = 20;
const LOOPBACK_SECONDS: u64 = 2;
/// libudt's send buffer on the shared path: what it has sent is not known better than to this.
const SEND_BUFFER: u64 = 1_000_000;

/// Sends for `seconds`.
fn send_for(to: &Stream, seconds: u64) {
    let (clock, block) = (Clock::start(), stream(1, 1 << 20));
    let end = Instant::ZERO + Duration::from_secs(seconds);
    while clock.now() < end {
        to.send_all(&block).unwrap();
    }
}

fn megabits(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 * 8e-6 / seconds
}

fn received(peer: Running) -> f64 {
    peer.report().figure("goodput_bps") / 1e6
}

fn libudt_to_libudt(libudt: Libudt) -> f64 {
    let (receiver, address) = libudt.listen(&format!("recv {FAST}"));
    libudt.connect(address, &format!("send --seconds {LOOPBACK_SECONDS} {FAST}")).report();
    received(receiver)
}

fn here_to_libudt(libudt: Libudt) -> f64 {
    let (receiver, address) = libudt.listen(&format!("recv {FAST}"));
    let here = Here::new();
    let to = here.connect(address).unwrap();
    send_for(&to, LOOPBACK_SECONDS);
    to.finish().unwrap();
    received(receiver)
}

fn libudt_to_here(libudt: Libudt) -> f64 {
    let here = Here::new();
    let listener = here.listen().unwrap();
    let sender = libudt.connect(here.local_addr(), &format!("send --seconds {LOOPBACK_SECONDS} {FAST}"));
    let from = Here::accept(&listener);
    let (clock, mut room, mut bytes) = (Clock::start(), vec![0; 1 << 20], 0);
    loop {
        match from.recv(&mut room).unwrap() {
            0 => break,
            got => bytes += got as u64,
        }
    }
    let goodput = megabits(bytes, (clock.now() - Instant::ZERO).as_secs_f64());
    sender.report();
    goodput
}

#[test]
#[ignore = "figures for people"]
fn goodput_on_loopback() {
    let Some(libudt) = Libudt::find() else { return };
    for _ in 0..RUNS {
        let (reference, to, from) = (libudt_to_libudt(libudt), here_to_libudt(libudt), libudt_to_here(libudt));
        println!("Mbit/s: libudt to libudt {reference:.0}, farhaul to libudt {to:.0}, libudt to farhaul {from:.0}");
    }
}

#[test]
#[ignore = "figures for people"]
fn a_fair_share_beside_libudt() {
    let Some(libudt) = Libudt::find() else { return };
    for _ in 0..RUNS {
        let (receivers, address) = libudt.listen("recv --unchecked --sockets 2");
        let rate = Some(Rate::from_megabits_per_second(100));
        let path = |seed| PathSpec {
            rate,
            delay: ROUND_TRIP / 2,
            queue: QueueSize::Bdp(ROUND_TRIP),
            seed,
            ..PathSpec::default()
        };
        let relay = LongPath::new(address, path(1), path(2));
        let action = format!("send --seconds {SHARED_SECONDS} --sndbuf {SEND_BUFFER} --linger 0");
        let theirs = libudt.connect(relay.address(), &action);
        let here = Here::new();
        let ours = here.connect(relay.address()).unwrap();
        send_for(&ours, SHARED_SECONDS);
        let stats = ours.stats().unwrap();
        ours.close();
        let sent = theirs.reports()[0].count("sent_bytes").saturating_sub(SEND_BUFFER);
        let [x, y] = [stats.totals.bytes_acked, sent].map(|bytes| megabits(bytes, SHARED_SECONDS as f64));
        let jain = (x + y) * (x + y) / (2.0 * (x * x + y * y));
        let report = relay.end();
        println!(
            "Mbit/s: farhaul {x:.1}, libudt {y:.1}, Jain {jain:.3}; retransmitted {} of {}; relay valid: {} {:?}",
            stats.totals.packets_retransmitted, stats.totals.packets_sent, report.valid, report.flaws
        );
        drop(receivers);
    }
}
