//! What tunnels report, and what connections inside request of their channels.

use farhaul_units::Instant;

use super::links::{Link, Stage};
use super::{Around, Waiting};
use crate::channel::{ChannelEnd, ChannelOutput, Channels};
use crate::error::ConnectionLost;
use crate::event::{ConnectionId, Event};
use crate::secure::address;
use crate::transport::{Read, StreamError, Streams};

impl Around {
    /// A tunnel reports something.
    pub(super) fn on_tunnel(&mut self, now: Instant, event: Event) {
        match event {
            Event::Connected(tunnel) => self.on_connected(now, tunnel),
            Event::Accepted(tunnel) => self.meet(now, tunnel),
            Event::Readable(tunnel) => self.read_channel(now, tunnel),
            Event::Writable(tunnel) => self.write_on(now, tunnel),
            Event::Finished(tunnel) => self.on_told(tunnel),
            Event::Closed(tunnel, reason) => self.on_closed(now, tunnel, reason),
            Event::SendingFinished(_) | Event::PeerComplained(..) => {}
        }
    }

    fn on_connected(&mut self, now: Instant, tunnel: ConnectionId) {
        let Some(link) = self.links.get_mut(tunnel) else { return };
        if link.stage != Stage::Opening {
            return;
        }
        link.stage = Stage::Open;
        for bytes in link.take_early() {
            self.waiting.push_back(Waiting { tunnel, size: bytes.len(), bytes });
        }
        if let Some(inner) = link.inner.filter(|_| link.asked) {
            self.inner.channel_opened(now, inner);
        }
    }

    /// A caller's tunnel may be new. Offers its channel to the inner endpoint, or waits for its first datagram there.
    pub(super) fn meet(&mut self, now: Instant, tunnel: ConnectionId) {
        if self.links.get(tunnel).is_some() || self.tunnels.is_leaving(tunnel) {
            return;
        }
        if self.tunnels.is_measured(tunnel) {
            return;
        }
        let Some((origin, true)) = self.tunnels.origin(tunnel) else { return };
        let address = address::behind(tunnel, origin);
        let mut link = Link::new(tunnel, address, None, Stage::Open);
        if self.has_channels() {
            link.inner = self.inner.accept_channel(now, address);
            if link.inner.is_none() {
                self.tunnels.close(now, tunnel);
                return self.tunnels.release(now, tunnel);
            }
            self.tunnels.claim(tunnel);
        } else {
            self.idle.push_back((now + super::IDLE, tunnel));
        }
        self.links.insert(link);
    }

    // ---- channels: from the peer ----

    /// Passes on the bytes of a channel, and its end.
    pub(super) fn read_channel(&mut self, now: Instant, tunnel: ConnectionId) {
        let channel = match self.links.get(tunnel) {
            Some(link) => link.inner.filter(|_| self.has_channels()),
            None => return,
        };
        loop {
            let read = self.tunnels.read(now, tunnel, &mut self.piece);
            match (read, channel) {
                (Ok(Read::Data(length)), Some(inner)) => {
                    self.inner.handle_channel(now, inner, &self.piece[..length]);
                }
                // A stream that no channel uses says nothing.
                (Ok(Read::Data(_)), None) => {}
                (Ok(Read::Pending), _) | (Err(StreamError::NoSuchConnection), _) => return,
                (Ok(Read::End), _) => return self.on_lost(now, tunnel, ConnectionLost::ClosedByPeer),
                (Err(StreamError::Lost(reason)), _) => return self.on_lost(now, tunnel, reason),
                (Err(_), _) => return,
            }
        }
    }

    /// The tunnel is over, and everything that came through it was passed on.
    fn on_lost(&mut self, now: Instant, tunnel: ConnectionId, reason: ConnectionLost) {
        let has_channels = self.has_channels();
        let Some(link) = self.links.get_mut(tunnel) else { return };
        if link.stage == Stage::Over {
            return;
        }
        let ends_here = matches!(link.stage, Stage::Draining | Stage::Ending);
        link.stage = Stage::Over;
        link.unsent = Vec::new();
        let fault = !super::is_orderly(reason) && !link.over && !ends_here;
        if fault {
            link.fault = Some(reason);
        }
        let inner = link.inner.filter(|_| !ends_here);
        self.watch(tunnel);
        let Some(inner) = inner else { return };
        if has_channels {
            let in_order = reason == ConnectionLost::ClosedByPeer;
            self.inner.channel_ended(now, inner, if in_order { ChannelEnd::Finished } else { ChannelEnd::Failed });
        } else if fault {
            // Without a channel there is no other way to end it.
            self.inner.abort(now, inner);
        }
    }

    fn on_closed(&mut self, now: Instant, tunnel: ConnectionId, reason: ConnectionLost) {
        // What arrived in order before can still be read.
        self.read_channel(now, tunnel);
        self.on_lost(now, tunnel, reason);
    }

    // ---- channels: to the peer ----

    /// Carries out what connections request of their channels. Returns whether there was anything.
    pub(super) fn serve_channels(&mut self, now: Instant) -> bool {
        let mut served = false;
        loop {
            let Self { inner: endpoint, links, tunnels, .. } = self;
            let Some(request) = endpoint.poll_channel(now) else { return served };
            served = true;
            match request {
                ChannelOutput::Open(inner, _) => {
                    let Some(link) = links.of_mut(inner) else { continue };
                    link.asked = true;
                    if link.stage == Stage::Open {
                        endpoint.channel_opened(now, inner);
                    }
                }
                ChannelOutput::Send(inner, bytes) => {
                    let Some(link) = links.of_mut(inner) else { continue };
                    let taken = tunnels.write(now, link.tunnel, bytes).unwrap_or(bytes.len());
                    if taken < bytes.len() {
                        link.unsent = bytes[taken..].to_vec();
                    } else {
                        endpoint.channel_drained(now, inner);
                    }
                }
                ChannelOutput::Finish(inner) => self.end_channel(now, inner, true),
                ChannelOutput::Reset(inner) => self.end_channel(now, inner, false),
            }
        }
    }

    /// There is room again for the bytes of a channel.
    fn write_on(&mut self, now: Instant, tunnel: ConnectionId) {
        let Some(link) = self.links.get_mut(tunnel) else { return };
        if link.unsent.is_empty() {
            return;
        }
        let taken = self.tunnels.write(now, tunnel, &link.unsent).unwrap_or(link.unsent.len());
        link.unsent.drain(..taken);
        if !link.unsent.is_empty() {
            return;
        }
        if link.stage == Stage::Draining {
            link.stage = Stage::Ending;
            self.tunnels.finish(now, tunnel);
        } else if let Some(inner) = link.inner {
            self.inner.channel_drained(now, inner);
        }
    }
}
