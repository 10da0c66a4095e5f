//! The attacker: a process that sends hostile packets of UDT and of the encrypted protocol.

use std::io::{Read, stdin};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::clock::{Stopwatch, pause};

/// The word before its arguments: the address to send from, the address to send to, and packets per second.
pub(crate) const OPTION: &str = "--attacker";
/// Control packets of UDT have this bit in their first word, and the type behind it.
const CONTROL: u32 = 1 << 31;
/// Handshake, keep-alive, acknowledgement, negative one, warning, shutdown, its confirmation, drop request, error, custom types.
const TYPES: [u32; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 0x4650, 0x7ffe, 0x7fff];
/// Lengths of bodies: none, those that are right for some type, odd ones, and a full packet.
const LENGTHS: [usize; 10] = [0, 4, 7, 8, 16, 24, 31, 48, 200, 1400];
/// The pause between two bursts.
const BURST: Duration = Duration::from_millis(2);

/// Sends until stdin ends, and prints the number of packets.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [from, to, rate] = arguments else { anyhow::bail!("{OPTION} takes two addresses and a rate") };
    let socket = UdpSocket::bind(from).with_context(|| from.clone())?;
    socket.connect(to).with_context(|| to.clone())?;
    let rate: f64 = rate.parse()?;
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    std::thread::spawn(move || {
        let _ = stdin().read_to_end(&mut Vec::new());
        over.store(true, Ordering::Relaxed);
    });
    let (mut sent, began, mut random) = (0_u64, Stopwatch::start(), Random(0x9e37_79b9_7f4a_7c15));
    while !is_over.load(Ordering::Relaxed) {
        while (sent as f64) < began.elapsed().as_secs_f64() * rate {
            // A refused packet counts: the port may be closed for a moment.
            let _ = socket.send(&random.packet());
            sent += 1;
        }
        pause(BURST);
    }
    println!("{sent}");
    Ok(())
}

/// Random packets, the same in each run (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as u32
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.next() as usize % all.len()]
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    fn packet(&mut self) -> Vec<u8> {
        // Ids of sockets: of no connection, random, small, and the largest.
        let id = match self.next() % 4 {
            0 => 0,
            1 => self.next() % 100,
            2 => u32::MAX,
            _ => self.next(),
        };
        let len = self.one_of(&LENGTHS);
        match self.next() % 8 {
            // No packet at all.
            0 => self.bytes(len.min(15)),
            1 => self.bytes(len),
            2 => self.words([self.next_data(), self.0 as u32, 0, id], len),
            3 => self.call(),
            4 => {
                // Ranges without an end, or with all numbers.
                let header = self.words([CONTROL | 3 << 16, 0, 0, id], 0);
                [header, vec![0xff; len & !3]].concat()
            }
            _ => {
                let kind = self.one_of(&TYPES);
                let info = self.next();
                self.words([CONTROL | kind << 16, info, 0, id], len)
            }
        }
    }

    /// The first word of a data packet.
    fn next_data(&self) -> u32 {
        self.0 as u32 & !CONTROL
    }

    /// A call as of a client: version 4, a stream, a number, 1500 bytes, a window, a request, an id and a cookie.
    fn call(&mut self) -> Vec<u8> {
        let (number, id, cookie) = (self.next() >> 1, self.next() >> 1, self.next());
        let kind = self.one_of(&[1, u32::MAX, 0, 1002, 7]);
        let words = [4, 1, number, 1500, 25_600, kind, id, cookie, 0, 0, 0, 0];
        [self.words([CONTROL, 0, 0, 0], 0), words.into_iter().flat_map(u32::to_be_bytes).collect()].concat()
    }

    fn words(&mut self, words: [u32; 4], len: usize) -> Vec<u8> {
        [words.into_iter().flat_map(u32::to_be_bytes).collect(), self.bytes(len)].concat()
    }
}
