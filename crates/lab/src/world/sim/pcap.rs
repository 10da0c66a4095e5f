//! Writes the packets of a run to a file for Wireshark.

mod tcp;

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use farhaul_emu::capture::{file_header, internet_checksum, record_header};
use farhaul_netem::WireLen;
use farhaul_sim::{Capture, Passing, Payload, PooledPacket};
use farhaul_units::Instant;

use crate::error::LabError;

const UDP: u8 = 17;
const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const TIME_TO_LIVE: u8 = 64;
/// IP flag "don't fragment".
const DONT_FRAGMENT: u16 = 0x4000;

/// A file of packets. Each packet is written once, when it leaves its host.
pub(super) struct Writer {
    path: PathBuf,
    file: Rc<RefCell<CaptureFile>>,
}

struct CaptureFile {
    file: BufWriter<File>,
    packet: Vec<u8>,
    /// Maps TCP's sequence numbers to bytes.
    streams: tcp::Streams,
    /// The error that ended the writing.
    failed: Option<io::Error>,
}

impl Writer {
    /// Creates the file, or empties it.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub(super) fn create(path: &Path) -> Result<Self, LabError> {
        let create = || {
            let mut file = BufWriter::new(File::create(path)?);
            file.write_all(&file_header())?;
            Ok(file)
        };
        let file = create().map_err(|source| LabError::file(path, source))?;
        let state = CaptureFile { file, packet: Vec::new(), streams: tcp::Streams::default(), failed: None };
        Ok(Self { path: path.to_owned(), file: Rc::new(RefCell::new(state)) })
    }

    /// A capture that writes to this file.
    pub(super) fn sink(&self) -> Capture {
        let file = Rc::clone(&self.file);
        Box::new(move |now, passing, packet| {
            if matches!(passing, Passing::Sent(_)) {
                file.borrow_mut().add(now, packet);
            }
        })
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// The first error since the file was created.
    pub(super) fn finish(self) -> Result<(), LabError> {
        let mut state = self.file.borrow_mut();
        let result = match state.failed.take() {
            Some(error) => Err(error),
            None => state.file.flush(),
        };
        result.map_err(|source| LabError::file(&self.path, source))
    }
}

impl CaptureFile {
    fn add(&mut self, now: Instant, packet: &PooledPacket) {
        if self.failed.is_some() {
            return;
        }
        self.packet.clear();
        let length = match packet.payload() {
            Payload::Tcp(segment) => {
                let ends = (packet.from(), packet.to());
                self.streams.segment(ends, packet.wire_len(), (segment, packet.bytes()), &mut self.packet)
            }
            _ => datagram(packet, &mut self.packet),
        };
        let kept = self.packet.len() as u32;
        let header = record_header(now - Instant::ZERO, kept, length.max(kept));
        let written = self.file.write_all(&header).and_then(|()| self.file.write_all(&self.packet));
        self.failed = written.err();
    }
}

/// Writes IPv4, UDP and the payload, and returns the packet's whole length. Packets of cross traffic have no payload,
/// although their headers give its length.
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
    let sum = internet_checksum(&out[begin..]);
    out[begin + 10..begin + 12].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_with_its_checksum_sums_to_zero() {
        let mut out = Vec::new();
        ip_header("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap(), UDP, 1_500, &mut out);
        assert_eq!((out.len(), internet_checksum(&out)), (IP_HEADER, 0));
    }
}
