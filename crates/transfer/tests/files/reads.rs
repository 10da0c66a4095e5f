//! Reads: ranges, whole files, and files that change meanwhile.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use farhaul_session::ReadFrom;
use farhaul_transfer::{Code, PutOptions};

use super::tasks::finish;
use super::{Served, pattern};

#[test]
fn ranges_are_read_in_any_order_and_by_several_threads_at_once() {
    let served = Served::new("ranges", |server| server);
    let bytes = pattern(9_000_000);
    served.write("f", &bytes);
    let files = served.files();
    let ranges: Vec<(u64, u64)> = (0..40).map(|number| ((number * 7_919_777) % 8_900_000, 100_000)).collect();
    thread::scope(|scope| {
        for turn in 0..4 {
            let (files, ranges, bytes) = (files.clone(), &ranges, &bytes);
            scope.spawn(move || {
                let read = files.read_ranges("f", ranges).unwrap();
                for ((offset, _), range) in ranges.iter().zip(read) {
                    let at = usize::try_from(*offset).unwrap();
                    assert!(range.bytes == bytes[at..at + 100_000] && range.offset == *offset);
                }
                files.put(format!("own{turn}"), &bytes[..500_000], PutOptions::default()).unwrap();
                assert_eq!(files.stat("f").unwrap().size, 9_000_000);
            });
        }
    });
    assert_eq!(files.read_end("f", 3).unwrap().bytes, bytes[8_999_997..]);
    assert_eq!(files.read_range("f", 8_999_999, 5).unwrap().bytes, bytes[8_999_999..]);
    assert_eq!(files.read_ranges("none", &[(0, 1), (5, 1)]).unwrap_err().code, Code::NotFound);
    files.close().unwrap();
}

#[test]
fn a_file_is_read_ahead_and_sought_in() {
    let served = Served::new("reads", |server| server);
    let bytes = pattern(7_340_033);
    served.write("f", &bytes);
    served.write("empty", b"");
    let files = served.files();
    let mut file = files.open_read("f").unwrap();
    let mut all = Vec::new();
    file.read_to_end(&mut all).unwrap();
    assert!(all == bytes && file.len() == 7_340_033);
    let mut some = [0; 10];
    for at in [7_340_000, 0, 5_000_000, 5_000_005, 1_048_570] {
        assert_eq!(file.seek(SeekFrom::Start(at as u64)).unwrap(), at as u64);
        file.read_exact(&mut some).unwrap();
        assert_eq!(some, bytes[at..at + 10], "{at}");
    }
    assert_eq!(file.seek(SeekFrom::End(-4)).unwrap(), 7_340_029);
    assert_eq!(file.read(&mut some).unwrap(), 4);
    assert_eq!(file.read(&mut some).unwrap(), 0);
    assert!(file.seek(SeekFrom::Current(-9_999_999)).is_err());
    let mut part = files.open_part("f", ReadFrom::End(2_000_000), 1_500_000).unwrap();
    all.clear();
    part.read_to_end(&mut all).unwrap();
    assert!(all == bytes[5_340_033..6_840_033]);
    assert!(files.open_read("empty").unwrap().is_empty());
    // A file that changes is no file.
    let mut file = files.open_read("f").unwrap();
    served.write("f", &bytes[1..]);
    let error = file.read_to_end(&mut all).unwrap_err();
    let error = error.into_inner().unwrap().downcast::<farhaul_transfer::Error>().unwrap();
    assert_eq!(error.code, Code::SourceChanged);
}

/// Rewrites a file of 1 MiB with the same byte all over, another one each time, until it is dropped: in its place, or by another file.
struct Rewriting(Arc<AtomicBool>, Option<thread::JoinHandle<()>>);

impl Rewriting {
    fn of(path: PathBuf, in_place: bool) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        fs::write(&path, vec![0; 1 << 20]).unwrap();
        let its = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let beside = path.with_extension("beside");
            for byte in (0..=u8::MAX).cycle().take_while(|_| !its.load(Ordering::Relaxed)) {
                if in_place {
                    fs::File::options().write(true).open(&path).unwrap().write_all(&vec![byte; 1 << 20]).unwrap();
                } else {
                    fs::write(&beside, vec![byte; 1 << 20]).unwrap();
                    fs::rename(&beside, &path).unwrap();
                }
            }
        });
        Self(is_over, Some(thread))
    }
}

impl Drop for Rewriting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.take().unwrap().join().unwrap();
    }
}

/// A read of a file that is rewritten all the time.
fn is_of_one_version(read: Result<Vec<u8>, farhaul_transfer::Error>) {
    match read {
        Ok(bytes) => assert!(bytes.len() == 1 << 20 && bytes.iter().all(|byte| *byte == bytes[0]), "a mixture"),
        Err(error) => assert_eq!(error.code, Code::SourceChanged, "{error}"),
    }
}

#[test]
fn a_read_is_of_one_version_of_the_file_or_fails() {
    let served = Served::new("versions", |server| server);
    let files = served.files();
    for in_place in [true, false] {
        let rewriting = Rewriting::of(served.root.join("f"), in_place);
        is_of_one_version(files.read_range("f", 0, 1 << 20).map(|range| range.bytes));
        is_of_one_version(finish(files.read_async("f", ReadFrom::End(1 << 20), 1 << 20)).map(|range| range.bytes));
        let halves = files.read_ranges("f", &[(0, 1 << 19), (1 << 19, 1 << 19)]);
        is_of_one_version(halves.map(|halves| halves.into_iter().flat_map(|range| range.bytes).collect()));
        drop(rewriting);
        let mut all = Vec::new();
        files.open_read("f").unwrap().read_to_end(&mut all).unwrap();
        is_of_one_version(Ok(all));
    }
}

#[test]
fn the_end_of_a_log_that_grows_all_the_time_can_be_read() {
    let served = Served::new("log", |server| server);
    served.write("log", &pattern(300_000));
    let files = served.files();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut log = fs::File::options().append(true).open(served.root.join("log")).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                log.write_all(b"a line\n").unwrap();
                thread::park_timeout(std::time::Duration::from_millis(1));
            }
        });
        let reads = [files.read_range("log", 0, 1 << 20), files.read_end("log", 4_000)];
        is_over.store(true, Ordering::Relaxed);
        let [whole, end] = reads.map(Result::unwrap);
        assert!(whole.bytes.starts_with(&pattern(300_000)) && end.bytes.len() == 4_000);
    });
}

#[test]
fn a_file_of_the_same_size_and_time_is_another_version() {
    let served = Served::new("redated", |server| server);
    served.write("f", &vec![1; 3 << 20]);
    let before = fs::metadata(served.root.join("f")).unwrap().modified().unwrap();
    let files = served.files();
    let mut file = files.open_read("f").unwrap();
    served.write("beside", &vec![2; 3 << 20]);
    fs::File::options().write(true).open(served.root.join("beside")).unwrap().set_modified(before).unwrap();
    fs::rename(served.root.join("beside"), served.root.join("f")).unwrap();
    let error = file.read_to_end(&mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("it changed while it was read"), "{error}");
}
