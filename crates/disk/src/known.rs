//! Reads chunks that a target may have already, beside the transfer.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use farhaul_session::{CHUNK_LEN, ChunkDigest, EntryId, KnownChunk, chunk_range};

use super::compared::Compared;

/// Results that may wait. The thread pauses with more.
const WAITING: usize = 256;
/// Files that may wait. A store claims chunks of no more.
const FILES: usize = 128;

/// Chunks to read: of one file, ascending.
#[derive(Debug)]
pub(super) struct Claimed {
    pub(super) id: EntryId,
    pub(super) file: Held,
    /// Bytes of the file as the sender has it.
    pub(super) size: u64,
    /// The chunks.
    pub(super) chunks: Chunks,
}

/// The file that is read.
#[derive(Debug)]
pub(super) enum Held {
    Open(File),
    /// Opened when its turn comes, so that many can wait.
    Closed(Compared),
}

/// Chunks of a file.
#[derive(Debug)]
pub(super) enum Chunks {
    /// Those that were noted, with their digests.
    Noted(Vec<(u64, ChunkDigest)>),
    /// The first ones, which are taken as they are.
    First(u64),
}

impl Claimed {
    /// The indices, in ranges.
    pub(super) fn ranges(&self) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let noted = match &self.chunks {
            Chunks::Noted(noted) => noted,
            Chunks::First(count) => return Some(0..*count).filter(|range| !range.is_empty()).into_iter().collect(),
        };
        for &(index, _) in noted {
            match ranges.last_mut().filter(|last| last.end == index) {
                Some(last) => last.end += 1,
                None => ranges.push(index..index + 1),
            }
        }
        ranges
    }

    /// Keeps the chunks of the first `most` ranges.
    pub(super) fn limit(&mut self, most: usize) {
        let beyond = self.ranges().get(most).map(|range| range.start);
        if let (Some(end), Chunks::Noted(noted)) = (beyond, &mut self.chunks) {
            noted.retain(|(index, _)| *index < end);
        }
    }
}

/// The thread that reads, and what it has read.
#[derive(Debug, Default)]
pub(super) struct KnownChunks {
    reader: Option<Reader>,
    /// Chunks without a result.
    pending: u64,
}

#[derive(Debug)]
struct Reader {
    /// `None` once the store ends.
    jobs: Option<SyncSender<Claimed>>,
    results: Option<Receiver<(EntryId, KnownChunk)>>,
    thread: Option<JoinHandle<()>>,
}

impl KnownChunks {
    /// Starts to read these chunks. Returns whether there is a thread for it.
    pub(super) fn read(&mut self, claimed: Claimed) -> bool {
        let count = match &claimed.chunks {
            Chunks::Noted(noted) => noted.len() as u64,
            Chunks::First(count) => *count,
        };
        if self.reader.is_none() {
            self.reader = Reader::start();
        }
        let sent = self.reader.as_ref().and_then(|reader| reader.jobs.as_ref()?.try_send(claimed).ok());
        if sent.is_some() {
            self.pending += count;
        }
        sent.is_some()
    }

    /// The next result, if there is one.
    pub(super) fn poll(&mut self) -> Option<(EntryId, KnownChunk)> {
        let known = self.reader.as_ref()?.results.as_ref()?.try_recv().ok()?;
        self.pending -= 1;
        Some(known)
    }

    /// Whether results are missing.
    pub(super) const fn is_reading(&self) -> bool {
        self.pending > 0
    }
}

impl Reader {
    fn start() -> Option<Self> {
        let ((jobs, inbox), (told, results)) = (sync_channel(FILES), sync_channel(WAITING));
        let thread = thread::Builder::new().name("farhaul:known".into()).spawn(move || work(&inbox, &told)).ok()?;
        Some(Self { jobs: Some(jobs), results: Some(results), thread: Some(thread) })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Both ends of the thread's loop end with their channels.
        (self.jobs, self.results) = (None, None);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(inbox: &Receiver<Claimed>, told: &SyncSender<(EntryId, KnownChunk)>) {
    let mut room = vec![0; usize::try_from(CHUNK_LEN).expect("a MiB fits")];
    while let Ok(Claimed { id, file, size, chunks }) = inbox.recv() {
        let (noted, first) = match chunks {
            Chunks::Noted(noted) => (noted, 0),
            Chunks::First(count) => (Vec::new(), count),
        };
        let noted = noted.into_iter().map(|(index, digest)| (index, Some(digest)));
        let file = match file {
            Held::Open(file) => Some(file),
            Held::Closed(compared) => compared.open().ok(),
        };
        for (index, noted) in noted.chain((0..first).map(|index| (index, None))) {
            let range = chunk_range(index, size);
            let bytes = &mut room[..usize::try_from(range.end - range.start).expect("at most a chunk")];
            let known = match file.as_ref().map(|file| file.read_exact_at(bytes, range.start)) {
                Some(Ok(())) => KnownChunk::of(index, bytes),
                Some(Err(_)) | None => KnownChunk::missing(index),
            };
            let is_as_noted = noted.is_none_or(|noted| known.digest.is_some_and(|(digest, _)| digest == noted));
            let known = if is_as_noted { known } else { KnownChunk::missing(index) };
            if told.send((id, known)).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_read_compared_with_what_was_noted_and_told_in_order() {
        let path = std::env::temp_dir().join(format!("farhaul-known-{}", std::process::id()));
        let content: Vec<u8> = (0..CHUNK_LEN * 2 + 10).map(|index| (index / 999) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let chunk = |index: u64| {
            let range = chunk_range(index, content.len() as u64);
            &content[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()]
        };
        let digest = |index| ChunkDigest::of(index, chunk(index));
        let mut known = KnownChunks::default();
        let claimed = |chunks| {
            let file = Held::Open(File::open(&path).unwrap());
            Claimed { id: EntryId(4), file, size: content.len() as u64, chunks }
        };
        let noted = claimed(Chunks::Noted(vec![(0, digest(0)), (1, digest(0))]));
        assert_eq!(noted.ranges(), std::iter::once(0..2).collect::<Vec<_>>());
        let first = claimed(Chunks::First(3));
        assert_eq!(first.ranges(), std::iter::once(0..3).collect::<Vec<_>>());
        assert!(known.read(noted) && known.read(first));
        let mut all = Vec::new();
        while known.is_reading() {
            all.extend(known.poll());
            thread::yield_now();
        }
        std::fs::remove_file(&path).unwrap();
        assert!(all.iter().all(|(id, _)| *id == EntryId(4)));
        let digests: Vec<_> =
            all.iter().map(|(_, known)| (known.index, known.digest.map(|(digest, _)| digest))).collect();
        let all = [(0, Some(digest(0))), (1, None), (0, Some(digest(0))), (1, Some(digest(1))), (2, Some(digest(2)))];
        assert_eq!(digests, all);
    }

    #[test]
    fn ranges_beyond_a_limit_are_left_out() {
        let file = Held::Open(File::open("/dev/null").unwrap());
        let chunks = [1, 2, 5, 6, 9].map(|index| (index, ChunkDigest::of(index, b"x"))).to_vec();
        let mut claimed = Claimed { id: EntryId(0), file, size: 20 << 20, chunks: Chunks::Noted(chunks) };
        claimed.limit(2);
        assert_eq!(claimed.ranges(), [1..3, 5..7]);
    }
}
