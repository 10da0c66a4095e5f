//! SABUL, the predecessor of UDT: data by UDP at a rate, reports of arrivals and losses by TCP.
//!
//! ```text
//!        write ─▶ Sender ── data, lowest loss first, one packet per interval I ──▶ Receiver ─▶ read
//!                   ▲                                                                │
//!                   ├◀── ACK  every 100 ms or 250 packets: all before this arrived ──┤
//!                   ├◀── ERR  at once on a gap, later what is still missing ─────────┤
//!                   └◀── SYN  every 10 ms: packets that arrived ─────────────────────┘
//! ```
//!
//! The sender owns no more than a window of 25 600 packets beyond the last ACK. A law sets the interval I
//! between packets from the reported losses. SABUL has had four laws, which are [options](Generation).
//!
//! | part | owns |
//! | --- | --- |
//! | [`Options`] | the choices of an endpoint |
//! | [`sender`], [`receiver`] | the two engines |
//! | `reports`, `repair_time` | the receiver's list of losses, when each was reported, and when again |
//! | `rate` | the laws, and our start |
//! | `numbering` | numbers of the wire and of the buffers |
//!
//! Sources: the program of release 2.1, paper:sabul-tr-2002 and paper:sabul-rate-2002. Two rules differ between Farhaul
//! ends, and [options](Options) restore them: [`Start`] and [`Repairs`].

mod numbering;
mod rate;
pub mod receiver;
mod repair_time;
mod reports;
pub mod sender;
mod settings;
#[cfg(test)]
mod tests;

use core::str::FromStr;

use farhaul_units::{Duration, Rate};
use farhaul_wire::blast::TAG_LEN;
use farhaul_wire::sabul::{HEADER_LEN, RecordError};

use crate::blast::engine::{Protocol, Setup};
use farhaul_proto::error::{ControlFault, PeerMisbehaved};

/// Packets that a sender may have unacknowledged: the number of flags in the original's receiver.
pub const WINDOW: u32 = 25_600;
/// Largest window of a peer. The receiver's memory grows with data, but a hostile sender may spread it widely.
const MAX_WINDOW: u32 = 1 << 20;
/// Bytes before the payload of a stored packet: the room for a tag, and the sequence number.
const STORED_HEADER: usize = TAG_LEN + HEADER_LEN;
/// Shortest and longest time between SYN records that a peer may ask for.
const SYN_RANGE: core::ops::RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10);
/// Bytes of our hello: SYN interval in µs, window, flags.
const HELLO_LEN: usize = 9;
/// The flag of a sender that reads records of type 5.
const TAKES_MORE: u8 = 1;

/// Settings of SABUL's engines.
#[derive(Clone, Debug)]
pub struct Options {
    /// The law of rate control.
    pub generation: Generation,
    /// How a transfer begins.
    pub start: Start,
    /// How many losses are reported at a time.
    pub repairs: Repairs,
    /// First rate, in packets of 1500 bytes (`init` of the original's `setRate`). Takes the place of any start.
    pub first_rate: Option<Rate>,
    /// Fastest rate (`high`). Default: the generation's.
    pub fastest_rate: Option<Rate>,
    /// Slowest rate (`low`). Default: the generation's, and none with a bounded start.
    pub slowest_rate: Option<Rate>,
    /// Packets that may be unacknowledged. Default [`WINDOW`], at most 2^20.
    pub window: u32,
    /// Time between two SYN records. Default: the generation's. Sources differ by the factor of 100.
    pub syn: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            generation: Generation::default(),
            start: Start::default(),
            repairs: Repairs::default(),
            first_rate: None,
            fastest_rate: None,
            slowest_rate: None,
            window: WINDOW,
            syn: None,
        }
    }
}

impl Options {
    /// The rules of release 2.1 without any of ours.
    pub fn original() -> Self {
        Self { start: Start::Original, repairs: Repairs::Original, ..Self::default() }
    }

    /// Time between two SYN records.
    fn syn(&self) -> Duration {
        let syn = self.syn.unwrap_or(self.generation.syn());
        syn.clamp(*SYN_RANGE.start(), *SYN_RANGE.end())
    }

    /// Packets that may be unacknowledged, within the bounds.
    pub fn window(&self) -> u32 {
        self.window.clamp(1, MAX_WINDOW)
    }
}

/// A generation of SABUL's rate control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Generation {
    /// Release 2.1, March 2003: the last one.
    #[default]
    March2003,
    /// Release 2.0, May 2002.
    May2002,
    /// The paper on rate control, October 2002.
    October2002,
    /// Release 0.1, 2000 and 2001.
    Release01,
}

impl Generation {
    /// All generations, newest first, with their names.
    pub const ALL: [(&'static str, Self); 4] =
        [("2.1", Self::March2003), ("2002", Self::October2002), ("2.0", Self::May2002), ("0.1", Self::Release01)];

    /// Time between two SYN records. The law of release 2.0 runs at each: once a second by its report. The other laws
    /// have a clock of their own or none, so the interval of release 2.1 does.
    pub const fn syn(self) -> Duration {
        match self {
            Self::May2002 => Duration::from_secs(1),
            _ => Duration::from_millis(10),
        }
    }
}

/// No generation has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no generation of SABUL has this name: valid are 2.1, 2002, 2.0 and 0.1")]
pub struct UnknownGeneration;

impl FromStr for Generation {
    type Err = UnknownGeneration;

    fn from_str(name: &str) -> Result<Self, UnknownGeneration> {
        Self::ALL.iter().find(|(own, _)| *own == name).map(|(_, generation)| *generation).ok_or(UnknownGeneration)
    }
}

/// How a transfer begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// At ten packets per RTT, doubled until less arrives than leaves. Then the law takes over (departure D301).
    #[default]
    Bounded,
    /// With the generation's first interval of 10 µs: 1.17 Gbit/s of payload.
    Original,
}

/// How many losses the receiver reports at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repairs {
    /// All that are due. Reports are repeated after the time that repairs take, and each packet is repeated at most once
    /// per RTT (departure D303).
    #[default]
    Unlimited,
    /// 366 every 20 ms, so that at most 215 Mbit/s are repaired.
    Original,
}

/// The protocol as an engine of a blast connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sabul;

impl Protocol for Sabul {
    type Options = Options;
    type Sender = sender::Sender;
    type Receiver = receiver::Receiver;

    const NAME: &'static str = "sabul";

    /// The peer's receiver must know when to send SYN records, how far data may be ahead, and whether we read type 5.
    fn hello(options: &Options) -> Vec<u8> {
        let micros = u32::try_from(options.syn().as_micros()).unwrap_or(u32::MAX);
        let flags = if options.repairs == Repairs::Unlimited { TAKES_MORE } else { 0 };
        [&micros.to_be_bytes()[..], &options.window().to_be_bytes(), &[flags]].concat()
    }

    fn sender(options: &Options, setup: Setup<'_>) -> sender::Sender {
        sender::Sender::new(options, &setup, options.window())
    }

    fn receiver(options: &Options, hello: &[u8], setup: Setup<'_>) -> Result<receiver::Receiver, PeerMisbehaved> {
        let peer = HelloOptions::read(hello)?;
        let unlimited = options.repairs == Repairs::Unlimited && peer.takes_more;
        let repairs = if unlimited { Repairs::Unlimited } else { Repairs::Original };
        Ok(receiver::Receiver::new(&setup, receiver::Rules { window: peer.window, syn: peer.syn, repairs }))
    }
}

/// A sender's hello.
struct HelloOptions {
    syn: Duration,
    window: u32,
    takes_more: bool,
}

impl HelloOptions {
    fn read(bytes: &[u8]) -> Result<Self, PeerMisbehaved> {
        let Ok([a, b, c, d, e, f, g, h, flags]) = <[u8; HELLO_LEN]>::try_from(bytes) else {
            let (length, valid) = (bytes.len() as u64, HELLO_LEN as u64);
            return Err(PeerMisbehaved::ControlRecord(ControlFault::Length { record: "hello", length, valid }));
        };
        let (micros, window) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
        let syn = Duration::from_micros(micros.into());
        if !SYN_RANGE.contains(&syn) {
            return Err(PeerMisbehaved::out_of_range("SYN interval", micros.into(), "1000 to 10000000 µs"));
        }
        if !(1..=MAX_WINDOW).contains(&window) {
            return Err(PeerMisbehaved::out_of_range("window", window.into(), "1 to 1048576 packets"));
        }
        Ok(Self { syn, window, takes_more: flags & TAKES_MORE != 0 })
    }
}

/// The fault behind a record that does not decode.
fn refused(error: RecordError) -> PeerMisbehaved {
    match error {
        RecordError::Kind(kind) => PeerMisbehaved::ControlRecord(ControlFault::UnknownType(kind)),
        RecordError::Count(count) => PeerMisbehaved::out_of_range("number of losses", count.into(), "1 to 366"),
        RecordError::Number(number) => PeerMisbehaved::out_of_range("sequence number", number.into(), "0 to 99999999"),
        _ => PeerMisbehaved::out_of_turn("a record"),
    }
}
