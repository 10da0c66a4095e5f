//! Datagrams of a number and a payload, with a tag in front: those of Hurricane and FOBS.

use farhaul_units::SeqNo;
use farhaul_wire::blast::TAG_LEN;

use super::engine::Setup;
use super::receiving::{ReceiverState, packets_in};
use super::send_buffer;
use farhaul_proto::buffer::Insert;
use farhaul_proto::consts::IP_UDP_HEADER;

/// Bytes of the number.
pub(crate) const NUMBER_LEN: usize = 4;
/// The number of the first datagram.
pub(crate) const FIRST: SeqNo = SeqNo::new(0);

/// The datagrams that a sender holds.
pub(crate) type SendBuffer = send_buffer::SendBuffer<{ TAG_LEN + NUMBER_LEN }>;

/// A receiver without any datagram. The settings of the connection bound their number.
pub(crate) fn receiver_state(setup: &Setup<'_>) -> ReceiverState {
    let payload_size = setup.payload_size(NUMBER_LEN);
    let by_memory = packets_in(setup.config.recv_buffer, payload_size);
    ReceiverState::new(FIRST, payload_size, by_memory.clamp(2, farhaul_proto::seq_set::MAX_CAPACITY / 2), setup)
}

/// Stores a datagram that was split into number and payload. `None` if no sender sends it.
pub(crate) fn store<E>(state: &mut ReceiverState, datagram: Result<(SeqNo, &[u8]), E>) -> Option<(SeqNo, Insert)> {
    let (number, payload) = datagram.ok().filter(|(_, payload)| payload.len() <= state.payload_size)?;
    Some((number, state.store(number, payload)))
}

/// A send buffer without any datagram.
pub(crate) fn send_buffer(setup: &Setup<'_>) -> SendBuffer {
    SendBuffer::new(FIRST, setup.payload_size(NUMBER_LEN), setup)
}

/// Stores bytes of the stream in a send buffer. See [`PacketStore::write`](farhaul_proto::buffer::PacketStore::write).
pub(crate) fn write(buffer: &mut SendBuffer, data: &[u8], next_to_send: SeqNo) {
    buffer.write(data, next_to_send, |number, head| head.copy_from_slice(&number.value().to_be_bytes()));
}

/// Bytes that a full datagram of a send buffer occupies on the link, headers of IP and UDP included.
pub(crate) const fn size_on_link(buffer: &SendBuffer) -> usize {
    buffer.size() + IP_UDP_HEADER as usize
}
