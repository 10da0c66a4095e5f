//! A disk at the sender or receiver, possibly slower than the network.
//!
//! With a *coupled* disk the application alternates: it waits for the disk, then until the network has taken
//! everything. Each is idle while the other works. A *decoupled* disk works ahead (or behind) through a buffer while
//! the network runs.

use farhaul_units::{Duration, Instant, Rate};

/// The speed of a disk and how the application uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpec {
    /// Read or write rate.
    pub rate: Rate,
    /// Bytes per access.
    pub block: u64,
    /// Buffer in bytes between disk and application; `None` for a coupled disk. At least two blocks are used, because
    /// the disk could not work ahead with fewer.
    pub ahead: Option<u64>,
}

/// The bytes to send that the disk has read, and when it will have read more.
#[derive(Clone, Debug)]
pub struct Supply {
    disk: DiskSpec,
    /// Bytes that the disk has yet to read; `None` for an endless file.
    unread: Option<u64>,
    /// Bytes read and not yet taken.
    ready: u64,
    /// The current access: when it completes, and its bytes.
    access: Option<(Instant, u64)>,
}

impl Supply {
    /// `bytes` bytes on the disk, none of them read.
    pub fn new(disk: DiskSpec, bytes: Option<u64>) -> Self {
        Self { disk, unread: bytes, ready: 0, access: None }
    }

    /// Bytes that can be taken at `now`.
    pub fn ready(&mut self, now: Instant) -> u64 {
        // The disk worked on between calls, so completed accesses follow one another.
        while let Some((done, bytes)) = self.access.take_if(|(done, _)| *done <= now) {
            self.ready += bytes;
            if self.disk.ahead.is_some() {
                self.begin(done);
            }
        }
        self.ready
    }

    /// Takes `bytes` bytes.
    pub fn take(&mut self, now: Instant, bytes: u64) {
        self.ready -= bytes;
        if self.disk.ahead.is_some() {
            self.begin(now);
        }
    }

    /// When more bytes will be ready; `None` if the disk is idle.
    pub fn next(&self) -> Option<Instant> {
        self.access.map(|(done, _)| done)
    }

    /// Whether a coupled disk is idle until the network has taken everything. Then call [`begin`](Supply::begin).
    pub fn waits_for_network(&self) -> bool {
        self.disk.ahead.is_none() && self.ready == 0 && self.access.is_none() && self.unread != Some(0)
    }

    /// Begins another access if the disk is idle and the buffer has room.
    pub fn begin(&mut self, now: Instant) {
        let bytes = self.unread.unwrap_or(u64::MAX).min(self.disk.block);
        let room = match self.disk.ahead {
            Some(ahead) => self.ready + bytes <= ahead.max(2 * self.disk.block),
            None => self.ready == 0,
        };
        if bytes > 0 && room && self.access.is_none() {
            self.unread = self.unread.map(|unread| unread - bytes);
            self.access = Some((now + self.disk.rate.time_for(bytes), bytes));
        }
    }
}

/// Writes received bytes to the disk and states how many fit now.
#[derive(Clone, Debug)]
pub(super) struct Drain {
    disk: DiskSpec,
    /// When all bytes handed over will be on the disk.
    idle_at: Instant,
}

impl Drain {
    pub(super) fn new(disk: DiskSpec) -> Self {
        Self { disk, idle_at: Instant::ZERO }
    }

    /// Bytes that can be handed over at `now`.
    pub(super) fn room(&self, now: Instant) -> u64 {
        let left = self.disk.rate.bytes_in(self.idle_at.saturating_since(now));
        match self.disk.ahead {
            Some(ahead) => ahead.max(2 * self.disk.block).saturating_sub(left),
            None if self.idle_at > now => 0,
            None => self.disk.block,
        }
    }

    /// Hands over `bytes` bytes.
    pub(super) fn put(&mut self, now: Instant, bytes: u64) {
        self.idle_at = self.idle_at.max(now) + self.disk.rate.time_for(bytes);
    }

    /// When there is room for one block.
    pub(super) fn next(&self, now: Instant) -> Instant {
        let behind = match self.disk.ahead {
            Some(ahead) => self.disk.rate.time_for(ahead.max(2 * self.disk.block) - self.disk.block),
            None => Duration::ZERO,
        };
        let at = self.idle_at.as_nanos().saturating_sub(u64::try_from(behind.as_nanos()).unwrap_or(u64::MAX));
        Instant::from_nanos(at).max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEGABYTE: u64 = 1_000_000;

    fn disk(ahead: Option<u64>) -> DiskSpec {
        DiskSpec { rate: Rate::from_megabits_per_second(80), block: MEGABYTE, ahead } // 10 MB/s: a block in 0.1 s
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_coupled_disk_reads_only_when_everything_was_taken() {
        let mut supply = Supply::new(disk(None), None);
        supply.begin(at(0));
        assert_eq!((supply.ready(at(99)), supply.ready(at(100))), (0, MEGABYTE));
        assert_eq!(supply.next(), None);
        supply.take(at(150), MEGABYTE / 2);
        assert_eq!(supply.next(), None);
        supply.take(at(200), MEGABYTE / 2);
        assert!(supply.waits_for_network());
        supply.begin(at(250));
        assert_eq!(supply.next(), Some(at(350)));
    }

    #[test]
    fn a_decoupled_disk_reads_ahead_until_its_buffer_is_full() {
        let mut supply = Supply::new(disk(Some(3 * MEGABYTE)), None);
        supply.begin(at(0));
        assert_eq!(supply.ready(at(1_000)), 3 * MEGABYTE);
        supply.take(at(1_000), MEGABYTE);
        assert_eq!(supply.next(), Some(at(1_100)));
    }

    #[test]
    fn reading_stops_at_the_end_of_the_file() {
        let mut supply = Supply::new(disk(Some(9 * MEGABYTE)), Some(MEGABYTE + 7));
        supply.begin(at(0));
        assert_eq!(supply.ready(at(5_000)), MEGABYTE + 7);
        assert_eq!(supply.next(), None);
    }

    #[test]
    fn a_slow_disk_takes_bytes_at_its_rate() {
        for ahead in [None, Some(4 * MEGABYTE)] {
            let mut drain = Drain::new(disk(ahead));
            let (mut now, mut taken) = (at(0), 0);
            while now < at(10_000) {
                let room = drain.room(now);
                assert!(room >= MEGABYTE - 1, "it said that there would be room: {room}");
                drain.put(now, room);
                taken += room;
                now = drain.next(now);
            }
            let most = 100 * MEGABYTE + ahead.unwrap_or(MEGABYTE);
            assert!((99 * MEGABYTE..=most).contains(&taken), "{taken}");
        }
    }
}
