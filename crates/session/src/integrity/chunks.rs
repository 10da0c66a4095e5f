//! Digests of the chunks of a file, which make up the digest of the file.
//!
//! BLAKE3 hashes a tree of leaves of 1 KiB (BLAKE3 paper, section 2.1). A chunk of 1 MiB at a multiple of 1 MiB is a
//! complete subtree of it, so its chaining value can be checked as soon as the chunk has arrived, whatever the order of
//! the chunks. The root over these values is the digest that `b3sum` prints for the whole file.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

use super::{DIGEST_LEN, Digest};

/// Bytes of a chunk. The last one of a file may be shorter. A power of two, so that chunks are subtrees.
pub const CHUNK_LEN: u64 = 1 << 20;

/// The digest of one chunk: its chaining value in the tree of the file. It depends on the position of the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkDigest(ChainingValue);

impl ChunkDigest {
    /// The digest with these bytes.
    pub const fn from_bytes(bytes: [u8; DIGEST_LEN]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; DIGEST_LEN] {
        &self.0
    }

    /// The digest of these bytes as the chunk `index`.
    ///
    /// # Panics
    /// If `bytes` are none, or longer than a chunk.
    pub fn of(index: u64, bytes: &[u8]) -> Self {
        let mut hasher = ChunkHasher::at(index);
        hasher.update(bytes);
        hasher.digest()
    }
}

/// The number of chunks of a file. An empty one has none.
pub const fn chunk_count(size: u64) -> u64 {
    size.div_ceil(CHUNK_LEN)
}

/// The bytes of the chunk `index` of a file of `size` bytes.
pub const fn chunk_range(index: u64, size: u64) -> Range<u64> {
    let start = index.saturating_mul(CHUNK_LEN);
    let end = start.saturating_add(CHUNK_LEN);
    start..if end < size { end } else { size }
}

/// The digest of one chunk in progress.
#[derive(Clone)]
pub struct ChunkHasher {
    hasher: blake3::Hasher,
    index: u64,
    bytes: u64,
}

impl ChunkHasher {
    /// A hasher for the chunk `index`.
    pub fn at(index: u64) -> Self {
        let mut this = Self { hasher: blake3::Hasher::new(), index: 0, bytes: 0 };
        this.start(index);
        this
    }

    /// Starts the chunk `index`.
    pub fn start(&mut self, index: u64) {
        // A reset of blake3 1.8 keeps the offset of the hasher, and its next offset fails.
        self.hasher = blake3::Hasher::new();
        // No file has bytes in a chunk beyond 2^64.
        self.hasher.set_input_offset(index.checked_mul(CHUNK_LEN).unwrap_or(0));
        (self.index, self.bytes) = (index, 0);
    }

    /// Appends bytes of the chunk.
    ///
    /// # Panics
    /// If the chunk becomes longer than [`CHUNK_LEN`].
    pub fn update(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        assert!(self.bytes <= CHUNK_LEN, "callers cut their bytes at chunks");
        self.hasher.update(bytes);
    }

    /// Passes over bytes of a chunk that needs no digest.
    pub(crate) const fn skip(&mut self, count: u64) {
        self.bytes = self.bytes.saturating_add(count);
    }

    /// The bytes of the chunk so far.
    pub const fn len(&self) -> u64 {
        self.bytes
    }

    /// Whether it has no bytes yet.
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The index of the chunk.
    pub const fn index(&self) -> u64 {
        self.index
    }

    /// The digest of the chunk.
    ///
    /// # Panics
    /// If it has no bytes: an empty file has no chunk.
    pub fn digest(&self) -> ChunkDigest {
        assert!(self.bytes > 0, "a chunk has bytes");
        ChunkDigest(self.hasher.finalize_non_root())
    }

    /// The digest of a file that consists of these bytes alone: of the first chunk, which may be empty.
    fn root(&self) -> Digest {
        Digest(*self.hasher.finalize().as_bytes())
    }
}

impl std::fmt::Debug for ChunkHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChunkHasher({}: {} bytes)", self.index, self.bytes)
    }
}

/// The digests of the chunks of one file, as far as they are known. Its memory grows with the digests that it got, not
/// with the size that a peer claims.
#[derive(Clone, Debug, Default)]
pub struct ChunkDigests {
    /// Runs of adjacent chunks by their first index. No two of them touch.
    runs: BTreeMap<u64, VecDeque<ChunkDigest>>,
    /// The digest of a file of one chunk, which is no chaining value.
    whole: Option<Digest>,
}

impl ChunkDigests {
    /// Puts the digest of a complete chunk in its place.
    pub fn put(&mut self, hasher: &ChunkHasher) {
        if hasher.index == 0 {
            self.whole = Some(hasher.root());
        }
        if !hasher.is_empty() {
            self.put_digest(hasher.index, hasher.digest());
        }
    }

    /// Puts the digest of a chunk that was hashed elsewhere. `whole` is that of a file of this chunk alone, if it is the first.
    pub fn put_known(&mut self, index: u64, digest: ChunkDigest, whole: Digest) {
        if index == 0 {
            self.whole = Some(whole);
        }
        self.put_digest(index, digest);
    }

    fn put_digest(&mut self, index: u64, digest: ChunkDigest) {
        if let Some((&first, run)) = self.runs.range_mut(..=index).next_back() {
            let at = index - first;
            if at < run.len() as u64 {
                // The run is in memory, so its length fits.
                run[usize::try_from(at).unwrap_or(usize::MAX)] = digest;
                return;
            }
            if at == run.len() as u64 {
                run.push_back(digest);
                self.join(first, index + 1);
                return;
            }
        }
        self.runs.insert(index, VecDeque::from([digest]));
        self.join(index, index + 1);
    }

    /// Joins the run at `next` with that at `first`, if there is one. The shorter one moves, so that no order of chunks costs much.
    fn join(&mut self, first: u64, next: u64) {
        let Some(mut tail) = self.runs.remove(&next) else { return };
        let Some(head) = self.runs.get_mut(&first) else { return };
        if head.len() < tail.len() {
            while let Some(digest) = head.pop_back() {
                tail.push_front(digest);
            }
            *head = tail;
        } else {
            head.extend(tail);
        }
    }

    /// The number of runs.
    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// The digest of the chunk `index`, if it is known.
    pub fn get(&self, index: u64) -> Option<ChunkDigest> {
        let (first, run) = self.runs.range(..=index).next_back()?;
        run.get(usize::try_from(index - first).ok()?).copied()
    }

    /// Forgets the chunk `index`, whose bytes are wrong or changed.
    pub fn remove(&mut self, index: u64) {
        self.whole = self.whole.filter(|_| index != 0);
        let Some((&first, run)) = self.runs.range(..=index).next_back() else { return };
        let Some(at) = usize::try_from(index - first).ok().filter(|&at| at < run.len()) else { return };
        let Some(mut head) = self.runs.remove(&first) else { return };
        // The shorter part moves.
        let mut tail = if at < head.len() / 2 {
            let before = head.drain(..at).collect();
            std::mem::replace(&mut head, before)
        } else {
            head.split_off(at)
        };
        tail.pop_front();
        if !head.is_empty() {
            self.runs.insert(first, head);
        }
        if !tail.is_empty() {
            self.runs.insert(index + 1, tail);
        }
    }

    /// Forgets the chunks from `index` on.
    pub fn truncate(&mut self, index: u64) {
        self.whole = self.whole.filter(|_| index != 0);
        drop(self.runs.split_off(&index));
        if let Some((first, run)) = self.runs.iter_mut().next_back() {
            run.truncate(usize::try_from(index - first).unwrap_or(usize::MAX));
        }
    }

    /// The number of known chunks.
    pub fn count(&self) -> u64 {
        self.runs.values().map(|run| run.len() as u64).sum()
    }

    /// The digest of a file of `size` bytes; `None` if a chunk of it is unknown.
    pub fn root(&self, size: u64) -> Option<Digest> {
        let count = chunk_count(size);
        if count == 0 {
            return Some(Digest::of(b""));
        }
        let (run, count) = (self.runs.get(&0)?, usize::try_from(count).ok()?);
        match count {
            _ if count > run.len() => None,
            1 => self.whole,
            _ => Some(root_of(run, count)),
        }
    }
}

/// The root over the first `count` chunks, at least two: the left subtree is the largest complete one that leaves something for the
/// right one (BLAKE3 paper, section 2.1).
fn root_of(chunks: &VecDeque<ChunkDigest>, count: usize) -> Digest {
    let left = left_len(count);
    Digest(*merge_subtrees_root(&subtree(chunks, 0..left), &subtree(chunks, left..count), Mode::Hash).as_bytes())
}

fn subtree(chunks: &VecDeque<ChunkDigest>, range: Range<usize>) -> ChainingValue {
    if range.len() == 1 {
        return chunks[range.start].0;
    }
    let middle = range.start + left_len(range.len());
    let (left, right) = (subtree(chunks, range.start..middle), subtree(chunks, middle..range.end));
    merge_subtrees_non_root(&left, &right, Mode::Hash)
}

/// The largest power of two below `count`, which is at least two.
const fn left_len(count: usize) -> usize {
    1 << (count - 1).ilog2()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CHUNK: usize = CHUNK_LEN as usize;

    fn content(size: usize) -> Vec<u8> {
        (0..size).map(|index| (index / 251) as u8).collect()
    }

    fn known(content: &[u8], order: impl IntoIterator<Item = usize>) -> ChunkDigests {
        let mut digests = ChunkDigests::default();
        for index in order {
            let mut hasher = ChunkHasher::at(index as u64);
            let end = content.len().min((index + 1) * CHUNK);
            hasher.update(&content[index * CHUNK..end]);
            digests.put(&hasher);
        }
        digests
    }

    #[test]
    fn chunks_in_any_order_give_the_digest_of_the_file() {
        for size in [1, 1024, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 5 * CHUNK + 17, 8 * CHUNK] {
            let content = content(size);
            let count = size.div_ceil(CHUNK);
            let expected = Digest::of(&content);
            assert_eq!(known(&content, 0..count).root(size as u64), Some(expected), "{size}");
            let digests = known(&content, (0..count).rev());
            assert_eq!(digests.root(size as u64), Some(expected), "{size} backwards");
            assert_eq!(digests.runs.len(), 1, "adjacent runs are one");
        }
        assert_eq!(ChunkDigests::default().root(0), Some(Digest::of(b"")));
    }

    #[test]
    fn a_missing_chunk_gives_no_digest() {
        let content = content(4 * CHUNK);
        let mut digests = known(&content, 0..4);
        let size = content.len() as u64;
        digests.remove(2);
        assert_eq!((digests.root(size), digests.count(), digests.get(3).is_some()), (None, 3, true));
        digests.put_digest(2, ChunkDigest::of(2, &content[2 * CHUNK..3 * CHUNK]));
        assert_eq!(digests.root(size), Some(Digest::of(&content)));
        digests.truncate(1);
        assert_eq!((digests.root(CHUNK_LEN), digests.count()), (Some(Digest::of(&content[..CHUNK])), 1));
        digests.truncate(0);
        assert_eq!(digests.root(CHUNK_LEN), None);
    }

    #[test]
    fn ranges_of_chunks_end_with_the_file() {
        assert_eq!((chunk_count(0), chunk_count(1), chunk_count(CHUNK_LEN), chunk_count(CHUNK_LEN + 1)), (0, 1, 1, 2));
        assert_eq!(chunk_range(1, CHUNK_LEN + 5), CHUNK_LEN..CHUNK_LEN + 5);
        assert_eq!(chunk_range(0, u64::MAX), 0..CHUNK_LEN);
    }

    /// Each chunk moved whole runs once, which took hours for a million of them.
    #[test]
    fn chunks_in_the_worst_order_cost_little() {
        let (mut digests, count) = (ChunkDigests::default(), 1 << 20);
        for index in (0..count).rev() {
            digests.put_digest(index, ChunkDigest([7; DIGEST_LEN]));
        }
        assert_eq!((digests.count(), digests.runs()), (count, 1));
        for index in 0..count {
            digests.remove(index);
        }
        assert_eq!(digests.count(), 0);
    }

    #[test]
    fn a_chunk_beyond_every_file_can_be_begun() {
        let last = chunk_count(u64::MAX) - 1;
        assert_eq!((ChunkHasher::at(last + 1).index(), ChunkHasher::at(u64::MAX).len()), (last + 1, 0));
    }

    proptest! {
        /// Against a simple model: a map of indices.
        #[test]
        fn known_chunks_are_those_put_and_not_removed(steps in proptest::collection::vec((0u64..12, 0u8..4), 0..60)) {
            let (mut digests, mut model) = (ChunkDigests::default(), BTreeMap::new());
            for (number, (index, step)) in steps.into_iter().enumerate() {
                match step {
                    0 => { digests.remove(index); model.remove(&index); }
                    1 if index % 5 == 0 => { digests.truncate(index); model.split_off(&index); }
                    _ => {
                        let digest = ChunkDigest([u8::try_from(number).unwrap(); DIGEST_LEN]);
                        digests.put_digest(index, digest);
                        model.insert(index, digest);
                    }
                }
            }
            for index in 0..14 {
                prop_assert_eq!(digests.get(index), model.get(&index).copied());
            }
            prop_assert_eq!(digests.count(), model.len() as u64);
        }
    }
}
