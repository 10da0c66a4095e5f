//! Answers to callers for whom nothing is kept.

use farhaul_wire::secure::{CloseCode, Epoch, Frame, Header, InitialHeader, PacketNumber};

use super::protector::Keys;

/// Numbers of the answers without state. The other Initial packets of a server count from zero.
const RETRY_NUMBER: PacketNumber = 1 << 15;
const CLOSE_NUMBER: PacketNumber = RETRY_NUMBER + 1;

/// The answer of a server without state: it wants to see `token` first.
pub(super) fn retry(initial: &InitialHeader<'_>, keys: &Keys, token: &[u8], out: &mut Vec<u8>) {
    alone(initial, keys, RETRY_NUMBER, &Frame::Retry(token), out);
}

/// The answer of a server without state: it does not take the caller.
pub(super) fn close(initial: &InitialHeader<'_>, keys: &Keys, (code, reason): (CloseCode, &str), out: &mut Vec<u8>) {
    alone(initial, keys, CLOSE_NUMBER, &Frame::Close(code, reason), out);
}

/// One Initial packet with one frame, in answer to a caller of any version. It is shorter than any caller's packet.
fn alone(initial: &InitialHeader<'_>, keys: &Keys, number: PacketNumber, frame: &Frame<'_>, out: &mut Vec<u8>) {
    let header = Header { epoch: Epoch::INITIAL, number, to: initial.from };
    out.extend_from_slice(&header.bytes());
    InitialHeader { token: &[], ..*initial }.encode(out);
    let body = out.len();
    frame.encode(out);
    let (head, frames) = out.split_at_mut(body);
    let tag = keys.local.seal(number, head, frames);
    out.extend_from_slice(&tag);
}
