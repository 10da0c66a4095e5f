//! What listeners share: taking connections one thread each, and reading what each of them wants.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use farhaul::{Endpoint, Error, Stream};
use farhaul_session::{AbortCode, Acceptor, Open, refusal, refusal_of};

use super::Context;
use crate::exit::Fault;
use crate::output::Output;
use crate::output::human::plural;

/// How long a peer may take to say what it wants.
const OPENING: Duration = Duration::from_secs(10);
/// Most bytes that are read before it is known what the peer wants.
const BLOCK: usize = 64 << 10;

/// A connection whose peer has said what it wants.
pub(super) struct Caller {
    /// Counts from one.
    pub(super) session: u64,
    pub(super) peer: SocketAddr,
    pub(super) stream: Stream,
    pub(super) open: Open,
    /// What the peer sent after that.
    pub(super) early: Vec<u8>,
}

impl Caller {
    /// Answers the opening, before a disk is touched: the peer waits for it no longer than for a connection. How many
    /// bytes were written, which is all of them unless the peer is gone; whoever drives the session then finds that out.
    pub(super) fn answer(&self, words: &[u8]) -> usize {
        self.stream.send(words).unwrap_or(0)
    }

    /// Tells the peer that it does not get what it wants.
    pub(super) fn refuse(&self, code: AbortCode, message: &str) {
        farewell(&self.stream, &refusal(code, message));
    }
}

/// Serves callers, `max` at a time, until a signal stops the program.
pub(super) fn run(
    context: &Context,
    output: &Output,
    endpoint: &Endpoint,
    max: usize,
    serve: impl Fn(Caller) + Sync,
) -> Result<(), Fault> {
    let local = endpoint.local_addr();
    let listener = endpoint.listen().map_err(|error| context.connection_fault(&error, &local))?;
    let (busy, taken) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (running, total, words) = (Arc::clone(&busy), Arc::clone(&taken), output.clone());
    context.interrupt.shows(move || {
        let (running, total) = (running.load(Ordering::Acquire), total.load(Ordering::Acquire));
        words.state(&format!("{} running, {total} since the beginning", plural(running as u64, "session")));
    });
    thread::scope(|scope| {
        for session in 1.. {
            let (stream, peer) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => return Err(context.connection_fault(&error, &local)),
            };
            let full = busy.fetch_add(1, Ordering::AcqRel) >= max;
            taken.fetch_add(1, Ordering::AcqRel);
            let (busy, serve) = (&busy, &serve);
            scope.spawn(move || {
                if full {
                    farewell(
                        &stream,
                        &refusal(AbortCode::Busy, "as many sessions as allowed are running; try again later"),
                    );
                } else if let Some((open, early)) = opening(output, &stream, peer) {
                    serve(Caller { session, peer, stream, open, early });
                }
                busy.fetch_sub(1, Ordering::AcqRel);
            });
        }
        unreachable!("there are more session numbers than sessions")
    })
}

/// Reads what the peer wants; complains if it speaks something else.
fn opening(output: &Output, stream: &Stream, peer: SocketAddr) -> Option<(Open, Vec<u8>)> {
    let mut acceptor = Acceptor::new();
    let mut block = vec![0; BLOCK];
    stream.set_read_timeout(Some(OPENING));
    loop {
        let len = match stream.recv(&mut block) {
            Ok(0) | Err(Error::Cancelled) => return None,
            Ok(len) => len,
            Err(error) => {
                output.warn(&format!("{peer} connected and did not say what it wants: {error}"));
                return None;
            }
        };
        match acceptor.handle_received(&block[..len]) {
            Ok((_, None)) => {}
            Ok((used, Some(open))) => {
                stream.set_read_timeout(None);
                return Some((open, block[used..len].to_vec()));
            }
            Err(error) => {
                output.warn(&format!("{peer}: {error}"));
                farewell(stream, &refusal_of(&error));
                return None;
            }
        }
    }
}

/// The last words to a peer; it may have gone already.
fn farewell(stream: &Stream, words: &[u8]) {
    if stream.send_all(words).is_ok() {
        let _ = stream.finish();
    }
}
