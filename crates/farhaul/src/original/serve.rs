//! Serving clients: one thread for each session, and a bound on their number.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use farhaul_udp::{Interest, Token, Waiter};

use super::{Failure, Stop};

/// How long a client may ask for nothing. People sit at the original's prompt, but a place must not be lost for ever.
pub(super) const IDLE: Duration = Duration::from_secs(300);
/// Pause after the system refused a connection, for instance for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A TCP port that listens.
#[derive(Debug)]
pub struct Port {
    pub(super) listener: TcpListener,
    address: SocketAddr,
}

impl Port {
    /// Opens the port. 0 lets the system choose. `[::]` takes IPv4 as well.
    ///
    /// # Errors
    /// The address is in use, or is none of this machine.
    pub fn bind(address: SocketAddr) -> Result<Self, Failure> {
        let bind = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        };
        let (address, listener) = bind().map_err(|source| Failure::Bind { transport: "TCP", address, source })?;
        Ok(Self { listener, address })
    }

    /// The address, with the port chosen by the system.
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Waits for a connection. Returns `None` if none is there after all.
    pub(super) fn accept(&self, waiter: &mut Waiter) -> Result<Option<(TcpStream, SocketAddr)>, Failure> {
        waiter.wait(None)?;
        match self.listener.accept() {
            Ok(accepted) => Ok(Some(accepted)),
            Err(error) => {
                let none = matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
                );
                if !none {
                    // Without a descriptor for it, the connection would end every wait at once.
                    Waiter::new().and_then(|mut pause| pause.wait(Some(PAUSE)).map(|_| ()))?;
                }
                Ok(None)
            }
        }
    }

    pub(super) fn watched(&self) -> Result<Waiter, Failure> {
        let waiter = Waiter::new()?;
        waiter.watch(&self.listener, Token(0), Interest::Readable)?;
        Ok(waiter)
    }
}

/// A file that a server has given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Its name, as the client asked for it.
    pub name: Vec<u8>,
    /// Its bytes.
    pub size: u64,
    /// Datagrams, repetitions included.
    pub sent: u64,
    /// Datagrams that were repeated.
    pub retransmitted: u64,
    /// From the grant to the client's stop or last report.
    pub time: Duration,
}

/// An event of a server. Sessions are numbered from 1.
#[derive(Debug)]
#[non_exhaustive]
pub enum News<'a> {
    /// A session has begun.
    Begun,
    /// No place is free for this client.
    Busy,
    /// The client asked for a file that is not given.
    Refused {
        /// Its name.
        name: &'a [u8],
        /// The reason.
        why: &'a Failure,
    },
    /// A file was given. Whether the client has all of it, only the client knows.
    Given(&'a Given),
    /// The session is over.
    Over(&'a Result<(), Failure>),
}

/// Hears the news of a server, on the threads of its sessions.
pub trait Watch: Sync {
    /// News of a session, which is 0 for a client without a place.
    fn hear(&self, session: u64, peer: SocketAddr, news: News<'_>);
}

/// Accepts until a stop, with at most `most` sessions at a time.
pub(super) fn accept_all(
    port: &Port,
    most: usize,
    stop: &Stop,
    watch: &dyn Watch,
    session: impl Fn(u64, TcpStream, SocketAddr) -> Result<(), Failure> + Sync,
) -> Result<(), Failure> {
    let mut waiter = port.watched()?;
    let _woken = stop.wakes(waiter.waker());
    let (running, session) = (&AtomicUsize::new(0), &session);
    thread::scope(|scope| {
        for number in 1.. {
            let (stream, peer) = loop {
                if stop.is_stopped() {
                    return Err(Failure::Stopped);
                }
                match port.accept(&mut waiter)? {
                    Some((_, peer)) if running.load(Ordering::Acquire) >= most => watch.hear(0, peer, News::Busy),
                    Some(accepted) => break accepted,
                    None => {}
                }
            };
            running.fetch_add(1, Ordering::AcqRel);
            let begun = thread::Builder::new().name("original".into()).spawn_scoped(scope, move || {
                let _place = Taken(running);
                watch.hear(number, peer, News::Begun);
                let result = session(number, stream, peer);
                watch.hear(number, peer, News::Over(&result));
            });
            if begun.is_err() {
                running.fetch_sub(1, Ordering::AcqRel);
                watch.hear(0, peer, News::Busy);
            }
        }
        Ok(())
    })
}

/// A place that is free again after the session, even if its thread panics.
struct Taken<'a>(&'a AtomicUsize);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
