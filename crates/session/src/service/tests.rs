//! Two ends over pipes in memory, and ends that violate the protocol.

mod hostile;
mod requests;
mod trees;
mod turns;

use std::collections::BTreeMap;

use farhaul_units::Rng;

use super::*;
use crate::failure::Failure;
use crate::handshake::Acceptor;
use crate::integrity::Digest;
use crate::path_rules::RelPath;
use crate::store::MemoryFile;

/// A dialogue that runs longer than this many rounds is stuck.
const MAX_ROUNDS: usize = 200_000;

fn place(text: &str) -> ServicePath {
    ServicePath::new(text.as_bytes()).unwrap()
}

fn path(text: &str) -> RelPath {
    RelPath::parse(text.as_bytes()).unwrap()
}

fn pattern(size: usize) -> Vec<u8> {
    (0..size).map(|index| (index / 251 + index % 251) as u8).collect()
}

/// A tree. Names that end in `/` are directories. The others are files of this many patterned bytes.
fn tree(entries: &[(&str, usize)]) -> BTreeMap<RelPath, MemoryFile> {
    let file = |name: &str, size| match name.ends_with('/') {
        true => MemoryFile::directory(),
        false => MemoryFile::file(pattern(size)),
    };
    entries.iter().map(|&(name, size)| (path(name), file(name, size))).collect()
}

fn read(name: &str, from: ReadFrom, length: u64) -> FileRequest {
    FileRequest::Read(ReadRange { place: place(name), from, length })
}

fn put(name: &str, size: Option<u64>, existing: Existing) -> FileRequest {
    FileRequest::Put(Put { place: place(name), size, existing, parents: true, mode: 0o640, mtime: None })
}

fn moving(from: &str, to: &str, existing: Existing) -> Move {
    Move { from: place(from), to: place(to), existing, parents: false }
}

/// A client and a server, with pipes that move random amounts.
struct Pair {
    client: FileClient,
    server: FileServer<MemoryFiles>,
    forth: Vec<u8>,
    back: Vec<u8>,
    rng: Rng,
    answers: BTreeMap<RequestId, Result<Answer, Failure>>,
    /// The order of the answers.
    order: Vec<RequestId>,
}

impl Pair {
    fn new(entries: &[(&str, usize)]) -> Self {
        let mut client = FileClient::connect();
        let opening = client.poll_write().to_vec();
        client.handle_written(opening.len());
        let (used, open) = Acceptor::new().handle_received(&opening).unwrap();
        assert_eq!(used, opening.len());
        let server = FileServer::answer(&open.unwrap(), MemoryFiles::new(tree(entries)));
        let (forth, back, answers, order) = (Vec::new(), Vec::new(), BTreeMap::new(), Vec::new());
        Self { client, server, forth, back, rng: Rng::new(7), answers, order }
    }

    fn ask(&mut self, request: &FileRequest) -> RequestId {
        self.client.request(request).unwrap()
    }

    /// Moves some bytes in both directions.
    fn round(&mut self) {
        let mut some = |available: usize| available.min(usize::try_from(1 + self.rng.below(1 << 18)).unwrap());
        let count = some(self.client.poll_write().len());
        self.forth.extend_from_slice(&self.client.poll_write()[..count]);
        self.client.handle_written(count);
        let count = some(self.forth.len());
        self.server.handle_received(&self.forth.drain(..count).collect::<Vec<_>>()).unwrap();
        let count = some(self.server.poll_write().len());
        self.back.extend_from_slice(&self.server.poll_write()[..count]);
        self.server.handle_written(count);
        let count = some(self.back.len());
        self.client.handle_received(&self.back.drain(..count).collect::<Vec<_>>()).unwrap();
        while let Some(event) = self.client.poll_event() {
            if let ReplyEvent::Answered(id, answer) = event {
                self.order.push(id);
                assert!(self.answers.insert(id, answer).is_none(), "two answers");
            }
        }
    }

    /// The answer to a request.
    fn answer(&mut self, id: RequestId) -> Result<Answer, Failure> {
        for _ in 0..MAX_ROUNDS {
            if let Some(answer) = self.answers.remove(&id) {
                return answer;
            }
            self.round();
        }
        panic!("stuck: {:?} {:?}", self.client, self.server)
    }

    fn asked(&mut self, request: &FileRequest) -> Result<Answer, Failure> {
        let id = self.ask(request);
        self.answer(id)
    }

    /// Sends all of a put, and returns its answer.
    fn puts(&mut self, request: &FileRequest, mut bytes: &[u8]) -> Result<Answer, Failure> {
        let id = self.ask(request);
        for _ in 0..MAX_ROUNDS {
            bytes = &bytes[self.client.write(id, bytes)..];
            if bytes.is_empty() {
                break;
            }
            self.round();
        }
        self.client.finish_put(id);
        self.answer(id)
    }

    fn ranged(&mut self, request: &FileRequest) -> FileRange {
        match self.asked(request) {
            Ok(Answer::Range(range)) => range,
            other => panic!("{other:?}"),
        }
    }

    /// Ends the session, which must have nothing left.
    fn ends(mut self) -> MemoryFiles {
        self.client.finish();
        for _ in 0..MAX_ROUNDS {
            if self.client.is_over() && self.server.is_over() {
                assert_eq!((self.client.error(), self.server.error()), (None, None));
                return self.server.files().clone();
            }
            self.round();
        }
        panic!("stuck: {:?} {:?}", self.client, self.server)
    }
}

fn written(size: u64, bytes: &[u8]) -> Result<Answer, Failure> {
    Ok(Answer::Written(Written { size, digest: Some(Digest::of(bytes)) }))
}
