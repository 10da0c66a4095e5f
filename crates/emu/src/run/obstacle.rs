//! Obstacles to the emulator's loop, which tests set up.

use std::sync::atomic::{AtomicU8, Ordering};

use farhaul_udp::Clock;
use farhaul_units::Duration;

use super::Shared;

/// An obstacle to the emulator's loop.
#[derive(Debug, Default)]
pub(crate) struct Obstacle(pub(crate) AtomicU8);

pub(crate) const NOTHING: u8 = 0;
/// The loop waits until the obstacle is gone.
pub(crate) const WALL: u8 = 1;
/// The loop computes for some milliseconds in each round until the obstacle is gone.
pub(crate) const BURDEN: u8 = 2;

impl Shared {
    pub(super) fn obstruct(&self, clock: &Clock) {
        let step = Duration::from_millis(1);
        while self.obstacle.0.load(Ordering::Relaxed) == WALL && !self.stop.load(Ordering::Relaxed) {
            clock.sleep_until(clock.now() + step);
        }
        if self.obstacle.0.load(Ordering::Relaxed) == BURDEN {
            let began = clock.now();
            while clock.now() - began < step * 5 {}
        }
    }
}
