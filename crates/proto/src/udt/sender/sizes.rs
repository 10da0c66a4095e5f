//! Packets of different sizes in one sender. Controllers count packets of the first size, and all others are converted.

use farhaul_units::{Instant, SeqNo};
use farhaul_wire::udt4::{Control, DataHeader, FRAGMENT_HEAD, Fragment, HEADER_LEN, Path, Timestamp};

use super::{Sender, Transmission};
use crate::buffer::{Run, Scratch, SendBuffer};
use crate::consts::IP_UDP_HEADER;

/// Bytes of a packet beside its payload.
const HEADERS: usize = IP_UDP_HEADER as usize + HEADER_LEN;

/// The sizes of a sender's packets.
#[derive(Debug)]
pub(super) struct PacketSizes {
    /// Payload of the first full packets.
    first: usize,
    /// Largest payload that the path carries; `None` if the size is fixed.
    most: Option<usize>,
    /// Bytes by which fragments must be smaller than data packets, because packet protection adds more to them.
    control_surplus: usize,
    /// Packets sent, counted in those of the first size, less the number of packets sent.
    surplus: f64,
}

impl PacketSizes {
    pub(super) const fn new(first: usize) -> Self {
        Self { first, most: None, control_surplus: 0, surplus: 0.0 }
    }

    pub(super) const fn set_control_surplus(&mut self, bytes: usize) {
        self.control_surplus = bytes;
    }

    /// How many packets of the first size one with this payload is.
    fn scale(&self, payload: usize) -> f64 {
        (payload + HEADERS) as f64 / (self.first + HEADERS) as f64
    }

    /// The datagrams of a transmission: a train of packets, or the fragments of one that the path no longer carries.
    pub(super) fn run<'a>(
        &mut self,
        buffer: &'a mut SendBuffer,
        &Transmission { seq, packets, .. }: &Transmission,
        stamp: Timestamp,
        scratch: Scratch<'a, '_>,
    ) -> Option<Run<'a>> {
        let Some(most) = self.most else { return buffer.run(seq, packets, stamp, scratch) };
        let full = buffer.payload_size_at(seq);
        let oversized = full > most;
        if !oversized || buffer.payload(seq)?.len() <= most {
            let run = buffer.run(seq, if oversized { 1 } else { packets }, stamp, scratch)?;
            self.surplus += f64::from(run.packets) * (self.scale(full) - 1.0);
            return Some(run);
        }
        let mut whole = Vec::new();
        let run = buffer.run(seq, 1, stamp, (&mut whole, None))?;
        self.surplus += self.scale(full) - 1.0;
        let room = (most + HEADER_LEN).checked_sub(FRAGMENT_HEAD + self.control_surplus).filter(|room| *room > 0)?;
        cut(&run, room, scratch)
    }
}

/// Cuts the one packet of a run into fragments of `room` bytes.
fn cut<'a>(packet: &Run<'_>, room: usize, (scratch, mut enclose): Scratch<'a, '_>) -> Option<Run<'a>> {
    let (DataHeader { seq, field, timestamp, destination }, payload) = DataHeader::decode(packet.bytes).ok()?;
    let count = u8::try_from(payload.len().div_ceil(room)).ok()?;
    let total = u16::try_from(payload.len()).ok()?;
    for (index, bytes) in (0..).zip(payload.chunks(room)) {
        let fragment = Fragment { seq, field, total, index, count, bytes };
        let begin = scratch.len();
        Control::Path(Path::Fragment(fragment)).encode(timestamp, destination, scratch);
        if let Some(enclose) = &mut enclose {
            let fragment = scratch.split_off(begin);
            let (header, body) = fragment.split_first_chunk()?;
            enclose(header, body, scratch);
        }
    }
    Some(Run { bytes: scratch, segment_size: FRAGMENT_HEAD + room, packets: 1 })
}

impl Sender {
    /// New packets have this size. Larger ones that were written before leave in fragments.
    pub(crate) fn set_payload_size(&mut self, size: usize) {
        self.sizes.most = Some(size);
        self.buffer.set_payload_size(size);
    }

    /// The path has dropped what is in flight, because it was too large.
    pub(crate) fn on_black_hole(&mut self, now: Instant) {
        if let Some(flight) = self.flight() {
            self.repairs.on_black_hole(flight, now);
        }
    }

    /// Acknowledged packets have another size from now on. Of what was one packet before, `factor` are needed.
    pub(crate) fn rescale_delivery(&mut self, factor: f64) {
        self.delivery.rescale(factor);
        if let Some(deliveries) = &mut self.deliveries {
            deliveries.rescale(factor);
        }
    }

    /// How many packets of the first size the next new packet is.
    pub(crate) fn scale_of_next(&self) -> f64 {
        self.scale_at(self.next)
    }

    /// How many packets of the first size the oldest one in flight is.
    pub(crate) fn scale_of_oldest(&self) -> f64 {
        self.scale_at(self.buffer.first())
    }

    pub(super) fn scale_at(&self, seq: SeqNo) -> f64 {
        if self.sizes.most.is_none() { 1.0 } else { self.sizes.scale(self.buffer.payload_size_at(seq)) }
    }

    /// Packets in flight, counted in those of the first size.
    pub(crate) fn in_flight_of_first_size(&self) -> u32 {
        if self.sizes.most.is_none() {
            return self.in_flight();
        }
        self.buffer.weigh(self.next, |payload| self.sizes.scale(payload)) as u32
    }

    /// Packets in flight, counted in those of the size of the next one.
    pub(super) fn in_flight_of_next_size(&self) -> u32 {
        if self.sizes.most.is_none() {
            return self.in_flight();
        }
        (f64::from(self.in_flight_of_first_size()) / self.scale_of_next()) as u32
    }

    /// Packets sent, counted in those of the first size.
    pub(crate) fn sent_of_first_size(&self) -> u64 {
        (self.sent as f64 + self.sizes.surplus) as u64
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::{Duration, Rng};
    use farhaul_wire::udt4::SocketId;

    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(10);

    fn datagrams(sender: &mut Sender) -> Vec<Vec<u8>> {
        let (now, stamp, mut datagrams) = (Instant::ZERO, Timestamp::ZERO, Vec::new());
        while let Some(transmission) = sender.plan(now, stamp, ROUND_TRIP) {
            let mut scratch = Vec::new();
            let run = sender.emit(transmission, (now, stamp), ROUND_TRIP, (&mut scratch, None)).unwrap();
            datagrams.extend(run.bytes.chunks(run.segment_size).map(<[u8]>::to_vec));
        }
        datagrams
    }

    #[test]
    fn packets_written_before_a_fall_leave_in_fragments() {
        let mut sender = Sender::new(SeqNo::new(5), 1_456, SocketId::new(1), 100, 1 << 20, Rng::new(1));
        sender.set_payload_size(8_956);
        let data: Vec<u8> = (0..20_000_u32).map(|byte| byte as u8).collect();
        assert_eq!(sender.write(&data), data.len());
        sender.set_payload_size(1_236);
        let (mut whole, mut got) = (datagrams(&mut sender), Vec::new());
        assert!(whole.iter().all(|datagram| datagram.len() <= 16 + 1_236));
        whole.sort_by_key(|datagram| datagram[4..8].to_vec());
        for datagram in &whole {
            let Ok((_, _, Control::Path(Path::Fragment(fragment)))) = Control::decode(datagram) else { panic!() };
            got.extend_from_slice(fragment.bytes);
        }
        assert!(got == data);
        assert_eq!((whole.len(), sender.in_flight()), (8 + 8 + 2, 3));
        assert_eq!((sender.in_flight_of_first_size(), sender.sent_of_first_size()), (18, 18));
    }

    #[test]
    fn a_larger_size_counts_as_several_packets() {
        let mut sender = Sender::new(SeqNo::new(5), 1_456, SocketId::new(1), 100, 1 << 20, Rng::new(1));
        sender.write(&[0; 2 * 1_456]);
        sender.set_payload_size(8_956);
        sender.write(&[0; 8_956]);
        assert_eq!((sender.scale_of_next(), sender.scale_of_oldest()), (1.0, 1.0));
        assert_eq!(datagrams(&mut sender).len(), 3);
        assert_eq!((sender.in_flight(), sender.in_flight_of_first_size()), (3, 8));
        assert_eq!((sender.scale_of_next(), sender.in_flight_of_next_size()), (6.0, 1));
    }
}
