//! Signals: the first SIGINT or SIGTERM stops cleanly, a later one at once. SIGUSR1 prints the state.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use farhaul_transfer::Cancellation;
use farhaul_udp::Clock;
use farhaul_units::Instant;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGXCPU, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::exit::{Code, Fault};
use crate::privileges;
use crate::sys::SignalQueue;

/// The signals that stop this program.
const STOPPING: [i32; 2] = [SIGINT, SIGTERM];

/// Time after the first signal in which another one says nothing new. `timeout` and service managers signal the program and then
/// its process group. Nobody becomes impatient so soon.
const SAME_REQUEST: Duration = Duration::from_millis(500);

/// Reactions to signals. Clones share everything.
#[derive(Clone, Default)]
pub(crate) struct Interrupt {
    shared: Arc<Shared>,
}

/// How a verb needs its reaction to signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AtSignals {
    /// It may start other programs, which inherit blocked signals.
    pub(crate) starts_children: bool,
    /// Its threads give up all capabilities.
    pub(crate) gives_up_capabilities: bool,
}

/// A replacement for this program's reaction to a signal.
type Heir = Box<dyn Fn(i32) + Send>;

#[derive(Default)]
struct Shared {
    /// The signal that stopped the program; zero for none.
    signal: AtomicI32,
    /// Counts from it.
    since: OnceLock<Clock>,
    /// The queue of signals to stop, unless handlers react to them.
    queue: Option<SignalQueue>,
    /// True once a signal to stop was taken from the queue. Taking and noting one is a single step under this lock.
    taken: Mutex<bool>,
    /// Cancels what the program does.
    cancellation: Cancellation,
    state: Mutex<Option<Box<dyn Fn() + Send>>>,
    /// Receives the signals instead of this program.
    heir: Mutex<Option<Heir>>,
}

impl Interrupt {
    /// Reacts to signals from now on, on threads of its own. Call it while the program has a single thread.
    ///
    /// A program that starts children reacts by handlers, because children inherit blocked signals.
    ///
    /// # Errors
    /// The system refused a thread, a handler or the queue of signals.
    pub(crate) fn install(AtSignals { starts_children, gives_up_capabilities }: AtSignals) -> io::Result<Self> {
        let begin = move || {
            if gives_up_capabilities {
                // The main thread tries the same, and reports it.
                let _ = privileges::give_up_capabilities();
            }
        };
        // With a handler, a write beyond the limit of file sizes fails like any other. A handler ends with exec, and so leaves
        // children the default.
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        let queue = if starts_children { None } else { Some(SignalQueue::open(&STOPPING)?) };
        let interrupt = Self { shared: Arc::new(Shared { queue, ..Shared::default() }) };
        let its = interrupt.clone();
        interrupt.shared.cancellation.foresee(move || its.is_pending());
        let by_handler: &[i32] =
            if starts_children { &[SIGINT, SIGTERM, SIGUSR1, SIGXCPU] } else { &[SIGUSR1, SIGXCPU] };
        let mut signals = Signals::new(by_handler)?;
        let (beginning, begun) = channel::<()>();
        let (its, its_beginning) = (interrupt.clone(), beginning.clone());
        thread::Builder::new().name("signals".into()).spawn(move || {
            begin();
            drop(its_beginning);
            signals.forever().for_each(|signal| its.on_signal(signal));
        })?;
        if !starts_children {
            let (its, its_beginning) = (interrupt.clone(), beginning.clone());
            thread::Builder::new().name("stop".into()).spawn(move || {
                begin();
                drop(its_beginning);
                its.take_signals();
            })?;
        }
        drop(beginning);
        // Nobody sends anything: this ends once no thread has its capabilities any more.
        let _ = begun.recv();
        Ok(interrupt)
    }

    /// Reacts to the signals of the queue without end.
    fn take_signals(&self) {
        let Some(queue) = &self.shared.queue else { return };
        loop {
            queue.wait();
            let signal = {
                let mut taken = locked(&self.shared.taken);
                let signal = queue.take();
                *taken |= signal.is_some();
                signal
            };
            if let Some(signal) = signal {
                self.on_signal(signal);
            }
        }
    }

    /// What a signal to stop cancels.
    pub(crate) fn cancellation(&self) -> Cancellation {
        self.shared.cancellation.clone()
    }

    /// Calls `what` on a signal to stop, or at once if one has come.
    pub(crate) fn on_stop(&self, what: impl Fn() + Send + 'static) {
        self.shared.cancellation.on_cancel(what);
    }

    /// Stops the program at the end of its terminal as well, unless whoever started it had that ignored (nohup). For servers
    /// that have nothing to read again: the default would end them without a word to their clients.
    ///
    /// # Errors
    /// The system refused a thread or a handler.
    pub(crate) fn stops_at_hangup(&self) -> io::Result<()> {
        if ignored(SIGHUP) {
            return Ok(());
        }
        let (its, mut signals) = (self.clone(), Signals::new([SIGHUP])?);
        let thread = thread::Builder::new().name("hangup".into());
        thread.spawn(move || signals.forever().for_each(|signal| its.on_signal(signal))).map(drop)
    }

    /// Calls `state` on SIGUSR1 from now on.
    pub(crate) fn shows(&self, state: impl Fn() + Send + 'static) {
        *locked(&self.shared.state) = Some(Box::new(state));
    }

    /// Passes SIGINT and SIGTERM to `what` from now on, and survives them: they are meant for a child.
    ///
    /// # Errors
    /// The fault of a signal that came before, and was meant for this program.
    pub(crate) fn passes_on(&self, what: impl Fn(i32) + Send + 'static) -> Result<(), Fault> {
        // A terminal sends SIGQUIT too. An empty handler keeps it from ending this program.
        let _ = signal_hook::flag::register(SIGQUIT, Arc::default());
        let mut heir = locked(&self.shared.heir);
        if let Some(fault) = self.fault() {
            return Err(fault);
        }
        *heir = Some(Box::new(what));
        Ok(())
    }

    /// A flag that is true once a signal has asked to stop.
    pub(crate) fn stopping(&self) -> Arc<AtomicBool> {
        self.shared.cancellation.flag()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.shared.cancellation.is_cancelled()
    }

    /// Whether a signal to stop has been sent, even if this program has not reacted to it yet.
    pub(crate) fn is_asked_to_stop(&self) -> bool {
        self.shared.cancellation.is_requested()
    }

    /// Whether a signal waits in the queue, or was taken from it.
    fn is_pending(&self) -> bool {
        // Under the lock, a signal is in the queue or noted, and never between.
        let taken = locked(&self.shared.taken);
        *taken || self.shared.queue.as_ref().is_some_and(SignalQueue::is_pending)
    }

    /// The fault of a program that a signal stopped, or that lost ssh, which started it.
    pub(crate) fn fault(&self) -> Option<Fault> {
        match self.shared.signal.load(Ordering::Acquire) {
            0 => self.shared.cancellation.reason(),
            signal => Some(fault_of(signal)),
        }
    }

    fn on_signal(&self, signal: i32) {
        if signal == SIGUSR1 {
            if let Some(state) = &*locked(&self.shared.state) {
                state();
            }
            return;
        }
        // Under the lock, a signal is noted or passed on, and never both or neither.
        let heir = locked(&self.shared.heir);
        if let Some(heir) = &*heir {
            if signal == SIGTERM {
                self.shared.signal.store(signal, Ordering::Release);
            }
            heir(signal);
            return;
        }
        // The system repeats this one every second, and nobody has become impatient.
        if signal == SIGXCPU && self.is_stopping() {
            return;
        }
        let since = self.shared.since.get_or_init(Clock::start);
        if self.shared.signal.compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire).is_err() {
            if since.now() - Instant::ZERO >= SAME_REQUEST {
                std::process::exit(128 + signal);
            }
            return;
        }
        drop(heir);
        self.shared.cancellation.cancel_because(fault_of(signal));
    }
}

/// The fault of a program that this signal stopped.
fn fault_of(signal: i32) -> Fault {
    match signal {
        SIGTERM => Fault::new(Code::Terminated, "stopped by SIGTERM"),
        SIGHUP => Fault::new(Code::HungUp, "stopped by SIGHUP: its terminal has ended"),
        SIGXCPU => Fault::new(Code::Terminated, "its limit of processor time is used up (ulimit -t)"),
        _ => Fault::new(Code::Interrupted, "interrupted"),
    }
}

/// Whether this program was started with a signal ignored (proc_pid_status(5)).
fn ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// The content, even after a panic: a list or an optional closure is always consistent.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_signal_is_passed_on_once_somebody_takes_them_and_one_from_before_is_a_fault() {
        let (interrupt, (passed, taken)) = (Interrupt::default(), channel());
        interrupt.passes_on(move |signal| passed.send(signal).unwrap()).unwrap();
        interrupt.on_signal(SIGINT);
        assert_eq!(taken.recv(), Ok(SIGINT));
        assert!(interrupt.fault().is_none() && !interrupt.is_stopping());
        let interrupt = Interrupt::default();
        interrupt.on_signal(SIGINT);
        assert_eq!(interrupt.passes_on(drop).unwrap_err().code, Code::Interrupted);
        assert!(interrupt.is_stopping());
    }
}
