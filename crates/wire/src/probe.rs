//! Datagrams of measured streams: stable control streams and throughput profiles.
//!
//! The format is ours. Both ways are UDP (paper:ornl §3.2). Every datagram begins with a word that UDT4 reads as a
//! control packet of a type that it does not know. So one port serves both.
//!
//! ```text
//! word of 32 bits | kind u8 | flags u8 | group u16 | session u64 | number u64 | clock u64 | payload or counts
//! ```
//!
//! | kind | from | meaning |
//! | --- | --- | --- |
//! | 1 data | sender | one datagram; groups of `group` datagrams have consecutive numbers and one clock |
//! | 2 acknowledgement | responder | echoes number and clock, and has the counts |
//! | 3 query | sender | asks for the counts; as long as the answer |
//! | 4 report | responder | answers a query |
//!
//! No answer is longer than its question, so a responder amplifies nothing (attack A11).

use num_enum::TryFromPrimitive;

use crate::DecodeError;

/// The first word of each datagram: a UDT4 control packet of the unknown type 0x7A51.
pub const WORD: u32 = 0xFA51_4652;
/// Bytes of a data header.
pub const HEADER_LEN: usize = 32;
/// Bytes of acknowledgements, queries and reports, and the fewest bytes of a data datagram.
pub const ANSWER_LEN: usize = 80;

/// Whether a datagram is one of these.
pub fn is_probe(datagram: &[u8]) -> bool {
    datagram.first_chunk().is_some_and(|word| u32::from_be_bytes(*word) == WORD)
}

/// Whether a datagram is one of these and asks for an answer: data or a query.
pub fn is_question(datagram: &[u8]) -> bool {
    is_probe(datagram) && !datagram.get(4).is_some_and(|kind| [ACKNOWLEDGEMENT, REPORT].contains(kind))
}

/// The payload that an application may put into a data datagram: everything behind the header. Empty if there is no more.
pub fn payload(datagram: &[u8]) -> &[u8] {
    datagram.get(HEADER_LEN..).unwrap_or_default()
}

/// Which data datagrams are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromPrimitive)]
#[repr(u8)]
pub enum Acknowledge {
    /// None. The sender asks for the counts.
    None = 0,
    /// Each one.
    Each = 1,
    /// A group as a whole, once all of it has arrived.
    Group = 2,
}

/// The header of each datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Its kind.
    pub kind: Kind,
    /// The stream, by a random number of its sender.
    pub session: u64,
    /// The number of the datagram, or of the query.
    pub number: u64,
    /// The sender's clock when it left, microseconds since an arbitrary zero.
    pub clock: u64,
}

/// The kind of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One datagram of a group.
    Data {
        /// Datagrams of a group, at least one. Number divided by this is the number of the group.
        group: u16,
        /// Whether the responder acknowledges it.
        acknowledge: Acknowledge,
    },
    /// Echoes number and clock of a data datagram.
    Acknowledgement(Counts),
    /// Asks for the counts.
    Query,
    /// The counts.
    Report(Counts),
}

/// The responder's counts of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Data datagrams that arrived, duplicates included.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Datagrams whose number is below one that came before.
    pub late: u64,
    /// The responder's clock at the first and at the last of them, microseconds since an arbitrary zero.
    pub first: u64,
    /// See [`first`](Self::first).
    pub last: u64,
    /// Mean deviation of the one-way delay in nanoseconds, by the filter of RTP (RFC 3550 §6.4.1).
    pub jitter: u64,
}

const DATA: u8 = 1;
const ACKNOWLEDGEMENT: u8 = 2;
const QUERY: u8 = 3;
const REPORT: u8 = 4;

impl Probe {
    /// Appends the header, and for all but data the whole datagram.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (kind, flags, group) = match self.kind {
            Kind::Data { group, acknowledge } => (DATA, acknowledge as u8, group),
            Kind::Acknowledgement(_) => (ACKNOWLEDGEMENT, 0, 0),
            Kind::Query => (QUERY, 0, 0),
            Kind::Report(_) => (REPORT, 0, 0),
        };
        let start = out.len();
        out.extend_from_slice(&WORD.to_be_bytes());
        out.extend_from_slice(&[kind, flags]);
        out.extend_from_slice(&group.to_be_bytes());
        for number in [self.session, self.number, self.clock] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        if let Kind::Acknowledgement(counts) | Kind::Report(counts) = self.kind {
            let Counts { datagrams, bytes, late, first, last, jitter } = counts;
            for number in [datagrams, bytes, late, first, last, jitter] {
                out.extend_from_slice(&number.to_be_bytes());
            }
        }
        if kind != DATA {
            out.resize(start + ANSWER_LEN, 0);
        }
    }

    /// Reads the header of a datagram.
    ///
    /// # Errors
    /// The datagram is too short for its kind, or no kind of this format.
    pub fn decode(datagram: &[u8]) -> Result<Self, DecodeError> {
        let short = DecodeError::TooShort { length: datagram.len(), header: ANSWER_LEN };
        let ([a, b, c, d, kind, flags, high, low], numbers) = datagram.split_first_chunk().ok_or(short)?;
        let numbers: &[[u8; 8]; ANSWER_LEN / 8 - 1] = numbers.as_chunks().0.first_chunk().ok_or(short)?;
        let [session, number, clock, datagrams, bytes, late, first, last, jitter] = numbers.map(u64::from_be_bytes);
        let refuse = |field, value, legal| DecodeError::OutOfRange { field, value, legal };
        let word = u32::from_be_bytes([*a, *b, *c, *d]);
        if word != WORD {
            return Err(refuse("the first word", word, "that of a probe"));
        }
        let counts = Counts { datagrams, bytes, late, first, last, jitter };
        let kind = match (*kind, *flags) {
            (DATA, flags) => {
                let unknown = |_| refuse("the flags", flags.into(), "0, 1 or 2");
                let acknowledge = Acknowledge::try_from_primitive(flags).map_err(unknown)?;
                let group = u16::from_be_bytes([*high, *low]);
                if group == 0 {
                    return Err(refuse("the group", 0, "at least 1"));
                }
                Kind::Data { group, acknowledge }
            }
            (ACKNOWLEDGEMENT, _) => Kind::Acknowledgement(counts),
            (QUERY, _) => Kind::Query,
            (REPORT, _) => Kind::Report(counts),
            (kind, _) => return Err(refuse("the kind", kind.into(), "1 to 4")),
        };
        Ok(Self { kind, session, number, clock })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_back_and_none_is_longer_than_an_answer() {
        let counts = Counts { datagrams: 1, bytes: 2, late: 3, first: 4, last: 5, jitter: 6 };
        for kind in [
            Kind::Data { group: 700, acknowledge: Acknowledge::Group },
            Kind::Data { group: 1, acknowledge: Acknowledge::None },
            Kind::Acknowledgement(counts),
            Kind::Query,
            Kind::Report(counts),
        ] {
            let probe = Probe { kind, session: 1 << 60, number: 77, clock: 99 };
            let mut bytes = Vec::new();
            probe.encode(&mut bytes);
            let data = matches!(kind, Kind::Data { .. });
            assert_eq!(bytes.len(), if data { HEADER_LEN } else { ANSWER_LEN });
            bytes.resize(ANSWER_LEN, 0xAA);
            assert_eq!(Probe::decode(&bytes), Ok(probe));
            assert!(!data || payload(&bytes) == [0xAA; ANSWER_LEN - HEADER_LEN]);
            assert!(is_probe(&bytes));
        }
    }

    #[test]
    fn short_datagrams_and_unknown_kinds_are_refused() {
        assert!(Probe::decode(&[0; ANSWER_LEN - 1]).is_err() && Probe::decode(&[0; ANSWER_LEN]).is_err());
        let mut bytes = [0; ANSWER_LEN];
        bytes[..4].copy_from_slice(&WORD.to_be_bytes());
        for (kind, flags, group) in [(0, 0, 1), (5, 0, 1), (1, 3, 1), (1, 0, 0)] {
            (bytes[4], bytes[5], bytes[7]) = (kind, flags, group);
            assert!(Probe::decode(&bytes).is_err());
        }
        assert!(!is_probe(b"abc") && payload(b"abc").is_empty());
    }

    #[test]
    fn udt4_takes_a_probe_for_a_control_packet_of_no_type() {
        let mut bytes = Vec::new();
        Probe { kind: Kind::Query, session: 1, number: 2, clock: 3 }.encode(&mut bytes);
        assert!(crate::udt4::is_control(&bytes));
        assert!(!matches!(crate::udt4::Control::decode(&bytes), Ok((_, _, crate::udt4::Control::Handshake(_)))));
    }
}
