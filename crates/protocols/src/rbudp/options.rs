//! The settings of RBUDP, and what follows from them.

use farhaul_units::{Duration, Rate};

use crate::blast::rate::RateChoice;
use farhaul_proto::consts::IP_UDP_HEADER;
use farhaul_proto::error::{ControlFault, PeerMisbehaved};

/// Smallest payload. Smaller packets would be nearly all headers, and bitmaps longer than an eighth of the data.
pub const MIN_PAYLOAD: u16 = 64;
/// Longest time of a blast. Nothing is repeated before its end, so a reader waits that long for a lost packet. At an RTT
/// of 200 ms it costs 2 % of the rate.
const LONGEST_BLAST: Duration = Duration::from_secs(10);
/// Shortest blast of RTT × rate while the rate is found. The reports of a shorter one are too few to measure a rate that
/// grows fourfold per RTT.
const SHORTEST_MEASURED_BLAST: Duration = Duration::from_millis(200);

/// Settings of RBUDP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Bytes of a blast.
    pub blast: BlastSize,
    /// The rate of the blasts, headers of IP and UDP included.
    pub rate: RateChoice,
    /// Most payload bytes of a datagram, at least 64. The default fills the datagrams that both sides agreed on.
    pub payload: Option<u16>,
    /// Distances between the packets of a blast.
    pub spacing: Spacing,
}

/// Bytes of a blast. The sender waits one RTT for the bitmap after each blast, so longer ones use the rate better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlastSize {
    /// Everything that is in the send buffer, as the original program does (the default). It is at most half of the
    /// buffer, so that the other half fills up meanwhile, and leaves in at most 10 s.
    #[default]
    Payload,
    /// RTT × rate, as `paper:survey` §2.1 has it. The sender then waits as long as it sends, so the goodput is half of the
    /// rate. It needs the least memory, and repeats soonest. Blasts last at least 200 ms if the rate is found.
    RoundTrip,
}

/// Distances between the packets of a blast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spacing {
    /// Bursts of at most 250 µs, because a wake-up per packet costs more than the packet.
    #[default]
    Bursts,
    /// Equal distances, as far as the driver wakes in time. The original program waits busily between packets.
    Even,
}

impl Options {
    /// Bytes of a long transfer's blasts, before rounding to whole packets. `rate` counts payload only. The
    /// [`Model`](super::Model) predicts their goodput.
    pub fn blast_bytes(&self, rate: Rate, round_trip: Duration, send_buffer: u64) -> u64 {
        let bytes = match self.blast {
            BlastSize::Payload => rate.bytes_in(LONGEST_BLAST),
            BlastSize::RoundTrip => rate.bytes_in(match self.rate {
                RateChoice::Fixed(_) => round_trip,
                RateChoice::Auto => round_trip.max(SHORTEST_MEASURED_BLAST),
            }),
        };
        bytes.min(send_buffer / 2).min(i32::MAX.unsigned_abs().into())
    }

    /// Payload bytes of a full packet with `room` bytes after its header.
    pub(crate) fn payload(&self, room: usize) -> usize {
        self.payload.map_or(room, |most| room.min(usize::from(most.max(MIN_PAYLOAD))))
    }

    /// The options that the peer's receiver must know: the payload limit, zero for none.
    pub(crate) fn hello(&self) -> Vec<u8> {
        self.payload.unwrap_or(0).to_be_bytes().to_vec()
    }

    /// The payload bytes of a full packet by the peer's hello.
    pub(crate) fn payload_of_peer(hello: &[u8], room: usize) -> Result<usize, PeerMisbehaved> {
        match hello.try_into().map(u16::from_be_bytes) {
            Ok(0) => Ok(room),
            Ok(most) if most >= MIN_PAYLOAD => Ok(room.min(usize::from(most))),
            Ok(most) => Err(PeerMisbehaved::out_of_range("the payload", most.into(), "64 or more")),
            Err(_) => {
                let (record, length) = ("the hello", hello.len() as u64);
                Err(PeerMisbehaved::ControlRecord(ControlFault::Length { record, length, valid: 2 }))
            }
        }
    }
}

/// The payload bits per second of packets at `rate`, which counts headers of IP and UDP. `header` is what stands between
/// UDP's header and the payload.
pub(crate) fn payload_rate(rate: Rate, payload: usize, header: usize) -> Rate {
    let payload = payload as u64;
    let packet = payload + header as u64 + u64::from(IP_UDP_HEADER);
    let bits = u128::from(rate.bits_per_second()) * u128::from(payload) / u128::from(packet);
    Rate::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX))
}

/// Bytes of a full packet that count into the rate.
pub(crate) fn packet_size(payload: usize, header: usize) -> u32 {
    u32::try_from(payload + header).unwrap_or(u32::MAX - IP_UDP_HEADER) + IP_UDP_HEADER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blast_is_half_of_the_buffer_or_ten_seconds() {
        let options = Options::default();
        let (fast, slow) = (Rate::from_megabits_per_second(1_000), Rate::from_megabits_per_second(8));
        assert_eq!(options.blast_bytes(fast, Duration::from_millis(10), 512 << 20), 256 << 20);
        assert_eq!(options.blast_bytes(slow, Duration::from_millis(10), 512 << 20), 10_000_000);
    }

    #[test]
    fn a_blast_of_the_survey_is_what_leaves_in_an_rtt() {
        let rate = Rate::from_megabits_per_second(800);
        let options = Options { blast: BlastSize::RoundTrip, rate: RateChoice::Fixed(rate), ..Options::default() };
        assert_eq!(options.blast_bytes(rate, Duration::from_millis(10), 512 << 20), 1_000_000);
    }

    #[test]
    fn a_receiver_learns_the_payload_from_the_hello() {
        for (payload, expected) in [(None, 1_460), (Some(1_000), 1_000), (Some(9_000), 1_460)] {
            let options = Options { payload, ..Options::default() };
            assert_eq!(options.payload(1_460), expected);
            assert_eq!(Options::payload_of_peer(&options.hello(), 1_460), Ok(expected));
        }
    }

    #[test]
    fn a_tiny_payload_in_a_hello_is_refused() {
        for hello in [&[][..], &[0], &[0, 63], &[1, 2, 3]] {
            assert!(Options::payload_of_peer(hello, 1_460).is_err(), "{hello:?}");
        }
    }
}
