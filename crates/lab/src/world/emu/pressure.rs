//! The time that programs of this machine waited for processors: the kernel's pressure stall information
//! (`Documentation/accounting/psi.rst`).

use std::fs;

use farhaul_units::Duration;

/// The kernel's file.
const FILE: &str = "/proc/pressure/cpu";

/// The waiting time at its creation; `None` where the kernel does not report it.
pub(super) struct Pressure(Option<Duration>);

impl Pressure {
    pub(super) fn begin() -> Self {
        Self(now())
    }

    /// The share of waiting in the time since then, which is `elapsed`.
    pub(super) fn share(&self, elapsed: Duration) -> Option<f64> {
        let waited = now()?.saturating_sub(self.0?);
        (!elapsed.is_zero()).then(|| waited.as_secs_f64() / elapsed.as_secs_f64())
    }
}

fn now() -> Option<Duration> {
    waited(&fs::read_to_string(FILE).ok()?)
}

/// The total of the first line: `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`, in microseconds.
fn waited(text: &str) -> Option<Duration> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = line.split_whitespace().find_map(|field| field.strip_prefix("total="))?;
    total.parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_from_the_line_about_some_tasks() {
        let text =
            "some avg10=1.53 avg60=0.87 avg300=0.73 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(waited(text), Some(Duration::from_millis(2_500)));
        assert_eq!(waited("full total=7"), None);
        assert_eq!(Pressure(None).share(Duration::from_secs(1)), None);
    }
}
