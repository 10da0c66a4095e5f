//! The side of whoever wants the command: its streams, until the command has ended.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use farhaul_bond::BondedStream;
use farhaul_session::{CommandEvent, CommandExit, CommandFrame, CommandReader, StandardStream};

use super::Streams;
use super::diagnostics::Diagnostics;
use super::frames::FrameWriter;
use crate::cancel::Cancellation;
use crate::environment::Environment;
use crate::error::{Error, Trouble};
use crate::session::first_answer;
use crate::throttle::Throttle;

/// Bytes per read: as many as the library moves at once.
const BLOCK: usize = 256 << 10;
/// Time for the remote side to take note that nobody reads the output. It hears of it behind all input in flight, which a
/// command that reads nothing blocks.
pub(super) const UNREAD: Duration = Duration::from_secs(60);

/// Why it is unknown how the command ended.
#[derive(Debug)]
pub(super) enum Unfinished {
    /// Nobody reads its output, and it went on.
    Unread,
    /// This side cannot carry its streams.
    Failed(Error),
    Trouble(Trouble),
}

impl From<io::Error> for Unfinished {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Trouble> for Unfinished {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

/// Runs the command whose program waits behind `stream` for `request`, which is empty if it has that, and ends the connection.
pub(super) fn run(
    (stream, request): (&BondedStream, &[u8]),
    streams: Streams,
    environment: &Environment,
) -> Result<CommandExit, Unfinished> {
    let writer = Arc::new(FrameWriter::new(stream.clone()));
    let ended = writer.send_raw(request).map_err(|error| Trouble::from(error).into());
    let ended = ended.and_then(|()| carry(stream, &writer, streams, &Pause::of(environment, stream)));
    match &ended {
        // Everything has arrived.
        Ok(_) => stream.close(),
        Err(_) => stream.abort(),
    }
    // No thread waits for room in the send buffer any more.
    writer.release();
    ended
}

fn carry(
    stream: &BondedStream,
    writer: &Arc<FrameWriter>,
    streams: Streams,
    pause: &Pause,
) -> Result<CommandExit, Unfinished> {
    let Streams { input, output, error } = streams;
    let its = Arc::clone(writer);
    let reading = thread::Builder::new().name("stdin".into());
    let input = Pausing { source: input, pause: pause.clone() };
    // The other threads learn of a lost connection by themselves.
    reading.spawn(move || drop(its.pump(input, StandardStream::Input)))?;
    let mut outputs = Outputs {
        writer,
        stream,
        pause,
        output: Some(output),
        error: Some(Diagnostics::to(error)?),
        unread: None,
        is_given_up: Arc::default(),
    };
    let exit = outputs.receive();
    match exit {
        Err(_) if outputs.is_given_up.load(Ordering::Acquire) => Err(Unfinished::Unread),
        exit => Ok(exit?),
    }
}

/// The pauses of a command, which its user wants.
#[derive(Clone)]
struct Pause {
    throttle: Throttle,
    cancellation: Cancellation,
    stream: BondedStream,
}

impl Pause {
    fn of(environment: &Environment, stream: &BondedStream) -> Self {
        let (throttle, cancellation) = (environment.throttle.clone(), environment.cancellation.clone());
        Self { throttle, cancellation, stream: stream.clone() }
    }

    /// Waits for the end of a pause, or of the connection.
    fn wait(&self) {
        self.throttle.wait(|| self.cancellation.is_cancelled() || !matches!(self.stream.ending(), Ok(None)));
    }
}

/// A source that gives nothing in a pause.
struct Pausing<R> {
    source: R,
    pause: Pause,
}

impl<R: Read> Read for Pausing<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.pause.wait();
        self.source.read(out)
    }
}

/// The streams from the command.
struct Outputs<'a> {
    writer: &'a Arc<FrameWriter>,
    stream: &'a BondedStream,
    pause: &'a Pause,
    output: Option<Box<dyn Write + Send>>,
    error: Option<Diagnostics>,
    /// Exists while the remote side has not answered that nobody reads the output. Its drop is the answer.
    unread: Option<Sender<()>>,
    /// The remote side did not answer in time.
    is_given_up: Arc<AtomicBool>,
}

impl Outputs<'_> {
    /// Receives until the command has ended.
    fn receive(&mut self) -> Result<CommandExit, Trouble> {
        let (mut reader, mut block) = (CommandReader::connecting(), vec![0; BLOCK]);
        let mut len = first_answer(self.stream, &mut block)?;
        loop {
            if len == 0 {
                reader.handle_end()?;
            }
            let mut rest = &block[..len];
            while let Some(event) = reader.next(&mut rest)? {
                if let Some(exit) = self.handle(event) {
                    return Ok(exit);
                }
            }
            self.pause.wait();
            len = self.stream.recv(&mut block)?;
        }
    }

    fn handle(&mut self, event: CommandEvent<'_>) -> Option<CommandExit> {
        match event {
            CommandEvent::Bytes(StandardStream::Error, bytes) => {
                if self.error.as_ref().is_some_and(|error| error.put(bytes).is_err()) {
                    self.error = None;
                    self.close(StandardStream::Error, || {});
                }
            }
            CommandEvent::Bytes(_, bytes) => self.write(bytes),
            CommandEvent::Ended(StandardStream::Output) => (self.output, self.unread) = (None, None),
            // Its last bytes may wait for their reader until the end.
            CommandEvent::Ended(_) | CommandEvent::Accepted => {}
            // A thread may wait for room, so it ends the stream itself.
            CommandEvent::Closed(stream) => self.writer.stop(stream),
            CommandEvent::Exited(exit) => {
                if let Some(error) = self.error.take() {
                    error.finish();
                }
                return Some(exit);
            }
        }
        None
    }

    fn write(&mut self, bytes: &[u8]) {
        let Some(output) = &mut self.output else { return };
        if output.write_all(bytes).and_then(|()| output.flush()).is_ok() {
            return;
        }
        self.output = None;
        let (unread, answered) = channel();
        let (calls, is_given_up) = (self.stream.canceller(), Arc::clone(&self.is_given_up));
        self.close(StandardStream::Output, move || {
            if answered.recv_timeout(UNREAD) == Err(RecvTimeoutError::Timeout) {
                is_given_up.store(true, Ordering::Release);
                calls();
            }
        });
        self.unread = Some(unread);
    }

    /// Tells the remote side that nobody reads this stream, on a thread: another one may wait for room in the send buffer.
    fn close(&self, stream: StandardStream, after: impl FnOnce() + Send + 'static) {
        let writer = Arc::clone(self.writer);
        let thread = thread::Builder::new().name("unread".into());
        // Without a thread, the output is discarded until the command ends.
        let _ = thread.spawn(move || {
            let told = writer.send(CommandFrame::Closed(stream));
            drop(writer);
            if told.is_ok() {
                after();
            }
        });
    }
}
