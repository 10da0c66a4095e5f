//! The thread that writes stdout. It may wait for its reader for ever, so nobody waits for it without looking around.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use farhaul::Canceller;

use super::BLOCK;
use crate::interrupt::Interrupt;

/// Blocks between the connection and stdout: one is filled while the others are written.
const BLOCKS: usize = 4;
/// How often who waits for stdout looks whether the program is to stop: soon enough for a person who stops it.
const LOOK: Duration = Duration::from_millis(100);

/// Room for received bytes, and how many of them there are.
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    pub(super) len: usize,
}

/// Stdout, behind its thread.
pub(super) struct Output {
    full: SyncSender<Block>,
    /// Blocks that are written. It ends with the thread, after the error if there was one.
    written: Receiver<io::Result<Block>>,
    interrupt: Interrupt,
}

/// Why nothing more is written.
#[derive(Debug)]
pub(super) enum Unwritable {
    /// Stdout cannot be written to.
    Failed(io::Error),
    /// A signal asked the program to stop.
    Stopped,
}

impl Output {
    /// Begins to write; `canceller` ends the wait for data that nobody could write any more.
    pub(super) fn start(interrupt: Interrupt, canceller: Canceller) -> io::Result<Self> {
        let (full, blocks) = sync_channel(BLOCKS);
        // One place more than there are blocks: for the error.
        let (done, written) = sync_channel(BLOCKS + 1);
        for _ in 0..BLOCKS {
            done.try_send(Ok(Block { bytes: vec![0; BLOCK], len: 0 })).expect("there is a place for each block");
        }
        thread::Builder::new().name("output".into()).spawn(move || {
            if let Err(error) = write_all(&blocks, &done) {
                // Whoever takes the next block finds it, and whoever waits for data is to take one.
                let _ = done.send(Err(error));
                canceller.cancel();
            }
        })?;
        Ok(Self { full, written, interrupt })
    }

    /// An empty block, once there is one.
    pub(super) fn take_block(&self) -> Result<Block, Unwritable> {
        // The thread ends before its time only with an error, which comes first.
        self.next()?.ok_or_else(|| Unwritable::Failed(io::ErrorKind::BrokenPipe.into()))
    }

    /// Hands in a block to be written.
    pub(super) fn write(&self, block: Block) {
        // A thread that has ended has said why.
        let _ = self.full.send(block);
    }

    /// Waits until everything is written.
    pub(super) fn finish(mut self) -> Result<(), Unwritable> {
        drop(std::mem::replace(&mut self.full, sync_channel(0).0));
        while self.next()?.is_some() {}
        Ok(())
    }

    /// The next block that is written; none if the thread has ended.
    fn next(&self) -> Result<Option<Block>, Unwritable> {
        loop {
            match self.written.recv_timeout(LOOK) {
                Ok(Ok(block)) => return Ok(Some(block)),
                Ok(Err(error)) => return Err(Unwritable::Failed(error)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) if self.interrupt.is_stopping() => return Err(Unwritable::Stopped),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

fn write_all(blocks: &Receiver<Block>, done: &SyncSender<io::Result<Block>>) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for block in blocks {
        stdout.write_all(&block.bytes[..block.len])?;
        stdout.flush()?;
        if done.send(Ok(block)).is_err() {
            break;
        }
    }
    Ok(())
}
