//! Goodput of Farhaul and of libudt, for readers. Ignored by default; run in a release build:
//! `cargo test --release -p farhaul --test interop -- --ignored --nocapture --test-threads 1`

use std::net::SocketAddr;

use farhaul::{Endpoint, Stream};
use farhaul_netem::{PathSpec, QueueSize};
use farhaul_udp::Clock;
use farhaul_units::{Duration, Instant, Rate};

use crate::content::stream;
use crate::here::Here;
use crate::libudt::{Libudt, Running};
use crate::long_path::LongPath;

/// Measurements of each kind.
const RUNS: usize = 3;
/// libudt's settings for high rates, for both of its roles.
const FAST: &str = "--unchecked --fc 100000 --sndbuf 64000000 --rcvbuf 64000000";
/// RTT of the shared path.
const ROUND_TRIP: Duration = Duration::from_millis(16);
/// Duration of a transfer over the shared path, and on loopback, in seconds.
const SHARED_SECONDS: u64 = 20;
const LOOPBACK_SECONDS: u64 = 2;
/// libudt's send buffer on the shared path, which is the uncertainty of its sent bytes.
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
#[ignore = "long: measures for up to two minutes"]
fn goodput_on_loopback() {
    let Some(libudt) = Libudt::find() else { return };
    for _ in 0..RUNS {
        let (reference, to, from) = (libudt_to_libudt(libudt), here_to_libudt(libudt), libudt_to_here(libudt));
        println!("Mbit/s: libudt to libudt {reference:.0}, farhaul to libudt {to:.0}, libudt to farhaul {from:.0}");
    }
}

/// A relay to `server` of 100 Mbit/s with a queue of one bandwidth-delay product.
fn shared_path(server: SocketAddr) -> LongPath {
    let rate = Some(Rate::from_megabits_per_second(100));
    let (delay, queue) = (ROUND_TRIP / 2, QueueSize::Bdp(ROUND_TRIP));
    let path = |seed| PathSpec { rate, delay, queue, seed, ..PathSpec::default() };
    LongPath::new(server, path(1), path(2))
}

fn libudt_for_a_share(libudt: Libudt, path: &LongPath) -> Running {
    libudt.connect(path.address(), &format!("send --seconds {SHARED_SECONDS} --sndbuf {SEND_BUFFER} --linger 0"))
}

/// The rate of a sending libudt, in Mbit/s.
fn share(peer: Running) -> f64 {
    let sent = peer.report().count("sent_bytes").saturating_sub(SEND_BUFFER);
    megabits(sent, SHARED_SECONDS as f64)
}

fn print_shares(name: &str, one: f64, libudt: f64, path: LongPath) {
    let jain = (one + libudt) * (one + libudt) / (2.0 * (one * one + libudt * libudt));
    let report = path.end();
    let dropped = report.up.path.dropped_queue.packets;
    let validity = if report.valid { "valid".to_owned() } else { format!("INVALID {:?}", report.flaws) };
    println!("Mbit/s: {name} {one:.1}, libudt {libudt:.1}, Jain {jain:.3}; queue dropped {dropped}; relay {validity}");
}

#[test]
#[ignore = "long: measures for up to two minutes"]
fn shares_beside_libudt() {
    let Some(libudt) = Libudt::find() else { return };
    for controller in ["union", "udt"] {
        for _ in 0..RUNS {
            let (_receivers, address) = libudt.listen("recv --unchecked --sockets 2");
            let path = shared_path(address);
            let theirs = libudt_for_a_share(libudt, &path);
            let here = Here::with(Endpoint::builder().plain().controller(controller));
            let ours = here.connect(path.address()).unwrap();
            send_for(&ours, SHARED_SECONDS);
            let acked = ours.stats().unwrap().totals.bytes_acked;
            ours.close();
            print_shares(controller, megabits(acked, SHARED_SECONDS as f64), share(theirs), path);
        }
    }
}

#[test]
#[ignore = "long: measures for up to two minutes"]
fn shares_of_libudt_beside_itself() {
    let Some(libudt) = Libudt::find() else { return };
    for _ in 0..RUNS {
        let (_receivers, address) = libudt.listen("recv --unchecked --sockets 2");
        let path = shared_path(address);
        let both = [(); 2].map(|()| libudt_for_a_share(libudt, &path));
        let [one, other] = both.map(share);
        print_shares("libudt", one, other, path);
    }
}
