//! The side of the command, which the remote program starts.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use farhaul_bond::BondedStream;
use farhaul_session::{
    AbortCode, COMMAND_VERSION, CommandEvent, CommandExit, CommandFrame, CommandReader, CommandRequest, SessionError,
    StandardStream, refusal_of,
};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::frames::FrameWriter;
use super::login::LoginCommand;
use crate::environment::Environment;
use crate::error::{Code, Error};
use crate::remote::widen;
use crate::serve::listener::Caller;
use crate::text::reason;

/// Bytes per read: as many as the library moves at once.
const BLOCK: usize = 256 << 10;

/// Runs the command for its caller, until it has ended or nobody waits for it any more.
///
/// The connection ends it: the calls of this thread wait for nothing else, whatever the other threads wait for.
pub(crate) fn serve(
    environment: &Environment,
    caller: &Caller,
    request: CommandRequest,
    command: &LoginCommand,
) -> Result<(), Error> {
    if request.version != COMMAND_VERSION {
        let why = format!("commands of version {} are not known here, but {COMMAND_VERSION}", request.version);
        caller.refuse(AbortCode::Version, &why);
        return Err(Error::new(Code::Protocol, why));
    }
    let started = command.process().spawn();
    let mut child = started.map_err(|error| {
        let why = format!("the login shell {} does not start: {}", command.shell(), reason(&error));
        caller.refuse(AbortCode::Refused, &why);
        Error::new(Code::LocalIo, why)
    })?;
    let writer = Arc::new(FrameWriter::new(caller.stream.clone()));
    // The local program's user may change the cap, through ssh.
    let _capped = environment.throttle.caps(&caller.stream);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let running = Arc::new(Running::of(child));
    let begun = (|| {
        writer.send(CommandFrame::Accept).map_err(|error| environment.connection_error(&error, &caller.peer))?;
        stdin.as_ref().into_iter().for_each(widen);
        stdout.as_ref().into_iter().for_each(widen);
        let (stream, early, its) = (caller.stream.clone(), caller.early.clone(), Arc::clone(&writer));
        begin("stdin", move || feed(&stream, &early, stdin, &its))?;
        let its = Arc::clone(&writer);
        let output = begin("stdout", move || send(stdout, StandardStream::Output, &its))?;
        let its = Arc::clone(&writer);
        let error = begin("stderr", move || send(stderr, StandardStream::Error, &its))?;
        let (its, process) = (Arc::clone(&writer), Arc::clone(&running));
        begin("command", move || conclude([output, error], &process, &its))?;
        Ok::<(), Error>(())
    })();
    let ended = begun.and_then(|()| {
        caller.stream.wait_until_closed().map_err(|error| environment.connection_error(&error, &caller.peer))
    });
    if ended.is_err() {
        caller.stream.abort();
    }
    // No thread waits for room in the send buffer any more. The others may wait for the command.
    writer.release();
    match running.hang_up() {
        true => ended.and_then(|()| Err(Error::new(Code::PeerLost, "nobody waits for the command any more"))),
        false => Ok(()),
    }
}

fn begin(name: &str, what: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    Ok(thread::Builder::new().name(name.into()).spawn(what)?)
}

/// Sends an output of the command, until it ends or nobody reads it. The first thread sees a lost connection.
fn send(output: Option<impl Read>, stream: StandardStream, writer: &FrameWriter) {
    if let Some(output) = output {
        let _ = writer.pump(output, stream);
    }
}

/// The process of the command, while it may be signalled.
#[derive(Debug)]
struct Running {
    group: Option<Pid>,
    /// `None` once it was waited for. Until then, nobody else gets its number.
    child: Mutex<Option<Child>>,
}

impl Running {
    fn of(child: Child) -> Self {
        Self { group: i32::try_from(child.id()).ok().and_then(Pid::from_raw), child: Mutex::new(Some(child)) }
    }

    /// Waits for its end.
    fn wait(&self) -> Option<ExitStatus> {
        // The lock stays free for a hang-up.
        let _ = waitid(WaitId::Pid(self.group?), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        child.take()?.wait().ok()
    }

    /// Tells all processes of the command that nobody waits for it, as the end of a terminal does. Returns whether it still ran.
    fn hang_up(&self) -> bool {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = child.is_some();
        if let Some(group) = self.group.filter(|_| runs) {
            // They may all have ended.
            let _ = kill_process_group(group, Signal::HUP);
        }
        runs
    }
}

/// Tells how the command ended, once its output has: a process in its background may write after it, as with ssh.
fn conclude(outputs: [JoinHandle<()>; 2], running: &Running, writer: &FrameWriter) {
    for output in outputs {
        // A panic was reported.
        let _ = output.join();
    }
    let Some(status) = running.wait() else { return };
    // Without a connection, nobody asks.
    let _ = writer.send(CommandFrame::Exited(exit_of(status)));
}

fn exit_of(status: ExitStatus) -> CommandExit {
    match (status.code(), status.signal()) {
        (Some(code), _) => CommandExit::Code(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, signal) => {
            CommandExit::Signal(signal.and_then(|signal| u8::try_from(signal).ok()).unwrap_or(u8::MAX >> 1))
        }
    }
}

/// Takes what the caller says, and hands the input to the command. A caller that misbehaves loses the connection.
fn feed(stream: &BondedStream, early: &[u8], stdin: Option<ChildStdin>, writer: &FrameWriter) {
    let mut input = Input { reader: CommandReader::accepting(), stdin, writer };
    let (mut block, mut taken) = (vec![0; BLOCK], input.take(early));
    while taken.is_ok() {
        match stream.recv(&mut block) {
            // The connection ends, which the first thread sees.
            Ok(0) | Err(_) => return,
            Ok(len) => taken = input.take(&block[..len]),
        }
    }
    if let Err(error) = taken {
        let _ = writer.send_raw(&refusal_of(&error));
        stream.abort();
    }
}

struct Input<'a> {
    reader: CommandReader,
    stdin: Option<ChildStdin>,
    writer: &'a FrameWriter,
}

impl Input<'_> {
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), SessionError> {
        while let Some(event) = self.reader.next(&mut bytes)? {
            match event {
                CommandEvent::Bytes(_, bytes) => {
                    let Some(stdin) = &mut self.stdin else { continue };
                    if stdin.write_all(bytes).is_err() {
                        // The command has closed it. What is in flight is for nobody.
                        self.stdin = None;
                        let _ = self.writer.send(CommandFrame::Closed(StandardStream::Input));
                    }
                }
                CommandEvent::Ended(_) => self.stdin = None,
                CommandEvent::Closed(output) => {
                    // The command learns of it with its next write.
                    self.writer.stop(output);
                    let _ = self.writer.end(output);
                }
                CommandEvent::Accepted | CommandEvent::Exited(_) => {}
            }
        }
        Ok(())
    }
}
