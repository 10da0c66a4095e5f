//! The sizes to try, in the order that finds the path's soonest.

/// Packet sizes of common paths in bytes, headers of IP included, in ascending order.
///
/// Sources: RFC 8200 (1280); GRE, VXLAN, WireGuard and PPPoE inside of Ethernet (1400 to 1492); Ethernet (1500); FDDI (4352, RFC 1390);
/// ATM (4470, RFC 2225); clouds (8500, 8896); the steps between them halve what is unknown.
const COMMON: [u32; 21] = [
    1_280, 1_360, 1_400, 1_420, 1_440, 1_450, 1_460, 1_472, 1_480, 1_492, 1_500, 2_000, 3_000, 4_000, 4_352, 4_470,
    6_000, 7_000, 8_000, 8_500, 8_896,
];
/// The size of most paths.
const ETHERNET: u32 = 1_500;

/// What may still be tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidates {
    largest: u32,
    /// The largest size that has not failed.
    high: u32,
    /// What sizes here leave out of packets of IP.
    margin: u32,
}

impl Candidates {
    /// Everything up to `largest`, of sizes that leave out `margin` bytes of the packet.
    pub(super) const fn new(largest: u32, margin: u32) -> Self {
        Self { largest, high: largest, margin }
    }

    /// The path does not carry this size.
    pub(super) fn fails(&mut self, size: u32) {
        self.high = self.high.min(size.saturating_sub(1));
    }

    /// The path may have changed, so every size may work.
    pub(super) const fn restart(&mut self) {
        self.high = self.largest;
    }

    /// The next size to try above `size`, which works. The largest comes first, so that the best path costs one probe. After a
    /// failure it is that of Ethernet, and then the middle of what is left.
    pub(super) fn next(&self, size: u32) -> Option<u32> {
        if self.high == self.largest {
            return (self.largest > size).then_some(self.largest);
        }
        let left = || {
            COMMON.iter().map(|common| common - self.margin).filter(|common| (size + 1..=self.high).contains(common))
        };
        let ethernet = ETHERNET - self.margin;
        left().find(|common| *common == ethernet).or_else(|| left().nth(left().count() / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes tried from `from` on, on a path that carries `path`.
    fn tried(mut candidates: Candidates, from: u32, path: u32) -> Vec<u32> {
        let (mut size, mut tried) = (from, Vec::new());
        while let Some(next) = candidates.next(size) {
            tried.push(next);
            if next <= path { size = next } else { candidates.fails(next) }
        }
        tried
    }

    #[test]
    fn the_best_path_costs_one_probe_and_any_other_few() {
        let all = Candidates::new(9_000, 0);
        assert_eq!(tried(all, 1_500, 9_000), [9_000]);
        assert_eq!(tried(all, 1_500, 1_500), [9_000, 6_000, 4_000, 3_000, 2_000]);
        assert_eq!(tried(all, 1_500, 8_600), [9_000, 6_000, 8_500, 8_896]);
        assert_eq!(tried(Candidates::new(1_500, 0), 1_500, 1_500), [0; 0]);
    }

    #[test]
    fn after_a_fall_ethernet_comes_first() {
        let mut candidates = Candidates::new(8_972, 28);
        candidates.fails(8_972);
        assert_eq!(tried(candidates, 1_252, 1_472)[..2], [1_472, 5_972]);
        candidates.fails(1_472);
        assert_eq!(tried(candidates, 1_252, 1_372), [1_422, 1_392, 1_372]);
        candidates.restart();
        assert_eq!(candidates.next(1_372), Some(8_972));
    }
}
