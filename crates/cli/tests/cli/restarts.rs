//! A server that ends and comes back on the same port while clients go on trying.

use std::fs;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::process::Signal;

use crate::process::{Scratch, Server, Started, farhaul};

/// Clients that try again and again.
const CLIENTS: usize = 4;
/// Far more tries than a client needs.
const TRIES: usize = 200;

/// Copies `file` until that succeeds although `is_back` was true before. Only the network may be to blame for failures.
fn copy_until(is_back: &AtomicBool, file: &str, url: &str) {
    for _ in 0..TRIES {
        let was_back = is_back.load(Ordering::Acquire);
        let run = farhaul(&["copy", "--plain", "--connect-timeout", "500ms", "--timeout", "1s", file, url]);
        assert!(matches!(run.code, 0 | 4 | 8), "exit code {}: {}", run.code, run.stderr);
        if run.code == 0 && was_back {
            return;
        }
    }
    panic!("{file} is not copied after {TRIES} tries");
}

#[test]
fn clients_that_try_again_reach_a_server_that_restarts_on_the_same_port() {
    for signal in [Signal::KILL, Signal::TERM] {
        let scratch = Scratch::new();
        let root = scratch.dir("root");
        let files: Vec<String> = (0..CLIENTS).map(|number| scratch.file(&format!("file{number}"), 100_000)).collect();
        let long = scratch.file("long", 60_000_000);
        let serve = ["serve", "--timeout", "1s", "--root", &root];
        let first = Server::begin(&serve);
        let (address, is_back) = (first.address.clone(), AtomicBool::new(false));
        let url = format!("udt://{address}/");
        let slow = ["copy", "--plain", "--json", "--timeout", "1s", "--interval", "50ms", "--rate", "20mbit"];
        let broken = Started::begin(&[&slow[..], &[&long, &url]].concat(), Stdio::null()).after("interval");
        thread::scope(|scope| {
            for file in &files {
                scope.spawn(|| copy_until(&is_back, file, &url));
            }
            first.signal(signal);
            first.end();
            let second = Server::begin_at(&address, &serve);
            is_back.store(true, Ordering::Release);
            // The old connection is not the new server's.
            broken.end().fails(8, &["127.0.0.1:", ".fhpart"]);
            second
        });
        for (number, file) in files.iter().enumerate() {
            assert_eq!(fs::read(file).unwrap(), fs::read(scratch.at(&format!("root/file{number}"))).unwrap());
        }
        assert!(!scratch.names("root").contains(&"long".to_owned()));
    }
}
