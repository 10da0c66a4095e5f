//! Datagrams of the inner endpoint on their way out: each train becomes a train of envelopes.

use core::net::SocketAddr;

use farhaul_units::Instant;
use farhaul_wire::secure::inner::DATAGRAM_OVERHEAD;

use super::links::{Link, Stage};
use super::{Around, MAX_TRAIN};
use crate::event::ConnectionId;
use crate::secure::address;
use crate::transport::{Streams, Transport};

/// Datagrams that left the inner endpoint and wait for the next call.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) tunnel: ConnectionId,
    /// Bytes of each; the last may be shorter.
    pub(super) size: usize,
    pub(super) bytes: Vec<u8>,
}

impl Around {
    /// Writes the next train of envelopes into `out`. Returns its destination and the length of an envelope.
    pub(super) fn carry(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<(SocketAddr, usize)> {
        while let Some(Waiting { tunnel, size, bytes }) = self.waiting.pop_front() {
            if let Some(sent) = self.carry_waiting(now, (tunnel, size), &bytes, out) {
                return Some(sent);
            }
        }
        loop {
            let Self { inner, batch, tunnels, links, waiting, .. } = self;
            let train = inner.poll_transmit(now, batch)?;
            let Some(tunnel) = address::tunnel(train.to) else { continue };
            let (size, bytes) = (train.segment_size, train.bytes);
            match links.get_mut(tunnel) {
                Some(link) if link.stage == Stage::Opening => link.keep(bytes, size),
                Some(Link { .. }) => {
                    let Some(sealed) = tunnels.sealed(tunnel) else { continue };
                    let taken = sealed.carry(now, (bytes, size), MAX_TRAIN, out);
                    if taken == 0 {
                        // No key may be used now. The protocol inside repairs the loss.
                        tunnels.touch(tunnel);
                        continue;
                    }
                    if taken < bytes.len() {
                        waiting.push_back(Waiting { tunnel, size, bytes: bytes[taken..].to_vec() });
                    }
                    let to = tunnels.peer(tunnel)?;
                    return Some((to, size + DATAGRAM_OVERHEAD));
                }
                None => {}
            }
        }
    }

    fn carry_waiting(
        &mut self,
        now: Instant,
        (tunnel, size): (ConnectionId, usize),
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<(SocketAddr, usize)> {
        let taken = self.tunnels.sealed(tunnel)?.carry(now, (bytes, size), MAX_TRAIN, out);
        if taken == 0 {
            self.tunnels.touch(tunnel);
            return None;
        }
        if taken < bytes.len() {
            self.waiting.push_front(Waiting { tunnel, size, bytes: bytes[taken..].to_vec() });
        }
        Some((self.tunnels.peer(tunnel)?, size + DATAGRAM_OVERHEAD))
    }
}
