//! The thread that sends stdin. It may block on its terminal for ever, so no other thread waits for it.

use std::io::{self, IsTerminal, Read};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use farhaul::Error;
use farhaul_session::{Beginning, Begun};
use farhaul_transfer::Throttle;
use farhaul_transfer::internal::Threads;
use farhaul_transfer::internal::bond::BondedStream;
use farhaul_transfer::internal::keys::{Exhausted, Permit};
use farhaul_udp::Clock;
use farhaul_units::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::BLOCK;
use super::ends::Ends;
use crate::exit::{Code, Fault};
use crate::interrupt::Interrupt;

/// Looks for the end of the thread's last call on a connection that is over, and the time between them: half a second in all.
const SETTLING: u32 = 50;
const LOOK: Duration = Duration::from_millis(10);

/// The progress of sending stdin.
#[derive(Clone)]
pub(super) struct Input {
    shared: Arc<Shared>,
}

struct Shared {
    /// The connection. Locked while data is sent, but not during reads of stdin.
    stream: Mutex<Option<BondedStream>>,
    /// The caps of the peer's key.
    permit: Arc<Permit>,
    /// Bytes read so far, sent or not.
    bytes: AtomicU64,
    /// Time spent waiting for the send buffer, in nanoseconds.
    waited: AtomicU64,
    /// Time for which it needed a processor, in nanoseconds; known at the end.
    busy: AtomicU64,
    /// Nothing more is sent: the stream was finished, or cannot be.
    closed: AtomicBool,
    /// The thread waits for stdin.
    reading: AtomicBool,
    state: Mutex<InputState>,
}

#[derive(Default)]
enum InputState {
    #[default]
    Open,
    /// Stdin ended, at this time.
    Ended(Instant),
    /// Reading stdin failed.
    Unreadable(io::Error),
    /// The connection failed.
    Cut(Error),
    /// The peer's key may move no more.
    UsedUp(Exhausted),
    /// It begins as a stream with further flows does.
    Mistakable,
}

impl Input {
    /// Starts sending stdin within the caps of the peer's key. Its end ends what `ends` says. A stream that `is_bare` offers no
    /// flows, and must not seem to.
    pub(super) fn start(
        (stream, permit): (BondedStream, Arc<Permit>),
        (ends, is_bare): (Ends, bool),
        (interrupt, throttle): (Interrupt, Throttle),
        clock: Clock,
    ) -> io::Result<Self> {
        let shared = Shared {
            stream: Mutex::new(Some(stream)),
            permit,
            bytes: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            busy: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            reading: AtomicBool::new(false),
            state: Mutex::default(),
        };
        let input = Self { shared: Arc::new(shared) };
        let its = input.clone();
        let run = move || its.run((ends, is_bare), (&interrupt, &throttle), clock);
        thread::Builder::new().name("input".into()).spawn(run)?;
        Ok(input)
    }

    /// Drops the stream once no send is in progress. The thread may block on stdin for ever.
    pub(super) fn release(&self) {
        self.stream().take();
    }

    /// Bytes read so far.
    pub(super) fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Acquire)
    }

    /// Seconds spent waiting for the send buffer.
    pub(super) fn waited(&self) -> f64 {
        self.shared.waited.load(Ordering::Acquire) as f64 / 1e9
    }

    /// Seconds for which it needed a processor, once everything is sent.
    pub(super) fn busy(&self) -> f64 {
        self.shared.busy.load(Ordering::Acquire) as f64 / 1e9
    }

    /// When stdin ended, if it did.
    pub(super) fn ended(&self) -> Option<Instant> {
        match *self.state() {
            InputState::Ended(at) => Some(at),
            _ => None,
        }
    }

    /// Whether nothing more is sent: the stream was finished, or cannot be.
    pub(super) fn has_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// Whether stdin was cut off by the end of the connection: it has not ended. A person at a terminal may stop at any time.
    pub(super) fn is_cut_off(&self) -> bool {
        // The connection is over, so the thread soon waits for stdin and for nothing else.
        let mut looks = 0;
        while !self.is_quiet() && looks < SETTLING {
            thread::park_timeout(LOOK);
            looks += 1;
        }
        match *self.state() {
            InputState::Open => !io::stdin().is_terminal(),
            InputState::Cut(_) => true,
            InputState::Ended(_) | InputState::Unreadable(_) | InputState::UsedUp(_) | InputState::Mistakable => false,
        }
    }

    /// Whether the thread is done, or waits for a stdin that has neither data nor an end.
    fn is_quiet(&self) -> bool {
        if !matches!(*self.state(), InputState::Open) {
            return true;
        }
        let stdin = io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        let is_ready = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0);
        self.shared.reading.load(Ordering::Acquire) && !is_ready
    }

    /// The result of sending to `peer`.
    pub(super) fn outcome(&self, peer: SocketAddr) -> Result<(), Fault> {
        match &*self.state() {
            InputState::Open | InputState::Ended(_) => Ok(()),
            InputState::Unreadable(error) => Err(Fault::new(Code::LocalIo, format!("cannot read stdin: {error}"))),
            InputState::Cut(error) => Err(Fault::of_connection(error, &peer)),
            InputState::UsedUp(used_up) => Err(super::exhausted(peer, *used_up)),
            InputState::Mistakable => {
                let message = "stdin begins as a pipe of several flows does, so the other side would take it for one";
                Err(Fault::usage(message).remedy("send it with --flows 2"))
            }
        }
    }

    fn run(&self, (ends, is_bare): (Ends, bool), (interrupt, throttle): (&Interrupt, &Throttle), clock: Clock) {
        let threads = Threads::begin();
        let mut ended = self.send_all(is_bare.then(Beginning::default), (interrupt, throttle), clock);
        self.shared.busy.store(nanos(threads.busy()), Ordering::Release);
        let is_over = match &ended {
            // The signal that stops this program may also have ended its input early.
            InputState::Ended(_) if interrupt.is_asked_to_stop() => return,
            InputState::Ended(_) => ends == Ends::Together && self.bytes() > 0,
            _ => true,
        };
        let stream = self.stream();
        let Some(stream) = &*stream else { return };
        if !is_over {
            *self.state() = ended;
            if ends == Ends::Apart
                && let Err(error) = stream.finish_sending()
            {
                // The receiver finds the connection over as well.
                *self.state() = InputState::Cut(error);
            }
            return;
        }
        if matches!(ended, InputState::Ended(_))
            && let Err(error) = stream.finish()
        {
            ended = InputState::Cut(error);
        }
        let is_complete = matches!(ended, InputState::Ended(_));
        *self.state() = ended;
        self.shared.closed.store(true, Ordering::Release);
        if !is_complete {
            // Abort at once, since the writer of stdout may block for long.
            stream.abort();
        }
        // Wake the receiver, since no more data can come.
        stream.cancel();
    }

    /// `beginning` looks for bytes that the other side would take for an offer of flows.
    fn send_all(
        &self,
        mut beginning: Option<Beginning>,
        (interrupt, throttle): (&Interrupt, &Throttle),
        clock: Clock,
    ) -> InputState {
        let mut block = vec![0; BLOCK.min(self.shared.permit.portion())];
        let mut stdin = io::stdin().lock();
        loop {
            throttle.wait(|| interrupt.is_stopping() || self.has_closed() || self.stream().is_none());
            self.shared.reading.store(true, Ordering::Release);
            let read = stdin.read(&mut block);
            self.shared.reading.store(false, Ordering::Release);
            let len = match read {
                Ok(0) => return InputState::Ended(clock.now()),
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return InputState::Unreadable(error),
            };
            if let Some(mut begins) = beginning.take() {
                match begins.handle_received(&block[..len]).0 {
                    Begun::Unknown => beginning = Some(begins),
                    Begun::Bytes => {}
                    Begun::Bonded(_) => return InputState::Mistakable,
                }
            }
            if let Err(used_up) = self.shared.permit.charge(len, clock) {
                return InputState::UsedUp(used_up);
            }
            self.shared.bytes.fetch_add(len as u64, Ordering::AcqRel);
            let began = clock.now();
            let sent = match &*self.stream() {
                Some(stream) => stream.send_all(&block[..len]),
                None => Err(Error::Finished),
            };
            self.shared.waited.fetch_add(nanos(clock.now() - began), Ordering::AcqRel);
            if let Err(error) = sent {
                return InputState::Cut(error);
            }
        }
    }

    fn stream(&self) -> MutexGuard<'_, Option<BondedStream>> {
        self.shared.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, InputState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
