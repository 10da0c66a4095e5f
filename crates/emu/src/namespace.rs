//! Unnamed namespaces. They live only as long as they are held open, so nothing is left behind.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::resume_unwind;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, waitpid};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::sys;

/// How long to wait for all processes to end before that goes on in the background.
const PATIENCE: Duration = Duration::from_millis(200);

/// A separate network: interfaces, addresses, routes, ports.
#[derive(Debug)]
pub(crate) struct NetworkNamespace(OwnedFd);

impl NetworkNamespace {
    /// Makes a namespace and runs `furnish` inside.
    pub(crate) fn new<T: Send>(furnish: impl FnOnce() -> io::Result<T> + Send) -> io::Result<(Self, T)> {
        in_a_thread(|| {
            sys::leave_network()?;
            let namespace = handle("net")?;
            Ok((Self(namespace), furnish()?))
        })
    }

    /// Runs `work` inside, in its own thread. Processes that it starts and files that it opens stay inside.
    pub(crate) fn enter<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        in_a_thread(|| {
            move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        })
    }
}

/// A process namespace. All its processes end when this value is dropped or the process that holds it ends.
#[derive(Debug)]
pub(crate) struct ProcessNamespace {
    namespace: OwnedFd,
    /// Its first process, which lives as long as `alive` is open.
    init: Pid,
    alive: Option<OwnedFd>,
}

impl ProcessNamespace {
    pub(crate) fn new() -> io::Result<Self> {
        let (until, alive) = pipe_with(PipeFlags::CLOEXEC)?;
        in_a_thread(|| {
            sys::leave_processes()?;
            let init = sys::spawn_init(until.as_fd(), alive.as_fd())?;
            let namespace = handle("pid_for_children")?;
            Ok(Self { namespace, init, alive: Some(alive) })
        })
    }

    /// Moves processes that the calling thread starts from now on into the namespace.
    pub(crate) fn adopt_children(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.namespace.as_fd(), Some(LinkNameSpaceType::ProcessID))?)
    }
}

impl Drop for ProcessNamespace {
    fn drop(&mut self) {
        self.alive = None;
        // The init process ends all others and then waits until they are reaped. Children that this program never
        // waited for are reaped only when it ends, so the wait is bounded.
        let (init, (ended, wait)) = (self.init, sync_channel(1));
        thread::spawn(move || {
            let _ = waitpid(Some(init), WaitOptions::empty());
            let _ = ended.send(());
        });
        let _ = wait.recv_timeout(PATIENCE);
    }
}

/// The calling thread's namespace of the given kind.
fn handle(kind: &str) -> io::Result<OwnedFd> {
    let path = format!("/proc/thread-self/ns/{kind}");
    Ok(open(path.as_str(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Runs `work` in a temporary thread. Namespaces belong to threads, so no other thread is affected.
fn in_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => resume_unwind(panic),
    })
}
