//! The cost of a paced stream of UDP datagrams without any protocol: the reference for processor time on a long path.
//!
//! ```text
//! paced_raw recv ADDRESS:PORT
//! paced_raw send HOST:PORT RATE SECONDS [SIZE=1456]         RATE of payload: 930mbit
//! ```
//!
//! After each wake-up, both sides send or receive everything available, then pause for 0.5 ms. They use the sockets of
//! the protocol with its offloads, but acknowledge and retransmit nothing. The receiver ends after a second without
//! datagrams. Each side prints one JSON object.

use std::error::Error;
use std::net::SocketAddr;
use std::{env, process};

use farhaul_udp::{Clock, Interest, Options, RecvBatch, SendStatus, Token, UdpSocket, Waiter};
use farhaul_units::{Duration, Instant, Rate};
use rustix::time::{ClockId, clock_gettime};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The pause after each wake-up. At 1 Gbit/s, 42 packets of 1500 bytes are due after it.
const PAUSE: Duration = Duration::from_micros(500);
/// Packets of one call: the most in an offloaded train.
const TRAIN: usize = 44;
/// The payload of a UDT data packet of 1500 bytes.
const SIZE: usize = 1_456;
/// Most trains in one receive call.
const TRAINS: usize = 4;
/// Time without datagrams after which the sender is gone.
const SILENCE: Duration = Duration::from_secs(1);

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["recv", address] => recv(address.parse()?),
        ["send", to, rate, seconds] => send(to.parse()?, rate.parse()?, seconds.parse()?, SIZE),
        ["send", to, rate, seconds, size] => send(to.parse()?, rate.parse()?, seconds.parse()?, size.parse()?),
        _ => {
            eprintln!("usage: paced_raw recv ADDRESS:PORT | paced_raw send HOST:PORT RATE SECONDS [SIZE]");
            process::exit(2)
        }
    }
}

fn send(to: SocketAddr, rate: Rate, seconds: u64, size: usize) -> Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0".parse()?, Options::default())?;
    let mut writable = Waiter::new()?;
    writable.watch(&socket, Token(0), Interest::Writable)?;
    let mut pause = Waiter::new()?;
    let train = vec![0x5A; size * TRAIN];
    let (clock, cpu) = (Clock::start(), processor_seconds());
    let end = Instant::ZERO + Duration::from_secs(seconds);
    let mut bytes = 0;
    loop {
        let now = clock.now();
        if now >= end {
            break;
        }
        let mut due = rate.bytes_in(now - Instant::ZERO).saturating_sub(bytes) as usize / size;
        while due > 0 {
            let sent = socket.send(to, size, &train[..due.min(TRAIN) * size])?;
            bytes += sent.taken as u64;
            due -= (sent.taken / size).min(due);
            match sent.status {
                SendStatus::Blocked => drop(writable.wait(Some(PAUSE))?.len()),
                SendStatus::TooLarge => return Err("the datagrams are too large for the path".into()),
                _ => {}
            }
        }
        pause.wait(Some(PAUSE))?;
    }
    println!("{{\"sent_bytes\":{bytes},\"cpu_seconds\":{:.6}}}", processor_seconds() - cpu);
    Ok(())
}

fn recv(address: SocketAddr) -> Result<()> {
    let socket = UdpSocket::bind(address, Options::default())?;
    println!("listening {}", socket.local_addr());
    let mut readable = Waiter::new()?;
    readable.watch(&socket, Token(0), Interest::Readable)?;
    let (mut pause, mut batch) = (Waiter::new()?, RecvBatch::new(TRAINS));
    let (clock, cpu) = (Clock::start(), processor_seconds());
    let (mut bytes, mut first, mut last) = (0, None, Instant::ZERO);
    loop {
        // Before the first byte, the user may still have to start the sender.
        if readable.wait(first.map(|_| SILENCE))?.is_empty() && first.is_some_and(|_| clock.now() - last >= SILENCE) {
            break;
        }
        while socket.recv(&mut batch).is_ok_and(|count| count > 0) {
            bytes += batch.trains().map(|train| train.bytes.len() as u64).sum::<u64>();
            last = clock.now();
            first.get_or_insert(last);
        }
        pause.wait(Some(PAUSE))?;
    }
    let seconds = (last - first.unwrap_or(last)).as_secs_f64();
    println!(
        "{{\"received_bytes\":{bytes},\"seconds\":{seconds:.6},\"cpu_seconds\":{:.6}}}",
        processor_seconds() - cpu
    );
    Ok(())
}

/// Processor time of all threads of this process so far.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
