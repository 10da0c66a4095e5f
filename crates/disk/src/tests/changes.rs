//! Sources that change while they are read, and sources whose size the system does not know.

use std::fs::{File, FileTimes, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;

use super::directory::stamp_now;
use super::*;

/// Opens `file` in `from` as the first entry of a copy, and reads all bytes that the entry announces.
fn open_and_read(from: &Scratch) -> (DiskSource, Entry) {
    let mut source = DiskSource::new(&[from.path("file")], false).unwrap();
    let Next::Entry(entry) = source.next_entry(EntryId(0)) else { panic!("it is a file") };
    source.open(EntryId(0)).unwrap();
    let mut content = vec![0; usize::try_from(entry.size).unwrap()];
    assert_eq!(source.read(EntryId(0), 0, &mut content), Ok(Chunk::Data(content.len())));
    (source, entry)
}

/// Waits for the kernel's next tick: changes within one tick may get the same time.
fn next_tick(path: &Path) {
    let metadata = fs::metadata(path).unwrap();
    let changed = Mtime { seconds: metadata.ctime(), nanos: u32::try_from(metadata.ctime_nsec()).unwrap() };
    while stamp_now() <= changed {
        thread::yield_now();
    }
}

fn noticed(source: &mut DiskSource, entry: &Entry) -> bool {
    match source.recheck(EntryId(0)) {
        Ok(stamp) => stamp != entry.stamp(),
        Err(failure) => failure.code == FailCode::SourceChanged,
    }
}

#[test]
fn a_source_that_is_not_touched_is_the_same_afterwards() {
    let from = Scratch::new("untouched");
    from.write("file", b"content");
    let (mut source, entry) = open_and_read(&from);
    assert!(!noticed(&mut source, &entry));
}

/// As for chunks that arrived damaged.
#[test]
fn a_source_of_which_a_part_is_read_again_is_the_same_afterwards() {
    let from = Scratch::new("part");
    from.write("file", b"content");
    let (mut source, entry) = open_and_read(&from);
    source.close(EntryId(0));
    source.open(EntryId(0)).unwrap();
    assert_eq!(source.read(EntryId(0), 2, &mut [0; 3]), Ok(Chunk::Data(3)));
    assert!(!noticed(&mut source, &entry));
}

#[test]
fn a_source_rewritten_and_given_its_old_time_is_noticed() {
    as_root_and_as_ordinary_user(|| {
        let from = Scratch::new(&format!("redated-{}", geteuid().as_raw()));
        from.write("file", b"before");
        let path = from.path("file");
        next_tick(&path);
        let old = fs::metadata(&path).unwrap().modified().unwrap();
        let (mut source, entry) = open_and_read(&from);
        from.write("file", b"after!");
        File::options().write(true).open(&path).unwrap().set_times(FileTimes::new().set_modified(old)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), old);
        assert!(noticed(&mut source, &entry));
    });
}

#[test]
fn a_source_that_grows_or_shrinks_is_noticed() {
    let from = Scratch::new("size");
    let path = from.path("file");
    for len in [0, 3, 200] {
        from.write("file", &[1; 100]);
        next_tick(&path);
        let (mut source, entry) = open_and_read(&from);
        OpenOptions::new().write(true).open(&path).unwrap().set_len(len).unwrap();
        assert!(noticed(&mut source, &entry), "{len}");
    }
}

#[test]
fn a_source_that_grew_before_its_first_byte_was_read_is_noticed_at_its_end() {
    let from = Scratch::new("grows");
    from.write("file", b"some");
    next_tick(&from.path("file"));
    let mut source = DiskSource::new(&[from.path("file")], false).unwrap();
    let Next::Entry(entry) = source.next_entry(EntryId(0)) else { panic!("it is a file") };
    source.open(EntryId(0)).unwrap();
    OpenOptions::new().append(true).open(from.path("file")).unwrap().write_all(b" more").unwrap();
    assert_eq!(source.read(EntryId(0), 0, &mut [0; 4]), Ok(Chunk::Data(4)));
    assert!(noticed(&mut source, &entry));
}

/// Of a small file, the first attempt takes the state in which the walk met it.
#[test]
fn a_source_that_changes_between_list_and_opening_is_noticed_and_read_again() {
    let from = Scratch::new("listed");
    let changes: [fn(&Scratch); 3] = [
        |from| from.write("file", b"SOME"),
        |from| OpenOptions::new().append(true).open(from.path("file")).unwrap().write_all(b" more").unwrap(),
        |from| fs::rename(from.path("other"), from.path("file")).unwrap(),
    ];
    for change in changes {
        from.write("file", b"some");
        from.write("other", b"else");
        next_tick(&from.path("file"));
        let mut source = DiskSource::new(&[from.path("file")], false).unwrap();
        let Next::Entry(entry) = source.next_entry(EntryId(0)) else { panic!("it is a file") };
        change(&from);
        assert_eq!(source.open(EntryId(0)), Ok(entry.stamp()));
        assert_eq!(source.read(EntryId(0), 0, &mut [0; 4]), Ok(Chunk::Data(4)));
        assert!(noticed(&mut source, &entry));
        source.close(EntryId(0));
        let stamp = source.open(EntryId(0)).unwrap();
        let mut content = vec![0; usize::try_from(stamp.size).unwrap()];
        assert_eq!(source.read(EntryId(0), 0, &mut content), Ok(Chunk::Data(content.len())));
        assert_eq!(content, fs::read(from.path("file")).unwrap());
        assert_eq!(source.recheck(EntryId(0)), Ok(stamp));
    }
}

/// All within one tick of the kernel, so that no time tells.
#[test]
fn a_source_that_is_replaced_or_removed_while_it_is_read_is_noticed_whatever_its_times() {
    let from = Scratch::new("replaced");
    let changes: [fn(&Scratch); 2] = [
        |from| fs::rename(from.path("other"), from.path("file")).unwrap(),
        |from| fs::remove_file(from.path("file")).unwrap(),
    ];
    for change in changes {
        for is_again in [false, true] {
            from.write("file", b"some");
            from.write("other", b"else");
            let (mut source, entry) = open_and_read(&from);
            if is_again {
                source.close(EntryId(0));
                source.open(EntryId(0)).unwrap();
            }
            change(&from);
            assert!(noticed(&mut source, &entry), "{is_again}");
        }
    }
}

#[test]
fn sparse_and_empty_files_keep_the_size_that_the_system_reports() {
    let from = Scratch::new("sparse");
    for size in [0, 1 << 20] {
        from.write("file", b"");
        OpenOptions::new().write(true).open(from.path("file")).unwrap().set_len(size).unwrap();
        let mut source = DiskSource::new(&[from.path("file")], false).unwrap();
        let Next::Entry(entry) = source.next_entry(EntryId(0)) else { panic!("it is a file") };
        assert_eq!(entry.size, size);
    }
}
#[test]
fn a_source_arrives_whole_whatever_size_the_system_reports() {
    as_root_and_as_ordinary_user(|| {
        let to = Scratch::new(&format!("pseudo-{}", geteuid().as_raw()));
        // The system reports zero and a whole page for these. Both are shorter than a page.
        for path in ["/proc/version", "/sys/devices/system/cpu/possible"].map(Path::new) {
            let Ok(content) = fs::read(path) else {
                eprintln!("skipped: there is no {} here", path.display());
                continue;
            };
            assert_ne!(
                fs::metadata(path).unwrap().len(),
                content.len() as u64,
                "the reported size is right, so the test proves nothing"
            );
            let mut source = DiskSource::new(&[path], false).unwrap();
            assert_eq!(copy(&mut source, &mut DiskStore::at(&to.0, true).unwrap()), []);
            assert_eq!(fs::read(to.path(path.file_name().unwrap().to_str().unwrap())).unwrap(), content);
        }
    });
}
