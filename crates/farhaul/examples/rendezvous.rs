//! Two hosts that both call, and none listens: `cargo run --example rendezvous`.
//!
//! Two hosts behind address translators meet in this way. Each sends first, and so opens its own translator for the
//! other. Both must know the other's public address and port in advance, from a common server or from their users.

use std::io::{self, Read};
use std::thread;

use farhaul::{ConnectOptions, Endpoint};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (left, right) = (Endpoint::plain("127.0.0.1:0")?, Endpoint::plain("127.0.0.1:0")?);
    let (left_address, right_address) = (left.local_addr(), right.local_addr());

    let other = thread::spawn(move || -> io::Result<()> {
        // The order of the two calls does not matter, within the rendezvous time-out of 30 s.
        let stream = right.connect_with(left_address, ConnectOptions::stream().rendezvous())?;
        stream.send_all(b"I called you as well.\n")?;
        Ok(stream.finish()?)
    });

    let mut stream = left.connect_with(right_address, ConnectOptions::stream().rendezvous())?;
    println!("{left_address} and {right_address} met");
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    print!("{right_address} says: {text}");
    other.join().expect("the other side does not panic")?;
    Ok(())
}
