//! The thread that sends stdin. It may wait for its terminal for ever, so nobody waits for it.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use farhaul::{Error, Stream};
use farhaul_udp::Clock;

use super::BLOCK;
use crate::exit::{Code, Fault};
use crate::fault;
use crate::sys::Threads;

/// How far stdin is sent.
#[derive(Clone, Default)]
pub(super) struct Input {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Read so far, sent or not.
    bytes: AtomicU64,
    /// Time spent waiting for room, in nanoseconds.
    waited: AtomicU64,
    /// Time for which a processor was what it needed, in nanoseconds; known at the end.
    busy: AtomicU64,
    /// This side closed the connection.
    closed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
enum State {
    #[default]
    Open,
    /// The end of stdin was reached.
    Ended,
    /// Stdin could not be read.
    Unreadable(io::Error),
    /// The connection took no more.
    Cut(Error),
}

impl Input {
    /// Begins to send stdin; with `closes`, the connection is closed at its end if there was anything.
    pub(super) fn start(stream: Stream, closes: bool, clock: Clock) -> io::Result<Self> {
        let input = Self::default();
        let its = input.clone();
        thread::Builder::new().name("input".into()).spawn(move || its.run(&stream, closes, clock))?;
        Ok(input)
    }

    /// Bytes read so far.
    pub(super) fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Acquire)
    }

    /// Seconds spent waiting for room.
    pub(super) fn waited(&self) -> f64 {
        self.shared.waited.load(Ordering::Acquire) as f64 / 1e9
    }

    /// Seconds for which a processor was what it needed, once everything is sent.
    pub(super) fn busy(&self) -> f64 {
        self.shared.busy.load(Ordering::Acquire) as f64 / 1e9
    }

    /// Whether stdin ended without a byte.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes() == 0 && !matches!(*self.state(), State::Open)
    }

    /// Whether stdin broke off.
    pub(super) fn is_unreadable(&self) -> bool {
        matches!(*self.state(), State::Unreadable(_))
    }

    /// Whether this side closed the connection, because its input ended.
    pub(super) fn has_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// How sending ended, after this side closed the connection to `peer`.
    pub(super) fn outcome(&self, peer: SocketAddr) -> Result<(), Fault> {
        match &*self.state() {
            State::Open | State::Ended => Ok(()),
            State::Unreadable(error) => Err(Fault::new(Code::LocalIo, format!("cannot read stdin: {error}"))),
            State::Cut(error) => Err(fault::of_connection(error, &peer)),
        }
    }

    fn run(&self, stream: &Stream, closes: bool, clock: Clock) {
        let threads = Threads::begin();
        let ended = self.send_all(stream, clock);
        self.shared.busy.store(nanos(threads.busy()), Ordering::Release);
        let closes = (closes && self.bytes() > 0) || matches!(ended, State::Unreadable(_));
        *self.state() = ended;
        if closes {
            if let Err(error) = stream.finish() {
                *self.state() = State::Cut(error);
            }
            // Wakes who waits for data that cannot come any more.
            self.shared.closed.store(true, Ordering::Release);
            stream.canceller().cancel();
            stream.close();
        }
    }

    fn send_all(&self, stream: &Stream, clock: Clock) -> State {
        let mut block = vec![0; BLOCK];
        let mut stdin = io::stdin().lock();
        loop {
            let len = match stdin.read(&mut block) {
                Ok(0) => return State::Ended,
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return State::Unreadable(error),
            };
            self.shared.bytes.fetch_add(len as u64, Ordering::AcqRel);
            let began = clock.now();
            let sent = stream.send_all(&block[..len]);
            self.shared.waited.fetch_add(nanos(clock.now() - began), Ordering::AcqRel);
            if let Err(error) = sent {
                return State::Cut(error);
            }
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
