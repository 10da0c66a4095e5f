//! The files of a server in this process, by requests.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use farhaul::Endpoint;
use farhaul::security::{Cipher, KeyPair};
use farhaul_session::{NodeKind, ReadFrom, Removing};
use farhaul_transfer::internal::admission::{Admission, Service};
use farhaul_transfer::internal::serve::{DirectoryServer, listener};
use farhaul_transfer::{Code, CopyJob, Environment, PutOptions, RemoteFiles, RemoteHost, Settings, Ssh, TreeItem};

/// A server of a directory of its own, which both end with the test.
struct Served {
    root: PathBuf,
    environment: Environment,
    address: String,
    thread: Option<thread::JoinHandle<()>>,
}

impl Served {
    fn new(name: &str, with: impl FnOnce(DirectoryServer) -> DirectoryServer) -> Self {
        let root = std::env::temp_dir().join(format!("farhaul-served-{}-{name}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let (environment, settings) = (Environment::default(), settings());
        let server = with(DirectoryServer::of(&root, None, false).unwrap());
        let endpoint = Endpoint::plain("127.0.0.1:0").unwrap();
        let address = endpoint.local_addr().to_string();
        environment.cancellation.cancels(endpoint.canceller());
        let listener = endpoint.listen().unwrap();
        let its = environment.clone();
        let thread = thread::spawn(move || drop(server.run(&its, &settings, listener, |_| ())));
        Self { root, environment, address, thread: Some(thread) }
    }

    fn files(&self) -> RemoteFiles {
        let host: RemoteHost = format!("udt://{}", self.address).parse().unwrap();
        RemoteFiles::connect(host, settings(), Ssh::default(), &Environment::default()).unwrap()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.root.join(name), bytes).unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.environment.cancellation.cancel();
        let _ = self.thread.take().unwrap().join();
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.security.plain = true;
    settings
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 251 + at % 251) as u8).collect()
}

#[test]
fn files_of_a_server_are_written_listed_renamed_copied_and_removed() {
    let served = Served::new("changes", |server| server);
    let files = served.files();
    let bytes = pattern(3_000_000);
    let written = files.put("d/deep/f", bytes.as_slice(), PutOptions::default()).unwrap();
    assert_eq!(written.digest, Some(farhaul_session::Digest::of(&bytes)));
    assert_eq!(fs::read(served.root.join("d/deep/f")).unwrap(), bytes);
    assert_eq!(files.digest("d/deep/f").unwrap(), written);
    let code = |result: Result<_, farhaul_transfer::Error>| result.map(drop).unwrap_err().code;
    assert_eq!(code(files.put("d/deep/f", b"x".as_slice(), PutOptions::default())), Code::AlreadyExists);
    let replacing = PutOptions::default().replace(true).size(3);
    files.put("d/deep/f", b"new".as_slice(), replacing).unwrap();
    assert_eq!(code(files.put("d/deep/f", b"four".as_slice(), replacing)), Code::SourceChanged);
    files.rename("d/deep/f", "e/g").unwrap();
    assert_eq!(files.copy("e/g", "e/h", false).unwrap().size, 3);
    assert_eq!(code(files.rename("e/g", "e/h").map(|()| written)), Code::AlreadyExists);
    files.rename_as("e/g", "e/h", true).unwrap();
    let names: Vec<_> = files.list("e").map(|entry| entry.unwrap().name.to_string()).collect();
    assert_eq!(names, ["h"]);
    assert_eq!(code(files.remove("e").map(|()| written)), Code::DirectoryNotEmpty);
    assert_eq!(code(files.remove_as("e", Removing::File).map(|_| written)), Code::IsDirectory);
    assert_eq!(files.remove_tree("e", 10).unwrap(), 2);
    assert!(files.create_dir("e/new", true).unwrap() && !files.create_dir("e/new", true).unwrap());
    assert_eq!(files.stat("e").unwrap().kind, NodeKind::Directory);
    let missing = files.stat("none").unwrap_err();
    assert_eq!(missing.code, Code::NotFound);
    assert!(missing.message.contains(&format!("udt://{}/none", served.address)), "{missing}");
    assert_eq!(files.list("none").next().unwrap().unwrap_err().code, Code::NotFound);
    files.close().unwrap();
    assert!(files.stat("e").is_ok(), "a new connection");
}

/// The paths of a tree, and the directories that failed.
fn tree(files: &RemoteFiles, place: &str, depth: usize) -> (Vec<String>, Vec<String>) {
    let (mut paths, mut failed, mut at) = (Vec::new(), Vec::new(), String::new());
    for item in files.list_tree(place, depth) {
        match item.unwrap() {
            TreeItem::Directory(path) if path.is_root() => at = String::new(),
            TreeItem::Directory(path) => at = format!("{path}/"),
            TreeItem::Entry(entry) => paths.push(format!("{at}{}", entry.name)),
            TreeItem::Failed(error) => failed.push(error.message),
        }
    }
    (paths, failed)
}

#[test]
fn a_tree_is_listed_without_what_links_lead_to() {
    let served = Served::new("tree", |server| server);
    let outside = served.root.with_extension("outside");
    fs::create_dir_all(outside.join("secret")).unwrap();
    for number in 0..300 {
        let folder = served.root.join(format!("d/{number:03}/deep"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("f"), b"x").unwrap();
    }
    std::os::unix::fs::symlink(&outside, served.root.join("d/150/out")).unwrap();
    std::os::unix::fs::symlink("..", served.root.join("d/151/up")).unwrap();
    let files = served.files();
    let (paths, failed) = tree(&files, "d", usize::MAX);
    assert_eq!((paths.len(), failed.len()), (3 * 300 + 2, 0));
    assert!(paths.contains(&"150/out".to_owned()) && !paths.iter().any(|path| path.contains("secret")));
    assert!(paths.contains(&"299/deep/f".to_owned()));
    assert_eq!((tree(&files, "d", 1).0.len(), tree(&files, "d", 2).0.len()), (300, 602));
    assert_eq!(tree(&files, "d/150/deep", 9).0, ["f"]);
    assert!(files.list_tree("d/150/out", 9).next().unwrap().is_err());
    assert_eq!(files.list_tree("none", 9).next().unwrap().unwrap_err().code, Code::NotFound);
    fs::remove_dir_all(outside).unwrap();
}

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

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    let served = Served::new("writers", |server| server);
    let files = served.files();
    let mut writer = files.create("f", PutOptions::default()).unwrap();
    writer.write_all(&pattern(700_000)).unwrap();
    drop(writer);
    let mut writer = files.create("g", PutOptions::default()).unwrap();
    writer.write_all(b"whole").unwrap();
    assert_eq!(writer.finish().unwrap().size, 5);
    assert_eq!(files.list("").map(|entry| entry.unwrap().name.to_string()).collect::<Vec<_>>(), ["g"]);
    assert_eq!(fs::read_dir(&served.root).unwrap().count(), 1, "no temporary file stays");
    let mut writer = files.create("g", PutOptions::default()).unwrap();
    let error = (0..1_000).find_map(|_| writer.write_all(&[7; 100_000]).err()).unwrap();
    let error = error.into_inner().unwrap().downcast::<farhaul_transfer::Error>().unwrap();
    assert_eq!(error.code, Code::AlreadyExists, "{error}");
    assert!(writer.finish().is_err());
}

#[test]
fn a_connection_that_the_server_closed_is_made_again() {
    let served = Served::new("again", |server| server.idle(Some(std::time::Duration::from_millis(300))));
    served.write("f", b"content");
    let files = served.files();
    for _ in 0..2 {
        assert_eq!(files.read_range("f", 0, 99).unwrap().bytes, b"content");
        // Longer than the server waits, which looks every second.
        thread::park_timeout(std::time::Duration::from_millis(1_600));
    }
    files.rename("f", "g").unwrap();
}

/// A server that knows copies alone answers the opening with these words.
#[test]
fn an_older_server_is_told_from_one_that_misbehaves() {
    let listener = farhaul::Listener::plain("127.0.0.1:0").unwrap();
    let host: RemoteHost = format!("udt://{}", listener.local_addr()).parse().unwrap();
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        assert!(stream.recv(&mut [0; 1000]).unwrap() > 0);
        let why = "protocol violation by the peer: malformed Open frame: invalid verb";
        stream.send_all(&farhaul_session::refusal(farhaul_session::AbortCode::Protocol, why)).unwrap();
        let _ = stream.finish();
    });
    let error = RemoteFiles::connect(host, settings(), Ssh::default(), &Environment::default()).unwrap_err();
    assert!(error.code == Code::Protocol && error.message.contains("older than this one"), "{error}");
    server.join().unwrap();
}

#[test]
fn a_read_only_server_changes_nothing() {
    let root = std::env::temp_dir().join(format!("farhaul-served-{}-read-only", std::process::id()));
    fs::create_dir_all(&root).unwrap();
    let served = Served::new("read-only", |_| DirectoryServer::of(&root, None, true).unwrap());
    served.write("f", b"content");
    let files = served.files();
    assert_eq!(files.read_range("f", 0, 99).unwrap().bytes, b"content");
    let refused = |result: Result<(), farhaul_transfer::Error>| {
        let error = result.unwrap_err();
        assert!(error.code == Code::AccessDenied && error.message.contains("read-only"), "{error}");
    };
    refused(files.put("g", b"x".as_slice(), PutOptions::default()).map(drop));
    refused(files.create_dir("d", true).map(drop));
    refused(files.remove("f"));
    refused(files.rename("f", "g"));
    refused(files.copy("f", "g", false).map(drop));
    assert_eq!(fs::read_dir(&served.root).unwrap().count(), 1);
}

/// Polls all of `futures` on this thread until each has its result.
fn finish_all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    struct Here(thread::Thread);
    impl Wake for Here {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Here(thread::current())));
    let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).enumerate().collect();
    loop {
        futures.retain_mut(|(index, future)| match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => {
                results[*index] = Some(result);
                false
            }
            Poll::Pending => true,
        });
        if futures.is_empty() {
            return results.into_iter().flatten().collect();
        }
        thread::park();
    }
}

fn finish<T>(future: impl Future<Output = T>) -> T {
    finish_all(vec![future]).pop().unwrap()
}

#[test]
fn more_tasks_than_a_connection_has_requests_are_all_answered() {
    let served = Served::new("tasks", |server| server);
    for index in 0..300_u32 {
        served.write(&format!("{index}"), &index.to_be_bytes());
    }
    let host: RemoteHost = format!("udt://{}", served.address).parse().unwrap();
    let files = RemoteFiles::connecting_later(host, settings(), Ssh::default(), &Environment::default()).unwrap();
    // Each is a task that waits for a connection, for room, and for an answer.
    let reads = (0..300).map(|index| files.read_async(format!("{index}"), ReadFrom::Start(0), 100)).collect();
    for (index, range) in finish_all(reads).into_iter().enumerate() {
        assert_eq!(range.unwrap().bytes, u32::try_from(index).unwrap().to_be_bytes());
    }
    assert_eq!(finish(files.list_async("")).unwrap().len(), 300);
    assert_eq!(finish(files.read_async("nothing", ReadFrom::End(4), 4)).unwrap_err().code, Code::NotFound);
    files.close().unwrap();
    assert_eq!(finish(files.stat_async("7")).unwrap().size, 4, "on a new connection");
}

#[test]
fn tasks_write_more_files_than_may_be_under_way_and_abandon_some() {
    let served = Served::new("task-puts", |server| server);
    let files = served.files();
    let content = vec![7; 1 << 20];
    let writes = (0..20).map(|index| {
        let (files, content) = (&files, &content);
        async move {
            let mut writer = files.create_async(format!("d/{index}"), PutOptions::default()).await?;
            writer.write_all(content).await?;
            // Every fourth file is given up.
            if index % 4 == 0 { Ok(None) } else { writer.finish().await.map(Some) }
        }
    });
    let written = finish_all(writes.collect());
    assert!(written.iter().all(Result::is_ok), "{written:?}");
    assert_eq!(finish(files.list_async("d")).unwrap().len(), 15);
    let replaced = finish(async {
        let writer = files.create_async("d/1", PutOptions::default()).await?;
        writer.finish().await
    });
    assert_eq!(replaced.unwrap_err().code, Code::AlreadyExists);
    finish(files.rename_async("d/1", "e/1", false)).unwrap();
    finish(files.copy_async("e/1", "e/2", false)).unwrap();
    assert_eq!(finish(files.digest_async("e/2")).unwrap().size, 1 << 20);
    assert!(finish(files.create_dir_async("f", false)).unwrap());
    assert_eq!(finish(files.remove_async("d", Removing::Tree(100))).unwrap(), 15);
}

#[test]
fn tasks_that_wait_end_with_their_connection() {
    let served = Served::new("task-end", |server| server);
    served.write("x", b"x");
    let files = served.files();
    assert_eq!(finish(files.stat_async("x")).unwrap().size, 1);
    let (mut writer, its) = (finish(files.create_async("y", PutOptions::default())).unwrap(), &served);
    its.environment.cancellation.cancel();
    let failed: Result<(), farhaul_transfer::Error> = finish(async {
        loop {
            writer.write_all(&[0; 1 << 16]).await?;
        }
    });
    let error = failed.unwrap_err();
    assert!(matches!(error.code, Code::PeerLost | Code::Interrupted | Code::Busy), "{error:?}");
}

/// Descriptors and threads of this process.
fn held() -> [usize; 2] {
    farhaul::wait_idle();
    ["/proc/self/fd", "/proc/self/task"].map(|folder| fs::read_dir(folder).unwrap().count())
}

/// Does `what` again and again. Afterwards as much is held as before, although the results live on.
fn leaves_nothing<T>(times: usize, mut what: impl FnMut() -> T) {
    /// What the runtime of the tests may have opened meanwhile. Each object that leaks leaves one more.
    const FEW: usize = 8;
    let before = held();
    let kept: Vec<T> = (0..times).map(|_| what()).collect();
    // A thread that ends may be counted for a moment longer. A leak never ends the loop.
    while held().iter().zip(before).any(|(now, before)| *now > before + FEW) {
        thread::yield_now();
    }
    drop(kept);
}

#[test]
fn servers_that_have_ended_hold_nothing() {
    let root = std::env::temp_dir();
    for ends_by_cancellation in [true, false] {
        leaves_nothing(if ends_by_cancellation { 500 } else { 60 }, || {
            let environment = Environment::default();
            let identity = KeyPair::generate().unwrap();
            let clients = Admission::new(identity, Cipher::Auto, (None, false), Service::Files).unwrap();
            let server = DirectoryServer::of(&root, Some(clients.clone()), true).unwrap();
            let endpoint = Settings::default().bind("127.0.0.1:0".parse().unwrap(), Some(&clients)).unwrap();
            let listener = listener::listen(&environment, &endpoint).unwrap();
            listener::guard(&environment, &clients, &endpoint).unwrap();
            if ends_by_cancellation {
                environment.cancellation.cancels(endpoint.canceller());
                environment.cancellation.cancel();
                server.run(&environment, &Settings::default(), listener, |_| ()).unwrap_err();
            }
            // Otherwise it ends before it runs, as by an error, and nobody cancels what it began.
            environment
        });
    }
}

#[test]
fn files_of_a_host_that_were_closed_hold_nothing() {
    let served = Served::new("freed", |server| server);
    served.write("f", b"content");
    let again = served.files();
    leaves_nothing(25, || {
        let files = served.files();
        for files in [&files, &again] {
            assert_eq!(finish(files.read_async("f", ReadFrom::Start(0), 10)).unwrap().bytes, b"content");
            assert_eq!(files.stat("none").unwrap_err().code, Code::NotFound);
            drop(files.create("given up", PutOptions::default()).unwrap());
            files.close().unwrap();
        }
        files
    });
}

#[test]
fn copies_hold_nothing_once_they_have_ended() {
    let served = Served::new("freed-copies", |server| server);
    served.write("f", b"content");
    let to = served.root.join("copied");
    leaves_nothing(25, || {
        let copy = |name: &str, cancelled: bool| {
            let environment = Environment::default();
            if cancelled {
                environment.cancellation.cancel();
            }
            let places = [format!("udt://{}/{name}", served.address), to.display().to_string()];
            let places: Vec<_> = places.iter().map(|place| place.parse().unwrap()).collect();
            let result = CopyJob::new(&places, false).unwrap().with_settings(settings()).run(&environment);
            (environment, result.map(drop).map_err(|error| error.code))
        };
        let kept = [copy("f", false), copy("missing", false), copy("f", true)];
        let _ = fs::remove_file(&to);
        assert!(kept[0].1.is_ok() && kept[1].1.is_err() && kept[2].1 == Err(Code::Interrupted));
        kept
    });
}

#[test]
fn a_file_whose_write_was_abandoned_is_given_up() {
    let served = Served::new("abandoned", |server| server);
    let files = served.files();
    let mut writer = finish(files.create_async("f", PutOptions::default())).unwrap();
    finish(writer.write_all(b"begun")).unwrap();
    let large = vec![7; 300 << 20];
    let mut abandoned = Box::pin(writer.write_all(&large));
    assert!(abandoned.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(abandoned);
    assert_eq!(finish(writer.write_all(b"x")).unwrap_err().code, Code::FilesFailed);
    assert_eq!(finish(writer.finish()).unwrap_err().code, Code::FilesFailed);
    assert_eq!(files.stat("f").unwrap_err().code, Code::NotFound);
}

#[test]
fn requests_that_are_abandoned_at_any_moment_can_be_made_again() {
    let served = Served::new("abandoned-requests", |server| server);
    let bytes = pattern(300_000);
    served.write("f", &bytes);
    let files = served.files();
    let mut read = Vec::new();
    for turn in 0.. {
        let mut request = Box::pin(files.read_async("f", ReadFrom::Start(read.len() as u64), 10_000));
        let answer = (0..turn % 40).find_map(|_| {
            thread::yield_now();
            match request.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(answer) => Some(answer.unwrap()),
                Poll::Pending => None,
            }
        });
        if let Some(answer) = answer {
            read.extend(answer.bytes);
            if answer.at_end {
                break;
            }
        }
    }
    assert!(read == bytes);
    files.close().unwrap();
}
