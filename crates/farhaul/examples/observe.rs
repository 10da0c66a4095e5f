//! Watches a transfer from another thread: `cargo run --release --example observe`.
//!
//! A second handle of the stream reads the counters. The difference of two snapshots gives the rates.

use std::io::{self, BufWriter, Read, Write};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use farhaul::{Endpoint, Listener};

const BYTES: usize = 1 << 30;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = Listener::plain("127.0.0.1:0")?;
    let address = listener.local_addr();
    let receiver = thread::spawn(move || -> io::Result<u64> {
        let (mut stream, _) = listener.accept()?;
        io::copy(&mut stream, &mut io::sink())
    });

    let stream = Endpoint::builder().plain().controller("union").bind("127.0.0.1:0".parse()?)?.connect(address)?;
    let (done, is_done) = mpsc::channel::<()>();
    let watched = stream.clone();
    let watcher = thread::spawn(move || -> Result<(), farhaul::Error> {
        let mut last = watched.stats()?;
        println!("      rate           RTT   in flight   retransmitted");
        while is_done.recv_timeout(Duration::from_millis(200)) == Err(mpsc::RecvTimeoutError::Timeout) {
            let now = watched.stats()?;
            let rate = now.send_rate_since(&last).to_string();
            let again = now.totals.packets_retransmitted - last.totals.packets_retransmitted;
            println!("{rate:>12} {:>10.1?} {:>11} {again:>15}", now.rtt, now.in_flight);
            last = now;
        }
        Ok(())
    });

    // Large writes leave as long trains. A buffer combines small writes into large ones.
    let mut writer = BufWriter::with_capacity(256 << 10, &stream);
    io::copy(&mut io::repeat(7).take(BYTES as u64), &mut writer)?;
    writer.flush()?;
    stream.finish()?;
    drop(done);
    watcher.join().expect("the watcher does not panic")?;
    println!("received {} bytes", receiver.join().expect("the receiver does not panic")?);
    Ok(())
}
