//! The journal of an incomplete file: which chunks have arrived, with their digests.
//!
//! ```text
//! header   magic 8, length of the name u16, name, size u64, seconds i64, nanoseconds u32, check 8
//! record   index u64, digest 32, check 8
//! ```
//!
//! A check is the start of the BLAKE3 digest of what it follows. The journal is a hint. A later copy reads each noted chunk and
//! compares it, and the sender compares it again. So a journal that is lost, torn, damaged or a lie costs time and no
//! correctness, and its records need not be synchronised.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};

use farhaul_session::{CHUNK_LEN, ChunkDigest, Component, Digest, Entry, Mtime, chunk_count};

const MAGIC: [u8; 8] = *b"FHJRNL\x01\n";
const CHECK: usize = 8;
const RECORD: usize = 8 + 32 + CHECK;
/// Longest header: a name of 255 bytes.
const LONGEST_HEADER: usize = MAGIC.len() + 2 + 255 + 20 + CHECK;
/// Most bytes of a journal that are read: the records of 1 TiB, and as many again from repeated attempts.
const LONGEST: u64 = 2 * RECORD as u64 * (1 << 20);

/// The journal of a file that is being written.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
}

/// What a journal says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Noted {
    /// The final name of the file.
    pub(super) name: Vec<u8>,
    /// Size and time of the source.
    pub(super) size: u64,
    pub(super) mtime: Mtime,
    /// The digest of each chunk.
    pub(super) chunks: BTreeMap<u64, ChunkDigest>,
}

impl Journal {
    /// Begins an empty journal.
    pub(super) fn begin(mut file: File, name: &Component, entry: &Entry) -> io::Result<Self> {
        let mut header = MAGIC.to_vec();
        let name = name.as_bytes();
        header.extend_from_slice(&u16::try_from(name.len()).unwrap_or(u16::MAX).to_be_bytes());
        header.extend_from_slice(name);
        header.extend_from_slice(&entry.size.to_be_bytes());
        header.extend_from_slice(&entry.mtime.seconds.to_be_bytes());
        header.extend_from_slice(&entry.mtime.nanos.to_be_bytes());
        append_check(&mut header);
        file.write_all(&header)?;
        Ok(Self { file })
    }

    /// Notes a chunk that has arrived.
    pub(super) fn note(&mut self, index: u64, digest: &ChunkDigest) -> io::Result<()> {
        self.file.write_all(&record(index, digest))
    }

    /// Notes what an earlier journal said.
    pub(super) fn note_all(&mut self, chunks: &[(u64, ChunkDigest)]) -> io::Result<()> {
        self.file.write_all(&chunks.iter().flat_map(|(index, digest)| record(*index, digest)).collect::<Vec<u8>>())
    }
}

impl Noted {
    /// Reads a journal. `None` if it is none. A torn or damaged end is left out.
    pub(super) fn read(file: &File) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        file.take(LONGEST).read_to_end(&mut bytes)?;
        Ok(Self::parse(&bytes))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (length, rest) = rest.split_first_chunk()?;
        let (name, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        let (size, rest) = rest.split_first_chunk()?;
        let (seconds, rest) = rest.split_first_chunk()?;
        let (nanos, rest) = rest.split_first_chunk()?;
        let header = bytes.len() - rest.len();
        let (check, records) = rest.split_first_chunk::<CHECK>()?;
        if header > LONGEST_HEADER || *check != check_of(&bytes[..header]) {
            return None;
        }
        let size = u64::from_be_bytes(*size);
        let mtime = Mtime { seconds: i64::from_be_bytes(*seconds), nanos: u32::from_be_bytes(*nanos) };
        let mut chunks = BTreeMap::new();
        for record in records.chunks_exact(RECORD) {
            let (body, check) = record.split_at(RECORD - CHECK);
            let (Some((index, digest)), true) = (body.split_first_chunk(), check == check_of(body)) else { break };
            let Ok(digest) = <[u8; 32]>::try_from(digest) else { break };
            // The last one counts: a chunk may have come again.
            chunks.insert(u64::from_be_bytes(*index), ChunkDigest::from_bytes(digest));
        }
        Some(Self { name: name.to_vec(), size, mtime, chunks })
    }

    /// The chunks of a file of `size` bytes of which the first `present` bytes may be there. The last chunk of the old file
    /// counts only if it is the last one of the new file.
    pub(super) fn chunks_within(&self, size: u64, present: u64) -> Vec<(u64, ChunkDigest)> {
        let last_of_old = chunk_count(self.size).saturating_sub(1);
        let usable = |index: u64| {
            let end = index.saturating_add(1).saturating_mul(CHUNK_LEN);
            index < chunk_count(size)
                && (end <= size.min(self.size) || size == self.size && index == last_of_old)
                && end.min(size) <= present
        };
        self.chunks.iter().filter(|(index, _)| usable(**index)).map(|(index, digest)| (*index, *digest)).collect()
    }
}

fn record(index: u64, digest: &ChunkDigest) -> Vec<u8> {
    let mut record = index.to_be_bytes().to_vec();
    record.extend_from_slice(digest.as_bytes());
    append_check(&mut record);
    record
}

fn append_check(bytes: &mut Vec<u8>) {
    let check = check_of(bytes);
    bytes.extend_from_slice(&check);
}

fn check_of(bytes: &[u8]) -> [u8; CHECK] {
    *Digest::of(bytes).as_bytes().first_chunk().expect("a digest is longer")
}

#[cfg(test)]
mod tests {
    use std::io::Seek;

    use farhaul_session::{EntryKind, RelPath};

    use super::*;

    fn entry(size: u64) -> Entry {
        Entry::new(RelPath::parse(b"d/tape").unwrap(), EntryKind::File, size, 0o644, Mtime { seconds: -3, nanos: 9 })
    }

    fn written(size: u64, chunks: &[u64]) -> Vec<u8> {
        let path = std::env::temp_dir().join(format!("farhaul-journal-{}-{size}-{}", std::process::id(), chunks.len()));
        let file = File::options().create(true).truncate(true).write(true).read(true).open(&path).unwrap();
        let mut journal = Journal::begin(file, &Component::new(b"tape").unwrap(), &entry(size)).unwrap();
        for &index in chunks {
            journal.note(index, &ChunkDigest::of(index, b"x")).unwrap();
        }
        let mut file = journal.file;
        file.rewind().unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        std::fs::remove_file(&path).unwrap();
        bytes
    }

    #[test]
    fn a_journal_says_what_was_noted() {
        let noted = Noted::parse(&written(9 << 20, &[0, 5, 2])).unwrap();
        assert_eq!((noted.name.as_slice(), noted.size, noted.mtime.seconds), (&b"tape"[..], 9 << 20, -3));
        assert_eq!(noted.chunks.keys().copied().collect::<Vec<_>>(), [0, 2, 5]);
        assert_eq!(noted.chunks[&5], ChunkDigest::of(5, b"x"));
    }

    #[test]
    fn a_torn_or_damaged_journal_says_what_stands_before_the_damage() {
        let bytes = written(9 << 20, &[0, 1, 2]);
        for cut in 0..bytes.len() {
            match Noted::parse(&bytes[..cut]) {
                None => assert!(cut < bytes.len() - 3 * RECORD),
                Some(noted) => assert_eq!(noted.chunks.len(), (cut + 3 * RECORD - bytes.len()) / RECORD),
            }
            let mut damaged = bytes.clone();
            damaged[cut] ^= 0x10;
            let before = cut.saturating_sub(bytes.len() - 3 * RECORD) / RECORD;
            if let Some(noted) = Noted::parse(&damaged) {
                assert_eq!(noted.chunks.len(), before, "damage at {cut}");
            }
        }
        assert_eq!(Noted::parse(b"of another program"), None);
    }

    #[test]
    fn chunks_that_moved_or_are_not_there_do_not_count() {
        const MIB: u64 = 1 << 20;
        let noted = Noted::parse(&written(3 * MIB + 5, &[0, 1, 2, 3])).unwrap();
        let indices = |size, present| -> Vec<u64> {
            noted.chunks_within(size, present).into_iter().map(|(index, _)| index).collect()
        };
        assert_eq!(indices(3 * MIB + 5, 3 * MIB + 5), [0, 1, 2, 3]);
        assert_eq!(indices(3 * MIB + 5, 3 * MIB), [0, 1, 2], "the end is not there");
        assert_eq!(indices(5 * MIB, 9 * MIB), [0, 1, 2], "the last chunk was short");
        assert_eq!(indices(2 * MIB + 1, 9 * MIB), [0, 1], "the last chunk is short now");
        assert_eq!(indices(3 * MIB, 9 * MIB), [0, 1, 2]);
    }
}
