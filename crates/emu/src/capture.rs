//! Packets of a host in a file for Wireshark (the classic format of libpcap, with nanoseconds).
//!
//! The loop never waits for the disk: it fills buffers, and a separate thread writes them. If the disk is too slow,
//! packets are missing in the file, and are counted. A full disk ends the file, and nothing else.

use std::fs::File;
use std::io::{self, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use farhaul_units::Duration;

use crate::packet::Packet;
pub use crate::packet::headers::internet_checksum;

/// Magic number of files with nanoseconds, and the format version 2.4.
const MAGIC: u32 = 0xa1b2_3c4d;
const VERSION: [u16; 2] = [2, 4];
/// Bytes kept of each packet: all.
const SNAP_LENGTH: u32 = 65_535;
/// Packets begin with their IP header.
const LINKTYPE_RAW: u32 = 101;
/// Bytes per buffer handed to the writer.
const BUFFER: usize = 1 << 18;
/// Most buffers waiting for the disk: 64 MiB.
const WAITING: usize = 256;

/// The file header for packets that begin with their IP header.
pub fn file_header() -> [u8; 24] {
    let mut header = [0; 24];
    header[..4].copy_from_slice(&MAGIC.to_le_bytes());
    header[4..6].copy_from_slice(&VERSION[0].to_le_bytes());
    header[6..8].copy_from_slice(&VERSION[1].to_le_bytes());
    // Time zone and accuracy, eight bytes, are always zero.
    header[16..20].copy_from_slice(&SNAP_LENGTH.to_le_bytes());
    header[20..].copy_from_slice(&LINKTYPE_RAW.to_le_bytes());
    header
}

/// The header of a packet that passed `at` after 1970. Of its `length` bytes on the wire, `kept` follow.
pub fn record_header(at: Duration, kept: u32, length: u32) -> [u8; 16] {
    let mut header = [0; 16];
    for (place, word) in header.chunks_exact_mut(4).zip([at.as_secs() as u32, at.subsec_nanos(), kept, length]) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    header
}

/// A capture file that ends early.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BrokenCapture {
    /// The file.
    pub file: PathBuf,
    /// The error of the write.
    pub error: Arc<io::Error>,
}

/// A capture file being written.
#[derive(Debug)]
pub(crate) struct Capture {
    file: PathBuf,
    buffer: Vec<u8>,
    to_disk: SyncSender<Vec<u8>>,
    written: Receiver<Vec<u8>>,
    writer: JoinHandle<io::Result<()>>,
    /// Packets missing in the file because the disk was too slow.
    missed: u64,
    /// Packets in `buffer`.
    packets: u64,
}

impl Capture {
    /// Creates the file, or truncates it.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut file = File::create(path)?;
        let (to_disk, from_loop) = sync_channel::<Vec<u8>>(WAITING);
        let (give_back, written) = sync_channel(WAITING);
        let writer = thread::Builder::new().name("capture".into()).spawn(move || {
            for mut buffer in from_loop {
                file.write_all(&buffer)?;
                buffer.clear();
                // If the channel is full, the buffer is not needed.
                let _ = give_back.try_send(buffer);
            }
            Ok(())
        })?;
        let mut buffer = Vec::with_capacity(BUFFER);
        buffer.extend_from_slice(&file_header());
        Ok(Self { file: path.to_owned(), buffer, to_disk, written, writer, missed: 0, packets: 0 })
    }

    /// Adds a packet that passed `at` after 1970, with its checksum filled in.
    pub(crate) fn add(&mut self, at: Duration, packet: &Packet) {
        let bytes = packet.bytes();
        let length = bytes.len() as u32;
        self.buffer.extend_from_slice(&record_header(at, length, length));
        let start = self.buffer.len();
        self.buffer.extend_from_slice(bytes);
        if let Some(checksum) = packet.checksum() {
            checksum.fill_in(&mut self.buffer[start..]);
        }
        self.packets += 1;
        if self.buffer.len() + SNAP_LENGTH as usize > BUFFER {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let empty = self.written.try_recv().unwrap_or_else(|_| Vec::with_capacity(BUFFER));
        let full = mem::replace(&mut self.buffer, empty);
        let packets = mem::take(&mut self.packets);
        if let Err(TrySendError::Full(mut buffer) | TrySendError::Disconnected(mut buffer)) =
            self.to_disk.try_send(full)
        {
            self.missed += packets;
            buffer.clear();
            self.buffer = buffer;
        }
    }

    /// Writes the rest. Returns the number of packets missing because the disk was too slow.
    ///
    /// # Errors
    /// A write failed.
    pub(crate) fn finish(mut self) -> Result<u64, BrokenCapture> {
        self.hand_over();
        drop(self.to_disk);
        match self.writer.join() {
            Ok(Ok(())) => Ok(self.missed),
            Ok(Err(error)) => Err(BrokenCapture { file: self.file, error: Arc::new(error) }),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_begins_as_wireshark_expects() {
        let header = file_header();
        assert_eq!(header[..8], [0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0]);
        assert_eq!(header[16..], [0xff, 0xff, 0, 0, 101, 0, 0, 0]);
        let record = record_header(Duration::new(3, 7), 40, 1_500);
        assert_eq!(record, [3, 0, 0, 0, 7, 0, 0, 0, 40, 0, 0, 0, 0xdc, 0x05, 0, 0]);
    }

    #[test]
    fn a_full_disk_is_reported_at_the_end_with_its_file() {
        let full = Path::new("/dev/full");
        let Ok(capture) = Capture::create(full) else { return };
        let broken = capture.finish().unwrap_err();
        assert_eq!((&*broken.file, broken.error.kind()), (full, io::ErrorKind::StorageFull));
    }
}
