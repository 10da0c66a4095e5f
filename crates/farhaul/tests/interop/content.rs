//! The bytes that both sides derive from a seed, and their digests, as the reference peer's README defines them.

use farhaul::{Error, MessageSocket, SendOptions, Stream};

/// Bytes per call of `send` and `recv`: not a whole number of packets.
const BLOCK: usize = 1_000_000;

/// FNV-1a of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digest(pub(crate) u64);

/// The received messages.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// Their indices at the sender, in order of arrival.
    pub(crate) order: Vec<u64>,
    /// The wrapping sum of their digests.
    pub(crate) digest: u64,
}

impl Digest {
    pub(crate) const fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |state, byte| (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3));
    }
}

/// Word `index` of the stream of `seed`: splitmix64.
fn word(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add((index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The first `len` bytes of the stream of `seed`.
pub(crate) fn stream(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len.div_ceil(8) as u64).flat_map(|index| word(seed, index).to_le_bytes()).collect();
    bytes.truncate(len);
    bytes
}

/// Message `index` of `seed`.
pub(crate) fn message(seed: u64, index: u64, len: usize) -> Vec<u8> {
    let mut bytes = [seed.to_le_bytes(), index.to_le_bytes()].concat();
    bytes.extend(stream(seed.wrapping_add(index), len.saturating_sub(bytes.len())));
    bytes.truncate(len);
    bytes
}

/// The digest of that stream.
pub(crate) fn digest_of(bytes: &[u8]) -> u64 {
    let mut digest = Digest::new();
    digest.update(bytes);
    digest.0
}

/// Sends the stream of `seed` and returns its digest.
pub(crate) fn send(to: &Stream, seed: u64, len: usize) -> Result<u64, Error> {
    let bytes = stream(seed, len);
    bytes.chunks(BLOCK).try_for_each(|block| to.send_all(block))?;
    Ok(digest_of(&bytes))
}

/// Receives `len` bytes, or all until the end of the stream. Returns their number and digest.
pub(crate) fn recv(from: &Stream, len: Option<u64>) -> Result<(u64, u64), Error> {
    let (mut block, mut digest, mut received) = (vec![0; BLOCK], Digest::new(), 0);
    while len.is_none_or(|len| received < len) {
        let room = len.map_or(BLOCK as u64, |len| len - received).min(BLOCK as u64);
        let got = from.recv(&mut block[..room as usize])?;
        if got == 0 {
            break;
        }
        digest.update(&block[..got]);
        received += got as u64;
    }
    Ok((received, digest.0))
}

/// Sends messages `0..count` of `seed` and returns the sum of their digests.
pub(crate) fn send_messages(
    to: &MessageSocket,
    seed: u64,
    count: u64,
    len: usize,
    options: SendOptions,
) -> Result<u64, Error> {
    let mut sum = 0_u64;
    for index in 0..count {
        let message = message(seed, index, len);
        to.send_with(&message, options)?;
        sum = sum.wrapping_add(digest_of(&message));
    }
    Ok(sum)
}

/// Receives `count` messages, or all until the end. Checks that the peer made each of them, without duplicates.
pub(crate) fn recv_messages(from: &MessageSocket, count: Option<usize>) -> Result<Messages, Error> {
    let (mut room, mut messages) = (vec![0; 1 << 20], Messages::default());
    while count.is_none_or(|count| messages.order.len() < count) {
        let Some(received) = from.recv(&mut room)? else { break };
        let bytes = &room[..received.len];
        if let Some((head, _)) = bytes.split_first_chunk::<16>() {
            let [seed, index] = [0, 8].map(|at| u64::from_le_bytes(head[at..at + 8].try_into().unwrap()));
            assert!(bytes == message(seed, index, bytes.len()), "message {index} is damaged");
            messages.order.push(index);
        } else {
            messages.order.push(messages.order.len() as u64);
        }
        messages.digest = messages.digest.wrapping_add(digest_of(bytes));
    }
    let mut sorted = messages.order.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), messages.order.len(), "a message came twice");
    Ok(messages)
}

#[test]
fn content_equals_that_of_the_reference_peer() {
    assert_eq!(digest_of(&[]), 0xCBF2_9CE4_8422_2325);
    assert_eq!(digest_of(&stream(1, 16)), 0x56E6_A4C0_E205_423A);
    assert_eq!(digest_of(&stream(42, 1_000_003)), 0xC86C_6E61_03F8_B74D);
    assert_eq!(digest_of(&message(7, 0, 24)), 0x7C7B_752B_F8D0_4CB6);
    let sum = (0..2).map(|index| digest_of(&message(7, index, 5))).fold(0, u64::wrapping_add);
    assert_eq!(sum, 0x7D5F_4CB3_5A7B_544C);
}
