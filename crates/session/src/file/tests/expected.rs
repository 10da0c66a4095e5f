//! What both sides tell beside files: totals, what a sender cannot do, and a full disk.

use super::pair::{Pipes, Seen, pull, push};
use super::{path, tree};
use crate::file::{FileEvent, FileReceiver, FileSender, ReceiveLimits, WAITS_FOR_SPACE};
use crate::handshake::{Accept, Acceptor};
use crate::path_rules::RelPath;
use crate::request::{CopyScope, Push};
use crate::rules::Rules;
use crate::sender_request::Unable;
use crate::store::{MemorySource, MemoryStore};

/// What each side learned, and how many files had their answer before.
fn told(events: &[FileEvent]) -> Option<(u64, u64, usize)> {
    let is_answer = |event: &&FileEvent| matches!(event, FileEvent::Verified(..));
    let at = events.iter().position(|event| matches!(event, FileEvent::Expected { .. }))?;
    let FileEvent::Expected { files, bytes } = events[at] else { return None };
    Some((files, bytes, events[..at].iter().filter(is_answer).count()))
}

fn seen(pulls: bool, streamed: &[&str]) -> Seen {
    let all = tree(&[("a/", 0), ("a/x", 5_000_000), ("a/y", 70), ("empty", 0), ("lone", 3_000_000)]);
    let streamed = streamed.iter().map(|name| path(name)).collect();
    let (mut source, mut store) = (MemorySource { streamed, ..MemorySource::new(all) }, MemoryStore::default());
    let (limits, pipes) = (ReceiveLimits::default(), Pipes { seed: 2, step: 100_000 });
    let request = CopyScope { paths: vec![RelPath::root()], recursive: true, ..CopyScope::default() };
    match pulls {
        true => pull(request, &mut source, &mut store, limits, pipes),
        false => push(&mut source, &mut store, limits, pipes),
    }
}

#[test]
fn both_sides_know_the_totals_before_the_first_file_is_there() {
    for pulls in [true, false] {
        let seen = seen(pulls, &[]);
        assert_eq!((told(&seen.sender), told(&seen.receiver)), (Some((4, 8_000_070, 0)), Some((4, 8_000_070, 0))));
        assert_eq!(seen.totals().files, 4);
    }
}

#[test]
fn a_file_of_unknown_size_leaves_the_totals_unknown() {
    let seen = seen(true, &["a/y"]);
    assert_eq!((told(&seen.sender), told(&seen.receiver), seen.totals().files), (None, None, 4));
}

#[test]
fn a_sender_tells_what_it_cannot_do_of_what_it_was_asked_for() {
    for unable in
        [Unable { background: true, rate: false }, Unable { background: false, rate: true }, Unable::default()]
    {
        let request = CopyScope { paths: vec![RelPath::root()], ..CopyScope::default() };
        let mut receiver = FileReceiver::pull(request, ReceiveLimits::default()).unwrap();
        let (_, open) = Acceptor::new().handle_received(receiver.poll_write()).unwrap();
        let sender = FileSender::answer_unable(&open.unwrap(), unable);
        receiver.handle_received(&mut MemoryStore::default(), sender.first_frame()).unwrap();
        let events: Vec<_> = std::iter::from_fn(|| receiver.poll_event()).collect();
        let told = unable.is_any().then_some(FileEvent::Unable(unable));
        assert_eq!(events, [FileEvent::Accepted].into_iter().chain(told).collect::<Vec<_>>());
    }
}

#[test]
fn a_receiver_that_waits_for_space_tells_its_sender_and_an_older_one_skips_it() {
    let push = Push { rules: Rules { wait_for_space: true, ..Rules::default() }, ..Push::default() };
    let mut sender = FileSender::push(push);
    let mut said = Vec::new();
    Accept::new(0).put(&mut said);
    said.extend_from_slice(&WAITS_FOR_SPACE);
    assert_eq!(sender.handle_received(&said), Ok(said.len()));
    let events: Vec<_> = std::iter::from_fn(|| sender.poll_event()).collect();
    assert_eq!(events, [FileEvent::Accepted, FileEvent::WaitsForSpace]);
    // Types from 0x80 on are those that may be skipped.
    assert!(WAITS_FOR_SPACE[0] >= 0x80);
}
