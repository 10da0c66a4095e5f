//! A flood of callers with forged addresses, to measure what it takes from the flows of a listener (attacks A2 and A6).
//!
//! ```text
//! cargo run --release -p farhaul --example initial_flood 127.0.0.1:9000 20000 5
//! ```
//!
//! Sends 20 000 first packets of encrypted connections per second for five seconds, and answers nothing. Each packet is
//! valid: it has a part of a real ClientHello, sealed with the keys that follow from its random bytes. The packets come from 16 ports at
//! each of 250 addresses of the loopback network. Only listeners on this machine can be flooded. The last line is JSON.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use std::{env, process, thread};

use farhaul::probe;
use farhaul::security::{AcceptAll, Cipher, KeyPair};
use farhaul_proto::{Batch, Config, Entropy, Streams, Transport};
use farhaul_protocols::Protocol;
use farhaul_secure::Tls;
use farhaul_units::Instant as Time;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Different clients. Listeners tell callers apart by address and random bytes, so each address can be all of them.
const CLIENTS: u64 = 64;
/// Addresses, and ports at each of them.
const ADDRESSES: u8 = 250;
const PORTS: usize = 16;
/// Packets go in groups, one in this time.
const TICK: Duration = Duration::from_millis(1);

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [target, rate, seconds] = &arguments[..] else {
        eprintln!("usage: initial_flood 127.0.0.1:PORT PACKETS-PER-SECOND SECONDS");
        process::exit(2)
    };
    let (target, rate): (SocketAddr, u64) = (target.parse()?, rate.parse()?);
    if !target.ip().is_loopback() {
        return Err("only a listener on this machine".into());
    }
    let clients = (0..CLIENTS).map(|seed| first_packets(target, seed)).collect::<Result<Vec<_>>>()?;
    let sockets: Vec<UdpSocket> =
        (1..=ADDRESSES).flat_map(|last| [last; PORTS]).map(stranger).collect::<std::io::Result<_>>()?;
    let (begin, time) = (probe::now(), Duration::from_secs(seconds.parse()?));
    let (mut sent, mut dropped, mut elapsed) = (0, 0, Duration::ZERO);
    while elapsed < time {
        let due = (elapsed.as_secs_f64() * rate as f64) as u64;
        for number in sent + dropped..due {
            let turn = number as usize / clients[0].len();
            let socket = &sockets[turn % sockets.len()];
            let packets = &clients[turn / sockets.len() % clients.len()];
            match socket.send_to(&packets[number as usize % packets.len()], target) {
                Ok(_) => sent += 1,
                Err(_) => dropped += 1,
            }
        }
        thread::park_timeout(TICK);
        elapsed = probe::now() - begin;
    }
    println!("{{\"sent\":{sent},\"dropped\":{dropped}}}");
    Ok(())
}

/// A socket at one of many addresses.
fn stranger(last: u8) -> std::io::Result<UdpSocket> {
    UdpSocket::bind((Ipv4Addr::new(127, 77, 0, last), 0))
}

/// What a client sends first: a ClientHello with a post-quantum key takes two packets.
fn first_packets(target: SocketAddr, seed: u64) -> Result<Vec<Vec<u8>>> {
    let tls = Tls::new(KeyPair::generate()?, Arc::new(AcceptAll), Cipher::Auto)?;
    let entropy = Entropy { cookie_key: [0; 16], seed };
    let mut client = Protocol::default().secure_endpoint(Config::default(), entropy, Box::new(tls));
    client.connect(Time::ZERO, target)?;
    let (mut packets, mut batch) = (Vec::new(), Batch::default());
    while let Some(transmit) = client.poll_transmit(Time::ZERO, &mut batch) {
        packets.extend(transmit.datagrams().map(<[u8]>::to_vec));
    }
    Ok(packets)
}
