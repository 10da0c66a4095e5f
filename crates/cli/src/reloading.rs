//! The thread that reads files again on SIGHUP. It starts before a server confines its other threads, since these have no business
//! with the files.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;

use crate::exit::{Code, Fault};

/// Survives SIGHUP from now on, without a reaction.
///
/// # Errors
/// The system refused a handler.
pub(crate) fn survive() -> io::Result<()> {
    signal_hook::flag::register(SIGHUP, Arc::default()).map(drop)
}

/// A reaction to SIGHUP.
type Reaction = Box<dyn Fn() + Send>;

/// A thread that waits for its reaction to SIGHUP.
pub(crate) struct Reloading {
    reaction: SyncSender<Reaction>,
}

impl Reloading {
    /// Starts the thread, which calls `prepare` first. From now on SIGHUP does not end the program, and waits for its reaction.
    ///
    /// # Errors
    /// That of `prepare`. The system refused a thread or a handler.
    pub(crate) fn start(prepare: impl FnOnce() -> Result<(), Fault> + Send + 'static) -> Result<Self, Fault> {
        let mut signals = Signals::new([SIGHUP])?;
        let (reaction, reactions) = sync_channel::<Reaction>(1);
        let (done, prepared) = sync_channel(1);
        thread::Builder::new().name("reload".into()).spawn(move || {
            // The other thread waits for the result.
            let _ = done.send(prepare());
            if let Ok(what) = reactions.recv() {
                signals.forever().for_each(|_| what());
            }
        })?;
        let died = || Fault::new(Code::Failed, "the thread that reads files again has ended");
        prepared.recv().map_err(|_| died())??;
        Ok(Self { reaction })
    }

    /// Calls `what` on SIGHUP, also for one that has come already.
    pub(crate) fn react(&self, what: impl Fn() + Send + 'static) {
        // The thread ends with the program alone.
        let _ = self.reaction.send(Box::new(what));
    }
}
