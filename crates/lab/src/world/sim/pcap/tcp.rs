//! TCP headers for the agents' segments, with the options for SACK permitted and SACK blocks.
//!
//! Agents number segments, and TCP numbers bytes. A segment keeps its length when it is sent again. The model counts no options in a packet's length ([`HEADER`](farhaul_sim::agent::tcp::HEADER) has none). A
//! packet with options is longer in the file than on the simulated link.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use farhaul_sim::agent::tcp::{MAX_SACK_BLOCKS, Segment, SegmentKind};

use super::ip_header;

/// The protocol's number in an IP header.
const TCP: u8 = 6;
/// Length of a TCP header without options, in words of four bytes (RFC 9293 §3.1).
const HEADER_WORDS: usize = 5;
/// The window in every segment. The agents' windows are not in bytes.
const WINDOW: u16 = u16::MAX;
/// TCP's flags.
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
/// The option that fills up a word (RFC 9293 §3.2).
const NO_OPERATION: u8 = 1;
/// The option of a SYN that permits selective acknowledgements, with its length (RFC 2018 §2).
const SACK_PERMITTED: [u8; 2] = [4, 2];
/// The option with blocks that have arrived, two edges of four bytes each (RFC 2018 §3).
const SACK: u8 = 5;
const BLOCK: usize = 8;

/// Options have 40 bytes at most (RFC 9293 §3.1).
const _: () = assert!(4 + BLOCK * MAX_SACK_BLOCKS <= 40);

/// Maps sequence numbers to bytes, for each sender, receiver and connection between them.
#[derive(Debug, Default)]
pub(super) struct Streams(BTreeMap<(SocketAddr, SocketAddr, u32), Stream>);

/// The data in one direction.
#[derive(Clone, Debug, Default)]
struct Stream {
    /// The lengths of the segments. Segments of equal length that follow one another are one run.
    runs: Vec<ByteRun>,
    /// One past the last segment sent.
    next: u64,
    /// The last segment of the stream, once it was sent.
    last: Option<u64>,
}

/// Segments of equal length, up to the next run.
#[derive(Clone, Copy, Debug)]
struct ByteRun {
    /// The number of the first segment.
    first: u64,
    /// The stream's bytes before it.
    before: u64,
    /// Bytes of each segment.
    length: u32,
}

impl ByteRun {
    fn before(&self, number: u64) -> u64 {
        self.before + (number - self.first) * u64::from(self.length)
    }
}

impl Stream {
    fn note(&mut self, segment: &Segment) {
        if segment.seq < self.next {
            return;
        }
        let length = segment.payload;
        match self.runs.last() {
            None => self.runs.push(ByteRun { first: 0, before: 0, length }),
            Some(run) if run.length == length => {}
            Some(run) => self.runs.push(ByteRun { first: segment.seq, before: run.before(segment.seq), length }),
        }
        self.next = segment.seq + 1;
        if segment.kind == SegmentKind::LastData {
            self.last = Some(segment.seq);
        }
    }

    /// The sequence number of a segment's first byte. SYN has the number before it, and FIN the number after the last
    /// byte.
    fn byte(&self, number: u64) -> u32 {
        let run = self.runs.partition_point(|run| run.first <= number).checked_sub(1);
        let before = run.map_or(0, |run| self.runs[run].before(number));
        let fin = self.last.is_some_and(|last| number > last);
        // Sequence numbers wrap.
        (before + 1 + u64::from(fin)) as u32
    }
}

impl Streams {
    /// Writes IPv4 and TCP headers of a segment that has `wire_len` bytes on a link, and the bytes that it carries.
    /// Returns the packet's whole length. Without bytes the data are cut off, and the length shows it.
    pub(super) fn segment(
        &mut self,
        (from, to): (SocketAddr, SocketAddr),
        wire_len: u32,
        (segment, bytes): (&Segment, &[u8]),
        out: &mut Vec<u8>,
    ) -> u32 {
        let stream = |from, to| (from, to, segment.connection);
        if matches!(segment.kind, SegmentKind::Data | SegmentKind::LastData) {
            self.0.entry(stream(from, to)).or_default().note(segment);
        }
        let empty = Stream::default();
        let of = |key| self.0.get(&key).unwrap_or(&empty);
        let (sent, received) = (of(stream(from, to)), of(stream(to, from)));
        let (flags, seq) = match segment.kind {
            SegmentKind::Syn => (SYN, 0),
            SegmentKind::SynAck => (SYN | ACK, 0),
            SegmentKind::Data => (ACK, sent.byte(segment.seq)),
            SegmentKind::LastData => (FIN | PSH | ACK, sent.byte(segment.seq)),
            SegmentKind::Ack => (ACK, sent.byte(sent.next)),
            SegmentKind::Reset => (RST | ACK, sent.byte(sent.next)),
        };
        let ack = if flags & ACK == 0 { 0 } else { received.byte(segment.ack) };
        // A sender that connects again uses its next port.
        let caller = usize::from(segment.from_acceptor);
        let mut ports = [from.port(), to.port()];
        ports[caller] = ports[caller].wrapping_add(segment.connection as u16);
        let options = options(segment, received);
        let length = wire_len + options.len() as u32;
        ip_header(from, to, TCP, length as usize, out);
        out.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        out.extend(seq.to_be_bytes());
        out.extend(ack.to_be_bytes());
        // The header's length in words is in the high four bits.
        out.extend([((HEADER_WORDS + options.len() / 4) as u8) << 4, flags]);
        out.extend(WINDOW.to_be_bytes());
        // Checksum and urgent pointer.
        out.extend([0; 4]);
        out.extend(options);
        out.extend_from_slice(bytes);
        length
    }
}

/// A segment's options in whole words. `received` is the stream that it acknowledges.
fn options(segment: &Segment, received: &Stream) -> Vec<u8> {
    let mut options = Vec::new();
    if segment.sack_permitted {
        options.extend([NO_OPERATION; 2]);
        options.extend(SACK_PERMITTED);
    }
    let blocks = segment.sack();
    if !blocks.is_empty() {
        options.extend([NO_OPERATION; 2]);
        options.extend([SACK, (2 + BLOCK * blocks.len()) as u8]);
        for block in blocks {
            options.extend(received.byte(block.start).to_be_bytes());
            options.extend(received.byte(block.end).to_be_bytes());
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use farhaul_sim::agent::tcp::{Block, HEADER};
    use farhaul_units::Instant;

    use super::*;

    fn ends() -> (SocketAddr, SocketAddr) {
        ("10.0.0.1:9000".parse().unwrap(), "10.0.0.2:9000".parse().unwrap())
    }

    fn segment(kind: SegmentKind) -> Segment {
        Segment::new(kind, HEADER, Instant::ZERO)
    }

    fn data(kind: SegmentKind, seq: u64, payload: u32) -> Segment {
        let mut data = segment(kind);
        (data.seq, data.payload) = (seq, payload);
        data
    }

    fn acknowledgement() -> Segment {
        let mut ack = segment(SegmentKind::Ack);
        ack.from_acceptor = true;
        ack
    }

    /// The bytes after the IP header, and the packet's length according to it.
    fn written(streams: &mut Streams, ends: (SocketAddr, SocketAddr), segment: &Segment) -> (Vec<u8>, u32) {
        let mut out = Vec::new();
        let length = streams.segment(ends, segment.header + segment.payload, (segment, &[]), &mut out);
        assert_eq!(u32::from(u16::from_be_bytes([out[2], out[3]])), length, "IP says the same");
        (out.split_off(20), length)
    }

    fn back((from, to): (SocketAddr, SocketAddr)) -> (SocketAddr, SocketAddr) {
        (to, from)
    }

    #[test]
    fn a_syn_that_permits_sack_has_the_option_and_another_has_none() {
        let mut syn = segment(SegmentKind::Syn);
        let (header, length) = written(&mut Streams::default(), ends(), &syn);
        assert_eq!((header.len(), header[12], length), (20, 0x50, 40));
        syn.sack_permitted = true;
        let (header, length) = written(&mut Streams::default(), ends(), &syn);
        assert_eq!((header[12], length), (0x60, 44));
        assert_eq!(header[20..], [1, 1, 4, 2]);
    }

    #[test]
    fn blocks_are_written_in_bytes_in_the_order_of_the_acknowledgement() {
        let mut streams = Streams::default();
        let (header, length) = written(&mut streams, ends(), &data(SegmentKind::Data, 7, 1_460));
        assert_eq!((header.len(), length), (20, 1_500), "data has no options");
        assert_eq!(header[4..8], (7 * 1_460 + 1_u32).to_be_bytes());
        let mut ack = acknowledgement();
        ack.ack = 2;
        ack.push_sack(Block::new(7, 8));
        ack.push_sack(Block::new(3, 5));
        let (header, length) = written(&mut streams, back(ends()), &ack);
        assert_eq!((header[12], length), (0xa0, 60));
        assert_eq!(header[8..12], (2 * 1_460 + 1_u32).to_be_bytes());
        assert_eq!(header[20..24], [1, 1, 5, 18]);
        let edges: Vec<u32> = header[24..].chunks(4).map(|edge| u32::from_be_bytes(edge.try_into().unwrap())).collect();
        assert_eq!(edges, [7, 8, 3, 5].map(|number| number * 1_460 + 1));
    }

    #[test]
    fn a_short_last_segment_and_its_fin_are_counted_as_they_are() {
        let mut streams = Streams::default();
        written(&mut streams, ends(), &data(SegmentKind::Data, 0, 1_000));
        written(&mut streams, ends(), &data(SegmentKind::LastData, 2, 10));
        let mut ack = acknowledgement();
        ack.ack = 1;
        ack.push_sack(Block::new(2, 3));
        let (header, _) = written(&mut streams, back(ends()), &ack);
        assert_eq!((&header[24..28], &header[28..32]), (&2_001_u32.to_be_bytes()[..], &2_012_u32.to_be_bytes()[..]));
    }

    #[test]
    fn connections_between_the_same_hosts_have_ports_and_numbers_of_their_own() {
        let mut streams = Streams::default();
        written(&mut streams, ends(), &data(SegmentKind::LastData, 0, 300));
        let mut next = data(SegmentKind::Data, 1, 1_460);
        next.connection = 1;
        let (header, _) = written(&mut streams, ends(), &next);
        assert_eq!(header[4..8], 1_461_u32.to_be_bytes());
        assert_eq!(header[..4], [9_001_u16, 9_000].map(u16::to_be_bytes).concat());
        let mut ack = acknowledgement();
        ack.connection = 1;
        assert_eq!(written(&mut streams, back(ends()), &ack).0[..4], [9_000_u16, 9_001].map(u16::to_be_bytes).concat());
    }

    #[test]
    fn segments_of_any_length_follow_one_another_in_bytes_and_carry_them() {
        let mut streams = Streams::default();
        let lengths = [5, 5, 1_460, 1_460, 1_460, 30, 0];
        let kind = |seq| if seq == 6 { SegmentKind::LastData } else { SegmentKind::Data };
        let sent = |streams: &mut Streams, seq: usize| {
            let (header, _) = written(streams, ends(), &data(kind(seq), seq as u64, lengths[seq]));
            u32::from_be_bytes(header[4..8].try_into().unwrap())
        };
        let starts: Vec<u32> = (0..lengths.len()).map(|seq| sent(&mut streams, seq)).collect();
        assert_eq!(starts, [1, 6, 11, 1_471, 2_931, 4_391, 4_421]);
        assert_eq!(sent(&mut streams, 3), 1_471, "again");
        let mut ack = acknowledgement();
        ack.ack = 7;
        let (header, _) = written(&mut streams, back(ends()), &ack);
        assert_eq!(header[8..12], 4_422_u32.to_be_bytes(), "after the FIN");

        let (answer, mut out) = (data(SegmentKind::Data, 0, 3), Vec::new());
        streams.segment(back(ends()), 43, (&answer, b"yes"), &mut out);
        assert_eq!((out.len(), &out[40..]), (43, &b"yes"[..]));
        let (header, _) = written(&mut streams, back(ends()), &ack);
        assert_eq!(header[4..8], 4_u32.to_be_bytes(), "an acknowledgement has the number of the next byte");
    }
}
