//! The verdict of `limited_by` for blasts: a disk at either side, a rate, or the path.

use std::thread;
use std::time::Duration;

use super::BLASTS;
use crate::limits::{TRIES, slow_disk_is_the_limit};
use crate::process::{Scratch, Server, farhaul, farhaul_under};

/// A call of a disk that is much slower than the path: SABUL needs half of 30 ms for the bytes of one call on a busy machine.
const SLOW_DISK: Duration = Duration::from_millis(70);
const SIZE: usize = 8_000_000;
/// Transfers at a time. They sleep most of the time, but too many could be a limit of each other.
const AT_ONCE: usize = 3;
/// The rate is given, since the search for one is a limit of its own.
const RATE: [&str; 2] = ["--rate", "800mbit"];

/// Runs this for each protocol, a few at a time.
fn each_blast(run: impl Fn(&'static str) + Sync) {
    let run = &run;
    for few in BLASTS.chunks(AT_ONCE) {
        thread::scope(|scope| {
            for &protocol in few {
                scope.spawn(move || run(protocol));
            }
        });
    }
}

// Waits for 70 ms in each read from the disk, for 8 MB over each of five protocols, three at a time.
#[test]
fn a_slow_disk_at_the_sender_is_the_limit_of_every_blast() {
    each_blast(|protocol| {
        let scratch = Scratch::new();
        let file = scratch.file("file", SIZE);
        slow_disk_is_the_limit("disk_read", ("pread64", SLOW_DISK), |slow, root| {
            let server = Server::begin(&["serve", "--protocol", protocol, "--root", root]);
            let target = format!("udt://{}/", server.address);
            let copy = ["copy", "--plain", "--json", "--protocol", protocol, &file, &target];
            let run = farhaul_under(slow, &[&copy[..], &RATE].concat());
            run.succeeds();
            run.end()
        });
    });
}

// Waits for 70 ms in each write to the disk, for 8 MB over each of five protocols, three at a time.
#[test]
fn a_slow_disk_at_the_receiver_is_the_limit_of_every_blast() {
    each_blast(|protocol| {
        let scratch = Scratch::new();
        let file = scratch.file("file", SIZE);
        slow_disk_is_the_limit("disk_write", ("pwrite64", SLOW_DISK), |slow, root| {
            let server = Server::begin_under(slow, &["serve", "--protocol", protocol, "--root", root]);
            let target = format!("udt://{}/", server.address);
            let copy = ["copy", "--plain", "--json", "--protocol", protocol, &file, &target];
            let run = farhaul(&[&copy[..], &RATE].concat());
            run.succeeds();
            run.end()
        });
    });
}

/// A rate by hand far below that of the disks. Tsunami begins at a third of it, and counts that as its rate control.
// Waits for 8 MB at 50 Mbit/s at most, which take 1.3 s or more, over each of five protocols, three at a time.
#[test]
fn a_rate_below_that_of_the_disks_is_the_limit_of_every_blast() {
    each_blast(|protocol| {
        let mut ends = (0..TRIES).map(|_| {
            let scratch = Scratch::new();
            let (file, root) = (scratch.file("file", SIZE), scratch.dir("root"));
            let server = Server::begin(&["serve", "--protocol", protocol, "--root", &root]);
            let target = format!("udt://{}/", server.address);
            let copy = ["copy", "--plain", "--json", "--protocol", protocol, "--rate", "50mbit", &file, &target];
            let run = farhaul(&copy);
            run.succeeds();
            run.end()
        });
        // On a busy machine, a process that queues for it is limited by that.
        let end = ends.find(|end| end["limited_by"] != "cpu").expect("one of a few tries has a processor");
        assert!(["rate_cap", "congestion"].contains(&end["limited_by"].as_str().unwrap()), "{protocol}: {end}");
    });
}
