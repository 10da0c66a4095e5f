//! Finds the connection of a datagram by its tag, and admits callers.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use farhaul_units::Instant;
use farhaul_wire::blast::Tag;

use super::engine;
use super::established::Established;
use super::opening::Opening;
use crate::config::{Entropy, Mode};
use crate::error::ConnectError;
use crate::event::ConnectionId;
use crate::shell::admission::Admission;
use crate::shell::connection::{Connection, Name};
use crate::shell::endpoint::Shell;
use crate::shell::handshake::{Room, mss_towards};
use crate::shell::line::Line;
use crate::shell::protocol::{Protocol, WithChannels};
use crate::shell::secrets::Secrets;
use crate::shell::slots::Occupant;

/// Bytes of IPv4 and of UDP headers, which the packet size includes.
const HEADERS: u32 = 28;

/// The connections of an endpoint by tag, and its callers.
pub(crate) struct Tags<P: engine::Protocol> {
    options: P::Options,
    secrets: Secrets,
    pub(super) listens: bool,
    admission: Admission,
    by_tag: BTreeMap<Tag, u32>,
}

impl<P: engine::Protocol> Tags<P> {
    pub(super) fn new(options: P::Options, entropy: Entropy) -> Self {
        Self {
            options,
            secrets: Secrets::new(entropy.cookie_key),
            listens: false,
            admission: Admission::new(entropy.cookie_key),
            by_tag: BTreeMap::new(),
        }
    }

    fn new_tag(&mut self) -> Tag {
        loop {
            let tag = Tag(u64::from(self.secrets.draw()) << 32 | u64::from(self.secrets.draw()));
            if self.find(tag).is_none() {
                return tag;
            }
        }
    }

    /// A new connection on `line`; `called` is whether this side called.
    fn begin(
        shell: &mut Shell<Self>,
        now: Instant,
        peer: SocketAddr,
        (line, called): (Line, bool),
    ) -> (Name<Tag>, Opening<P>) {
        let tag = shell.protocol.new_tag();
        let datagram = u16::try_from(mss_towards(peer.ip(), shell.config.mss) - HEADERS).unwrap_or(u16::MAX);
        let opening = Opening::new(&shell.protocol.options, (line, called), (tag, datagram), &shell.config, now);
        (Name { key: tag, peer, mode: Mode::Stream }, opening)
    }
}

impl<P: engine::Protocol> Protocol for Tags<P> {
    type Key = Tag;
    type Opening = Opening<P>;
    type Established = Established<P>;

    const CHANNELS: bool = true;

    fn key(_from: SocketAddr, datagram: &[u8]) -> Option<Tag> {
        Tag::split(datagram).ok().map(|(tag, _)| tag)
    }

    fn find(&self, tag: Tag) -> Option<u32> {
        self.by_tag.get(&tag).copied()
    }

    /// Callers open a channel, so a datagram without a tag is nobody's.
    fn on_unaddressed(shell: &mut Shell<Self>, _now: Instant, _from: SocketAddr, _datagram: &mut [u8]) {
        shell.count_invalid();
    }

    fn connect(shell: &mut Shell<Self>, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        shell.check_room()?;
        let (name, opening) = Self::begin(shell, now, peer, (Line::wanted(), true));
        Ok(shell.open(now, name, opening))
    }

    fn on_entered(&mut self, connection: &Connection<Self>) {
        self.by_tag.insert(connection.key(), connection.id().slot);
    }

    fn on_changed(&mut self, _connection: &Connection<Self>) {}

    fn on_forgotten(&mut self, connection: &Connection<Self>) {
        self.by_tag.remove(&connection.key());
    }

    fn on_caller_heard(&mut self, caller: SocketAddr) {
        self.admission.on_heard(caller.ip());
    }
}

impl<P: engine::Protocol> WithChannels for Tags<P> {
    fn accept_channel(shell: &mut Shell<Self>, now: Instant, from: SocketAddr) -> Option<ConnectionId> {
        let room = shell.protocol.admission.room(from.ip(), now, shell.held(), &shell.config);
        if !shell.protocol.listens || room != Room::Free {
            return None;
        }
        let (name, opening) = Self::begin(shell, now, from, (Line::accepted(), false));
        shell.protocol.admission.on_accepted(from.ip(), now);
        Some(shell.answer(now, name, opening))
    }
}
