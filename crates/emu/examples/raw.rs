//! Throughput of the machine without any protocol, as a reference for the benchmarks of Farhaul.
//!
//! ```text
//! raw [seconds=2] [size=1472] [segments=44] [copies=0]     one unpaced sender, loopback; counts received bytes
//! raw rate=900mbit relay=1gbit [delay=8ms] [pause=50us]      a paced sender, through the relay
//! ```
//!
//! `copies` are additional copies of the payload on each side, the cost of a protocol's send and receive buffers.
//! `gso=off` disables offloads. `segments` is the longest train.

use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use farhaul_emu::Relay;
use farhaul_netem::PathSpec;
use farhaul_udp::{Clock, Interest, Options, RecvBatch, SendStatus, Token, UdpSocket, Waiter, thread_cpu_time};
use farhaul_units::{Duration, Instant, Rate, parse_duration};

/// Shortest interval between two bursts of a paced sender.
const PACE: Duration = Duration::from_micros(50);

struct Settings {
    seconds: u64,
    size: usize,
    segments: usize,
    copies: usize,
    rate: Option<Rate>,
    options: Options,
}

/// Work of one side.
struct Side {
    bytes: u64,
    elapsed: Duration,
    cpu: Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: HashMap<String, String> = std::env::args()
        .skip(1)
        .map(|argument| argument.split_once('=').map(|(key, value)| (key.into(), value.into())).ok_or(argument))
        .collect::<Result<_, String>>()
        .map_err(|argument| format!("'{argument}' is not of the form key=value"))?;
    let number = |key: &str, default: usize| arguments.get(key).map_or(Ok(default), |value| value.parse());
    let settings = Settings {
        seconds: number("seconds", 2)? as u64,
        size: number("size", 1_472)?.max(1),
        segments: number("segments", 44)?.max(1),
        copies: number("copies", 0)?,
        rate: arguments.get("rate").map(|rate| rate.parse()).transpose()?,
        options: Options { offload: arguments.get("gso").is_none_or(|gso| gso != "off"), ..Options::default() },
    };
    let receiver = UdpSocket::bind("127.0.0.1:0".parse()?, settings.options)?;
    receiver.buffers().iter().filter_map(farhaul_udp::BufferReport::warning).for_each(|line| eprintln!("{line}"));
    let Some(rate) = arguments.get("relay") else {
        let (sent, received) = transfer(&settings, receiver.local_addr(), &receiver)?;
        print_transfer(&sent, &received);
        return Ok(());
    };
    let delay = arguments.get("delay").map_or(Ok(Duration::from_millis(8)), |delay| parse_duration(delay))?;
    let up = PathSpec { rate: Some(rate.parse()?), delay, ..PathSpec::default() };
    let mut relay = Relay::bind("127.0.0.1:0".parse()?, receiver.local_addr(), up.clone(), PathSpec { seed: 1, ..up })?;
    if let Some(pause) = arguments.get("pause") {
        relay = relay.with_pause(parse_duration(pause)?);
    }
    let (addr, stop) = (relay.local_addr(), AtomicBool::new(false));
    let report = thread::scope(|scope| {
        let running = scope.spawn(|| relay.run(&stop));
        let result = transfer(&settings, addr, &receiver);
        stop.store(true, Ordering::Relaxed);
        result.map(|(sent, received)| print_transfer(&sent, &received))?;
        running.join().expect("the relay does not panic")
    })?;
    println!(
        "relay     {:.3} cores, {} rounds/s, lateness p50 {:?} p99 {:?} max {:?}, dropped at queue {}, valid {} {:?}",
        report.cpu.as_secs_f64() / report.elapsed.as_secs_f64(),
        report.rounds * 1_000 / report.elapsed.as_millis().max(1) as u64,
        report.lateness.p50,
        report.lateness.p99,
        report.lateness.max,
        report.up.path.dropped_queue.packets,
        report.valid,
        report.flaws,
    );
    Ok(())
}

fn print_transfer(sent: &Side, received: &Side) {
    let rate = |side: &Side| Rate::from_bytes_in(side.bytes, side.elapsed).unwrap_or_default();
    let gigabytes = received.bytes as f64 / 1e9;
    println!("sent      {}, {:.3} cores", rate(sent), sent.cpu.as_secs_f64() / sent.elapsed.as_secs_f64());
    println!("received  {}, {:.3} cores", rate(received), received.cpu.as_secs_f64() / sent.elapsed.as_secs_f64());
    println!(
        "cpu       {:.3} s/GB received ({:.3} sending, {:.3} receiving)",
        (sent.cpu + received.cpu).as_secs_f64() / gigabytes,
        sent.cpu.as_secs_f64() / gigabytes,
        received.cpu.as_secs_f64() / gigabytes,
    );
}

/// Sends to `to` and counts the bytes that arrive at `receiver`.
fn transfer(settings: &Settings, to: SocketAddr, receiver: &UdpSocket) -> std::io::Result<(Side, Side)> {
    let over = AtomicBool::new(false);
    let checksum = AtomicU64::new(0);
    thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(settings, receiver, &over, &checksum));
        let sent = send(settings, to);
        over.store(true, Ordering::Relaxed);
        Ok((sent?, receiving.join().expect("the receiver does not panic")?))
    })
}

fn send(settings: &Settings, to: SocketAddr) -> std::io::Result<Side> {
    let socket = UdpSocket::bind("127.0.0.1:0".parse().expect("an address"), settings.options)?;
    let mut waiter = Waiter::new()?;
    waiter.watch(&socket, Token(0), Interest::Writable)?;
    let mut pause = Waiter::new()?;
    let mut copies = vec![vec![0x5A_u8; settings.size * settings.segments]; settings.copies + 1];
    let (clock, cpu) = (Clock::start(), thread_cpu_time());
    let end = Instant::ZERO + Duration::from_secs(settings.seconds);
    let mut bytes = 0;
    while clock.now() < end {
        let mut allowed = settings.segments;
        if let Some(rate) = settings.rate {
            let due = rate.bytes_in(clock.now() - Instant::ZERO).saturating_sub(bytes) as usize / settings.size;
            if due == 0 {
                pause.wait(Some(PACE))?;
                continue;
            }
            allowed = allowed.min(due);
        }
        let length = allowed * settings.size;
        for index in 0..settings.copies {
            let (from, into) = copies.split_at_mut(index + 1);
            into[0][..length].copy_from_slice(&from[index][..length]);
        }
        let sent = socket.send(to, settings.size, &copies[settings.copies][..length])?;
        bytes += sent.taken as u64;
        match sent.status {
            SendStatus::Blocked => drop(waiter.wait(Some(PACE))?.len()),
            SendStatus::TooLarge => return Err(std::io::Error::other("the datagrams are too large for the path")),
            _ => {}
        }
    }
    Ok(Side { bytes, elapsed: clock.now() - Instant::ZERO, cpu: thread_cpu_time() - cpu })
}

/// Receives until the sender is `over` and the socket stays idle for a while. Counts from the first to the last byte.
fn receive(settings: &Settings, socket: &UdpSocket, over: &AtomicBool, checksum: &AtomicU64) -> std::io::Result<Side> {
    let mut waiter = Waiter::new()?;
    waiter.watch(socket, Token(0), Interest::Readable)?;
    let mut batch = RecvBatch::new(4);
    let mut copies = vec![vec![0_u8; 1 << 16]; settings.copies];
    let (clock, cpu) = (Clock::start(), thread_cpu_time());
    let (mut bytes, mut first, mut last) = (0, None, Instant::ZERO);
    loop {
        if socket.recv(&mut batch).is_err() {
            let idle = waiter.wait(Some(Duration::from_millis(100)))?.is_empty();
            if idle && over.load(Ordering::Relaxed) {
                break;
            }
            continue;
        }
        for train in batch.trains() {
            bytes += train.bytes.len() as u64;
            let mut from = &*train.bytes;
            for copy in &mut copies {
                copy[..from.len()].copy_from_slice(from);
                from = &copy[..from.len()];
            }
            // Reading one byte per train keeps the compiler from removing the copies.
            checksum.fetch_add(u64::from(from.first().copied().unwrap_or(0)), Ordering::Relaxed);
        }
        last = clock.now();
        first.get_or_insert(last);
    }
    Ok(Side { bytes, elapsed: last - first.unwrap_or(last), cpu: thread_cpu_time() - cpu })
}
