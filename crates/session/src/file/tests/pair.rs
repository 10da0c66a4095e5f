//! Drives a sender and a receiver against each other, as a driver would, with pipes that move random amounts.

use std::sync::Arc;

use farhaul_units::Rng;

use super::super::{FileEvent, FileReceiver, FileSender, ReceiveLimits, Side, Totals};
use crate::error::SessionError;
use crate::failure::FailCode;
use crate::figures::Figures;
use crate::handshake::{Acceptor, Open};
use crate::request::{CopyScope, Push, Request};
use crate::rules::{Kept, Rules};
use crate::store::{MemorySource, MemoryStore};

/// A copy that runs longer than this many rounds is stuck.
const MAX_ROUNDS: usize = 200_000;

/// The behaviour of the pipes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipes {
    pub(super) seed: u64,
    /// Most bytes moved at a time.
    pub(super) step: u64,
}

impl Pipes {
    pub(super) const WIDE: Self = Self { seed: 1, step: 1 << 20 };
}

/// The events and results of both sides.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) sender: Vec<FileEvent>,
    pub(super) receiver: Vec<FileEvent>,
    pub(super) sender_error: Option<SessionError>,
    pub(super) receiver_error: Option<SessionError>,
    /// Largest number of DATA bytes ahead of the store.
    pub(super) most_ahead: u64,
    /// Bytes of DATA sent, and of content spared, as the sender counts.
    pub(super) sent: u64,
    pub(super) spared: u64,
    /// Figures of the receiver known to the sender, and the reverse.
    pub(super) figures: (Option<Figures>, Option<Figures>),
}

impl Seen {
    /// Totals of both sides, which must agree.
    pub(super) fn totals(&self) -> Totals {
        let done = |events: &[FileEvent]| match events.last() {
            Some(FileEvent::Done(totals)) => *totals,
            other => panic!("not done: {other:?}, {self:?}"),
        };
        assert_eq!(done(&self.sender), done(&self.receiver));
        done(&self.sender)
    }

    pub(super) fn failures(events: &[FileEvent]) -> Vec<(String, FailCode, Side)> {
        let failed = |event: &FileEvent| match event {
            FileEvent::Failed { path, failure, by } => Some((path.to_string(), failure.code, *by)),
            _ => None,
        };
        events.iter().filter_map(failed).collect()
    }
}

pub(super) fn push(source: &mut MemorySource, store: &mut MemoryStore, limits: ReceiveLimits, pipes: Pipes) -> Seen {
    let rules = Rules { keep: Kept::ALL, ..Rules::default() };
    let request = Push { rules, ..Push::default() };
    let mut sender = FileSender::push(request.clone());
    let mut opening = Vec::new();
    let open = read_open(&mut opening, |bytes| move_some(&mut sender, source, bytes));
    assert_eq!(open.request, Request::Push(request));
    let receiver = FileReceiver::answer(&open, limits);
    run(sender, receiver, (source, store), pipes, opening)
}

pub(super) fn pull(
    request: CopyScope,
    source: &mut MemorySource,
    store: &mut MemoryStore,
    limits: ReceiveLimits,
    pipes: Pipes,
) -> Seen {
    let mut receiver = FileReceiver::pull(request.clone(), limits).unwrap();
    let mut opening = Vec::new();
    let open = read_open(&mut opening, |bytes| {
        bytes.extend_from_slice(receiver.poll_write());
        receiver.handle_written(receiver.poll_write().len());
    });
    let names = request.names.as_ref().map(|_| Arc::default());
    assert_eq!(open.request, Request::from(CopyScope { names, ..request.clone() }));
    let mut sender = FileSender::answer(&open);
    assert_eq!(opening.is_empty(), request.names.is_none(), "names follow the opening");
    for byte in &opening {
        let pending = sender.poll_write(source).len();
        assert_eq!(pending, sender.first_frame().len(), "nothing is announced before all names are there");
        sender.handle_received(std::slice::from_ref(byte)).unwrap();
    }
    run(sender, receiver, (source, store), pipes, Vec::new())
}

/// Reads the opening frame from the bytes that `more` supplies. Later bytes stay in `bytes`.
fn read_open(bytes: &mut Vec<u8>, mut more: impl FnMut(&mut Vec<u8>)) -> Open {
    let mut acceptor = Acceptor::new();
    more(bytes);
    let (used, open) = acceptor.handle_received(bytes).unwrap();
    bytes.drain(..used);
    open.expect("openings of tests come whole")
}

fn move_some(sender: &mut FileSender, source: &mut MemorySource, bytes: &mut Vec<u8>) {
    let pending = sender.poll_write(source);
    bytes.extend_from_slice(pending);
    let count = pending.len();
    sender.handle_written(count);
}

fn run(
    sender: FileSender,
    receiver: FileReceiver,
    (source, store): (&mut MemorySource, &mut MemoryStore),
    pipes: Pipes,
    forth: Vec<u8>,
) -> Seen {
    run_damaged(sender, receiver, (source, store), pipes, forth, &[])
}

/// The place of damage in the digest of an empty file.
pub(super) const EMPTY_DIGEST: u64 = u64::MAX;

/// Pushes over a path that damages bytes of content: those at `offset` of the DATA of each file, or [`EMPTY_DIGEST`], so many times.
pub(super) fn push_damaged(
    source: &mut MemorySource,
    store: &mut MemoryStore,
    limits: ReceiveLimits,
    damage: &[(u64, u8)],
) -> Seen {
    let mut sender = FileSender::push(Push::default());
    let mut opening = Vec::new();
    let open = read_open(&mut opening, |bytes| {
        bytes.extend_from_slice(sender.first_frame());
        let count = sender.first_frame().len();
        sender.handle_written(count);
    });
    let receiver = FileReceiver::answer(&open, limits);
    run_damaged(sender, receiver, (source, store), Pipes { seed: 11, step: 1 << 20 }, opening, damage)
}

/// Flips a bit of the content of files in a stream of frames.
struct Damage {
    decoder: crate::framing::Decoder,
    /// The present offset in the file.
    offset: u64,
    left: Vec<(u64, u8)>,
}

impl Damage {
    fn pass(&mut self, mut bytes: &[u8]) -> Vec<u8> {
        use crate::frame_kind::FrameKind;
        use crate::framing::{Decoded, put_frame};
        let mut out = Vec::new();
        while let Some(decoded) = self.decoder.next(&mut bytes).expect("ours") {
            match decoded {
                Decoded::Data(data) => {
                    let mut data = data.to_vec();
                    for (offset, times) in &mut self.left {
                        if (self.offset..self.offset + data.len() as u64).contains(offset) && *times > 0 {
                            *times -= 1;
                            data[usize::try_from(*offset - self.offset).unwrap()] ^= 4;
                        }
                    }
                    self.offset += data.len() as u64;
                    put_frame(&mut out, FrameKind::Data, |out| out.extend_from_slice(&data));
                }
                Decoded::Frame(kind, body) => {
                    match kind {
                        FrameKind::Content => self.offset = 0,
                        FrameKind::Seek => {
                            self.offset = u64::from_be_bytes(body.try_into().unwrap()) * crate::integrity::CHUNK_LEN;
                        }
                        FrameKind::Keep => {
                            self.offset =
                                (u64::from_be_bytes(body.try_into().unwrap()) + 1) * crate::integrity::CHUNK_LEN;
                        }
                        FrameKind::Zeros => self.offset += u64::from_be_bytes(body.try_into().unwrap()),
                        _ => {}
                    }
                    let mut body = body.to_vec();
                    for (_, times) in self.left.iter_mut().filter(|(offset, _)| *offset == EMPTY_DIGEST) {
                        if kind == FrameKind::Digest && self.offset == 0 && *times > 0 {
                            *times -= 1;
                            body[0] ^= 4;
                        }
                    }
                    put_frame(&mut out, kind, |out| out.extend_from_slice(&body));
                }
            }
        }
        out
    }
}

fn run_damaged(
    mut sender: FileSender,
    mut receiver: FileReceiver,
    (source, store): (&mut MemorySource, &mut MemoryStore),
    pipes: Pipes,
    mut forth: Vec<u8>,
    damage: &[(u64, u8)],
) -> Seen {
    let mut damage = Damage { decoder: Default::default(), offset: 0, left: damage.to_vec() };
    let mut rng = Rng::new(pipes.seed);
    let mut some = |available: usize| {
        let step = usize::try_from(1 + rng.below(pipes.step)).unwrap();
        available.min(step)
    };
    let mut back: Vec<u8> = Vec::new();
    let mut seen = Seen::default();
    for round in 0..MAX_ROUNDS {
        let pending = sender.poll_write(source);
        let count = some(pending.len());
        match damage.left.is_empty() {
            true => forth.extend_from_slice(&pending[..count]),
            false => forth.extend(damage.pass(&pending[..count])),
        }
        sender.handle_written(count);

        let count = some(forth.len());
        match receiver.handle_received(store, &forth[..count]) {
            Ok(used) => drop(forth.drain(..used)),
            Err(error) => seen.receiver_error = Some(error),
        }
        if store.deferred && round % 3 == 0 {
            store.finish_commits();
        }
        if let Err(error) = receiver.handle_store(store) {
            seen.receiver_error = Some(error);
        }
        let progress = receiver.progress();
        seen.most_ahead = seen.most_ahead.max(progress.bytes - progress.stored);

        let count = some(receiver.poll_write().len());
        back.extend_from_slice(&receiver.poll_write()[..count]);
        receiver.handle_written(count);
        let count = some(back.len());
        match sender.handle_received(&back[..count]) {
            Ok(used) => drop(back.drain(..used)),
            Err(error) => seen.sender_error = Some(error),
        }
        seen.sender.extend(std::iter::from_fn(|| sender.poll_event()));
        seen.receiver.extend(std::iter::from_fn(|| receiver.poll_event()));
        if sender.is_over() && receiver.is_over() {
            sender.poll_write(source);
            assert!(source.is_idle(), "a file stays open at the source");
            assert!(seen.sender_error.is_some() || store.is_idle(), "a file stays open at the target");
            (seen.sent, seen.spared) = (sender.progress().bytes, sender.progress().spared);
            seen.figures = (sender.peer_figures().copied(), receiver.peer_figures().copied());
            return seen;
        }
    }
    panic!("stuck: {sender:?}\n{receiver:?}");
}
