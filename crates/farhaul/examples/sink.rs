//! Takes so many streams from any UDT4 peers, reads what they send, and prints every so often how much that is:
//! `cargo run --release -p farhaul --example sink 0.0.0.0:9000 2 0.25`, for two connections four times a second.
//!
//! One JSON object a line: the connection in the order of accepting, from 0; the system's monotonic clock, which is the
//! same for all processes of a machine; and the bytes that arrived until then. What several connections got at the same
//! time can be compared by that, as two flows on a shared path.

use std::net::SocketAddr;
use std::{env, process, thread};

use farhaul::{Endpoint, Stream};
use rustix::time::{ClockId, clock_gettime};

/// Bytes of one read: long enough that reading is no limit.
const BLOCK: usize = 1 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [address, connections, interval] = &arguments[..] else {
        eprintln!("usage: sink ADDRESS:PORT CONNECTIONS INTERVAL_SECONDS");
        process::exit(2)
    };
    let (address, connections, interval): (SocketAddr, usize, f64) =
        (address.parse()?, connections.parse()?, interval.parse()?);
    let endpoint = Endpoint::bind(address)?;
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

/// Reads until the peer is gone, in whichever way.
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
