//! The engines over a path in virtual time, and against records and datagrams that no peer sends.

mod connections;
mod hostile;
mod transfers;

use farhaul_units::{Duration, Instant};

use super::*;
use crate::blast::engine::{Protocol, Receiver as _, Sender as _};
use crate::blast::rate::RateChoice;
use crate::blast::tests::testing::{megabits, setup};
use farhaul_proto::config::Config;

/// Payload bytes of a packet of 1500 bytes between Farhaul ends.
const PAYLOAD: usize = 1_460;

/// Blasts at this rate.
fn at_rate(rate: u64) -> Options {
    Options { rate: RateChoice::Fixed(megabits(rate)), ..Options::default() }
}

fn buffers(bytes: u64) -> Config {
    Config { send_buffer: bytes, recv_buffer: bytes, ..Config::default() }
}

fn sender(options: &Options) -> sender::Sender {
    Rbudp::sender(options, setup(&Config::default()))
}

fn receiver() -> receiver::Receiver {
    let hello = Options::default().hello();
    Rbudp::receiver(&Options::default(), &hello, setup(&buffers(10_000_000))).unwrap()
}

/// The next records.
fn control(sender: &mut sender::Sender, now: Instant) -> Vec<u8> {
    let mut out = Vec::new();
    sender.poll_control(now, &mut out);
    out
}

/// Every datagram until the sender waits for its peer.
fn datagrams(sender: &mut sender::Sender, mut now: Instant) -> Vec<Vec<u8>> {
    let (mut all, mut scratch) = (Vec::new(), Vec::new());
    loop {
        while let Some(plan) = sender.plan(now) {
            let (size, bytes) = sender.emit(now, plan, &mut scratch).unwrap();
            all.extend(bytes.chunks(size).map(<[u8]>::to_vec));
        }
        match sender.deadline() {
            Some(deadline) => now = deadline.max(now + Duration::from_nanos(1)),
            None => return all,
        }
    }
}
