//! The driver thread of a UDP port, and the handle whose drop ends it.

use std::net::{SocketAddr, UdpSocket as StdUdpSocket};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::Duration;

use farhaul_proto::{Channels, Streams};
use farhaul_udp::{Interest, Options, UdpSocket, Waiter};
use farhaul_units::Instant;

use super::channels::{ChannelPort, ChannelSockets, SOCKET, open_pair};
use super::closing::{LONGEST_PORT_CLOSE, once_closed};
use super::core::DriverThread;
use super::driver_role::DriverRole;
use super::guard::Shared;
use super::receive_state::pause;
use crate::error::Error;

/// A transport that runs on a UDP port. Its drop ends the driver thread after the connections are closed, without waiting for that.
pub(crate) struct Driver<T: Streams + Channels + Send + 'static> {
    pub(super) shared: Arc<Shared<T>>,
}

/// Where a port is: an address to open, or a socket that somebody has bound.
pub(crate) enum UdpPort {
    Address(SocketAddr),
    /// Its address, and the socket.
    Socket(SocketAddr, StdUdpSocket),
}

impl From<SocketAddr> for UdpPort {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

impl<T: Streams + Channels + Send + 'static> Driver<T> {
    /// Opens the UDP port at `address` and starts to drive `transport` on it. If the transport needs channels, they use
    /// the TCP port of the same number.
    ///
    /// # Errors
    /// The port cannot be opened, or the system refuses a thread.
    pub(crate) fn start(transport: T, port: impl Into<UdpPort>, options: Options) -> Result<Self, Error> {
        Self::start_with(transport, port.into(), options, LONGEST_PORT_CLOSE)
    }

    /// The same with a limit of the time that the thread outlives the last handle if peers cannot be told.
    pub(super) fn start_with(
        transport: T,
        port: impl Into<UdpPort>,
        options: Options,
        linger: Duration,
    ) -> Result<Self, Error> {
        let (address, mut opened) = match port.into() {
            UdpPort::Address(address) => (address, None),
            UdpPort::Socket(address, socket) => (address, Some(socket)),
        };
        let mut bind = |address| match opened.take() {
            Some(socket) => UdpSocket::adopt(socket, options),
            None => UdpSocket::bind(address, options),
        };
        let open = || match transport.needs_channels() {
            true => open_pair(address, &mut bind).map(|(socket, port)| (socket, Some(port))),
            false => bind(address).map(|socket| (socket, None)),
        };
        let (socket, channels) = once_closed(address, open).map_err(|source| Error::Bind { address, source })?;
        // Until somebody is to be answered. A system that refuses it costs a little time for each packet.
        let _ = socket.tell_destinations(false);
        let (ready, is_ready) = mpsc::sync_channel(1);
        thread::Builder::new()
            .name(format!("farhaul:{}", socket.local_addr().port()))
            .spawn(move || begin(transport, socket, channels, &ready, linger))
            .map_err(|source| Error::System { what: "a thread", source })?;
        let shared = is_ready.recv().map_err(|_| Error::DriverStopped)??;
        Ok(Self { shared })
    }
}

impl<T: Streams + Channels + Send + 'static> Deref for Driver<T> {
    type Target = Shared<T>;

    fn deref(&self) -> &Shared<T> {
        &self.shared
    }
}

impl<T: Streams + Channels + Send + 'static> Drop for Driver<T> {
    fn drop(&mut self) {
        let mut core = self.shared.core_even_if_poisoned();
        if core.thread != DriverThread::Gone {
            self.shared.begin_to_close();
            core.closing = true;
            drop(core);
            self.shared.role.end_lease();
            self.shared.waker.wake();
        }
    }
}

/// Wakes all waiters when the thread ends for any reason.
struct LastAct<'a, T: Streams + Channels>(&'a Shared<T>);

impl<T: Streams + Channels> Drop for LastAct<'_, T> {
    fn drop(&mut self) {
        let mut core = self.0.core_even_if_poisoned();
        core.thread = DriverThread::Gone;
        core.wake_all();
        core.end_closing();
        let wakeups = std::mem::take(&mut core.wakeups);
        drop(core);
        self.0.deliver(wakeups);
    }
}

/// Starts the driver thread. Its waiter cannot move between threads, so the thread creates everything and returns a
/// share.
fn begin<T: Streams + Channels>(
    transport: T,
    socket: UdpSocket,
    channels: Option<ChannelPort>,
    ready: &SyncSender<Result<Arc<Shared<T>>, Error>>,
    linger: Duration,
) {
    let waiter = Waiter::new().and_then(|waiter| {
        let role = DriverRole::new(&socket)?;
        waiter.watch(&socket, SOCKET, Interest::Readable)?;
        role.watch(&waiter)?;
        Ok((waiter, role))
    });
    match waiter {
        Ok((waiter, role)) => {
            let sockets = channels.as_ref().map(|port| ChannelSockets::new(port.address()));
            let shared = Arc::new(Shared::new(transport, socket, channels, (waiter.waker(), role)));
            // The starting thread only waits for this message.
            let _ = ready.send(Ok(Arc::clone(&shared)));
            run(&shared, waiter, sockets, linger);
        }
        Err(source) => {
            let _ = ready.send(Err(Error::System { what: "an epoll instance", source }));
        }
    }
}

/// Runs the driver thread's loop. It ends when the last handle is gone and every peer has been told, at the latest
/// `linger` after the last handle.
fn run<T: Streams + Channels>(
    shared: &Shared<T>,
    mut waiter: Waiter,
    mut channels: Option<ChannelSockets>,
    linger: Duration,
) {
    let _last_act = LastAct(shared);
    let mut watched = Some(Interest::Readable);
    let mut end = None;
    let mut is_readable = true;
    loop {
        let mut receiving = match shared.role.for_thread(shared.clock.now()) {
            Ok(receiving) => receiving,
            Err(lease) => {
                if watched.take().is_some() && waiter.unwatch(&shared.socket).is_err() {
                    return;
                }
                let Ok(()) = shared.serve_cancellers() else { return };
                let Ok(ready) = waiter.wait(lease) else { return };
                shared.role.note(ready);
                is_readable = true;
                continue;
            }
        };
        if watched.is_none() {
            if waiter.watch(&shared.socket, SOCKET, Interest::Readable).is_err() {
                return;
            }
            watched = Some(Interest::Readable);
        }
        // If only a timer or another thread woke this one, no receive call is needed.
        receiving.receive(&shared.socket, std::mem::replace(&mut is_readable, true));
        if let Some(channels) = &mut channels {
            channels.gather(&waiter);
        }
        let Ok(mut guard) = shared.lock() else { return };
        guard.begin_as_driver(receiving.is_streaming);
        let now = guard.now();
        if let Some(channels) = &mut channels {
            guard.hand_in_channels(channels);
        }
        receiving.hand_in(&mut guard, &shared.socket);
        if guard.closing && *end.get_or_insert(now + linger) <= now {
            return;
        }
        let (mut rest, wakeups) = guard.end_as_thread(channels.as_mut());
        if rest.over {
            shared.deliver(wakeups);
            return;
        }
        if let Some(channels) = &mut channels {
            channels.perform(now, &waiter);
            rest.shorten(now, channels);
        }
        let sleep = receiving.sleep(now, &rest);
        let is_streaming = receiving.is_streaming;
        // A caller that is to wait may drive from here on. Wakers of tasks are foreign code, for which it must not wait.
        drop(receiving);
        shared.deliver(wakeups);
        if rest.holds_readers && !is_streaming {
            let Ok(mut guard) = shared.lock() else { return };
            guard.end_streaming();
        }
        if !sleep.is_zero() {
            pause(sleep);
        }
        if is_streaming && channels.is_none() {
            continue;
        }
        let interest = if rest.blocked { Interest::Both } else { Interest::Readable };
        if watched != Some(interest) && waiter.rewatch(&shared.socket, SOCKET, interest).is_ok() {
            watched = Some(interest);
        }
        let longest = end.map(|end: Instant| end.saturating_since(now));
        // Datagrams without a pause must not keep channels waiting.
        let time = if is_streaming { Some(Duration::ZERO) } else { rest.time.into_iter().chain(longest).min() };
        let Ok(ready) = waiter.wait(time) else { return };
        is_readable = ready.iter().any(|source| source.token == SOCKET && source.readable);
        shared.role.note(ready);
        if let Some(channels) = &mut channels {
            channels.note(ready);
        }
    }
}
