//! Sends one file: `send_file recv 0.0.0.0:9000 COPY` on one host, `send_file send HOST:9000 FILE` on the other.
//!
//! The first eight bytes of the stream are the file's length. The command `farhaul copy` offers trees and verified
//! copies.

use std::fs::File;
use std::io::{Read, Write};
use std::{env, process};

use farhaul::{Listener, Stream};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["send", address, path] => send(address, path),
        ["recv", address, path] => recv(address, path),
        _ => {
            eprintln!("usage: send_file send HOST:PORT FILE | send_file recv ADDRESS:PORT FILE");
            process::exit(2)
        }
    }
}

fn send(address: &str, path: &str) -> Result<(), Box<dyn std::error::Error>> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    let mut stream = Stream::connect_plain(address)?;
    stream.write_all(&len.to_be_bytes())?;
    stream.send_file(&file, 0, len)?;
    stream.finish()?;
    let stats = stream.stats()?;
    println!("{len} bytes in {:.2?}, {:.2} % retransmitted", stats.elapsed, stats.retransmission_ratio() * 100.0);
    Ok(())
}

fn recv(address: &str, path: &str) -> Result<(), Box<dyn std::error::Error>> {
    let (mut stream, peer) = Listener::plain(address)?.accept()?;
    let mut len = [0; 8];
    stream.read_exact(&mut len)?;
    let file = File::create_new(path)?;
    stream.recv_file(&file, u64::from_be_bytes(len))?;
    file.sync_all()?;
    println!("received {path} from {peer}");
    Ok(())
}
