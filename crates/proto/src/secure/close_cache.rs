//! Close packets to clients whose handshakes failed here. One that was lost is repeated when its client goes on.
//!
//! The opening itself is forgotten at once, so a refused client takes no place of another one.

use core::net::SocketAddr;
use std::collections::VecDeque;

use farhaul_units::{Duration, Instant};
use farhaul_wire::secure::ConnectionName;

use super::client_id::ClientId;

/// A client repeats its last messages after 0.2 s, 0.6 s and 1.4 s of silence. So it has three further answers in this time.
const KEPT: Duration = Duration::from_secs(2);
/// Most closes that are kept: as many as may be in the middle of their handshakes without a validated address. The
/// newest replace the oldest.
const MOST: usize = 256;

/// The close of one client.
#[derive(Clone, Debug)]
pub(super) struct CachedClose {
    /// Its address.
    pub(super) peer: SocketAddr,
    /// The name of the connection here.
    pub(super) name: ConnectionName,
    pub(super) client_id: ClientId,
    /// The packet that sent so.
    pub(super) packet: Vec<u8>,
    /// When the packet left.
    pub(super) sent: Instant,
}

impl CachedClose {
    /// The packet for a client that goes on with one of `length` bytes. It is never longer than its trigger (attack A11).
    pub(super) fn for_packet(&self, length: usize) -> Option<Vec<u8>> {
        (self.packet.len() <= length).then(|| self.packet.clone())
    }
}

/// The closes that are kept, oldest first.
#[derive(Debug, Default)]
pub(super) struct CloseCache {
    kept: VecDeque<CachedClose>,
}

impl CloseCache {
    /// Keeps a close for a while.
    pub(super) fn keep(&mut self, close: CachedClose) {
        if self.kept.len() == MOST {
            self.kept.pop_front();
        }
        self.kept.push_back(close);
    }

    /// The recent close that `is_meant`, to a client of this address.
    pub(super) fn find(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        is_meant: impl Fn(&CachedClose) -> bool,
    ) -> Option<&CachedClose> {
        while self.kept.front().is_some_and(|close| now.saturating_since(close.sent) >= KEPT) {
            self.kept.pop_front();
        }
        self.kept.iter().find(|close| close.peer == peer && is_meant(close))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(port: u16, millis: u64) -> CachedClose {
        CachedClose {
            peer: SocketAddr::from(([10, 0, 0, 1], port)),
            name: ConnectionName::new(u32::from(port)),
            client_id: ClientId::new(&[port as u8; 8]).unwrap(),
            packet: vec![port as u8; 50],
            sent: Instant::ZERO + Duration::from_millis(millis),
        }
    }

    #[test]
    fn a_close_is_repeated_for_two_seconds_and_never_for_a_shorter_packet() {
        let mut cache = CloseCache::default();
        let kept = close(7, 100);
        cache.keep(kept.clone());
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut answer = |millis, peer, length| {
            let found = cache.find(at(millis), peer, |close| close.name == kept.name);
            found.and_then(|close| close.for_packet(length))
        };
        assert_eq!(answer(200, kept.peer, 49), None);
        assert_eq!(answer(200, kept.peer, 50), Some(kept.packet.clone()));
        assert_eq!(answer(200, close(8, 0).peer, 50), None, "another address");
        assert_eq!(answer(2_099, kept.peer, 1_200), Some(kept.packet.clone()));
        assert!(cache.find(at(2_100), kept.peer, |_| true).is_none() && cache.kept.is_empty());
    }

    #[test]
    fn their_number_is_bounded() {
        let mut cache = CloseCache::default();
        (0..1_000).for_each(|port| cache.keep(close(port, 0)));
        assert_eq!(cache.kept.len(), MOST);
    }
}
