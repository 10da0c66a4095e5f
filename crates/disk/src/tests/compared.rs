//! Files that may have the content of the source.

use std::os::unix::fs::MetadataExt;

use farhaul_session::{CHUNK_LEN, Change, Rules, Skip, Verdict, chunk_count};

use super::*;

const CHUNK: usize = CHUNK_LEN as usize;

fn comparing(to: &Scratch, rules: Rules) -> DiskStore {
    DiskStore::into_directory(Directory::open(&to.0).unwrap()).under_rules(&Rules { skip: Skip::Digest, ..rules }, true)
}

fn content(seed: u8) -> Vec<u8> {
    (0..2 * CHUNK + 10).map(|index| (index / 999) as u8 ^ seed).collect()
}

/// Examines a file of this content, and waits until all its chunks are read.
fn examine(store: &mut DiskStore, entry: &Entry) -> Change {
    let verdict = store.examine(EntryId(0), entry).unwrap();
    let Verdict::Want(change, claimed) = verdict else { panic!("{verdict:?}") };
    let all = 0..chunk_count(entry.size);
    assert_eq!(claimed, [all]);
    while store.has_unknown() {
        let read = store.poll_known();
        assert!(read.is_none_or(|(_, known)| known.digest.is_some()));
        thread::yield_now();
    }
    change
}

fn state(path: &Path) -> (u64, Vec<u8>, i64, usize) {
    let metadata = fs::metadata(path).unwrap();
    let names = fs::read_dir(path.parent().unwrap()).unwrap().count();
    (metadata.ino(), fs::read(path).unwrap(), metadata.mtime(), names)
}

#[test]
fn a_file_whose_chunks_are_all_kept_stays_and_gets_the_time() {
    as_root_and_as_ordinary_user(|| {
        let to = Scratch::new(&format!("same-{}", geteuid().as_raw()));
        to.write("file", &content(1));
        let (before, entry) = (state(&to.path("file")), file("file", content(1).len() as u64));
        let mut store = comparing(&to, Rules::default());
        assert_eq!(examine(&mut store, &entry), Change::Properties, "its time differs");
        store.begin(EntryId(0), &entry).unwrap();
        (0..3).for_each(|index| store.keep(EntryId(0), index).unwrap());
        assert_eq!(store.commit(EntryId(0), &entry, &Digest::of(&content(1))), Ok(Commit::Done));
        let after = state(&to.path("file"));
        assert_eq!((after.0, &after.1, after.2, after.3), (before.0, &content(1), entry.mtime.seconds, 1));
        assert_eq!(examine(&mut comparing(&to, Rules::default()), &entry), Change::None);
    });
}

#[test]
fn a_chunk_that_differs_comes_beside_those_of_the_target() {
    let to = Scratch::new("differs");
    to.write("file", &content(1));
    let entry = file("file", content(1).len() as u64);
    let mut wanted = content(1);
    wanted[CHUNK + 3] ^= 1;
    let mut store = comparing(&to, Rules::default());
    examine(&mut store, &entry);
    store.begin(EntryId(0), &entry).unwrap();
    store.keep(EntryId(0), 0).unwrap();
    store.write(EntryId(0), CHUNK_LEN, &wanted[CHUNK..2 * CHUNK]).unwrap();
    assert_eq!(state(&to.path("file")).1, content(1), "the old file stays until the commit");
    store.keep(EntryId(0), 2).unwrap();
    store.commit(EntryId(0), &entry, &Digest::of(&wanted)).unwrap();
    assert_eq!(failures(&mut store), []);
    let after = state(&to.path("file"));
    assert_eq!((&after.1, after.3), (&wanted, 1));
}

#[test]
fn a_source_that_became_shorter_keeps_the_chunks_before() {
    let to = Scratch::new("shorter");
    to.write("file", &content(1));
    let (entry, shorter) = (file("file", content(1).len() as u64), file("file", CHUNK_LEN + 5));
    let mut store = comparing(&to, Rules::default());
    examine(&mut store, &entry);
    store.begin(EntryId(0), &entry).unwrap();
    (0..3).for_each(|index| store.keep(EntryId(0), index).unwrap());
    store.begin(EntryId(0), &shorter).unwrap();
    store.write(EntryId(0), CHUNK_LEN, b"other").unwrap();
    store.commit(EntryId(0), &shorter, &Digest::of(b"")).unwrap();
    assert_eq!(failures(&mut store), []);
    assert_eq!(state(&to.path("file")).1, [&content(1)[..CHUNK], b"other"].concat());
}

#[test]
fn a_target_that_changes_meanwhile_is_left_alone() {
    let changes: [fn(&Path); 2] = [
        |path| fs::write(path, content(9)).unwrap(),
        |path| {
            fs::write(path.with_extension("new"), content(1)).unwrap();
            fs::rename(path.with_extension("new"), path).unwrap();
        },
    ];
    for (index, change) in changes.into_iter().enumerate() {
        for after_begin in [false, true] {
            let to = Scratch::new(&format!("meanwhile-{index}-{after_begin}"));
            to.write("file", &content(1));
            fs::File::open(to.path("file")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
            let entry = file("file", content(1).len() as u64);
            let mut store = comparing(&to, Rules::default());
            examine(&mut store, &entry);
            if !after_begin {
                change(&to.path("file"));
            }
            let begun = store.begin(EntryId(0), &entry);
            let failed = begun.and_then(|()| {
                change(&to.path("file"));
                (0..3).try_for_each(|index| store.keep(EntryId(0), index))?;
                store.commit(EntryId(0), &entry, &Digest::of(&content(1)))
            });
            assert_eq!(failed.unwrap_err().code, FailCode::SourceChanged);
            assert_ne!(state(&to.path("file")).2, entry.mtime.seconds);
        }
    }
}

#[test]
fn a_dry_run_writes_nothing_whatever_the_sender_does() {
    let to = Scratch::new("dry");
    to.write("file", &content(1));
    to.write("longer", &[content(1), vec![0]].concat());
    let (before, entry) = (state(&to.path("file")), file("file", content(1).len() as u64));
    let mut store = comparing(&to, Rules { dry_run: true, ..Rules::default() });
    let longer = store.examine(EntryId(1), &file("longer", 7));
    assert_eq!(longer, Ok(Verdict::Have(Change::Content)), "the sizes differ");
    examine(&mut store, &entry);
    store.begin(EntryId(0), &entry).unwrap();
    store.keep(EntryId(0), 0).unwrap();
    store.write(EntryId(0), CHUNK_LEN, &content(2)[CHUNK..2 * CHUNK]).unwrap();
    store.zeros(EntryId(0), 2 * CHUNK_LEN, 10).unwrap();
    assert_eq!(store.commit(EntryId(0), &entry, &Digest::of(b"")), Ok(Commit::Done));
    assert_eq!(state(&to.path("file")), before);
}

#[test]
fn only_so_many_files_are_compared_at_a_time() {
    let to = Scratch::new("enough");
    let mut store = comparing(&to, Rules::default());
    for id in 0..64 {
        assert!(!store.compares_enough());
        to.write(&id.to_string(), b"x");
        store.examine(EntryId(id), &file(&id.to_string(), 1)).unwrap();
    }
    assert!(store.compares_enough());
    store.forget(EntryId(7));
    assert!(!store.compares_enough());
}
