//! Space on the disk for a file that is under way: a step ahead of its bytes, however large it claims to be.

use std::cell::Cell;
use std::fs::File;

use farhaul_session::Failure;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::failure::failure;

/// Space is reserved for files from this size on. That avoids fragmentation.
const FROM: u64 = 1 << 20;
/// Most bytes that are reserved beyond those written. A peer that claims a large file and sends nothing holds no more. The
/// pieces of a file are this large in the worst case, so reading them back costs a disk one seek in 100 ms.
pub(super) const STEP: u64 = 16 << 20;

/// The space of one file.
#[derive(Debug)]
pub(super) struct Reservation {
    /// Bytes that the file is said to get.
    size: u64,
    /// Bytes reserved so far, from the beginning.
    reserved: Cell<u64>,
    /// Bytes written so far, in any order.
    written: Cell<u64>,
}

impl Reservation {
    /// The first step for a file of `size` bytes.
    pub(super) fn begin(file: &File, size: u64) -> Result<Self, Failure> {
        let size = if size < FROM { 0 } else { size };
        let reservation = Self { size, reserved: Cell::new(0), written: Cell::new(0) };
        reservation.reserve(file, STEP)?;
        Ok(reservation)
    }

    /// No reservation.
    pub(super) const fn none() -> Self {
        Self { size: 0, reserved: Cell::new(0), written: Cell::new(0) }
    }

    /// Whether space is reserved beyond `offset`.
    pub(super) const fn reaches(&self, offset: u64) -> bool {
        self.reserved.get() > offset
    }

    /// Reserves no more: the file has holes.
    pub(super) fn stop(&self) {
        self.reserved.set(u64::MAX);
    }

    /// Counts bytes that are about to be written, and reserves the next step if they reach it.
    pub(super) fn extend(&self, file: &File, bytes: u64) -> Result<(), Failure> {
        let written = self.written.get().saturating_add(bytes);
        if self.size > 0 && written > self.reserved.get() {
            self.reserve(file, written.saturating_add(STEP))?;
        }
        self.written.set(written);
        Ok(())
    }

    /// Reserves space up to `end`, within the size.
    fn reserve(&self, file: &File, end: u64) -> Result<(), Failure> {
        let (from, end) = (self.reserved.get(), end.min(self.size));
        if end <= from {
            return Ok(());
        }
        match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, from, end - from) {
            Ok(()) => self.reserved.set(end),
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::IO)) => {
                return Err(failure("reserve space", error));
            }
            // File systems that cannot reserve space report that in several ways. If space is short, the writes fail.
            Err(_) => self.reserved.set(u64::MAX),
        }
        Ok(())
    }
}
