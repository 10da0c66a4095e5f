//! Any protocol inside secure connections, whether or not it has control channels.
//!
//! ```text
//!                ┌───────────────────────── Around (one UDP port) ─────────────────────────┐
//!  application ──│─▶ inner endpoint ── channel of a connection ──▶ stream ──┐               │
//!                │       ▲    └─────── datagrams ──▶ sealed beside it ──────┤ tunnel        │──▶ envelopes
//!                │       └─────────────────────────────────────────────────┘ (secure UDT)   │
//!                └─────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Each connection of the inner endpoint has a tunnel: a secure UDT connection of its own. The channel's bytes are the
//! tunnel's stream, so the port needs no TCP. The datagrams travel beside the stream in the same envelopes, and may be lost.
//! The inner endpoint knows of none of this: it sees an address for each tunnel.
//!
//! | part | owns |
//! | --- | --- |
//! | `links` | which connection is inside which tunnel |
//! | `tunnels` | what tunnels report: opened, bytes of channels, ends |
//! | `ends` | the order in which a tunnel and its connection are given up |
//! | `carriage` | datagrams of the inner endpoint on their way out |
//! | `interface` | the commands of the application |
//!
//! **Hostile peers.** A peer has proved its key before the inner endpoint hears of it. Whatever goes through its tunnel comes
//! from one address of the inner endpoint, so it reaches no connection of another tunnel. A tunnel without a connection
//! inside ends after [`IDLE`].

mod carriage;
mod ends;
mod interface;
mod links;
#[cfg(test)]
mod tests;
mod tunnels;

use core::net::SocketAddr;
use std::collections::VecDeque;

use farhaul_units::{Duration, Instant};
use farhaul_wire::secure::inner::DATAGRAM_OVERHEAD;

use self::carriage::Waiting;
use self::links::Links;
use super::address;
use super::beside::first_of_one_name;
use super::mail::Mail;
use super::protector::Provider;
use crate::any_endpoint::AnyEndpoint;
use crate::channel::Channels;
use crate::config::{Config, Entropy};
use crate::error::ConnectionLost;
use crate::event::{ConnectionId, Event};
use crate::registry::Protocol;
use crate::shell::endpoint::Endpoint;
use crate::shell::farewell::LONGEST_FAREWELL;
use crate::transport::{Batch, Streams, Transmit, Transport, earliest};

/// A tunnel may be without a connection inside for so long: the time in which an endpoint gives up a caller that it never
/// hears.
const IDLE: Duration = Duration::from_secs(10);
/// Bytes of a channel on their way in one direction. The longest record, a bitmap of a blast, has less than a tenth.
const CHANNEL_BUFFER: u64 = 4 << 20;
/// Bytes of a channel that are read at once.
const PIECE: usize = 16 << 10;
/// Most bytes of a train: the largest payload that UDP over IPv4 has, which the kernel takes as a whole.
pub(super) const MAX_TRAIN: usize = 65_507;

/// The endpoint of any protocol but UDT4, inside secure connections.
pub(crate) struct Around {
    inner: Box<dyn AnyEndpoint>,
    tunnels: Endpoint,
    links: Links,
    /// Tunnels that callers opened, and when each must have a connection inside.
    idle: VecDeque<(Instant, ConnectionId)>,
    /// Tunnels that may have reached their end.
    ending: Vec<ConnectionId>,
    /// When to look at them, if they are many.
    next_look: Instant,
    /// Connections that the inner endpoint has accepted in vain.
    unwanted: Vec<ConnectionId>,
    /// Datagrams that leave next.
    waiting: VecDeque<Waiting>,
    /// Memory for datagrams that arrive, those that leave, and bytes of channels.
    mail: Mail,
    batch: Batch,
    piece: Box<[u8]>,
}

impl Around {
    /// An endpoint without connections. `provider` makes keys and handshakes.
    pub(crate) fn new(protocol: &Protocol, config: Config, entropy: Entropy, provider: Box<dyn Provider>) -> Self {
        // Both endpoints draw secrets, which must not be the same.
        let mut entropy = entropy.divided();
        let tunnels = super::serving(protocol.entry().name, of_tunnels(&config), entropy(), provider);
        let mss = config.mss.saturating_sub(DATAGRAM_OVERHEAD as u32);
        Self {
            // Datagrams of the protocol inside have one size.
            inner: protocol.endpoint(Config { mss, largest_mss: None, ..config }, entropy()),
            tunnels,
            links: Links::default(),
            idle: VecDeque::new(),
            ending: Vec::new(),
            next_look: Instant::ZERO,
            unwanted: Vec::new(),
            waiting: VecDeque::new(),
            mail: Mail::default(),
            batch: Batch::new(),
            piece: vec![0; PIECE].into(),
        }
    }

    /// Whether the connections inside have channels.
    fn has_channels(&self) -> bool {
        self.inner.needs_channels()
    }

    /// Datagrams from one address to one name.
    fn receive(&mut self, now: Instant, arrived: Instant, from: SocketAddr, bytes: &mut [u8], stride: usize) {
        let mail = std::mem::take(&mut self.mail);
        let (tunnel, mut mail) = self.tunnels.receive_mail(mail, (now, arrived, from), bytes, stride);
        if let Some(tunnel) = tunnel {
            self.meet(now, tunnel);
            self.unpack(tunnel, (now, arrived, from), &mut mail);
        }
        self.mail = mail;
    }

    /// Passes on the datagrams that came through a tunnel.
    fn unpack(&mut self, tunnel: ConnectionId, (now, arrived, peer): (Instant, Instant, SocketAddr), mail: &mut Mail) {
        let Some((origin, _)) = self.tunnels.origin(tunnel).filter(|_| !self.tunnels.is_leaving(tunnel)) else {
            return mail.deliver(|_, _| ());
        };
        let from = address::behind(tunnel, origin);
        let has_link = self.links.get(tunnel).is_some();
        let Self { inner, tunnels, .. } = self;
        let mut pass = |bytes: &mut [u8], stride| {
            if has_link {
                inner.handle_datagrams(now, arrived, from, bytes, stride);
            }
        };
        match tunnels.beside.is_wanted() {
            true => mail.deliver(|bytes, stride| {
                tunnels.beside.sort((arrived, from, peer), bytes, stride, |others| pass(others, stride));
            }),
            false => mail.deliver(pass),
        }
    }

    /// Passes on what tunnels report. Returns whether there was anything.
    fn hear_tunnels(&mut self, now: Instant) -> bool {
        let mut heard = false;
        while let Some(event) = self.tunnels.poll_event() {
            self.on_tunnel(now, event);
            heard = true;
        }
        heard
    }
}

/// The settings of tunnels. Their streams carry control records, so they need little memory and the usual rate control.
fn of_tunnels(config: &Config) -> Config {
    Config {
        mss: config.mss,
        send_buffer: CHANNEL_BUFFER,
        recv_buffer: CHANNEL_BUFFER,
        connect_timeout: config.connect_timeout,
        peer_timeout: config.peer_timeout,
        linger: LONGEST_FAREWELL,
        keep_alive: config.keep_alive,
        max_connections: config.max_connections,
        backlog: config.backlog,
        ..Config::default()
    }
}

impl Transport for Around {
    fn handle_datagrams(&mut self, now: Instant, arrived: Instant, from: SocketAddr, bytes: &mut [u8], stride: usize) {
        let stride = stride.max(1);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (run, others) = rest.split_at_mut(first_of_one_name(rest, stride));
            self.receive(now, arrived, from, run, stride);
            rest = others;
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.tunnels.handle_timeout(now);
        self.inner.handle_timeout(now);
        self.end_idle(now);
    }

    fn poll_transmit<'a>(&'a mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        let (to, segment_size, whole) = loop {
            // Everything that a tunnel sends is sealed, so it is in the scratch buffer.
            let sent = self.tunnels.poll_transmit(now, scratch);
            let sent = sent.map(|transmit| (transmit.to, transmit.segment_size, transmit.whole));
            if let Some(sent) = sent {
                break sent;
            }
            if self.hear_tunnels(now) {
                continue;
            }
            // As in plain, channels follow datagrams: a protocol decides last what goes by its channel.
            if let Some((to, segment_size)) = self.carry(now, scratch.cleared()) {
                break (to, segment_size, false);
            }
            let served = self.serve_channels(now);
            if !self.settle(now) && !served {
                return None;
            }
        };
        Some(Transmit { to, segment_size, bytes: scratch.bytes(), whole })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.waiting.is_empty() {
            return Some(Instant::ZERO);
        }
        let idle = self.idle.front().map(|(until, _)| *until);
        let endpoints = earliest(self.tunnels.poll_timeout(), self.inner.poll_timeout());
        earliest(endpoints, earliest(idle, self.end_deadline()))
    }

    fn poll_event(&mut self) -> Option<Event> {
        loop {
            let event = self.inner.poll_event()?;
            if let Some(event) = self.on_inner(event) {
                return Some(event);
            }
        }
    }

    fn envelopes(&mut self) -> Option<&mut Endpoint> {
        Some(&mut self.tunnels)
    }
}

/// No channel leaves the tunnels.
impl Channels for Around {}

/// Whether a tunnel ended as its sides wanted.
const fn is_orderly(reason: ConnectionLost) -> bool {
    matches!(reason, ConnectionLost::ClosedByPeer | ConnectionLost::Aborted | ConnectionLost::ClosedLocally)
}
