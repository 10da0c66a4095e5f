//! The space that files take while they are under way, and afterwards if they stay incomplete.

use std::os::unix::fs::MetadataExt;

use super::reservation::STEP;
use super::*;

/// Far more than any test writes.
const CLAIM: u64 = 1 << 30;
/// What a file system may need beside the content of a file.
const OVERHEAD: u64 = 1 << 20;

/// The length and the space on the disk of the only file.
fn only_file(to: &Scratch) -> (u64, u64) {
    let [file] = &fs::read_dir(&to.0).unwrap().map(Result::unwrap).collect::<Vec<_>>()[..] else { panic!("one file") };
    let metadata = file.metadata().unwrap();
    (metadata.len(), metadata.blocks() * 512)
}

fn begin(to: &Scratch) -> DiskStore {
    let mut store = DiskStore::at(&to.0, true).unwrap();
    begin_file(&mut store, EntryId(0), &file("file", CLAIM)).unwrap();
    store
}

#[test]
fn d6_a_claim_reserves_no_more_than_a_step_ahead_of_its_bytes() {
    let to = Scratch::new("space-steps");
    let (mut store, block) = (begin(&to), vec![7; 1 << 20]);
    for written in 0..40 {
        let (_, space) = only_file(&to);
        assert!(space <= (written << 20) + STEP + OVERHEAD, "{written} MiB: {space}");
        store.write(EntryId(0), written << 20, &block).unwrap();
    }
    drop(store);
}

#[test]
fn d6_what_stays_of_an_incomplete_file_has_its_bytes_and_no_reserved_space() {
    for is_lost in [false, true] {
        let to = Scratch::new(&format!("space-kept-{is_lost}"));
        let mut store = begin(&to);
        store.write(EntryId(0), 0, &[7; 10_000]).unwrap();
        // A session tells the store. A connection that is lost with its thread does not.
        if !is_lost {
            store.abort(EntryId(0), Leftover::Keep);
        }
        drop(store);
        let (len, space) = only_file(&to);
        assert_eq!(len, 10_000);
        assert!(space <= OVERHEAD, "{space}");
    }
}

#[test]
fn d6_an_incomplete_file_without_any_bytes_is_removed() {
    for is_lost in [false, true] {
        let to = Scratch::new(&format!("space-empty-{is_lost}"));
        let mut store = begin(&to);
        if !is_lost {
            store.abort(EntryId(0), Leftover::Keep);
        }
        drop(store);
        assert_eq!(tree(&to.0), []);
    }
}

#[test]
fn a_complete_file_has_its_whole_size() {
    let to = Scratch::new("space-whole");
    let size = STEP + 5_000_000;
    let (mut store, entry) = (DiskStore::at(&to.0, true).unwrap(), file("file", size));
    begin_file(&mut store, EntryId(0), &entry).unwrap();
    let content = vec![7; usize::try_from(size).unwrap()];
    for (offset, bytes) in (0..).step_by(1 << 20).zip(content.chunks(1 << 20)) {
        store.write(EntryId(0), offset, bytes).unwrap();
    }
    store.commit(EntryId(0), &entry, &Digest::of(&content)).unwrap();
    assert_eq!(failures(&mut store), []);
    assert!(fs::read(to.path("file")).unwrap() == content);
}
