//! Signals: the first SIGINT or SIGTERM stops cleanly, the second at once; SIGUSR1 asks for the state.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use farhaul::Canceller;
use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::exit::{Code, Fault};
use crate::sys;

/// What is to happen on a signal. Clones share everything.
#[derive(Clone, Default)]
pub(crate) struct Interrupt {
    shared: Arc<Shared>,
}

/// What somebody else does with the number of a signal; whether it came before there was an heir.
type Heir = Box<dyn Fn(i32, bool) + Send>;

#[derive(Default)]
struct Shared {
    /// The signal that asked to stop; zero for none.
    signal: AtomicI32,
    /// True from the moment in which a signal handler ran.
    handled: Arc<AtomicBool>,
    /// True once somebody asked to stop, for loops that look at a flag.
    stopping: Arc<AtomicBool>,
    on_stop: Mutex<Vec<Box<dyn Fn() + Send>>>,
    state: Mutex<Option<Box<dyn Fn() + Send>>>,
    /// Who gets the signals in place of this program.
    heir: Mutex<Option<Heir>>,
}

impl Interrupt {
    /// Begins to listen for signals, on a thread of its own.
    pub(crate) fn install() -> io::Result<Self> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&interrupt.shared.handled))?;
        }
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGUSR1])?;
        let its = interrupt.clone();
        thread::Builder::new()
            .name("signals".into())
            .spawn(move || signals.forever().for_each(|s| its.on_signal(s)))?;
        Ok(interrupt)
    }

    /// Ends the calls behind `canceller` when a signal asks to stop, or at once if one did.
    pub(crate) fn cancels(&self, canceller: Canceller) {
        self.on_stop(move || canceller.cancel());
    }

    /// Does `what` when a signal asks to stop, or at once if one did.
    pub(crate) fn on_stop(&self, what: impl Fn() + Send + 'static) {
        let mut all = locked(&self.shared.on_stop);
        if self.is_stopping() {
            what();
        }
        all.push(Box::new(what));
    }

    /// What SIGUSR1 does from now on.
    pub(crate) fn shows(&self, state: impl Fn() + Send + 'static) {
        *locked(&self.shared.state) = Some(Box::new(state));
    }

    /// From now on this program survives signals, and `what` does something about SIGINT and SIGTERM: somebody else is meant by
    /// them. If one has come already, `what` gets it, and learns that.
    pub(crate) fn passes_on(&self, what: impl Fn(i32, bool) + Send + 'static) {
        // A terminal sends this one too; without anything to do it is only no longer deadly.
        let _ = signal_hook::flag::register(SIGQUIT, Arc::default());
        let mut heir = locked(&self.shared.heir);
        match self.shared.signal.load(Ordering::Acquire) {
            0 => {}
            signal => what(signal, true),
        }
        *heir = Some(Box::new(what));
    }

    /// True once a signal asked to stop.
    pub(crate) fn stopping(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.shared.stopping)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Acquire)
    }

    /// Whether a signal to stop has been sent, even if nothing has been done about it yet.
    ///
    /// Ctrl-C reaches all programs of a pipeline at once. Those that end before this one end its input, and that may be seen
    /// earlier than the signal is.
    pub(crate) fn is_asked_to_stop(&self) -> bool {
        // In this order: what is pending no more has been handled, or will be at once.
        sys::is_pending(&[SIGINT, SIGTERM]) || self.shared.handled.load(Ordering::Acquire) || self.is_stopping()
    }

    /// How the program ends if a signal stopped it.
    pub(crate) fn fault(&self) -> Option<Fault> {
        match self.shared.signal.load(Ordering::Acquire) {
            0 => None,
            SIGTERM => Some(Fault::new(Code::Terminated, "stopped by SIGTERM")),
            _ => Some(Fault::new(Code::Interrupted, "interrupted")),
        }
    }

    fn on_signal(&self, signal: i32) {
        if signal == SIGUSR1 {
            if let Some(state) = &*locked(&self.shared.state) {
                state();
            }
            return;
        }
        if let Some(heir) = &*locked(&self.shared.heir) {
            if signal == SIGTERM {
                self.shared.signal.store(signal, Ordering::Release);
            }
            heir(signal, false);
            return;
        }
        if self.shared.signal.swap(signal, Ordering::AcqRel) != 0 {
            std::process::exit(128 + signal);
        }
        self.shared.stopping.store(true, Ordering::Release);
        locked(&self.shared.on_stop).iter().for_each(|what| what());
    }
}

/// The content, whoever panicked with it: it is a list or an optional closure, always whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
