//! Several connections, opened by both sides, on one UDP port each: `cargo run --example many`.
//!
//! One open port in a firewall is enough for all of them. Each has its own flow and congestion control.

use std::io;
use std::thread;

use farhaul::{Endpoint, Listener};

const EACH: u8 = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (left, right) = (Endpoint::plain("127.0.0.1:0")?, Endpoint::plain("127.0.0.1:0")?);
    let (left_listener, right_listener) = (left.listen()?, right.listen()?);
    thread::scope(|scope| -> Result<(), Box<dyn std::error::Error>> {
        let serving = [&left_listener, &right_listener].map(|listener| scope.spawn(|| serve(listener)));
        let mut calling = Vec::new();
        for number in 1..=EACH {
            for (from, to) in [(&left, &right), (&right, &left)] {
                calling.push(scope.spawn(move || call(from, to, number)));
            }
        }
        for result in calling {
            result.join().expect("a caller does not panic")?;
        }
        for result in serving {
            result.join().expect("a server does not panic")?;
        }
        Ok(())
    })
}

/// Opens one more connection of the port and sends something.
fn call(from: &Endpoint, to: &Endpoint, number: u8) -> io::Result<()> {
    let stream = from.connect(to.local_addr())?;
    stream.send_all(&vec![number; usize::from(number) * 100_000])?;
    Ok(stream.finish()?)
}

fn serve(listener: &Listener) -> io::Result<()> {
    for mut stream in listener.incoming().take(usize::from(EACH)) {
        let bytes = io::copy(&mut stream, &mut io::sink())?;
        println!("{} received {bytes} bytes from {}", stream.local_addr(), stream.peer_addr());
    }
    Ok(())
}
