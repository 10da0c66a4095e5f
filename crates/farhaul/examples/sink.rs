//! Accepts a number of streams from any UDT4 peers, reads their data, and prints the byte counts at an interval.
//!
//! `cargo run --release -p farhaul --example sink 0.0.0.0:9000 2 0.25` accepts two and reports four times per second.
//!
//! Each line is one JSON object. It has the connection in order of accepting from 0, the system's monotonic clock, and
//! the bytes received until then. All processes of a machine share that clock. So the lines show how several flows
//! shared a path at the same time.

use std::net::SocketAddr;
use std::{env, process, thread};

use farhaul::{Endpoint, Stream};
use rustix::time::{ClockId, clock_gettime};

/// Bytes of one read, large enough that reading is no limit.
const BLOCK: usize = 1 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [address, connections, interval] = &arguments[..] else {
        eprintln!("usage: sink ADDRESS:PORT CONNECTIONS INTERVAL_SECONDS");
        process::exit(2)
    };
    let (address, connections, interval): (SocketAddr, usize, f64) =
        (address.parse()?, connections.parse()?, interval.parse()?);
    let endpoint = Endpoint::plain(address)?;
    endpoint.warnings().iter().for_each(|warning| eprintln!("{warning}"));
    let listener = endpoint.listen()?;
    println!("listening {}", endpoint.local_addr());
    thread::scope(|scope| {
        for index in 0..connections {
            let (stream, _) = listener.accept()?;
            scope.spawn(move || read(index, &stream, interval));
        }
        Ok(())
    })
}

/// Reads until the peer is gone, for any reason.
fn read(index: usize, stream: &Stream, interval: f64) {
    let (mut block, mut bytes, mut next) = (vec![0; BLOCK], 0, 0.0);
    loop {
        let len = stream.recv(&mut block).unwrap_or(0);
        if len == 0 {
            return;
        }
        bytes += len as u64;
        let now = clock_seconds();
        if now >= next {
            next = now + interval;
            println!("{{\"event\":\"interval\",\"connection\":{index},\"clock_s\":{now:.6},\"bytes_total\":{bytes}}}");
        }
    }
}

fn clock_seconds() -> f64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
