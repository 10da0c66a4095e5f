//! Requests by tasks: many at a time, and abandoned ones.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use farhaul_session::{ReadFrom, Removing};
use farhaul_transfer::{Code, Environment, PutOptions, RemoteFiles, RemoteHost, Ssh};

use super::{Served, pattern, settings};

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

pub(crate) fn finish<T>(future: impl Future<Output = T>) -> T {
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
        // One of forty is not abandoned, so that the test ends on a machine that answers slowly.
        let polls = if turn % 40 == 39 { usize::MAX } else { turn % 40 };
        let answer = (0..polls).find_map(|_| {
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
