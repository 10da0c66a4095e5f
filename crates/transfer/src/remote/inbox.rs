//! Messages of a remote program that wait for the thread that takes them.
//!
//! Few messages wait. A remote program that says more waits in the pipe of ssh, as it does for a slow terminal, so whatever it
//! says costs this side no memory.

use std::process::ChildStdout;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::frames::Silence;
use super::messages::{FromRemote, Ready};

/// Messages that wait. Apart from its records, which this side takes as they come, a remote program has its account to tell, a failure, and
/// that UDP is blocked.
const WAITING: usize = 4;

/// What came from the remote program.
#[derive(Debug)]
pub(super) enum Heard {
    Message(FromRemote),
    /// The shell there runs: the login is done.
    Shell,
    /// The program is ready.
    Ready(Box<Begun>),
}

/// A program that is ready. Frames of a mux follow.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) ready: Ready,
    pub(super) stdout: ChildStdout,
    /// Bytes that were read already.
    pub(super) first: Vec<u8>,
    /// Takes the messages from now on.
    pub(super) feed: Feed,
}

/// Why nothing was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Nothing {
    /// Not yet.
    Yet,
    /// No more comes.
    More(Silence),
}

/// Both ends of an empty inbox.
pub(super) fn inbox() -> (Feed, Inbox) {
    let ((say, heard), silence) = (sync_channel(WAITING), Arc::<OnceLock<Silence>>::default());
    (Feed { say, silence: Arc::clone(&silence) }, Inbox { heard, silence })
}

/// The end of the thread that reads.
#[derive(Debug)]
pub(super) struct Feed {
    say: SyncSender<Heard>,
    silence: Arc<OnceLock<Silence>>,
}

/// Nobody takes messages any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unheard;

impl Feed {
    /// Waits until there is room. The drop of the inbox ends the wait.
    pub(super) fn put(&self, heard: Heard) -> Result<(), Unheard> {
        self.say.send(heard).map_err(|_| Unheard)
    }

    /// Hands the rest of the output over, with this end of the inbox.
    pub(super) fn hand_over(self, ready: Ready, stdout: ChildStdout, first: Vec<u8>) {
        let say = self.say.clone();
        // Nobody hears it at the end of the copy.
        let _ = say.send(Heard::Ready(Box::new(Begun { ready, stdout, first, feed: self })));
    }

    /// No more comes. Never waits.
    pub(super) fn end(self, silence: Silence) {
        let _ = self.silence.set(silence);
    }
}

/// The end of the thread that takes.
#[derive(Debug)]
pub(super) struct Inbox {
    heard: Receiver<Heard>,
    silence: Arc<OnceLock<Silence>>,
}

impl Inbox {
    /// The next one, in the order in which they came.
    pub(super) fn take(&self) -> Result<Heard, Nothing> {
        self.heard.recv().map_err(|_| self.no_more())
    }

    /// The same, within this time.
    pub(super) fn take_within(&self, patience: Duration) -> Result<Heard, Nothing> {
        self.heard.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => Nothing::Yet,
            RecvTimeoutError::Disconnected => self.no_more(),
        })
    }

    fn no_more(&self) -> Nothing {
        Nothing::More(self.silence.get().cloned().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::remote::messages::Failed;

    fn message(number: usize) -> FromRemote {
        FromRemote::Failed(Failed { code: "FAILED".into(), message: number.to_string() })
    }

    fn text(heard: Result<Heard, Nothing>) -> String {
        match heard {
            Ok(Heard::Message(FromRemote::Failed(failed))) => failed.message,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_remote_program_that_says_more_than_is_taken_waits() {
        let (feed, inbox) = inbox();
        for number in 0..WAITING {
            feed.put(Heard::Message(message(number))).unwrap();
        }
        assert!(feed.say.try_send(Heard::Shell).is_err(), "no more fits");
        thread::scope(|scope| {
            let rest = scope.spawn(move || {
                let all = (WAITING..100).try_for_each(|number| feed.put(Heard::Message(message(number))));
                feed.end(Silence { words: "bye".into(), ..Silence::default() });
                all
            });
            for number in 0..100 {
                assert_eq!(text(inbox.take()), number.to_string(), "none is lost, and their order stays");
            }
            assert_eq!(rest.join().unwrap(), Ok(()));
        });
        let silence = Silence { words: "bye".into(), ..Silence::default() };
        assert_eq!(inbox.take().unwrap_err(), Nothing::More(silence));
    }

    #[test]
    fn the_end_of_the_taker_ends_the_wait_of_a_remote_program() {
        let (feed, inbox) = inbox();
        thread::scope(|scope| {
            let endless = scope.spawn(move || (0..).find_map(|number| feed.put(Heard::Message(message(number))).err()));
            drop(inbox);
            assert_eq!(endless.join().unwrap(), Some(Unheard));
        });
    }
}
