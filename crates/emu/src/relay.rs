//! A user-space UDP relay that behaves like a long path, with a path model in each direction and no special rights.
//!
//! A client sends to the relay instead of to the server; the relay holds each datagram as long as the model says (or
//! loses it) and sends it on. Every client gets an upstream socket of its own, so that answers find their way back.
//!
//! Precision without burning a processor: arrivals carry the kernel's timestamp, so that it does not matter when the
//! relay comes to read them; departures are computed exactly by the model, and only their release waits for the
//! relay, which naps at least [`NAP`] while packets flow and then releases all that is due as trains. Where it is
//! allowed to (as root it is) it runs as a real-time thread. How late packets were is measured, and a run in which the
//! relay rather than the path was the limit is marked as invalid.

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

/// The shortest sleep while packets flow: bounds wake-ups to 20 000 a second, at the price of that much lateness.
pub const NAP: Duration = Duration::from_micros(50);

/// A relay between clients and one server.
#[derive(Debug)]
pub struct Relay {
    listen: UdpSocket,
    to: SocketAddr,
    up: PathSpec,
    down: PathSpec,
    nap: Duration,
}

impl Relay {
    /// A relay that clients reach at `listen` and that sends on to `to`, through `up` on the way there and through
    /// `down` on the way back. Give the two specifications different seeds, or both directions suffer alike.
    ///
    /// # Errors
    /// As [`UdpSocket::bind`].
    pub fn bind(listen: SocketAddr, to: SocketAddr, up: PathSpec, down: PathSpec) -> io::Result<Self> {
        Ok(Self { listen: UdpSocket::bind(listen, socket_options())?, to, up, down, nap: NAP })
    }

    /// The shortest sleep while packets flow, instead of [`NAP`]: shorter is more precise and costs more. Zero
    /// sleeps until the next event, however near.
    #[must_use]
    pub fn with_nap(mut self, nap: Duration) -> Self {
        self.nap = nap;
        self
    }

    /// Where clients send to.
    pub fn local_addr(&self) -> SocketAddr {
        self.listen.local_addr()
    }

    /// Warnings about socket buffers, for people.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.listen.buffers().iter().filter_map(farhaul_udp::BufferReport::warning)
    }

    /// Relays until `stop` is true, which is noticed within 50 ms. Every run begins with empty paths and no clients.
    ///
    /// # Errors
    /// A socket broke, or the system has no more of them.
    pub fn run(&mut self, stop: &AtomicBool) -> io::Result<RelayReport> {
        run::run(self, stop)
    }
}

/// Sockets of a relay: large buffers, offloads, and the kernel's time of arrival.
fn socket_options() -> Options {
    Options { timestamps: true, ..Options::default() }
}
