//! Performance of the whole stack on this machine, memory to memory. Reports the receiver's goodput and the processor
//! time of both sides together.
//!
//! `cargo bench -p farhaul --bench loopback -- [GIGABYTES] [MSS] [CONTROLLER]`

use std::env;
use std::thread;
use std::time::Duration;

use farhaul::{Endpoint, Error, Rate};
use farhaul_udp::Clock;
use rustix::time::{ClockId, clock_gettime};

/// Bytes of one read or write call.
const BLOCK: usize = 1 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let gigabytes: f64 = arguments.first().map_or(Ok(4.0), |text| text.parse())?;
    let mss: u32 = arguments.get(1).map_or(Ok(1500), |text| text.parse())?;
    let controller = arguments.get(2).map_or("union", String::as_str);
    for _ in 0..3 {
        transfer((gigabytes * 1e9) as u64, mss, controller)?;
    }
    idle()
}

fn transfer(bytes: u64, mss: u32, controller: &str) -> Result<(), Box<dyn std::error::Error>> {
    let endpoint =
        || Endpoint::builder().plain().mss(mss).controller(controller).bind("127.0.0.1:0".parse().expect("valid"));
    let (here, there) = (endpoint()?, endpoint()?);
    let listener = there.listen()?;
    let before = cpu_seconds();
    let receiver = thread::spawn(move || -> Result<(u64, Duration), Error> {
        let (stream, _) = listener.accept()?;
        let mut block = vec![0; BLOCK];
        let mut received = stream.recv(&mut block)? as u64;
        let clock = Clock::start();
        loop {
            match stream.recv(&mut block)? {
                0 => return Ok((received, clock.now() - farhaul_units::Instant::ZERO)),
                len => received += len as u64,
            }
        }
    });
    let stream = here.connect(there.local_addr())?;
    let block = vec![7; BLOCK];
    for _ in 0..bytes.div_ceil(BLOCK as u64) {
        stream.send_all(&block)?;
    }
    stream.finish()?;
    let (received, time) = receiver.join().expect("the receiver does not panic")?;
    let cpu = cpu_seconds() - before;
    let stats = stream.stats()?;
    println!(
        "{controller} mss {mss}: {} ({received} bytes in {time:.2?}), {:.2} CPU s/GB, {} of {} packets sent again, {} NAKs",
        Rate::from_bytes_in(received, time).unwrap_or(Rate::ZERO),
        cpu / (received as f64 / 1e9),
        stats.totals.packets_retransmitted,
        stats.totals.packets_sent,
        stats.totals.naks_received,
    );
    Ok(())
}

/// The cost of a hundred idle connections.
fn idle() -> Result<(), Box<dyn std::error::Error>> {
    let (here, there) = (Endpoint::plain("127.0.0.1:0")?, Endpoint::plain("127.0.0.1:0")?);
    let listener = there.listen()?;
    let mut streams = Vec::new();
    for _ in 0..100 {
        streams.push(here.connect(there.local_addr())?);
        streams.push(listener.accept()?.0);
    }
    let (before, time) = (cpu_seconds(), Duration::from_secs(2));
    streams[0].set_read_timeout(Some(time));
    let nothing = streams[0].recv(&mut [0]);
    println!("100 idle connections: {:.4} CPU s in {time:?} ({nothing:?})", cpu_seconds() - before);
    Ok(())
}

/// Processor time of this process so far.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
