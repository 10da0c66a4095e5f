//! The thread that writes stdout. It may block on its reader for ever, so waits for it also check for signals.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use super::BLOCK;
use crate::interrupt::Interrupt;

/// Blocks between the connection and stdout: one is filled while the others are written.
const BLOCKS: usize = 4;
/// Interval at which a wait for stdout checks for a signal: short for a person.
const LOOK: Duration = Duration::from_millis(100);

/// A buffer for received bytes, and their number.
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    pub(super) len: usize,
}

/// Stdout with its thread.
pub(super) struct Output {
    full: SyncSender<Block>,
    /// Written blocks. It ends with the thread, after its error if there is one.
    written: Receiver<io::Result<Block>>,
    interrupt: Interrupt,
}

/// Reason for the end of writing.
#[derive(Debug)]
pub(super) enum Unwritable {
    /// Stdout cannot be written to.
    Failed(io::Error),
    /// A signal asked the program to stop.
    Stopped,
}

impl Output {
    /// Starts writing. On an error, `cancel` ends the wait for more data.
    pub(super) fn start(interrupt: Interrupt, cancel: impl Fn() + Send + 'static) -> io::Result<Self> {
        let (full, blocks) = sync_channel(BLOCKS);
        // One place per block, and one for the error.
        let (done, written) = sync_channel(BLOCKS + 1);
        for _ in 0..BLOCKS {
            done.try_send(Ok(Block { bytes: vec![0; BLOCK], len: 0 })).expect("there is a place for each block");
        }
        thread::Builder::new().name("output".into()).spawn(move || {
            if let Err(error) = write_all(&blocks, &done) {
                // The next taker of a block finds the error. Cancel a wait for data, so that it takes one.
                let _ = done.send(Err(error));
                cancel();
            }
        })?;
        Ok(Self { full, written, interrupt })
    }

    /// Waits for an empty block.
    pub(super) fn take_block(&self) -> Result<Block, Unwritable> {
        // The thread ends early only with an error, which comes first.
        self.next()?.ok_or_else(|| Unwritable::Failed(io::ErrorKind::BrokenPipe.into()))
    }

    /// Queues a block for writing.
    pub(super) fn write(&self, block: Block) {
        // A thread that has ended has reported its error.
        let _ = self.full.send(block);
    }

    /// Takes back an empty block.
    pub(super) fn give_back(&self, block: Block) {
        self.write(Block { len: 0, ..block });
    }

    /// Waits until everything is written.
    pub(super) fn finish(mut self) -> Result<(), Unwritable> {
        drop(std::mem::replace(&mut self.full, sync_channel(0).0));
        while self.next()?.is_some() {}
        Ok(())
    }

    /// Waits for the next written block; `None` if the thread has ended.
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

/// Closes stdout, whose writing has finished, while the program goes on. Its number stays taken, so that nothing else is
/// written to by mistake.
pub(super) fn close() -> io::Result<()> {
    let nowhere = File::options().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(nowhere)?)
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
