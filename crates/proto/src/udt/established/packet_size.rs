//! The connection's part in path MTU discovery: it carries probes, replies and changes of the packet size.

use std::collections::VecDeque;

use farhaul_units::{Duration, Instant, Rng};
use farhaul_wire::udt4::{Control, HEADER_LEN, Path, SocketId, Timestamp};

use super::UdtConnection;
use crate::consts::IP_UDP_HEADER;
use crate::endpoint::handshake::{Agreed, Offer, mss_towards};
use crate::endpoint::protocol::Effect;
use crate::udt::congestion::Scale;
use crate::udt::path_mtu::{Change, PathMtu, Sizes};

/// The size that every path carries, headers of IP included. Source: RFC 8200, section 5. RFC 8899 recommends 1200 bytes without headers.
const BASE: u32 = 1_280;
/// The largest packets that are tried. Ethernet frames beyond are rare, and seven such packets fill a train of the kernel.
const LARGEST: u32 = 9_000;
/// Replies that wait to be sent. A peer has at most three probes in flight.
const MAX_REPLIES: usize = 4;

/// Discovery on a connection whose two ends can do it.
#[derive(Debug)]
pub(super) struct Discovery {
    mtu: PathMtu,
    replies: VecDeque<Reply>,
}

/// The number of a probe, and the bytes of its datagram.
type Reply = (u32, u32);

impl Discovery {
    /// `None` if the size is fixed.
    pub(super) fn new(agreed: &Agreed, offer: &Offer, rng: Rng) -> Option<Self> {
        let least = |size: u32| mss_towards(offer.peer.ip(), size) - agreed.protection.data;
        let sizes = Sizes {
            size: agreed.mss,
            base: least(BASE),
            largest: agreed.largest?.min(least(LARGEST)),
            margin: LARGEST - least(LARGEST),
        };
        Some(Self { mtu: PathMtu::new(sizes, rng), replies: VecDeque::new() })
    }
}

/// Bytes of a packet beside what follows its header.
const HEADERS: u32 = IP_UDP_HEADER + HEADER_LEN as u32;

impl UdtConnection {
    /// The largest packet that the peer may come to send; `None` if its size is fixed.
    pub(super) fn largest(agreed: &Agreed) -> Option<u32> {
        agreed.largest.map(|largest| largest.min(LARGEST))
    }

    /// The time in which a probe is answered.
    fn probe_wait(&self) -> Duration {
        self.rtt.with_margin()
    }

    /// The application writes. The first data begins the search.
    pub(super) fn begin_discovery(&mut self, now: Instant) {
        let wait = self.probe_wait();
        if let Some(discovery) = &mut self.discovery {
            discovery.mtu.on_data(now, wait);
        }
    }

    /// Fires the timers of probes. `stalls` is whether acknowledgements make no progress.
    pub(super) fn time_discovery(&mut self, now: Instant, stalls: bool) {
        let (wait, active) = (self.probe_wait(), self.sender.has_data());
        let Some(discovery) = &mut self.discovery else { return };
        if stalls {
            discovery.mtu.on_stall(now, wait);
        }
        let change = discovery.mtu.handle_timeout(now, wait, active);
        self.change_size(change, now);
    }

    pub(super) fn discovery_deadline(&self) -> Option<Instant> {
        self.discovery.as_ref().and_then(|discovery| discovery.mtu.deadline())
    }

    /// A packet of discovery arrived. One of a peer that agreed on nothing of the kind changes nothing.
    pub(super) fn on_path(&mut self, path: &Path<'_>, sent: Timestamp, now: Instant) -> Effect {
        let (wait, headers) = (self.probe_wait(), self.control_headers());
        let Some(discovery) = &mut self.discovery else { return Effect::GoOn };
        match *path {
            Path::Probe { number, padding } => {
                let arrived = u32::try_from(padding).unwrap_or(u32::MAX).saturating_add(headers);
                if discovery.replies.len() < MAX_REPLIES {
                    discovery.replies.push_back((number, arrived));
                }
            }
            Path::Reply { number, arrived } => {
                let change = discovery.mtu.on_reply(number, arrived, now, wait);
                self.change_size(change, now);
            }
            Path::Fragment(fragment) => {
                if let Err(effect) = self.admit(fragment.seq, false) {
                    return effect;
                }
                self.receiver.on_fragment(&fragment, sent, now, &self.rtt);
                self.note_sign_of_life(now);
            }
            Path::Other { .. } => {}
        }
        Effect::GoOn
    }

    /// Writes a reply, if one is due.
    pub(super) fn poll_path_reply(&mut self, peer: SocketId, out: &mut Vec<u8>) -> bool {
        let reply = self.discovery.as_mut().and_then(|discovery| discovery.replies.pop_front());
        if let Some((number, arrived)) = reply {
            Control::Path(Path::Reply { number, arrived }).encode(Timestamp::ZERO, peer, out);
        }
        reply.is_some()
    }

    /// Writes a probe, if one is due.
    pub(super) fn poll_probe(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let probe = self.discovery.as_mut().and_then(|discovery| discovery.mtu.poll());
        let Some(probe) = probe else { return false };
        let padding = probe.size.saturating_sub(self.control_headers()) as usize;
        let path = Path::Probe { number: probe.number, padding };
        Control::Path(path).encode(Timestamp::ZERO, self.peer_id, out);
        self.liveness.expiry.on_sent(now);
        true
    }

    fn change_size(&mut self, change: Change, now: Instant) {
        let (size, fell) = match change {
            Change::None => return,
            Change::Raise(size) => (size, false),
            Change::Fall(size) => (size, true),
        };
        self.mss = size;
        self.sender.set_payload_size(size.saturating_sub(HEADERS) as usize);
        if fell {
            self.sender.on_black_hole(now);
        }
        self.apply_control();
    }

    /// The size of full packets: of those that this side sends, or that arrive if it has sent none.
    pub(super) fn packet_size(&self) -> u32 {
        if self.sender.sent > 0 || self.receiver.packets == 0 {
            return self.mss;
        }
        u32::try_from(self.receiver.full_payload()).unwrap_or(u32::MAX).saturating_add(HEADERS)
    }

    /// The largest control packet for reports that must arrive whatever became of the path.
    pub(super) fn safe_size(&self) -> u32 {
        let size = self.discovery.as_ref().map_or(self.mss, |discovery| discovery.mtu.base().min(self.mss));
        size.saturating_sub(self.control_surplus)
    }

    /// Bytes of a control packet beside its body, if its size is counted as that of a data packet.
    const fn control_headers(&self) -> u32 {
        HEADERS + self.control_surplus
    }

    /// Tells the controller's link of the present sizes.
    pub(super) fn scale_packets(&mut self) {
        if self.discovery.is_some() {
            let scale = Scale { sent: self.sender.scale_of_next(), acked: self.sender.scale_of_oldest() };
            let before = self.congestion.scale().acked;
            if scale.acked != before {
                self.sender.rescale_delivery(before / scale.acked);
            }
            self.congestion.set_scale(scale);
        }
    }
}
