use std::hint::black_box;
use std::os::unix::net::UnixStream;

use farhaul::{Endpoint, Listener, Stream};
use farhaul_bond::First;
use farhaul_bond::mux::Mux;
use farhaul_session::{
    Acceptor, Commit, Digest, Entry, EntryId, Failure, FileReceiver, FileSender, Leftover, Made, MemoryFile,
    MemorySource, MemoryStore, Push, ReceiveLimits, RelPath, Store,
};

use super::measure::{self, Meter, Sender};
use super::*;
use crate::limit::Limit;
use crate::report::Report;

/// A session that computes for a while before each block, as a program does that makes its data as it goes.
struct Computing {
    blocks: u32,
    block: Vec<u8>,
    given: usize,
}

/// Processor time for each block.
const WORK: Duration = Duration::from_millis(1);

impl Session for Computing {
    fn sends(&self) -> bool {
        true
    }

    fn poll_write(&mut self) -> &[u8] {
        if self.given == self.block.len() && self.blocks > 0 {
            self.blocks -= 1;
            self.given = 0;
            let began = farhaul_udp::thread_cpu_time();
            while farhaul_udp::thread_cpu_time() - began < WORK {
                black_box(blake3::hash(&self.block));
            }
        }
        &self.block[self.given..]
    }

    fn handle_written(&mut self, count: usize) {
        self.given += count;
    }

    fn handle_received(&mut self, bytes: &[u8]) -> Result<usize, SessionError> {
        Ok(bytes.len())
    }

    fn awaits_disk(&self) -> bool {
        false
    }

    fn handle_end(&mut self) -> Result<(), SessionError> {
        Ok(())
    }

    fn handle_events(&mut self) -> bool {
        false
    }

    fn cancel(&mut self, _: Abort) {}

    fn is_over(&self) -> bool {
        self.blocks == 0 && self.given == self.block.len()
    }

    fn error(&self) -> Option<&SessionError> {
        None
    }
}

#[test]
fn a_processor_that_has_too_much_to_do_is_the_limit() {
    let listener = Listener::plain("127.0.0.1:0").unwrap();
    let to = listener.local_addr();
    let clock = Clock::start();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (stream, _) = listener.accept().unwrap();
            let mut block = vec![0; ANSWER_BLOCK];
            while stream.recv(&mut block).is_ok_and(|len| len > 0) {}
        });
        let stream = Endpoint::builder().plain().bind("127.0.0.1:0".parse().unwrap()).unwrap().connect(to).unwrap();
        let stream = BondedStream::from(stream);
        let mut session = Computing { blocks: 300, block: vec![7; 4096], given: 4096 };
        let meter = Meter::start(clock);
        let connection = SessionConnection { stream: &stream, role: Role::Connecting, clock, early: &[] };
        let (waits, driven) = drive(&connection, &mut session);
        assert!(driven.is_ok());
        let mut end = Report { seconds: meter.elapsed().as_secs_f64(), bytes: 300 * 4096, ..Report::default() };
        measure::fill_limit(&mut end, &stream.stats().unwrap_or_default(), &Sender { waits, ..Sender::default() });
        let share = end.limited_by_share.unwrap();
        assert!(end.limited_by == Some(Limit::Cpu) && share > 0.5, "{:?} {share} {waits:?}", end.limited_by);
    });
}

/// A store whose disk gets on with nothing before its gate opens.
struct Gated {
    inner: MemoryStore,
    gate: Receiver<()>,
}

impl Store for Gated {
    fn zeros(&mut self, id: EntryId, offset: u64, count: u64) -> Result<(), Failure> {
        self.inner.zeros(id, offset, count)
    }

    fn make_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Made, Failure> {
        self.inner.make_dir(id, entry)
    }

    fn begin(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure> {
        // Without anybody at the gate it stands open.
        let _ = self.gate.recv();
        self.inner.begin(id, entry)
    }

    fn write(&mut self, id: EntryId, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        self.inner.write(id, offset, bytes)
    }

    fn commit(&mut self, id: EntryId, entry: &Entry, digest: &Digest) -> Result<Commit, Failure> {
        self.inner.commit(id, entry, digest)
    }

    fn finish_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Commit, Failure> {
        self.inner.finish_dir(id, entry)
    }

    fn abort(&mut self, id: EntryId, leftover: Leftover) {
        self.inner.abort(id, leftover);
    }
}

/// The receiving end of a copy into such a store.
struct Storing {
    session: FileReceiver,
    store: Gated,
}

impl Session for Storing {
    fn sends(&self) -> bool {
        false
    }

    fn poll_write(&mut self) -> &[u8] {
        self.session.poll_write()
    }

    fn handle_written(&mut self, count: usize) {
        self.session.handle_written(count);
    }

    fn handle_received(&mut self, bytes: &[u8]) -> Result<usize, SessionError> {
        self.session.handle_received(&mut self.store, bytes)
    }

    fn awaits_disk(&self) -> bool {
        false
    }

    fn handle_end(&mut self) -> Result<(), SessionError> {
        self.session.handle_end(&mut self.store)
    }

    fn handle_events(&mut self) -> bool {
        std::iter::from_fn(|| self.session.poll_event()).count() > 0
    }

    fn cancel(&mut self, _: Abort) {}

    fn is_over(&self) -> bool {
        self.session.is_over()
    }

    fn error(&self) -> Option<&SessionError> {
        self.session.error()
    }
}

/// How long the test waits for an answer that never comes if it waits for the disk.
const PATIENCE: Duration = Duration::from_secs(5);

#[test]
fn an_opening_is_answered_before_the_disk_has_taken_what_came_with_it() {
    let path = RelPath::parse(b"file").unwrap();
    let mut source = MemorySource::new([(path.clone(), MemoryFile::file(b"abc".to_vec()))].into());
    let mut sender = FileSender::push(Push::default());
    let mut said = Vec::new();
    while let count @ 1.. = sender.poll_write(&mut source).len() {
        said.extend_from_slice(sender.poll_write(&mut source));
        sender.handle_written(count);
    }
    let listener = Listener::plain("127.0.0.1:0").unwrap();
    let to = listener.local_addr();
    let (open_gate, gate) = sync_channel(0);
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let stream = BondedStream::from(listener.accept().unwrap().0);
            let mut early = vec![0; said.len()];
            let mut came = 0;
            while came < early.len() {
                came += stream.recv(&mut early[came..]).unwrap();
            }
            let (used, open) = Acceptor::new().handle_received(&early).unwrap();
            let session = FileReceiver::answer(&open.unwrap(), ReceiveLimits::default());
            let mut job = Storing { session, store: Gated { inner: MemoryStore::default(), gate } };
            let clock = Clock::start();
            let connection = SessionConnection { stream: &stream, role: Role::Accepting, clock, early: &early[used..] };
            assert!(drive(&connection, &mut job).1.is_ok());
            job.store.inner.tree
        });
        let stream = Stream::connect_plain(to).unwrap();
        stream.send_all(&said).unwrap();
        stream.set_read_timeout(Some(PATIENCE));
        let mut block = [0; 4096];
        let first = stream.recv(&mut block);
        drop(open_gate);
        let first = first.expect("the answer does not wait for the disk");
        sender.handle_received(&block[..first]).unwrap();
        while !sender.is_over() {
            let len = sender.poll_write(&mut source).len();
            stream.send_all(sender.poll_write(&mut source)).unwrap();
            sender.handle_written(len);
            let len = stream.recv(&mut block).unwrap();
            sender.handle_received(&block[..len]).unwrap();
        }
        stream.finish().unwrap();
        assert_eq!((sender.error(), sender.totals().files), (None, 1));
        assert!(server.join().unwrap().contains_key(&path));
    });
}

/// A receiver that takes one byte of its input at a time, and is stopped meanwhile by its endpoint.
struct Slow<'a> {
    taken: usize,
    endpoint: &'a Endpoint,
}

impl Session for Slow<'_> {
    fn sends(&self) -> bool {
        false
    }

    fn poll_write(&mut self) -> &[u8] {
        &[]
    }

    fn handle_written(&mut self, _: usize) {}

    fn handle_received(&mut self, _: &[u8]) -> Result<usize, SessionError> {
        self.taken += 1;
        if self.taken == 3 {
            self.endpoint.canceller().cancel();
        }
        Ok(1)
    }

    fn awaits_disk(&self) -> bool {
        false
    }

    fn handle_end(&mut self) -> Result<(), SessionError> {
        Ok(())
    }

    fn handle_events(&mut self) -> bool {
        false
    }

    fn cancel(&mut self, _: Abort) {}

    fn is_over(&self) -> bool {
        false
    }

    fn error(&self) -> Option<&SessionError> {
        None
    }
}

#[test]
fn a_session_is_stopped_before_it_has_taken_all_of_its_input() {
    let listener = Listener::plain("127.0.0.1:0").unwrap();
    let endpoint = Endpoint::builder().plain().bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let stream = BondedStream::from(endpoint.connect(listener.local_addr()).unwrap());
    let mut session = Slow { taken: 0, endpoint: &endpoint };
    let early = [0; 10_000];
    let connection = SessionConnection { stream: &stream, role: Role::Accepting, clock: Clock::start(), early: &early };
    let driven = drive(&connection, &mut session).1;
    assert!(matches!(driven, Err(Trouble::Connection(ConnectionError::Cancelled))), "{driven:?}");
    assert_eq!(session.taken, 3);
}

/// A session whose n-th poll asks its driver a question. It is over once the answer is written.
#[derive(Default)]
struct Asking {
    sends: bool,
    polls_left: u32,
    asked: bool,
    answer: Vec<u8>,
    is_over: bool,
    /// The driver waited for input while a question was open.
    waited: bool,
}

impl Session for Asking {
    fn sends(&self) -> bool {
        self.sends
    }

    fn poll_write(&mut self) -> &[u8] {
        if self.polls_left > 0 {
            self.polls_left -= 1;
            self.asked = self.polls_left == 0;
        }
        &self.answer
    }

    fn handle_written(&mut self, count: usize) {
        self.answer.drain(..count);
        self.is_over = self.answer.is_empty();
    }

    fn handle_received(&mut self, bytes: &[u8]) -> Result<usize, SessionError> {
        self.waited |= self.asked;
        Ok(bytes.len())
    }

    fn awaits_disk(&self) -> bool {
        false
    }

    fn handle_end(&mut self) -> Result<(), SessionError> {
        Ok(())
    }

    fn handle_events(&mut self) -> bool {
        let asked = std::mem::take(&mut self.asked);
        if asked {
            self.answer.extend_from_slice(b"answer");
        }
        asked
    }

    fn cancel(&mut self, _: Abort) {}

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn error(&self) -> Option<&SessionError> {
        None
    }
}

/// Questions are asked by the polls up to this one. The first wait comes after the third at the latest, and each input is
/// followed by three at the most.
const POLLS: u32 = 9;
/// Time between two bytes of the peer. Each brings the session to further polls.
const BETWEEN_BYTES: Duration = Duration::from_millis(2);

#[test]
fn a_question_of_any_poll_is_answered_before_the_thread_waits() {
    for (sends, question) in [true, false].into_iter().flat_map(|sends| (1..=POLLS).map(move |poll| (sends, poll))) {
        let listener = Listener::plain("127.0.0.1:0").unwrap();
        let to = listener.local_addr();
        let peer = thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(BETWEEN_BYTES));
            let mut answer = [0; 64];
            loop {
                match stream.recv(&mut answer) {
                    Err(ConnectionError::TimedOut(_)) => stream.send_all(b".").unwrap(),
                    received => return received.map(|len| answer[..len].to_vec()),
                }
            }
        });
        let stream = BondedStream::from(Stream::connect_plain(to).unwrap());
        let mut session = Asking { sends, polls_left: question, ..Asking::default() };
        let connection =
            SessionConnection { stream: &stream, role: Role::Connecting, clock: Clock::start(), early: &[] };
        assert!(drive(&connection, &mut session).1.is_ok());
        assert_eq!(peer.join().unwrap().expect("an answer"), b"answer");
        assert!(!session.waited, "sends: {sends}, poll {question}");
    }
}

#[test]
fn nobody_waits_for_a_program_that_ends_with_this_side() {
    for sends in [false, true] {
        let (near, _silent) = UnixStream::pair().unwrap();
        let mux = Mux::begin((near.try_clone().unwrap(), Vec::new()), (near, 0), |_| Ok(()), || {}).unwrap();
        let stream = BondedStream::only(First::Ssh(mux.stream(2 * PATIENCE), None));
        let mut session = Asking { sends, answer: b"done".to_vec(), ..Asking::default() };
        let clock = Clock::start();
        let connection = SessionConnection { stream: &stream, role: Role::Starting, clock, early: &[] };
        assert!(drive(&connection, &mut session).1.is_ok());
        assert!(clock.now() < farhaul_units::Instant::ZERO + PATIENCE, "sends: {sends}");
    }
}
