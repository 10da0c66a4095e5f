//! What the line of a key permits in all of its sessions together (attack B19).

use std::fs;
use std::thread;

use rustix::process::Signal;

use super::{admit, begin, copy, settings, url};
use crate::foreign_disk::{Foreign, Habits};
use crate::process::{Reporting, Run, Scratch};

/// A daemon that admits one user with these options.
struct Capped {
    scratch: Scratch,
    home: String,
    daemon: Reporting,
    url: String,
}

impl Capped {
    fn with(options: &str) -> Self {
        let scratch = Scratch::new();
        let (home, file) = (scratch.dir("home"), settings(&scratch, ""));
        admit(&scratch, &home, options);
        let daemon = begin(&file);
        let url = url(&daemon);
        Self { scratch, home, daemon, url }
    }

    fn push(&self, arguments: &[&str]) -> Run {
        copy(&self.home, false, &[arguments, &[&self.url]].concat())
    }

    fn pull(&self, name: &str) -> Run {
        copy(&self.home, false, &["-r", &format!("{}{name}", self.url), &self.scratch.dir("got")])
    }
}

impl Drop for Capped {
    fn drop(&mut self) {
        self.daemon.signal(Signal::TERM);
    }
}

#[test]
fn b19_all_sessions_of_a_key_together_are_no_faster_than_its_rate() {
    let here = Capped::with("rate=8mbit");
    let files = ["one", "two"].map(|name| here.scratch.file(name, 500_000));
    let seconds = thread::scope(|scope| {
        let copies = files.each_ref().map(|file| scope.spawn(|| here.push(&[file])));
        copies.map(|copy| copy.join().unwrap().end()["seconds"].as_f64().unwrap())
    });
    assert!(seconds[0].max(seconds[1]) > 0.9, "1 MB at 8 Mbit/s takes a second: {seconds:?}");
    let seconds = here.pull("one").end()["seconds"].as_f64().unwrap();
    assert!(seconds > 0.45, "500 kB at 8 Mbit/s take half a second: {seconds}");
}

#[test]
fn b19_a_key_has_no_more_sessions_at_a_time_than_its_line_says() {
    let here = Capped::with("rate=4mbit sessions=1");
    let files = ["one", "two", "three"].map(|name| here.scratch.file(name, 1_000_000));
    let mut runs = thread::scope(|scope| {
        let copies = files.each_ref().map(|file| scope.spawn(|| here.push(&[file])));
        copies.map(|copy| copy.join().unwrap())
    });
    runs.sort_by_key(|run| run.code);
    let [first, others @ ..] = &runs;
    first.succeeds();
    others.iter().for_each(|other| other.fails(1, &["as many sessions as your key is allowed"]));
    assert_eq!(here.scratch.names("root").len(), 1);
}

#[test]
fn b19_a_key_moves_no_more_bytes_however_often_it_connects() {
    let here = Capped::with("bytes=1MB");
    let files = ["one", "two"].map(|name| here.scratch.file(name, 600_000));
    here.push(&[&files[0]]).succeeds();
    here.push(&[&files[1]]).fails(3, &["bytes=SIZE"]);
    here.pull("one").fails(3, &["bytes=SIZE"]);
    assert!(!here.scratch.names("root").contains(&"two".to_owned()));
}

#[test]
fn b19_files_in_the_place_of_hard_links_count_against_the_bytes_of_a_key() {
    let scratch = Scratch::new();
    let habits = Habits { hard_links: false, ..Habits::LIKE_EXT4 };
    let Some(_disk) = Foreign::mount(scratch.dir("root"), habits) else { return };
    let (home, file) = (scratch.dir("home"), settings(&scratch, ""));
    admit(&scratch, &home, "bytes=1500kB");
    let source = scratch.dir("source");
    let first = scratch.file("source/0", 600_000);
    ["1", "2"].iter().for_each(|name| fs::hard_link(&first, scratch.at(&format!("source/{name}"))).unwrap());
    let daemon = begin(&file);
    copy(&home, false, &["-a", &source, &url(&daemon)]).fails(3, &["bytes=SIZE"]);
    assert_eq!(scratch.names("root/source"), ["0", "1"]);
    daemon.signal(Signal::TERM);
    daemon.end();
}

#[test]
fn b19_a_key_moves_no_more_files_however_often_it_connects() {
    let mut here = Capped::with("files=4");
    let tree = here.scratch.dir("tree");
    for name in ["tree/deep", "tree/deep/deeper"] {
        here.scratch.dir(name);
    }
    // Three directories and an empty file.
    fs::write(here.scratch.at("tree/deep/empty"), "").unwrap();
    here.push(&["-r", &tree]).succeeds();
    let more = here.scratch.file("more", 10);
    here.push(&[&more]).fails(3, &["no more files", "files=N"]);
    here.pull("tree").fails(3, &["no more files"]);
    let empty = here.scratch.dir("void");
    assert_ne!(here.push(&["-r", &empty]).code, 0);
    assert_eq!(here.scratch.names("root"), ["tree"]);
    // The owner of the server gives them again.
    here.daemon.signal(Signal::HUP);
    let pulled = (0..50).map(|_| here.pull("tree")).find(|run| run.code == 0);
    assert!(pulled.is_some() && here.scratch.names("got/tree/deep") == ["deeper", "empty"]);
    here.push(&[&more]).fails(3, &["no more files"]);
    // What a refused session found is not sent as if it were all.
    let ended = (0..9).map(|_| here.daemon.next("end")).find(|end| end["failed"] == 1 && end["direction"] == "sent");
    assert_eq!(ended.unwrap()["exit_code"], 3);
}
