//! The cost of many idle connections on one UDP port: memory and processor time, each side in its own process.
//!
//! ```text
//! cargo run --release -p farhaul --example idle_connections listen 127.0.0.1:9000 1000 30
//! cargo run --release -p farhaul --example idle_connections connect 127.0.0.1:9000 1000 30
//! ```
//!
//! The listener accepts 1000 connections, and the connector opens as many from a single port. For 30 seconds both only
//! answer keep-alives. Then they print their memory and processor time as JSON, those of the handshakes separately. With the
//! word `secure` at the end, connections are encrypted; each side then accepts any key of the other one.

use std::sync::mpsc;
use std::time::Duration;
use std::{env, fs, process};

use farhaul::security::{AcceptAll, KeyPair, Security};
use farhaul::{Endpoint, Stream};
use rustix::time::{ClockId, clock_gettime};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Pause before and after the measurement, so that it does not include the cost of opening and closing on either side.
const REST: Duration = Duration::from_secs(1);

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["listen", address, count, seconds, ref kind @ ..] => {
            listen(&port(address, kind)?, count.parse()?, seconds.parse()?)
        }
        ["connect", address, count, seconds, ref kind @ ..] => {
            connect(&port("0.0.0.0:0", kind)?, address, count.parse()?, seconds.parse()?)
        }
        _ => {
            eprintln!("usage: idle_connections listen|connect HOST:PORT COUNT SECONDS [secure]");
            process::exit(2)
        }
    }
}

/// A port for either kind of connections.
fn port(address: &str, kind: &[&str]) -> Result<Endpoint> {
    let builder = Endpoint::builder();
    let builder = match kind {
        ["secure"] => builder.secure(Security::new(KeyPair::generate()?, AcceptAll)),
        _ => builder.plain(),
    };
    Ok(builder.bind(address.parse()?)?)
}

fn listen(endpoint: &Endpoint, count: usize, seconds: u64) -> Result<()> {
    let listener = endpoint.listen()?;
    println!("listening {}", endpoint.local_addr());
    let (before, cpu) = (memory()?, processor_seconds());
    let streams: Vec<Stream> = (0..count).map(|_| Ok(listener.accept()?.0)).collect::<Result<_>>()?;
    measure(&streams, before, processor_seconds() - cpu, seconds)?;
    pause(REST);
    Ok(())
}

fn connect(endpoint: &Endpoint, address: &str, count: usize, seconds: u64) -> Result<()> {
    // One endpoint has one UDP port and any number of connections.
    let (before, cpu) = (memory()?, processor_seconds());
    let streams: Vec<Stream> = (0..count).map(|_| Ok(endpoint.connect(address)?)).collect::<Result<_>>()?;
    measure(&streams, before, processor_seconds() - cpu, seconds)?;
    // The listener ends first, so that its measurement does not include its shutdowns. The result does not matter.
    let _ = streams.first().map(|stream| stream.recv(&mut [0]));
    Ok(())
}

/// Prints the cost of the idle `streams`, whose handshakes took `opening` seconds of the processor.
fn measure(streams: &[Stream], before: u64, opening: f64, seconds: u64) -> Result<()> {
    pause(REST);
    let cpu = processor_seconds();
    pause(Duration::from_secs(seconds));
    let cpu = processor_seconds() - cpu;
    let after = memory()?;
    let alive = streams.iter().filter(|stream| stream.stats().is_ok()).count();
    println!(
        "{{\"connections\":{alive},\"seconds\":{seconds},\"cpu_seconds\":{cpu:.6},\"opening_cpu_seconds\":{opening:.6},\
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

/// Processor time of all threads of this process so far.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
