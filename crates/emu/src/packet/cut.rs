//! Segmentation of large packets, as by the host's network card.

use std::rc::Rc;

use super::Packet;
use super::headers::{CWR, FIN, Layout, PROTOCOL_TCP, PROTOCOL_UDP, PSH, TCP_FLAGS};
use super::virtio::GsoType;
use crate::network::HostId;
use crate::pool::Pool;

/// Packets lost in segmentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CutCounts {
    /// Packets dropped for lack of memory.
    pub(crate) exhausted: u64,
    /// Invalid packets that cannot be segmented.
    pub(crate) malformed: u64,
}

/// Segments `packet` into packets of `size` bytes of payload each for host `to`, and passes them to `each`.
pub(crate) fn cut(
    packet: &[u8],
    (gso, size): (GsoType, u16),
    to: HostId,
    pool: &Rc<Pool>,
    mut each: impl FnMut(Packet),
) -> CutCounts {
    let expected = match gso {
        GsoType::Tcp => PROTOCOL_TCP,
        GsoType::Udp => PROTOCOL_UDP,
    };
    let Some(layout) = Layout::of(packet).filter(|layout| layout.protocol == expected && size > 0) else {
        return CutCounts { exhausted: 0, malformed: 1 };
    };
    let (headers, payload) = packet.split_at(layout.payload);
    let count = payload.chunks(usize::from(size)).len();
    let mut counts = CutCounts::default();
    for (index, part) in payload.chunks(usize::from(size)).enumerate() {
        let Some(mut bytes) = pool.buffer(headers.len() + part.len()) else {
            counts.exhausted += 1;
            continue;
        };
        bytes.append(headers);
        bytes.append(part);
        layout.advance_identification(&mut bytes, index as u16);
        if gso == GsoType::Tcp {
            let sequence = layout.sequence(&bytes).wrapping_add(index as u32 * u32::from(size));
            layout.set_sequence(&mut bytes, sequence);
            let flags = &mut bytes[layout.transport + TCP_FLAGS];
            // FIN and PSH belong to the last segment. Only the first one carries CWR, the reduced window (RFC 3168).
            *flags &= if index + 1 == count { !0 } else { !(FIN | PSH) };
            *flags &= if index == 0 { !0 } else { !CWR };
        }
        let length = bytes.len();
        layout.set_length(&mut bytes, length);
        each(Packet::new(bytes, Some(layout.checksum()), to));
    }
    counts
}
