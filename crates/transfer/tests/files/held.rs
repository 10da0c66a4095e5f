//! What has ended holds nothing: no descriptor and no thread.

use std::{fs, thread};

use farhaul::security::{Cipher, KeyPair};
use farhaul_session::ReadFrom;
use farhaul_transfer::internal::admission::{Admission, Service};
use farhaul_transfer::internal::serve::{DirectoryServer, listener};
use farhaul_transfer::{Code, CopyJob, Environment, PutOptions, Settings};

use super::tasks::finish;
use super::{Served, settings};

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
