//! The remote program as a child process of this one, through ssh.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use farhaul_bond::mux::{Gone, Mux, MuxStream};

use super::frames::{FrameError, Frames, Silence, decode_body, encode, encode_body};
use super::inbox::{Begun, Feed, Heard, Inbox, Nothing, Unheard, inbox};
use super::install;
use super::messages::{Failed, FromRemote, Hello, OpeningText, Ready, ToRemote};
use super::process::{LONGEST_END, LOOK, end, wait_within, widen};
use super::refusal::Refusal;
use super::ssh::Ssh;
use super::ssh_monitor::SshMonitor;
use super::words::Words;
use crate::environment::Environment;
use crate::error::{Code, Error};
use crate::text::reason;
use crate::throttle::Change;

/// The next step where a copy of this program would help.
const INSTALL: &str = "or repeat the command with ‹install›, which copies this program there";
/// Bytes per read.
const BLOCK: usize = 64 << 10;
/// Time for the last words of the remote program after the end of its connection. They take another path.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Most other messages before the last words: records that were in flight, one each 0.5 s.
const MOST_BEFORE_LAST: usize = 16;

/// Time for the first message of the remote program once its shell runs. Its first packets follow at once, and 15 s are enough for a
/// program on a slow disk of a busy host.
const ANSWER: Duration = Duration::from_secs(15);
/// Slowest path for the small files of the first message, bytes per second: an old modem.
const SLOWEST: u64 = 1_000;
/// Number of looks at ssh after its last output: a second together.
const LOOKS: usize = 100;

/// Whether the end of an SSH connection told the other program that everything is over.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// The end of the SSH connection has told this program that everything is over.
pub(crate) fn ssh_tells_the_end() {
    HAS_ENDED.store(true, Ordering::Release);
}

/// Whether the peer knows of the end by ssh, so that nobody need wait for its connection to close.
pub fn peer_knows_of_the_end() -> bool {
    HAS_ENDED.load(Ordering::Acquire)
}

/// The program on the remote host.
#[derive(Debug)]
pub(crate) struct RemoteProgram {
    host: String,
    child: Arc<Mutex<Child>>,
    mux: RemoteMux,
    /// Gives stdin back once the program has taken the first message.
    greeting: Receiver<ChildStdin>,
    /// Bytes of the stream in that message.
    opening: usize,
    inbox: Inbox,
    last_words: Option<Failed>,
    monitor: SshMonitor,
    /// Whether the copy goes on when ssh ends.
    is_detached: bool,
    /// Whether the copy may have begun.
    is_ready: bool,
    /// Whether it knows [`ToRemote::Throttle`].
    throttles: bool,
    words: Option<Words>,
}

/// The multiplexed pipes to a remote program, once it is ready. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct RemoteMux(Arc<OnceLock<Mux>>);

impl RemoteProgram {
    /// Starts the program on `host`, and says what this side wants. If it is missing there, installs it if `options` have one, or
    /// else `offers_install` decides whether the error says how.
    pub(crate) fn start(
        (options, offers_install): (&Ssh, bool),
        host: &str,
        hello: &Hello,
        environment: &Environment,
    ) -> Result<(Self, Ready), Error> {
        let started = Self::spawn(options, host, hello, environment).and_then(|mut far| match far.ready(options) {
            Ok(ready) => Ok((far, ready)),
            Err(refusal) if refusal.is_mendable && options.install.is_some() => {
                drop(far);
                install::install(options, host, environment)?;
                let mut far = Self::spawn(options, host, hello, environment)?;
                let ready = far.ready(options).map_err(|refusal| refusal.fault)?;
                Ok((far, ready))
            }
            Err(refusal) if refusal.is_mendable && offers_install => Err(refusal.fault.and(INSTALL)),
            Err(refusal) => Err(refusal.fault),
        });
        started.map_err(|fault| environment.cancellation.reason_soon().unwrap_or(fault))
    }

    fn spawn(options: &Ssh, host: &str, hello: &Hello, environment: &Environment) -> Result<Self, Error> {
        let mut command = options.command(host, Some(&options.bootstrap()))?;
        let mut child = command.spawn().map_err(|error| {
            let (program, why) = (command.get_program().display(), reason(&error));
            Error::new(
                Code::SshFailed,
                format!("cannot start {program}: {why}; install OpenSSH, or name another with ‹ssh›"),
            )
        })?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let child = Arc::new(Mutex::new(child));
        let words = stderr.map(|stderr| Words::show(stderr, &environment.events)).transpose()?;
        let (feed, inbox) = inbox();
        let (monitor, its) = (SshMonitor::of(Arc::clone(&child)), Arc::clone(&child));
        let ending = monitor.clone();
        let is_detached = hello.detach;
        let greeting = greet(stdin, hello).inspect_err(|_| end(&child))?;
        let mux = RemoteMux::default();
        let far = Self {
            host: host.to_owned(),
            child: its,
            mux: mux.clone(),
            greeting,
            opening: hello.opening.as_ref().and_then(OpeningText::bytes).map_or(0, |opening| opening.len()),
            inbox,
            last_words: None,
            monitor,
            is_detached,
            is_ready: false,
            throttles: false,
            words,
        };
        // The program to end may be a script that started ssh, and then ssh learns of it by the end of its input.
        environment.cancellation.on_cancel(move || {
            mux.hang_up();
            end(&child);
        });
        if let Some(stdout) = stdout {
            thread::Builder::new().name("far".into()).spawn(move || {
                if listen(stdout, feed) {
                    ending.output_ended();
                }
            })?;
        }
        Ok(far)
    }

    /// Waits until the program is ready.
    fn ready(&mut self, options: &Ssh) -> Result<Ready, Refusal> {
        let is_default = !options.names_program();
        // It is ready once the whole first message is there.
        let answer = ANSWER + Duration::from_secs(self.opening as u64 / SLOWEST);
        // Logging in takes the time of a person, and ssh has its own limits.
        let first = match self.inbox.take() {
            Ok(Heard::Shell) => self.inbox.take_within(answer),
            first => first,
        };
        match first {
            Err(Nothing::Yet) => Err(Refusal::of_silence(answer, &self.host, options)),
            Ok(Heard::Ready(begun)) => match self.greeting.recv_timeout(ANSWER) {
                Ok(stdin) => self.begin(*begun, stdin).map_err(|fault| Refusal { fault, is_mendable: false }),
                // It answers what it has not read.
                Err(_) => Err(Refusal { fault: self.misbehaved(), is_mendable: is_default }),
            },
            Ok(Heard::Message(FromRemote::Failed(failed))) => {
                let fault = failed.error(&self.host);
                Err(Refusal { is_mendable: is_default && fault.code == Code::Protocol, fault })
            }
            Err(Nothing::More(Silence { error: Some(FrameError::Noise), has_shell: false, .. })) => {
                Err(Refusal::of_noise(&self.host))
            }
            Err(Nothing::More(silence)) if silence.error.is_none() => {
                let status = wait_within(&self.child, LAST_WORDS);
                // Its words stand above the error.
                if let Some(words) = &self.words {
                    words.wait();
                }
                Err(Refusal::of(&silence, status.and_then(|status| status.code()), &self.host, options))
            }
            _ => Err(Refusal { fault: self.misbehaved(), is_mendable: is_default }),
        }
    }

    /// The program has begun. From now on, messages and a stream go both ways.
    fn begin(&mut self, Begun { ready, stdout, first, feed }: Begun, stdin: ChildStdin) -> Result<Ready, Error> {
        widen(&stdin);
        widen(&stdout);
        let monitor = self.monitor.clone();
        let hear = move |message: &[u8]| {
            let message = decode_body(message).map_err(|_| Gone)?;
            feed.put(Heard::Message(message)).map_err(|Unheard| Gone)
        };
        let mux = Mux::begin((stdout, first), (stdin, self.opening), hear, move || monitor.output_ended())?;
        self.mux.begin(mux);
        (self.is_ready, self.throttles) = (true, ready.throttles);
        Ok(ready)
    }

    fn misbehaved(&self) -> Error {
        Error::new(
            Code::Protocol,
            format!("the program on {} speaks another version: update the older side", self.host),
        )
    }

    /// Says something to the program.
    pub(crate) fn send(&self, message: &ToRemote) -> Result<(), Error> {
        let lost = |_| Error::new(Code::PeerLost, format!("the SSH connection to {} is lost", self.host));
        self.mux.say(message).map_err(lost)
    }

    /// The stream through ssh, whose peer is lost once it was silent for so long.
    pub(crate) fn stream(&self, silence: Duration) -> Result<MuxStream, Error> {
        self.mux.0.get().map(|mux| mux.stream(silence)).ok_or_else(|| self.misbehaved())
    }

    /// Has the streams of two programs go to each other.
    pub(crate) fn tie(&self, other: &Self) -> Result<(), Error> {
        let (one, two) = self.mux.0.get().zip(other.mux.0.get()).ok_or_else(|| self.misbehaved())?;
        one.relay_to(two);
        two.relay_to(one);
        Ok(())
    }

    /// What tells the program of changes of a throttle, from another thread. `None` if it is too old for that.
    pub(crate) fn throttle(&self) -> Option<RemoteMux> {
        self.throttles.then(|| self.mux.clone())
    }

    /// The next message of the program; `None` at its end.
    pub(crate) fn next(&mut self) -> Option<FromRemote> {
        match self.inbox.take() {
            Ok(Heard::Message(message)) => Some(message),
            _ => None,
        }
    }

    /// The next message within this time; `None` at its end, too.
    pub(crate) fn next_within(&mut self, time: Duration) -> Option<FromRemote> {
        match self.inbox.take_within(time) {
            Ok(Heard::Message(message)) => Some(message),
            _ => None,
        }
    }

    /// Whether it ends with ssh.
    pub(crate) fn ends_with_ssh(&self) -> bool {
        !self.is_detached
    }

    /// Has the loss of ssh call `cancel`, unless the copy is detached.
    pub(crate) fn on_ssh_loss(&self, cancel: impl Fn() + Send + 'static) {
        if !self.is_detached {
            self.monitor.on_loss(Box::new(cancel));
        }
    }

    /// The fault of a copy that failed with `fault`: what the remote program said, or the end of ssh, explains more.
    pub(crate) fn explained(&mut self, fault: Error) -> Error {
        let is_unexplained = matches!(fault.code, Code::PeerLost | Code::Failed);
        // The connection and ssh end at about the same time.
        let mut patience = if is_unexplained && !self.is_detached { LAST_WORDS } else { Duration::ZERO };
        let mut has_ended = false;
        // A remote program that goes on with other messages is heard for twice that time.
        for _ in 0..MOST_BEFORE_LAST {
            if self.last_words.is_some() {
                break;
            }
            match self.inbox.take_within(patience) {
                Ok(Heard::Message(FromRemote::Failed(failed))) => self.last_words = Some(failed),
                Ok(Heard::Message(_) | Heard::Shell | Heard::Ready(_)) => patience /= 2,
                Err(Nothing::More(_)) => {
                    has_ended = true;
                    break;
                }
                Err(Nothing::Yet) => break,
            }
        }
        match &self.last_words {
            Some(failed) if fault.code == Code::PeerLost => failed.error(&self.host),
            None if is_unexplained && has_ended && !self.is_detached && self.lost_ssh() => Error::new(
                Code::SshFailed,
                format!(
                    "ssh to {} ended in the middle of the copy, which ends the copy on both hosts: {fault}",
                    self.host
                ),
            ),
            _ => fault,
        }
    }

    /// Whether ssh, from which nothing comes any more, is lost. It ends a moment after its output.
    fn lost_ssh(&self) -> bool {
        let looks = (0..LOOKS).find_map(|_| {
            let is_lost = self.monitor.has_lost_ssh();
            if is_lost.is_none() {
                thread::park_timeout(LOOK);
            }
            is_lost
        });
        looks.unwrap_or(false)
    }
}

impl Drop for RemoteProgram {
    /// The copy is over. Nobody waits for the round trip of a polite end.
    fn drop(&mut self) {
        self.monitor.copy_ended();
        // A detached program knows of the end by close packets.
        if self.is_ready && !self.is_detached {
            ssh_tells_the_end();
        }
        self.mux.hang_up();
        end(&self.child);
        if wait_within(&self.child, LONGEST_END).is_none() {
            let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
            // Nothing outlives a kill.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl RemoteMux {
    fn begin(&self, mux: Mux) {
        let _ = self.0.set(mux);
    }

    /// Has a program at `host` throttle its data.
    ///
    /// # Errors
    /// It cannot be told. The text is for the user.
    pub(crate) fn tell(&self, change: Change, host: &str) -> Result<(), String> {
        let message = ToRemote::Throttle(change.into());
        self.say(&message).map_err(|_| format!("the SSH connection to {host} is lost"))
    }

    fn say(&self, message: &ToRemote) -> Result<(), Gone> {
        self.0.get().ok_or(Gone)?.say(encode_body(message).as_bytes())
    }

    /// Closes the pipe to the program behind what was said.
    fn hang_up(&self) {
        if let Some(mux) = self.0.get() {
            mux.hang_up();
        }
    }
}

/// Says what this side wants, on a thread: the message may be longer than the pipes, and a program that does not read it must
/// not hold this side. The end of ssh ends the thread.
fn greet(stdin: Option<ChildStdin>, hello: &Hello) -> Result<Receiver<ChildStdin>, Error> {
    let (greeted, greeting) = sync_channel(1);
    let hello = encode(&ToRemote::Hello(hello.clone()));
    thread::Builder::new().name("greeting".into()).spawn(move || {
        let Some(mut stdin) = stdin else { return };
        // A failure shows in what is heard.
        if stdin.write_all(hello.as_bytes()).and_then(|()| stdin.flush()).is_ok() {
            let _ = greeted.send(stdin);
        }
    })?;
    Ok(greeting)
}

/// Takes messages from the program until its end, or until it is ready. Returns whether it is the end.
fn listen(mut stdout: ChildStdout, feed: Feed) -> bool {
    let (mut frames, mut block, mut error) = (Frames::behind_noise(), vec![0; BLOCK], None);
    'reading: loop {
        let len = match stdout.read(&mut block) {
            Ok(0) | Err(_) => break,
            Ok(len) => len,
        };
        let had_shell = frames.has_shell();
        if let Err(wrong) = frames.extend(&block[..len]) {
            error = Some(wrong);
            break;
        }
        if frames.has_shell() && !had_shell && feed.put(Heard::Shell).is_err() {
            return true;
        }
        loop {
            match frames.next::<FromRemote>() {
                Ok(Some(FromRemote::Ready(ready))) => {
                    feed.hand_over(ready, stdout, frames.into_rest());
                    return false;
                }
                Ok(Some(message)) => {
                    if feed.put(Heard::Message(message)).is_err() {
                        return true;
                    }
                }
                Ok(None) => break,
                Err(wrong) => {
                    error = Some(wrong);
                    break 'reading;
                }
            }
        }
    }
    feed.end(frames.into_silence(error));
    true
}
