//! Large packets, cut into those that travel, as the host's network card would have done.

use std::rc::Rc;

use super::headers::{CWR, FIN, Layout, PROTOCOL_TCP, PROTOCOL_UDP, PSH, TCP_FLAGS};
use super::virtio::Bundle;
use super::{HostIndex, Packet};
use crate::pool::Pool;

/// What became of what was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Packets for which there was no memory.
    pub(crate) exhausted: u64,
    /// What the host should never have sent: a bundle that cannot be cut.
    pub(crate) malformed: u64,
}

/// Gives the packets that `packet` stands for, a bundle of so many bytes of payload each, all to host `to`, to `each`.
pub(crate) fn cut(
    packet: &[u8],
    (bundle, size): (Bundle, u16),
    to: HostIndex,
    pool: &Rc<Pool>,
    mut each: impl FnMut(Packet),
) -> Outcome {
    let expected = match bundle {
        Bundle::Tcp => PROTOCOL_TCP,
        Bundle::Udp => PROTOCOL_UDP,
    };
    let Some(layout) = Layout::of(packet).filter(|layout| layout.protocol == expected && size > 0) else {
        return Outcome { exhausted: 0, malformed: 1 };
    };
    let (headers, payload) = packet.split_at(layout.payload);
    let count = payload.chunks(usize::from(size)).len();
    let mut outcome = Outcome::default();
    for (index, part) in payload.chunks(usize::from(size)).enumerate() {
        let Some(mut bytes) = pool.buffer(headers.len() + part.len()) else {
            outcome.exhausted += 1;
            continue;
        };
        bytes.append(headers);
        bytes.append(part);
        layout.advance_identification(&mut bytes, index as u16);
        if bundle == Bundle::Tcp {
            let sequence = layout.sequence(&bytes).wrapping_add(index as u32 * u32::from(size));
            layout.set_sequence(&mut bytes, sequence);
            let flags = &mut bytes[layout.transport + TCP_FLAGS];
            // Who has the last byte ends the stream; the first one alone says that the window was reduced (RFC 3168).
            *flags &= if index + 1 == count { !0 } else { !(FIN | PSH) };
            *flags &= if index == 0 { !0 } else { !CWR };
        }
        let length = bytes.len();
        layout.set_length(&mut bytes, length);
        each(Packet::new(bytes, Some(layout.checksum()), to));
    }
    outcome
}
