//! Messages with boundaries, in order and with a time to live: `cargo run --example messages`.

use std::time::Duration;

use farhaul::{ConnectOptions, Endpoint, Error, MessageSocket, Rate, SendOptions};

/// Sent in a moment, but two seconds' worth at the rate below.
const READINGS: usize = 50;
const READING_BYTES: usize = 10_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let there = Endpoint::plain("127.0.0.1:0")?;
    let listener = there.listen_for_messages()?;
    let slow = Endpoint::builder().plain().max_rate(Rate::from_megabits_per_second(2)).bind("127.0.0.1:0".parse()?)?;
    let sender = slow.connect_with(there.local_addr(), ConnectOptions::messages())?;
    let (receiver, _) = listener.accept()?;

    // Without order, a message is delivered once it is complete. In order, it follows all messages before it.
    sender.send(b"hello")?;
    sender.send_with(b"the last of the commands", SendOptions::default().in_order())?;

    // Old readings of a sensor are worthless, so those that wait too long are dropped as a whole.
    let fresh = SendOptions::default().time_to_live(Duration::from_millis(300));
    for number in 0..READINGS {
        sender.send_with(&[number as u8; READING_BYTES], fresh)?;
    }

    let (came, finished) = std::thread::scope(|scope| {
        let counting = scope.spawn(|| receive(&receiver));
        let finished = sender.finish();
        (counting.join().expect("the receiver does not panic"), finished)
    });
    finished?;
    let dropped = sender.stats()?.totals.messages_dropped;
    println!("{} of {READINGS} readings arrived in time, {dropped} were dropped as too old", came?);
    Ok(())
}

/// Prints texts and counts readings, until the sender closes.
fn receive(receiver: &MessageSocket) -> Result<usize, Error> {
    let (mut room, mut readings) = (vec![0; READING_BYTES], 0);
    while let Some(message) = receiver.recv(&mut room)? {
        if message.len == READING_BYTES {
            readings += 1;
        } else {
            println!("received: {}", String::from_utf8_lossy(&room[..message.len]));
        }
    }
    Ok(readings)
}
