//! Drives a sans-IO session on a stream: reading, writing, and the end.
//!
//! **Rest.** A thread waits for its peer only if the session is at rest: its last poll gave nothing to write, and left no
//! event unhandled. An answer of this side to an event of the session would otherwise wait for a peer that waits too.

pub mod file;
pub mod measure;
pub(crate) mod throttled;
mod wait_times;
pub mod watch;

use std::io;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use farhaul::{Bytes, Error as ConnectionError};
use farhaul_bond::BondedStream;
use farhaul_session::{Abort, AbortCode, SessionError};
use farhaul_udp::Clock;

use crate::error::Trouble;
pub use wait_times::{WaitTimes, Waits};
use watch::RoundTrips;

/// Bytes per read of a stream: as many as the library moves at once.
const BLOCK: usize = 256 << 10;
/// Pending bytes from which on the transport keeps them in place of a copy: a train.
const SHARED: usize = 64 << 10;
/// Time between looks at a peer whose first answer is overdue: much less than any interval of keep-alives.
const LIVENESS_CHECK: Duration = Duration::from_millis(100);
/// Received blocks that may wait for a busy writer. Answers are small and few.
const WAITING_BLOCKS: usize = 64;
/// Time between looks at a session that pauses: so short that a transport is not without data when its rate rises.
const PAUSE: Duration = Duration::from_millis(5);
/// Bytes per read of answers.
const ANSWER_BLOCK: usize = 64 << 10;
/// Time for the connecting side to close after the end of a session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A session with its source or target of data. It exchanges bytes with the other end.
pub trait Session {
    /// Starts the session. `wait_times` measures its waiting times.
    fn begin(&mut self, _wait_times: &Rc<WaitTimes>) {}
    /// Whether it mostly writes. Then a separate thread reads.
    fn sends(&self) -> bool;
    /// The next bytes for the peer. Empty if there are none now.
    fn poll_write(&mut self) -> &[u8];
    /// The bytes of the last `poll_write`, and perhaps more, as a block to keep; `None` if they must be copied. A copy of data that was just read
    /// from a file costs as little.
    fn pending_block(&mut self) -> Option<Bytes> {
        None
    }
    /// So many of them were written.
    fn handle_written(&mut self, count: usize);
    /// Takes received bytes. Returns how many it took: the rest comes again once it has nothing to write.
    ///
    /// # Errors
    /// The peer misbehaves, or this side cannot go on.
    fn handle_received(&mut self, bytes: &[u8]) -> Result<usize, SessionError>;
    /// Whether it reads the data that arrives. One copy into memory that the cache holds then costs less than many short blocks (ADR 0044).
    fn looks_at_data(&self) -> bool {
        true
    }
    /// Whether this side's disk will have something to say without further input. Then [`handle_disk`](Self::handle_disk) is
    /// called now and then. Without a default, since a wrapper that forgets it lets both sides wait for ever.
    fn awaits_disk(&self) -> bool;
    /// Takes what the disk has to say.
    ///
    /// # Errors
    /// This side cannot go on.
    fn handle_disk(&mut self) -> Result<(), SessionError> {
        Ok(())
    }
    /// The peer ended its direction.
    ///
    /// # Errors
    /// It left before everything was done.
    fn handle_end(&mut self) -> Result<(), SessionError>;
    /// Handles all events since the last call. Returns whether there was one. Then `poll_write` may have more to give.
    fn handle_events(&mut self) -> bool;
    /// Ends the session, and tells the peer the reason.
    fn cancel(&mut self, why: Abort);
    /// Whether nothing more is to be said.
    fn is_over(&self) -> bool;
    /// Whether the last `poll_write` gave nothing only for the moment.
    fn is_paused(&self) -> bool {
        false
    }
    /// Why it failed.
    fn error(&self) -> Option<&SessionError>;
    /// Hears what arrives, at once and on the thread that reads, while the session may be waiting for room. For sessions that
    /// [send](Self::sends).
    fn hearing(&mut self) -> Hearing {
        Box::new(|_| ())
    }
    /// Gives the session the RTTs for its report to the peer.
    fn set_round_trips(&mut self, _: RoundTrips) {}
}

/// Hears the bytes that arrive.
pub type Hearing = Box<dyn FnMut(&[u8]) + Send>;

/// The connection of a session.
pub struct SessionConnection<'a> {
    /// The stream.
    pub stream: &'a BondedStream,
    /// The role of this side.
    pub role: Role,
    /// Counts time.
    pub clock: Clock,
    /// Bytes received together with the request that chose the session.
    pub early: &'a [u8],
}

/// The role of this side. The side that was not called closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It has connected, and closes.
    Connecting,
    /// It was called.
    Accepting,
    /// It has connected to a program that it started, and ends that. So nobody waits until the other side has heard of the end.
    Starting,
}

/// Runs `session` until it is over and the stream is finished.
pub fn drive(connection: &SessionConnection<'_>, session: &mut impl Session) -> (Waits, Result<(), Trouble>) {
    let wait_times = Rc::new(WaitTimes::begin());
    session.begin(&wait_times);
    let moved = if session.sends() { send(connection, session, &wait_times) } else { receive(connection, session) };
    let waits = wait_times.waits();
    session.handle_events();
    let result = match (moved, session.error()) {
        // The session's error explains more than the end of the connection that follows.
        (_, Some(error)) if !matches!(error, SessionError::Cancelled(_)) => Err(error.clone().into()),
        (Err(_), None) if session.is_over() => Ok(()),
        (Err(Trouble::Connection(ConnectionError::TimedOut(after))), _) => {
            Err(Trouble::unanswered(after, connection.stream))
        }
        (moved, _) => moved,
    };
    (waits, result)
}

/// Runs a receiver on one thread. Its answers are small and never wait long.
fn receive(connection: &SessionConnection<'_>, session: &mut impl Session) -> Result<(), Trouble> {
    let moved = read_and_answer(connection, session);
    conclude(connection, session, &moved, || {
        connection.stream.set_read_timeout(Some(CLOSE_TIMEOUT));
        while connection.stream.recv(&mut [0; 64]).is_ok_and(|len| len > 0) {}
    });
    moved
}

fn read_and_answer(connection: &SessionConnection<'_>, session: &mut impl Session) -> Result<(), Trouble> {
    let (mut block, mut blocks, mut first) = (vec![0; BLOCK], Vec::new(), true);
    // Answer the opening first, since taking input may wait for the disk.
    write_pending(connection.stream, session)?;
    feed(session, connection.early, connection.stream)?;
    loop {
        write_pending(connection.stream, session)?;
        if session.is_over() {
            return Ok(());
        }
        let received = match first {
            true if !session.awaits_disk() => {
                first = false;
                first_answer(connection.stream, &mut block)?
            }
            _ if session.awaits_disk() => match receive_briefly(connection.stream, &mut block)? {
                Some(len) => len,
                None => {
                    session.handle_disk()?;
                    continue;
                }
            },
            _ if session.looks_at_data() => connection.stream.recv(&mut block)?,
            _ => connection.stream.recv_blocks(&mut blocks)?,
        };
        if received == 0 {
            return Ok(session.handle_end()?);
        }
        if blocks.is_empty() {
            feed(session, &block[..received], connection.stream)?;
        }
        for block in blocks.drain(..) {
            feed(session, &block, connection.stream)?;
        }
    }
}

/// Receives, unless nothing comes for a moment.
fn receive_briefly(stream: &BondedStream, block: &mut [u8]) -> Result<Option<usize>, ConnectionError> {
    stream.set_read_timeout(Some(PAUSE));
    let received = stream.recv(block);
    stream.set_read_timeout(None);
    match received {
        Err(ConnectionError::TimedOut(_)) if stream.stats().is_ok() => Ok(None),
        received => received.map(Some),
    }
}

/// Runs a sender: this thread writes, another one reads the answers.
fn send(connection: &SessionConnection<'_>, session: &mut impl Session, wait_times: &WaitTimes) -> Result<(), Trouble> {
    let stream = connection.stream;
    let mut hearing = session.hearing();
    hearing(connection.early);
    thread::scope(|scope| {
        let (answers, inbox) = sync_channel(WAITING_BLOCKS);
        let reader = thread::Builder::new().name("answers".into());
        let moved = match reader.spawn_scoped(scope, move || read_answers(stream, &answers, hearing)) {
            Ok(_) => write_and_listen(connection, session, &inbox, wait_times),
            Err(error) => Err(give_up(session, &error)),
        };
        conclude(connection, session, &moved, || {
            while inbox.recv_timeout(CLOSE_TIMEOUT).is_ok_and(|answer| answer.is_ok_and(|block| !block.is_empty())) {}
        });
        // Cancel the reader wherever it waits: closing alone does not wake a wait for data.
        drop(inbox);
        stream.cancel();
        stream.close();
        moved
    })
}

/// Cancels a session without a thread for answers. The peer may try again.
fn give_up(session: &mut impl Session, error: &io::Error) -> Trouble {
    let message = format!("the system gives no thread for this session: {error}; try again later");
    let why = Abort { code: AbortCode::Busy, message };
    session.cancel(why.clone());
    SessionError::Cancelled(why).into()
}

/// A received block, empty at the end of the stream.
type Answer = Result<Vec<u8>, ConnectionError>;

fn read_answers(stream: &BondedStream, answers: &SyncSender<Answer>, mut hear: Hearing) {
    let mut block = vec![0; ANSWER_BLOCK];
    let mut answer = first_answer(stream, &mut block);
    // The other thread may wait for a send buffer that never drains.
    let closes = matches!(answer, Err(ConnectionError::TimedOut(_)));
    loop {
        let last = answer.as_ref().map_or(true, |len| *len == 0);
        if let Ok(len) = &answer {
            hear(&block[..*len]);
        }
        if answers.send(answer.map(|len| block[..len].to_vec())).is_err() || last {
            break;
        }
        answer = stream.recv(&mut block);
    }
    if closes {
        stream.close();
    }
}

/// Reads the first bytes of a peer, within the initial read time-out. Later reads have none.
///
/// The time-out does not apply to a peer that acknowledges nothing: the connection itself detects its loss. A peer may also
/// be lost after it acknowledged the opening. So the time-out counts once a further packet shows that the peer lives: a
/// keep-alive, or the answer to a question.
pub(crate) fn first_answer(stream: &BondedStream, block: &mut [u8]) -> Result<usize, ConnectionError> {
    // When the answer was due, in time since the connection was opened.
    let mut due = None;
    loop {
        match stream.recv(block) {
            Err(ConnectionError::TimedOut(_)) if !lives_after(stream, &mut due) => {
                stream.set_read_timeout(Some(LIVENESS_CHECK))
            }
            received => {
                stream.set_read_timeout(None);
                // All of the time, of which the last read had a part.
                let waited = || stream.stats().map_or(LIVENESS_CHECK, |stats| stats.elapsed);
                return received.map_err(|error| match error {
                    ConnectionError::TimedOut(_) => ConnectionError::TimedOut(waited()),
                    other => other,
                });
            }
        }
    }
}

/// Whether the peer was heard after `due`, which is set once the peer has acknowledged what was sent.
fn lives_after(stream: &BondedStream, due: &mut Option<Duration>) -> bool {
    let Ok(stats) = stream.stats() else { return true };
    if stats.totals.acks_received == 0 {
        return false;
    }
    let elapsed = stats.elapsed;
    let due = *due.get_or_insert(elapsed);
    stats.silence.is_none_or(|silence| elapsed.saturating_sub(silence) > due)
}

fn write_and_listen(
    connection: &SessionConnection<'_>,
    session: &mut impl Session,
    inbox: &Receiver<Answer>,
    wait_times: &WaitTimes,
) -> Result<(), Trouble> {
    let (stream, clock) = (connection.stream, connection.clock);
    if !connection.early.is_empty() {
        take(session, Ok(connection.early.to_vec()))?;
    }
    loop {
        // No more than may wait: answers of this side come between those of a peer that sends all the time.
        for answer in inbox.try_iter().take(WAITING_BLOCKS) {
            take(session, answer)?;
        }
        session.handle_events();
        let pending = session.poll_write().len();
        let began = clock.now();
        if pending > 0 {
            match send_pending(stream, session, pending) {
                Ok(len) => session.handle_written(len),
                Err(error) => return Err(last_words(session, inbox, error)),
            }
            wait_times.add_room(clock.now() - began);
        } else if session.handle_events() {
            // The poll asked for it, so poll again: nobody wakes a wait for an answer to oneself.
        } else if session.is_over() {
            return Ok(());
        } else if session.is_paused() {
            // The transport has data meanwhile.
            if let Ok(answer) = inbox.recv_timeout(PAUSE) {
                take(session, answer)?;
            }
        } else {
            let answer = inbox.recv();
            wait_times.add_peer(clock.now() - began);
            take(session, answer.unwrap_or_else(|_| Ok(Vec::new())))?;
        }
    }
}

/// Sends as much of the `pending` bytes as fits, as a block if they are worth it. Returns the number of bytes.
fn send_pending(stream: &BondedStream, session: &mut impl Session, pending: usize) -> Result<usize, ConnectionError> {
    let block = if pending < SHARED { None } else { session.pending_block() };
    match block {
        Some(block) => stream.send_block(block.slice(..pending)),
        None => stream.send(session.poll_write()),
    }
}

/// The trouble of a failed send. The peer may have sent its reason.
fn last_words(session: &mut impl Session, inbox: &Receiver<Answer>, error: ConnectionError) -> Trouble {
    if matches!(error, ConnectionError::Cancelled) {
        return error.into();
    }
    while let Ok(answer) = inbox.recv() {
        match answer {
            Ok(answer) if answer.is_empty() => break,
            Ok(answer) => {
                if let Err(said) = take(session, Ok(answer)) {
                    return said;
                }
            }
            // The reason for the close.
            Err(late @ ConnectionError::TimedOut(_)) => return late.into(),
            Err(_) => break,
        }
    }
    error.into()
}

fn take(session: &mut impl Session, answer: Answer) -> Result<(), Trouble> {
    let answer = answer?;
    if answer.is_empty() {
        return Ok(session.handle_end()?);
    }
    let mut rest = answer.as_slice();
    while !rest.is_empty() {
        let used = session.handle_received(rest)?;
        rest = &rest[used..];
        session.handle_events();
    }
    Ok(())
}

/// Gives a receiver all of `block`. Writes its answers in between, when it takes no more input. A block may cost it long, so it may be
/// cancelled there as well.
fn feed(session: &mut impl Session, block: &[u8], stream: &BondedStream) -> Result<(), Trouble> {
    let mut rest = block;
    loop {
        let used = session.handle_received(rest)?;
        rest = &rest[used..];
        if rest.is_empty() {
            return Ok(());
        }
        if stream.is_cancelled() {
            return Err(ConnectionError::Cancelled.into());
        }
        write_pending(stream, session)?;
    }
}

/// Writes until the session is at rest: its last poll gave nothing, and caused no event that gives it something to write.
fn write_pending(stream: &BondedStream, session: &mut impl Session) -> Result<(), ConnectionError> {
    loop {
        session.handle_events();
        let pending = session.poll_write();
        if !pending.is_empty() {
            let len = stream.send(pending)?;
            session.handle_written(len);
        } else if !session.handle_events() {
            return Ok(());
        }
    }
}

/// Ends the connection. The connecting side closes after a success. A failing side sends its reason and closes.
fn conclude(
    connection: &SessionConnection<'_>,
    session: &mut impl Session,
    moved: &Result<(), Trouble>,
    wait_for_peer: impl FnOnce(),
) {
    let cancelled = matches!(moved, Err(Trouble::Connection(ConnectionError::Cancelled)));
    if cancelled {
        session.cancel(Abort { code: AbortCode::Cancelled, message: "it was stopped there".into() });
    }
    // Writing may fail because the peer is gone.
    let told = write_pending(connection.stream, session).is_ok();
    if cancelled && session.sends() {
        // The send buffer may be long. The end of the connection tells the peer sooner.
        connection.stream.close();
    } else if cancelled {
        // The peer still gets the commits, without a wait on this side.
        connection.stream.finish_in_background();
    } else if told && moved.is_ok() && connection.role == Role::Accepting && session.error().is_none() {
        wait_for_peer();
        // If a signal stopped this side meanwhile, the last answers may still be in flight.
        connection.stream.finish_in_background();
    } else if told && moved.is_ok() && connection.role == Role::Starting && session.error().is_none() {
        connection.stream.finish_in_background();
    } else if told {
        let _ = connection.stream.finish();
    }
}

#[cfg(test)]
mod tests;
