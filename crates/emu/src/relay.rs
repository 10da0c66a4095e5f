//! A user-space UDP relay that emulates a path in each direction and needs no special rights.
//!
//! A client sends to the relay instead of the server. The relay delays each datagram as the model says, or loses it,
//! and forwards it. Every client has its own upstream socket, so that answers find their way back.
//!
//! The relay is precise without busy waiting. Arrivals carry the kernel's timestamps, so the time of reading does not
//! matter. The model computes exact departure times, and only the release waits for the relay. Under load it pauses for
//! at least [`PAUSE`] and then releases all due packets as trains. With the necessary rights it runs as a real-time
//! thread. It measures how late packets leave. A run that the relay limited, instead of the path, is marked as invalid.

mod clients;
mod datagram;
mod direction;

mod report;
mod run;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use farhaul_netem::PathSpec;
use farhaul_units::Duration;

use farhaul_udp::{Options, UdpSocket};

pub use report::{DirectionReport, RelayReport};

/// The shortest sleep under load. It limits wake-ups to 20 000 a second, at the price of that much lateness.
pub const PAUSE: Duration = Duration::from_micros(50);

/// A relay between clients and one server.
#[derive(Debug)]
pub struct Relay {
    listen: UdpSocket,
    to: SocketAddr,
    up: PathSpec,
    down: PathSpec,
    pause: Duration,
}

impl Relay {
    /// A relay that clients reach at `listen` and that forwards to `to`, through `up` on the way there and through
    /// `down` on the way back. Give the two specifications different seeds, or both directions have the same losses.
    ///
    /// # Errors
    /// As [`UdpSocket::bind`].
    pub fn bind(listen: SocketAddr, to: SocketAddr, up: PathSpec, down: PathSpec) -> io::Result<Self> {
        Ok(Self { listen: UdpSocket::bind(listen, socket_options())?, to, up, down, pause: PAUSE })
    }

    /// Sets the shortest sleep under load, instead of [`PAUSE`]. A shorter sleep is more precise and costs more processor
    /// time. Zero sleeps until the next event, however near.
    #[must_use]
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// The address to which clients send.
    pub fn local_addr(&self) -> SocketAddr {
        self.listen.local_addr()
    }

    /// Warnings about socket buffers, for display.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.listen.buffers().iter().filter_map(farhaul_udp::BufferReport::warning)
    }

    /// Relays until `stop` is true, which is noticed within 50 ms. Every run begins with empty paths and no clients.
    ///
    /// # Errors
    /// A socket failed, or the system has no more sockets.
    pub fn run(&mut self, stop: &AtomicBool) -> io::Result<RelayReport> {
        run::run(self, stop)
    }
}

/// Options of the relay's sockets: large buffers, offloads, and the kernel's arrival timestamps.
fn socket_options() -> Options {
    Options { timestamps: true, ..Options::default() }
}
