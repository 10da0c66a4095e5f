//! The hosts of SABUL streams: a sender that waits for an original receiver, and a receiver of an original sender.
//!
//! Threads of their own read the source and write to the sink, so that neither can delay the dialogue. They wait in
//! calls that nothing can end. So after a stop they live until their call returns.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver as Queue, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use farhaul_proto::ChannelEnd;
use farhaul_proto::sabul::Options;
use farhaul_proto::sabul::original::{Receiver, Sender, StreamEnd};
use farhaul_proto::{Config, Entropy};
use farhaul_udp::{UdpSocket, Waker};
use farhaul_units::Instant;

use super::drive::{Session, drive};
use super::line::Line;
use super::rbudp_giver::bind_both;
use super::{Failure, Port, Progress, Stop};

/// Bytes of a block between a thread and the session.
const BLOCK: usize = 256 << 10;
/// Blocks that wait between a thread and the session.
const BLOCKS: usize = 8;

/// The settings of a stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamTerms {
    /// Longest time for the opening.
    pub connect_timeout: Duration,
    /// Longest silence of the peer.
    pub peer_timeout: Duration,
}

impl StreamTerms {
    fn config(&self) -> Config {
        Config { connect_timeout: self.connect_timeout, peer_timeout: self.peer_timeout, ..Config::default() }
    }
}

fn entropy() -> Result<Entropy, Failure> {
    let (mut cookie_key, mut seed) = ([0; 16], [0; 8]);
    let filled = getrandom::fill(&mut cookie_key).and_then(|()| getrandom::fill(&mut seed));
    filled.map_err(|error| Failure::System(std::io::Error::other(error.to_string())))?;
    Ok(Entropy { cookie_key, seed: u64::from_ne_bytes(seed) })
}

// ---- sending ----

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

    /// Waits for one receiver, and sends it everything from `source`. Then it ends the channel, which is the end of the
    /// stream. After a failure it resets the channel instead. `met` hears the receiver's address.
    ///
    /// # Errors
    /// The source failed, or the receiver does not have everything.
    pub fn send(
        self,
        source: impl Read + Send + 'static,
        terms: StreamTerms,
        progress: Progress,
        stop: &Stop,
        met: impl FnOnce(SocketAddr),
    ) -> Result<(), Failure> {
        let (stream, peer) = self.accept(stop)?;
        let mut line = Line::accepted(stream, peer, stop)?;
        met(line.peer());
        line.use_socket(std::sync::Arc::new(self.socket));
        let session = Sender::new(&terms.config(), &Options::original(), &entropy()?, line.now());
        let blocks = read_blocks(source, line.waker())?;
        let mut host = Sending { session, peer: line.peer(), blocks, block: Vec::new(), at: 0, ended: false, progress };
        drive(&mut line, &mut host)?;
        line.finish();
        Ok(())
    }

    fn accept(&self, stop: &Stop) -> Result<(std::net::TcpStream, SocketAddr), Failure> {
        let mut waiter = self.port.watched()?;
        let _woken = stop.wakes(waiter.waker());
        loop {
            if stop.is_stopped() {
                return Err(Failure::Stopped);
            }
            if let Some(accepted) = self.port.accept(&mut waiter)? {
                return Ok(accepted);
            }
        }
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

struct Sending {
    session: Sender,
    peer: SocketAddr,
    blocks: Queue<std::io::Result<Vec<u8>>>,
    /// The present block, and its bytes that the session has.
    block: Vec<u8>,
    at: usize,
    ended: bool,
    progress: Progress,
}

impl Sending {
    /// Gives the session the bytes that it takes.
    fn feed(&mut self, now: Instant) -> Result<(), Failure> {
        while !self.ended {
            if self.at == self.block.len() {
                match self.blocks.try_recv() {
                    Ok(Ok(block)) if block.is_empty() => {
                        self.ended = true;
                        self.session.finish(now);
                        return Ok(());
                    }
                    Ok(block) => (self.block, self.at) = (block.map_err(Failure::Stream)?, 0),
                    Err(TryRecvError::Empty) => {
                        self.session.flush(now);
                        return Ok(());
                    }
                    // Its thread panicked.
                    Err(TryRecvError::Disconnected) => {
                        return Err(Failure::Stream(std::io::Error::other("the source broke off")));
                    }
                }
            }
            let taken = self.session.write(now, &self.block[self.at..]);
            if taken == 0 {
                return Ok(());
            }
            self.at += taken;
            self.progress.add_bytes(taken as u64);
        }
        Ok(())
    }
}

impl Session for Sending {
    fn handle_channel(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Failure> {
        self.session.handle_channel(now, bytes);
        Ok(())
    }

    fn channel_ended(&mut self, now: Instant, end: ChannelEnd) -> Result<(), Failure> {
        self.session.channel_ended(now, end);
        Ok(())
    }

    fn poll_channel(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.session.poll_channel(now, out);
    }

    fn to(&self) -> Option<SocketAddr> {
        // Never elsewhere than to the peer of the channel (attack C1).
        self.session.peer_port().map(|port| SocketAddr::new(self.peer.ip(), port))
    }

    fn next_train<'a>(
        &'a mut self,
        now: Instant,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Option<(usize, &'a [u8])>, Failure> {
        Ok(self.session.poll_datagrams(now, scratch))
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Failure> {
        self.session.handle_timeout(now);
        Ok(())
    }

    fn deadline(&self) -> Option<Instant> {
        self.session.deadline()
    }

    fn work(&mut self, now: Instant, _line: &mut Line) -> Result<bool, Failure> {
        if let Some(error) = self.session.error() {
            return Err(error.into());
        }
        self.feed(now)?;
        let totals = self.session.stats(now).totals;
        self.progress.set_sent(totals.packets_sent, totals.packets_retransmitted);
        match self.session.error() {
            Some(error) => Err(error.into()),
            None => Ok(self.session.is_over()),
        }
    }
}

// ---- receiving ----

/// A connection with an original sender.
#[derive(Debug)]
pub struct SabulReceiver {
    line: Line,
    udp_port: u16,
}

impl SabulReceiver {
    /// Connects to a sender. `time` bounds the opening of the TCP connection.
    ///
    /// # Errors
    /// Nobody answers.
    pub fn connect(sender: SocketAddr, time: Duration, stop: &Stop) -> Result<Self, Failure> {
        let mut line = Line::connect(sender, time, stop)?;
        let udp_port = line.open_socket(0)?;
        Ok(Self { line, udp_port })
    }

    /// Writes the stream to `sink` until the sender ends it. [`StreamEnd`] says what is known about its end.
    ///
    /// # Errors
    /// Something is known to be missing, or the sink failed.
    pub fn receive(
        mut self,
        sink: impl Write + Send + 'static,
        terms: StreamTerms,
        progress: Progress,
    ) -> Result<StreamEnd, Failure> {
        let now = self.line.now();
        let peer = self.line.peer();
        let session = Receiver::new(&terms.config(), self.udp_port, peer.ip(), &entropy()?, now);
        let sink = Sink::start(sink, self.line.waker())?;
        let mut host = Taking { session, sink, spare: Vec::new(), progress };
        drive(&mut self.line, &mut host)?;
        self.line.finish();
        host.session.end().ok_or(Failure::Ended)
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
}

impl Sink {
    fn start(mut sink: impl Write + Send + 'static, waker: Waker) -> Result<Self, Failure> {
        let (blocks, queue) = sync_channel::<Vec<u8>>(BLOCKS);
        let (tells, outcomes) = sync_channel(BLOCKS + 1);
        thread::Builder::new().name("sink".into()).spawn(move || {
            for block in queue {
                let written = sink.write_all(&block);
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
        Ok(Self { blocks: Some(blocks), outcomes, waiting: 0 })
    }

    /// Takes the outcomes so far. Returns whether the sink has flushed everything.
    fn settle(&mut self) -> Result<bool, Failure> {
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
                self.settle().and(Err(Failure::Stream(std::io::Error::other("the sink broke off"))))
            }
        }
    }
}

struct Taking {
    session: Receiver,
    sink: Sink,
    spare: Vec<u8>,
    progress: Progress,
}

impl Session for Taking {
    fn handle_channel(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Failure> {
        self.session.handle_channel(now, bytes);
        Ok(())
    }

    fn channel_ended(&mut self, now: Instant, end: ChannelEnd) -> Result<(), Failure> {
        self.session.channel_ended(now, end);
        Ok(())
    }

    fn poll_channel(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.session.poll_channel(now, out);
    }

    fn receives(&self) -> bool {
        !self.session.is_over()
    }

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Result<(), Failure> {
        // The session drops those of strangers (attack C2).
        self.session.handle_datagram(now, from, datagram);
        self.progress.add_received(1);
        Ok(())
    }

    fn end_batch(&mut self, now: Instant) {
        self.session.end_batch(now);
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Failure> {
        self.session.handle_timeout(now);
        Ok(())
    }

    fn deadline(&self) -> Option<Instant> {
        self.session.deadline()
    }

    fn work(&mut self, _now: Instant, _line: &mut Line) -> Result<bool, Failure> {
        let flushed = self.sink.settle()?;
        while self.sink.has_room() && self.session.available() > 0 {
            self.spare.resize(BLOCK, 0);
            let length = self.session.read(&mut self.spare);
            self.spare.truncate(length);
            self.progress.add_bytes(length as u64);
            self.sink.write(std::mem::take(&mut self.spare))?;
        }
        if let Some(error) = self.session.error() {
            return Err(error.into());
        }
        if self.session.is_over() && self.session.available() == 0 {
            self.sink.blocks = None;
        }
        Ok(flushed)
    }
}
