//! One socket: its states from birth to close.
//!
//! ```text
//!   Init ──bind──▶ Bound ──listen──▶ Listening
//!     └──────────────┴───connect──▶ Linked (connecting, connected, broken) ──close──▶ Closed
//!                                       ▲
//!                              accept ──┘
//! ```

mod connecting;
mod link;
mod listening;
mod looking;

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::controller::{Factory, Object};
use crate::events::{Events, Observers};
use crate::failure::{Code, Result};
use crate::options::{Name, Options, Stage, Value};
use crate::port::{Port, source_towards};
use crate::sockaddr::Family;
use crate::trace::{Figures, HEADERS, Trace};
use crate::wait::Blocked;

pub(crate) use link::{Handle, Link};
pub(crate) use listening::Listening;
pub(crate) use looking::Looking;

/// The states that libudt tells, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum SocketState {
    Init = 1,
    Opened = 2,
    Listening = 3,
    Connecting = 4,
    Connected = 5,
    Broken = 6,
    Closed = 8,
    NonExistent = 9,
}

/// What a socket carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Stream,
    Messages,
}

impl Kind {
    /// # Errors
    /// It is neither SOCK_STREAM nor SOCK_DGRAM.
    pub(crate) fn from_number(number: i32) -> Result<Self> {
        match number {
            libc::SOCK_STREAM => Ok(Self::Stream),
            libc::SOCK_DGRAM => Ok(Self::Messages),
            _ => Err(Code::InvalidParameter.into()),
        }
    }
}

/// A socket.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) id: i32,
    pub(crate) family: Family,
    pub(crate) kind: Kind,
    options: Mutex<Options>,
    phase: Mutex<Phase>,
    /// Those that select or epoll it.
    pub(crate) observers: Observers,
    /// Those that its calls block.
    pub(crate) blocked: Blocked,
    /// Error signals of the peer that the program has heard of.
    pub(crate) complaints_told: AtomicU64,
    trace: Mutex<Trace>,
    /// Whether the connection has what belongs to this socket alone.
    set_up: AtomicBool,
    /// The program's controller, once the connection has it.
    pub(crate) installed: Mutex<Option<Object>>,
}

/// How far a socket is, and what it has there.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    Init,
    Bound(Arc<Port>),
    Listening(Arc<Listening>),
    Linked(Arc<Link>),
    Closed,
}

impl Socket {
    pub(crate) fn new(id: i32, family: Family, kind: Kind) -> Self {
        Self::at(id, family, kind, Options::default(), Phase::Init)
    }

    fn at(id: i32, family: Family, kind: Kind, options: Options, phase: Phase) -> Self {
        Self {
            id,
            family,
            kind,
            options: Mutex::new(options),
            phase: Mutex::new(phase),
            observers: Observers::default(),
            blocked: Blocked::default(),
            complaints_told: AtomicU64::new(0),
            trace: Mutex::default(),
            set_up: AtomicBool::new(false),
            installed: Mutex::default(),
        }
    }

    pub(crate) fn options(&self) -> MutexGuard<'_, Options> {
        self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.lock_phase().clone()
    }

    fn lock_phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves to the phase that `change` makes of the present one, and tells the observers.
    fn advance(&self, change: impl FnOnce(&Phase) -> Result<Phase>) -> Result<()> {
        let mut phase = self.lock_phase();
        *phase = change(&phase)?;
        drop(phase);
        self.observers.notify();
        Ok(())
    }

    /// Ends the socket. Returns what it had.
    pub(crate) fn end(&self) -> Phase {
        std::mem::replace(&mut *self.lock_phase(), Phase::Closed)
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(*self.lock_phase(), Phase::Closed)
    }

    /// Whether its connection was seen established, and has what belongs to this socket.
    pub(crate) fn is_set_up(&self) -> bool {
        self.set_up.load(Ordering::Acquire)
    }

    // ---- bind ----

    /// Binds the socket to `address`.
    ///
    /// # Errors
    /// It is bound. The system refuses the address.
    pub(crate) fn bind(&self, address: SocketAddr) -> Result<()> {
        let options = self.options().clone();
        self.advance(|phase| match phase {
            Phase::Init => Ok(Phase::Bound(Port::bind(address, &options)?)),
            _ => Err(Code::InvalidOperation.into()),
        })
    }

    /// Binds the socket to a UDP socket of the program, which `take` takes over.
    ///
    /// # Errors
    /// It is bound. `take` fails, or another socket has the descriptor. The system does not tell the address.
    pub(crate) fn adopt(&self, descriptor: RawFd, take: impl FnOnce() -> Result<UdpSocket>) -> Result<()> {
        let options = self.options().clone();
        self.advance(|phase| match phase {
            Phase::Init => Ok(Phase::Bound(Port::adopt(descriptor, take, &options)?)),
            _ => Err(Code::InvalidOperation.into()),
        })
    }

    // ---- facts ----

    /// The state as libudt tells it.
    pub(crate) fn state(&self) -> SocketState {
        match self.phase() {
            Phase::Init => SocketState::Init,
            Phase::Bound(_) => SocketState::Opened,
            Phase::Listening(_) => SocketState::Listening,
            Phase::Linked(link) => self.state_of(&link),
            Phase::Closed => SocketState::Closed,
        }
    }

    fn state_of(&self, link: &Link) -> SocketState {
        match link.connection().readiness() {
            Ok(now) if now.ended => SocketState::Broken,
            Ok(now) if now.connected => {
                self.set_up(link);
                SocketState::Connected
            }
            Ok(_) => SocketState::Connecting,
            Err(_) => SocketState::Broken,
        }
    }

    /// The connection.
    ///
    /// # Errors
    /// [`Code::NotConnected`]: there is none.
    pub(crate) fn link(&self) -> Result<Arc<Link>> {
        match self.phase() {
            Phase::Linked(link) => Ok(link),
            _ => Err(Code::NotConnected.into()),
        }
    }

    /// The address of this side. Once the peer is known, it is that of the path there.
    ///
    /// # Errors
    /// The socket is not bound.
    pub(crate) fn local_address(&self) -> Result<SocketAddr> {
        match self.phase() {
            Phase::Init | Phase::Closed => Err(Code::NotConnected.into()),
            Phase::Bound(port) => Ok(port.address()),
            Phase::Listening(listening) => Ok(listening.port.address()),
            Phase::Linked(link) => {
                let (connection, local) = (link.connection(), link.port.address());
                let source = || source_towards(connection.peer_addr(), local);
                Ok(connection.asked_ip().map_or_else(source, |ip| SocketAddr::new(ip, local.port())))
            }
        }
    }

    /// The address of the peer.
    ///
    /// # Errors
    /// The socket is not connected.
    pub(crate) fn peer_address(&self) -> Result<SocketAddr> {
        let link = self.link()?;
        match self.state_of(&link) {
            SocketState::Connected => Ok(link.connection().peer_addr()),
            _ => Err(Code::NotConnected.into()),
        }
    }

    /// The figures of the connection. `clear` begins a new interval.
    ///
    /// # Errors
    /// The socket is not connected, or its connection is over.
    pub(crate) fn figures(&self, clear: bool) -> Result<Figures> {
        let link = self.link()?;
        match self.state_of(&link) {
            SocketState::Connected => {}
            SocketState::Broken => return Err(Code::ConnectionLost.into()),
            _ => return Err(Code::NotConnected.into()),
        }
        let stats = link.connection().stats()?;
        Ok(self.trace.lock().unwrap_or_else(PoisonError::into_inner).figures(stats, clear))
    }

    // ---- options ----

    /// Sets an option other than the controller.
    ///
    /// # Errors
    /// See [`Options::set`]. The connection is over.
    pub(crate) fn set_option(&self, name: Name, value: Value) -> Result<()> {
        let phase = self.phase();
        let mut options = self.options();
        options.set(name, value, stage(&phase))?;
        let rate = options.max_rate();
        drop(options);
        if let (Name::MaxBandwidth, Phase::Linked(link)) = (name, phase) {
            // One that is not established yet gets it then.
            let _ = link.connection().set_max_rate(rate);
        }
        Ok(())
    }

    /// Sets the factory of the controller.
    ///
    /// # Errors
    /// The socket connects or is connected.
    pub(crate) fn set_factory(&self, factory: Factory) -> Result<()> {
        self.takes_factory()?;
        self.options().factory = Some(factory);
        Ok(())
    }

    /// Whether it takes a controller of the program now.
    ///
    /// # Errors
    /// The socket connects or is connected.
    pub(crate) fn takes_factory(&self) -> Result<()> {
        if stage(&self.phase()) > Stage::Bound { Err(Code::AlreadyBound.into()) } else { Ok(()) }
    }

    /// The program's controller; `None` while the connection has the library's.
    ///
    /// # Errors
    /// The socket is not bound.
    pub(crate) fn controller(&self) -> Result<Option<Object>> {
        if stage(&self.phase()) == Stage::Unbound {
            return Err(Code::NotBound.into());
        }
        Ok(*self.installed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The value of an option other than the controller.
    ///
    /// # Errors
    /// There is no such value.
    pub(crate) fn option(&self, name: Name) -> Result<Value> {
        let stats = || self.link().ok()?.connection().stats().ok();
        let count =
            |packets: Option<u32>| Value::Int(packets.map_or(0, |packets| packets.try_into().unwrap_or(i32::MAX)));
        match name {
            Name::State => Ok(Value::Int(self.state() as i32)),
            Name::Events => {
                let now = self.events();
                Ok(Value::Int(if now.has(Events::ERROR) { Events::ERROR } else { now }.bits()))
            }
            Name::SendData => Ok(count(stats().map(|stats| stats.send_buffer_packets))),
            Name::RecvData => Ok(count(stats().map(|stats| stats.recv_buffer_packets))),
            Name::Mss => match stats().map(|stats| stats.payload_size) {
                Some(payload @ 1..) => Ok(count(Some(payload + HEADERS))),
                _ => self.options().get(name).ok_or(Code::InvalidOperation.into()),
            },
            _ => self.options().get(name).ok_or(Code::InvalidOperation.into()),
        }
    }
}

/// How far options take a socket for.
pub(crate) fn stage(phase: &Phase) -> Stage {
    match phase {
        Phase::Init => Stage::Unbound,
        Phase::Bound(_) | Phase::Listening(_) => Stage::Bound,
        Phase::Linked(_) | Phase::Closed => Stage::Connected,
    }
}
