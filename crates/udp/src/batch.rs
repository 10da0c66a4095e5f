//! Memory for received trains.

use std::fmt;
use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr};

use farhaul_units::Duration;
use quinn_udp::{BATCH_SIZE, RecvMeta};

/// Bytes for one train, the most that the kernel coalesces: the size of the largest IP packet.
const TRAIN_BYTES: usize = 1 << 16;
/// Bytes from one train to the next. Were it a power of two, the packets of all trains would share a few sets of the processor's caches.
const SLOT_BYTES: usize = TRAIN_BYTES + 33 * 64;
/// Trains of a call if they are long: half a megabyte, which stays in the processor's cache.
const LONG_TRAINS: usize = 8;
/// Trains up to this mean length are short. Then calls cost more than memory, and each takes as many as it can.
const SHORT_TRAIN: usize = TRAIN_BYTES * LONG_TRAINS / BATCH_SIZE;

/// Reusable memory for the result of one receive call: several trains.
///
/// A call takes few trains where they are long, because their memory stays in the processor's cache. Without offloads a train is a
/// single datagram, and a call takes many.
pub struct RecvBatch {
    bytes: Vec<u8>,
    metas: Vec<RecvMeta>,
    /// Most trains of the next call.
    most: usize,
    /// Number of trains from the last receive call.
    filled: usize,
    /// Whether that was the most which it could take.
    full: bool,
}

impl Default for RecvBatch {
    fn default() -> Self {
        Self::new(BATCH_SIZE)
    }
}

impl RecvBatch {
    /// Room for at most `trains` trains (1..=32) of 64 KiB each.
    pub fn new(trains: usize) -> Self {
        let trains = trains.clamp(1, BATCH_SIZE);
        let (bytes, metas) = (vec![0; trains * SLOT_BYTES], vec![RecvMeta::default(); trains]);
        Self { bytes, metas, most: trains.min(LONG_TRAINS), filled: 0, full: false }
    }

    /// Number of trains from the last receive call.
    pub fn len(&self) -> usize {
        self.filled
    }

    /// Whether the last receive call returned nothing.
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Whether the last receive call took as many as it could, so that more may be waiting.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Discards the trains of the last receive call.
    pub fn clear(&mut self) {
        (self.filled, self.full) = (0, false);
    }

    /// The trains of the last receive call, in order of arrival.
    pub fn trains(&mut self) -> impl Iterator<Item = Train<'_>> {
        self.bytes.chunks_exact_mut(SLOT_BYTES).zip(&self.metas[..self.filled]).map(|(bytes, meta)| Train {
            from: unmapped(meta.addr),
            to: meta.dst_ip.map(|ip| ip.to_canonical()),
            stride: meta.stride.clamp(1, TRAIN_BYTES),
            bytes: &mut bytes[..meta.len.min(TRAIN_BYTES)],
            arrived: meta.timestamp,
        })
    }

    /// Lets `receive` fill the buffers. It returns how many it filled.
    pub(crate) fn fill<E>(
        &mut self,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        self.clear();
        let mut memory = self.bytes.chunks_exact_mut(SLOT_BYTES).map(|slot| &mut slot[..TRAIN_BYTES]);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(memory.next().unwrap_or_default()));
        self.filled = receive(&mut slices[..self.most], &mut self.metas)?;
        self.full = self.filled == self.most;
        let bytes: usize = self.metas[..self.filled].iter().map(|meta| meta.len).sum();
        let are_short = bytes <= self.filled * SHORT_TRAIN;
        self.most = if are_short { self.metas.len() } else { self.metas.len().min(LONG_TRAINS) };
        Ok(self.filled)
    }
}

impl fmt::Debug for RecvBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvBatch").field("capacity", &self.metas.len()).field("filled", &self.filled).finish()
    }
}

/// An IPv4-mapped IPv6 address, as a dual-stack socket reports it, as IPv4. Other addresses are unchanged.
fn unmapped(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => v6.ip().to_ipv4_mapped().map_or(address, |ip| (ip, v6.port()).into()),
        SocketAddr::V4(_) => address,
    }
}

/// Datagrams from one address that the kernel delivered together.
#[derive(Debug, PartialEq, Eq)]
pub struct Train<'a> {
    /// The sender's address.
    pub from: SocketAddr,
    /// The address of this machine that it sent to, if the socket is at the unspecified one. Answers leave from there.
    pub to: Option<IpAddr>,
    /// The datagrams, back to back.
    pub bytes: &'a mut [u8],
    /// Length of each datagram, at least one; the last may be shorter. A single datagram has `stride >= bytes.len()`.
    pub stride: usize,
    /// When the kernel received the first one: wall-clock time since 1970. `None` unless
    /// [`Options::timestamps`](crate::Options::timestamps) is set.
    pub arrived: Option<Duration>,
}

impl Train<'_> {
    /// The datagrams one by one. An empty train is one empty datagram.
    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        let count = self.bytes.len().div_ceil(self.stride).max(1);
        (0..count).map(|index| {
            let start = index * self.stride;
            &self.bytes[start..(start + self.stride).min(self.bytes.len())]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(bytes: &mut [u8], stride: usize) -> Train<'_> {
        Train { from: SocketAddr::from(([127, 0, 0, 1], 9)), to: None, bytes, stride, arrived: None }
    }

    #[test]
    fn a_train_is_cut_at_its_stride_and_the_last_may_be_short() {
        let mut bytes = *b"aaabbbc";
        let cut: Vec<Vec<u8>> = train(&mut bytes, 3).datagrams().map(<[u8]>::to_vec).collect();
        assert_eq!(cut, [b"aaa".to_vec(), b"bbb".to_vec(), b"c".to_vec()]);
    }

    #[test]
    fn an_empty_datagram_is_a_datagram() {
        assert_eq!(train(&mut [], 1).datagrams().count(), 1);
    }

    #[test]
    fn a_call_takes_few_long_trains_or_many_short_ones() {
        let mut batch = RecvBatch::default();
        let mut takes = |len: usize| {
            let taken = batch.fill::<()>(|slices, metas| {
                metas.iter_mut().for_each(|meta| meta.len = len);
                Ok(slices.len())
            });
            taken.unwrap()
        };
        assert_eq!([1_500, 1_500, 64_000, 64_000, 1_500].map(&mut takes), [8, 32, 32, 8, 8]);
        assert_eq!(takes(1_500), 32);
    }

    #[test]
    fn a_failed_call_leaves_an_empty_batch() {
        let mut batch = RecvBatch::new(2);
        assert_eq!(batch.fill::<()>(|slices, _| Ok(slices.len())), Ok(2));
        assert!(batch.is_full() && batch.len() == 2);
        assert!(batch.fill(|_, _| Err(())).is_err());
        assert!(batch.is_empty());
    }
}
