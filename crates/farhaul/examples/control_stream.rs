//! A control stream beside a bulk transfer, on one UDP port. `cargo run --release --example control_stream`.
//!
//! Both ends run here, over the loopback interface. Commands travel in the stream's datagrams: each carries its number.

use std::io::{Read, Write};
use std::thread;

use farhaul::probe::StableConfig;
use farhaul::{Endpoint, Rate};

/// The bulk: three seconds at the cap.
const MEGABYTES: usize = 75;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let far = Endpoint::builder().plain().bind("127.0.0.1:0".parse()?)?;
    let commands = far.probe_payloads()?;
    let listener = far.listen()?;
    let receiver = thread::spawn(move || -> std::io::Result<u64> {
        let (mut bulk, _) = listener.accept().map_err(std::io::Error::other)?;
        let (mut buffer, mut bytes) = (vec![0; 1 << 20], 0);
        loop {
            match bulk.read(&mut buffer)? {
                0 => return Ok(bytes),
                read => bytes += read as u64,
            }
        }
    });

    // A cap stands for the path here. A real one shows its capacity by its queue.
    let near =
        Endpoint::builder().plain().max_rate(Rate::from_megabits_per_second(200)).bind("127.0.0.1:0".parse()?)?;
    let mut bulk = near.connect(far.local_addr())?;
    let control = bulk.control_stream(StableConfig::new(Rate::from_megabits_per_second(1)))?;
    control.fill_with(|number, payload| payload[..8].copy_from_slice(&number.to_be_bytes()))?;
    let data = vec![7; 1 << 20];
    for _ in 0..MEGABYTES {
        bulk.write_all(&data)?;
    }
    let (figures, ceiling) = (control.figures()?, control.ceiling()?);
    println!("stream: {} at a target of 1 Mbit/s, {} steps", figures.goodput, figures.steps);
    println!("round trip: mean {:?}, deviation {:?}", figures.delay, figures.deviation);
    println!("ceiling of the bulk: {:?}", ceiling.rate.map(|rate| rate.to_string()));
    drop(control);
    bulk.finish()?;
    println!("bulk: {} MB", receiver.join().expect("the receiver does not panic")? / 1_000_000);
    println!("commands that arrived: {}", commands.try_iter().count());
    Ok(())
}
