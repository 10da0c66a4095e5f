//! The host of a SABUL receiver: takes the stream of an original sender.
//!
//! A thread of its own writes to the sink, so that it cannot delay the dialogue. It waits in calls that nothing can end.
//! So after a stop it lives until its call returns.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver as Queue, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use crate::sabul::{Receiver, StreamEnd};
use farhaul_udp::Waker;
use farhaul_units::Instant;

use super::drive::{Application, drive};
use super::line::Line;
use super::sabul_streams::{BLOCK, BLOCKS, StreamTerms};
use super::{Failure, Progress, SessionHandle};

/// A connection with an original sender.
#[derive(Debug)]
pub struct SabulReceiver {
    line: Line,
    udp_port: u16,
    progress: Progress,
}

impl SabulReceiver {
    /// Connects to a sender. `time` bounds the opening of the TCP connection.
    ///
    /// # Errors
    /// Nobody answers.
    pub fn connect(sender: SocketAddr, time: Duration, handle: &SessionHandle) -> Result<Self, Failure> {
        let mut line = Line::connect(sender, time, &handle.stop)?;
        let udp_port = line.open_socket(0)?;
        Ok(Self { line, udp_port, progress: handle.progress.clone() })
    }

    /// Writes the stream to `sink` until the sender ends it. [`StreamEnd`] says what is known about its end.
    ///
    /// # Errors
    /// Something is known to be missing, or the sink failed.
    pub fn receive(mut self, sink: impl Write + Send + 'static, terms: StreamTerms) -> Result<StreamEnd, Failure> {
        let now = self.line.now();
        let mut session = Receiver::new(&terms.config(), self.udp_port, now);
        let mut sink = Sink::start(sink, self.line.waker(), self.progress)?;
        drive(&mut self.line, &mut session, &mut sink)?;
        self.line.finish();
        session.end().ok_or(Failure::Ended)
    }
}

/// A thread that writes blocks to a sink.
struct Sink {
    /// `None` once the sink was told the end.
    blocks: Option<SyncSender<Vec<u8>>>,
    /// The outcome of each write; the last one of the flush.
    outcomes: Queue<std::io::Result<()>>,
    /// Blocks that were not written.
    waiting: usize,
    progress: Progress,
}

impl Sink {
    fn start(mut sink: impl Write + Send + 'static, waker: Waker, progress: Progress) -> Result<Self, Failure> {
        let (blocks, queue) = sync_channel::<Vec<u8>>(BLOCKS);
        let (tells, outcomes) = sync_channel(BLOCKS + 1);
        thread::Builder::new().name("sink".into()).spawn(move || {
            for block in queue {
                // A sink may hold back a short block, and the next one may come much later.
                let written = sink.write_all(&block).and_then(|()| sink.flush());
                let failed = written.is_err();
                if tells.send(written).is_err() || failed {
                    waker.wake();
                    return;
                }
                waker.wake();
            }
            // A receiver that is gone needs no outcome.
            let _ = tells.send(sink.flush());
            waker.wake();
        })?;
        Ok(Self { blocks: Some(blocks), outcomes, waiting: 0, progress })
    }

    /// Takes the outcomes so far. Returns whether the sink has flushed everything.
    fn take_outcomes(&mut self) -> Result<bool, Failure> {
        loop {
            match self.outcomes.try_recv() {
                Ok(outcome) => {
                    outcome.map_err(Failure::Stream)?;
                    if self.blocks.is_none() && self.waiting == 0 {
                        return Ok(true);
                    }
                    self.waiting = self.waiting.saturating_sub(1);
                }
                Err(TryRecvError::Empty) => return Ok(false),
                Err(TryRecvError::Disconnected) => {
                    return Err(Failure::Stream(std::io::Error::other("the sink broke off")));
                }
            }
        }
    }

    fn has_room(&self) -> bool {
        self.waiting < BLOCKS
    }

    fn write(&mut self, block: Vec<u8>) -> Result<(), Failure> {
        let Some(blocks) = &self.blocks else { return Err(Failure::Ended) };
        match blocks.try_send(block) {
            Ok(()) => {
                self.waiting += 1;
                Ok(())
            }
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                // The outcome of the failed write says why.
                self.take_outcomes().and(Err(Failure::Stream(std::io::Error::other("the sink broke off"))))
            }
        }
    }
}

impl Application<Receiver> for Sink {
    fn work(&mut self, _now: Instant, session: &mut Receiver, _line: &mut Line) -> Result<bool, Failure> {
        let flushed = self.take_outcomes()?;
        while self.has_room() && session.available() > 0 {
            let mut block = vec![0; BLOCK];
            let length = session.read(&mut block);
            block.truncate(length);
            self.progress.add_bytes(length as u64);
            self.write(block)?;
        }
        if session.is_over() && session.available() == 0 {
            self.blocks = None;
        }
        Ok(flushed)
    }

    fn work_after_fault(&mut self, now: Instant, session: &mut Receiver, line: &mut Line) -> Result<(), Failure> {
        self.work(now, session, line).map(|_| ())
    }

    fn progress(&self) -> Option<&Progress> {
        Some(&self.progress)
    }
}
