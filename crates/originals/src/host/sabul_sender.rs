//! The host of a SABUL sender: waits for an original receiver, and sends it a stream.
//!
//! A thread of its own reads the source, so that it cannot delay the dialogue. It waits in calls that nothing can end.
//! So after a stop it lives until its call returns.

use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver as Queue, TryRecvError, sync_channel};
use std::thread;

use crate::sabul::Sender;
use farhaul_protocols::sabul::Options;
use farhaul_udp::{UdpSocket, Waker};
use farhaul_units::Instant;

use super::drive::{Application, drive};
use super::line::Line;
use super::port::{Port, PortCallers, bind_both};
use super::sabul_streams::{BLOCK, BLOCKS, StreamTerms};
use super::{Failure, Progress, SessionHandle};

/// A port where an original receiver fetches one stream.
#[derive(Debug)]
pub struct SabulSender {
    port: Port,
    socket: UdpSocket,
}

impl SabulSender {
    /// Opens TCP and UDP ports of one number.
    ///
    /// # Errors
    /// A port is taken, or is none of this machine.
    pub fn bind(address: SocketAddr) -> Result<Self, Failure> {
        let (port, socket) = bind_both(address)?;
        Ok(Self { port, socket })
    }

    /// The address, with the port chosen by the system.
    pub const fn local_addr(&self) -> SocketAddr {
        self.port.local_addr()
    }

    /// Waits for one receiver, and sends it everything from `source`. Then it ends its direction of the channel, which is
    /// the end of the stream, and waits for the receiver to end the other one. After a failure it resets the channel
    /// instead. `met` hears the receiver's address.
    ///
    /// # Errors
    /// The source failed, or the receiver does not have everything.
    pub fn send(
        self,
        source: impl Read + Send + 'static,
        terms: StreamTerms,
        handle: &SessionHandle,
        met: impl FnOnce(SocketAddr),
    ) -> Result<(), Failure> {
        let (stream, peer) = PortCallers::of(&self.port, &handle.stop)?.next()?;
        let mut line = Line::accepted(stream, peer, &handle.stop, Arc::default())?;
        met(line.peer());
        line.use_socket(Arc::new(self.socket))?;
        let mut session = Sender::new(&terms.config(), &Options::original(), line.now());
        let blocks = read_blocks(source, line.waker())?;
        let mut source = Source { blocks, block: Vec::new(), at: 0, ended: false, progress: handle.progress.clone() };
        drive(&mut line, &mut session, &mut source)?;
        line.finish();
        Ok(())
    }
}

/// Reads a source on a thread. An empty block is its end.
fn read_blocks(
    mut source: impl Read + Send + 'static,
    waker: Waker,
) -> Result<Queue<std::io::Result<Vec<u8>>>, Failure> {
    let (blocks, queue) = sync_channel(BLOCKS);
    thread::Builder::new().name("source".into()).spawn(move || {
        loop {
            let mut block = vec![0; BLOCK];
            let read = source.read(&mut block);
            if matches!(&read, Err(error) if error.kind() == std::io::ErrorKind::Interrupted) {
                continue;
            }
            let is_last = !matches!(read, Ok(1..));
            let sent = blocks.send(read.map(|length| {
                block.truncate(length);
                block
            }));
            waker.wake();
            if is_last || sent.is_err() {
                return;
            }
        }
    })?;
    Ok(queue)
}

struct Source {
    blocks: Queue<std::io::Result<Vec<u8>>>,
    /// The present block, and its bytes that the session has.
    block: Vec<u8>,
    at: usize,
    ended: bool,
    progress: Progress,
}

impl Source {
    /// Gives the session the bytes that it takes.
    fn feed(&mut self, now: Instant, session: &mut Sender) -> Result<(), Failure> {
        while !self.ended {
            if self.at == self.block.len() {
                match self.blocks.try_recv() {
                    Ok(Ok(block)) if block.is_empty() => {
                        self.ended = true;
                        session.finish(now);
                        return Ok(());
                    }
                    Ok(block) => (self.block, self.at) = (block.map_err(Failure::Stream)?, 0),
                    Err(TryRecvError::Empty) => {
                        session.flush(now);
                        return Ok(());
                    }
                    // Its thread panicked.
                    Err(TryRecvError::Disconnected) => {
                        return Err(Failure::Stream(std::io::Error::other("the source broke off")));
                    }
                }
            }
            let taken = session.write(now, &self.block[self.at..]);
            if taken == 0 {
                return Ok(());
            }
            self.at += taken;
            self.progress.add_bytes(taken as u64);
        }
        Ok(())
    }
}

impl Application<Sender> for Source {
    fn work(&mut self, now: Instant, session: &mut Sender, line: &mut Line) -> Result<bool, Failure> {
        self.feed(now, session)?;
        let totals = session.stats(now).totals;
        self.progress.set_sent(totals.packets_sent, totals.packets_retransmitted);
        if session.ends_sending() {
            line.finish();
        }
        Ok(session.is_over())
    }
}
