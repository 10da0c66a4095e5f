//! The last words to clients whose handshakes failed here. A word that was lost is repeated when its client goes on.
//!
//! The opening itself is forgotten at once, so a refused client takes no place of another one.

use core::net::SocketAddr;
use std::collections::VecDeque;

use farhaul_units::{Duration, Instant};
use farhaul_wire::secure::ConnectionName;

use super::client_id::ClientId;

/// A client repeats its last messages after 0.2 s, 0.6 s and 1.4 s of silence. So it has three further answers in this time.
const KEPT: Duration = Duration::from_secs(2);
/// Most clients to which words are kept: as many as may be in the middle of their handshakes without a validated address. The
/// newest replace the oldest.
const MOST: usize = 256;

/// The word to one client.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    /// Its address.
    pub(super) peer: SocketAddr,
    /// The name of the connection here.
    pub(super) name: ConnectionName,
    pub(super) client_id: ClientId,
    /// The packet with the word.
    pub(super) packet: Vec<u8>,
    /// When the packet left.
    pub(super) said: Instant,
}

/// The words that are kept, in the order of their time.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    kept: VecDeque<Refusal>,
}

impl Refusals {
    /// Keeps a word for a while.
    pub(super) fn keep(&mut self, refusal: Refusal) {
        if self.kept.len() == MOST {
            self.kept.pop_front();
        }
        self.kept.push_back(refusal);
    }

    /// Whether this client was refused lately.
    pub(super) fn knows(&mut self, now: Instant, peer: SocketAddr, client_id: ClientId) -> bool {
        self.find(now, peer, |refusal| refusal.client_id == client_id).is_some()
    }

    /// The word for a client that goes on with a packet of `length` bytes. None is longer than its trigger (attack A11).
    pub(super) fn for_client(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        client_id: ClientId,
        length: usize,
    ) -> Option<Vec<u8>> {
        self.answer(now, peer, length, |refusal| refusal.client_id == client_id)
    }

    /// The same for a packet to the name of a connection.
    pub(super) fn for_name(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        name: ConnectionName,
        length: usize,
    ) -> Option<Vec<u8>> {
        self.answer(now, peer, length, |refusal| refusal.name == name)
    }

    fn answer(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        length: usize,
        is_meant: impl Fn(&Refusal) -> bool,
    ) -> Option<Vec<u8>> {
        let packet = &self.find(now, peer, is_meant)?.packet;
        (packet.len() <= length).then(|| packet.clone())
    }

    fn find(&mut self, now: Instant, peer: SocketAddr, is_meant: impl Fn(&Refusal) -> bool) -> Option<&Refusal> {
        while self.kept.front().is_some_and(|refusal| now.saturating_since(refusal.said) >= KEPT) {
            self.kept.pop_front();
        }
        self.kept.iter().find(|refusal| refusal.peer == peer && is_meant(refusal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(port: u16, millis: u64) -> Refusal {
        Refusal {
            peer: SocketAddr::from(([10, 0, 0, 1], port)),
            name: ConnectionName::new(u32::from(port)),
            client_id: ClientId::new(&[port as u8; 8]).unwrap(),
            packet: vec![port as u8; 50],
            said: Instant::ZERO + Duration::from_millis(millis),
        }
    }

    #[test]
    fn a_word_is_repeated_for_two_seconds_and_never_for_a_shorter_packet() {
        let mut refusals = Refusals::default();
        let kept = refusal(7, 100);
        refusals.keep(kept.clone());
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert_eq!(refusals.for_name(at(200), kept.peer, kept.name, 49), None);
        assert_eq!(refusals.for_name(at(200), kept.peer, kept.name, 50), Some(kept.packet.clone()));
        assert_eq!(refusals.for_name(at(200), refusal(8, 0).peer, kept.name, 50), None, "another address");
        assert_eq!(refusals.for_client(at(2_099), kept.peer, kept.client_id, 1_200), Some(kept.packet));
        assert!(!refusals.knows(at(2_100), kept.peer, kept.client_id) && refusals.kept.is_empty());
    }

    #[test]
    fn their_number_is_bounded() {
        let mut refusals = Refusals::default();
        (0..1_000).for_each(|port| refusals.keep(refusal(port, 0)));
        assert_eq!(refusals.kept.len(), MOST);
    }
}
