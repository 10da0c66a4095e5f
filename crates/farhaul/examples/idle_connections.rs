//! What many idle connections on one UDP port cost: memory and processor time, each side in a process of its own.
//!
//! ```text
//! cargo run --release -p farhaul --example idle_connections listen 127.0.0.1:9000 1000 30
//! cargo run --release -p farhaul --example idle_connections connect 127.0.0.1:9000 1000 30
//! ```
//!
//! The listener takes 1000 connections, the connector opens as many from a single port; then both do nothing for 30
//! seconds but answer keep-alives, and print what that took as JSON.

use std::sync::mpsc;
use std::time::Duration;
use std::{env, fs, process};

use farhaul::{Endpoint, Stream};
use rustix::time::{ClockId, clock_gettime};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Between the last connection and the measurement, and between the measurement and the end: what opening and closing
/// costs is not what idling costs, on either side.
const REST: Duration = Duration::from_secs(1);

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["listen", address, count, seconds] => listen(address, count.parse()?, seconds.parse()?),
        ["connect", address, count, seconds] => connect(address, count.parse()?, seconds.parse()?),
        _ => {
            eprintln!("usage: idle_connections listen|connect HOST:PORT COUNT SECONDS");
            process::exit(2)
        }
    }
}

fn listen(address: &str, count: usize, seconds: u64) -> Result<()> {
    let endpoint = Endpoint::bind(address)?;
    let listener = endpoint.listen()?;
    println!("listening {}", endpoint.local_addr());
    let before = memory()?;
    let streams: Vec<Stream> = (0..count).map(|_| Ok(listener.accept()?.0)).collect::<Result<_>>()?;
    measure(&streams, before, seconds)?;
    pause(REST);
    Ok(())
}

fn connect(address: &str, count: usize, seconds: u64) -> Result<()> {
    // One endpoint is one UDP port, and it holds any number of connections.
    let endpoint = Endpoint::bind("0.0.0.0:0")?;
    let before = memory()?;
    let streams: Vec<Stream> = (0..count).map(|_| Ok(endpoint.connect(address)?)).collect::<Result<_>>()?;
    measure(&streams, before, seconds)?;
    // The listener ends first: its good-byes must not fall into its own measurement. How it ends is all the same.
    let _ = streams.first().map(|stream| stream.recv(&mut [0]));
    Ok(())
}

/// Prints what `streams` cost while nothing happens.
fn measure(streams: &[Stream], before: u64, seconds: u64) -> Result<()> {
    pause(REST);
    let cpu = processor_seconds();
    pause(Duration::from_secs(seconds));
    let cpu = processor_seconds() - cpu;
    let after = memory()?;
    let alive = streams.iter().filter(|stream| stream.stats().is_ok()).count();
    println!(
        "{{\"connections\":{alive},\"seconds\":{seconds},\"cpu_seconds\":{cpu:.6},\
         \"memory_before_bytes\":{before},\"memory_after_bytes\":{after}}}"
    );
    Ok(())
}

/// Sleeps.
fn pause(time: Duration) {
    let (_sender, never) = mpsc::channel::<()>();
    let _ = never.recv_timeout(time);
}

/// Resident memory of this process in bytes.
fn memory() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kibibytes << 10)
}

/// What all threads of this process have used so far.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
