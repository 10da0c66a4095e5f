//! Keeps processors out of deep sleep while packets flow. In a virtual machine a wake-up takes a tenth of a
//! millisecond, which every isolated packet would pay several times.

use std::fs::{File, OpenOptions};
use std::io::Write;

use farhaul_units::{Duration, Instant};

/// The Linux interface for limits on wake-up latency (`Documentation/power/pm_qos_interface.rst`), writable by root. It
/// takes a number of microseconds, which holds as long as the file is open.
const LATENCY_LIMIT: &str = "/dev/cpu_dma_latency";
/// No wake-up latency at all.
const NO_LATENCY: i32 = 0;
/// How long the limit stays after the last packet. Longer than the interval of `ping`.
const HOLD: Duration = Duration::from_secs(2);

/// Keeps processors awake while packets flow, if permitted.
#[derive(Debug, Default)]
pub(crate) struct Awake {
    request: Option<File>,
    until: Instant,
    /// The limit was requested and refused.
    refused: bool,
}

impl Awake {
    /// Packets were handled at `now`.
    pub(crate) fn on_work(&mut self, now: Instant) {
        self.until = now + HOLD;
        if self.request.is_none() && !self.refused {
            self.request = request();
            self.refused = self.request.is_none();
        }
    }

    /// No packet was handled at `now`.
    pub(crate) fn on_rest(&mut self, now: Instant) {
        if now >= self.until {
            self.request = None;
        }
    }
}

fn request() -> Option<File> {
    let mut file = OpenOptions::new().write(true).open(LATENCY_LIMIT).ok()?;
    file.write_all(&NO_LATENCY.to_ne_bytes()).ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latency_limit_lasts_two_seconds_after_the_last_packet_and_is_requested_once() {
        let mut awake = Awake::default();
        let at = |millis: u64| Instant::ZERO + Duration::from_millis(millis);
        awake.on_work(at(1_000));
        let permitted = awake.request.is_some();
        assert_eq!(awake.refused, !permitted);
        awake.on_rest(at(2_999));
        assert_eq!(awake.request.is_some(), permitted);
        awake.on_rest(at(3_000));
        assert!(awake.request.is_none());
        awake.on_work(at(4_000));
        assert_eq!(awake.request.is_some(), permitted);
    }
}
