//! Packets of a run as a file that Wireshark reads.

mod tcp;

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use farhaul_netem::WireLen;
use farhaul_sim::{Capture, Passing, Payload, PooledPacket};
use farhaul_units::Instant;

use crate::error::LabError;

/// Magic number of pcap files with time stamps in nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// The format's version, 2.4.
const VERSION: [u16; 2] = [2, 4];
/// Bytes of a packet that are kept: all of it.
const SNAP_LENGTH: u32 = 65_535;
/// Packets begin with their IP header (LINKTYPE_RAW).
const RAW_IP: u32 = 101;
const UDP: u8 = 17;
const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const TIME_TO_LIVE: u8 = 64;
/// IP flag "don't fragment".
const DONT_FRAGMENT: u16 = 0x4000;

/// A file of packets. Each packet is written once, when it leaves its host.
pub struct Writer {
    path: PathBuf,
    file: Rc<RefCell<State>>,
}

struct State {
    file: BufWriter<File>,
    packet: Vec<u8>,
    /// What TCP's sequence numbers mean in bytes.
    streams: tcp::Streams,
    /// Why nothing is written any more.
    failed: Option<io::Error>,
}

impl Writer {
    /// Creates the file, or empties it.
    ///
    /// # Errors
    /// It cannot be created or written to.
    pub fn create(path: &Path) -> Result<Self, LabError> {
        let mut header = Vec::new();
        header.extend(MAGIC.to_le_bytes());
        VERSION.iter().for_each(|part| header.extend(part.to_le_bytes()));
        // Time zone and accuracy: nobody fills them in.
        header.extend([0; 8]);
        header.extend(SNAP_LENGTH.to_le_bytes());
        header.extend(RAW_IP.to_le_bytes());
        let create = || {
            let mut file = BufWriter::new(File::create(path)?);
            file.write_all(&header)?;
            Ok(file)
        };
        let file = create().map_err(|source| LabError::file(path, source))?;
        let state = State { file, packet: Vec::new(), streams: tcp::Streams::default(), failed: None };
        Ok(Self { path: path.to_owned(), file: Rc::new(RefCell::new(state)) })
    }

    /// What a world gives its packets to.
    pub fn sink(&self) -> Capture {
        let file = Rc::clone(&self.file);
        Box::new(move |now, passing, packet| {
            if matches!(passing, Passing::Sent(_)) {
                file.borrow_mut().add(now, packet);
            }
        })
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// Anything that could not be written since the beginning.
    pub fn finish(self) -> Result<(), LabError> {
        let mut state = self.file.borrow_mut();
        let result = match state.failed.take() {
            Some(error) => Err(error),
            None => state.file.flush(),
        };
        result.map_err(|source| LabError::file(&self.path, source))
    }
}

impl State {
    fn add(&mut self, now: Instant, packet: &PooledPacket) {
        if self.failed.is_some() {
            return;
        }
        self.packet.clear();
        let length = match packet.payload() {
            Payload::Tcp(segment) => {
                let ends = (packet.from(), packet.to());
                self.streams.segment(ends, packet.wire_len(), segment, &mut self.packet)
            }
            _ => datagram(packet, &mut self.packet),
        };
        let nanos = now.as_nanos();
        let words = [
            (nanos / 1_000_000_000) as u32,
            (nanos % 1_000_000_000) as u32,
            self.packet.len() as u32,
            length.max(self.packet.len() as u32),
        ];
        let header: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let written = self.file.write_all(&header).and_then(|()| self.file.write_all(&self.packet));
        self.failed = written.err();
    }
}

/// IPv4, UDP and what it carries; cross traffic carries nothing, though its headers say how much it would be. Gives the
/// packet's whole length.
fn datagram(packet: &PooledPacket, out: &mut Vec<u8>) -> u32 {
    let carried: &[u8] = match packet.payload() {
        Payload::Datagram => packet.bytes(),
        _ => &[],
    };
    let length = match packet.payload() {
        Payload::Datagram => IP_HEADER + UDP_HEADER + carried.len(),
        _ => packet.wire_len() as usize,
    };
    ip_header(packet.from(), packet.to(), UDP, length, out);
    out.extend(packet.from().port().to_be_bytes());
    out.extend(packet.to().port().to_be_bytes());
    out.extend(((length - IP_HEADER) as u16).to_be_bytes());
    // No checksum, as IPv4 allows.
    out.extend([0, 0]);
    out.extend_from_slice(carried);
    packet.wire_len()
}

fn ip_header(from: SocketAddr, to: SocketAddr, protocol: u8, length: usize, out: &mut Vec<u8>) {
    let begin = out.len();
    out.extend([0x45, 0]);
    out.extend((length as u16).to_be_bytes());
    out.extend([0, 0]);
    out.extend(DONT_FRAGMENT.to_be_bytes());
    out.extend([TIME_TO_LIVE, protocol, 0, 0]);
    for address in [from, to] {
        match address.ip() {
            IpAddr::V4(ip) => out.extend(ip.octets()),
            IpAddr::V6(_) => out.extend([0; 4]),
        }
    }
    let sum = checksum(&out[begin..]);
    out[begin + 10..begin + 12].copy_from_slice(&sum.to_be_bytes());
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_known_header_is_right() {
        // The example of RFC 1071, §3.
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn a_header_with_its_checksum_sums_to_zero() {
        let mut out = Vec::new();
        ip_header("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap(), UDP, 1_500, &mut out);
        assert_eq!((out.len(), checksum(&out)), (IP_HEADER, 0));
    }
}
