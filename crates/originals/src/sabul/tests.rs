//! Both sessions against scripted peers that speak the golden bytes, and against each other.

mod receiver;
mod repairs;
mod sender;
mod transfer;

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use farhaul_units::{Duration, Instant, Rate};

use super::SabulError;
use crate::session::testing::{Watched, train};
use crate::session::{DatagramOutcome, OriginalSession as _};
use farhaul_proto::Config;
use farhaul_protocols::sabul::Options;

type Sender = Watched<super::Sender>;
type Receiver = Watched<super::Receiver>;

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
const PEER_PORT: SocketAddr = SocketAddr::new(PEER, 7_000);
/// A block with garbage in the words that an original receiver does not set, as captured.
const GARBAGE: [u32; 10] = [7_001, 0x0804_9A30, 0xBFFF_F5A8, 7, 0x4000_C660, 0, 0xB7FD_5FF4, 0x0804_8EE0, 25_600, 1];

fn at(millis: u64) -> Instant {
    Instant::from_nanos(1_000_000_000) + Duration::from_millis(millis)
}

/// Words as the wire has them.
fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Words as a little-endian program with a `long` of 64 bits sends them.
fn long_words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| [word.to_be_bytes(), [0; 4]].concat()).collect()
}

fn new_sender(options: &Options) -> Sender {
    Watched::new(super::Sender::new(&Config::default(), options, at(0)))
}

/// A sender whose receiver has sent its options and got the echo.
fn open_sender(options: &Options) -> Sender {
    let mut sender = new_sender(options);
    sender.handle_channel(at(0), &words(&GARBAGE));
    assert_eq!(said(&mut sender, 0), words(&GARBAGE));
    sender
}

fn said(sender: &mut Sender, millis: u64) -> Vec<u8> {
    crate::session::testing::said(&mut **sender, at(millis))
}

/// 1.2 Gbit/s from the beginning, so that all packets leave within milliseconds.
fn fast() -> Options {
    Options { first_rate: Some(Rate::from_megabits_per_second(1_200)), ..Options::original() }
}

/// An open sender that has sent packets 0 to 999.
fn after_a_thousand() -> Sender {
    let mut sender = open_sender(&fast());
    assert_eq!(sender.write(at(0), &vec![7; 1_468_000]), 1_468_000);
    assert_eq!(datagrams(&mut sender, 0, 15).len(), 1_000);
    sender
}

/// The datagrams that leave until `until`, with the timers fired.
fn datagrams(sender: &mut Sender, from: u64, until: u64) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut now = at(from);
    while now <= at(until) {
        sender.handle_timeout(now);
        while let Some((size, bytes)) = train(&mut **sender, now) {
            all.extend(bytes.chunks(size).map(<[u8]>::to_vec));
        }
        let Some(next) = sender.deadline() else { break };
        now = next.max(now + Duration::from_nanos(1));
    }
    all
}

/// The sequence numbers of datagrams.
fn numbers(datagrams: &[Vec<u8>]) -> Vec<u32> {
    datagrams.iter().map(|datagram| u32::from_be_bytes([datagram[0], datagram[1], datagram[2], datagram[3]])).collect()
}

fn new_receiver() -> Receiver {
    Watched::new(super::Receiver::new(&Config::default(), 7_000, at(0)))
}

/// A receiver that has sent its options and got the echo after 30 ms.
fn open_receiver() -> Receiver {
    let mut receiver = new_receiver();
    let block = heard(&mut receiver, 0);
    receiver.handle_channel(at(30), &block);
    receiver
}

/// The channel bytes of a receiver, with the timers fired.
fn heard(receiver: &mut Receiver, millis: u64) -> Vec<u8> {
    let mut out = Vec::new();
    receiver.handle_timeout(at(millis));
    receiver.poll_channel(at(millis), &mut out);
    out
}

/// Hands a receiver the datagram with this number.
fn arrive(receiver: &mut Receiver, millis: u64, number: u32, payload: &[u8]) {
    let datagram = [&number.to_be_bytes()[..], payload].concat();
    assert_eq!(arrive_from(receiver, millis, PEER_PORT, &datagram), DatagramOutcome::Taken);
    receiver.end_batch(at(millis));
}

/// Hands a receiver a datagram unless it is a stranger's.
fn arrive_from<'d>(receiver: &mut Receiver, millis: u64, from: SocketAddr, datagram: &'d [u8]) -> DatagramOutcome<'d> {
    if !receiver.is_from_peer(PEER, from) {
        return DatagramOutcome::Foreign;
    }
    receiver.handle_datagram(at(millis), from.port(), datagram)
}

#[test]
fn a_sender_that_is_silent_is_lost_after_the_time_of_a_peer() {
    let mut receiver = open_receiver();
    let silence = Config::default().peer_timeout;
    arrive(&mut receiver, 10_000, 0, &[7; 100]);
    receiver.handle_timeout(at(10_000) + (silence - Duration::from_millis(1)));
    assert_eq!(receiver.fault, None);
    assert!(receiver.deadline().is_some_and(|due| due <= at(10_000) + silence));
    receiver.handle_timeout(at(10_000) + silence);
    assert_eq!(receiver.fault, Some(SabulError::PeerSilent(silence)));
}
